//! How a program that callsheet started ended.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::ScenarioName;

/// Lines on standard error that a sentence about an end has.
const SHOWN_LINES: usize = 3;

/// How one process ended. Its sentence has the last lines on standard error too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramEnd {
    /// How, in one clause: `the process ended with exit code 3`.
    pub how: String,
    /// Its exit code; `None` if a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The last lines that it wrote on standard error, the oldest first, with secrets masked.
    pub stderr: Vec<String>,
    /// How long it ran.
    pub uptime: Duration,
}

/// The end of the program of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEnd {
    /// The scenario.
    pub name: ScenarioName,
    /// When the end was seen.
    pub at: Timestamp,
    /// How it ended.
    pub program: Arc<ProgramEnd>,
}

impl ProgramEnd {
    /// The end of a process that callsheet stopped without a fault of its own.
    pub fn stopped() -> Self {
        Self {
            how: "the process was stopped".to_owned(),
            ..Self::default()
        }
    }
}

impl fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.how)?;
        let last = &self.stderr[self.stderr.len().saturating_sub(SHOWN_LINES)..];
        if last.is_empty() {
            return Ok(());
        }
        write!(f, "; its last lines on stderr: {}", last.join(" | "))
    }
}
