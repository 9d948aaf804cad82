//! Calls that need approval, as they are kept: which may be decided, which are over, which give
//! way. Pure: time is an argument.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

use super::bounds::{ApprovalLimits, DecisionRefusal};
use crate::calls::kept::{
    GivingWay, GivingWayCause, GroupBounds, GroupMember, GroupPath, GroupRoom, Keepable,
    KeptChanges, KeptDeadline, KeptLimits, KeptTable, MemberStanding, NewMember, Taken, held_bytes,
};
use crate::calls::requester::{RequestedIn, Requester};
use crate::model::{ApprovalDecision, ApprovalRequest, ApprovalState, ToolId};
use crate::state::Write;

/// All approvals that are kept, in the order of their requests.
pub(super) type ApprovalTable = KeptTable<KeptApproval>;

/// A call that needs approval.
#[derive(Debug)]
pub(super) struct KeptApproval {
    request: Arc<ApprovalRequest>,
    /// When it expires by the monotonic clock, which cannot be set back.
    deadline: Instant,
    /// The change of it that is being stored, so that no other one is possible meanwhile.
    change: Option<StoredChange>,
    /// Its outcome was handed out to a caller that sent the same call again, or may have been
    /// before a restart.
    collected: bool,
    /// The session that its outcome belongs to.
    requested_in: RequestedIn,
    group: Arc<GroupPath>,
    changes: KeptChanges,
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
#[derive(Debug)]
pub(super) enum Admitted {
    /// It was added and is held.
    New(RoomMade),
    /// Exactly the same call waits already.
    Waits(Arc<ApprovalRequest>),
    /// There is no room.
    Full,
}

/// What made room for a new one.
#[derive(Debug)]
pub(super) struct RoomMade {
    /// Those that are forgotten.
    pub(super) forgotten: Vec<KeptApproval>,
    /// Those that gave way, as they end. They are held until they are
    /// [`put`](ApprovalTable::put) or [`release`](ApprovalTable::release)d.
    pub(super) displaced: Vec<Arc<ApprovalRequest>>,
}

impl ApprovalTable {
    /// The latest decision about exactly this call of this requester, which sends the call again:
    /// one that is under way, or one whose outcome was not handed out yet. An outcome is handed out
    /// once, and within the time in which the call could be decided.
    pub(super) fn collect(
        &mut self,
        digest: &str,
        requester: &Requester,
        wall: Timestamp,
    ) -> Option<Arc<ApprovalRequest>> {
        let is_decided =
            |kept: &KeptApproval| !kept.is_held() && kept.request.state != ApprovalState::Waiting;
        let kept = self
            .alike(digest)
            .rev()
            .find(|kept| is_decided(kept) && kept.is_joined_by(requester))?;
        let is_open = !kept.collected && wall < kept.request.expires_at;
        let request = Arc::clone(&kept.request);
        if request.state.is_over() {
            self.set_collected(&request.id);
        } else {
            self.take_over(&request.id, requester);
        }
        is_open.then_some(request)
    }

    /// A call belongs to the session that sent it last.
    fn take_over(&mut self, id: &str, requester: &Requester) {
        self.change(id, |kept| kept.requested_in = requester.into());
    }

    /// The outcome of this one was handed out.
    pub(super) fn set_collected(&mut self, id: &str) {
        self.change(id, |kept| kept.collected = true);
    }

    /// Adds a call that waits, and holds it. Those that are over may be forgotten. If too many
    /// wait, others give way ([`KeptTable::room_for`]).
    pub(super) fn enqueue(
        &mut self,
        request: &Arc<ApprovalRequest>,
        requester: &Requester,
        deadline: Instant,
    ) -> Admitted {
        let waiting = self
            .alike(&request.digest)
            .find(|kept| kept.waits() && kept.is_joined_by(requester));
        let waiting = waiting.map(|kept| Arc::clone(&kept.request));
        if let Some(waiting) = waiting {
            self.take_over(&waiting.id, requester);
            return Admitted::Waits(waiting);
        }
        let new = KeptApproval::new(Arc::clone(request), requester.into(), deadline);
        let Some(displaced) = self.displace_for(&new) else {
            return Admitted::Full;
        };
        let forgotten = self.make_room(Taken::by_one(held_bytes(&new)));
        self.add(new);
        Admitted::New(RoomMade {
            forgotten,
            displaced,
        })
    }

