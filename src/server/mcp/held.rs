//! Calls that wait for a modern client to send them again with input, because the tool cannot wait
//! elsewhere: its server keeps the call open meanwhile.
//!
//! They are limited in number and time. One whose client does not come back is cancelled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::calls::active::PendingInput;
use crate::protocols::InputRound;
use crate::runtime::{Clock, Stop, StopTrigger, Tasks};
use crate::server::mcp::caller::CallerEvent;
use crate::server::mcp::refusal::Refusal;

/// The most calls that wait.
const HELD_CALLS_MAX: usize = 256;

/// What a call, or a request that is relayed, ended with.
pub(super) enum LongRequestResult {
    /// The text of its result.
    Complete(String),
    /// Its MCP server needs it again, with input.
    NeedsInput(InputRound),
}

/// The same, or the error of the protocol.
pub(super) type LongRequestEnd = Result<LongRequestResult, Refusal>;

/// The bytes of what a request ended with.
pub(super) fn bytes_of(end: &LongRequestEnd) -> usize {
    match end {
        Ok(LongRequestResult::Complete(result)) => result.len(),
        Ok(LongRequestResult::NeedsInput(round)) => {
            round.by_key.get().len() + round.state.as_ref().map_or(0, String::len)
        }
        Err(refusal) => refusal.error.bytes(),
    }
}

/// A call under way.
pub(super) struct OngoingCall {
    pub(super) events: mpsc::Receiver<CallerEvent>,
    pub(super) end: JoinHandle<LongRequestEnd>,
    /// Of a modern client: when the request for the call ends early, the call is cancelled.
    pub(super) _on_drop: Option<CancelOnDrop>,
    /// Of a legacy client: completes when it cancels the call.
    pub(super) cancelled: Option<Stop>,
    /// The input that it waits for while it is held.
    pub(super) input: Option<PendingInput>,
}

/// Cancels a call when it is dropped.
pub(super) struct CancelOnDrop(pub(super) StopTrigger);

/// All calls that wait, by their handles. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct HeldCalls(Arc<Mutex<HashMap<String, OngoingCall>>>);

impl HeldCalls {
    fn calls(&self) -> MutexGuard<'_, HashMap<String, OngoingCall>> {
        self.0.lock()
    }

    /// A new handle. A call that is held again gets another one, so that what ends the first wait
    /// does not end the second.
    pub(super) fn handle() -> String {
        // 122 random bits from the system.
        Uuid::new_v4().simple().to_string()
    }

    /// Keeps a call under this handle for at most so long. Gives it back if too many wait.
    pub(super) fn hold(
        &self,
        handle: String,
        call: OngoingCall,
        limit: Duration,
        clock: Clock,
        tasks: &Tasks,
        stop: Stop,
    ) -> Result<(), Box<OngoingCall>> {
        let mut calls = self.calls();
        if calls.len() >= HELD_CALLS_MAX {
            return Err(Box::new(call));
        }
        calls.insert(handle.clone(), call);
        let all = self.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = clock.sleep(limit) => {}
                () = stop.wait() => {}
            }
            all.calls().remove(&handle);
        });
        Ok(())
    }

    /// Takes a call that waits.
    pub(super) fn take(&self, handle: &str) -> Option<OngoingCall> {
        self.calls().remove(handle)
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl std::fmt::Debug for HeldCalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HeldCalls")
            .field(&self.calls().len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::JsonText;
    use crate::protocols::{InputMethod, InputWanted};

    /// A call that waits, and what shows that it was cancelled.
    fn held(tasks: &Tasks) -> (OngoingCall, Stop) {
        let (trigger, cancelled) = StopTrigger::new();
        let (_, events) = mpsc::channel(1);
        let wanted = InputWanted {
            method: InputMethod::Elicitation,
            params: JsonText::known("{}"),
        };
        let (input, _given) = PendingInput::new(wanted, Timestamp::UNIX_EPOCH);
        let call = OngoingCall {
            events,
            end: tasks.spawn(std::future::pending()),
            _on_drop: Some(CancelOnDrop(trigger)),
            cancelled: None,
            input: Some(input),
        };
        (call, cancelled)
    }

    /// Otherwise no client could give input any more as soon as so many have left.
    #[tokio::test(start_paused = true)]
    async fn a_call_whose_client_does_not_come_back_is_cancelled_and_makes_room() {
        let tasks = Tasks::new();
        let (_trigger, stop) = StopTrigger::new();
        let calls = HeldCalls::default();
        let clock = Clock::system();
        let limit = Duration::from_secs(60);
        let hold = |handle: &str| {
            let (call, cancelled) = held(&tasks);
            calls
                .hold(handle.to_owned(), call, limit, clock, &tasks, stop.clone())
                .map(|()| cancelled)
        };
        let mut cancelled = Vec::new();
        for number in 0..HELD_CALLS_MAX {
            cancelled.push(hold(&number.to_string()).ok().expect("room"));
        }
        assert!(hold("one too many").is_err());
        clock.sleep(limit / 2).await;
        let taken = calls.take("0").expect("it waits");
        assert!(hold("in its place").is_ok());
        clock.sleep(limit / 2 + Duration::from_millis(1)).await;
        assert!(calls.take("1").is_none());
        assert!(cancelled[1..].iter().all(Stop::is_stopped));
        assert!(!cancelled[0].is_stopped(), "its client came back");
        assert!(
            calls.take("in its place").is_some(),
            "its own time is not over"
        );
        drop(taken);
        assert!(cancelled[0].is_stopped());
    }
}
