//! How many operations are followed, and how.

use std::time::Duration;

/// The bounds of what is followed and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackerLimits {
    /// How many are kept at most, whatever became of them; those that are over make room for new ones.
    pub most: usize,
    /// Bytes of all that they say.
    pub bytes: usize,
    /// How long what is over is kept at most.
    pub keep: Duration,
    /// The least time between two questions about one operation.
    pub poll_min: Duration,
    /// The longest.
    pub poll_max: Duration,
    /// How long an operation is followed at most, whatever its tool declares.
    pub longest: Duration,
}
