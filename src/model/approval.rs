//! A call that needs a human's approval, and its result.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;

use super::caller::CallerInfo;
use super::definition_version::NamedVersion;
use super::name::ToolId;
use super::scenario::PeerIdentity;
use crate::json::JsonText;

/// A call that needs a human's approval: exactly what would be run, for which caller, and which
/// party offered it at the request.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRequest {
    /// Unguessable: it gives the right to read the answer.
    pub id: Arc<str>,
    /// What is to be run.
    pub tool: ToolId,
    /// The name that the caller used.
    pub name: Arc<str>,
    /// The text of one JSON object, exactly as it will be sent.
    pub arguments: JsonText,
    /// The client that requested it.
    pub caller: CallerInfo,
    /// The identity of the access that it was requested with, to which its outcome belongs; `None`
    /// if an earlier version stored it. An approval is not bound to it.
    pub access: Option<Arc<str>>,
    /// The party behind the scenario at the request.
    pub owner: PeerIdentity,
    /// Digest of the tool as it was offered then, as hexadecimal digits.
    pub definition: Arc<str>,
    /// The definition that was called, if the tool is its activity and the call was made for one
    /// version of it.
    pub called: Option<CalledDefinition>,
    /// Digest of everything above but the id and the name, as hexadecimal digits: an approval is
    /// for this alone.
    pub digest: Arc<str>,
    /// Whether the tool declares that a call may be repeated.
    pub idempotent: bool,
    /// When it was requested.
    pub asked_at: Timestamp,
    /// Until when it may be decided.
    pub expires_at: Timestamp,
    /// Its state.
    pub state: ApprovalState,
    /// The decision; `None` while it waits, and when it expired.
    pub decided: Option<ApprovalDecision>,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// The result of the call.
    pub answer: Option<StoredAnswer>,
}

/// A definition whose activity is to be run, and the version of it that the call was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledDefinition {
    /// The definition.
    pub id: ToolId,
    /// Its version.
    pub version: NamedVersion,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalDecision {
    /// The person, by the name that they gave.
    pub by: Arc<str>,
    /// When.
    pub at: Timestamp,
    /// The reason, if they gave one.
    pub reason: Option<Arc<str>>,
}

/// The stored result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredAnswer {
    /// Whether the tool succeeded.
    pub success: bool,
    /// What it answered.
    pub result: Option<JsonText>,
    /// The whole result of an MCP server, with its content blocks. Kept in memory only.
    pub content: Option<JsonText>,
    /// The error message.
    pub error: Option<Arc<str>>,
    /// The short word for it.
    pub code: Option<Arc<str>>,
    /// How long the call took, in milliseconds.
    pub took_ms: u64,
    /// The operation that is running.
    pub operation: Option<Arc<str>>,
}

/// The state of a call that needs an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApprovalState {
    /// There is no decision yet.
    Waiting,
    /// Approved, and under way.
    Started,
    /// Approved, and the scenario answered, be it that the tool failed.
    Answered,
    /// Approved, and no usable answer came.
    Failed,
    /// An operator refused it.
    Rejected,
    /// There was no decision in time.
    Expired,
    /// Approved, and the daemon ended before it knew the result. The call is not run again.
    Unknown,
}

/// A state that there is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a state of an approval")]
pub struct UnknownApprovalState(String);

impl ApprovalState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Started,
        Self::Answered,
        Self::Failed,
        Self::Rejected,
        Self::Expired,
        Self::Unknown,
    ];

    /// The state as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Started => "started",
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Unknown => "unknown-outcome",
        }
    }

    /// Whether the state is final.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Started)
    }
}

impl fmt::Display for ApprovalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ApprovalState {
    type Err = UnknownApprovalState;

    fn from_str(text: &str) -> Result<Self, UnknownApprovalState> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| UnknownApprovalState(text.chars().take(60).collect()))
    }
}

impl ApprovalRequest {
    /// Why it gave way to newer ones while it waited; `None` if it did not.
    pub fn gave_way(&self) -> Option<&str> {
        let expired = self.state == ApprovalState::Expired;
        self.decided.as_ref().filter(|_| expired)?.reason.as_deref()
    }

    /// Bytes of the request and the answer: the memory that it takes, without a fixed part.
    pub fn weight(&self) -> usize {
        let answered = self.answer.as_ref().map_or(0, |answer| {
            let texts = [&answer.result, &answer.content].into_iter().flatten();
            texts.map(|text| text.get().len()).sum::<usize>()
                + answer.error.as_ref().map_or(0, |error| error.len())
        });
        self.arguments.get().len() + answered
    }
}
