//! Long-running operations: work that continues in a scenario after a call was answered.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;

use super::caller::CallerInfo;
use super::name::ToolId;
use super::scenario::PeerIdentity;
use crate::json::JsonText;

/// One long-running operation, followed by polling the scenario that started it.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// The daemon's own id. Unguessable: it gives the right to read the result and to cancel the
    /// operation.
    pub id: Arc<str>,
    /// What was started.
    pub tool: ToolId,
    /// The client that requested it.
    pub caller: CallerInfo,
    /// The identity of the access of its call, to which it belongs; `None` if an earlier version
    /// stored it.
    pub access: Option<Arc<str>>,
    /// The party behind the scenario at the request. No other is polled for its progress.
    pub owner: PeerIdentity,
    /// How to follow the operation, as the tool declared it at the call (`async_behavior`).
    pub behaviour: JsonText,
    /// The scenario's own id of it: a text or a number.
    pub reference: JsonText,
    /// Its state.
    pub state: OperationState,
    /// When it was started.
    pub started_at: Timestamp,
    /// When following it ends at the latest.
    pub deadline_at: Timestamp,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// When its status was last polled.
    pub polled_at: Option<Timestamp>,
    /// Its last state, in the scenario's own words.
    pub status: Option<Arc<str>>,
    /// How far it is.
    pub progress: Progress,
    /// The reason of its state, or the error of the latest poll; one sentence without a full stop.
    pub note: Option<Arc<str>>,
    /// Its result.
    pub result: Option<JsonText>,
    /// Its error, in the scenario's words.
    pub error: Option<Arc<str>>,
    /// Since when it is being cancelled.
    pub cancelling_since: Option<Timestamp>,
}

/// How far an operation is, as far as its scenario reports it. Each field is what the tool declared
/// it to be.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// Mostly a percentage.
    pub amount: Option<f64>,
    /// For people.
    pub message: Option<Arc<str>>,
    /// The part of the work.
    pub phase: Option<Arc<str>>,
    /// Which step.
    pub step: Option<f64>,
    /// Of how many.
    pub steps: Option<f64>,
    /// What is left, as the scenario writes it (mostly seconds).
    pub remaining: Option<Arc<str>>,
}

/// The state of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationState {
    /// At work, as far as is known.
    Running,
    /// The scenario was requested to cancel it and has not confirmed that yet.
    Cancelling,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// Cancelled.
    Cancelled,
    /// Not over when following it had to end. It may run on.
    TimedOut,
    /// The scenario does not know of it any more.
    Lost,
    /// Its status stayed one that its tool does not declare. It may run on; its result is the last
    /// answer of the status tool.
    UnknownStatus,
    /// Its scenario refused every request for its status from the first one on. It may run on.
    Untracked,
    /// It is not followed any more, and the scenario was not notified. It may run on.
    Abandoned,
}

/// A state that there is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a state of an operation")]
pub struct UnknownOperationState(String);

impl OperationState {
    /// Every state.
    pub const ALL: [Self; 10] = [
        Self::Running,
        Self::Cancelling,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::TimedOut,
        Self::Lost,
        Self::UnknownStatus,
        Self::Untracked,
        Self::Abandoned,
    ];

    /// The state as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed-out",
            Self::Lost => "lost",
            Self::UnknownStatus => "unknown-status",
            Self::Untracked => "untracked",
            Self::Abandoned => "abandoned",
        }
    }

    /// Whether the state is final.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Running | Self::Cancelling)
    }
}

impl fmt::Display for OperationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OperationState {
    type Err = UnknownOperationState;

    fn from_str(text: &str) -> Result<Self, UnknownOperationState> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| UnknownOperationState(text.chars().take(60).collect()))
    }
}

impl Operation {
    /// Bytes of its texts: the memory that it takes, without a fixed part.
    pub fn weight(&self) -> usize {
        let text = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
        let result = self.result.as_ref().map_or(0, |result| result.get().len());
        self.behaviour.get().len()
            + self.reference.get().len()
            + result
            + text(&self.error)
            + text(&self.note)
    }
}
