//! One call and its result, for every protocol.
//!
//! This module never decides whether a call may be made or repeated.

use std::sync::Arc;
use std::time::Duration;

use super::InputRound;
use crate::model::{CallerInfo, JsonText};
use crate::transports::http::{HttpResponse, Unanswered};
use crate::transports::{TransportError, status_text};

/// The most characters of an unusable answer that a message quotes.
const EXCERPT: usize = 200;
/// Bytes that have so many characters in any case: a body may be long.
const EXCERPT_BYTES: usize = 4 * (EXCERPT + 1);

/// One call, ready to be sent: its tool and its limits have been decided.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tool's original name.
    pub tool: Arc<str>,
    /// The text of one JSON object.
    pub arguments: JsonText,
    /// The user for whom the call is made, where a protocol passes that on.
    pub user_id: Option<Arc<str>>,
    /// Where the call comes from, for functions of the program that callsheet runs in. No other
    /// scenario gets it.
    pub caller: CallerInfo,
    /// The timeout of the tool in the list. Without it the protocol's own default holds.
    pub timeout: Option<Duration>,
    /// The longest time for any call, whatever the tool or the protocol says.
    pub longest: Duration,
    /// The most bytes of the answer.
    pub max_body: usize,
    /// The input with which the caller sends a call again that needed some.
    pub resumed: Option<InputRound>,
}

/// The answer of a scenario. A tool's own failure is an answer too.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Whether the tool succeeded.
    pub success: bool,
    /// The result, any JSON value.
    pub result: Option<JsonText>,
    /// The error message, as the scenario wrote it.
    pub error: Option<String>,
    /// The scenario's own error code (`not_found`, `validation_error`, ...).
    pub code: Option<String>,
    /// Set when the scenario says that the run continues after this answer.
    pub running: Option<RunningCall>,
    /// The status of the answer as an HTTP status code, where its transport has statuses.
    pub status: Option<u16>,
    /// When the call may be repeated, if the scenario said so.
    pub retry_after: Option<Duration>,
    /// The whole answer as sent: the paths of `async_behavior` are looked up in `result`, then
    /// here.
    pub document: Option<JsonText>,
    /// The whole result where `result` is only its data, for callers that can use the rest: of MCP
    /// the result with its content blocks.
    pub content: Option<JsonText>,
    /// The input without which the tool does not continue, for a caller that sends the call again
    /// with it. Then the tool did not fail yet.
    pub input_required: Option<InputRound>,
}

/// What a scenario reports about a run that continues after its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunningCall {
    /// The scenario's id of the run. A number is written in digits.
    pub run_id: Option<String>,
    /// The scenario's own name for the state of the run.
    pub status: Option<String>,
}

/// The party that caused a call to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The caller requested something that is not possible.
    Caller,
    /// The scenario, or the way to it.
    Scenario,
    /// This program.
    Ours,
}

/// Why a call has no outcome.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// The call was not sent, so it is safe to try again.
    #[error(transparent)]
    Unsent(TransportError),
    /// The call was sent, or may have been, and no usable answer came. The tool may have run.
    #[error(transparent)]
    Unanswered(TransportError),
    /// An answer came, but not one of this protocol.
    #[error("it answered {answered}, but not as a tool does: {excerpt}")]
    NotThisProtocol {
        /// The answer in its transport's words (`404 Not Found`).
        answered: String,
        /// The status as an HTTP status code, where its transport has statuses.
        status: Option<u16>,
        /// The beginning of the answer, escaped.
        excerpt: String,
        /// `Retry-After`, if it was sent.
        retry_after: Option<Duration>,
    },
    /// The scenario cannot be called at all.
    #[error("{0}")]
    NotCallable(String),
}

impl Call {
    /// How long the call may take: the timeout of the list or else `default`, but never longer than
    /// any call may.
    pub fn limit(&self, default: Duration) -> Duration {
        self.timeout.unwrap_or(default).min(self.longest)
    }
}

impl Outcome {
    /// The outcome of a tool that succeeded with `result`.
    pub fn done(result: JsonText) -> Self {
        Self {
            success: true,
            result: Some(result),
            error: None,
            ..Self::failed(None, String::new(), None)
        }
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
            content: None,
            input_required: None,
        }
    }

    /// The bytes of its texts. One that stands in several places is held once.
    pub fn bytes(&self) -> usize {
        let is_one = |text: &JsonText, other: &Option<JsonText>| {
            other.as_ref().is_some_and(|other| other.is_same(text))
        };
        let content = self
            .content
            .as_ref()
            .filter(|content| !is_one(content, &self.result));
        let document = self.document.as_ref();
        let document = document
            .filter(|document| !is_one(document, &self.result) && !is_one(document, &self.content));
        let json = [self.result.as_ref(), content, document]
            .into_iter()
            .flatten();
        json.map(|json| json.get().len()).sum::<usize>()
            + self.error.as_ref().map_or(0, String::len)
    }
}

impl CallError {
    /// The error for an answer that is not of this protocol, with the beginning of its body and the
    /// reason why it could not be read.
    pub fn not_this_protocol(answer: &HttpResponse, why: &str) -> Self {
        let body = answer.body.trim_ascii_start();
        let text = String::from_utf8_lossy(&body[..body.len().min(EXCERPT_BYTES)]);
        let start: String = text.trim().chars().take(EXCERPT).collect();
        let excerpt = if start.is_empty() {
            format!("{why} (the body is empty)")
        } else if start.starts_with('<') {
            // Its text is for browsers.
            format!("{why} (it is a web page)")
        } else {
            format!("{why} (`{}`)", start.escape_debug())
        };
        let status = answer.head.status.as_u16();
        let retry_after = answer.retry_after();
        Self::NotThisProtocol {
            answered: status_text(status),
            status: Some(status),
            excerpt,
            retry_after,
        }
    }

    /// A short, stable word for metrics and answers.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unsent(error) | Self::Unanswered(error) => error.kind(),
            Self::NotThisProtocol { .. } => "unknown-protocol",
            Self::NotCallable(_) => "not-callable",
        }
    }

    /// The party that caused the failure.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NotCallable(_) => Fault::Caller,
            Self::Unsent(TransportError::Address(_)) => Fault::Ours,
            Self::Unsent(_) | Self::Unanswered(_) | Self::NotThisProtocol { .. } => Fault::Scenario,
        }
    }

    /// Whether the scenario may have received the call. If not, the call may be sent again.
    pub fn was_sent(&self) -> bool {
        matches!(self, Self::Unanswered(_) | Self::NotThisProtocol { .. })
    }

    /// When the call may be repeated, if the scenario said so.
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
        if sent {
            Self::Unanswered(error)
        } else {
            Self::Unsent(error)
        }
    }
}
