//! How far the log has followed what the engine publishes.

use crate::catalog::{ProgramEnds, StateTransitions};

/// What of the published events is in the log.
#[derive(Debug, Default)]
pub(super) struct SeenEvents {
    /// The sequence of the latest snapshot that was read.
    pub(super) upto: Option<u64>,
    /// The ends of programs up to it.
    pub(super) ends: ProgramEnds,
    /// The changes of states up to it.
    pub(super) states: StateTransitions,
}
