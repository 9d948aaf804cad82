//! Waits for the end of a call: the only place that waits for an approval or an operation of a
//! call on behalf of its caller.
//!
//! A face says how its caller takes part ([`CallerRole`]) and how long it waits ([`WaitLimits`]),
//! and gets a [`CallEnd`]. Never done here: sending, deciding about approvals, and words for one
//! face.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::active::ActiveCall;
use super::end::{AwaitedApproval, CallEnd, ToolAnswer};
use super::{Calls, Failure, Request, Requester};
use crate::model::{ApprovalRequest, ApprovalState, belongs_to_access};
use crate::protocols::CallIo;

/// How the caller of a call takes part while its tool runs.
#[derive(Clone)]
pub enum CallerRole {
    /// It does not. A tool that requests input gets none; the call ends with what the tool answers
    /// then, never with [`CallEnd::NeedsInput`].
    Absent,
    /// Over this connection: it gets progress, may cancel, and gives input while the call is waited
    /// for. If it offers no forms, a tool gets no input, as for an absent caller. Such a call never
    /// ends with [`CallEnd::NeedsInput`] either.
    Connected(Arc<dyn CallIo>),
    /// By further requests with the id of this call ([`Calls::attend`]). Only such a call ends with
    /// [`CallEnd::NeedsInput`]; [`Calls::give_input`] gives the input, and waits for the next end.
    ById(Arc<ActiveCall>),
}

/// How long the end of a call is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitLimits {
    /// For all of it: the run of the tool, the decision and the operation. Without it, the tool
    /// runs as long as its own limits allow. When it is over, the call has failed with the code
    /// `timeout` for its caller. A tool that was begun goes on.
    pub whole: Option<Duration>,
    /// For the decision about a call that needs approval.
    pub decision: Duration,
    /// For an approved call that is under way.
    pub approved: Duration,
    /// For an operation that goes on.
    pub operation: Duration,
}

