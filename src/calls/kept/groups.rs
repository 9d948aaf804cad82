//! Which items give way to a new one, where what is not over may take all the room. Pure.
//!
//! Groups have levels: an access has profiles, a profile has conversations, a conversation has
//! tools, and a tool has items. A conversation is named by its caller, so a caller can make as many
//! small ones as it wants. So groups are compared level by level: the conversations of one profile
//! only compete with each other. The sizes are kept up to date with each change of an item, and no
//! choice looks at all items.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Taken;

/// How many levels there are.
const LEVELS: usize = 4;
/// The level below a conversation.
const LEVEL_IN_CONVERSATION: usize = 3;
/// A group never gives way to a smaller one on its level while it has at most this part of the
/// limit: 8 of 1,000 items.
const SMALL_GROUP_DIVISOR: usize = 125;

/// The name of a group on its level.
type GroupKey = Option<Arc<str>>;

/// The groups of an item: access, profile, conversation and tool.
pub(in crate::calls) type GroupPath = [GroupKey; LEVELS];

/// An item that takes room until it is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::calls) struct GroupMember {
    pub(in crate::calls) path: Arc<GroupPath>,
    pub(in crate::calls) standing: MemberStanding,
}

/// Whether an item may give way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::calls) enum MemberStanding {
    /// It may.
    GivesWay,
    /// Not now. It makes its groups larger only for new items of these groups.
    Busy,
    /// Never: it takes room, and is not compared any more.
    Stays,
}

/// An item that is to be added.
#[derive(Debug, Clone, Copy)]
pub(in crate::calls) struct NewMember<'a> {
    pub(in crate::calls) path: &'a GroupPath,
    pub(in crate::calls) taken: Taken,
}

/// A limit and what it is for.
#[derive(Debug, Clone, Copy)]
pub(in crate::calls) struct GroupBounds {
    most: Taken,
    /// The level that it is for: so many names of its path are those of the new item.
    level: usize,
}

/// Whether there is room for a new item.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::calls) enum GroupRoom {
    /// There is.
    Free,
    /// This one has to give way. There may still be no room then.
    After(GivingWay),
    /// No item may give way.
    Full,
}

/// An item that has to give way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::calls) struct GivingWay {
    /// Its number in the table.
    pub(in crate::calls) number: u64,
    pub(in crate::calls) cause: GivingWayCause,
}

/// Why this item gives way: it is the oldest of the largest tool of the largest conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::calls) enum GivingWayCause {
    /// Its access takes more than that of the new item.
    LargestAccess,
    /// Its profile takes more than that of the new item, with the same access.
    LargestProfile,
    /// Its conversation takes more than that of the new item, in the same profile.
    LargestConversation,
    /// Its tool takes more than that of the new item, in the same conversation.
    LargestTool,
    /// It is of the same tool and conversation as the new item.
    OwnGroup,
}

/// The groups of all items of a table.
#[derive(Debug, Default)]
pub(in crate::calls) struct KeptGroups(Group);

/// One group, or all of them.
#[derive(Debug, Default)]
struct Group {
    /// What all its items take.
    taken: Taken,
    /// What those take that may give way.
    waiting: Taken,
    /// What those take that may not give way now.
    busy: Taken,
    /// The numbers of those that may give way, which grow with time.
    numbers: BTreeSet<u64>,
    /// The groups on the next level.
    parts: BTreeMap<GroupKey, Group>,
    /// Those of them with items that may give way, the largest last.
    by_count: BTreeSet<GroupRank>,
    by_bytes: BTreeSet<GroupRank>,
}

/// The place of a group among those of its level. Of groups of the same size, the one with the
/// oldest item counts as the largest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct GroupRank {
    size: usize,
    oldest: Reverse<u64>,
    key: GroupKey,
}

/// An item that comes or goes.
#[derive(Debug)]
struct MemberChange {
    number: u64,
    taken: Taken,
    standing: MemberStanding,
    is_added: bool,
}

impl GroupBounds {
    /// The limit of all items together.
    pub(in crate::calls) fn of_all(most: Taken) -> Self {
        Self { most, level: 0 }
    }

