//! The limits of operations: how many are followed, and for how long.

use std::time::Duration;

/// The limits of what is followed and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackerLimits {
    /// How many are kept at most, in any state. Those that are over make room for new ones.
    pub most: usize,
    /// How many bytes all their texts may have.
    pub bytes: usize,
    /// How long an operation is kept after it is over.
    pub keep: Duration,
    /// The shortest time between two polls of one operation.
    pub poll_min: Duration,
    /// The longest time between two polls.
    pub poll_max: Duration,
    /// How long an operation is followed at most, whatever its tool declares.
    pub longest: Duration,
}
