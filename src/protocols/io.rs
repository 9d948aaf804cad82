//! What a session and the caller say to each other while a call runs.
//!
//! A session tells progress, log lines and wishes through [`CallIo`], and learns there that the call is not wanted any more. It never
//! carries the call itself or its answer.

use std::fmt;

use futures_util::future::BoxFuture;

use crate::model::JsonText;

/// The caller's side of one call, as the session that runs it sees it.
pub trait CallIo: Send {
    /// The tool is so far.
    fn progress(&mut self, progress: CallProgress);

    /// The tool has something to log.
    fn log(&mut self, line: CallLog);

    /// The tool needs something of the caller to go on, and waits for it.
    fn input<'a>(&'a mut self, wanted: &'a InputWanted) -> BoxFuture<'a, Result<InputReply, InputRefused>>;

    /// Completes when the call is not wanted any more. A session that can tell its scenario so does; one that cannot goes on.
    fn cancelled(&self) -> BoxFuture<'static, Cancelled>;
}

/// How far a tool is.
#[derive(Debug, Clone, PartialEq)]
pub struct CallProgress {
    /// So much is done. It grows from one to the next.
    pub done: f64,
    /// Of so much, if that is known.
    pub total: Option<f64>,
    /// For people.
    pub message: Option<String>,
}

/// One line of a tool's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLog {
    /// How grave it is, in the scenario's word.
    pub level: String,
    /// The text.
    pub text: String,
}

/// What a tool needs of its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputWanted {
    /// For people.
    pub message: String,
    /// The JSON Schema of the answer, if the tool gives one.
    pub schema: Option<JsonText>,
}

/// What the caller answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputReply {
    /// This, which is to fit the schema.
    Given(JsonText),
    /// The caller does not want to answer.
    Declined,
}

/// The caller gives no input. The session tells its scenario so, in its protocol's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this caller cannot be asked for input")]
pub struct InputRefused;

/// Why a call is not wanted any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The caller cancelled it.
    ByCaller,
    /// The caller went away. What the tool has begun is counted all the same, so a session may let it go on.
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
