//! How much of a scenario changed.

/// How much of a scenario changed besides what judging it may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Settled {
    /// Only time passed.
    Same,
    /// Only when it was polled and is polled next.
    Confirmed,
    /// Anything may have changed.
    Changed,
}
