//! The table itself, within its limits. Pure: time is an argument.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

use super::deadlines::KeptDeadlines;
use super::groups::KeptGroups;
use super::{
    GroupBounds, GroupMember, GroupRoom, Keepable, KeptDeadline, KeptLimits, NewMember, Taken,
};
use crate::runtime::{ByteBudget, ReservedBytes};

/// Roughly how many bytes an item needs besides its texts.
const ITEM_FIXED_BYTES: usize = 1_000;
/// Items that gave way are kept besides the others: so many of the parts of the limits.
const GAVE_WAY_DIVISOR: usize = 8;

/// Items by their ids, in the order in which they were added.
#[derive(Debug)]
pub(in crate::calls) struct KeptTable<T> {
    items: BTreeMap<u64, KeptItem<T>>,
    numbers: HashMap<Arc<str>, u64>,
    /// The numbers of those that are like each other.
    alike: HashMap<Arc<str>, BTreeSet<u64>>,
    groups: KeptGroups,
    /// The numbers of those that are over, in the order in which they ended.
    ended: BTreeMap<u64, u64>,
    /// The same by the time at which they ended, as far as it is known.
    ages: BTreeSet<(Timestamp, u64)>,
    deadlines: KeptDeadlines,
    /// The latest number that was given to an item or an end.
    latest: u64,
    /// What all of them hold.
    held: ByteBudget,
    /// What those take of it that gave way.
    gave_way: Taken,
    limits: KeptLimits,
}

#[derive(Debug)]
struct KeptItem<T> {
    item: T,
    held: ReservedBytes,
    ended: Option<KeptEnd>,
}

/// The end of an item.
#[derive(Debug, Clone, Copy)]
struct KeptEnd {
    /// Its number among the ends.
    number: u64,
    /// When it was, if that is known.
    at: Option<Timestamp>,
}

/// What came of adding an item. What is forgotten has to be deleted from the store too.
#[derive(Debug)]
pub(in crate::calls) enum Admission<T> {
    /// It is kept; these made room.
    Added(Vec<T>),
    /// What is not over leaves no room for it. These are forgotten all the same.
    Full(Vec<T>),
}

impl<T: Keepable> KeptTable<T> {
    /// An empty table.
    pub(in crate::calls) fn new(limits: KeptLimits) -> Self {
        Self {
            items: BTreeMap::new(),
            numbers: HashMap::new(),
            alike: HashMap::new(),
            groups: KeptGroups::default(),
            ended: BTreeMap::new(),
            ages: BTreeSet::new(),
            deadlines: KeptDeadlines::default(),
            latest: 0,
            held: ByteBudget::new(limits.bytes),
            gave_way: Taken::default(),
            limits,
        }
    }

    /// Applies other limits to what is added from now on.
    pub(in crate::calls) fn configure(&mut self, limits: KeptLimits) {
        self.held.set_limit(limits.bytes);
        self.limits = limits;
    }

    /// The most that all items may take.
    pub(in crate::calls) fn most(&self) -> Taken {
        Taken {
            count: self.limits.most,
            bytes: self.limits.bytes,
        }
    }

    /// Adds an item, within the limits or not.
    pub(in crate::calls) fn add(&mut self, item: T) {
        let held = self.held.count(held_bytes(&item));
        self.insert(item, held);
    }

    /// Adds an item within the limits; those that are over make room.
    pub(in crate::calls) fn admit(&mut self, item: T) -> Admission<T> {
        let bytes = held_bytes(&item);
        let open = self.items.len() - self.ended.len();
        if open >= self.limits.most || bytes > self.limits.bytes {
            return Admission::Full(Vec::new());
        }
        let forgotten = self.make_room(Taken::by_one(bytes));
        // The bytes of those that are not over may still leave no room.
        let Ok(held) = self.held.reserve(bytes) else {
            return Admission::Full(forgotten);
        };
        self.insert(item, held);
        Admission::Added(forgotten)
    }

