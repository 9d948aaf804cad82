//! Approvals: calls that wait until a human approves or rejects them.
//!
//! ```text
//! need (needed?) -> enqueue -> waiting -> approve -> started -> runner -> answered | failed
//!                                 |`-> reject -> rejected
//!                                 `--> time -> expired        restart: started -> unknown-outcome
//! ```
//!
//! What is kept true here:
//!
//! - An approval is for one call exactly ([`binding`]): scenario, tool, arguments, caller, the peer
//!   that answers for the scenario, and the tool's definition. It is refused if any of these
//!   differs by then.
//! - A call that waits is durable before its caller learns its id, and `started` is durable before
//!   it is sent. So a crash never runs a call twice.
//! - A decision that cannot be stored does not take effect.
//! - A call expires as soon as one of both clocks has reached its deadline.
//! - A call that was under way when the daemon ended is shown as `unknown-outcome`, and runs again
//!   only if its tool is idempotent.
//!
//! Read in this order: `need.rs` (which calls), `binding.rs` (digests), this file ([`Approvals`]),
//! `table.rs` (what is kept, and what gives way), `bounds.rs` (limits and refusals), `resume.rs`.
//! States and errors are in `docs/design/approvals.md`.
//!
//! Never done here: sending, which is the business of a [`ApprovedCallRunner`].

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use super::dependencies::CallDependencies;
use super::kept::{Keepable as _, KeptLimits, KeptRegister, Taken};
use super::requester::Requester;
use crate::events::Event;
use crate::model::{
    ApprovalDecision, ApprovalRequest, ApprovalState, CalledDefinition, CallerInfo, JsonText,
    PeerIdentity, StoredAnswer, Tool, ToolId,
};
use crate::state::{StateError, Write};

pub mod binding;
mod bounds;
mod need;
mod resume;
mod table;

pub use bounds::{ApprovalLimits, CurrentTool, DecisionRefusal};
pub use need::{changed, needed};
use table::{Admitted, KeptApproval, RoomMade};

/// How often expiry is checked by the wall clock, which may be set.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The largest answer that is kept, in bytes. A larger one is left out, and an error says so.
const ANSWER_MAX: usize = 1024 * 1024;

/// A call that needs approval.
#[derive(Debug)]
pub struct NewApproval {
    /// The tool to call.
    pub id: ToolId,
    /// The name that the caller used.
    pub name: Arc<str>,
    /// The tool as it is offered now.
    pub tool: Arc<Tool>,
    /// The peer that answers for the scenario now.
    pub owner: PeerIdentity,
    /// The definition that was called, if the tool is its activity and the call was made for one
    /// version of it.
    pub called: Option<CalledDefinition>,
    /// The text of one JSON object, as it will be sent.
    pub arguments: JsonText,
    /// The caller.
    pub caller: CallerInfo,
    /// On whose behalf it is made.
    pub requester: Requester,
    /// Whether an earlier decision about the same call is wanted instead, if its outcome was not
    /// handed out yet.
    pub collects: bool,
}

/// The result of an approved call.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// The answer, as it is stored.
    pub answer: StoredAnswer,
    /// Whether the scenario answered. The failure of the tool itself is an answer.
    pub answered: bool,
}

/// Runs approved calls.
pub trait ApprovedCallRunner: Clone + Send + Sync + 'static {
    /// The tool as it is now in the scope of the caller; `None` if the caller may not call it.
    fn current_tool(&self, request: &ApprovalRequest) -> Option<CurrentTool>;

    /// Sends the call once, and only to [`owner`](ApprovalRequest::owner).
    fn run(&self, request: Arc<ApprovalRequest>) -> BoxFuture<'static, RunOutcome>;
}

/// Adds calls that ended without an answer to the log: the others are added when they are sent.
pub trait UnansweredCallRecorder: Send + Sync {
    /// A call was rejected, expired, or its outcome is not known.
    fn ended_unanswered(&self, request: &ApprovalRequest);
}

/// Why a call could not be added to those that wait.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EnqueueError {
    /// The limit of kept approvals is reached.
    #[error("as many calls wait for approval as are kept; decide some of them first")]
    Full,
    /// It could not be stored, so it could not be approved later.
    #[error(transparent)]
    State(#[from] StateError),
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}

