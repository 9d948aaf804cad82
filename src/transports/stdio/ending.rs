//! How child processes end, and how they are ended.
//!
//! A stop closes the input of the process, which a well-behaved one takes for its end; after
//! [`GRACE`] its group gets SIGTERM, and after another one SIGKILL. When the process itself has
//! ended, what is left of its group, and what left the group but has its mark, is ended in the same
//! way, without waiting for it to read its input.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Child;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::end_processes::{GRACE, end_processes};
use super::group::{EndSignal, ProcessGroup};
use super::mark::ProgramMark;
use super::stderr::StderrTail;
use super::watchdog::Watchdog;
use super::{Input, ProcessFault};
use crate::model::ProgramEnd;
use crate::runtime::{Clock, StopTrigger, Tasks};

/// How long the last lines of a process that has ended are waited for. Another process may hold its
/// output open.
const DRAIN: Duration = Duration::from_millis(300);

/// Lines on standard error that are kept of a process that ended.
const LAST_LINES: usize = 10;

/// A process from its start to its end.
pub(super) struct Supervised {
    pub(super) child: Child,
    pub(super) group: ProcessGroup,
    pub(super) mark: ProgramMark,
    pub(super) input: Input,
    pub(super) fault: ProcessFault,
    pub(super) stderr: StderrTail,
    pub(super) reads_stderr: JoinHandle<()>,
    pub(super) reads_stdout: JoinHandle<()>,
    /// Ends the reading of output that another process holds open.
    pub(super) cut: StopTrigger,
    pub(super) end: watch::Sender<Option<Arc<ProgramEnd>>>,
    pub(super) started: Instant,
    pub(super) watchdog: Arc<Watchdog>,
    pub(super) tasks: Tasks,
    pub(super) clock: Clock,
}

impl Supervised {
    /// Waits for the end of the process or for its stop, and leaves no process that it started.
    pub(super) async fn run(mut self) {
        let (ended, was_stopped) = tokio::select! {
            biased;
            ended = self.child.wait() => (ended.ok(), false),
            () = self.fault.stop.wait() => (self.stop().await, true),
        };
        // A write under way fails at once.
        self.fault.trigger.stop();
        let _ = tokio::time::timeout(DRAIN, &mut self.reads_stderr).await;
        self.end
            .send_replace(Some(Arc::new(self.how(ended, was_stopped))));
        end_processes(&[self.group], Some(&self.mark), &self.tasks, self.clock).await;
        // What did not even end after SIGKILL stays with the watchdog.
        if !self.group.is_alive() {
            self.watchdog.forget(self.group);
        }
        let _ = tokio::time::timeout(DRAIN, &mut self.reads_stdout).await;
        self.cut.stop();
    }

    /// Stops the process. `None` if it did not even end after SIGKILL, which a process that hangs
    /// in the system does not.
    async fn stop(&mut self) -> Option<ExitStatus> {
        // A write under way ends at a stop; when no task continues it, the signals follow anyway.
        if let Ok(mut input) = tokio::time::timeout(GRACE, self.input.lock()).await {
            *input = None;
        }
        for signal in [None, Some(EndSignal::Terminate), Some(EndSignal::Kill)] {
            if let Some(signal) = signal {
                self.group.signal(signal);
            }
            if let Ok(ended) = tokio::time::timeout(GRACE, self.child.wait()).await {
                return ended.ok();
            }
        }
        None
    }

    /// How it ended, for people.
    fn how(&self, ended: Option<ExitStatus>, was_stopped: bool) -> ProgramEnd {
        let uptime = self.clock.now().saturating_duration_since(self.started);
        let mut how = match (self.fault.why.get(), ended) {
            (Some(why), _) => format!("{why}, and was stopped"),
            (None, _) if was_stopped => {
                return ProgramEnd {
                    uptime,
                    ..ProgramEnd::stopped()
                };
            }
            (None, ended) => format!(
                "the process ended {}",
                ended.map_or_else(|| "unseen".to_owned(), status)
            ),
        };
        // First, since a place with little room shows the beginning.
        if let Some(error) = self.stderr.raised() {
            how.push_str(": ");
            how.push_str(&error);
        }
        let exit_code = ended.and_then(|ended| ended.code());
        let signal = ended.and_then(ended_by);
        ProgramEnd {
            how,
            exit_code,
            signal,
            stderr: self.stderr.last(LAST_LINES),
            uptime,
        }
    }
}

/// The signal that ended a process.
#[cfg(unix)]
fn ended_by(ended: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&ended)
}

#[cfg(not(unix))]
fn ended_by(_: ExitStatus) -> Option<i32> {
    None
}

/// `with exit code 1`, or by which signal.
fn status(ended: ExitStatus) -> String {
    match ended.code() {
        Some(code) => format!("with exit code {code}"),
        // "signal: 9 (SIGKILL)"
        None => format!("by {ended}"),
    }
}
