//! Operations: long-running tools that continue after their answer are polled to their end,
//! reported as events, and can be cancelled.
//!
//! ```text
//! AnsweredCall -> behaviour (declared?) -> reading (the id) -> Operation, stored
//!                                                                |
//!    end <- reading (status) <- ToolCaller: the status tool <- follow <- poll_schedule
//! ```
//!
//! What is kept true here:
//!
//! - An operation belongs to the scenario that started it *and* to the peer that answered for that
//!   scenario then. Only tools of the same scenario are called for it, because other scenarios may
//!   have tools of the same name, and only while the same peer is there.
//! - How it is followed was declared by its tool when that was called ([`behaviour`]).
//! - Every wait has a limit, and following always ends.
//! - Operations that are followed survive a restart of the daemon. An operation that cannot be
//!   followed is reported as such at once.
//!
//! Read in this order: `behaviour.rs` (the declaration), this file ([`OperationTracker`]),
//! `reading.rs`, `companion_tool.rs` (may a tool be called with the id alone?), `follow.rs`,
//! `poll_schedule.rs`, `cancel.rs`, `kept_operation.rs`, `limits.rs`.
//!
//! Never done here: sending. Calls to scenarios go through a [`ToolCaller`].

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use serde_json::Value;
use uuid::Uuid;

use super::dependencies::CallDependencies;
use super::kept::{KeptLimits, KeptRegister, Taken};
use crate::engine::awake::AwakeHold;
use crate::events::Event;
use crate::model::{
    CallerInfo, Finding, FindingCode, JsonText, Operation, OperationState, PeerIdentity, Progress,
    Tool, ToolId,
};
use crate::state::Write;

pub(crate) mod behaviour;
mod cancel;
mod companion_tool;
mod follow;
mod kept_operation;
mod limits;
mod poll_schedule;
mod reading;

pub use behaviour::Untrackable;
use behaviour::{Behaviour, CompanionTool};
pub use cancel::CancelError;
use kept_operation::KeptOperation;
pub use limits::TrackerLimits;

/// An answered call that may continue in the background.
#[derive(Debug, Clone)]
pub struct AnsweredCall {
    /// The tool that was called.
    pub id: ToolId,
    /// The tool as it was offered.
    pub tool: Arc<Tool>,
    /// The peer that answered.
    pub owner: PeerIdentity,
    /// The caller.
    pub caller: CallerInfo,
    /// The identity of the access of the call.
    pub access: Arc<str>,
    /// The result in the answer.
    pub result: Option<JsonText>,
    /// The whole answer.
    pub document: Option<JsonText>,
    /// Whether the scenario said that the run continues.
    pub running: bool,
}

/// Whether an operation follows from an answered call.
#[derive(Debug, Clone)]
pub enum FollowUp {
    /// No operation continues.
    Over,
    /// An operation continues and is followed.
    Followed(Arc<Operation>),
    /// An operation continues, but it cannot be followed.
    Untracked(Untrackable),
}

/// A call of a status or cancel tool.
#[derive(Debug, Clone)]
pub struct CompanionCall {
    /// The tool to call.
    pub id: ToolId,
    /// The peer that must answer for the scenario.
    pub owner: PeerIdentity,
    /// The text of one JSON object.
    pub arguments: JsonText,
    /// The caller on whose behalf it is made.
    pub caller: CallerInfo,
    /// The identity of the access on whose behalf it is made; `None` for an operation that an
    /// earlier version stored.
    pub access: Option<Arc<str>>,
    /// How long the call may take.
    pub timeout: Option<Duration>,
}

/// An answer of a status or cancel tool.
#[derive(Debug, Clone, Default)]
pub struct CompanionReply {
    /// Whether the tool succeeded.
    pub success: bool,
    /// The result in the answer.
    pub result: Option<JsonText>,
    /// The whole answer.
    pub document: Option<JsonText>,
    /// The failure, in the scenario's words.
    pub error: Option<String>,
    /// After what time to call again, if the scenario said so.
    pub retry_after: Option<Duration>,
}

/// Why there is no answer.
#[derive(Debug, Clone)]
pub struct CompanionError {
    /// One sentence without a full stop.
    pub why: String,
    /// After what time to call again, if the scenario said so.
    pub retry_after: Option<Duration>,
}

/// Why a tool cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompanionUnavailable {
    /// Not now: the scenario has no route. The text is a clause with the tool as its subject.
    #[error("{0}")]
    Offline(String),
    /// Not while a peer other than `owner` is there. The text is a clause with the tool as its
    /// subject.
    #[error("{0}")]
    OwnerChanged(String),
    /// Not at all at present: it is not offered, or needs approval. The text is a clause with the
    /// tool as its subject.
    #[error("{0}")]
    NotAllowed(String),
}

