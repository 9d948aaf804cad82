//! Runs the calls of a turn, each by the usual way of a call, and follows those that wait for a
//! person or go on as operations.
//!
//! The names of all calls are looked up in one snapshot, before the first one is sent.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::meaning::TurnNames;
use super::read::ReadCall;
use super::register::{TurnAdmission, TurnError};
use super::request::{TurnRequest, is_id};
use super::settled::{Settled, TurnCallStatus};
use super::turn::{NewTurn, Turn, TurnCall, TurnPhase, TurnSettings};
use super::words;
use crate::calls::active::{ActiveCall, Attended, CallPhase};
use crate::calls::approval::binding;
use crate::calls::track::FollowUp;
use crate::calls::{CallMode, CallResponse, Calls, ExecuteError, GivenArgumentsError, Request, run_several};
use crate::config::TurnsConfig;
use crate::model::ToolId;
use crate::protocols::LogLevel;
use crate::runtime::Stop;

/// How long one look at an approval or operation lasts. Both end, so this only bounds the wait.
const LOOK: Duration = Duration::from_secs(600);
/// Why a call that waits for approval is rejected when its turn needs it no more.
const UNNEEDED: &str = "another call of the same turn was enough";

/// The calls of a turn that are still to be sent, by their numbers.
type CallsToSend = Vec<(usize, Request)>;

/// Waits until a call that did not end at once is over.
type Following = BoxFuture<'static, ()>;

impl Calls {
    /// Begins a turn, or finds the one that was begun with the same request. Its calls go on
    /// whether or not the caller waits.
    pub async fn begin_turn(&self, request: TurnRequest) -> Result<Arc<Turn>, TurnError> {
        // A task of its own, so that it is not cut off with the request: a turn that was added must
        // be run.
        self.0.tasks.spawn(self.clone().add_turn(request)).await.unwrap_or(Err(TurnError::Stopping))
    }

    async fn add_turn(self, request: TurnRequest) -> Result<Arc<Turn>, TurnError> {
        let turns = self.turns().ok_or(TurnError::Stopping)?;
        if let Some(id) = request.id.as_ref().filter(|id| !is_id(id)) {
            return Err(TurnError::InvalidId(id.clone()));
        }
        let names = Arc::new(TurnNames::new(
            self.0.reader.snapshot(),
            self.0.reader.history(),
            request.scope(),
            request.revision.clone(),
        ));
        let (turn, to_send) = self.new_turn(&request, &names, &turns.limits());
        // A turn that was begun stays, whatever its tools declare since then.
        if turns.get(&turn.id, &turn.owner).is_none() {
            let requests: Vec<Request> = to_send.iter().map(|(_, call)| call.clone()).collect();
            self.may_compete(&requests, request.mode)?;
        }
        let turn = match turns.admit(turn)? {
            TurnAdmission::Known(turn) => return Ok(turn),
            TurnAdmission::New(turn) => turn,
        };
        if request.id.is_some()
            && let Err(error) = turns.save(&turn).await
        {
            turns.remove(&turn.id);
            // The same request may wait for it already.
            turn.end(&words::not_stored());
            return Err(error.into());
        }
        let (calls, run, parallel) = (self.clone(), Arc::clone(&turn), request.parallel);
        self.0.tasks.spawn(async move { calls.run_turn(run, names, to_send, parallel).await });
        Ok(turn)
    }

    /// Waits until no call of a turn is under way, and then for at most `wait` until all are over.
    /// What is not waited for any longer is ended, if that ends the turn.
    pub async fn wait_for_turn(&self, turn: &Turn, wait: Duration) {
        let Some(stop) = self.parts().map(|parts| parts.stop.clone()) else { return };
        tokio::select! {
            () = turn.until_quiet() => {}
            () = stop.wait() => return,
        }
        if !wait.is_zero() {
            tokio::select! {
                () = turn.until_over() => {}
                () = self.0.clock.sleep(wait) => {}
                () = stop.wait() => return,
            }
        }
        turn.close();
        self.keep_turn(turn).await;
    }

    /// Follows the calls of stored turns that wait for approval.
    pub(in crate::calls) fn resume_turns(&self) {
        for turn in self.turns().map(super::Turns::open).unwrap_or_default() {
            for (number, phase) in turn.phases().into_iter().enumerate() {
                if let TurnPhase::WaitsForApproval(id) = phase {
                    self.0.tasks.spawn(self.clone().follow_approval(Arc::clone(&turn), number, id));
                }
            }
        }
    }

