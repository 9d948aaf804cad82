//! Cancels an operation.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::behaviour::{Behaviour, Cancellation};
use super::{
    CompanionCall, CompanionUnavailable, OperationTracker, ToolCaller, companion_tool, status_tool,
};
use crate::calls::FULL_ACCESS;
use crate::model::{Operation, OperationState};

/// Why an operation was not cancelled.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CancelError {
    /// It was never started, or was forgotten.
    #[error("no operation with this id is followed, or it was forgotten since")]
    Unknown,
    /// It is over.
    #[error("it is over already: it is `{}`", .0.state)]
    Over(Arc<Operation>),
    /// The scenario did not cancel it, and the operation is followed as before.
    #[error("`{0}` did not cancel it: {1}")]
    Refused(String, String),
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}

impl OperationTracker {
    /// Cancels an operation with the cancel tool that its own tool declared, in the same scenario.
    /// If that tool cannot be called, the operation is not followed any more and becomes
    /// `abandoned`. A repeated cancel has no further effect.
    pub async fn cancel<S: ToolCaller>(
        &self,
        side: &S,
        id: &str,
    ) -> Result<Arc<Operation>, CancelError> {
        let tracker = self.clone();
        let side = side.clone();
        let id = Arc::<str>::from(id);
        // A task of its own, so that it is not cut off with the request: the state here must say
        // what the scenario was sent.
        let cancelling = self
            .0
            .parts
            .tasks
            .spawn(async move { tracker.cancel_in_scenario(side, &id).await });
        cancelling.await.unwrap_or(Err(CancelError::Stopping))
    }

    async fn cancel_in_scenario<S: ToolCaller>(
        &self,
        side: S,
        id: &str,
    ) -> Result<Arc<Operation>, CancelError> {
        let operation = self.get(id).ok_or(CancelError::Unknown)?;
        if operation.state.is_over() {
            return Err(CancelError::Over(operation));
        }
        if operation.state == OperationState::Cancelling {
            return Ok(operation);
        }
        let (call, cancellation) = match cancel_call(&side, &operation) {
            Ok(how) => how,
            Err(CompanionUnavailable::Offline(why)) => {
                return Err(CancelError::Refused(
                    operation.tool.scenario.to_string(),
                    why,
                ));
            }
            // The peer that could stop it is gone, and no other peer is called.
            Err(
                CompanionUnavailable::NotAllowed(why) | CompanionUnavailable::OwnerChanged(why),
            ) => {
                let note = format!("it is not followed any more, but may run on: {why}");
                return self.over(id, OperationState::Abandoned, Some(note)).await;
            }
        };
        let tool = call.id.to_string();
        match side.call(call).await {
            Ok(reply) if reply.success => {}
            Ok(reply) => {
                return Err(CancelError::Refused(
                    tool,
                    reply
                        .error
                        .unwrap_or_else(|| "it gave no reason".to_owned()),
                ));
            }
            Err(unasked) => return Err(CancelError::Refused(tool, unasked.why)),
        }
        if cancellation.graceful {
            let since = self.0.parts.clock.wall();
            let changed = self.change(id, |operation| {
                (operation.state, operation.cancelling_since) =
                    (OperationState::Cancelling, Some(since));
            });
            return match changed.await {
                Some(operation) => Ok(operation),
                None => self.get(id).ok_or(CancelError::Unknown),
            };
        }
        self.over(id, OperationState::Cancelled, None).await
    }

    /// Ends the operation with this state, unless it ended otherwise meanwhile.
    async fn over(
        &self,
        id: &str,
        state: OperationState,
        note: Option<String>,
    ) -> Result<Arc<Operation>, CancelError> {
        let at = self.0.parts.clock.wall();
        let ended = self.change(id, |operation| {
            (operation.state, operation.ended_at, operation.note) =
                (state, Some(at), note.map(Into::into));
        });
        match ended.await {
            Some(operation) => Ok(operation),
            None => self.get(id).ok_or(CancelError::Unknown),
        }
    }
}

/// The call that cancels the operation, or why there is none.
fn cancel_call<S: ToolCaller>(
    side: &S,
    operation: &Operation,
) -> Result<(CompanionCall, Cancellation), CompanionUnavailable> {
    let behaviour = Behaviour::parse(&operation.behaviour)
        .map_err(|error| CompanionUnavailable::NotAllowed(error.to_string()))?;
    let Some(cancellation) = behaviour.cancellation else {
        return Err(CompanionUnavailable::NotAllowed(
            "its tool declares no way to cancel it".to_owned(),
        ));
    };
    let id = status_tool(&operation.tool, &cancellation.partner);
    let owner = operation.owner.clone();
    let caller = operation.caller.clone();
    let named = |why: &str| format!("its cancel tool `{}` {why}", id.tool);
    let offered = side
        .offered(&id, &owner, &caller)
        .map_err(|why| match why {
            CompanionUnavailable::Offline(why) => CompanionUnavailable::Offline(named(&why)),
            CompanionUnavailable::OwnerChanged(why) => {
                CompanionUnavailable::OwnerChanged(named(&why))
            }
            CompanionUnavailable::NotAllowed(why) => CompanionUnavailable::NotAllowed(named(&why)),
        })?;
    let reference: Value = serde_json::from_str(operation.reference.get()).unwrap_or_default();
    let arguments = companion_tool::arguments(&cancellation.partner, &offered, &reference);
    let arguments = arguments.map_err(CompanionUnavailable::NotAllowed)?;
    let timeout = Some(cancellation.timeout.max(Duration::from_secs(1)));
    // Cancelling needs the right `operate`, also for operations of other clients.
    let access = Some(FULL_ACCESS.into());
    Ok((
        CompanionCall {
            id,
            owner,
            arguments,
            caller,
            access,
            timeout,
        },
        cancellation,
    ))
}
