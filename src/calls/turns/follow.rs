//! What becomes of the calls of a turn: of those that end at once, those that wait for a person or
//! go on as operations, and those that another call made needless.
//!
//! Never done here: sending.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::left_out::LeftOutTurn;
use super::meaning::TurnNames;
use super::settled::Settled;
use super::turn::{Turn, TurnPhase};
use super::words;
use crate::calls::active::{ActiveCall, PendingInput};
use crate::calls::{CallEnd, CallId, Calls, WaitLimits};
use crate::model::{ApprovalState, ToolId};
use crate::runtime::Stop;

/// Why a call that waits for approval is rejected when its turn needs it no more.
const UNNEEDED: &str = "another call of the same turn was enough";

/// Waits until a call that did not end at once is over.
pub(super) type Following = BoxFuture<'static, ()>;

/// One call of a turn that is run.
#[derive(Clone)]
pub(super) struct TurnCallRun {
    pub(super) turn: Arc<Turn>,
    pub(super) names: Arc<TurnNames>,
    pub(super) number: usize,
    /// Requested once another call makes this one needless. What becomes of it then is not its
    /// result any more.
    pub(super) unneeded: Stop,
}

impl Calls {
    /// A call ended, or waits for approval or for its operation.
    pub(super) async fn ended(&self, call: &TurnCallRun, end: &CallEnd) -> Option<Following> {
        let TurnCallRun {
            turn,
            names,
            number,
            unneeded,
        } = call;
        let name = turn.calls.get(*number).map_or("", |call| &call.read.name);
        match end {
            CallEnd::AwaitsApproval(awaited) => {
                let id = Arc::clone(&awaited.request.id);
                if !self
                    .enter(turn, *number, TurnPhase::WaitsForApproval(Arc::clone(&id)))
                    .await
                {
                    return None;
                }
                // The turn outlives a restart as the approval does.
                if let Some(turns) = self.turns()
                    && let Err(error) = turns.save(turn).await
                {
                    tracing::error!(error = %error, "a turn that waits for approval could not be stored");
                }
                Some(Box::pin(self.clone().follow_approval(
                    Arc::clone(turn),
                    *number,
                    id,
                    unneeded.clone(),
                )))
            }
            CallEnd::Answered(answer) => {
                let settled = words::of_answer(answer);
                if let Some(operation) = answer.followed_operation() {
                    return self.goes_on(call, settled, operation).await;
                }
                self.settle_call(turn, *number, settled).await;
                None
            }
            CallEnd::Failed(failure) => {
                let settled = words::of_failure(name, failure, &|id: &ToolId| names.name_of(id));
                self.settle_call(turn, *number, settled).await;
                None
            }
            // Input is requested by another way: see `needs_input`.
            CallEnd::NeedsInput(_) => None,
        }
    }

    /// A call goes on as an operation.
    async fn goes_on(
        &self,
        call: &TurnCallRun,
        settled: Settled,
        operation: &Arc<str>,
    ) -> Option<Following> {
        if let Some(turns) = self.turns() {
            turns.make_room(settled.weight());
        }
        let settled = Arc::new(settled);
        if !self
            .enter(
                &call.turn,
                call.number,
                TurnPhase::GoesOn(Arc::clone(&settled)),
            )
            .await
        {
            return None;
        }
        Some(Box::pin(self.clone().follow_operation(
            call.clone(),
            settled,
            Arc::clone(operation),
        )))
    }

    /// Sets a phase in which a call waits. If its turn does not need it any more, what it waits for
    /// is ended.
    async fn enter(&self, turn: &Arc<Turn>, number: usize, phase: TurnPhase) -> bool {
        let is_set = turn.set(number, phase.clone());
        if !is_set {
            self.release(phase).await;
        }
        is_set
    }

    /// A call needs input.
    pub(super) fn needs_input(
        self,
        call: TurnCallRun,
        attended: Arc<ActiveCall>,
        input: Arc<PendingInput>,
    ) -> Following {
        let known = Arc::clone(&input.id);
        call.turn.set(call.number, TurnPhase::NeedsInput(input));
        Box::pin(self.follow_input(call, attended, known))
    }

    /// Waits until a call that needed input is over.
    async fn follow_input(self, call: TurnCallRun, attended: Arc<ActiveCall>, mut known: Arc<str>) {
        let Some(stop) = self.parts().map(|parts| parts.stop.clone()) else {
            return;
        };
        let TurnCallRun { turn, number, .. } = &call;
        loop {
            let end = tokio::select! {
                end = attended.next_end(&known) => end,
                () = stop.wait() => return,
            };
            let Some(end) = end else {
                return self
                    .settle_call(turn, *number, words::unknown_outcome())
                    .await;
            };
            if let CallEnd::NeedsInput(input) = &*end {
                known = Arc::clone(&input.id);
                turn.set(*number, TurnPhase::NeedsInput(Arc::clone(input)));
                continue;
            }
            let following = self.ended(&call, &end).await;
            // They hold the result of the tool.
            drop((end, attended));
            if let Some(following) = following {
                following.await;
            }
            return;
        }
    }