    /// The limit of the conversation of the new item.
    pub(in crate::calls) fn of_conversation(most: Taken) -> Self {
        Self {
            most,
            level: LEVEL_IN_CONVERSATION,
        }
    }
}

impl GivingWayCause {
    /// For an item of the largest group on this level.
    fn on_level(level: usize) -> Self {
        match level {
            0 => Self::LargestAccess,
            1 => Self::LargestProfile,
            2 => Self::LargestConversation,
            _ => Self::LargestTool,
        }
    }
}

impl KeptGroups {
    /// An item takes room from now on.
    pub(super) fn add(&mut self, number: u64, member: &GroupMember, bytes: usize) {
        self.change(number, member, bytes, true);
    }

    /// An item that was added with this standing and size takes no room any more.
    pub(super) fn remove(&mut self, number: u64, member: &GroupMember, bytes: usize) {
        self.change(number, member, bytes, false);
    }

    fn change(&mut self, number: u64, member: &GroupMember, bytes: usize, is_added: bool) {
        let change = MemberChange {
            number,
            taken: Taken::by_one(bytes),
            standing: member.standing,
            is_added,
        };
        self.0.change(&member.path[..], &change);
    }

    /// Whether there is room for a new item within these bounds, or which item has to give way.
    pub(super) fn room_for(&self, new: NewMember<'_>, bounds: GroupBounds) -> GroupRoom {
        let most = bounds.most;
        let own_names = new.path.iter().take(bounds.level);
        let group = own_names
            .into_iter()
            .try_fold(&self.0, |group, key| group.parts.get(key));
        let taken = group
            .map_or(Taken::default(), |group| group.taken)
            .with(new.taken);
        if taken.is_within(most) {
            return GroupRoom::Free;
        }
        // What may not give way takes too much already.
        let Some(group) = group.filter(|group| taken.without(group.waiting).is_within(most)) else {
            return GroupRoom::Full;
        };
        group
            .giving_way(new, bounds, taken.count > most.count)
            .map_or(GroupRoom::Full, GroupRoom::After)
    }
}

impl Group {
    /// Counts an item, here and in its groups on the next levels.
    fn change(&mut self, path: &[GroupKey], change: &MemberChange) {
        self.count(change);
        let Some((key, path)) = path.split_first() else {
            return;
        };
        let mut part = self.parts.remove(key).unwrap_or_default();
        self.unrank(key, &part);
        part.change(path, change);
        if part.taken.count > 0 {
            self.rank(key, &part);
            self.parts.insert(key.clone(), part);
        }
    }

    fn count(&mut self, change: &MemberChange) {
        let counted = |taken: Taken| {
            if change.is_added {
                taken.with(change.taken)
            } else {
                taken.without(change.taken)
            }
        };
        self.taken = counted(self.taken);
        match change.standing {
            MemberStanding::GivesWay if change.is_added => {
                self.waiting = counted(self.waiting);
                self.numbers.insert(change.number);
            }
            MemberStanding::GivesWay => {
                self.waiting = counted(self.waiting);
                self.numbers.remove(&change.number);
            }
            MemberStanding::Busy => self.busy = counted(self.busy),
            MemberStanding::Stays => {}
        }
    }

    fn rank(&mut self, key: &GroupKey, part: &Self) {
        self.by_count.extend(part.rank_as(key, true));
        self.by_bytes.extend(part.rank_as(key, false));
    }

    fn unrank(&mut self, key: &GroupKey, part: &Self) {
        if let Some(rank) = part.rank_as(key, true) {
            self.by_count.remove(&rank);
        }
        if let Some(rank) = part.rank_as(key, false) {
            self.by_bytes.remove(&rank);
        }
    }

    /// Its place under this name; `None` if none of its items may give way.
    fn rank_as(&self, key: &GroupKey, by_count: bool) -> Option<GroupRank> {
        let oldest = self.numbers.first()?;
        Some(GroupRank {
            size: self.waiting.size(by_count),
            oldest: Reverse(*oldest),
            key: key.clone(),
        })
    }

