//! Stopping: one trigger, many listeners.

use tokio_util::sync::CancellationToken;

/// A signal for tasks to stop. Clone it freely; waiting on it is cancel-safe.
#[derive(Debug, Clone)]
pub struct Stop(CancellationToken);

/// The other end of [`Stop`]: triggers it once and for all. Dropping it does not trigger it.
#[derive(Debug, Clone)]
pub struct StopTrigger(CancellationToken);

impl StopTrigger {
    /// A trigger and its listener.
    pub fn new() -> (Self, Stop) {
        let token = CancellationToken::new();
        (Self(token.clone()), Stop(token))
    }

    /// Signals every task to stop. A second call has no effect.
    pub fn stop(&self) {
        self.0.cancel();
    }
}

impl Stop {
    /// Completes once stopping was requested, even before the call.
    pub async fn wait(&self) {
        self.0.cancelled().await;
    }

    /// A trigger and its listener for one part, which also stops when this one does.
    pub fn child(&self) -> (StopTrigger, Stop) {
        let token = self.0.child_token();
        (StopTrigger(token.clone()), Self(token))
    }

    /// Whether stopping was requested.
    pub fn is_stopped(&self) -> bool {
        self.0.is_cancelled()
    }
}
