//! Why a call was not made, or came to nothing.
//!
//! Texts name the thing and the next step. They may hold what the asker wrote, and never go to the log.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use crate::catalog::UnknownProfile;
use crate::model::{ApprovalRequest, PeerIdentity, ScenarioName, ToolId};
use crate::protocols::{CallError, Fault};
use crate::transports::TransportError;

/// One way in which arguments do not fit their schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where, as a JSON pointer (RFC 6901) into the arguments.
    pub pointer: String,
    /// What is wrong there.
    pub message: String,
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ExecuteError {
    /// No tool has that name in the asker's scope.
    #[error("no tool is called `{0}`")]
    Unknown(String),
    /// In the list that the name was taken from it was a tool that is gone. It may mean another one now, which is not called instead.
    #[error("`{name}` was `{id}` in the list with revision {revision}, and that tool is gone; fetch the list again")]
    Gone {
        /// The name.
        name: String,
        /// What it meant.
        id: ToolId,
        /// In which list.
        revision: String,
    },
    /// The list that the name was taken from is not remembered, so what the name meant there cannot be told.
    #[error("the list with revision {0} is not remembered; fetch the list again, or name the tool as `scenario/tool`")]
    UnknownRevision(String),
    /// Several tools could be meant.
    #[error("several tools are called `{name}`: call {}", either(candidates))]
    Ambiguous {
        /// The name.
        name: String,
        /// Those it could mean.
        candidates: Vec<ToolId>,
    },
    /// The tool's scenario may not be called: an operator has not said yes to it, or said no.
    #[error("`{id}` may not be called: {reason}")]
    NotTrusted {
        /// The tool.
        id: ToolId,
        /// Why.
        reason: String,
    },
    /// The tool is switched off for this asker.
    #[error("`{id}` is switched off by {by}")]
    Disabled {
        /// The tool.
        id: ToolId,
        /// Who switched it off.
        by: String,
    },
    /// The bounds of the asker's profile keep it from the tool.
    #[error("`{id}` is not for this profile: {reason}")]
    OutOfBounds {
        /// The tool.
        id: ToolId,
        /// Which bound.
        reason: String,
    },
    /// Nobody has said what the profile may do: it is not configured, and where none is, no preference speaks of it either.
    #[error(transparent)]
    UnknownProfile(UnknownProfile),
    /// The arguments do not fit the tool's schema.
    #[error("the arguments do not fit the parameters of `{}`: {}", tool, first(violations))]
    Invalid {
        /// The tool's name.
        tool: String,
        /// What is wrong with them, at most [`MOST_VIOLATIONS`](crate::calls::validate::MOST_VIOLATIONS).
        violations: Vec<Violation>,
        /// Whether there are more.
        more: bool,
    },
    /// A human has to say yes first.
    #[error("a call of `{id}` needs the approval of a human{}", awaited(waiting.as_deref()))]
    ApprovalRequired {
        /// The tool.
        id: ToolId,
        /// What waits for that; nothing where no call can wait.
        waiting: Option<Arc<ApprovalRequest>>,
    },
    /// A human would have to say yes first, and too many calls wait for that.
    #[error(
        "a call of `{id}` needs the approval of a human, and as many calls wait for that as `calls.approvals_max` and `calls.kept_bytes` allow; decide some of them first"
    )]
    ApprovalsFull {
        /// The tool.
        id: ToolId,
    },
    /// A human would have to say yes first, and what waits cannot be stored.
    #[error("a call of `{id}` needs the approval of a human, and cannot wait for it because nothing can be stored now")]
    ApprovalNotStored {
        /// The tool.
        id: ToolId,
    },
    /// The scenario is somebody else than whom the call is for.
    #[error("`{id}` was to be run by the one {owner}, and its scenario is the one {now} by now")]
    OtherOwner {
        /// The tool.
        id: ToolId,
        /// Whom it is for.
        owner: PeerIdentity,
        /// Who is there.
        now: PeerIdentity,
    },
    /// The tool was called as often as it may be in a minute.
    #[error("`{id}` may be called {per_minute} times a minute; try again in {wait:?}")]
    RateLimited {
        /// The tool.
        id: ToolId,
        /// How often it may be called.
        per_minute: u64,
        /// Until it may be called again.
        wait: Duration,
    },
    /// Too many calls wait already, or its turn did not come in time.
    #[error("`{scenario}` has as many calls under way as it may, and {reason}; try again later")]
    Busy {
        /// The scenario.
        scenario: ScenarioName,
        /// Which limit was met.
        reason: &'static str,
    },
    /// The arguments could not be checked because too many others are.
    #[error("the arguments of `{id}` could not be checked, and {reason}; try again later")]
    ChecksBusy {
        /// The tool.
        id: ToolId,
        /// Which limit was met.
        reason: &'static str,
    },
    /// The scenario failed too often just now.
    #[error("`{scenario}` failed {failures} times in a row and is not called for {wait:?}")]
    BreakerOpen {
        /// The scenario.
        scenario: ScenarioName,
        /// How often.
        failures: u32,
        /// Until it is tried again.
        wait: Duration,
    },
    /// The scenario is known not to work now.
    #[error("`{id}` cannot be called now: {reason}")]
    Unavailable {
        /// The tool.
        id: ToolId,
        /// Why.
        reason: String,
    },
    /// It was tried, and came to nothing.
    #[error("the call of `{id}` failed: {error}")]
    Failed {
        /// The tool.
        id: ToolId,
        /// How.
        error: CallError,
        /// How often it was sent.
        attempts: u32,
    },
    /// Something unexpected inside this program.
    #[error("the call of `{0}` failed unexpectedly; the daemon's log says why")]
    Internal(ToolId),
}

