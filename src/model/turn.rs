//! A turn as it is stored.

use std::sync::Arc;

use jiff::Timestamp;

use super::JsonText;

/// The tool calls of one response of a model, and what became of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTurn {
    /// Its id.
    pub id: Arc<str>,
    /// The identity of the caller that made it.
    pub owner: Arc<str>,
    /// A digest of everything that it was made of.
    pub digest: Arc<str>,
    /// The id of its vendor's format.
    pub format: Arc<str>,
    /// When it began.
    pub begun_at: Timestamp,
    /// Its calls and their outcomes.
    pub document: JsonText,
}
