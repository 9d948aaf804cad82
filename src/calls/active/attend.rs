//! Makes calls whose callers take part, and gives them their input.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::time::Instant;

use super::ActiveCalls;
use super::call::{ActiveCall, CallPhase, NewCall};
use crate::calls::{CallEnd, CallResponse, Calls, Failure, Request};
use crate::model::{CallerInfo, JsonText, WithNextStep};
use crate::protocols::{CallIo, LogLevel};

// What to do next: the ends of the texts below.
const GIVE_OTHER_ID: &str = "give each call an id of its own, such as a random UUID";
const TRY_LATER: &str = "try again later";

/// Why a call was not begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttendError {
    /// The id that the caller gave is none.
    #[error("`call_id` cannot be {0:?}: allowed are 8 to 100 letters, digits, `.`, `_` and `-`")]
    InvalidId(String),
    /// Another call has the id that the caller gave.
    #[error("the call {0:?} exists already; {GIVE_OTHER_ID}")]
    Taken(String),
    /// As many calls as possible are under way.
    #[error("too many calls are under way; {TRY_LATER}")]
    Full,
}

impl WithNextStep for AttendError {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::InvalidId(_) => None,
            Self::Taken(_) => Some(GIVE_OTHER_ID.into()),
            Self::Full => Some(TRY_LATER.into()),
        }
    }
}

/// Why input was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// No call waits for input under this id.
    #[error(
        "no call waits for this input: it was given, declined after its time, or the call ended"
    )]
    Unknown,
}

/// Removes a call that its caller left before it had an answer.
struct Attendance {
    all: ActiveCalls,
    call: Arc<ActiveCall>,
}

impl Drop for Attendance {
    fn drop(&mut self) {
        if !matches!(self.call.phase(), CallPhase::Over(_)) {
            self.call.set(CallPhase::Abandoned);
            self.all.remove(self.call.id());
        }
    }
}

impl Calls {
    /// The calls whose callers take part.
    pub fn active(&self) -> &ActiveCalls {
        &self.0.active
    }

    /// Begins a call whose caller takes part over HTTP, under the id that it gave or a new one. It
    /// belongs to the access that it is requested with.
    pub fn attend(
        &self,
        request: &Request,
        id: Option<String>,
        log_level: LogLevel,
    ) -> Result<Arc<ActiveCall>, AttendError> {
        let call = self.attend_as(request, id, log_level)?;
        // Only now: a turn is added first and then looks for calls with the ids of its own, so one
        // of both sees the other.
        if self.turns().is_some_and(|turns| turns.has_call(call.id())) {
            self.0.active.remove(call.id());
            return Err(AttendError::Taken(call.id().to_string()));
        }
        Ok(call)
    }

    /// The same for a call that may have the id of a call of a turn, because it is that call.
    pub(in crate::calls) fn attend_as(
        &self,
        request: &Request,
        id: Option<String>,
        log_level: LogLevel,
    ) -> Result<Arc<ActiveCall>, AttendError> {
        let new = NewCall {
            tool_name: request.name.as_str().into(),
            caller: CallerInfo {
                chat: request.chat.as_deref().map(Into::into),
                profile: request.profile.as_deref().map(Into::into),
                permission: request.permission,
                user_id: request.user_id.clone(),
                client: request.shown_client(),
            },
            owner: Arc::clone(&request.requester.access),
            log_level,
            clock: self.0.clock,
            hub: self.parts().map(|parts| parts.hub.clone()),
            input_timeout: self.0.config.load().input_timeout,
        };
        self.0.active.add(id, |id| ActiveCall::new(id, new))
    }

    /// Makes a call that was begun, and waits until it is over, needs input, or the deadline has
    /// passed; then it goes on under its id. If this future is dropped before, the caller went
    /// away.
    pub(in crate::calls) async fn execute_attended(
        &self,
        request: Request,
        call: Arc<ActiveCall>,
        deadline: Option<Instant>,
    ) -> Arc<CallEnd> {
        let attendance = Attendance {
            all: self.0.active.clone(),
            call: Arc::clone(&call),
        };
        let calls = self.clone();
        let caller: Arc<dyn CallIo> = Arc::<ActiveCall>::clone(&call);
        let request = Request {
            call_id: Some(Arc::clone(call.id())),
            ..request
        };
        // Boxed, because it may go on as a task of its own.
        let mut running = Box::pin(async move { calls.execute_for(request, Some(caller)).await });
        let end = tokio::select! {
            biased;
            ended = &mut running => {
                let end = Arc::new(CallEnd::from(ended));
                call.set(CallPhase::Over(Arc::clone(&end)));
                attendance.all.remove(call.id());
                return end;
            }
            input = call.first_input() => CallEnd::NeedsInput(input),
            () = self.past(deadline) => CallEnd::Failed(Box::new(Failure::overdue(call.tool_name()))),
        };
        self.0.tasks.spawn(async move {
            // The table of calls counts the result from here on.
            let ended = running.await.map(CallResponse::without_reservation);
            let end = CallEnd::from(ended);
            attendance
                .all
                .keep(&attendance.call, CallPhase::Over(Arc::new(end)));
        });
        Arc::new(end)
    }

    /// Gives the input that a call waits for, the text of one JSON object, and waits until the call
    /// is over or needs more. A call that `may_see` refuses by its owner counts as unknown.
    pub async fn give_input(
        &self,
        id: &str,
        result: JsonText,
        may_see: impl Fn(&str) -> bool,
    ) -> Result<(Arc<ActiveCall>, Arc<CallEnd>), InputError> {
        let mut waiting = self.0.active.waiting().into_iter();
        let waiting = waiting.find(|(call, input)| *input.id == *id && may_see(call.owner()));
        let (call, input) = waiting.ok_or(InputError::Unknown)?;
        if !input.give(result) {
            return Err(InputError::Unknown);
        }
        let end = call.next_end(id).await.ok_or(InputError::Unknown)?;
        Ok((call, end))
    }
}
