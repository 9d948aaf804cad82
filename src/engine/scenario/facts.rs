//! What is known of a scenario from its answers and its sources, from which its state follows (`lifecycle.rs`).

use tokio::time::Instant;

use super::lifecycle::RemovedBy;

/// How long a manifest in force counts as live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Term {
    /// It was restored from the store, and was not confirmed yet.
    Restored,
    /// Until then.
    Until(Instant),
    /// Not any more: its scenario was absent since, and what comes back may be something else.
    Ended,
}

/// What the last answer of a scenario came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Latest {
    /// There was none since the start, or since it was absent.
    Unanswered,
    /// It was good.
    Good,
    /// It was none, or could not be used.
    Failed,
    /// It was 401 or 403.
    Unauthorized,
    /// It was in a version out of range.
    OutOfRange,
}

/// Why a scenario that answers does not list its tools.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Obstacle {
    /// Since when it gave no good answer for such a reason.
    pub(in crate::engine) since: Instant,
    /// The reason, for people.
    pub(in crate::engine) message: String,
}

/// Whether a source names a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Presence {
    /// One does, or none has looked yet.
    Named,
    /// None does any more. Its last address is polled once more.
    Leaving,
    /// None does any more, and it still answers.
    Unnamed,
    /// None does any more, and it does not answer, or is not polled.
    Absent {
        /// Since when.
        since: Instant,
        /// Whose doing it is.
        by: RemovedBy,
    },
}