/// An id under which a call is known after the request that made it was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallId<'a> {
    /// Of a call whose caller takes part by its id, or of one call of a turn.
    Call(&'a str),
    /// Of the approval that the call needs.
    Approval(&'a str),
    /// Of the operation as which the call goes on.
    Operation(&'a str),
}

impl WaitLimits {
    /// The answer alone is waited for.
    pub const NONE: Self = Self {
        whole: None,
        decision: Duration::ZERO,
        approved: Duration::ZERO,
        operation: Duration::ZERO,
    };

    /// For what runs after the answer: an approved call and an operation, but no decision of a
    /// person.
    pub const fn for_work(limit: Duration) -> Self {
        Self {
            approved: limit,
            operation: limit,
            ..Self::NONE
        }
    }

    /// The end is waited for so long, whatever it takes: the run, a decision, an operation.
    pub const fn within(limit: Duration) -> Self {
        Self {
            whole: Some(limit),
            decision: limit,
            approved: limit,
            operation: limit,
        }
    }

    /// The end is waited for as long as it takes: approvals expire, and operations have a deadline.
    pub(super) const UNTIL_OVER: Self = Self {
        whole: None,
        decision: Duration::MAX,
        approved: Duration::MAX,
        operation: Duration::MAX,
    };

    /// What is left of them at `now`, if the whole has to be over at `deadline`.
    fn left(self, now: Instant, deadline: Instant) -> Self {
        let left = deadline.saturating_duration_since(now);
        Self {
            whole: Some(left),
            decision: self.decision.min(left),
            approved: self.approved.min(left),
            operation: self.operation.min(left),
        }
    }
}

impl Calls {
    /// Makes a call, and waits for its end as long as `limits` says. The head of
    /// [`calls`](super) says what dropping this future does.
    pub async fn settle(&self, request: Request, role: CallerRole, limits: WaitLimits) -> CallEnd {
        let deadline = self.deadline(limits);
        // Each is boxed, because the futures of faces are moved with every call.
        let end = match role {
            CallerRole::ById(call) => {
                CallEnd::clone(&*self.execute_attended(request, call, deadline).await)
            }
            CallerRole::Connected(caller) => {
                Box::pin(self.execute_until(request, Some(caller), deadline)).await
            }
            CallerRole::Absent => Box::pin(self.execute_until(request, None, deadline)).await,
        };
        let left = deadline.map_or(limits, |deadline| limits.left(self.0.clock.now(), deadline));
        self.wait_for_end(end, left).await
    }

    /// The end of the call with this id, as far as it is reached within `limits`; `None` if it is
    /// not known, or belongs to another access than that of `requester`. The end after an approval
    /// is handed out with this, as in [`wait_for_end`](Self::wait_for_end).
    pub async fn end_by_id(
        &self,
        id: CallId<'_>,
        requester: &Requester,
        limits: WaitLimits,
    ) -> Option<CallEnd> {
        let deadline = self.deadline(limits);
        let is_own =
            |owner: &Option<Arc<str>>| belongs_to_access(owner.as_deref(), &requester.access);
        let end = match id {
            CallId::Call(id) => match self.active().get(id) {
                Some(call) => self.end_of_active(&call, requester, deadline).await?,
                None => self.turns()?.end_of_call(id, &requester.access)?,
            },
            CallId::Approval(id) => {
                let request = self
                    .approvals()?
                    .get(id)
                    .filter(|request| is_own(&request.access))?;
                CallEnd::of_approval(request, Vec::new())
            }
            CallId::Operation(id) => {
                let operation = self
                    .operations()?
                    .get(id)
                    .filter(|operation| is_own(&operation.access))?;
                CallEnd::Answered(ToolAnswer::from_operation(&operation))
            }
        };
        let left = deadline.map_or(limits, |deadline| limits.left(self.0.clock.now(), deadline));
        Some(self.wait_for_end(end, left).await)
    }

    /// The end of a call whose caller takes part, or the input that it needs.
    async fn end_of_active(
        &self,
        call: &ActiveCall,
        requester: &Requester,
        deadline: Option<Instant>,
    ) -> Option<CallEnd> {
        if *call.owner() != requester.access {
            return None;
        }
        tokio::select! {
            biased;
            end = call.next_end("") => end.map(|end| CallEnd::clone(&end)),
            () = self.past(deadline) => Some(CallEnd::Failed(Box::new(Failure::overdue(call.tool_name())))),
        }
    }

    /// Waits for the end of a call that goes on as an operation, or that was approved and is under
    /// way. An end after an approval is handed out with this: the same call is a new one from then
    /// on.
    pub async fn wait_for_end(&self, end: CallEnd, limits: WaitLimits) -> CallEnd {
        let end = match end {
            CallEnd::Answered(answer) => {
                CallEnd::Answered(self.followed(answer, limits.operation).await)
            }
            CallEnd::AwaitsApproval(awaited) => self.approved(awaited, limits).await,
            ended => ended,
        };
        if let Some(approval) = end.ended_approval()
            && let Some(approvals) = self.approvals()
        {
            approvals.set_collected(approval);
        }
        end
    }

    /// Makes a call whose caller does not come back, and waits for its answer until the deadline.
    async fn execute_until(
        &self,
        request: Request,
        caller: Option<Arc<dyn CallIo>>,
        deadline: Option<Instant>,
    ) -> CallEnd {
        let name = deadline.map(|_| request.name.clone()).unwrap_or_default();
        tokio::select! {
            biased;
            ended = self.execute_for(request, caller) => ended.into(),
            () = self.past(deadline) => CallEnd::Failed(Box::new(Failure::overdue(&name))),
        }
    }

    /// When the whole of a wait that begins now is over; `None` if it has no limit.
    pub(super) fn deadline(&self, limits: WaitLimits) -> Option<Instant> {
        self.0.clock.now().checked_add(limits.whole?)
    }

    /// Completes at the deadline; never without one.
    pub(super) async fn past(&self, deadline: Option<Instant>) {
        match deadline {
            Some(deadline) => self.0.clock.sleep_until(deadline).await,
            None => pending().await,
        }
    }

    /// The answer of an operation that is over in time, or else the answer that it followed from.
    async fn followed(&self, answer: ToolAnswer, limit: Duration) -> ToolAnswer {
        let Some(id) = answer.followed_operation().filter(|_| !limit.is_zero()) else {
            return answer;
        };
        let Some(operations) = self.operations() else {
            return answer;
        };
        match operations.wait_until_over(id, limit).await {
            Some(operation) if operation.state.is_over() => ToolAnswer {
                adjusted: answer.adjusted,
                ..ToolAnswer::from_operation(&operation)
            },
            _ => answer,
        }
    }

    /// The end of a call that was approved, as far as it is reached in time. What is waited for may
    /// have been decided since.
    async fn approved(&self, awaited: AwaitedApproval, limits: WaitLimits) -> CallEnd {
        let AwaitedApproval { request, adjusted } = awaited;
        CallEnd::of_approval(self.wait_for_approval(request, limits).await, adjusted)
    }

    /// Waits until a call that needs approval is over, or its limit is. Returns its state then.
    pub(super) async fn wait_for_approval(
        &self,
        request: Arc<ApprovalRequest>,
        limits: WaitLimits,
    ) -> Arc<ApprovalRequest> {
        let Some(approvals) = self.approvals() else {
            return request;
        };
        let request = approvals.get(&request.id).unwrap_or(request);
        let limit = if request.state == ApprovalState::Started {
            limits.approved
        } else {
            limits.decision
        };
        if limit.is_zero() {
            request
        } else {
            approvals.wait_until_over(request, limit).await
        }
    }
}

impl fmt::Debug for CallerRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("Absent"),
            Self::Connected(_) => f.write_str("Connected"),
            Self::ById(call) => f.debug_tuple("ById").field(call.id()).finish(),
        }
    }
}