/// Why a decision failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DecideError {
    /// The decision does not count.
    #[error(transparent)]
    Refused(#[from] DecisionRefusal),
    /// The decision could not be stored, so it is not active.
    #[error(transparent)]
    State(#[from] StateError),
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}

/// All calls that need approval. Cheap to clone.
#[derive(Clone)]
pub struct Approvals(Arc<ApprovalsInner>);

struct ApprovalsInner {
    parts: CallDependencies,
    limits: ArcSwap<ApprovalLimits>,
    kept: Arc<KeptRegister<KeptApproval>>,
    unanswered: Box<dyn UnansweredCallRecorder>,
    /// Wakes the task that expires calls.
    changed: Notify,
}

impl Approvals {
    /// Takes over the stored approvals and maintains them until the stop.
    pub fn start(
        restored: Vec<ApprovalRequest>,
        limits: ApprovalLimits,
        unanswered: Box<dyn UnansweredCallRecorder>,
        parts: CallDependencies,
    ) -> Self {
        let now = parts.clock.now();
        let wall = parts.clock.wall();
        let restored = restored.into_iter().map(|request| {
            let left =
                Duration::try_from(request.expires_at.duration_since(wall)).unwrap_or_default();
            // No call waits longer than the limit, even if the wall clock was set.
            KeptApproval::restored(Arc::new(request), now + left.min(limits.expiry))
        });
        let kept = KeptRegister::new(restored, KeptLimits::from(&limits), parts.clone());
        let limits = ArcSwap::from_pointee(limits);
        let approvals = Self(Arc::new(ApprovalsInner {
            parts,
            limits,
            kept,
            unanswered,
            changed: Notify::new(),
        }));
        approvals
            .0
            .parts
            .tasks
            .spawn(approvals.clone().look_after());
        approvals
    }

    /// Applies other limits. Calls that wait already keep their deadline.
    pub fn configure(&self, limits: ApprovalLimits) {
        self.0.kept.configure(KeptLimits::from(&limits));
        self.0.limits.store(Arc::new(limits));
    }

    /// All approvals that are kept, in the order of their requests.
    pub fn all(&self) -> Vec<Arc<ApprovalRequest>> {
        self.0.kept.table().shown().cloned().collect()
    }

    /// The approval with this id.
    pub fn get(&self, id: &str) -> Option<Arc<ApprovalRequest>> {
        self.0.kept.table().shown_with_id(id)
    }

    /// Adds a call to those that wait. It is durable when this returns. If exactly the same call of
    /// the same requester waits already, that one is returned.
    pub async fn enqueue(&self, wanted: NewApproval) -> Result<Arc<ApprovalRequest>, EnqueueError> {
        // A task of its own, so that it is not cut off with the request: a place that was taken
        // must lead to a stored approval or be given back.
        let storing = self.0.parts.tasks.spawn(self.clone().store_request(wanted));
        storing.await.unwrap_or(Err(EnqueueError::Stopping))
    }

    async fn store_request(
        self,
        wanted: NewApproval,
    ) -> Result<Arc<ApprovalRequest>, EnqueueError> {
        let limits = **self.0.limits.load();
        let clock = self.0.parts.clock;
        let collects = wanted.collects;
        let requester = wanted.requester.clone();
        let request = Arc::new(request(wanted, clock.wall(), limits.expiry));
        let earlier = if collects {
            self.0
                .kept
                .table()
                .collect(&request.digest, &requester, clock.wall())
        } else {
            None
        };
        if let Some(earlier) = earlier {
            return Ok(earlier);
        }
        let admitted =
            self.0
                .kept
                .table()
                .enqueue(&request, &requester, clock.now() + limits.expiry);
        let RoomMade {
            forgotten,
            displaced,
        } = match admitted {
            Admitted::New(made) => made,
            Admitted::Waits(known) => return Ok(known),
            Admitted::Full => return Err(EnqueueError::Full),
        };
        let forget = forgotten.iter().filter_map(KeptApproval::deletion);
        let changed = displaced
            .iter()
            .chain([&request])
            .map(|request| Write::Approval(Arc::clone(request)));
        if let Err(error) = self
            .0
            .parts
            .store
            .save(forget.chain(changed).collect())
            .await
        {
            let mut table = self.0.kept.table();
            table.remove(&request.id);
            for kept in &displaced {
                table.release(&kept.id);
            }
            return Err(error.into());
        }
        for ended in &displaced {
            self.show(ended).await;
        }
        self.show(&request).await;
        Ok(request)
    }

    /// Approves a call and begins to run it. Returns it as `started`;
    /// [`Calls::approve`](crate::calls::Calls::approve) waits for its answer.
    pub(in crate::calls) async fn approve<R: ApprovedCallRunner>(
        &self,
        runner: &R,
        id: &str,
        by: &str,
    ) -> Result<Arc<ApprovalRequest>, DecideError> {
        let starting = self.clone().begin(runner.clone(), id.into(), by.into());
        // A task of its own, so that it is not cut off with the request: a held approval must be
        // decided or released.
        let starting = self.0.parts.tasks.spawn(starting);
        starting.await.unwrap_or(Err(DecideError::Stopping))
    }

    /// Waits until a call that needs approval is over, for at most so long. Returns its state then.
    pub(in crate::calls) async fn wait_until_over(
        &self,
        started: Arc<ApprovalRequest>,
        limit: Duration,
    ) -> Arc<ApprovalRequest> {
        self.0.kept.wait_until_over(&started.id, limit).await;
        self.get(&started.id).unwrap_or(started)
    }

    /// The outcome of this call was handed out to its caller: the same call is a new one from now
    /// on.
    pub fn set_collected(&self, id: &str) {
        self.0.kept.table().set_collected(id);
    }

    async fn begin<R: ApprovedCallRunner>(
        self,
        runner: R,
        id: Arc<str>,
        by: Arc<str>,
    ) -> Result<Arc<ApprovalRequest>, DecideError> {
        if self.0.parts.stop.is_stopped() {
            return Err(DecideError::Stopping);
        }
        let clock = self.0.parts.clock;
        let request = self.0.kept.table().hold(&id, clock.now(), clock.wall())?;
        if let Some(change) = changed(&request, runner.current_tool(&request).as_ref()) {
            self.0.kept.table().release(&id);
            return Err(DecisionRefusal::Changed(change).into());
        }
        let decided = Some(ApprovalDecision {
            by,
            at: clock.wall(),
            reason: None,
        });
        let started = ApprovalRequest {
            state: ApprovalState::Started,
            decided,
            ..ApprovalRequest::clone(&request)
        };
        let started = self.decide(started).await?;
        self.0
            .parts
            .tasks
            .spawn(self.clone().run(runner, Arc::clone(&started)));
        Ok(started)
    }

    /// Runs an approved call, whether or not a client still waits, and keeps its answer.
    async fn run<R: ApprovedCallRunner>(self, runner: R, started: Arc<ApprovalRequest>) {
        let ran = runner.run(Arc::clone(&started)).await;
        let state = if ran.answered {
            ApprovalState::Answered
        } else {
            ApprovalState::Failed
        };
        let answer = Some(bounded(ran.answer));
        self.end(ApprovalRequest {
            state,
            answer,
            ..ApprovalRequest::clone(&started)
        })
        .await;
    }

    /// Rejects a call. It is not run.
    pub async fn reject(
        &self,
        id: &str,
        by: &str,
        reason: Option<&str>,
    ) -> Result<Arc<ApprovalRequest>, DecideError> {
        let approvals = self.clone();
        let id = Arc::<str>::from(id);
        let by = by.into();
        let reason = reason.map(Into::into);
        let rejecting = self.0.parts.tasks.spawn(async move {
            let clock = approvals.0.parts.clock;
            let request = approvals
                .0
                .kept
                .table()
                .hold(&id, clock.now(), clock.wall())?;
            let at = clock.wall();
            let decided = Some(ApprovalDecision { by, at, reason });
            let state = ApprovalState::Rejected;
            let ended_at = Some(at);
            approvals
                .decide(ApprovalRequest {
                    state,
                    decided,
                    ended_at,
                    ..ApprovalRequest::clone(&request)
                })
                .await
        });
        rejecting.await.unwrap_or(Err(DecideError::Stopping))
    }

    /// Makes a decision durable, then active. The approval is released in both cases.
    async fn decide(&self, decided: ApprovalRequest) -> Result<Arc<ApprovalRequest>, DecideError> {
        let decided = Arc::new(decided);
        if let Err(error) = self
            .0
            .parts
            .store
            .save(vec![Write::Approval(Arc::clone(&decided))])
            .await
        {
            self.0.kept.table().release(&decided.id);
            return Err(error.into());
        }
        self.show(&decided).await;
        Ok(decided)
    }

    /// Makes an end active and stores it. If it cannot be stored, the next daemon shows it as
    /// `unknown-outcome` and does not run the call.
    async fn end(&self, ended: ApprovalRequest) {
        let ended = Arc::new(ApprovalRequest {
            ended_at: Some(self.0.parts.clock.wall()),
            ..ended
        });
        self.show(&ended).await;
        let forgotten = self.0.kept.table().make_room(Taken::default());
        self.0
            .kept
            .store(vec![Write::Approval(ended)], &forgotten)
            .await;
    }

    /// Makes the new state active, adds a call that has no answer to the log, and publishes the
    /// state as an event.
    async fn show(&self, request: &Arc<ApprovalRequest>) {
        self.0.kept.table().put(request);
        if matches!(
            request.state,
            ApprovalState::Rejected | ApprovalState::Expired | ApprovalState::Unknown
        ) {
            self.0.unanswered.ended_unanswered(request);
        }
        self.0.changed.notify_one();
        self.0
            .parts
            .hub
            .publish(Event::Approval(Arc::clone(request)))
            .await;
    }

    /// Expires calls that were not decided in time and forgets those that are over, until the stop.
    async fn look_after(self) {
        let CallDependencies { clock, stop, .. } = &self.0.parts;
        loop {
            let look: Instant = clock.now() + EXPIRY_CHECK_INTERVAL;
            let next = self
                .0
                .kept
                .table()
                .next_deadline()
                .map_or(look, |deadline| deadline.min(look));
            tokio::select! {
                () = stop.wait() => return,
                () = clock.sleep_until(next) => {}
                () = self.0.changed.notified() => {}
            }
            let expired = self.0.kept.table().expire(clock.now(), clock.wall());
            for request in &expired {
                self.show(request).await;
            }
            let forgotten = self.0.kept.table().prune(clock.wall());
            self.0
                .kept
                .store(
                    expired.into_iter().map(Write::Approval).collect(),
                    &forgotten,
                )
                .await;
        }
    }
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approvals")
            .field("limits", &self.0.limits.load())
            .finish_non_exhaustive()
    }
}

