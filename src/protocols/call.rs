//! One call and what comes of it, whatever protocol carries it.
//!
//! Nothing here decides whether a call may be made, or whether it may be made again.

use std::sync::Arc;
use std::time::Duration;

use crate::model::JsonText;
use crate::transports::http::{HttpResponse, Unanswered};
use crate::transports::{TransportError, status_text};

/// Characters of a foreign answer that are told when it cannot be used.
const EXCERPT: usize = 200;

/// One call, ready to be sent: whom it is for, and what it may cost, has been decided.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tool's original name.
    pub tool: Arc<str>,
    /// The text of one JSON object.
    pub arguments: JsonText,
    /// For whom it is made, where a protocol passes that on.
    pub user_id: Option<Arc<str>>,
    /// What the list says of the tool. Without it the protocol's own default holds.
    pub timeout: Option<Duration>,
    /// The longest that any call may take, whatever the tool or the protocol say.
    pub longest: Duration,
    /// Bytes of the answer at most.
    pub max_body: usize,
}

/// What a scenario answered. A tool's own failure is an answer too.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Whether the tool did what it was asked.
    pub success: bool,
    /// What it gave back, any JSON value.
    pub result: Option<JsonText>,
    /// What went wrong, in the scenario's words.
    pub error: Option<String>,
    /// The scenario's own word for that (`not_found`, `validation_error`, ...).
    pub code: Option<String>,
    /// Set when it says that it goes on running.
    pub running: Option<RunningCall>,
    /// The status it came with, where its transport has statuses: in the numbers of HTTP.
    pub status: Option<u16>,
    /// When the scenario asks to be called again, if it said so.
    pub retry_after: Option<Duration>,
    /// The whole answer as it came: the paths of `async_behavior` are looked up in `result`, then here.
    pub document: Option<JsonText>,
}

/// What a scenario says of a call that goes on after its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunningCall {
    /// Its name for the run. A number is written in digits.
    pub run_id: Option<String>,
    /// Its word for how it stands.
    pub status: Option<String>,
}

/// Whose fault it is that a call came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Who called asked for what cannot be.
    Caller,
    /// The scenario, or the way to it.
    Scenario,
    /// This program.
    Ours,
}

/// Why there is no outcome.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// Nothing was sent, so it is safe to try again.
    #[error(transparent)]
    Unsent(TransportError),
    /// It was sent, or may have been, and no usable answer came. The tool may have done its work.
    #[error(transparent)]
    Unanswered(TransportError),
    /// Something answered, but not in the words of this protocol.
    #[error("it answered {answered}, but not as a tool does: {excerpt}")]
    NotThisProtocol {
        /// What it answered, in its transport's words (`404 Not Found`).
        answered: String,
        /// The status, where its transport has statuses: in the numbers of HTTP.
        status: Option<u16>,
        /// The beginning of what it said, escaped.
        excerpt: String,
        /// `Retry-After`, if it was sent.
        retry_after: Option<Duration>,
    },
    /// It cannot be called at all.
    #[error("{0}")]
    NotCallable(String),
}

impl Call {
    /// How long it may take: what the list says, else `default`, and never longer than any call may.
    pub fn limit(&self, default: Duration) -> Duration {
        self.timeout.unwrap_or(default).min(self.longest)
    }
}

impl Outcome {
    /// The outcome of a tool that did its work and gave back `result`.
    pub fn done(result: JsonText) -> Self {
        Self { success: true, result: Some(result), error: None, ..Self::failed(None, String::new(), None) }
    }

    /// The outcome of a tool that failed.
    pub fn failed(status: Option<u16>, error: String, code: Option<String>) -> Self {
        Self {
            success: false,
            result: None,
            error: Some(error),
            code,
            running: None,
            status,
            retry_after: None,
            document: None,
        }
    }
}

impl CallError {
    /// An answer that is none of the protocol's, with the beginning of its body and why it could not be read.
    pub fn not_this_protocol(answer: &HttpResponse, why: &str) -> Self {
        let text = String::from_utf8_lossy(&answer.body);
        let start: String = text.trim().chars().take(EXCERPT).collect();
        let excerpt = if start.is_empty() {
            format!("{why} (the body is empty)")
        } else {
            format!("{why} (`{}`)", start.escape_debug())
        };
        let (status, retry_after) = (answer.head.status.as_u16(), answer.retry_after());
        Self::NotThisProtocol { answered: status_text(status), status: Some(status), excerpt, retry_after }
    }

    /// A short, stable word for metrics and answers.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unsent(error) | Self::Unanswered(error) => error.kind(),
            Self::NotThisProtocol { .. } => "unknown-protocol",
            Self::NotCallable(_) => "not-callable",
        }
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NotCallable(_) => Fault::Caller,
            Self::Unsent(TransportError::Address(_)) => Fault::Ours,
            Self::Unsent(_) | Self::Unanswered(_) | Self::NotThisProtocol { .. } => Fault::Scenario,
        }
    }

    /// Whether the scenario may have seen it. When not, it may be sent again.
    pub fn was_sent(&self) -> bool {
        matches!(self, Self::Unanswered(_) | Self::NotThisProtocol { .. })
    }

    /// When the scenario asked to be called again, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotThisProtocol { retry_after, .. } => *retry_after,
            Self::Unsent(error) | Self::Unanswered(error) => error.retry_after(),
            Self::NotCallable(_) => None,
        }
    }
}

impl From<Unanswered> for CallError {
    fn from(Unanswered { error, sent }: Unanswered) -> Self {
        if sent { Self::Unanswered(error) } else { Self::Unsent(error) }
    }
}