/// Calls the status and cancel tools of scenarios.
pub trait ToolCaller: Clone + Send + Sync + 'static {
    /// The tool as `owner` offers it now, or why it cannot be called on behalf of `caller`.
    fn offered(
        &self,
        id: &ToolId,
        owner: &PeerIdentity,
        caller: &CallerInfo,
    ) -> Result<Arc<Tool>, CompanionUnavailable>;

    /// Calls a tool once, and only at the named owner.
    fn call(
        &self,
        call: CompanionCall,
    ) -> BoxFuture<'static, Result<CompanionReply, CompanionError>>;

    /// Keeps the program of a scenario awake until it is dropped, if it is known.
    fn keep_awake(&self, id: &ToolId) -> Option<AwakeHold>;
}

/// All operations. Cheap to clone.
#[derive(Clone)]
pub struct OperationTracker(Arc<TrackerInner>);

struct TrackerInner {
    parts: CallDependencies,
    limits: ArcSwap<TrackerLimits>,
    kept: Arc<KeptRegister<KeptOperation>>,
}

impl OperationTracker {
    /// Takes over the stored operations. No tool is called before [`resume`](Self::resume).
    pub fn start(restored: Vec<Operation>, limits: TrackerLimits, parts: CallDependencies) -> Self {
        let restored = restored
            .into_iter()
            .map(|operation| KeptOperation::new(Arc::new(operation)));
        let kept = KeptRegister::new(restored, KeptLimits::from(&limits), parts.clone());
        parts.tasks.spawn(Arc::clone(&kept).look_after());
        Self(Arc::new(TrackerInner {
            parts,
            limits: ArcSwap::from_pointee(limits),
            kept,
        }))
    }

    /// Continues to follow the operations of an earlier daemon.
    pub fn resume<S: ToolCaller>(&self, side: &S) {
        let going: Vec<_> = self
            .all()
            .into_iter()
            .filter(|operation| !operation.state.is_over())
            .collect();
        for operation in going {
            self.0
                .parts
                .tasks
                .spawn(self.clone().follow(side.clone(), operation));
        }
    }

    /// Applies other limits to operations that start from now on.
    pub fn configure(&self, limits: TrackerLimits) {
        self.0.kept.configure(KeptLimits::from(&limits));
        self.0.limits.store(Arc::new(limits));
    }

    /// All operations that are kept, in the order of their start.
    pub fn all(&self) -> Vec<Arc<Operation>> {
        self.0
            .kept
            .table()
            .iter()
            .map(|kept| Arc::clone(&kept.operation))
            .collect()
    }

    /// The operation with this id.
    pub fn get(&self, id: &str) -> Option<Arc<Operation>> {
        self.0
            .kept
            .table()
            .get(id)
            .map(|kept| Arc::clone(&kept.operation))
    }

    /// Waits until an operation is over, for at most so long. Returns its state then; `None` if it
    /// is not known.
    pub async fn wait_until_over(&self, id: &str, limit: Duration) -> Option<Arc<Operation>> {
        self.0.kept.wait_until_over(id, limit).await;
        self.get(id)
    }

    /// A finding for each status that a tool of the kept operations answered and does not declare.
    pub fn findings(&self) -> Vec<Finding> {
        let undeclared = |operation: Arc<Operation>| {
            let status = operation.status.clone()?;
            let behaviour = Behaviour::parse(&operation.behaviour).ok()?;
            behaviour.is_undeclared(&status).then(|| {
                let hint =
                    "add it to `success_values`, `failure_values` or `pending_values` of the tool";
                Finding::new(FindingCode::AsyncIncomplete, follow::undeclared(&status))
                    .of_scenario(&operation.tool.scenario)
                    .of_tool(operation.tool.tool.clone())
                    .hint(hint)
            })
        };
        let mut findings: Vec<_> = self.all().into_iter().filter_map(undeclared).collect();
        findings.sort_unstable();
        findings.dedup();
        findings
    }

    /// Follows the operation that continues after an answer. It is durable when this returns. If
    /// the store fails, the daemon follows it all the same until the daemon ends.
    pub async fn begin<S: ToolCaller>(&self, side: &S, started: AnsweredCall) -> FollowUp {
        let operation = match self.plan(side, &started) {
            Ok(Some(operation)) => Arc::new(operation),
            Ok(None) => return FollowUp::Over,
            Err(why) => return FollowUp::Untracked(why),
        };
        let admitted = self
            .0
            .kept
            .admit(KeptOperation::new(Arc::clone(&operation)));
        let Some(forgotten) = admitted else {
            return FollowUp::Untracked(Untrackable::Full);
        };
        // Followed before it is stored: it is running already, and the request that started it may
        // be cut off here.
        let tracker = self.clone();
        let side = side.clone();
        let followed = Arc::clone(&operation);
        let stored = self.0.parts.tasks.spawn(async move {
            tracker
                .0
                .kept
                .store(vec![Write::Operation(Arc::clone(&followed))], &forgotten)
                .await;
            tracker
                .0
                .parts
                .hub
                .publish(Event::Operation(Arc::clone(&followed)))
                .await;
            tracker
                .0
                .parts
                .tasks
                .spawn(tracker.clone().follow(side, followed));
        });
        match stored.await {
            Ok(()) => FollowUp::Followed(operation),
            Err(_) => FollowUp::Untracked(Untrackable::Stopping),
        }
    }

