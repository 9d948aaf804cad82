//! One instant on both clocks.

use jiff::Timestamp;
use tokio::time::Instant;

/// One instant on both clocks. The loop reads them once for each event that it handles, and no part
/// reads a clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    /// For deadlines.
    pub(super) mono: Instant,
    /// For display.
    pub(super) wall: Timestamp,
}