    fn insert(&mut self, item: T, held: ReservedBytes) {
        let number = self.next_number();
        self.numbers.insert(Arc::clone(item.id()), number);
        let kept = KeptItem {
            item,
            held,
            ended: None,
        };
        self.gave_way = self.gave_way.with(kept.gave_way());
        if let Some(placed) = kept.placed() {
            self.groups.add(number, &placed.member, placed.bytes);
        }
        if let Some(deadline) = kept.item.deadline() {
            self.deadlines.add(number, deadline);
        }
        if let Some(likeness) = kept.item.likeness() {
            self.alike
                .entry(Arc::clone(likeness))
                .or_default()
                .insert(number);
        }
        self.items.insert(number, kept);
        self.note_end_of(number);
    }

    /// Forgets what is over, what ended first goes first, until there is room for `more`. Items
    /// that gave way have a part of that room of their own, and the latest of them is kept.
    pub(in crate::calls) fn make_room(&mut self, more: Taken) -> Vec<T> {
        let most = self.most().without(more);
        let of_gave_way = Taken {
            count: most.count / GAVE_WAY_DIVISOR,
            bytes: most.bytes / GAVE_WAY_DIVISOR,
        };
        let mut forgotten = Vec::new();
        while !self.taken().without(self.gave_way).is_within(most) {
            let Some(number) = self.first_ended(false) else {
                break;
            };
            forgotten.extend(self.take(number));
        }
        while self.gave_way.count > 1 && !self.gave_way.is_within(of_gave_way) {
            let Some(number) = self.first_ended(true) else {
                break;
            };
            forgotten.extend(self.take(number));
        }
        forgotten
    }

    /// The number of the item that ended first, of those that gave way or of the others.
    fn first_ended(&self, gave_way: bool) -> Option<u64> {
        let is_wanted = |number: &&u64| {
            self.items
                .get(number)
                .is_some_and(|kept| kept.item.gave_way() == gave_way)
        };
        self.ended.values().find(is_wanted).copied()
    }

    /// Forgets what was over for as long as items are kept, and what is beyond the limits.
    pub(in crate::calls) fn prune(&mut self, now: Timestamp) -> Vec<T> {
        // None is as old as a time that cannot be written.
        let then = now
            .saturating_sub(self.limits.keep)
            .unwrap_or(Timestamp::MIN);
        let old: Vec<u64> = self
            .ages
            .range(..(then, 0))
            .map(|(_, number)| *number)
            .collect();
        let mut forgotten: Vec<T> = old
            .into_iter()
            .filter_map(|number| self.take(number))
            .collect();
        forgotten.extend(self.make_room(Taken::default()));
        forgotten
    }

    /// Removes an item.
    pub(in crate::calls) fn remove(&mut self, id: &str) -> Option<T> {
        let number = *self.numbers.get(id)?;
        self.take(number)
    }

    /// The budget of the bytes of all items. An item that grows reserves its growth there itself.
    pub(in crate::calls) fn held(&self) -> &ByteBudget {
        &self.held
    }

    /// Changes an item, and wakes those that wait for it. `None` if it is not known.
    pub(in crate::calls) fn change<R>(
        &mut self,
        id: &str,
        change: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        let number = *self.numbers.get(id)?;
        let kept = self.items.get_mut(&number)?;
        let before = kept.placed();
        let due_before = kept.item.deadline();
        self.gave_way = self.gave_way.without(kept.gave_way());
        let changed = change(&mut kept.item);
        kept.held.set(held_bytes(&kept.item));
        self.gave_way = self.gave_way.with(kept.gave_way());
        let after = kept.placed();
        let due = kept.item.deadline();
        kept.item.changes().note();
        if due_before != due {
            self.be_due_at(number, due_before, due);
        }
        if before != after {
            self.place_again(number, before, after);
        }
        self.note_end_of(number);
        Some(changed)
    }

    fn be_due_at(
        &mut self,
        number: u64,
        before: Option<KeptDeadline>,
        after: Option<KeptDeadline>,
    ) {
        if let Some(deadline) = before {
            self.deadlines.remove(number, deadline);
        }
        if let Some(deadline) = after {
            self.deadlines.add(number, deadline);
        }
    }