    fn ranks(&self, by_count: bool) -> &BTreeSet<GroupRank> {
        if by_count {
            &self.by_count
        } else {
            &self.by_bytes
        }
    }

    /// The item that gives way to a new one of this group.
    ///
    /// On each level, the largest of the other groups gives way if it is larger than the own one
    /// with the new item, and not small. Else the own one does, by the same rule on the next level.
    /// `None` if that has no item that may give way.
    fn giving_way(
        &self,
        new: NewMember<'_>,
        bounds: GroupBounds,
        by_count: bool,
    ) -> Option<GivingWay> {
        let small = bounds.most.size(by_count) / SMALL_GROUP_DIVISOR;
        let mut group = self;
        for (level, key) in new.path.iter().enumerate().skip(bounds.level) {
            let own = group.parts.get(key);
            let own_before = own.map_or(Taken::default(), |own| own.waiting.with(own.busy));
            let own_size = own_before.with(new.taken).size(by_count);
            // Only the own one can come before it.
            let other = group
                .ranks(by_count)
                .iter()
                .rev()
                .find(|rank| rank.key != *key);
            if let Some(other) = other.filter(|other| other.size > own_size.max(small)) {
                let number = group.parts.get(&other.key)?.oldest_of_largest(by_count)?;
                return Some(GivingWay {
                    number,
                    cause: GivingWayCause::on_level(level),
                });
            }
            group = own?;
        }
        let number = *group.numbers.first()?;
        Some(GivingWay {
            number,
            cause: GivingWayCause::OwnGroup,
        })
    }

