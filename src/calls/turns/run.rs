//! Runs the calls of a turn, each by the usual way of a call.
//!
//! The names of all calls are looked up in one snapshot, before the first one is sent.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use super::follow::TurnCallRun;
use super::meaning::TurnNames;
use super::read::ReadCall;
use super::register::{TurnAdmission, TurnError};
use super::request::{TurnRequest, is_id};
use super::settled::{Settled, TurnCallStatus};
use super::turn::{NewTurn, Turn, TurnCall, TurnPhase, TurnSettings};
use super::words;
use crate::calls::approval::binding;
use crate::calls::{
    CallEnd, CallMode, Calls, ExecuteError, Failure, GivenArgumentsError, Request, run_several,
};
use crate::config::TurnsConfig;
use crate::model::{JsonText, ToolId};
use crate::protocols::LogLevel;
use crate::runtime::{Stop, StopTrigger};

/// The calls of a turn that are still to be sent, by their numbers.
type CallsToSend = Vec<(usize, Request)>;

impl Calls {
    /// Begins a turn, or finds the one that was begun with the same request. Its calls go on
    /// whether or not the caller waits.
    pub async fn begin_turn(&self, request: TurnRequest) -> Result<Arc<Turn>, TurnError> {
        // A task of its own, so that it is not cut off with the request: a turn that was added must
        // be run.
        self.0
            .tasks
            .spawn(self.clone().add_turn(request))
            .await
            .unwrap_or(Err(TurnError::Stopping))
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
        if let Some(id) = turn.call_ids().find(|id| self.active().get(id).is_some()) {
            turns.remove(&turn.id);
            // The same request may wait for it already.
            turn.end(&words::id_taken());
            return Err(TurnError::CallTaken {
                turn: turn.id.to_string(),
                call: id,
            });
        }
        if request.id.is_some()
            && let Err(error) = turns.save(&turn).await
        {
            turns.remove(&turn.id);
            // The same request may wait for it already.
            turn.end(&words::not_stored());
            return Err(error.into());
        }
        let calls = self.clone();
        let run = Arc::clone(&turn);
        let parallel = request.parallel;
        self.0
            .tasks
            .spawn(async move { calls.run_turn(run, names, to_send, parallel).await });
        Ok(turn)
    }

    /// Waits until no call of a turn is under way, and then until all are over, or until `patience`
    /// ends, which is not polled before. What is not waited for any longer is ended, if that ends
    /// the turn.
    pub async fn wait_for_turn(&self, turn: &Arc<Turn>, patience: impl Future<Output = ()>) {
        let Some(stop) = self.parts().map(|parts| parts.stop.clone()) else {
            return;
        };
        tokio::select! {
            () = turn.until_quiet() => {}
            () = stop.wait() => return,
        }
        tokio::select! {
            biased;
            () = turn.until_over() => {}
            () = stop.wait() => return,
            () = patience => {}
        }
        turn.close();
        self.keep_turn(turn).await;
    }

    /// Follows the calls of stored turns that wait for approval.
    pub(in crate::calls) fn resume_turns(&self) {
        self.forget_left_out_turns();
        // No call of a stored turn is sent any more, so none becomes needless.
        let (_, unneeded) = StopTrigger::new();
        for turn in self.turns().map(super::Turns::open).unwrap_or_default() {
            for (number, phase) in turn.phases().into_iter().enumerate() {
                if let TurnPhase::WaitsForApproval(id) = phase {
                    let following = self.clone().follow_approval(
                        Arc::clone(&turn),
                        number,
                        id,
                        unneeded.clone(),
                    );
                    self.0.tasks.spawn(following);
                }
            }
        }
    }

