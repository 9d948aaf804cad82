//! The caller of one call, as far as the call can communicate with it while it runs.
//!
//! Texts of a tool go to its caller and nowhere else. The log only says that there were some.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::model::{JsonText, ToolId};
use crate::protocols::{
    CallIo, CallLog, CallProgress, CallerOffers, Cancelled, DeclinedInput, InputWanted,
    TraceContext, cancelled_by_caller,
};
use crate::runtime::{Clock, Stop, StopTrigger};

/// The connection between a running call and its caller.
pub(super) struct CallLine {
    tool: ToolId,
    caller: Option<Arc<dyn CallIo>>,
    gone: Stop,
    clock: Clock,
    waits: Mutex<CallerWaits>,
    /// Why the first question of the tool that was declined without its user was.
    declined: OnceLock<DeclinedInput>,
}

/// For how long a caller is waited for.
#[derive(Default)]
struct CallerWaits {
    /// In waits that are over.
    before: Duration,
    /// Since when it is waited for now.
    since: Option<Instant>,
    /// For how many inputs it is waited now.
    inputs: usize,
}

/// Held by the task that waits for the outcome of a call. If it is dropped before the call is over,
/// the caller went away.
pub(super) struct CallerPresence(StopTrigger);

impl CallLine {
    /// A line to this caller, if there is one, and its presence.
    pub(super) fn new(
        tool: ToolId,
        caller: Option<Arc<dyn CallIo>>,
        clock: Clock,
    ) -> (Self, CallerPresence) {
        let (trigger, gone) = StopTrigger::new();
        (
            Self {
                tool,
                caller,
                gone,
                clock,
                waits: Mutex::default(),
                declined: OnceLock::new(),
            },
            CallerPresence(trigger),
        )
    }

    /// How long the tool has waited for input of the caller. That is not the tool's time.
    pub(super) fn waited(&self) -> Duration {
        self.waits().until(self.clock.now())
    }

    /// Why a question of the tool was declined without its user, if one was.
    pub(super) fn question_declined(&self) -> Option<DeclinedInput> {
        self.declined.get().copied()
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
            self.clock
                .sleep_until(began + limit + waited.saturating_sub(before))
                .await;
            let now = self.waited();
            if now == waited {
                return;
            }
            waited = now;
        }
    }

    fn waits(&self) -> MutexGuard<'_, CallerWaits> {
        self.waits.lock()
    }

    /// Completes when the caller cancelled the call. A caller that went away did not cancel: a call
    /// that was sent continues then.
    pub(super) fn cancelled_by_caller(&self) -> BoxFuture<'static, ()> {
        match &self.caller {
            Some(caller) => Box::pin(cancelled_by_caller(&**caller)),
            None => Box::pin(std::future::pending()),
        }
    }
}

impl CallerWaits {
    /// All of the waits until now.
    fn until(&self, now: Instant) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| now - since)
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
        let now = line.clock.now();
        let mut waits = line.waits();
        waits.since.get_or_insert(now);
        waits.inputs += 1;
        drop(waits);
        Self(line)
    }
}

impl Drop for InputWait<'_> {
    fn drop(&mut self) {
        let now = self.0.clock.now();
        let mut waits = self.0.waits();
        waits.inputs -= 1;
        if waits.inputs == 0 {
            *waits = CallerWaits {
                before: waits.until(now),
                since: None,
                inputs: 0,
            };
        }
    }
}

impl CallIo for CallLine {
    fn offers(&self) -> CallerOffers {
        self.caller
            .as_ref()
            .map(|caller| caller.offers())
            .unwrap_or_default()
    }

    fn trace(&self) -> Option<&TraceContext> {
        self.caller.as_ref()?.trace()
    }

    fn progress(&self, progress: CallProgress) {
        tracing::debug!(scenario = %self.tool.scenario, tool = &*self.tool.tool, done = progress.done, total = progress.total, "a call makes progress");
        if let Some(caller) = &self.caller {
            caller.progress(progress);
        }
    }

    fn log(&self, line: CallLog) {
        tracing::debug!(scenario = %self.tool.scenario, tool = &*self.tool.tool, bytes = line.data.get().len(), "a call logged a line");
        let wanted = |caller: &&Arc<dyn CallIo>| {
            caller
                .offers()
                .log_level
                .is_some_and(|least| line.level >= least)
        };
        if let Some(caller) = self.caller.as_ref().filter(wanted) {
            caller.log(line);
        }
    }

    fn input<'a>(&'a self, wanted: &'a InputWanted) -> BoxFuture<'a, Option<JsonText>> {
        match &self.caller {
            Some(caller) if wanted.is_offered(caller.offers()) => Box::pin(async move {
                let _wait = InputWait::begin(self);
                caller.input(wanted).await
            }),
            _ => Box::pin(std::future::ready(None)),
        }
    }

    fn declined(&self, why: DeclinedInput) {
        let _ = self.declined.set(why);
        if let Some(caller) = &self.caller {
            caller.declined(why);
        }
    }

    fn cancelled(&self) -> BoxFuture<'static, Cancelled> {
        let gone = self.gone.clone();
        let by_caller = self.cancelled_by_caller();
        Box::pin(async move {
            tokio::select! {
                biased;
                () = by_caller => Cancelled::ByCaller,
                () = gone.wait() => Cancelled::CallerGone,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocols::NoCaller;

    #[tokio::test(start_paused = true)]
    async fn time_in_which_a_caller_is_waited_for_twice_counts_once() {
        let clock = Clock::system();
        let tool = ToolId::new("files".parse().unwrap(), "read");
        let (line, _presence) = CallLine::new(tool, Some(Arc::new(NoCaller)), clock);
        let first = InputWait::begin(&line);
        clock.sleep(Duration::from_secs(2)).await;
        let second = InputWait::begin(&line);
        clock.sleep(Duration::from_secs(3)).await;
        drop(first);
        clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(line.waited(), Duration::from_secs(10));
        drop(second);
        clock.sleep(Duration::from_secs(7)).await;
        assert_eq!(line.waited(), Duration::from_secs(10));
    }
}
