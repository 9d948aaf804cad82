//! Why a call has no answer of its tool, in the one form that every face reports.
//!
//! A [`Failure`] is data: a code that programs read, a text for people, the next step, and the
//! parts that some faces show beside it. Never done here: words for one face, and waiting.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::status_numbers::GOES_ON;
use super::{ExecuteError, Violation};
use crate::model::{ApprovalRequest, ToolId, ViewTool, WithNextStep as _};
use crate::protocols::CallError;
use crate::runtime::BudgetExceeded;
use crate::transports::TransportError;

/// The word for a failure, for programs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureCode {
    /// No tool has the name.
    UnknownTool,
    /// The tool that the name meant is gone.
    ToolGone,
    /// The list that the name was taken from is not remembered.
    UnknownRevision,
    /// The tool has another definition than the one that the call was made for.
    StaleDefinition,
    /// The name may mean several tools.
    Ambiguous,
    /// No operator trusts the scenario, or one blocked it.
    NotTrusted,
    /// The tool is disabled for this caller.
    Disabled,
    /// The tool is new or changed, and no operator has accepted it.
    Held,
    /// The bounds of the profile exclude the tool.
    NotAllowed,
    /// The profile is not known.
    UnknownProfile,
    /// The arguments do not fit the tool.
    InvalidArguments,
    /// A latent call lacks the result of its model.
    OutputMissing,
    /// The result of the model does not fit.
    InvalidOutput,
    /// The activity of a definition is not there.
    NoActivity,
    /// A human has to approve the call, and it cannot wait for that.
    ApprovalRequired,
    /// Too many calls wait for approval.
    ApprovalsFull,
    /// The call that waits for approval could not be stored.
    ApprovalNotStored,
    /// An operator rejected the call.
    Rejected,
    /// No operator decided in time.
    ApprovalExpired,
    /// It was approved, and the daemon ended before it knew the result.
    UnknownOutcome,
    /// Another peer answers for the scenario now.
    OtherOwner,
    /// The tool was called too often.
    RateLimited,
    /// Too many calls are under way.
    Busy,
    /// The arguments exceed the caller's share of the memory for callers.
    MemoryShareFull,
    /// There is no memory for the arguments.
    MemoryFull,
    /// The tool ran, and there is no memory for its result.
    ResultLeftOut,
    /// The scenario failed too often just now.
    CircuitOpen,
    /// The scenario is known to be unavailable.
    Unavailable,
    /// The scenario offers no way to call its tools.
    NotCallable,
    /// The scenario answered, and not as a tool does.
    BadAnswer,
    /// The scenario did not answer in time.
    Timeout,
    /// The scenario cannot be reached.
    Unreachable,
    /// The answer is larger than allowed.
    TooLarge,
    /// The connection broke.
    Broken,
    /// Decisions of operators may be lost.
    StateLost,
    /// A failure inside this program.
    Internal,
}

/// A call that was not made, not approved, or got no valid answer.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The word for it.
    pub code: FailureCode,
    /// What happened, for people. It may quote the caller.
    pub text: String,
    /// What to do next, if that is known. Written after the text, it is the whole message
    /// ([`Display`](fmt::Display)).
    pub next: Option<Cow<'static, str>>,
    /// The tool, as far as one was found.
    pub tool: Option<ToolId>,
    /// Whether the tool may have run: the call was sent.
    pub was_sent: bool,
    /// How many times the call was sent, or was tried to be; `None` if it was refused before.
    pub attempts: Option<u32>,
    /// When to try again, if that is known.
    pub retry_after: Option<Duration>,
    /// How the arguments or the output do not fit.
    pub violations: Vec<Violation>,
    /// Whether there are more violations.
    pub has_more_violations: bool,
    /// The tools that the name may mean.
    pub candidates: Vec<ToolId>,
    /// The tool with the definition that it has now, if the call was made for another one.
    pub present: Option<Arc<ViewTool>>,
    /// Why the call itself failed, for faces with words of their own for that.
    pub cause: Option<CallError>,
    /// The bound or limit that refused the call, without the sentence around it.
    pub reason: Option<String>,
    /// JSON pointers to members that were taken out of the arguments.
    pub adjusted: Vec<String>,
    /// The approval that ended without an answer.
    pub approval: Option<Arc<ApprovalRequest>>,
}

impl FailureCode {
    /// The word for a call that was sent to its scenario, or was to be.
    pub(super) fn of_call(error: &CallError) -> Self {
        match error {
            CallError::NotCallable(_) => Self::NotCallable,
            CallError::NotThisProtocol { .. } => Self::BadAnswer,
            CallError::Unsent(error) | CallError::Unanswered(error) => match error {
                TransportError::Timeout { .. } => Self::Timeout,
                TransportError::Refused(_)
                | TransportError::Unresolved(_)
                | TransportError::Proxy { .. }
                | TransportError::CommandNotFound { .. }
                | TransportError::NotStarted { .. } => Self::Unreachable,
                TransportError::TooLarge { .. } => Self::TooLarge,
                _ => Self::Broken,
            },
        }
    }

