//! The table of calls that need approval, within its limits: which may be decided, which are over,
//! which are forgotten. Pure: time is an argument.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

use super::bounds::{ApprovalLimits, DecisionRefusal};
use crate::model::{ApprovalRequest, ApprovalState};

/// Roughly how many bytes an entry needs besides its texts.
const FIXED: usize = 1_000;

/// All approvals that are kept, in the order of their requests.
#[derive(Debug, Default)]
pub(super) struct ApprovalTable {
    entries: VecDeque<ApprovalEntry>,
    bytes: usize,
}

#[derive(Debug)]
struct ApprovalEntry {
    request: Arc<ApprovalRequest>,
    /// When it expires by the monotonic clock, which cannot be set back.
    deadline: Instant,
    /// A change of it is being stored, so no other change is possible meanwhile.
    held: bool,
    /// It was not stored yet, so it is not shown.
    new: bool,
    /// Its outcome was handed out to a caller that sent the same call again, or may have been
    /// before a restart.
    collected: bool,
}

/// The result of adding a call.
#[derive(Debug, PartialEq)]
pub(super) enum Admitted {
    /// It was added and is held. These ids were forgotten to make room for it.
    New(Vec<Arc<str>>),
    /// Exactly the same call waits already.
    Waits(Arc<ApprovalRequest>),
    /// There is no room.
    Full,
}

impl ApprovalTable {
    /// Adds one that was stored.
    pub(super) fn restore(&mut self, request: Arc<ApprovalRequest>, deadline: Instant) {
        self.bytes += weight(&request);
        self.entries.push_back(ApprovalEntry { request, deadline, held: false, new: false, collected: true });
    }

    /// The latest decision about exactly this call, for a caller that sends the call again: one
    /// that is under way, or one whose outcome was not handed out yet. An outcome is handed out
    /// once, and within the time in which the call could be decided.
    pub(super) fn collect(&mut self, digest: &str, wall: Timestamp) -> Option<Arc<ApprovalRequest>> {
        let entry = self.entries.iter_mut().rev().find(|entry| {
            let request = &entry.request;
            !entry.new && !entry.held && *request.digest == *digest && request.state != ApprovalState::Waiting
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

    /// Makes room for a new one: those that are over may be forgotten, those that wait may not.
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
        let lasting = self.entries.iter().filter(|entry| entry.held || !entry.request.state.is_over());
        let (count, bytes) =
            lasting.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + self::weight(&entry.request)));
        if count >= limits.most || bytes + weight > limits.bytes {
            return Admitted::Full;
        }
        // One caller leaves some room to others, whatever it asks for.
        let own = self.entries.iter().filter(|entry| entry.request.caller == request.caller);
        let own = own.filter(|entry| entry.held || !entry.request.state.is_over());
        let (count, bytes) =
            own.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + self::weight(&entry.request)));
        if count >= share(limits.most) || bytes + weight > share(limits.bytes) {
            return Admitted::Full;
        }
        let forgotten = self.make_room(limits.most - 1, limits.bytes - weight);
        self.bytes += weight;
        let request = Arc::clone(request);
        self.entries.push_back(ApprovalEntry { request, deadline, held: true, new: true, collected: false });
        Admitted::New(forgotten)
    }

    /// Forgets those that are over, the oldest first, until at most `most` entries with `bytes`
    /// bytes are left. Returns their ids.
    pub(super) fn make_room(&mut self, most: usize, bytes: usize) -> Vec<Arc<str>> {
        let mut forgotten = Vec::new();
        let mut at = 0;
        while (self.entries.len() > most || self.bytes > bytes) && at < self.entries.len() {
            let entry = &self.entries[at];
            if entry.held || !entry.request.state.is_over() {
                at += 1;
                continue;
            }
            if let Some(entry) = self.entries.remove(at) {
                self.bytes -= weight(&entry.request);
                forgotten.push(Arc::clone(&entry.request.id));
            }
        }
        forgotten
    }

    /// Forgets those that were over before `then`.
    pub(super) fn forget_before(&mut self, then: Timestamp) -> Vec<Arc<str>> {
        let old = |entry: &ApprovalEntry| !entry.held && entry.request.ended_at.is_some_and(|ended| ended < then);
        let forgotten: Vec<_> =
            self.entries.iter().filter(|entry| old(entry)).map(|entry| Arc::clone(&entry.request.id)).collect();
        self.entries.retain(|entry| !old(entry));
        self.bytes = self.entries.iter().map(|entry| weight(&entry.request)).sum();
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
        if entry.new {
            return Err(DecisionRefusal::Unknown);
        }
        if entry.request.state != ApprovalState::Waiting {
            return Err(DecisionRefusal::Decided(Arc::clone(&entry.request)));
        }
        if entry.held {
            return Err(DecisionRefusal::Busy);
        }
        if entry.is_late(now, wall) {
            return Err(DecisionRefusal::Late);
        }
        entry.held = true;
        Ok(Arc::clone(&entry.request))
    }

    /// Releases one without a change.
    pub(super) fn release(&mut self, id: &str) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| *entry.request.id == *id) {
            entry.held = false;
        }
    }

    /// Replaces one and releases it.
    pub(super) fn put(&mut self, request: &Arc<ApprovalRequest>) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.request.id == request.id) {
            self.bytes = self.bytes - weight(&entry.request) + weight(request);
            (entry.request, entry.held, entry.new) = (Arc::clone(request), false, false);
        }
    }

    /// Removes one that could not be stored.
    pub(super) fn remove(&mut self, id: &str) {
        if let Some(at) = self.entries.iter().position(|entry| *entry.request.id == *id)
            && let Some(entry) = self.entries.remove(at)
        {
            self.bytes -= weight(&entry.request);
        }
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
        self.entries.iter().filter(|entry| !entry.new).map(|entry| &entry.request)
    }
}

