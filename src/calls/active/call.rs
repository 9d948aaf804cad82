//! One call whose caller takes part.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};

use super::pace::EventPace;
use super::pending_input::PendingInput;
use crate::calls::CallEnd;
use crate::calls::kept::KeptChanges;
use crate::events::{Event, Hub};
use crate::model::{CallEvent, CallEventKind, CallerInfo, JsonText};
use crate::protocols::{
    CallIo, CallLog, CallProgress, CallerOffers, Cancelled, InputWanted, LogLevel,
};
use crate::runtime::{Clock, Stop, StopTrigger};

/// The largest log message that is sent to the caller, in bytes. A larger one is left out.
const LOG_MAX: usize = 16 * 1024;

/// A call whose caller takes part.
#[derive(Debug)]
pub struct ActiveCall {
    id: Arc<str>,
    tool_name: Arc<str>,
    caller: CallerInfo,
    owner: Arc<str>,
    offers: CallerOffers,
    phase: Mutex<CallPhase>,
    changes: KeptChanges,
    cancelling: StopTrigger,
    cancelled: Stop,
    /// Requested once another call makes this one needless.
    unneeded: OnceLock<Stop>,
    pace: Mutex<EventPace>,
    clock: Clock,
    hub: Option<Hub>,
    /// How long its caller has to give input.
    input_timeout: Duration,
}

/// How far a call is.
#[derive(Debug, Clone)]
pub enum CallPhase {
    /// It waits for its turn, or its tool runs.
    Running,
    /// Its tool waits for input of the caller.
    NeedsInput(Arc<PendingInput>),
    /// It is over.
    Over(Arc<CallEnd>),
    /// Its caller went away: no input comes.
    Abandoned,
}

/// What a call is made of when it begins.
pub(super) struct NewCall {
    pub(super) tool_name: Arc<str>,
    pub(super) caller: CallerInfo,
    pub(super) owner: Arc<str>,
    pub(super) log_level: LogLevel,
    pub(super) clock: Clock,
    pub(super) hub: Option<Hub>,
    pub(super) input_timeout: Duration,
}

impl ActiveCall {
    pub(super) fn new(id: Arc<str>, new: NewCall) -> Self {
        let NewCall {
            tool_name,
            caller,
            owner,
            log_level,
            clock,
            hub,
            input_timeout,
        } = new;
        let (cancelling, cancelled) = StopTrigger::new();
        Self {
            id,
            tool_name,
            caller,
            owner,
            offers: CallerOffers {
                elicitation_form: true,
                log_level: Some(log_level),
                ..CallerOffers::default()
            },
            phase: Mutex::new(CallPhase::Running),
            changes: KeptChanges::default(),
            cancelling,
            cancelled,
            unneeded: OnceLock::new(),
            pace: Mutex::new(EventPace::new(clock.now())),
            clock,
            hub,
            input_timeout,
        }
    }

    /// Its id.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The name of the tool that the caller used.
    pub fn tool_name(&self) -> &str {
        &self.tool_name
    }

    /// Where it comes from.
    pub fn caller_info(&self) -> &CallerInfo {
        &self.caller
    }

    /// The identity that it belongs to.
    pub fn owner(&self) -> &Arc<str> {
        &self.owner
    }

    /// How far it is.
    pub fn phase(&self) -> CallPhase {
        self.locked().clone()
    }

    /// What wakes those that wait for it.
    pub(super) fn changes(&self) -> &KeptChanges {
        &self.changes
    }

    /// The input that it waits for.
    pub fn pending_input(&self) -> Option<Arc<PendingInput>> {
        match &*self.locked() {
            CallPhase::NeedsInput(input) => Some(Arc::clone(input)),
            _ => None,
        }
    }

    /// Cancels it: its scenario is informed as its protocol has it, and it is not tried again.
    pub fn cancel(&self) {
        self.cancelling.stop();
    }

    /// Cancels it as soon as `stop` is requested. Only the first of these counts.
    pub(in crate::calls) fn cancel_on(&self, stop: Stop) {
        let _ = self.unneeded.set(stop);
    }

    /// Waits until the call needs input. Never completes for one that ends without.
    pub(super) async fn first_input(&self) -> Arc<PendingInput> {
        self.changes.wait_for(|| self.pending_input()).await
    }

