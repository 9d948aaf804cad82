//! Waits for the end of a call: the only place that waits for an approval or an operation of a
//! call on behalf of its caller.
//!
//! Never done here: sending, deciding about approvals, and words for one face.

use std::sync::Arc;
use std::time::Duration;

use super::active::ActiveCall;
use super::end::{AwaitedApproval, CallEnd, ToolAnswer};
use super::{Calls, Request};
use crate::protocols::CallIo;

/// How long the end of a call is waited for, beyond its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitLimits {
    /// For the decision about a call that needs approval.
    pub decision: Duration,
    /// For an approved call that is under way.
    pub approved: Duration,
    /// For an operation that goes on.
    pub operation: Duration,
}

/// What a wait for an operation came to.
pub(super) enum OperationWait {
    /// It is over, with this answer.
    Over(ToolAnswer),
    /// It goes on.
    GoesOn,
    /// It is not known any more.
    Forgotten,
}

impl WaitLimits {
    /// The answer alone is waited for.
    pub const NONE: Self = Self { decision: Duration::ZERO, approved: Duration::ZERO, operation: Duration::ZERO };

    /// For what runs: an approved call and an operation, but no decision of a person.
    pub const fn for_work(limit: Duration) -> Self {
        Self { decision: Duration::ZERO, approved: limit, operation: limit }
    }
}

impl Calls {
    /// Makes a call, and waits for its end as long as `patience` says. The head of
    /// [`calls`](super) says what dropping this future does.
    pub async fn settle(&self, request: Request, patience: WaitLimits) -> CallEnd {
        let ended = self.execute(request).await;
        self.wait_for_end(ended.into(), patience).await
    }

    /// The same for a caller that takes part while the call runs.
    pub async fn settle_for(&self, request: Request, caller: Arc<dyn CallIo>, patience: WaitLimits) -> CallEnd {
        let ended = self.execute_for(request, Some(caller)).await;
        self.wait_for_end(ended.into(), patience).await
    }

    /// The same for a call that was begun for a caller that takes part over HTTP.
    pub async fn settle_attended(&self, request: Request, call: Arc<ActiveCall>, patience: WaitLimits) -> CallEnd {
        let end = self.execute_attended(request, call).await;
        self.wait_for_end(CallEnd::clone(&end), patience).await
    }

    /// Waits for the end of a call that goes on as an operation, or that was approved and is under
    /// way. An end after an approval is handed out with this: the same call is a new one from then
    /// on.
    pub async fn wait_for_end(&self, end: CallEnd, patience: WaitLimits) -> CallEnd {
        let end = match end {
            CallEnd::Answered(answer) => CallEnd::Answered(self.followed(answer, patience.operation).await),
            CallEnd::AwaitsApproval(awaited) => self.approved(awaited, patience).await,
            ended => ended,
        };
        if let Some(approval) = end.ended_approval()
            && let Some(approvals) = self.approvals()
        {
            approvals.set_collected(approval);
        }
        end
    }

    /// The answer of an operation that is over in time, or else the answer that it followed from.
    async fn followed(&self, answer: ToolAnswer, limit: Duration) -> ToolAnswer {
        let Some(operation) = answer.followed_operation().filter(|_| !limit.is_zero()) else { return answer };
        match self.wait_for_operation(operation, limit).await {
            OperationWait::Over(over) => ToolAnswer { adjusted: answer.adjusted, ..over },
            OperationWait::GoesOn | OperationWait::Forgotten => answer,
        }
    }

    /// Waits for at most `limit` until the operation with this id is over.
    pub(super) async fn wait_for_operation(&self, id: &str, limit: Duration) -> OperationWait {
        let Some(operations) = self.operations() else { return OperationWait::Forgotten };
        match operations.wait_until_over(id, limit).await {
            Some(operation) => {
                ToolAnswer::from_operation(&operation).map_or(OperationWait::GoesOn, OperationWait::Over)
            }
            None => OperationWait::Forgotten,
        }
    }

    async fn approved(&self, awaited: AwaitedApproval, patience: WaitLimits) -> CallEnd {
        let limit = if awaited.is_under_way() { patience.approved } else { patience.decision };
        let Some(approvals) = self.approvals().filter(|_| !limit.is_zero()) else {
            return CallEnd::AwaitsApproval(awaited);
        };
        let AwaitedApproval { request, adjusted } = awaited;
        CallEnd::of_approval(approvals.wait_until_over(request, limit).await, adjusted)
    }
}