impl ApprovalEntry {
    fn waits(&self) -> bool {
        !self.held && self.request.state == ApprovalState::Waiting
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

    fn soon() -> Instant {
        Clock::system().now() + Duration::from_secs(60)
    }

    fn with(book: &mut ApprovalTable, id: &str) -> Arc<ApprovalRequest> {
        let stored = request_with_id(id);
        assert_eq!(book.admit(&stored, soon(), &LIMITS), Admitted::New(Vec::new()));
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
        assert_eq!(book.bytes, 0);
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
        assert_eq!(book.admit(&again, soon(), &LIMITS), Admitted::New(Vec::new()), "an answer is for one call");
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

    #[test]
    fn what_is_over_makes_room_and_what_waits_does_not() {
        let mut book = ApprovalTable::default();
        let requests = ["1", "2", "3"].map(|id| with(&mut book, id));
        assert_eq!(book.admit(&request_with_id("4"), soon(), &LIMITS), Admitted::Full);
        book.put(&over(&requests[1], 1));
        assert_eq!(book.admit(&request_with_id("4"), soon(), &LIMITS), Admitted::New(vec!["2".into()]));
        let mut large = request("5");
        large.arguments = JsonText::parse(&format!("\"{}\"", "x".repeat(20_000))).unwrap();
        assert_eq!(ApprovalTable::default().admit(&Arc::new(large), soon(), &LIMITS), Admitted::Full);
    }

    #[test]
    fn one_caller_leaves_room_to_others() {
        let limits = ApprovalLimits { most: 8, bytes: 1_000_000, ..LIMITS };
        let mut book = ApprovalTable::default();
        let mut admit = |id: &str, chat: &str| {
            let mut request = ApprovalRequest::clone(&request_with_id(id));
            request.caller.chat = Some(chat.into());
            request.digest = binding::call(&request);
            book.admit(&Arc::new(request), soon(), &limits)
        };
        for id in ["1", "2", "3", "4", "5", "6"] {
            assert_eq!(admit(id, "greedy"), Admitted::New(Vec::new()), "{id}");
        }
        assert_eq!(admit("7", "greedy"), Admitted::Full, "three quarters are taken by one caller");
        assert_eq!(admit("8", "other"), Admitted::New(Vec::new()));
        assert_eq!(admit("9", "third"), Admitted::New(Vec::new()));
        assert_eq!(admit("10", "fourth"), Admitted::Full, "all are taken");
    }

    #[test]
    fn the_bytes_of_all_callers_together_are_bounded() {
        let mut book = ApprovalTable::default();
        let limits = ApprovalLimits { most: 100, ..LIMITS };
        let admitted = (0..100).filter(|n| {
            let mut request = ApprovalRequest::clone(&request_with_id(&n.to_string()));
            request.caller.chat = Some(n.to_string().into());
            request.digest = binding::call(&request);
            matches!(book.admit(&Arc::new(request), soon(), &limits), Admitted::New(_))
        });
        assert!((3..20).contains(&admitted.count()), "so many fit into {} bytes", limits.bytes);
        assert!(book.bytes <= limits.bytes, "{} bytes are kept", book.bytes);
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
}
