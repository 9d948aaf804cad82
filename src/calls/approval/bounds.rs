//! What approvals are held to: how many are kept, what a tool has to be still, and why a decision does not count.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{ApprovalRequest, Party, Tool};

/// The bounds of what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a call waits for a decision.
    pub expiry: Duration,
    /// How many are kept at most, whatever became of them; those that are over make room for new ones.
    pub most: usize,
    /// Bytes of all arguments and answers.
    pub bytes: usize,
    /// How long what is over is kept at most.
    pub keep: Duration,
}

/// How a tool stands now.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Who answers for the scenario.
    pub owner: Party,
    /// The tool as it is offered.
    pub tool: Arc<Tool>,
}

/// Why a decision does not count.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Never asked for, or forgotten.
    #[error("no call with this id waits for approval, or it was forgotten since")]
    Unknown,
    /// It was decided before, or is over.
    #[error("it was decided before: it is `{}`", .0.state)]
    Decided(Arc<ApprovalRequest>),
    /// Somebody else is deciding it right now.
    #[error("somebody else is deciding it right now")]
    Busy,
    /// It came too late.
    #[error("it expired before it was decided; whoever wanted it has to ask again")]
    Late,
    /// What would be run is not what was asked for.
    #[error("{0}, so a yes to what was asked for does not count; reject it, and let it be asked for again")]
    Changed(String),
}
