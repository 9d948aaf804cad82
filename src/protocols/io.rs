//! What a session and the caller say to each other while a call runs.
//!
//! A session reports progress and log messages and requests input through [`CallIo`], and learns
//! there that the call is not wanted any more. It never carries the call itself or its answer.

use std::fmt;

use futures_util::future::BoxFuture;

use super::call_log::CallLog;
use super::input::{CallerOffers, InputRefused, InputReply, InputWanted};
use super::trace::TraceContext;

/// The caller's side of one call, as the session that runs it sees it.
pub trait CallIo: Send {
    /// What the caller can do while the call runs. By default it takes no part.
    fn offers(&self) -> CallerOffers {
        CallerOffers::default()
    }

    /// The trace that the call belongs to, if its caller says so.
    fn trace(&self) -> Option<&TraceContext> {
        None
    }

    /// The tool reports its progress.
    fn progress(&mut self, progress: CallProgress);

    /// The tool sends a log message.
    fn log(&mut self, line: CallLog);

    /// The tool needs input of the caller to continue, and waits for it.
    fn input<'a>(&'a mut self, wanted: &'a InputWanted) -> BoxFuture<'a, Result<InputReply, InputRefused>>;

    /// Completes when the call is not wanted any more. A session that can inform its scenario does;
    /// one that cannot continues.
    fn cancelled(&self) -> BoxFuture<'static, Cancelled>;
}

/// The progress of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CallProgress {
    /// How much is done. It grows from one to the next.
    pub done: f64,
    /// The amount that is complete, if that is known.
    pub total: Option<f64>,
    /// For people.
    pub message: Option<String>,
}

/// Why a call is not wanted any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The caller cancelled it.
    ByCaller,
    /// The caller went away. What the tool has begun is counted all the same, so a session may let
    /// it go on.
    CallerGone,
}

/// The side of a caller that takes no part: it ignores progress, gives no input and never cancels.
#[derive(Debug, Clone, Copy)]
pub struct NoCaller;

impl CallIo for NoCaller {
    fn progress(&mut self, _progress: CallProgress) {}

    fn log(&mut self, _line: CallLog) {}

    fn input<'a>(&'a mut self, _wanted: &'a InputWanted) -> BoxFuture<'a, Result<InputReply, InputRefused>> {
        Box::pin(std::future::ready(Err(InputRefused)))
    }

    fn cancelled(&self) -> BoxFuture<'static, Cancelled> {
        Box::pin(std::future::pending())
    }
}

impl fmt::Display for CallProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.done)?;
        if let Some(total) = self.total {
            write!(f, " of {total}")?;
        }
        self.message.iter().try_for_each(|message| write!(f, ": {message}"))
    }
}
