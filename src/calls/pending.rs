//! Calls that are not over.

use super::approval::Approvals;
use super::dependencies::CallDependencies;
use super::track::OperationTracker;

/// The approvals and the operations, with what they depend on.
#[derive(Debug)]
pub(super) struct PendingCalls {
    pub(super) approvals: Approvals,
    pub(super) operations: OperationTracker,
    pub(super) parts: CallDependencies,
}
