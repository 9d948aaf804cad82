//! The end of a call, in the one form that every face reports.
//!
//! A face parses a request, has it settled ([`Calls::settle`](super::Calls::settle)), and writes
//! the [`CallEnd`]. Never done here: words and shapes of one face, and waiting.

use std::sync::Arc;

use super::active::PendingInput;
use super::request::{UNTRACKED, UNTRACKED_ERROR};
use super::track::FollowUp;
use super::{CallResponse, ExecuteError, Failure, FailureCode};
use crate::model::{
    ApprovalRequest, ApprovalState, JsonText, Operation, OperationState, StoredAnswer,
};
use crate::protocols::DeclinedInput;

/// What a call came to, as far as its caller waits for it.
#[derive(Debug, Clone)]
pub enum CallEnd {
    /// The tool answered. It succeeded, or it failed in its own words; perhaps it goes on.
    Answered(ToolAnswer),
    /// A human has to approve the call, or did so and it is under way.
    AwaitsApproval(AwaitedApproval),
    /// The tool waits for input of its caller: only of one that takes part by the id of its call
    /// ([`CallerRole`](super::CallerRole)).
    NeedsInput(Arc<PendingInput>),
    /// The call was not made, not approved, or got no valid answer.
    Failed(Box<Failure>),
}

/// The answer of a tool.
#[derive(Debug, Clone)]
pub struct ToolAnswer {
    /// Whether the tool succeeded.
    pub success: bool,
    /// What it answered.
    pub result: Option<JsonText>,
    /// The whole result of an MCP server, with its content blocks.
    pub content: Option<JsonText>,
    /// The error message.
    pub error: Option<Arc<str>>,
    /// The short word for the error.
    pub code: Option<Arc<str>>,
    /// How long the call took, in milliseconds, as far as that is known.
    pub took_ms: Option<u64>,
    /// Whether work goes on after the answer.
    pub going: GoingOn,
    /// The approval with which it was made.
    pub approval: Option<Arc<str>>,
    /// The operation that ended with this answer.
    pub operation: Option<EndedOperation>,
    /// JSON pointers to members that were taken out of the arguments.
    pub adjusted: Vec<String>,
    /// Why a question of the tool was declined without its user, if one was.
    pub declined: Option<DeclinedInput>,
    /// What the scenario sent; `None` if the call was answered for an earlier request.
    pub response: Option<Arc<CallResponse>>,
}

impl ToolAnswer {
    /// The bytes of its texts, about: one that stands in several places may count twice.
    pub(crate) fn bytes(&self) -> usize {
        let document = self
            .response
            .as_ref()
            .and_then(|response| response.outcome.document.as_ref());
        [self.result.as_ref(), self.content.as_ref(), document]
            .into_iter()
            .flatten()
            .map(|json| json.get().len())
            .chain(self.error.as_ref().map(|error| error.len()))
            .sum()
    }
}

/// Whether work goes on after an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoingOn {
    /// None does.
    No,
    /// It goes on as the operation with this id.
    As(Arc<str>),
    /// It goes on and cannot be followed, for this reason.
    Untracked(String),
}

/// An operation that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedOperation {
    /// Its id.
    pub id: Arc<str>,
    /// The word for its state.
    pub state: &'static str,
}

/// A call that waits for approval, or is under way after it.
#[derive(Debug, Clone)]
pub struct AwaitedApproval {
    /// The approval.
    pub request: Arc<ApprovalRequest>,
    /// JSON pointers to members that were taken out of the arguments.
    pub adjusted: Vec<String>,
}

impl AwaitedApproval {
    /// Whether it was approved and is under way.
    pub fn is_under_way(&self) -> bool {
        self.request.state == ApprovalState::Started
    }
}

impl CallEnd {
    /// The end of a call that needed approval, as far as that is decided.
    pub(super) fn of_approval(request: Arc<ApprovalRequest>, adjusted: Vec<String>) -> Self {
        let ended_without_answer = |code, request, adjusted| {
            Self::Failed(Box::new(Failure {
                adjusted,
                ..Failure::of_approval(code, request)
            }))
        };
        match request.state {
            ApprovalState::Waiting | ApprovalState::Started => {
                Self::AwaitsApproval(AwaitedApproval { request, adjusted })
            }
            ApprovalState::Answered | ApprovalState::Failed => {
                let answer = request
                    .answer
                    .as_ref()
                    .map_or_else(ToolAnswer::failed, ToolAnswer::from_stored);
                Self::Answered(ToolAnswer {
                    approval: Some(Arc::clone(&request.id)),
                    adjusted,
                    ..answer
                })
            }
            ApprovalState::Rejected => {
                ended_without_answer(FailureCode::Rejected, request, adjusted)
            }
            ApprovalState::Expired => {
                ended_without_answer(FailureCode::ApprovalExpired, request, adjusted)
            }
            ApprovalState::Unknown => {
                ended_without_answer(FailureCode::UnknownOutcome, request, adjusted)
            }
        }
    }

