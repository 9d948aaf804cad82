//! Calls that are not over.

use super::approval::Approvals;
use super::dependencies::CallDependencies;
use super::track::OperationTracker;
use super::turns::Turns;

/// The approvals, the operations and the turns, with what they depend on.
#[derive(Debug)]
pub(super) struct PendingCalls {
    pub(super) approvals: Approvals,
    pub(super) operations: OperationTracker,
    pub(super) turns: Turns,
    pub(super) parts: CallDependencies,
}
