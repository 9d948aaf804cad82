//! Follows one operation to its end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::behaviour::{Behaviour, CompanionTool};
use super::poll_schedule::{PollAction, PollFailure, PollSchedule};
use super::reading::{OperationEnd, StatusReading};
use super::{
    CompanionCall, CompanionError, CompanionReply, CompanionUnavailable, OperationTracker,
    ToolCaller, companion_tool, reading, status_tool, value,
};
use crate::calls::kept::Keepable as _;
use crate::model::{JsonText, Operation, OperationState};

/// The largest result that is kept, in bytes. A larger one is left out, and a note says so.
const RESULT_MAX: usize = 1024 * 1024;
/// How long a scenario may take to answer a status request.
const PATIENCE: Duration = Duration::from_secs(30);

/// The task that follows one operation.
struct OperationFollower<S> {
    tracker: OperationTracker,
    side: S,
    behaviour: Behaviour,
    watch: PollSchedule,
    id: Arc<str>,
}

impl OperationTracker {
    /// Follows an operation until it is over or the daemon stops.
    pub(super) async fn follow<S: ToolCaller>(self, side: S, operation: Arc<Operation>) {
        let Some(changes) = self
            .0
            .kept
            .table()
            .get(&operation.id)
            .map(|kept| kept.changes().watch())
        else {
            return;
        };
        let behaviour = match Behaviour::parse(&operation.behaviour) {
            Ok(behaviour) => behaviour,
            Err(why) => {
                return self
                    .end(&operation.id, OperationState::Abandoned, why.to_string())
                    .await;
            }
        };
        // Between two polls of its status the program works on.
        let _awake = side.keep_awake(&operation.tool);
        let clock = self.0.parts.clock;
        let now = clock.now();
        let wall = clock.wall();
        let left =
            Duration::try_from(operation.deadline_at.duration_since(wall)).unwrap_or_default();
        let limits = **self.0.limits.load();
        // The limit holds even if the wall clock was set.
        let watch = PollSchedule::new(
            &behaviour,
            &limits,
            operation.status.is_some(),
            now,
            now + left.min(limits.longest),
        );
        let mut follower = OperationFollower {
            tracker: self,
            side,
            behaviour,
            watch,
            id: Arc::clone(&operation.id),
        };
        follower.run(changes).await;
    }

    /// Ends an operation without a status of its scenario.
    pub(super) async fn end(&self, id: &str, state: OperationState, note: String) {
        let ended = self.0.parts.clock.wall();
        self.change(id, |operation| {
            (operation.state, operation.note, operation.ended_at) =
                (state, Some(note.into()), Some(ended));
        })
        .await;
    }
}

impl<S: ToolCaller> OperationFollower<S> {
    async fn run(&mut self, mut changes: watch::Receiver<u64>) {
        let clock = self.tracker.0.parts.clock;
        let stop = self.tracker.0.parts.stop.clone();
        loop {
            let Some(operation) = self
                .tracker
                .get(&self.id)
                .filter(|operation| !operation.state.is_over())
            else {
                return;
            };
            if operation.state == OperationState::Cancelling {
                self.watch
                    .cancelling(clock.now(), self.cancel_by(&operation));
            }
            match self.watch.due(clock.now()) {
                PollAction::Over(state, note) => {
                    return self.tracker.end(&self.id, state, note).await;
                }
                PollAction::At(then) => tokio::select! {
                    () = stop.wait() => return,
                    // An error means that it was forgotten, which the next look shows.
                    _ = changes.changed() => {}
                    () = clock.sleep_until(then) => {}
                },
                PollAction::Poll => tokio::select! {
                    () = stop.wait() => return,
                    () = self.poll(&operation) => {}
                },
            }
        }
    }

    /// The time by which the scenario has to report that the operation ended.
    fn cancel_by(&self, operation: &Operation) -> Instant {
        let clock = self.tracker.0.parts.clock;
        let timeout = self
            .behaviour
            .cancellation
            .as_ref()
            .map_or(Duration::ZERO, |cancellation| cancellation.timeout);
        let gone = operation
            .cancelling_since
            .map(|since| clock.wall().duration_since(since));
        let gone = gone
            .and_then(|gone| Duration::try_from(gone).ok())
            .unwrap_or_default();
        clock.now() + timeout.saturating_sub(gone)
    }

    async fn poll(&mut self, operation: &Operation) {
        let polled = self.query_status(operation).await;
        let clock = self.tracker.0.parts.clock;
        let now = clock.now();
        let (note, failure) = match polled {
            Ok(reply) if reply.success => {
                let [result, document] =
                    [reply.result.as_ref(), reply.document.as_ref()].map(value);
                let reading =
                    reading::parse_status(&self.behaviour, result.as_ref(), document.as_ref());
                self.watch.answered(now);
                let declared = !reading
                    .status
                    .as_ref()
                    .is_some_and(|status| self.behaviour.is_undeclared(status));
                let too_often = self.watch.understood(declared);
                self.apply_status(reading).await;
                if too_often {
                    self.end_undeclared(reply.document).await;
                }
                return;
            }
            Ok(reply) => {
                let failure = if reading::is_not_found(&reply) {
                    PollFailure::NotFound
                } else {
                    PollFailure::Refused
                };
                let error = reply
                    .error
                    .unwrap_or_else(|| "without saying why".to_owned());
                (format!("the scenario gave no status: {error}"), failure)
            }
            Err(failure) => failure,
        };
        let end = self.watch.failed(failure, now);
        let note = if self.watch.is_missed() {
            format!("{note}; {}", self.misunderstanding(operation))
        } else {
            note
        };
        if let Some((state, reason)) = end {
            return self
                .tracker
                .end(&self.id, state, format!("{reason} ({note})"))
                .await;
        }
        let at = clock.wall();
        self.tracker
            .change(&self.id, |operation| {
                (operation.note, operation.polled_at) = (Some(note.into()), Some(at));
            })
            .await;
    }