    /// The first deadline of all items.
    pub(in crate::calls) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first()
    }

    /// The items whose deadline has come, in the order in which they were added. Looks at no other.
    pub(in crate::calls) fn due(&self, now: Instant, wall: Timestamp) -> impl Iterator<Item = &T> {
        let due = self.deadlines.due(now, wall).into_iter();
        due.filter_map(|number| self.numbered(number))
    }

    fn place_again(
        &mut self,
        number: u64,
        before: Option<PlacedMember>,
        after: Option<PlacedMember>,
    ) {
        if let Some(placed) = before {
            self.groups.remove(number, &placed.member, placed.bytes);
        }
        if let Some(placed) = after {
            self.groups.add(number, &placed.member, placed.bytes);
        }
    }

    /// Notes that an item is over that changed elsewhere.
    pub(in crate::calls) fn note_end(&mut self, id: &str) {
        if let Some(number) = self.numbers.get(id) {
            self.note_end_of(*number);
        }
    }

    /// Gives an item that is over its place among those.
    fn note_end_of(&mut self, number: u64) {
        let is_news = |kept: &KeptItem<T>| kept.ended.is_none() && kept.item.is_over();
        if !self.items.get(&number).is_some_and(is_news) {
            return;
        }
        let end = self.next_number();
        if let Some(kept) = self.items.get_mut(&number) {
            let at = kept.item.ended_at();
            kept.ended = Some(KeptEnd { number: end, at });
            self.ended.insert(end, number);
            self.ages.extend(at.map(|at| (at, number)));
        }
    }

    /// The item with this id.
    pub(in crate::calls) fn get(&self, id: &str) -> Option<&T> {
        let number = self.numbers.get(id)?;
        self.items.get(number).map(|kept| &kept.item)
    }

    /// The item with this number.
    pub(in crate::calls) fn numbered(&self, number: u64) -> Option<&T> {
        self.items.get(&number).map(|kept| &kept.item)
    }

    /// The items with this likeness, in the order in which they were added.
    pub(in crate::calls) fn alike(&self, likeness: &str) -> impl DoubleEndedIterator<Item = &T> {
        let numbers = self.alike.get(likeness).into_iter().flatten();
        numbers.filter_map(|number| self.numbered(*number))
    }

    /// Whether there is room for a new item within these bounds, beside all that are not over; or
    /// which one has to give way.
    pub(in crate::calls) fn room_for(&self, new: NewMember<'_>, bounds: GroupBounds) -> GroupRoom {
        self.groups.room_for(new, bounds)
    }

    /// All items, in the order in which they were added.
    pub(in crate::calls) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.items.values().map(|kept| &kept.item)
    }

    fn taken(&self) -> Taken {
        Taken {
            count: self.items.len(),
            bytes: self.held.reserved(),
        }
    }

    fn take(&mut self, number: u64) -> Option<T> {
        let kept = self.items.remove(&number)?;
        self.numbers.remove(kept.item.id());
        self.gave_way = self.gave_way.without(kept.gave_way());
        if let Some(placed) = kept.placed() {
            self.groups.remove(number, &placed.member, placed.bytes);
        }
        if let Some(likeness) = kept.item.likeness()
            && let Some(alike) = self.alike.get_mut(likeness)
        {
            alike.remove(&number);
            if alike.is_empty() {
                self.alike.remove(likeness);
            }
        }
        if let Some(deadline) = kept.item.deadline() {
            self.deadlines.remove(number, deadline);
        }
        if let Some(end) = kept.ended {
            self.ended.remove(&end.number);
            if let Some(at) = end.at {
                self.ages.remove(&(at, number));
            }
        }
        kept.item.release();
        Some(kept.item)
    }

    fn next_number(&mut self) -> u64 {
        self.latest += 1;
        self.latest
    }
}

/// An item as its groups count it.
#[derive(Debug, PartialEq, Eq)]
struct PlacedMember {
    member: GroupMember,
    bytes: usize,
}