    /// Waits until a call was approved and is over, or will never be sent.
    pub(super) async fn follow_approval(
        self,
        turn: Arc<Turn>,
        number: usize,
        id: Arc<str>,
        unneeded: Stop,
    ) {
        let Some(parts) = self.parts() else { return };
        let name = turn.calls.get(number).map_or("", |call| &call.read.name);
        let requester = turn.requester();
        let end = tokio::select! {
            biased;
            () = unneeded.wait() => return,
            end = self.end_by_id(CallId::Approval(&id), &requester, WaitLimits::UNTIL_OVER) => end,
        };
        let settled = match &end {
            Some(CallEnd::Answered(answer)) => words::of_answer(answer),
            Some(CallEnd::Failed(failure)) => {
                words::of_failure(name, failure, &ToString::to_string)
            }
            _ if parts.stop.is_stopped() => return,
            // The approval was forgotten.
            _ => words::unknown_outcome(),
        };
        self.settle_call(&turn, number, settled).await;
    }

    /// Waits until an operation is over.
    async fn follow_operation(self, call: TurnCallRun, begun: Arc<Settled>, id: Arc<str>) {
        let TurnCallRun {
            turn,
            number,
            unneeded,
            ..
        } = &call;
        let requester = turn.requester();
        let end = tokio::select! {
            biased;
            () = unneeded.wait() => return,
            end = self.end_by_id(CallId::Operation(&id), &requester, WaitLimits::UNTIL_OVER) => end,
            // Its caller waits no longer, and the operation goes on without the turn.
            () = turn.until_over() => return,
        };
        // It goes on, or is not known, only if the daemon stops.
        if let Some(CallEnd::Answered(answer)) = end
            && answer.operation.is_some()
        {
            self.settle_call(turn, *number, words::of_operation(&begun, &answer))
                .await;
        }
    }

    /// Deletes stored turns without room as they become too old.
    pub(super) fn forget_left_out_turns(&self) {
        for turn in self
            .turns()
            .map(|turns| turns.left_out().without_room())
            .unwrap_or_default()
        {
            self.0.tasks.spawn(self.clone().forget_left_out_turn(turn));
        }
    }

    async fn forget_left_out_turn(self, turn: LeftOutTurn) {
        let Some(turns) = self.turns() else { return };
        let Some(approvals) = self.approvals() else {
            return;
        };
        let Some(stop) = self.parts().map(|parts| parts.stop.clone()) else {
            return;
        };
        for id in &turn.approvals {
            if let Some(waiting) = approvals.get(id) {
                self.wait_for_approval(waiting, WaitLimits::UNTIL_OVER)
                    .await;
            }
        }
        tokio::select! {
            biased;
            () = stop.wait() => {}
            () = self.0.clock.sleep(turns.limits().keep) => turns.forget_left_out(&turn).await,
        }
    }

    /// Ends a call that is not needed any more, unless it is over.
    pub(super) async fn end_unneeded(&self, turn: &Arc<Turn>, number: usize) {
        let may_have_run = match turn.phase(number) {
            None | Some(TurnPhase::Over(_)) => return,
            Some(TurnPhase::Queued) => false,
            Some(phase) => self.release(phase).await,
        };
        self.settle_call(turn, number, words::not_needed(may_have_run))
            .await;
    }

    /// Ends what an unneeded call left: its approval, or its operation. A call that is under way
    /// was cancelled before; what cannot be cancelled runs on. Returns whether the tool may have
    /// run.
    async fn release(&self, phase: TurnPhase) -> bool {
        match phase {
            TurnPhase::WaitsForApproval(id) => {
                let Some(approvals) = self.approvals() else {
                    return true;
                };
                let _ = approvals.reject(&id, "callsheet", Some(UNNEEDED)).await;
                // A person may have approved it just before.
                let was_not_run = [ApprovalState::Rejected, ApprovalState::Expired];
                approvals
                    .get(&id)
                    .is_none_or(|request| !was_not_run.contains(&request.state))
            }
            TurnPhase::GoesOn(begun) => {
                if let Some(id) = &begun.operation_id {
                    let _ = self.cancel(id).await;
                }
                true
            }
            _ => true,
        }
    }

    pub(super) async fn settle_call(&self, turn: &Arc<Turn>, number: usize, settled: Settled) {
        if let Some(turns) = self.turns() {
            turns.make_room(settled.weight());
        }
        turn.set(number, TurnPhase::Over(Arc::new(settled)));
        self.keep_turn(turn).await;
    }

    pub(super) async fn keep_turn(&self, turn: &Arc<Turn>) {
        if let Some(turns) = self.turns() {
            turns.keep(turn).await;
        }
    }
}
