//! Calls that wait for a modern client to send them again with input, because the tool cannot wait
//! elsewhere: its server keeps the call open meanwhile.
//!
//! They are limited in number and time. One whose client does not come back is cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::calls::active::PendingInput;
use crate::protocols::InputRound;
use crate::runtime::{Clock, Stop, StopTrigger, Tasks};
use crate::server::mcp::caller::CallerEvent;
use crate::server::mcp::refusal::Refusal;

/// The most calls that wait.
const MOST: usize = 256;

/// What a call, or a request that is relayed, ended with.
pub(super) enum LongRequestResult {
    /// The text of its result.
    Complete(String),
    /// Its MCP server needs it again, with input.
    NeedsInput(InputRound),
}

/// The same, or the error of the protocol.
pub(super) type LongRequestEnd = Result<LongRequestResult, Refusal>;

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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        (limit, clock): (Duration, Clock),
        (tasks, stop): (&Tasks, Stop),
    ) -> Result<(), Box<OngoingCall>> {
        let mut calls = self.calls();
        if calls.len() >= MOST {
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
        f.debug_tuple("HeldCalls").field(&self.calls().len()).finish()
    }
}