    /// Waits until the call needs other input than `known`, or is over. `None` if its caller went
    /// away, or the daemon is stopping.
    pub(in crate::calls) async fn next_end(&self, known: &str) -> Option<Arc<CallEnd>> {
        let next = |phase: CallPhase| match phase {
            CallPhase::Running => None,
            CallPhase::NeedsInput(input) if *input.id == *known => None,
            CallPhase::NeedsInput(input) => Some(Some(Arc::new(CallEnd::NeedsInput(input)))),
            CallPhase::Over(end) => Some(Some(end)),
            CallPhase::Abandoned => Some(None),
        };
        self.changes.wait_for(|| next(self.phase())).await
    }

    pub(super) fn set(&self, phase: CallPhase) {
        *self.locked() = phase;
        self.changes.note();
    }

    /// Moves it on from a phase for which `holds`.
    fn move_on(&self, holds: impl Fn(&CallPhase) -> bool, next: CallPhase) {
        let mut phase = self.locked();
        if holds(&phase) {
            *phase = next;
            drop(phase);
            self.changes.note();
        }
    }

    fn locked(&self) -> MutexGuard<'_, CallPhase> {
        self.phase.lock()
    }

    /// Sends an event to the caller, unless too many came just now.
    fn publish(&self, what: CallEventKind) {
        let passes = matches!(
            what,
            CallEventKind::InputNeeded(_) | CallEventKind::InputOver(_)
        ) || self.pace.lock().take(self.clock.now());
        let Some(hub) = self.hub.as_ref().filter(|_| passes) else {
            return;
        };
        hub.try_publish(Event::Call(Arc::new(CallEvent {
            call_id: Arc::clone(&self.id),
            owner: Arc::clone(&self.owner),
            tool_name: Arc::clone(&self.tool_name),
            caller: self.caller.clone(),
            at: self.clock.wall(),
            what,
        })));
    }

    async fn wait_for_input(&self, wanted: &InputWanted) -> Option<JsonText> {
        if self.is_abandoned() {
            return None;
        }
        let expires_at = self.clock.wall_at(self.clock.now() + self.input_timeout);
        let (pending, given) = PendingInput::new(wanted.clone(), expires_at);
        let id = Arc::clone(&pending.id);
        let _waiting = InputTurn {
            call: self,
            id: Arc::clone(&id),
        };
        self.move_on(
            |phase| !matches!(phase, CallPhase::Abandoned),
            CallPhase::NeedsInput(Arc::new(pending)),
        );
        self.publish(CallEventKind::InputNeeded(id));
        tokio::select! {
            given = given => given.ok(),
            () = self.clock.sleep(self.input_timeout) => None,
            () = self.changes.wait_until(|| self.is_abandoned()) => None,
        }
    }

    fn is_abandoned(&self) -> bool {
        matches!(*self.locked(), CallPhase::Abandoned)
    }
}

/// A tool that waits for input, until this is dropped.
struct InputTurn<'a> {
    call: &'a ActiveCall,
    id: Arc<str>,
}

impl Drop for InputTurn<'_> {
    fn drop(&mut self) {
        self.call.move_on(
            |phase| matches!(phase, CallPhase::NeedsInput(_)),
            CallPhase::Running,
        );
        self.call
            .publish(CallEventKind::InputOver(Arc::clone(&self.id)));
    }
}

impl CallIo for ActiveCall {
    fn offers(&self) -> CallerOffers {
        self.offers
    }

    fn progress(&self, progress: CallProgress) {
        let CallProgress {
            done,
            total,
            message,
        } = progress;
        self.publish(CallEventKind::Progress {
            done,
            total,
            message,
        });
    }

    fn log(&self, line: CallLog) {
        if line.data.get().len() <= LOG_MAX {
            let CallLog {
                level,
                logger,
                data,
            } = line;
            self.publish(CallEventKind::Log {
                level: level.as_str(),
                logger,
                data,
            });
        }
    }

    fn input<'a>(&'a self, wanted: &'a InputWanted) -> BoxFuture<'a, Option<JsonText>> {
        Box::pin(self.wait_for_input(wanted))
    }

    fn cancelled(&self) -> BoxFuture<'static, Cancelled> {
        let cancelled = self.cancelled.clone();
        let unneeded = self.unneeded.get().cloned();
        Box::pin(async move {
            match unneeded {
                None => cancelled.wait().await,
                Some(unneeded) => tokio::select! {
                    () = cancelled.wait() => {}
                    () = unneeded.wait() => {}
                },
            }
            Cancelled::ByCaller
        })
    }
}
