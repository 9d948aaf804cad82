//! One instant on both clocks.

use jiff::Timestamp;
use tokio::time::Instant;

/// One instant on both clocks. The loop reads them once for each thing that it does, and no part reads a clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    /// For deadlines.
    pub(super) mono: Instant,
    /// For people.
    pub(super) wall: Timestamp,
}
