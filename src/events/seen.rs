//! The calls whose events a reader may see.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The calls whose events a reader gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallsSeen {
    /// All of them.
    All,
    /// Those with these ids.
    WithIds(BTreeSet<Arc<str>>),
    /// Those with these ids that belong to this identity, and the operations that belong to it. All
    /// other readers get all operations.
    OwnWithIds(Arc<str>, BTreeSet<Arc<str>>),
}
