//! The table of calls that need approval, within its limits: which may be decided, which are over,
//! which give way, which are forgotten. Pure: time is an argument.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

use super::bounds::{ApprovalLimits, DecisionRefusal};
use crate::model::{ApprovalDecision, ApprovalRequest, ApprovalState, ToolId};

/// Roughly how many bytes an entry needs besides its texts.
const FIXED: usize = 1_000;
/// Those that gave way are kept besides the others, so that their callers learn why: so many of the
/// limits' parts.
const DISPLACED_DIVISOR: usize = 8;

/// All approvals that are kept, in the order of their requests.
#[derive(Debug, Default)]
pub(super) struct ApprovalTable {
    entries: VecDeque<ApprovalEntry>,
}

#[derive(Debug)]
struct ApprovalEntry {
    request: Arc<ApprovalRequest>,
    /// When it expires by the monotonic clock, which cannot be set back.
    deadline: Instant,
    /// The change of it that is being stored, so that no other one is possible meanwhile.
    change: Option<StoredChange>,
    /// Its outcome was handed out to a caller that sent the same call again, or may have been
    /// before a restart.
    collected: bool,
}

/// A change that is being stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoredChange {
    /// It was not stored yet, so it is not shown.
    Added,
    /// It is decided.
    Decided,
    /// It gives way to a newer one.
    Displaced,
}

/// The result of adding a call.
#[derive(Debug, PartialEq)]
pub(super) enum Admitted {
    /// It was added and is held.
    New(RoomMade),
    /// Exactly the same call waits already.
    Waits(Arc<ApprovalRequest>),
    /// There is no room.
    Full,
}

/// What made room for a new one.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RoomMade {
    /// The ids of those that are forgotten.
    pub(super) forgotten: Vec<Arc<str>>,
    /// Those that gave way, as they end. They are held until they are
    /// [`put`](ApprovalTable::put) or [`release`](ApprovalTable::release)d.
    pub(super) displaced: Vec<Arc<ApprovalRequest>>,
}

/// How much of the limits some entries take.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    count: usize,
    bytes: usize,
}

/// Calls that are of one tool, profile and conversation, and wait.
#[derive(Debug, Default)]
struct WaitingGroup {
    taken: Taken,
    /// The indexes of those that may give way, the oldest first.
    members: VecDeque<usize>,
}

/// Tool, profile and conversation.
type GroupKey<'a> = (&'a ToolId, Option<&'a str>, Option<&'a str>);

impl Taken {
    fn add(self, weight: usize) -> Self {
        Self { count: self.count + 1, bytes: self.bytes + weight }
    }

    fn remove(self, weight: usize) -> Self {
        Self { count: self.count.saturating_sub(1), bytes: self.bytes.saturating_sub(weight) }
    }

    fn is_within(self, most: Self) -> bool {
        self.count <= most.count && self.bytes <= most.bytes
    }

    /// Its size by the limit that is exceeded.
    fn size(self, by_count: bool) -> usize {
        if by_count { self.count } else { self.bytes }
    }
}

impl ApprovalTable {
    /// Adds one that was stored.
    pub(super) fn restore(&mut self, request: Arc<ApprovalRequest>, deadline: Instant) {
        self.entries.push_back(ApprovalEntry { request, deadline, change: None, collected: true });
    }

    /// The latest decision about exactly this call, for a caller that sends the call again: one
    /// that is under way, or one whose outcome was not handed out yet. An outcome is handed out
    /// once, and within the time in which the call could be decided.
    pub(super) fn collect(&mut self, digest: &str, wall: Timestamp) -> Option<Arc<ApprovalRequest>> {
        let entry = self.entries.iter_mut().rev().find(|entry| {
            let request = &entry.request;
            !entry.is_held() && *request.digest == *digest && request.state != ApprovalState::Waiting
        })?;
        let open = !entry.collected && wall < entry.request.expires_at;
        entry.collected |= entry.request.state.is_over();
        open.then(|| Arc::clone(&entry.request))
    }