    /// Holds those that give way so that there is room for a new one, and returns them as they end.
    /// `None` if there is no room; then all stay.
    fn displace_for(&mut self, new: &KeptApproval) -> Option<Vec<Arc<ApprovalRequest>>> {
        let most = self.most();
        // One conversation leaves some room to others, whatever it requests.
        let most_of_conversation = Taken {
            count: share(most.count),
            bytes: share(most.bytes),
        };
        let bounds = [
            GroupBounds::of_conversation(most_of_conversation),
            GroupBounds::of_all(most),
        ];
        let member = NewMember {
            path: &new.group,
            taken: Taken::by_one(held_bytes(new)),
        };
        let mut displaced: Vec<Arc<ApprovalRequest>> = Vec::new();
        for bounds in bounds {
            loop {
                let ended = match self.room_for(member, bounds) {
                    GroupRoom::Free => break,
                    GroupRoom::After(giving_way) => self.displace(giving_way, new.request.asked_at),
                    GroupRoom::Full => None,
                };
                let Some(ended) = ended else {
                    for ended in &displaced {
                        self.release(&ended.id);
                    }
                    return None;
                };
                displaced.push(ended);
            }
        }
        Some(displaced)
    }

    /// Holds one that gives way, and returns it as it ends.
    fn displace(&mut self, giving_way: GivingWay, at: Timestamp) -> Option<Arc<ApprovalRequest>> {
        let id = Arc::clone(self.numbered(giving_way.number)?.id());
        let request = self.change(&id, |kept| {
            kept.change = Some(StoredChange::Displaced);
            ApprovalRequest::clone(&kept.request)
        })?;
        let reason = reason_to_give_way(giving_way.cause, &request.tool);
        let decided = Some(ApprovalDecision {
            by: "callsheet".into(),
            at,
            reason: Some(reason.into()),
        });
        Some(Arc::new(ApprovalRequest {
            state: ApprovalState::Expired,
            decided,
            ended_at: Some(at),
            ..request
        }))
    }

    /// Holds one that waits, so that a decision about it can be made durable. The holder must
    /// [`put`](Self::put) or [`release`](Self::release) it.
    pub(super) fn hold(
        &mut self,
        id: &str,
        now: Instant,
        wall: Timestamp,
    ) -> Result<Arc<ApprovalRequest>, DecisionRefusal> {
        let kept = self
            .get(id)
            .filter(|kept| !kept.is_new())
            .ok_or(DecisionRefusal::Unknown)?;
        let request = Arc::clone(&kept.request);
        if request.state != ApprovalState::Waiting {
            return Err(DecisionRefusal::Decided(request));
        }
        if kept.is_held() {
            return Err(DecisionRefusal::Busy);
        }
        if kept.is_late(now, wall) {
            return Err(DecisionRefusal::Late);
        }
        self.change(id, |kept| kept.change = Some(StoredChange::Decided));
        Ok(request)
    }

    /// Releases one without a change.
    pub(super) fn release(&mut self, id: &str) {
        self.change(id, |kept| kept.change = None);
    }

    /// Replaces one and releases it.
    pub(super) fn put(&mut self, request: &Arc<ApprovalRequest>) {
        self.change(&request.id, |kept| {
            kept.request = Arc::clone(request);
            kept.change = None;
        });
    }

    /// Expires those that were not decided in time, and returns them.
    pub(super) fn expire(&mut self, now: Instant, wall: Timestamp) -> Vec<Arc<ApprovalRequest>> {
        let late = self.due(now, wall);
        let expired: Vec<_> = late
            .map(|kept| Arc::new(expired_at(wall, &kept.request)))
            .collect();
        for request in &expired {
            self.put(request);
        }
        expired
    }

    /// The approval with this id, once it is durable.
    pub(super) fn shown_with_id(&self, id: &str) -> Option<Arc<ApprovalRequest>> {
        self.get(id)
            .filter(|kept| !kept.is_new())
            .map(|kept| Arc::clone(&kept.request))
    }