    /// A turn whose calls are looked up, with those that are to be sent.
    fn new_turn(&self, request: &TurnRequest, names: &TurnNames, limits: &TurnsConfig) -> (Turn, CallsToSend) {
        let id: Arc<str> = request.id.clone().unwrap_or_else(|| Uuid::new_v4().to_string()).into();
        let (mut ids, mut to_send, mut calls) = (HashSet::new(), Vec::new(), Vec::new());
        for (number, read) in request.read.calls.iter().enumerate() {
            let is_repeated = read.id.as_deref().is_some_and(|id| !id.is_empty() && !ids.insert(id));
            let looked_up = if is_repeated {
                Err(Box::new(words::repeated_id()))
            } else if number >= limits.max_calls {
                Err(Box::new(words::too_many(limits.max_calls)))
            } else {
                look_up(request, read, names)
            };
            let (tool, phase) = match looked_up {
                Ok(call) => {
                    let tool = call.resolved.clone();
                    to_send.push((number, call));
                    (tool, TurnPhase::Queued)
                }
                Err(settled) => (None, TurnPhase::Over(Arc::from(settled))),
            };
            calls.push((TurnCall { read: read.clone(), tool }, phase));
        }
        let settings = TurnSettings {
            tells_approvals: request.tells_approvals,
            text_bytes: request.text_bytes.unwrap_or(limits.max_result_bytes).min(limits.max_result_bytes),
            result_bytes: limits.max_result_bytes,
            model: request.read.model.clone(),
            is_revision_forgotten: names.is_forgotten(),
        };
        let turn = Turn::new(NewTurn {
            id,
            owner: Arc::clone(&request.owner),
            digest: binding::digest(&request.identity()),
            format: request.format,
            begun_at: self.0.clock.wall(),
            settings,
            mode: request.mode,
            calls,
        });
        (turn, to_send)
    }

    /// Sends the calls in their order, at most `parallel` at once. Where one may make the others
    /// needless, a call that waits for a person or an operation keeps its place.
    async fn run_turn(self, turn: Arc<Turn>, names: Arc<TurnNames>, to_send: CallsToSend, parallel: Option<usize>) {
        let (calls, turn, names, to_send) = (&self, &turn, &names, &to_send);
        let run = |index: usize, stop: Stop| async move {
            let Some((number, request)) = to_send.get(index).cloned() else { return false };
            // A task of its own, so that a call is not cut off when it is not needed any more: it
            // is cancelled, and what became of it is known.
            let run = calls.clone().run_one(Arc::clone(turn), Arc::clone(names), (number, request), stop);
            match calls.0.tasks.spawn(run).await.ok().flatten() {
                Some(following) if turn.mode == CallMode::All || turn.reports_approval(number) => {
                    // Other calls are not kept waiting by a person.
                    calls.0.tasks.spawn(following);
                }
                Some(following) => following.await,
                None => {}
            }
            turn.has_result(number)
        };
        let at_once = parallel.unwrap_or(usize::MAX);
        let ended = run_several(turn.mode, (to_send.len(), at_once), run, |succeeded| *succeeded).await;
        if self.is_stopped() {
            return;
        }
        for ((number, _), ended) in to_send.iter().zip(ended) {
            if ended.is_none() {
                self.end_unneeded(turn, *number).await;
            }
        }
        turn.set_run();
    }

    /// Ends a call that is not needed any more. One that is under way was cancelled already.
    async fn end_unneeded(&self, turn: &Turn, number: usize) {
        let Some(before) = turn.phases().into_iter().nth(number) else { return };
        let was_begun = !matches!(before, TurnPhase::Queued | TurnPhase::WaitsForApproval(_));
        self.release(before).await;
        self.settle(turn, number, words::not_needed(was_begun)).await;
    }

    /// Ends what an unneeded call left: its approval, or its operation. What cannot be ended runs
    /// on, as the words for such a call say.
    async fn release(&self, phase: TurnPhase) {
        match phase {
            TurnPhase::WaitsForApproval(id) => {
                if let Some(approvals) = self.approvals() {
                    let _ = approvals.reject(&id, "callsheet", Some(UNNEEDED)).await;
                }
            }
            TurnPhase::GoesOn(begun) => {
                if let Some(id) = &begun.operation_id {
                    let _ = self.cancel(id).await;
                }
            }
            _ => {}
        }
    }

    fn is_stopped(&self) -> bool {
        self.parts().is_some_and(|parts| parts.stop.is_stopped())
    }

    /// Runs one call until it is over, or waits for a person or an operation.
    async fn run_one(
        self,
        turn: Arc<Turn>,
        names: Arc<TurnNames>,
        (number, request): (usize, Request),
        stop: Stop,
    ) -> Option<Following> {
        if self.is_stopped() {
            return None;
        }
        turn.set(number, TurnPhase::Running);
        let call = match self.attend(&request, Some(turn.call_id(number)), LogLevel::Info) {
            Ok(call) => call,
            Err(error) => {
                let text = format!("{error}. The tool did not run.");
                self.settle(&turn, number, Settled::with_text(TurnCallStatus::Refused, "busy", text)).await;
                return None;
            }
        };
        call.cancel_on(stop);
        match self.execute_attended(request, Arc::clone(&call)).await {
            Attended::Over(ended) => self.ended(&turn, &names, number, &ended).await,
            Attended::NeedsInput(input) => {
                turn.set(number, TurnPhase::NeedsInput(input));
                Some(Box::pin(self.follow_input(turn, names, number, call)))
            }
        }
    }