impl ExecuteError {
    /// A short, stable word for programs and metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown_tool",
            Self::Gone { .. } => "tool_gone",
            Self::UnknownRevision(_) => "unknown_revision",
            Self::Ambiguous { .. } => "ambiguous",
            Self::NotTrusted { .. } => "not_trusted",
            Self::Disabled { .. } => "disabled",
            Self::OutOfBounds { .. } => "not_allowed",
            Self::UnknownProfile(_) => "unknown_profile",
            Self::Invalid { .. } => "invalid_arguments",
            Self::ApprovalRequired { .. } => "approval_required",
            Self::ApprovalsFull { .. } => "approvals_full",
            Self::ApprovalNotStored { .. } => "approval_not_stored",
            Self::OtherOwner { .. } => "other_owner",
            Self::RateLimited { .. } => "rate_limited",
            Self::Busy { .. } | Self::ChecksBusy { .. } => "busy",
            Self::BreakerOpen { .. } => "circuit_open",
            Self::Unavailable { .. } => "unavailable",
            Self::Failed { error, .. } => match error {
                CallError::NotCallable(_) => "not_callable",
                CallError::NotThisProtocol { .. } => "bad_answer",
                CallError::Unsent(error) | CallError::Unanswered(error) => match error {
                    TransportError::Timeout { .. } => "timeout",
                    TransportError::Refused(_) | TransportError::Unresolved(_) => "unreachable",
                    TransportError::TooLarge { .. } => "too_large",
                    _ => "broken",
                },
            },
            Self::Internal(_) => "internal",
        }
    }

    /// The status by which `POST /api/v1/tools/execute` answers it.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::ApprovalRequired { waiting: Some(_), .. } => StatusCode::ACCEPTED,
            Self::Unknown(_) | Self::Gone { .. } => StatusCode::NOT_FOUND,
            Self::UnknownRevision(_) | Self::Ambiguous { .. } | Self::OtherOwner { .. } => StatusCode::CONFLICT,
            Self::NotTrusted { .. }
            | Self::Disabled { .. }
            | Self::OutOfBounds { .. }
            | Self::UnknownProfile(_)
            | Self::ApprovalRequired { .. } => StatusCode::FORBIDDEN,
            Self::Invalid { .. } => StatusCode::BAD_REQUEST,
            Self::RateLimited { .. } | Self::Busy { .. } | Self::ChecksBusy { .. } | Self::ApprovalsFull { .. } => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::BreakerOpen { .. } | Self::Unavailable { .. } | Self::ApprovalNotStored { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Failed { error, .. } => match error {
                CallError::Unsent(_) => StatusCode::SERVICE_UNAVAILABLE,
                CallError::Unanswered(TransportError::Timeout { .. }) => StatusCode::GATEWAY_TIMEOUT,
                CallError::Unanswered(_) | CallError::NotThisProtocol { .. } => StatusCode::BAD_GATEWAY,
                CallError::NotCallable(_) => StatusCode::NOT_IMPLEMENTED,
            },
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Failed { error, .. } => error.fault(),
            Self::Unavailable { .. } | Self::BreakerOpen { .. } | Self::Busy { .. } => Fault::Scenario,
            Self::Internal(_) | Self::ApprovalNotStored { .. } | Self::ChecksBusy { .. } => Fault::Ours,
            _ => Fault::Caller,
        }
    }

    /// When to try again, where that can be said.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { wait, .. } | Self::BreakerOpen { wait, .. } => Some(*wait),
            Self::Busy { .. } | Self::ChecksBusy { .. } | Self::ApprovalsFull { .. } => Some(Duration::from_secs(1)),
            Self::Failed { error, .. } => error.retry_after(),
            _ => None,
        }
    }
}

fn awaited(waiting: Option<&ApprovalRequest>) -> String {
    waiting.map_or_else(String::new, |waiting| format!(", and waits for it as `{}`", waiting.id))
}

fn either(candidates: &[ToolId]) -> String {
    candidates.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}

fn first(violations: &[Violation]) -> String {
    let Some(first) = violations.first() else { return "they are no JSON object".to_owned() };
    let place = if first.pointer.is_empty() { String::new() } else { format!("{}: ", first.pointer) };
    let others = match violations.len() {
        0 | 1 => String::new(),
        more => format!(" (and {} more)", more - 1),
    };
    format!("{place}{}{others}", first.message)
}