    /// All that are durable, in the order of their requests.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Arc<ApprovalRequest>> {
        self.iter()
            .filter(|kept| !kept.is_new())
            .map(|kept| &kept.request)
    }
}

impl KeptApproval {
    /// A new one, which is held until it is stored.
    fn new(request: Arc<ApprovalRequest>, requested_in: RequestedIn, deadline: Instant) -> Self {
        let caller = &request.caller;
        let tool = Some(request.tool.to_string().into());
        let group = [
            request.access.clone(),
            caller.profile.clone(),
            caller.chat.clone(),
            tool,
        ];
        Self {
            group: Arc::new(group),
            request,
            deadline,
            change: Some(StoredChange::Added),
            collected: false,
            requested_in,
            changes: KeptChanges::default(),
        }
    }

    /// One that was stored.
    pub(super) fn restored(request: Arc<ApprovalRequest>, deadline: Instant) -> Self {
        Self {
            change: None,
            collected: true,
            ..Self::new(request, RequestedIn::Unknown, deadline)
        }
    }

    /// Whether a call of this requester is one with it.
    fn is_joined_by(&self, requester: &Requester) -> bool {
        self.requested_in.is_joined_by(&self.request, requester)
    }

    fn waits(&self) -> bool {
        !self.is_held() && self.request.state == ApprovalState::Waiting
    }

    /// Whether a change of it is being stored. Then it waits, as far as others are shown.
    fn is_held(&self) -> bool {
        self.change.is_some()
    }

    fn is_new(&self) -> bool {
        self.change == Some(StoredChange::Added)
    }

    fn is_late(&self, now: Instant, wall: Timestamp) -> bool {
        now >= self.deadline || wall >= self.request.expires_at
    }
}

impl Keepable for KeptApproval {
    fn id(&self) -> &Arc<str> {
        &self.request.id
    }

    fn weight(&self) -> usize {
        self.request.weight()
    }

    fn is_over(&self) -> bool {
        self.request.state.is_over()
    }

    fn ended_at(&self) -> Option<Timestamp> {
        self.request.ended_at
    }

    fn deadline(&self) -> Option<KeptDeadline> {
        self.waits().then_some(KeptDeadline {
            mono: self.deadline,
            wall: self.request.expires_at,
        })
    }

    fn changes(&self) -> &KeptChanges {
        &self.changes
    }

    fn likeness(&self) -> Option<&Arc<str>> {
        Some(&self.request.digest)
    }

    fn member(&self) -> Option<GroupMember> {
        if self.is_over() || self.gave_way() {
            return None;
        }
        let standing = match self.request.state {
            ApprovalState::Waiting if self.is_held() => MemberStanding::Busy,
            ApprovalState::Waiting => MemberStanding::GivesWay,
            _ => MemberStanding::Stays,
        };
        Some(GroupMember {
            path: Arc::clone(&self.group),
            standing,
        })
    }

    fn deletion(&self) -> Option<Write> {
        Some(Write::ForgetApproval(Arc::clone(&self.request.id)))
    }

    fn gave_way(&self) -> bool {
        self.change == Some(StoredChange::Displaced) || self.request.gave_way().is_some()
    }
}

impl From<&ApprovalLimits> for KeptLimits {
    fn from(limits: &ApprovalLimits) -> Self {
        Self {
            most: limits.most,
            bytes: limits.bytes,
            keep: limits.keep,
        }
    }
}

fn expired_at(at: Timestamp, request: &ApprovalRequest) -> ApprovalRequest {
    ApprovalRequest {
        state: ApprovalState::Expired,
        ended_at: Some(at),
        ..request.clone()
    }
}