    /// The outcome of this one was handed out.
    pub(super) fn set_collected(&mut self, id: &str) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| *entry.request.id == *id) {
            entry.collected = true;
        }
    }

    /// Makes room for a new one. Those that are over may be forgotten. If too many wait, the oldest
    /// of the largest group gives way, as long as that group stays larger than the one of the new
    /// one; else the oldest of its own group does.
    pub(super) fn admit(
        &mut self,
        request: &Arc<ApprovalRequest>,
        deadline: Instant,
        limits: &ApprovalLimits,
    ) -> Admitted {
        let same = |entry: &&ApprovalEntry| entry.waits() && entry.request.digest == request.digest;
        if let Some(entry) = self.entries.iter().find(same) {
            return Admitted::Waits(Arc::clone(&entry.request));
        }
        let weight = weight(request);
        // One caller leaves some room to others, whatever it asks for.
        let own = |entry: &ApprovalEntry| entry.request.caller == request.caller;
        let most_of_caller = Taken { count: share(limits.most), bytes: share(limits.bytes) };
        let Some(of_caller) = self.giving_way(request, most_of_caller, own, &[]) else { return Admitted::Full };
        let most = Taken { count: limits.most, bytes: limits.bytes };
        let Some(of_all) = self.giving_way(request, most, |_| true, &of_caller) else { return Admitted::Full };
        let displaced = of_caller.into_iter().chain(of_all).filter_map(|index| self.displace(index, request.asked_at));
        let displaced: Vec<_> = displaced.collect();
        let forgotten = self.make_room(limits.most.saturating_sub(1), limits.bytes.saturating_sub(weight));
        let request = Arc::clone(request);
        let change = Some(StoredChange::Added);
        self.entries.push_back(ApprovalEntry { request, deadline, change, collected: false });
        Admitted::New(RoomMade { forgotten, displaced })
    }

    /// The indexes of those that have to give way, besides `others`, so that `new` fits into these
    /// limits with all entries that `counts` selects; `None` if it cannot.
    fn giving_way(
        &self,
        new: &ApprovalRequest,
        most: Taken,
        counts: impl Fn(&ApprovalEntry) -> bool,
        others: &[usize],
    ) -> Option<Vec<usize>> {
        let lasting = self.entries.iter().enumerate().filter(|(index, entry)| {
            let lasts = entry.is_held() || !entry.request.state.is_over();
            lasts && !entry.is_displaced() && counts(entry) && !others.contains(index)
        });
        let own_key = group_key(new);
        let mut taken = Taken::default().add(weight(new));
        let mut groups: HashMap<GroupKey<'_>, WaitingGroup> = HashMap::new();
        groups.entry(own_key).or_default().taken = taken;
        for (index, entry) in lasting {
            let weight = weight(&entry.request);
            taken = taken.add(weight);
            // Those of others that cannot give way do not make their group larger.
            let key = group_key(&entry.request);
            if entry.waits() || (entry.request.state == ApprovalState::Waiting && key == own_key) {
                let group = groups.entry(key).or_default();
                group.taken = group.taken.add(weight);
                group.members.extend(entry.waits().then_some(index));
            }
        }
        let mut giving_way = Vec::new();
        while !taken.is_within(most) {
            let key = largest(&groups, own_key, taken.count > most.count)?;
            let group = groups.get_mut(&key)?;
            let index = group.members.pop_front()?;
            let weight = weight(&self.entries.get(index)?.request);
            group.taken = group.taken.remove(weight);
            taken = taken.remove(weight);
            giving_way.push(index);
        }
        Some(giving_way)
    }

    /// Holds one that gives way, and returns it as it ends.
    fn displace(&mut self, index: usize, at: Timestamp) -> Option<Arc<ApprovalRequest>> {
        let entry = self.entries.get_mut(index)?;
        entry.change = Some(StoredChange::Displaced);
        let reason = format!(
            "as many calls wait for approval as are kept (`calls.approvals_max`, `calls.kept_bytes`), and this was the oldest of too many of `{}` in the same conversation and profile",
            entry.request.tool
        );
        let decided = Some(ApprovalDecision { by: "callsheet".into(), at, reason: Some(reason.into()) });
        let request = ApprovalRequest::clone(&entry.request);
        Some(Arc::new(ApprovalRequest { state: ApprovalState::Expired, decided, ended_at: Some(at), ..request }))
    }

    /// Forgets those that are over, the oldest first, until at most `most` entries with `bytes`
    /// bytes are left. Those that gave way have a part of that of their own, and at least the
    /// latest of them is kept. Returns the ids.
    pub(super) fn make_room(&mut self, most: usize, bytes: usize) -> Vec<Arc<str>> {
        let mut forgotten = self.forget_oldest(false, Taken { count: most, bytes });
        let of_displaced = Taken { count: most / DISPLACED_DIVISOR, bytes: bytes / DISPLACED_DIVISOR };
        forgotten.extend(self.forget_oldest(true, of_displaced));
        forgotten
    }

    /// The same for those that gave way, or for all others.
    fn forget_oldest(&mut self, displaced: bool, most: Taken) -> Vec<Arc<str>> {
        let selected = self.entries.iter().filter(|entry| entry.is_displaced() == displaced);
        let mut taken = selected.fold(Taken::default(), |taken, entry| taken.add(weight(&entry.request)));
        let mut forgotten = Vec::new();
        let mut at = 0;
        while !taken.is_within(most) && at < self.entries.len() {
            let entry = &self.entries[at];
            let is_over = !entry.is_held() && entry.request.state.is_over();
            let is_last = displaced && taken.count == 1;
            if !is_over || is_last || entry.is_displaced() != displaced {
                at += 1;
                continue;
            }
            if let Some(entry) = self.entries.remove(at) {
                taken = taken.remove(weight(&entry.request));
                forgotten.push(Arc::clone(&entry.request.id));
            }
        }
        forgotten
    }

    /// Forgets those that were over before `then`.
    pub(super) fn forget_before(&mut self, then: Timestamp) -> Vec<Arc<str>> {
        let old = |entry: &ApprovalEntry| !entry.is_held() && entry.request.ended_at.is_some_and(|ended| ended < then);
        let forgotten: Vec<_> =
            self.entries.iter().filter(|entry| old(entry)).map(|entry| Arc::clone(&entry.request.id)).collect();
        self.entries.retain(|entry| !old(entry));
        forgotten
    }

    /// Holds one that waits, so that a decision about it can be made durable. The holder must
    /// [`put`](Self::put) or [`release`](Self::release) it.
    pub(super) fn hold(
        &mut self,
        id: &str,
        now: Instant,
        wall: Timestamp,
    ) -> Result<Arc<ApprovalRequest>, DecisionRefusal> {
        let entry = self.entries.iter_mut().find(|entry| *entry.request.id == *id).ok_or(DecisionRefusal::Unknown)?;
        if entry.is_new() {
            return Err(DecisionRefusal::Unknown);
        }
        if entry.request.state != ApprovalState::Waiting {
            return Err(DecisionRefusal::Decided(Arc::clone(&entry.request)));
        }
        if entry.is_held() {
            return Err(DecisionRefusal::Busy);
        }
        if entry.is_late(now, wall) {
            return Err(DecisionRefusal::Late);
        }
        entry.change = Some(StoredChange::Decided);
        Ok(Arc::clone(&entry.request))
    }

    /// Releases one without a change.
    pub(super) fn release(&mut self, id: &str) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| *entry.request.id == *id) {
            entry.change = None;
        }
    }

    /// Replaces one and releases it.
    pub(super) fn put(&mut self, request: &Arc<ApprovalRequest>) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.request.id == request.id) {
            entry.request = Arc::clone(request);
            entry.change = None;
        }
    }

    /// Removes one that could not be stored.
    pub(super) fn remove(&mut self, id: &str) {
        self.entries.retain(|entry| *entry.request.id != *id);
    }

    /// Expires those that were not decided in time, and returns them.
    pub(super) fn expire(&mut self, now: Instant, wall: Timestamp) -> Vec<Arc<ApprovalRequest>> {
        let mut expired = Vec::new();
        for entry in &mut self.entries {
            if entry.waits() && entry.is_late(now, wall) {
                let over = ApprovalRequest {
                    state: ApprovalState::Expired,
                    ended_at: Some(wall),
                    ..ApprovalRequest::clone(&entry.request)
                };
                entry.request = Arc::new(over);
                expired.push(Arc::clone(&entry.request));
            }
        }
        expired
    }

    /// When the next one expires.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.entries.iter().filter(|entry| entry.waits()).map(|entry| entry.deadline).min()
    }

    /// The approval with this id, once it is durable.
    pub(super) fn get(&self, id: &str) -> Option<Arc<ApprovalRequest>> {
        self.shown().find(|request| *request.id == *id).cloned()
    }

    /// All that are durable, in the order of their requests.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Arc<ApprovalRequest>> {
        self.entries.iter().filter(|entry| !entry.is_new()).map(|entry| &entry.request)
    }
}