    /// Why the scenario may not find the operation although it has just started it.
    fn misunderstanding(&self, operation: &Operation) -> String {
        let CompanionTool { tool, param } = &self.behaviour.status;
        let field = &self.behaviour.id_field;
        let id = &operation.reference;
        format!(
            "`{param}` of its tool `{tool}` may mean another id than {}, the `{field}` of the answer",
            id.get()
        )
    }

    /// Ends an operation whose status is not declared, with the last answer of the status tool.
    async fn end_undeclared(&self, document: Option<JsonText>) {
        let at = self.tracker.0.parts.clock.wall();
        self.tracker
            .change(&self.id, |operation| {
                let status = operation.status.clone().unwrap_or_default();
                let (result, cut) = bounded(document);
                let cut = cut.map(|cut| format!("; {cut}")).unwrap_or_default();
                let note = format!(
                    "{}, ten polls in a row; it may run on{cut}",
                    undeclared(&status)
                );
                (operation.state, operation.ended_at) = (OperationState::UnknownStatus, Some(at));
                (operation.result, operation.note) = (result, Some(note.into()));
            })
            .await;
    }

    /// Requests the status from the scenario, if the same peer still answers for it.
    async fn query_status(
        &self,
        operation: &Operation,
    ) -> Result<CompanionReply, (String, PollFailure)> {
        let id = status_tool(&operation.tool, &self.behaviour.status);
        let unasked = |why: String| (why, PollFailure::NoAnswer(None));
        let offered = self
            .side
            .offered(&id, &operation.owner, &operation.caller)
            .map_err(|why| {
                let message = format!("its status tool `{}` {why}", id.tool);
                if matches!(why, CompanionUnavailable::OwnerChanged(_)) {
                    (message, PollFailure::OwnerChanged)
                } else {
                    unasked(message)
                }
            })?;
        let reference: Value = serde_json::from_str(operation.reference.get()).unwrap_or_default();
        let arguments = companion_tool::arguments(&self.behaviour.status, &offered, &reference)
            .map_err(unasked)?;
        let owner = operation.owner.clone();
        let caller = operation.caller.clone();
        let access = operation.access.clone();
        let call = CompanionCall {
            id,
            owner,
            arguments,
            caller,
            access,
            timeout: Some(PATIENCE),
        };
        let reply = self.side.call(call).await;
        reply.map_err(|CompanionError { why, retry_after }| {
            (why, PollFailure::NoAnswer(retry_after))
        })
    }

    /// Applies a status to the operation.
    async fn apply_status(&self, reading: StatusReading) {
        let at = self.tracker.0.parts.clock.wall();
        let StatusReading {
            status,
            progress,
            end,
        } = reading;
        let note = match &status {
            None => Some(format!("its status has no `{}`", self.behaviour.status_field).into()),
            Some(status) => self
                .behaviour
                .is_undeclared(status)
                .then(|| undeclared(status).into()),
        };
        self.tracker
            .change(&self.id, |operation| {
                (operation.polled_at, operation.progress, operation.note) =
                    (Some(at), progress, note);
                operation.status = status.map(Into::into).or(operation.status.take());
                let Some(end) = end else { return };
                operation.ended_at = Some(at);
                let cancelling = operation.state == OperationState::Cancelling;
                match end {
                    OperationEnd::Success(result) => {
                        operation.state = OperationState::Succeeded;
                        (operation.result, operation.note) = bounded(result);
                    }
                    OperationEnd::Failure(error) => {
                        operation.state = if cancelling {
                            OperationState::Cancelled
                        } else {
                            OperationState::Failed
                        };
                        operation.error = error.map(Into::into);
                    }
                }
            })
            .await;
    }
}

/// That a status has no declared meaning.
pub(super) fn undeclared(status: &str) -> String {
    format!(
        "its status is `{status}`, which `completion_conditions` declares neither as an end nor as pending"
    )
}

/// A result as it is kept, with a note if it was left out.
fn bounded(result: Option<JsonText>) -> (Option<JsonText>, Option<Arc<str>>) {
    match result {
        Some(result) if result.get().len() > RESULT_MAX => {
            let bytes = result.get().len();
            let note = format!(
                "its result has {bytes} bytes, more than the {RESULT_MAX} that are kept, so it is left out here"
            );
            (None, Some(note.into()))
        }
        result => (result, None),
    }
}