    /// The word as programs read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::ToolGone => "tool_gone",
            Self::UnknownRevision => "unknown_revision",
            Self::StaleDefinition => "stale_definition",
            Self::Ambiguous => "ambiguous",
            Self::NotTrusted => "not_trusted",
            Self::Disabled => "disabled",
            Self::Held => "tool_held",
            Self::NotAllowed => "not_allowed",
            Self::UnknownProfile => "unknown_profile",
            Self::InvalidArguments => "invalid_arguments",
            Self::OutputMissing => "output_missing",
            Self::InvalidOutput => "invalid_output",
            Self::NoActivity => "no_activity",
            Self::ApprovalRequired => "approval_required",
            Self::ApprovalsFull => "approvals_full",
            Self::ApprovalNotStored => "approval_not_stored",
            Self::Rejected => "rejected",
            Self::ApprovalExpired => "approval_expired",
            Self::UnknownOutcome => "unknown_outcome",
            Self::OtherOwner => "other_owner",
            Self::RateLimited => "rate_limited",
            Self::Busy => "busy",
            Self::MemoryShareFull => "memory_share_full",
            Self::MemoryFull => "memory_full",
            Self::ResultLeftOut => "result_left_out",
            Self::CircuitOpen => "circuit_open",
            Self::Unavailable => "unavailable",
            Self::NotCallable => "not_callable",
            Self::BadAnswer => "bad_answer",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::TooLarge => "too_large",
            Self::Broken => "broken",
            Self::StateLost => "state_lost",
            Self::Internal => "internal",
        }
    }
}

impl Failure {
    /// A failure with this code and text, without anything beside them.
    fn new(code: FailureCode, text: String) -> Self {
        Self {
            code,
            text,
            next: None,
            tool: None,
            was_sent: false,
            attempts: None,
            retry_after: None,
            violations: Vec::new(),
            has_more_violations: false,
            candidates: Vec::new(),
            present: None,
            cause: None,
            reason: None,
            adjusted: Vec::new(),
            approval: None,
        }
    }

    /// Whether the call was refused before anything was tried.
    pub fn is_refusal(&self) -> bool {
        self.attempts.is_none() && !self.was_sent && self.code != FailureCode::Internal
    }

    /// An approval that ended without an answer.
    pub(super) fn of_approval(code: FailureCode, request: Arc<ApprovalRequest>) -> Self {
        let text = format!(
            "the call of `{}` waited for approval, which is {}",
            request.tool, request.state
        );
        Self {
            tool: Some(request.tool.clone()),
            approval: Some(request),
            ..Self::new(code, text)
        }
    }

    /// A call of this name that did not end while its caller waited.
    pub(super) fn overdue(name: &str) -> Self {
        let text = format!(
            "the call of `{name}` did not end while its caller waited; a tool that was begun goes on"
        );
        Self {
            was_sent: true,
            ..Self::new(FailureCode::Timeout, text)
        }
    }

    /// The number of the HTTP status for it, which the records of calls promise for every face.
    pub fn status_number(&self) -> u16 {
        status_number(self.code, self.was_sent)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match &self.next {
            Some(next) => write!(f, "; {next}"),
            None => Ok(()),
        }
    }
}

/// The number of the HTTP status for a failure.
fn status_number(code: FailureCode, was_sent: bool) -> u16 {
    use FailureCode as Code;
    match code {
        Code::UnknownTool | Code::ToolGone => 404,
        Code::UnknownRevision | Code::StaleDefinition | Code::Ambiguous | Code::OtherOwner => 409,
        Code::NotTrusted
        | Code::Disabled
        | Code::Held
        | Code::NotAllowed
        | Code::UnknownProfile
        | Code::ApprovalRequired
        | Code::Rejected
        | Code::ApprovalExpired => 403,
        Code::InvalidArguments | Code::OutputMissing | Code::InvalidOutput => 400,
        Code::NoActivity | Code::NotCallable => 501,
        Code::RateLimited | Code::Busy | Code::ApprovalsFull | Code::MemoryShareFull => 429,
        Code::CircuitOpen
        | Code::MemoryFull
        | Code::Unavailable
        | Code::ApprovalNotStored
        | Code::StateLost => 503,
        // Clients repeat what is answered 503, and the tool has run.
        Code::ResultLeftOut => 502,
        Code::Timeout if was_sent => 504,
        Code::BadAnswer | Code::Timeout | Code::Unreachable | Code::TooLarge | Code::Broken => {
            if was_sent {
                502
            } else {
                503
            }
        }
        Code::UnknownOutcome | Code::Internal => 500,
    }
}