    /// A turn whose calls are looked up, with those that are to be sent.
    fn new_turn(
        &self,
        request: &TurnRequest,
        names: &TurnNames,
        limits: &TurnsConfig,
    ) -> (Turn, CallsToSend) {
        let id: Arc<str> = request
            .id
            .clone()
            .unwrap_or_else(|| Uuid::new_v4().to_string())
            .into();
        let mut ids = HashSet::new();
        let mut to_send = Vec::new();
        let mut calls = Vec::new();
        for (number, read) in request.read.calls.iter().enumerate() {
            let is_repeated = read
                .id
                .as_deref()
                .is_some_and(|id| !id.is_empty() && !ids.insert(id));
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
            calls.push((
                TurnCall {
                    read: read.clone(),
                    tool,
                },
                phase,
            ));
        }
        let settings = TurnSettings {
            tells_approvals: request.tells_approvals,
            text_bytes: request
                .text_bytes
                .unwrap_or(limits.max_result_bytes)
                .min(limits.max_result_bytes),
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
    async fn run_turn(
        self,
        turn: Arc<Turn>,
        names: Arc<TurnNames>,
        to_send: CallsToSend,
        parallel: Option<usize>,
    ) {
        let calls = &self;
        let turn = &turn;
        let names = &names;
        let to_send = &to_send;
        let run = |index: usize, unneeded: Stop| async move {
            let Some((number, request)) = to_send.get(index).cloned() else {
                return false;
            };
            let call = TurnCallRun {
                turn: Arc::clone(turn),
                names: Arc::clone(names),
                number,
                unneeded,
            };
            // A task of its own, so that a call is not cut off when it is not needed any more: it
            // is cancelled, and what became of it is known.
            let _ = calls
                .0
                .tasks
                .spawn(calls.clone().run_one(call, request))
                .await;
            turn.decides(number)
        };
        run_several(
            to_send.len(),
            parallel.unwrap_or(usize::MAX),
            run,
            |decides| *decides,
        )
        .await;
        if self.is_stopped() {
            return;
        }
        if turn.is_decided() {
            for (number, _) in to_send {
                self.end_unneeded(turn, *number).await;
            }
        }
        turn.set_run();
    }

    fn is_stopped(&self) -> bool {
        self.parts().is_some_and(|parts| parts.stop.is_stopped())
    }

    /// Runs one call until it is over. One that waits for a person or goes on as an operation is
    /// followed beside the others, unless it competes with them.
    async fn run_one(self, call: TurnCallRun, request: Request) {
        if self.is_stopped() {
            return;
        }
        let TurnCallRun { turn, number, .. } = &call;
        turn.set(*number, TurnPhase::Running);
        let attended = match self.attend_as(&request, Some(turn.call_id(*number)), LogLevel::Info) {
            Ok(attended) => attended,
            Err(error) => {
                let text = format!("{error}. The tool did not run.");
                return self
                    .settle_call(
                        turn,
                        *number,
                        Settled::with_text(TurnCallStatus::Refused, "busy", text),
                    )
                    .await;
            }
        };
        attended.cancel_on(call.unneeded.clone());
        let end = self
            .execute_attended(request, Arc::clone(&attended), None)
            .await;
        let following = match &*end {
            CallEnd::NeedsInput(input) => Some(self.clone().needs_input(
                call.clone(),
                Arc::clone(&attended),
                Arc::clone(input),
            )),
            end => self.ended(&call, end).await,
        };
        // They hold the result of the tool.
        drop((end, attended));
        match following {
            Some(following) if turn.mode == CallMode::All || turn.reports_approval(*number) => {
                // Other calls are not kept waiting by a person.
                self.0.tasks.spawn(following);
            }
            Some(following) => following.await,
            None => {}
        }
    }
}

/// The call that is to be sent, or what is said without sending one.
fn look_up(
    request: &TurnRequest,
    read: &ReadCall,
    names: &TurnNames,
) -> Result<Request, Box<Settled>> {
    let own = request.own_tools.as_ref();
    if read.is_foreign || own.is_some_and(|own| own.contains(&read.name)) {
        return Err(Box::new(Settled::new(TurnCallStatus::NotOurs)));
    }
    // No program can know which of its tools is meant, so the model has to say it.
    if read.name.trim().is_empty() {
        return Err(Box::new(words::nameless()));
    }
    let tool = names
        .find(request.call(&read.name, JsonText::known("{}")))
        .map_err(|refused| {
            Box::new(match refused {
                ExecuteError::Unknown(_) if own.is_none() => Settled::new(TurnCallStatus::NotOurs),
                ExecuteError::Unknown(name) => words::unknown(&name, &names.near(&name)),
                refused => {
                    words::of_failure(&read.name, &Failure::from(&refused), &|id: &ToolId| {
                        names.name_of(id)
                    })
                }
            })
        })?;
    let unreadable =
        |error: &GivenArgumentsError| Box::new(words::unreadable(&read.name, &error.to_string()));
    let arguments = read.arguments.clone().map_err(|error| unreadable(&error))?;
    let made_for = names.seen_version(&tool);
    Ok(Request {
        resolved: Some(tool.id.clone()),
        definition_version: Some(made_for.into()),
        ..request.call(&read.name, arguments)
    })
}