    /// The operation to follow, if one continues.
    fn plan<S: ToolCaller>(
        &self,
        side: &S,
        started: &AnsweredCall,
    ) -> Result<Option<Operation>, Untrackable> {
        let Some(declared) = behaviour::declared(&started.tool) else {
            return if started.running {
                Err(Untrackable::Undeclared)
            } else {
                Ok(None)
            };
        };
        // A tool that may continue in the background, but finished its work at once, names no
        // operation.
        let over_at_once = |why| if started.running { Err(why) } else { Ok(None) };
        let behaviour = Behaviour::parse(&declared)?;
        let [result, document] = [started.result.as_ref(), started.document.as_ref()].map(value);
        let Some(reference) = reading::reference(&behaviour, result.as_ref(), document.as_ref())?
        else {
            let field = &behaviour.id_field;
            return over_at_once(Untrackable::Id(format!(
                "the answer has no `{field}`, which is to hold the operation's id"
            )));
        };
        let status = status_tool(&started.id, &behaviour.status);
        let offered = side.offered(&status, &started.owner, &started.caller);
        let offered = offered.map_err(|why| {
            Untrackable::Partner(format!("its status tool `{}` {why}", status.tool))
        })?;
        companion_tool::arguments(&behaviour.status, &offered, &reference)
            .map_err(Untrackable::Partner)?;
        let now = self.0.parts.clock.wall();
        let longest = self.0.limits.load().longest;
        let reference = JsonText::parse(&reference.to_string())
            .map_err(|error| Untrackable::Id(error.to_string()))?;
        Ok(Some(Operation {
            // 122 random bits from the system.
            id: Uuid::new_v4().simple().to_string().into(),
            tool: started.id.clone(),
            caller: started.caller.clone(),
            access: Some(Arc::clone(&started.access)),
            owner: started.owner.clone(),
            behaviour: declared,
            reference,
            state: OperationState::Running,
            started_at: now,
            deadline_at: now
                .saturating_add(behaviour.longest.min(longest))
                .unwrap_or(now),
            ended_at: None,
            polled_at: None,
            status: None,
            progress: Progress::default(),
            note: None,
            result: None,
            error: None,
            cancelling_since: None,
        }))
    }

    /// Changes an operation that is not over. Ends and cancel requests are stored. An event is
    /// published if a visible part changed.
    async fn change(
        &self,
        id: &str,
        change: impl FnOnce(&mut Operation),
    ) -> Option<Arc<Operation>> {
        let [before, after] = kept_operation::change(&mut self.0.kept.table(), id, change)?;
        let shows = |operation: &Operation| {
            (
                operation.state,
                operation.status.clone(),
                operation.progress.clone(),
                operation.note.clone(),
            )
        };
        if shows(&before) != shows(&after) {
            self.0
                .parts
                .hub
                .publish(Event::Operation(Arc::clone(&after)))
                .await;
        }
        if before.state != after.state {
            let forgotten = self.0.kept.table().make_room(Taken::default());
            self.0
                .kept
                .store(vec![Write::Operation(Arc::clone(&after))], &forgotten)
                .await;
        }
        Some(after)
    }
}

impl std::fmt::Debug for OperationTracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracker")
            .field("limits", &self.0.limits.load())
            .finish_non_exhaustive()
    }
}

/// The status tool, always of the same scenario, even if others have a tool of that name.
fn status_tool(started: &ToolId, partner: &CompanionTool) -> ToolId {
    ToolId::new(started.scenario.clone(), partner.tool.as_str())
}

fn value(text: Option<&JsonText>) -> Option<Value> {
    serde_json::from_str(text?.get()).ok()
}

#[cfg(test)]
impl TrackerLimits {
    pub(in crate::calls::track) fn for_tests() -> Self {
        let hour = Duration::from_secs(3600);
        let poll_min = Duration::from_secs(1);
        let poll_max = Duration::from_secs(60);
        Self {
            most: 100,
            bytes: 1_000_000,
            keep: hour,
            poll_min,
            poll_max,
            longest: hour,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operation that is running.
    pub(in crate::calls::track) fn operation(id: &str) -> Operation {
        let at = |second| jiff::Timestamp::from_second(second).unwrap();
        Operation {
            id: id.into(),
            tool: "runs/start".parse().unwrap(),
            caller: CallerInfo::default(),
            access: None,
            owner: PeerIdentity::default(),
            behaviour: JsonText::parse("{}").unwrap(),
            reference: JsonText::parse("7").unwrap(),
            state: OperationState::Running,
            started_at: at(0),
            deadline_at: at(3_600),
            ended_at: None,
            polled_at: None,
            status: None,
            progress: Progress::default(),
            note: None,
            result: None,
            error: None,
            cancelling_since: None,
        }
    }
}