impl ApprovalEntry {
    fn waits(&self) -> bool {
        !self.is_held() && self.request.state == ApprovalState::Waiting
    }

    fn is_held(&self) -> bool {
        self.change.is_some()
    }

    fn is_new(&self) -> bool {
        self.change == Some(StoredChange::Added)
    }

    /// Whether it gave way to a newer one, or does so now.
    fn is_displaced(&self) -> bool {
        self.change == Some(StoredChange::Displaced) || self.request.gave_way().is_some()
    }

    fn is_late(&self, now: Instant, wall: Timestamp) -> bool {
        now >= self.deadline || wall >= self.request.expires_at
    }
}

/// The part of a limit that one caller may use: three quarters.
fn share(limit: usize) -> usize {
    limit - limit / 4
}

fn weight(request: &ApprovalRequest) -> usize {
    request.weight() + FIXED
}

fn group_key(request: &ApprovalRequest) -> GroupKey<'_> {
    (&request.tool, request.caller.profile.as_deref(), request.caller.chat.as_deref())
}

/// The group whose oldest member gives way: the largest one, if it is larger than the own one with
/// the new call, else the own one. `None` if that has no member.
fn largest<'a>(
    groups: &HashMap<GroupKey<'a>, WaitingGroup>,
    own_key: GroupKey<'a>,
    by_count: bool,
) -> Option<GroupKey<'a>> {
    let own = groups.get(&own_key)?;
    let others = groups.iter().filter(|(key, group)| **key != own_key && !group.members.is_empty());
    let size = |group: &WaitingGroup| group.taken.size(by_count);
    // Of groups of the same size, the one with the oldest member.
    let other = others.max_by_key(|(_, group)| (size(group), std::cmp::Reverse(group.members.front().copied())));
    match other {
        Some((key, other)) if size(other) > size(own) => Some(*key),
        _ => (!own.members.is_empty()).then_some(own_key),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::calls::approval::binding;
    use crate::calls::approval::tests::request;
    use crate::model::JsonText;
    use crate::runtime::Clock;

    const LIMITS: ApprovalLimits =
        ApprovalLimits { expiry: Duration::from_secs(60), most: 3, bytes: 10_000, keep: Duration::from_secs(60) };

    fn request_with_id(id: &str) -> Arc<ApprovalRequest> {
        let mut request = request(id);
        request.arguments = JsonText::parse(&format!("{{\"id\":\"{id}\"}}")).unwrap();
        request.digest = binding::call(&request);
        Arc::new(request)
    }

    fn new(forgotten: &[&str]) -> Admitted {
        let forgotten = forgotten.iter().map(|id| Arc::from(*id)).collect();
        Admitted::New(RoomMade { forgotten, displaced: Vec::new() })
    }

    fn bytes(book: &ApprovalTable) -> usize {
        book.entries.iter().map(|entry| weight(&entry.request)).sum()
    }

    fn soon() -> Instant {
        Clock::system().now() + Duration::from_secs(60)
    }

    fn with(book: &mut ApprovalTable, id: &str) -> Arc<ApprovalRequest> {
        let stored = request_with_id(id);
        assert_eq!(book.admit(&stored, soon(), &LIMITS), new(&[]));
        book.put(&stored);
        stored
    }

    fn over(request: &ApprovalRequest, at: i64) -> Arc<ApprovalRequest> {
        let ended_at = Some(Timestamp::from_second(at).unwrap());
        Arc::new(ApprovalRequest { state: ApprovalState::Answered, ended_at, ..request.clone() })
    }

    #[test]
    fn only_one_decision_is_made_at_a_time_and_only_once() {
        let (mut book, now, wall) =
            (ApprovalTable::default(), Clock::system().now(), Timestamp::from_second(0).unwrap());
        let first = with(&mut book, "1");
        assert_eq!(book.hold("2", now, wall), Err(DecisionRefusal::Unknown));
        assert_eq!(book.hold("1", now, wall), Ok(Arc::clone(&first)));
        assert_eq!(book.hold("1", now, wall), Err(DecisionRefusal::Busy));
        book.release("1");
        book.hold("1", now, wall).unwrap();
        let started = Arc::new(ApprovalRequest { state: ApprovalState::Started, ..(*first).clone() });
        book.put(&started);
        assert_eq!(book.hold("1", now, wall), Err(DecisionRefusal::Decided(started)));
    }

    #[test]
    fn what_is_not_stored_yet_is_not_shown_and_cannot_be_decided() {
        let (mut book, now, wall) =
            (ApprovalTable::default(), Clock::system().now(), Timestamp::from_second(0).unwrap());
        let first = request_with_id("1");
        book.admit(&first, soon(), &LIMITS);
        assert_eq!(book.get("1"), None);
        assert_eq!(book.shown().count(), 0);
        assert_eq!(book.hold("1", now, wall), Err(DecisionRefusal::Unknown));
        book.remove("1");
        assert_eq!(book.entries.len(), 0, "there is nothing in it");
    }

    #[test]
    fn either_clock_ends_the_wait() {
        let (now, wall) = (Clock::system().now(), Timestamp::from_second(0).unwrap());
        let mut book = ApprovalTable::default();
        let first = with(&mut book, "1");
        let late = now + Duration::from_secs(120);
        assert_eq!(book.hold("1", late, wall), Err(DecisionRefusal::Late));
        assert_eq!(book.hold("1", now, first.expires_at), Err(DecisionRefusal::Late));
        assert_eq!(book.expire(now, wall).len(), 0, "there is nothing in it");
        let expired = book.expire(late, wall);
        assert_eq!(expired.len(), 1);
        assert_eq!(expired[0].state, ApprovalState::Expired);
        assert!(matches!(book.hold("1", now, wall), Err(DecisionRefusal::Decided(_))));
        assert_eq!(book.next_deadline(), None);
    }

    #[test]
    fn one_that_is_being_decided_does_not_expire() {
        let (now, wall) = (Clock::system().now(), Timestamp::from_second(0).unwrap());
        let mut book = ApprovalTable::default();
        with(&mut book, "1");
        book.hold("1", now, wall).unwrap();
        assert_eq!(book.expire(now + Duration::from_secs(120), wall).len(), 0, "there is nothing in it");
    }

    #[test]
    fn the_same_call_waits_once() {
        let mut book = ApprovalTable::default();
        let first = with(&mut book, "1");
        let again = Arc::new(ApprovalRequest { id: "2".into(), ..(*first).clone() });
        assert_eq!(book.admit(&again, soon(), &LIMITS), Admitted::Waits(Arc::clone(&first)));
        book.put(&over(&first, 1));
        assert_eq!(book.admit(&again, soon(), &LIMITS), new(&[]), "an answer is for one call");
    }

    #[test]
    fn an_outcome_is_handed_out_once_and_within_the_time_of_the_approval() {
        let (mut book, wall) = (ApprovalTable::default(), Timestamp::from_second(0).unwrap());
        let first = with(&mut book, "1");
        assert_eq!(book.collect(&first.digest, wall), None, "it waits");
        let started = Arc::new(ApprovalRequest { state: ApprovalState::Started, ..(*first).clone() });
        book.put(&started);
        assert_eq!(book.collect(&first.digest, wall), Some(Arc::clone(&started)));
        assert_eq!(book.collect(&first.digest, wall), Some(started));
        let done = over(&first, 1);
        book.put(&done);
        assert_eq!(book.collect("another", wall), None);
        assert_eq!(book.collect(&first.digest, first.expires_at), None, "too late");

        let second = with(&mut book, "2");
        book.put(&over(&second, 1));
        assert_eq!(book.collect(&second.digest, wall), Some(over(&second, 1)));
        assert_eq!(book.collect(&second.digest, wall), None);
        let mut restored = ApprovalTable::default();
        restored.restore(done, soon());
        assert_eq!(restored.collect(&first.digest, wall), None, "it may have been handed out before");
    }

    fn request_of(id: &str, chat: &str) -> Arc<ApprovalRequest> {
        let mut request = ApprovalRequest::clone(&request_with_id(id));
        request.caller.chat = Some(chat.into());
        request.digest = binding::call(&request);
        Arc::new(request)
    }

    /// Adds a call and stores it. The ids of those that gave way; `None` if there is no room.
    fn added(book: &mut ApprovalTable, id: &str, chat: &str, limits: &ApprovalLimits) -> Option<Vec<String>> {
        let request = request_of(id, chat);
        let Admitted::New(RoomMade { displaced, .. }) = book.admit(&request, soon(), limits) else { return None };
        for ended in &displaced {
            book.put(ended);
        }
        book.put(&request);
        Some(displaced.iter().map(|ended| ended.id.to_string()).collect())
    }

    #[test]
    fn what_is_over_makes_room_before_what_waits_does() {
        let mut book = ApprovalTable::default();
        for id in ["1", "2", "3"] {
            assert_eq!(added(&mut book, id, id, &LIMITS), Some(Vec::new()));
        }
        assert_eq!(added(&mut book, "4", "4", &LIMITS), None, "no caller has more than another one");
        book.put(&over(&request_of("2", "2"), 1));
        assert_eq!(book.admit(&request_of("4", "4"), soon(), &LIMITS), new(&["2"]));
        let mut large = request("5");
        large.arguments = JsonText::parse(&format!("\"{}\"", "x".repeat(20_000))).unwrap();
        assert_eq!(ApprovalTable::default().admit(&Arc::new(large), soon(), &LIMITS), Admitted::Full);
    }

    #[test]
    fn a_caller_that_floods_the_table_displaces_itself() {
        let limits = ApprovalLimits { most: 8, bytes: 1_000_000, ..LIMITS };
        let mut book = ApprovalTable::default();
        let mut add = |id: &str, chat: &str| added(&mut book, id, chat, &limits);
        for id in ["1", "2", "3", "4", "5", "6"] {
            assert_eq!(add(id, "greedy"), Some(Vec::new()), "{id}");
        }
        assert_eq!(add("7", "greedy"), Some(vec!["1".into()]), "three quarters are taken by one caller");
        assert_eq!(add("8", "other"), Some(Vec::new()));
        assert_eq!(add("9", "third"), Some(Vec::new()));
        assert_eq!(add("10", "fourth"), Some(vec!["2".into()]), "the largest group gives way");
        assert_eq!(add("11", "greedy"), Some(vec!["3".into()]), "and not a smaller one");
        assert_eq!(add("12", "other"), Some(vec!["4".into()]));
        assert_eq!(add("13", "third"), Some(vec!["5".into()]));
        assert_eq!(add("14", "greedy"), Some(vec!["6".into()]), "groups of the same size stay");
        let gone = book.get("6").unwrap();
        assert_eq!(gone.state, ApprovalState::Expired);
        assert!(gone.gave_way().unwrap().contains("`disks/wipe`"), "{gone:?}");
        assert!(book.get("5").is_none(), "the latest of those that gave way is kept");
        assert_eq!(book.shown().filter(|request| request.state == ApprovalState::Waiting).count(), 8);
    }

    #[test]
    fn what_is_decided_or_approved_never_gives_way() {
        let limits = ApprovalLimits { most: 4, bytes: 1_000_000, ..LIMITS };
        let mut book = ApprovalTable::default();
        let now = Clock::system().now();
        for id in ["1", "2", "3"] {
            assert_eq!(added(&mut book, id, "greedy", &limits), Some(Vec::new()));
        }
        book.hold("1", now, Timestamp::from_second(0).unwrap()).unwrap();
        let started =
            ApprovalRequest { state: ApprovalState::Started, ..ApprovalRequest::clone(&book.get("2").unwrap()) };
        book.put(&Arc::new(started));
        assert_eq!(added(&mut book, "4", "greedy", &limits), Some(vec!["3".into()]));
        let fifth = request_of("5", "greedy");
        let Admitted::New(RoomMade { displaced, .. }) = book.admit(&fifth, soon(), &limits) else { unreachable!() };
        assert_eq!(*displaced[0].id, *"4");
        assert_eq!(book.hold("4", now, Timestamp::from_second(0).unwrap()), Err(DecisionRefusal::Busy));
        assert_eq!(added(&mut book, "6", "greedy", &limits), None, "the others are being stored or decided");
        book.release("4");
        book.remove("5");
        assert!(book.hold("4", now, Timestamp::from_second(0).unwrap()).is_ok(), "it waits again");
    }

    #[test]
    fn a_large_call_displaces_by_bytes() {
        let limits = ApprovalLimits { most: 100, bytes: 20_000, ..LIMITS };
        let large = |id: &str, chat: &str| {
            let mut request = ApprovalRequest::clone(&request_of(id, chat));
            request.arguments = JsonText::parse(&format!("\"{id}{}\"", "x".repeat(3_900))).unwrap();
            request.digest = binding::call(&request);
            Arc::new(request)
        };
        let mut book = ApprovalTable::default();
        for id in ["1", "2", "3"] {
            let request = large(id, "few");
            assert_eq!(book.admit(&request, soon(), &limits), new(&[]), "{id}");
            book.put(&request);
        }
        for id in ["11", "12", "13", "14", "15"] {
            assert_eq!(added(&mut book, id, "many", &limits), Some(Vec::new()), "{id}");
        }
        assert_eq!(added(&mut book, "16", "many", &limits), Some(vec!["1".into()]), "three large ones take more");
    }

    #[test]
    fn the_bytes_of_all_callers_together_are_bounded() {
        let mut book = ApprovalTable::default();
        let limits = ApprovalLimits { most: 100, ..LIMITS };
        let admitted = (0..100).filter(|n| added(&mut book, &n.to_string(), &n.to_string(), &limits).is_some());
        assert!((3..20).contains(&admitted.count()), "so many fit into {} bytes", limits.bytes);
        assert!(bytes(&book) <= limits.bytes, "{} bytes are kept", bytes(&book));
    }

    #[test]
    fn what_was_over_long_ago_is_forgotten() {
        let mut book = ApprovalTable::default();
        let requests = ["1", "2", "3"].map(|id| with(&mut book, id));
        book.put(&over(&requests[0], 10));
        book.put(&over(&requests[1], 20));
        assert_eq!(book.forget_before(Timestamp::from_second(15).unwrap()), [Arc::from("1")]);
        assert_eq!(book.shown().map(|request| &*request.id).collect::<Vec<_>>(), ["2", "3"]);
    }

    /// Calls of a client that floods the table must not cost others the outcomes of theirs.
    #[test]
    fn what_gave_way_makes_room_among_itself() {
        let mut book = ApprovalTable::default();
        for id in ["1", "2", "3"] {
            with(&mut book, id);
        }
        book.put(&over(&request_with_id("1"), 1));
        for id in ["2", "3"] {
            let decided = Some(ApprovalDecision {
                by: "callsheet".into(),
                at: Timestamp::from_second(1).unwrap(),
                reason: Some("it gave way".into()),
            });
            let gone = ApprovalRequest::clone(&request_with_id(id));
            book.put(&Arc::new(ApprovalRequest { state: ApprovalState::Expired, decided, ..gone }));
        }
        assert_eq!(book.make_room(1, 1_000_000), ["2".into()], "the latest that gave way and the outcome stay");
    }
}