impl ExecuteError {
    /// The word for it.
    pub fn code(&self) -> FailureCode {
        match self {
            Self::Unknown(_) => FailureCode::UnknownTool,
            Self::Gone { .. } => FailureCode::ToolGone,
            Self::UnknownRevision(_) => FailureCode::UnknownRevision,
            Self::StaleDefinition { .. } => FailureCode::StaleDefinition,
            Self::Ambiguous { .. } => FailureCode::Ambiguous,
            Self::NotTrusted { .. } => FailureCode::NotTrusted,
            Self::Disabled { .. } => FailureCode::Disabled,
            Self::Held { .. } => FailureCode::Held,
            Self::OutOfBounds { .. } => FailureCode::NotAllowed,
            Self::UnknownProfile(_) => FailureCode::UnknownProfile,
            Self::Invalid { .. } => FailureCode::InvalidArguments,
            Self::OutputMissing { .. } => FailureCode::OutputMissing,
            Self::OutputUnfit { .. } => FailureCode::InvalidOutput,
            Self::NoActivity { .. } => FailureCode::NoActivity,
            Self::ApprovalRequired { .. } => FailureCode::ApprovalRequired,
            Self::ApprovalsFull { .. } => FailureCode::ApprovalsFull,
            Self::ApprovalNotStored { .. } => FailureCode::ApprovalNotStored,
            Self::OtherOwner { .. } => FailureCode::OtherOwner,
            Self::RateLimited { .. } => FailureCode::RateLimited,
            Self::Busy { .. } | Self::ChecksBusy { .. } => FailureCode::Busy,
            Self::NoRoom {
                exceeded: BudgetExceeded::Share { .. },
                ..
            } => FailureCode::MemoryShareFull,
            Self::NoRoom {
                exceeded: BudgetExceeded::Whole { .. },
                ..
            } => FailureCode::MemoryFull,
            Self::ResultLeftOut { .. } => FailureCode::ResultLeftOut,
            Self::BreakerOpen { .. } => FailureCode::CircuitOpen,
            Self::Unavailable { .. } => FailureCode::Unavailable,
            Self::Failed { error, .. } => FailureCode::of_call(error),
            Self::StateLost { .. } => FailureCode::StateLost,
            Self::Internal(_) => FailureCode::Internal,
        }
    }

    /// The number of the HTTP status that a call over HTTP gets.
    pub fn status_number(&self) -> u16 {
        match self {
            Self::ApprovalRequired {
                waiting: Some(_), ..
            } => GOES_ON,
            refused => status_number(refused.code(), refused.was_sent()),
        }
    }

    /// Whether the tool may have run.
    fn was_sent(&self) -> bool {
        match self {
            Self::Failed { error, .. } => error.was_sent(),
            Self::ResultLeftOut { .. } => true,
            _ => false,
        }
    }

    /// The tool, as far as one was found.
    fn tool(&self) -> Option<&ToolId> {
        match self {
            Self::Gone { id, .. }
            | Self::NotTrusted { id, .. }
            | Self::Disabled { id, .. }
            | Self::Held { id, .. }
            | Self::OutOfBounds { id, .. }
            | Self::NoActivity { id, .. }
            | Self::ApprovalRequired { id, .. }
            | Self::ApprovalsFull { id }
            | Self::ApprovalNotStored { id }
            | Self::OtherOwner { id, .. }
            | Self::RateLimited { id, .. }
            | Self::ChecksBusy { id, .. }
            | Self::ResultLeftOut { id, .. }
            | Self::Unavailable { id, .. }
            | Self::Failed { id, .. }
            | Self::Internal(id) => Some(id),
            Self::StaleDefinition { tool, .. } => Some(&tool.id),
            Self::Unknown(_)
            | Self::UnknownRevision(_)
            | Self::Ambiguous { .. }
            | Self::UnknownProfile(_)
            | Self::Invalid { .. }
            | Self::OutputMissing { .. }
            | Self::OutputUnfit { .. }
            | Self::Busy { .. }
            | Self::NoRoom { .. }
            | Self::StateLost { .. } => None,
            Self::BreakerOpen { tool, .. } => tool.as_ref(),
        }
    }
}

impl From<&ExecuteError> for Failure {
    fn from(error: &ExecuteError) -> Self {
        let failure = Self {
            next: error.next_step(),
            tool: error.tool().cloned(),
            was_sent: error.was_sent(),
            retry_after: error.retry_after(),
            ..Self::new(error.code(), error.what_is_wrong())
        };
        match error {
            ExecuteError::Failed {
                error, attempts, ..
            } => Self {
                attempts: Some(*attempts),
                cause: Some(error.clone()),
                ..failure
            },
            ExecuteError::ResultLeftOut { attempts, .. } => Self {
                attempts: Some(*attempts),
                ..failure
            },
            ExecuteError::Invalid {
                violations, more, ..
            }
            | ExecuteError::OutputUnfit {
                violations, more, ..
            } => Self {
                violations: violations.clone(),
                has_more_violations: *more,
                ..failure
            },
            ExecuteError::Ambiguous { candidates, .. } => Self {
                candidates: candidates.clone(),
                ..failure
            },
            ExecuteError::StaleDefinition { tool, .. } => Self {
                present: Some(Arc::clone(tool)),
                ..failure
            },
            ExecuteError::Unknown(name) => Self {
                reason: Some(name.clone()),
                ..failure
            },
            ExecuteError::OutOfBounds { reason, .. } => Self {
                reason: Some(reason.clone()),
                ..failure
            },
            _ => failure,
        }
    }
}