impl<T: Keepable> KeptItem<T> {
    /// How its groups count it.
    fn placed(&self) -> Option<PlacedMember> {
        self.item.member().map(|member| PlacedMember {
            member,
            bytes: self.held.bytes(),
        })
    }

    /// What it takes of the room of those that gave way.
    fn gave_way(&self) -> Taken {
        if self.item.gave_way() {
            Taken::by_one(self.held.bytes())
        } else {
            Taken::default()
        }
    }
}

/// The bytes that an item holds in a table.
pub(in crate::calls) fn held_bytes(item: &impl Keepable) -> usize {
    item.weight() + ITEM_FIXED_BYTES
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::calls::kept::KeptChanges;
    use crate::runtime::Clock;

    /// Something with an end.
    struct Errand {
        id: Arc<str>,
        weight: usize,
        ended: Option<i64>,
        due: Option<KeptDeadline>,
        changes: KeptChanges,
        /// How often it was looked at for its end.
        looked_at: Cell<usize>,
    }

    impl Keepable for Errand {
        fn id(&self) -> &Arc<str> {
            &self.id
        }

        fn weight(&self) -> usize {
            self.weight
        }

        fn is_over(&self) -> bool {
            self.ended.is_some()
        }

        fn ended_at(&self) -> Option<Timestamp> {
            self.looked_at.set(self.looked_at.get() + 1);
            self.ended.map(second)
        }

        fn deadline(&self) -> Option<KeptDeadline> {
            self.due.filter(|_| self.ended.is_none())
        }

        fn changes(&self) -> &KeptChanges {
            &self.changes
        }
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn errand(id: &str) -> Errand {
        let changes = KeptChanges::default();
        Errand {
            id: id.into(),
            weight: 0,
            ended: None,
            due: None,
            changes,
            looked_at: Cell::default(),
        }
    }

    fn table(most: usize, bytes: usize) -> KeptTable<Errand> {
        KeptTable::new(KeptLimits {
            most,
            bytes,
            keep: Duration::from_secs(10),
        })
    }

    fn end(table: &mut KeptTable<Errand>, id: &str, at: i64) {
        assert_eq!(table.change(id, |errand| errand.ended = Some(at)), Some(()));
    }

    /// The ids of those that made room; `None` if there is none.
    fn admitted(table: &mut KeptTable<Errand>, errand: Errand) -> Option<Vec<Arc<str>>> {
        match table.admit(errand) {
            Admission::Added(forgotten) => Some(ids(&forgotten)),
            Admission::Full(_) => None,
        }
    }

    fn ids(errands: &[Errand]) -> Vec<Arc<str>> {
        errands
            .iter()
            .map(|errand| Arc::clone(&errand.id))
            .collect()
    }

    fn left(table: &KeptTable<Errand>) -> Vec<&str> {
        table.iter().map(|errand| &*errand.id).collect()
    }

    #[test]
    fn those_that_go_on_keep_their_place_and_no_more_are_taken_up() {
        let mut table = table(2, 1_000_000);
        assert_eq!(admitted(&mut table, errand("1")), Some(Vec::new()));
        assert_eq!(admitted(&mut table, errand("2")), Some(Vec::new()));
        assert_eq!(admitted(&mut table, errand("3")), None);
        end(&mut table, "2", 1);
        assert_eq!(admitted(&mut table, errand("3")), Some(vec!["2".into()]));
        assert_eq!(left(&table), ["1", "3"]);
    }

    #[test]
    fn what_ended_first_goes_first() {
        let mut table = table(3, 1_000_000);
        for id in ["1", "2", "3"] {
            table.add(errand(id));
        }
        // A clock that was set back changes no order.
        end(&mut table, "3", 9);
        end(&mut table, "1", 5);
        assert_eq!(admitted(&mut table, errand("4")), Some(vec!["3".into()]));
        assert_eq!(admitted(&mut table, errand("5")), Some(vec!["1".into()]));
        assert_eq!(left(&table), ["2", "4", "5"]);
    }

    #[test]
    fn the_bytes_of_all_are_bounded() {
        let mut table = table(100, 10 * ITEM_FIXED_BYTES);
        let large = |id: &str| Errand {
            weight: 3 * ITEM_FIXED_BYTES,
            ..errand(id)
        };
        assert_eq!(admitted(&mut table, large("1")), Some(Vec::new()));
        assert_eq!(admitted(&mut table, large("2")), Some(Vec::new()));
        assert_eq!(
            admitted(&mut table, large("3")),
            None,
            "what is not over leaves no room"
        );
        end(&mut table, "1", 1);
        assert_eq!(admitted(&mut table, large("3")), Some(vec!["1".into()]));
        let beyond = Errand {
            weight: 10 * ITEM_FIXED_BYTES,
            ..errand("4")
        };
        end(&mut table, "2", 2);
        assert_eq!(admitted(&mut table, beyond), None);
        assert_eq!(left(&table), ["2", "3"], "what never fits displaces none");
        table.change("3", |errand| errand.weight = 8 * ITEM_FIXED_BYTES);
        assert_eq!(
            ids(&table.make_room(Taken::default())),
            ["2".into()],
            "its result came"
        );
        assert_eq!(table.taken().bytes, 9 * ITEM_FIXED_BYTES);
    }

    #[test]
    fn what_was_over_long_ago_is_forgotten() {
        let mut table = table(9, 1_000_000);
        for id in ["1", "2", "3"] {
            table.add(errand(id));
        }
        end(&mut table, "1", 10);
        end(&mut table, "3", 20);
        assert_eq!(
            ids(&table.prune(second(20))),
            [],
            "it is kept for ten seconds"
        );
        assert_eq!(ids(&table.prune(second(25))), ["1".into()]);
        assert_eq!(left(&table), ["2", "3"]);
        assert!(table.get("1").is_none());
    }

    #[test]
    fn either_clock_makes_an_item_due_until_it_is_over() {
        let mut table = table(9, 1_000_000);
        let start = Clock::system().now();
        let due = |mono, wall| {
            Some(KeptDeadline {
                mono: start + Duration::from_secs(mono),
                wall: second(wall),
            })
        };
        for (id, due) in [
            ("1", due(10, 50)),
            ("2", due(50, 10)),
            ("3", due(30, 30)),
            ("4", None),
        ] {
            table.add(Errand { due, ..errand(id) });
        }
        let due_at = |table: &KeptTable<Errand>, mono, wall| -> Vec<String> {
            let due = table.due(start + Duration::from_secs(mono), second(wall));
            due.map(|errand| errand.id.to_string()).collect()
        };
        assert_eq!(due_at(&table, 9, 9), [""; 0]);
        assert_eq!(due_at(&table, 10, 9), ["1"]);
        assert_eq!(due_at(&table, 9, 10), ["2"]);
        assert_eq!(due_at(&table, 30, 30), ["1", "2", "3"]);
        assert_eq!(table.next_deadline(), Some(start + Duration::from_secs(10)));
        end(&mut table, "1", 1);
        table.remove("2");
        assert_eq!(table.next_deadline(), Some(start + Duration::from_secs(30)));
        table.change("3", |errand| errand.due = due(20, 20));
        assert_eq!(due_at(&table, 20, 0), ["3"]);
        assert_eq!(table.next_deadline(), Some(start + Duration::from_secs(20)));
    }

    /// After each change of one item, so a look at all would take the square of their number.
    #[test]
    fn what_is_not_too_old_is_not_looked_at() {
        let mut table = table(1_000, 10_000_000);
        for id in 0..500 {
            table.add(errand(&id.to_string()));
            end(&mut table, &id.to_string(), 10);
        }
        table.add(Errand {
            ended: Some(5),
            ..errand("old")
        });
        let looks = |table: &KeptTable<Errand>| {
            table
                .iter()
                .map(|errand| errand.looked_at.get())
                .sum::<usize>()
        };
        let before = looks(&table);
        assert_eq!(ids(&table.prune(second(16))), ["old".into()]);
        assert!(
            looks(&table) < before,
            "{} before, {} after",
            before,
            looks(&table)
        );
    }
}
