//! The limits of approvals, the current state of a tool at the time of a decision, and why a
//! decision does not count.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{ApprovalRequest, PeerIdentity, Tool, WithNextStep};

/// The limits of what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalLimits {
    /// How long a call waits for a decision.
    pub expiry: Duration,
    /// How many are kept at most, in any state. Those that are over make room for new ones.
    pub most: usize,
    /// How many bytes all arguments and answers may have.
    pub bytes: usize,
    /// How long an approval is kept after it is over.
    pub keep: Duration,
}

/// A tool as it is now.
#[derive(Debug, Clone)]
pub struct CurrentTool {
    /// The peer that answers for the scenario.
    pub owner: PeerIdentity,
    /// The tool as it is offered.
    pub tool: Arc<Tool>,
    /// The definition whose activity the tool is, as it is offered, if the call was made for one
    /// version of it.
    pub called: Option<Arc<Tool>>,
}

// What to do next: the ends of the texts below.
const CALL_AGAIN: &str = "make the call again to request another approval";
const REJECT_FIRST: &str = "reject it, and make the call again to request another approval";

/// Why a decision does not count.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DecisionRefusal {
    /// Never requested, or forgotten.
    #[error("no call with this id waits for approval, or it was forgotten since")]
    Unknown,
    /// It was decided before, or is over.
    #[error("already decided: it is `{}`", .0.state)]
    Decided(Arc<ApprovalRequest>),
    /// Another decision on it is under way.
    #[error("another decision on it is under way right now")]
    Busy,
    /// It came too late.
    #[error("it expired before it was decided; {CALL_AGAIN}")]
    Late,
    /// The tool or its scenario changed since the call was requested.
    #[error("{0}, so an approval of the requested call does not count; {REJECT_FIRST}")]
    Changed(String),
}

impl WithNextStep for DecisionRefusal {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Late => Some(CALL_AGAIN.into()),
            Self::Changed(_) => Some(REJECT_FIRST.into()),
            Self::Unknown | Self::Decided(_) | Self::Busy => None,
        }
    }
}