fn request(wanted: NewApproval, now: jiff::Timestamp, expiry: Duration) -> ApprovalRequest {
    let NewApproval {
        id,
        name,
        tool,
        owner,
        called,
        arguments,
        caller,
        requester,
        collects: _,
    } = wanted;
    let mut request = ApprovalRequest {
        // 122 random bits from the system.
        id: Uuid::new_v4().simple().to_string().into(),
        tool: id,
        name,
        arguments,
        caller,
        access: Some(requester.access),
        owner,
        definition: binding::definition(&tool),
        called,
        digest: "".into(),
        idempotent: tool.facts.idempotent,
        asked_at: now,
        expires_at: now.saturating_add(expiry).unwrap_or(now),
        state: ApprovalState::Waiting,
        decided: None,
        ended_at: None,
        answer: None,
    };
    request.digest = binding::call(&request);
    request
}

/// The answer as it is kept: without its result if that is too large.
fn bounded(answer: StoredAnswer) -> StoredAnswer {
    match answer.result.as_ref().map(|result| result.get().len()) {
        Some(bytes) if bytes > ANSWER_MAX => {
            let error = format!(
                "the answer has {bytes} bytes, more than the {ANSWER_MAX} that are kept, so it is left out here"
            );
            StoredAnswer {
                result: None,
                content: None,
                error: Some(error.into()),
                ..answer
            }
        }
        _ => {
            let content = answer
                .content
                .filter(|content| content.get().len() <= ANSWER_MAX);
            StoredAnswer { content, ..answer }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A call that waits.
    pub(in crate::calls) fn request(id: &str) -> ApprovalRequest {
        let at = |second| jiff::Timestamp::from_second(second).unwrap();
        ApprovalRequest {
            id: id.into(),
            tool: "disks/wipe".parse().unwrap(),
            name: "wipe".into(),
            arguments: JsonText::parse(r#"{"disk":"sda1"}"#).unwrap(),
            caller: CallerInfo {
                chat: Some("7".into()),
                ..CallerInfo::default()
            },
            access: None,
            owner: PeerIdentity {
                identity: None,
                origin: Some("http://localhost:1".into()),
            },
            definition: "d".into(),
            called: None,
            digest: "x".into(),
            idempotent: false,
            asked_at: at(1_000),
            expires_at: at(4_600),
            state: ApprovalState::Waiting,
            decided: None,
            ended_at: None,
            answer: None,
        }
    }

    #[test]
    fn an_answer_that_is_too_large_is_said_to_be_left_out() {
        let result = JsonText::parse(&format!("\"{}\"", "x".repeat(ANSWER_MAX))).unwrap();
        let answer = StoredAnswer {
            success: true,
            result: Some(result),
            content: None,
            error: None,
            code: None,
            took_ms: 1,
            operation: None,
        };
        let kept = bounded(answer);
        assert!(kept.success && kept.result.is_none());
        assert!(kept.error.unwrap().contains("left out"));
    }
}
