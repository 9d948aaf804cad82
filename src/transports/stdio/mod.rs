//! Child processes: lines in on standard input, lines out on standard output.
//!
//! ```text
//! StdioTarget -> lookup, environment, mark -> children -> process group
//!    input  <- ChildProcess (a line whole, or the process is stopped)
//!    output -> pace -> lines (at most MAX_LINE) -> ChildLine       stderr -> its last lines
//!    dropped, or daemon killed -> ending | watchdog -> end_processes
//! ```
//!
//! What is kept true here:
//!
//! - A [`ChildProcess`] is one program in a process group of its own, with a small environment.
//! - It ends with all that it started, also with what left its group but has its `mark`; dropping
//!   it ends them in the background. If the daemon is killed, the [`watchdog`] ends them, where
//!   there is one.
//! - A line of output has at most [`MAX_LINE`] bytes, a few lines wait to be taken, a line of input
//!   is taken within [`WRITE_LIMIT`], and output is read at a limited pace.
//! - Standard error is always read, so that no program blocks on it. What is on it is for people
//!   only.
//!
//! Read in this order: this file, `children.rs` (starting), `lookup.rs`, `environment.rs`,
//! `group.rs`, `mark.rs`; `lines.rs`, `pace.rs`, `stderr.rs`; `ending.rs`, `end_processes.rs`,
//! `watchdog.rs`; `output.rs` (a program that is run once for what it prints).
//!
//! Never here: what a line means, and starting a program again.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc, watch};

use super::mask::SHORTEST_SECRET;
use super::{Mask, TransportError};
use crate::model::{ProgramEnd, StdioTarget};
use crate::runtime::{Stop, StopTrigger, Tasks};

mod children;
mod cost;
mod end_processes;
mod ending;
mod environment;
mod group;
mod lines;
mod lookup;
mod mark;
mod output;
mod pace;
mod stderr;
#[cfg(test)]
mod tests;
pub mod watchdog;

pub use children::Children;
pub use lines::{ChildLine, MAX_LINE};
pub(super) use output::run_for_output;
pub use stderr::StderrTail;
use stderr::{SHORTEST_IN_LINES, environment_mask};

/// How long a process may take to read one line of its input, and a caller waits for its turn.
pub const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// The standard input of a process, until it is closed.
type Input = Arc<Mutex<Option<ChildStdin>>>;

/// A running child process. Dropping it stops the process in the background: its input is closed;
/// after 3 s its group gets SIGTERM, and after 3 more SIGKILL.
pub struct ChildProcess {
    command: Arc<str>,
    input: Input,
    lines: Option<mpsc::Receiver<ChildLine>>,
    stderr: StderrTail,
    masks: ProgramMasks,
    end: watch::Receiver<Option<Arc<ProgramEnd>>>,
    fault: ProcessFault,
    tasks: Tasks,
}

/// Masks the values of the environment of a program. They are for errors and for lines that people
/// read: in a result or a manifest they may be words of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgramMasks {
    /// For lines on standard error, and those on standard output that are no messages.
    pub(crate) lines: Mask,
    /// For errors in its answers, which are documents.
    pub(crate) errors: Mask,
}

impl ProgramMasks {
    fn of(target: &StdioTarget) -> Self {
        // `PATH` is no secret, and often the very reason that a line gives.
        let secrets = || {
            target
                .env()
                .iter()
                .filter(|(name, _)| *name != "PATH")
                .map(|(_, value)| value)
        };
        let mask = |shortest| environment_mask(secrets(), shortest);
        Self {
            lines: mask(SHORTEST_IN_LINES),
            errors: mask(SHORTEST_SECRET),
        }
    }
}

/// How long the end of a process that closed its input is waited for.
const ENDING: Duration = Duration::from_millis(500);

/// Stops a process, and says why if it is at fault.
#[derive(Clone)]
struct ProcessFault {
    why: Arc<OnceLock<String>>,
    trigger: StopTrigger,
    stop: Stop,
}

impl ProcessFault {
    /// Of a process that is also stopped with all others.
    fn new(all: &Stop) -> Self {
        let (trigger, stop) = all.child();
        Self {
            why: Arc::default(),
            trigger,
            stop,
        }
    }