    /// The oldest item of the largest group on the last level of the largest one on each level.
    fn oldest_of_largest(&self, by_count: bool) -> Option<u64> {
        let mut group = self;
        while let Some(largest) = group.ranks(by_count).last() {
            group = group.parts.get(&largest.key)?;
        }
        group.numbers.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 100;

    /// Groups whose items have numbers in their order.
    #[derive(Default)]
    struct Filled {
        groups: KeptGroups,
        members: BTreeMap<u64, GroupMember>,
    }

    fn path(profile: &str, conversation: &str, tool: &str) -> GroupPath {
        ["without-token", profile, conversation, tool].map(|name| Some(name.into()))
    }

    impl Filled {
        fn add(&mut self, path: GroupPath, standing: MemberStanding) -> u64 {
            let number = self
                .members
                .last_key_value()
                .map_or(1, |(latest, _)| latest + 1);
            let member = GroupMember {
                path: Arc::new(path),
                standing,
            };
            self.groups.add(number, &member, BYTES);
            self.members.insert(number, member);
            number
        }

        fn waits(&mut self, profile: &str, conversation: &str, tool: &str) -> u64 {
            self.add(path(profile, conversation, tool), MemberStanding::GivesWay)
        }

        fn remove(&mut self, number: u64) {
            let member = self.members.remove(&number).unwrap();
            self.groups.remove(number, &member, BYTES);
        }

        /// What comes of a new item where all places are taken.
        fn when_full(&self, profile: &str, conversation: &str, tool: &str) -> GroupRoom {
            let path = path(profile, conversation, tool);
            let new = NewMember {
                path: &path,
                taken: Taken::by_one(BYTES),
            };
            let most = Taken {
                count: self.members.len(),
                bytes: usize::MAX,
            };
            self.groups.room_for(new, GroupBounds::of_all(most))
        }
    }

    fn after(number: u64, cause: GivingWayCause) -> GroupRoom {
        GroupRoom::After(GivingWay { number, cause })
    }

    #[test]
    fn many_small_groups_take_none_of_another_profile() {
        let mut filled = Filled::default();
        let own: Vec<u64> = (0..5)
            .map(|_| filled.waits("victim", "7", "wipe"))
            .collect();
        let first = filled.waits("other", "invented-0", "wipe");
        for number in 1..995 {
            filled.waits("other", &format!("invented-{number}"), "wipe");
        }
        assert_eq!(
            filled.when_full("other", "invented-1000", "wipe"),
            GroupRoom::Full
        );
        assert_eq!(
            filled.when_full("other", "invented-0", "wipe"),
            after(first, GivingWayCause::OwnGroup)
        );
        for conversation in ["7", "8"] {
            let room = filled.when_full("victim", conversation, "wipe");
            assert_eq!(
                room,
                after(first, GivingWayCause::LargestProfile),
                "{conversation}"
            );
        }
        filled.remove(own[0]);
        assert_eq!(
            filled.when_full("third", "1", "wipe"),
            after(first, GivingWayCause::LargestProfile)
        );
    }

    #[test]
    fn a_small_conversation_gives_way_to_no_smaller_one_and_a_large_one_does() {
        let mut filled = Filled::default();
        let own: Vec<u64> = (0..9).map(|_| filled.waits("p", "7", "wipe")).collect();
        for number in 0..991 {
            filled.waits("p", &format!("invented-{number}"), "wipe");
        }
        let invented = |filled: &Filled| filled.when_full("p", "invented-new", "wipe");
        assert_eq!(
            invented(&filled),
            after(own[0], GivingWayCause::LargestConversation)
        );
        filled.remove(own[0]);
        filled.waits("p", "invented-1000", "wipe");
        assert_eq!(
            invented(&filled),
            GroupRoom::Full,
            "eight of a thousand stay"
        );
        assert_eq!(
            filled.when_full("p", "7", "wipe"),
            after(own[1], GivingWayCause::OwnGroup)
        );
    }

    #[test]
    fn the_largest_tool_of_the_largest_conversation_gives_way_its_oldest_first() {
        let mut filled = Filled::default();
        let first_of_look = filled.waits("p", "7", "look");
        let first_of_wipe = filled.waits("p", "7", "wipe");
        filled.waits("p", "7", "wipe");
        filled.waits("p", "8", "look");
        filled.waits("p", "8", "look");
        assert_eq!(
            filled.when_full("q", "1", "look"),
            after(first_of_wipe, GivingWayCause::LargestProfile)
        );
        assert_eq!(
            filled.when_full("p", "9", "look"),
            after(first_of_wipe, GivingWayCause::LargestConversation)
        );
        assert_eq!(
            filled.when_full("p", "7", "new"),
            after(first_of_wipe, GivingWayCause::LargestTool)
        );
        filled.remove(first_of_wipe);
        assert_eq!(
            filled.when_full("q", "1", "look"),
            after(first_of_look, GivingWayCause::LargestProfile)
        );
    }

    #[test]
    fn what_is_busy_or_stays_is_never_chosen() {
        let mut filled = Filled::default();
        filled.add(path("p", "7", "wipe"), MemberStanding::Busy);
        filled.add(path("p", "7", "wipe"), MemberStanding::Stays);
        assert_eq!(filled.when_full("q", "1", "wipe"), GroupRoom::Full);
        let waiting = filled.waits("q", "1", "wipe");
        assert_eq!(
            filled.when_full("p", "7", "wipe"),
            GroupRoom::Full,
            "the own group has more, with what is busy"
        );
        filled.waits("q", "1", "wipe");
        filled.waits("q", "1", "wipe");
        assert_eq!(
            filled.when_full("p", "7", "wipe"),
            after(waiting, GivingWayCause::LargestProfile)
        );
    }

    #[test]
    fn groups_leave_no_trace() {
        let mut filled = Filled::default();
        let standings = [
            MemberStanding::GivesWay,
            MemberStanding::Busy,
            MemberStanding::Stays,
        ];
        let numbers: Vec<u64> = standings
            .into_iter()
            .map(|standing| filled.add(path("p", "7", "x"), standing))
            .collect();
        for number in numbers {
            filled.remove(number);
        }
        let all = &filled.groups.0;
        assert_eq!([all.taken, all.waiting, all.busy], [Taken::default(); 3]);
        assert!(
            all.parts.is_empty()
                && all.by_count.is_empty()
                && all.by_bytes.is_empty()
                && all.numbers.is_empty()
        );
    }
}