/// Why a call of this tool gave way.
fn reason_to_give_way(cause: GivingWayCause, tool: &ToolId) -> String {
    let why = match cause {
        GivingWayCause::LargestAccess => {
            format!(
                "callers with the same rights take most of that, of these no profile more than this one, in it no conversation more than this one, and this was the oldest call of `{tool}` there"
            )
        }
        GivingWayCause::LargestProfile => {
            format!(
                "no profile takes more of that than this one, in it no conversation more than this one, and this was the oldest call of `{tool}` there"
            )
        }
        GivingWayCause::LargestConversation => {
            format!(
                "no conversation of the same profile takes more of that than this one, and this was the oldest call of `{tool}` there"
            )
        }
        GivingWayCause::LargestTool => {
            format!(
                "no tool takes more of that than `{tool}` in the same conversation, and this was its oldest call"
            )
        }
        GivingWayCause::OwnGroup => {
            format!(
                "this was the oldest of `{tool}` in the same conversation and profile, which requested another one"
            )
        }
    };
    format!(
        "as many calls wait for approval as may (`calls.approvals_max`, `calls.kept_bytes`), and {why}"
    )
}

/// The part of a limit that one conversation may use: three quarters.
fn share(limit: usize) -> usize {
    limit - limit / 4
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::calls::approval::binding;
    use crate::calls::approval::tests::request;
    use crate::model::JsonText;
    use crate::runtime::Clock;

    const LIMITS: ApprovalLimits = ApprovalLimits {
        expiry: Duration::from_secs(60),
        most: 3,
        bytes: 10_000,
        keep: Duration::from_secs(60),
    };

    fn request_with_id(id: &str) -> Arc<ApprovalRequest> {
        let mut request = request(id);
        request.arguments = JsonText::parse(&format!("{{\"id\":\"{id}\"}}")).unwrap();
        request.digest = binding::call(&request);
        Arc::new(request)
    }

    fn empty_table(limits: &ApprovalLimits) -> ApprovalTable {
        KeptTable::new(KeptLimits::from(limits))
    }

    /// Adds a call for which none gives way; the ids of those that are forgotten. `None` if it was
    /// not added.
    fn forgotten(table: &mut ApprovalTable, request: &Arc<ApprovalRequest>) -> Option<Vec<String>> {
        let Admitted::New(RoomMade {
            forgotten,
            displaced,
        }) = table.enqueue(request, &Requester::full_access(), soon())
        else {
            return None;
        };
        assert_eq!(displaced, []);
        Some(forgotten.iter().map(|kept| kept.id().to_string()).collect())
    }

    /// The same call that waits already.
    fn waiting(
        table: &mut ApprovalTable,
        request: &Arc<ApprovalRequest>,
    ) -> Option<Arc<ApprovalRequest>> {
        let Admitted::Waits(waiting) = table.enqueue(request, &Requester::full_access(), soon())
        else {
            return None;
        };
        Some(waiting)
    }

    fn bytes(table: &ApprovalTable) -> usize {
        table.iter().map(held_bytes).sum()
    }

    fn soon() -> Instant {
        Clock::system().now() + Duration::from_secs(60)
    }

    fn with(table: &mut ApprovalTable, id: &str) -> Arc<ApprovalRequest> {
        let stored = request_with_id(id);
        assert_eq!(forgotten(table, &stored), Some(Vec::new()));
        table.put(&stored);
        stored
    }

    fn over(request: &ApprovalRequest, at: i64) -> Arc<ApprovalRequest> {
        let ended_at = Some(Timestamp::from_second(at).unwrap());
        Arc::new(ApprovalRequest {
            state: ApprovalState::Answered,
            ended_at,
            ..request.clone()
        })
    }

    #[test]
    fn only_one_decision_is_made_at_a_time_and_only_once() {
        let mut table = empty_table(&LIMITS);
        let now = Clock::system().now();
        let wall = Timestamp::from_second(0).unwrap();
        let first = with(&mut table, "1");
        assert_eq!(table.hold("2", now, wall), Err(DecisionRefusal::Unknown));
        assert_eq!(table.hold("1", now, wall), Ok(Arc::clone(&first)));
        assert_eq!(table.hold("1", now, wall), Err(DecisionRefusal::Busy));
        table.release("1");
        table.hold("1", now, wall).unwrap();
        let started = Arc::new(ApprovalRequest {
            state: ApprovalState::Started,
            ..(*first).clone()
        });
        table.put(&started);
        assert_eq!(
            table.hold("1", now, wall),
            Err(DecisionRefusal::Decided(started))
        );
    }

    #[test]
    fn what_is_not_stored_yet_is_not_shown_and_cannot_be_decided() {
        let mut table = empty_table(&LIMITS);
        let now = Clock::system().now();
        let wall = Timestamp::from_second(0).unwrap();
        let first = request_with_id("1");
        assert_eq!(forgotten(&mut table, &first), Some(Vec::new()));
        assert_eq!(table.shown_with_id("1"), None);
        assert_eq!(table.shown().count(), 0);
        assert_eq!(table.hold("1", now, wall), Err(DecisionRefusal::Unknown));
        table.remove("1");
        assert_eq!(table.iter().count(), 0);
    }

    #[test]
    fn either_clock_ends_the_wait() {
        let now = Clock::system().now();
        let wall = Timestamp::from_second(0).unwrap();
        let mut table = empty_table(&LIMITS);
        let first = with(&mut table, "1");
        let late = now + Duration::from_secs(120);
        assert_eq!(table.hold("1", late, wall), Err(DecisionRefusal::Late));
        assert_eq!(
            table.hold("1", now, first.expires_at),
            Err(DecisionRefusal::Late)
        );
        assert_eq!(table.expire(now, wall).len(), 0, "there is nothing in it");
        let expired = table.expire(late, wall);
        assert_eq!(expired.len(), 1);
        assert_eq!(expired[0].state, ApprovalState::Expired);
        assert!(matches!(
            table.hold("1", now, wall),
            Err(DecisionRefusal::Decided(_))
        ));
        assert_eq!(table.next_deadline(), None);
    }

    #[test]
    fn one_that_is_being_decided_does_not_expire() {
        let now = Clock::system().now();
        let wall = Timestamp::from_second(0).unwrap();
        let mut table = empty_table(&LIMITS);
        with(&mut table, "1");
        table.hold("1", now, wall).unwrap();
        assert_eq!(
            table.expire(now + Duration::from_secs(120), wall).len(),
            0,
            "there is nothing in it"
        );
    }

    #[test]
    fn the_same_call_waits_once() {
        let mut table = empty_table(&LIMITS);
        let first = with(&mut table, "1");
        let again = Arc::new(ApprovalRequest {
            id: "2".into(),
            ..(*first).clone()
        });
        assert_eq!(waiting(&mut table, &again), Some(Arc::clone(&first)));
        table.put(&over(&first, 1));
        assert_eq!(
            forgotten(&mut table, &again),
            Some(Vec::new()),
            "an answer is for one call"
        );
    }

    #[test]
    fn an_outcome_is_handed_out_once_and_within_the_time_of_the_approval() {
        let mut table = empty_table(&LIMITS);
        let wall = Timestamp::from_second(0).unwrap();
        let first = with(&mut table, "1");
        assert_eq!(
            table.collect(&first.digest, &Requester::full_access(), wall),
            None,
            "it waits"
        );
        let started = Arc::new(ApprovalRequest {
            state: ApprovalState::Started,
            ..(*first).clone()
        });
        table.put(&started);
        assert_eq!(
            table.collect(&first.digest, &Requester::full_access(), wall),
            Some(Arc::clone(&started))
        );
        assert_eq!(
            table.collect(&first.digest, &Requester::full_access(), wall),
            Some(started)
        );
        let done = over(&first, 1);
        table.put(&done);
        assert_eq!(
            table.collect("another", &Requester::full_access(), wall),
            None
        );
        assert_eq!(
            table.collect(&first.digest, &Requester::full_access(), first.expires_at),
            None,
            "too late"
        );

        let second = with(&mut table, "2");
        table.put(&over(&second, 1));
        assert_eq!(
            table.collect(&second.digest, &Requester::full_access(), wall),
            Some(over(&second, 1))
        );
        assert_eq!(
            table.collect(&second.digest, &Requester::full_access(), wall),
            None
        );
        let mut restored = empty_table(&LIMITS);
        restored.add(KeptApproval::restored(done, soon()));
        assert_eq!(
            restored.collect(&first.digest, &Requester::full_access(), wall),
            None,
            "it may have been handed out before"
        );
    }

    fn request_of(id: &str, chat: &str) -> Arc<ApprovalRequest> {
        let mut request = ApprovalRequest::clone(&request_with_id(id));
        request.caller.chat = Some(chat.into());
        request.digest = binding::call(&request);
        Arc::new(request)
    }

    /// Adds a call and stores it. The ids of those that gave way; `None` if there is no room.
    fn added(table: &mut ApprovalTable, id: &str, chat: &str) -> Option<Vec<String>> {
        let request = request_of(id, chat);
        let Admitted::New(RoomMade { displaced, .. }) =
            table.enqueue(&request, &Requester::full_access(), soon())
        else {
            return None;
        };
        for ended in &displaced {
            table.put(ended);
        }
        table.put(&request);
        Some(displaced.iter().map(|ended| ended.id.to_string()).collect())
    }

    #[test]
    fn what_is_over_makes_room_before_what_waits_does() {
        let mut table = empty_table(&LIMITS);
        for id in ["1", "2", "3"] {
            assert_eq!(added(&mut table, id, id), Some(Vec::new()));
        }
        assert_eq!(
            added(&mut table, "4", "4"),
            None,
            "no caller has more than another one"
        );
        table.put(&over(&request_of("2", "2"), 1));
        assert_eq!(
            forgotten(&mut table, &request_of("4", "4")),
            Some(vec!["2".into()])
        );
        let mut large = request("5");
        large.arguments = JsonText::parse(&format!("\"{}\"", "x".repeat(20_000))).unwrap();
        assert!(matches!(
            empty_table(&LIMITS).enqueue(&Arc::new(large), &Requester::full_access(), soon()),
            Admitted::Full
        ));
    }

    #[test]
    fn a_caller_that_floods_the_table_displaces_itself() {
        let limits = ApprovalLimits {
            most: 8,
            bytes: 1_000_000,
            ..LIMITS
        };
        let mut table = empty_table(&limits);
        let mut add = |id: &str, chat: &str| added(&mut table, id, chat);
        for id in ["1", "2", "3", "4", "5", "6"] {
            assert_eq!(add(id, "greedy"), Some(Vec::new()), "{id}");
        }
        assert_eq!(
            add("7", "greedy"),
            Some(vec!["1".into()]),
            "three quarters are taken by one caller"
        );
        assert_eq!(add("8", "other"), Some(Vec::new()));
        assert_eq!(add("9", "third"), Some(Vec::new()));
        assert_eq!(
            add("10", "fourth"),
            Some(vec!["2".into()]),
            "the largest group gives way"
        );
        assert_eq!(
            add("11", "greedy"),
            Some(vec!["3".into()]),
            "and not a smaller one"
        );
        assert_eq!(add("12", "other"), Some(vec!["4".into()]));
        assert_eq!(add("13", "third"), Some(vec!["5".into()]));
        assert_eq!(
            add("14", "greedy"),
            Some(vec!["6".into()]),
            "groups of the same size stay"
        );
        let gone = table.shown_with_id("6").unwrap();
        assert_eq!(gone.state, ApprovalState::Expired);
        assert!(
            gone.gave_way().unwrap().contains("`disks/wipe`"),
            "{gone:?}"
        );
        assert!(
            table.shown_with_id("5").is_none(),
            "the latest of those that gave way is kept"
        );
        assert_eq!(
            table
                .shown()
                .filter(|request| request.state == ApprovalState::Waiting)
                .count(),
            8
        );
    }

    #[test]
    fn what_is_decided_or_approved_never_gives_way() {
        let limits = ApprovalLimits {
            most: 4,
            bytes: 1_000_000,
            ..LIMITS
        };
        let mut table = empty_table(&limits);
        let now = Clock::system().now();
        for id in ["1", "2", "3"] {
            assert_eq!(added(&mut table, id, "greedy"), Some(Vec::new()));
        }
        table
            .hold("1", now, Timestamp::from_second(0).unwrap())
            .unwrap();
        let started = ApprovalRequest {
            state: ApprovalState::Started,
            ..ApprovalRequest::clone(&table.shown_with_id("2").unwrap())
        };
        table.put(&Arc::new(started));
        assert_eq!(added(&mut table, "4", "greedy"), Some(vec!["3".into()]));
        let fifth = request_of("5", "greedy");
        let Admitted::New(RoomMade { displaced, .. }) =
            table.enqueue(&fifth, &Requester::full_access(), soon())
        else {
            unreachable!()
        };
        assert_eq!(*displaced[0].id, *"4");
        assert_eq!(
            table.hold("4", now, Timestamp::from_second(0).unwrap()),
            Err(DecisionRefusal::Busy)
        );
        assert_eq!(
            added(&mut table, "6", "greedy"),
            None,
            "the others are being stored or decided"
        );
        table.release("4");
        table.remove("5");
        assert!(
            table
                .hold("4", now, Timestamp::from_second(0).unwrap())
                .is_ok(),
            "it waits again"
        );
    }

    #[test]
    fn a_large_call_displaces_by_bytes() {
        let limits = ApprovalLimits {
            most: 100,
            bytes: 20_000,
            ..LIMITS
        };
        let large = |id: &str, chat: &str| {
            let mut request = ApprovalRequest::clone(&request_of(id, chat));
            request.arguments = JsonText::parse(&format!("\"{id}{}\"", "x".repeat(3_900))).unwrap();
            request.digest = binding::call(&request);
            Arc::new(request)
        };
        let mut table = empty_table(&limits);
        for id in ["1", "2", "3"] {
            let request = large(id, "few");
            assert_eq!(forgotten(&mut table, &request), Some(Vec::new()), "{id}");
            table.put(&request);
        }
        for id in ["11", "12", "13", "14", "15"] {
            assert_eq!(added(&mut table, id, "many"), Some(Vec::new()), "{id}");
        }
        assert_eq!(
            added(&mut table, "16", "many"),
            Some(vec!["1".into()]),
            "three large ones take more"
        );
    }

    #[test]
    fn the_bytes_of_all_callers_together_are_bounded() {
        let limits = ApprovalLimits {
            most: 100,
            ..LIMITS
        };
        let mut table = empty_table(&limits);
        let admitted =
            (0..100).filter(|n| added(&mut table, &n.to_string(), &n.to_string()).is_some());
        assert!(
            (3..20).contains(&admitted.count()),
            "so many fit into {} bytes",
            limits.bytes
        );
        assert!(
            bytes(&table) <= limits.bytes,
            "{} bytes are kept",
            bytes(&table)
        );
    }

    #[test]
    fn what_was_over_long_ago_is_forgotten() {
        let mut table = empty_table(&LIMITS);
        let requests = ["1", "2", "3"].map(|id| with(&mut table, id));
        table.put(&over(&requests[0], 10));
        table.put(&over(&requests[1], 20));
        let pruned = table.prune(Timestamp::from_second(75).unwrap());
        assert_eq!(
            pruned.iter().map(|kept| &**kept.id()).collect::<Vec<_>>(),
            ["1"]
        );
        assert_eq!(
            table
                .shown()
                .map(|request| &*request.id)
                .collect::<Vec<_>>(),
            ["2", "3"]
        );
    }

    /// Calls of a client that floods the table must not cost others the outcomes of theirs.
    #[test]
    fn what_gave_way_makes_room_among_itself() {
        let mut table = empty_table(&LIMITS);
        for id in ["1", "2", "3"] {
            with(&mut table, id);
        }
        table.put(&over(&request_with_id("1"), 1));
        for id in ["2", "3"] {
            let decided = Some(ApprovalDecision {
                by: "callsheet".into(),
                at: Timestamp::from_second(1).unwrap(),
                reason: Some("it gave way".into()),
            });
            let gone = ApprovalRequest::clone(&request_with_id(id));
            table.put(&Arc::new(ApprovalRequest {
                state: ApprovalState::Expired,
                decided,
                ..gone
            }));
        }
        let next = forgotten(&mut table, &request_with_id("4"));
        assert_eq!(
            next,
            Some(vec!["2".into()]),
            "the latest that gave way and the outcome stay"
        );
    }
}
