//! Calls that are not over.

use super::approval::Approvals;
use super::dependencies::CallDependencies;
use super::track::OperationTracker;

/// Where calls that are not over are kept.
#[derive(Debug)]
pub(super) struct PendingCalls {
    pub(super) approvals: Approvals,
    pub(super) operations: OperationTracker,
    pub(super) parts: CallDependencies,
}
