//! The caller of one call, as far as the call can communicate with it while it runs.
//!
//! Texts of a tool go to its caller and nowhere else. The log only says that there were some.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::model::ToolId;
use crate::protocols::{
    CallIo, CallLog, CallProgress, CallerOffers, Cancelled, InputRefused, InputReply, InputWanted, TraceContext,
};
use crate::runtime::{Clock, Stop, StopTrigger};

/// The part that a caller may take in its running call. Every method has a default for callers that
/// take no part.
pub trait Caller: Send + Sync {
    /// What the caller can do. A scenario requests nothing else of it. By default nothing.
    fn offers(&self) -> CallerOffers {
        CallerOffers::default()
    }

    /// The trace that the call belongs to. By default none.
    fn trace(&self) -> Option<&TraceContext> {
        None
    }

    /// The tool reported its progress.
    fn progress(&self, progress: CallProgress) {
        let _ = progress;
    }

    /// The tool sent a log message, at least as severe as the caller's offers say.
    fn log(&self, line: CallLog) {
        let _ = line;
    }

    /// The tool needs input to continue, and waits for it. Only what the caller offers is
    /// requested. By default it is refused.
    fn input<'a>(&'a self, wanted: &'a InputWanted) -> BoxFuture<'a, Result<InputReply, InputRefused>> {
        let _ = wanted;
        Box::pin(std::future::ready(Err(InputRefused)))
    }

    /// Completes when the caller does not want the call any more. The call ends as its scenario
    /// ends it, and is not tried again. Requested several times during a call: each of these
    /// futures completes, also one that is made after the caller cancelled.
    fn cancelled(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// The connection between a running call and its caller.
pub(super) struct CallLine {
    tool: ToolId,
    caller: Option<Arc<dyn Caller>>,
    gone: Stop,
    clock: Clock,
    /// How long the caller was waited for before, and since when it is waited for now.
    waits: Mutex<(Duration, Option<Instant>)>,
}

/// Held by the task that waits for the outcome of a call. If it is dropped before the call is over,
/// the caller went away.
pub(super) struct CallerPresence(StopTrigger);

impl CallLine {
    /// A line to this caller, if there is one, and its presence.
    pub(super) fn new(tool: ToolId, caller: Option<Arc<dyn Caller>>, clock: Clock) -> (Arc<Self>, CallerPresence) {
        let (trigger, gone) = StopTrigger::new();
        (Arc::new(Self { tool, caller, gone, clock, waits: Mutex::default() }), CallerPresence(trigger))
    }

    /// How long the tool has waited for input of the caller. That is not the tool's time.
    pub(super) fn waited(&self) -> Duration {
        let (before, since) = *self.waits();
        before + since.map_or(Duration::ZERO, |since| self.clock.now() - since)
    }

    /// Whether the caller cancelled the call, so that its failure says nothing of the scenario.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled_by_caller().now_or_never().is_some()
    }

    /// Completes when the tool has had so much time since `began`, which is now. Cancel-safe.
    pub(super) async fn expired(&self, began: Instant, limit: Duration) {
        let before = self.waited();
        let mut waited = before;
        loop {
            self.clock.sleep_until(began + limit + waited.saturating_sub(before)).await;
            let now = self.waited();
            if now == waited {
                return;
            }
            waited = now;
        }
    }

    fn waits(&self) -> MutexGuard<'_, (Duration, Option<Instant>)> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes when the caller cancelled the call. A caller that went away did not cancel: a call
    /// that was sent continues then.
    pub(super) fn cancelled_by_caller(&self) -> BoxFuture<'static, ()> {
        self.caller.as_ref().map_or_else(|| Box::pin(std::future::pending()) as _, |caller| caller.cancelled())
    }
}

impl Drop for CallerPresence {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Counts the time for which a caller is waited for, until it is dropped.
struct InputWait<'a>(&'a CallLine);

impl<'a> InputWait<'a> {
    fn begin(line: &'a CallLine) -> Self {
        line.waits().1 = Some(line.clock.now());
        Self(line)
    }
}

impl Drop for InputWait<'_> {
    fn drop(&mut self) {
        let waited = self.0.waited();
        *self.0.waits() = (waited, None);
    }
}

impl CallIo for Arc<CallLine> {
    fn offers(&self) -> CallerOffers {
        self.caller.as_ref().map(|caller| caller.offers()).unwrap_or_default()
    }

    fn trace(&self) -> Option<&TraceContext> {
        self.caller.as_ref()?.trace()
    }

    fn progress(&mut self, progress: CallProgress) {
        tracing::debug!(scenario = %self.tool.scenario, tool = &*self.tool.tool, done = progress.done, total = progress.total, "a call makes progress");
        if let Some(caller) = &self.caller {
            caller.progress(progress);
        }
    }

    fn log(&mut self, line: CallLog) {
        tracing::debug!(scenario = %self.tool.scenario, tool = &*self.tool.tool, bytes = line.data.get().len(), "a call logged a line");
        let wanted = |caller: &&Arc<dyn Caller>| caller.offers().log_level.is_some_and(|least| line.level >= least);
        if let Some(caller) = self.caller.as_ref().filter(wanted) {
            caller.log(line);
        }
    }

    fn input<'a>(&'a mut self, wanted: &'a InputWanted) -> BoxFuture<'a, Result<InputReply, InputRefused>> {
        let line: &'a CallLine = self;
        match &line.caller {
            Some(caller) if wanted.is_offered(caller.offers()) => Box::pin(async move {
                let _wait = InputWait::begin(line);
                caller.input(wanted).await
            }),
            _ => Box::pin(std::future::ready(Err(InputRefused))),
        }
    }

    fn cancelled(&self) -> BoxFuture<'static, Cancelled> {
        let (gone, by_caller) = (self.gone.clone(), self.cancelled_by_caller());
        Box::pin(async move {
            tokio::select! {
                biased;
                () = by_caller => Cancelled::ByCaller,
                () = gone.wait() => Cancelled::CallerGone,
            }
        })
    }
}
