//! Calls that are not over.

use super::approval::Approvals;
use super::parts::Parts;
use super::track::Tracker;

/// Where calls that are not over are kept.
#[derive(Debug)]
pub(super) struct Registers {
    pub(super) approvals: Approvals,
    pub(super) operations: Tracker,
    pub(super) parts: Parts,
}