    /// A call was answered, refused, or waits for approval.
    async fn ended(
        &self,
        turn: &Arc<Turn>,
        names: &TurnNames,
        number: usize,
        ended: &Result<CallResponse, ExecuteError>,
    ) -> Option<Following> {
        let name = turn.calls.get(number).map_or("", |call| &call.read.name);
        if let Err(ExecuteError::ApprovalRequired { waiting: Some(waiting), .. }) = ended {
            let id = Arc::clone(&waiting.id);
            let phase = TurnPhase::WaitsForApproval(Arc::clone(&id));
            if !turn.set(number, phase.clone()) {
                self.release(phase).await;
                return None;
            }
            // The turn outlives a restart as the approval does.
            if let Some(turns) = self.turns()
                && let Err(error) = turns.save(turn).await
            {
                tracing::error!(error = %error, "a turn that waits for approval could not be stored");
            }
            return Some(Box::pin(self.clone().follow_approval(Arc::clone(turn), number, id)));
        }
        let settled = words::of_call(name, ended, &|id: &ToolId| names.name_of(id));
        let Ok(CallResponse { going: FollowUp::Followed(operation), .. }) = ended else {
            self.settle(turn, number, settled).await;
            return None;
        };
        let settled = Arc::new(settled);
        let phase = TurnPhase::GoesOn(Arc::clone(&settled));
        if !turn.set(number, phase.clone()) {
            self.release(phase).await;
            return None;
        }
        let id = Arc::clone(&operation.id);
        Some(Box::pin(self.clone().follow_operation(Arc::clone(turn), number, settled, id)))
    }

    async fn settle(&self, turn: &Turn, number: usize, settled: Settled) {
        turn.set(number, TurnPhase::Over(Arc::new(settled)));
        self.keep_turn(turn).await;
    }

    async fn keep_turn(&self, turn: &Turn) {
        if let Some(turns) = self.turns() {
            turns.keep(turn).await;
        }
    }

    /// Waits until a call that needed input is over.
    async fn follow_input(self, turn: Arc<Turn>, names: Arc<TurnNames>, number: usize, call: Arc<ActiveCall>) {
        let Some(stop) = self.parts().map(|parts| parts.stop.clone()) else { return };
        let mut known: Arc<str> = call.pending_input().map_or_else(|| "".into(), |input| Arc::clone(&input.id));
        loop {
            let phase = tokio::select! {
                phase = call.settled(&known) => phase,
                () = stop.wait() => return,
            };
            match phase {
                CallPhase::Over(ended) => {
                    if let Some(following) = self.ended(&turn, &names, number, &ended).await {
                        following.await;
                    }
                    return;
                }
                CallPhase::NeedsInput(input) => {
                    known = Arc::clone(&input.id);
                    turn.set(number, TurnPhase::NeedsInput(input));
                }
                CallPhase::Running | CallPhase::Abandoned => {
                    return self.settle(&turn, number, words::unknown_outcome()).await;
                }
            }
        }
    }

    /// Waits until a call was approved and is over, or will never be sent.
    async fn follow_approval(self, turn: Arc<Turn>, number: usize, id: Arc<str>) {
        let (Some(approvals), Some(parts)) = (self.approvals(), self.parts()) else { return };
        let name = turn.calls.get(number).map_or("", |call| &call.read.name);
        let settled = loop {
            let Some(request) = approvals.get(&id) else { break words::unknown_outcome() };
            let request = approvals.wait_until_over(request, LOOK).await;
            if let Some(settled) = words::of_approval(name, &request) {
                approvals.set_collected(&id);
                break settled;
            }
            if parts.stop.is_stopped() {
                return;
            }
        };
        self.settle(&turn, number, settled).await;
    }

    /// Waits until an operation is over.
    async fn follow_operation(self, turn: Arc<Turn>, number: usize, begun: Arc<Settled>, id: Arc<str>) {
        let (Some(operations), Some(parts)) = (self.operations(), self.parts()) else { return };
        while let Some(operation) = operations.wait_until_over(&id, LOOK).await {
            if let Some(settled) = words::of_operation(&begun, &operation) {
                return self.settle(&turn, number, settled).await;
            }
            if parts.stop.is_stopped() || turn.is_over() {
                return;
            }
        }
    }
}

/// The call that is to be sent, or what is said without sending one.
fn look_up(request: &TurnRequest, read: &ReadCall, names: &TurnNames) -> Result<Request, Box<Settled>> {
    let own = request.own_tools.as_ref();
    if read.is_foreign || own.is_some_and(|own| own.contains(&read.name)) {
        return Err(Box::new(Settled::new(TurnCallStatus::NotOurs)));
    }
    let tool = names.find(&read.name).map_err(|refused| {
        Box::new(match refused {
            ExecuteError::Unknown(_) if own.is_none() => Settled::new(TurnCallStatus::NotOurs),
            ExecuteError::Unknown(name) => words::unknown(&name, &names.near(&name)),
            refused => words::of_call(&read.name, &Err(refused), &|id: &ToolId| names.name_of(id)),
        })
    })?;
    let unreadable = |error: &GivenArgumentsError| Box::new(words::unreadable(&read.name, &error.to_string()));
    let arguments = read.arguments.clone().map_err(|error| unreadable(&error))?;
    Ok(Request { resolved: Some(tool.id.clone()), ..request.call(&read.name, arguments) })
}