    /// The bytes of the answer that are kept with it.
    pub(super) fn weight(&self) -> usize {
        let Self::Answered(ToolAnswer {
            response: Some(response),
            ..
        }) = self
        else {
            return 0;
        };
        response.outcome.bytes()
    }

    /// The approval without which the call would not have ended so.
    pub(super) fn ended_approval(&self) -> Option<&str> {
        match self {
            Self::Answered(answer) => answer.approval.as_deref(),
            Self::Failed(failure) => failure.approval.as_ref().map(|request| &*request.id),
            Self::AwaitsApproval(_) | Self::NeedsInput(_) => None,
        }
    }
}

impl ToolAnswer {
    /// The tool failed without a word.
    pub(super) fn failed() -> Self {
        Self {
            success: false,
            result: None,
            content: None,
            error: None,
            code: None,
            took_ms: None,
            going: GoingOn::No,
            approval: None,
            operation: None,
            adjusted: Vec::new(),
            declined: None,
            response: None,
        }
    }

    fn from_response(response: Arc<CallResponse>) -> Self {
        let outcome = &response.outcome;
        Self {
            success: outcome.success,
            result: outcome.result.clone(),
            content: outcome.content.clone(),
            error: outcome.error.as_deref().map(Into::into),
            code: outcome.code.as_deref().map(Into::into),
            took_ms: Some(response.took_ms()),
            going: GoingOn::from(&response.going),
            approval: None,
            operation: None,
            adjusted: response.adjusted.clone(),
            declined: response.declined,
            response: Some(response),
        }
    }

    /// The answer that was kept for its caller.
    fn from_stored(answer: &StoredAnswer) -> Self {
        let kept = Self {
            success: answer.success,
            result: answer.result.clone(),
            content: answer.content.clone(),
            error: answer.error.clone(),
            code: answer.code.clone(),
            took_ms: Some(answer.took_ms),
            going: answer.operation.clone().map_or(GoingOn::No, GoingOn::As),
            ..Self::failed()
        };
        let untracked = answer
            .error
            .as_deref()
            .and_then(|error| error.strip_prefix(UNTRACKED_ERROR));
        match untracked.filter(|_| answer.success && answer.code.as_deref() == Some(UNTRACKED)) {
            Some(why) => Self {
                error: None,
                code: None,
                going: GoingOn::Untracked(why.to_owned()),
                ..kept
            },
            None => kept,
        }
    }

    /// The operation that is waited for. One of an approved call is not: its answer was handed out.
    pub fn followed_operation(&self) -> Option<&Arc<str>> {
        match &self.going {
            GoingOn::As(operation) if self.approval.is_none() => Some(operation),
            _ => None,
        }
    }

    /// The end of a call whose operation is over; while that goes on, that it does.
    pub(super) fn from_operation(operation: &Operation) -> Self {
        if !operation.state.is_over() {
            return Self {
                success: true,
                going: GoingOn::As(Arc::clone(&operation.id)),
                ..Self::failed()
            };
        }
        let success = operation.state == OperationState::Succeeded;
        let error = operation.error.as_ref().or(operation.note.as_ref());
        Self {
            success,
            result: operation.result.clone().filter(|_| success),
            error: error.filter(|_| !success).cloned(),
            operation: Some(EndedOperation {
                id: Arc::clone(&operation.id),
                state: operation.state.as_str(),
            }),
            ..Self::failed()
        }
    }
}

impl From<Result<CallResponse, ExecuteError>> for CallEnd {
    fn from(ended: Result<CallResponse, ExecuteError>) -> Self {
        match ended {
            Ok(response) => Self::Answered(ToolAnswer::from_response(Arc::new(response))),
            Err(ExecuteError::ApprovalRequired {
                waiting: Some(waiting),
                adjusted,
                ..
            }) => Self::of_approval(waiting, adjusted),
            Err(refused) => Self::Failed(Box::new(Failure::from(&refused))),
        }
    }
}

impl From<&FollowUp> for GoingOn {
    fn from(going: &FollowUp) -> Self {
        match going {
            FollowUp::Over => Self::No,
            FollowUp::Followed(operation) => Self::As(Arc::clone(&operation.id)),
            FollowUp::Untracked(why) => Self::Untracked(why.to_string()),
        }
    }
}