    /// Stops the process for a fault of its own.
    fn stop_because(&self, why: String) {
        // The first one counts.
        let _ = self.why.set(why);
        self.trigger.stop();
    }
}

impl ChildProcess {
    /// Writes one line; `line` has no line break in it. It is written whole, also when this future
    /// is dropped after the first byte left. A process that does not take it within
    /// [`WRITE_LIMIT`] is stopped.
    ///
    /// Its lines of output have to be taken meanwhile: most programs read no input as long as their
    /// output is blocked.
    pub async fn send(&self, line: &str) -> Result<(), TransportError> {
        if line.contains('\n') {
            return Err(self.broken("a line with a line break in it was not sent"));
        }
        let turn = tokio::time::timeout(WRITE_LIMIT, Arc::clone(&self.input).lock_owned());
        let Ok(input) = turn.await else {
            return Err(TransportError::Timeout {
                url: self.command.to_string(),
                limit: WRITE_LIMIT,
            });
        };
        let written =
            self.tasks
                .run_to_completion(write(input, format!("{line}\n"), self.fault.clone()));
        written.await.map_err(|message| match self.ended_with() {
            Some(ended) => self.over(ended.to_string(), Some(ended)),
            None => self.over(message, None),
        })
    }

    /// The lines of its standard output; the channel ends with them. Only the first call gives
    /// them.
    pub fn lines(&mut self) -> mpsc::Receiver<ChildLine> {
        self.lines.take().unwrap_or_else(|| mpsc::channel(1).1)
    }

    /// What it writes to standard error; stays readable when the process has ended.
    pub fn stderr(&self) -> StderrTail {
        self.stderr.clone()
    }

    /// What is masked in what it says.
    pub(crate) fn masks(&self) -> &ProgramMasks {
        &self.masks
    }

    /// Completes when the process has ended, with how: "the process ended with exit code 1; its
    /// last lines on stderr: ...".
    pub fn ended(&self) -> BoxFuture<'static, Arc<ProgramEnd>> {
        let mut end = self.end.clone();
        async move {
            let ended = end
                .wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|ended| ended.clone());
            // The task that waits for the process was cut off at the end of the daemon.
            ended.unwrap_or_else(|| Arc::new(ProgramEnd::stopped()))
        }
        .boxed()
    }

    /// The exact command line, for people.
    pub fn command(&self) -> &str {
        &self.command
    }

    fn ended_with(&self) -> Option<Arc<ProgramEnd>> {
        self.end.borrow().clone()
    }

    fn over(&self, message: String, end: Option<Arc<ProgramEnd>>) -> TransportError {
        TransportError::ProcessEnded {
            command: self.command.to_string(),
            message,
            end,
        }
    }

    fn broken(&self, message: &str) -> TransportError {
        TransportError::Broken {
            url: self.command.to_string(),
            message: message.to_owned(),
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.fault.trigger.stop();
    }
}

impl fmt::Debug for ChildProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildProcess")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

/// Writes a line whole. A process that takes only a part of it is stopped, because what it would
/// read next is no line.
async fn write(
    mut input: OwnedMutexGuard<Option<ChildStdin>>,
    line: String,
    fault: ProcessFault,
) -> Result<(), String> {
    let Some(pipe) = input.as_mut() else {
        return Err("its input is closed".to_owned());
    };
    let written = tokio::select! {
        biased;
        () = fault.stop.wait() => return Err("the process is being stopped".to_owned()),
        written = tokio::time::timeout(WRITE_LIMIT, pipe.write_all(line.as_bytes())) => written,
    };
    let message = match written {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => {
            *input = None;
            // Most often it is just ending; then how it ended says more.
            if tokio::time::timeout(ENDING, fault.stop.wait())
                .await
                .is_ok()
            {
                return Err("the process has ended".to_owned());
            }
            format!("its input is closed: {error}")
        }
        Err(_) => format!("it did not read its input for {} s", WRITE_LIMIT.as_secs()),
    };
    *input = None;
    fault.stop_because(message.clone());
    Err(message)
}
