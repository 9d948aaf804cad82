//! Facts about a scenario from its answers and its sources; its state follows from them
//! (`lifecycle.rs`).

use jiff::Timestamp;
use tokio::time::Instant;

use super::lifecycle::{Lifecycle, RemovedBy};
use crate::model::ScenarioState;

/// How long the active manifest counts as live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum ManifestTerm {
    /// It was restored from the store and not confirmed yet.
    Restored,
    /// It counts as live until this time.
    Until(Instant),
    /// No longer: its scenario was absent since, and another process may come back.
    Ended,
    /// No longer: its scenario was down since, so its tools were withdrawn.
    Withdrawn,
}

/// The result of a scenario's last poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum LastPoll {
    /// There was no poll since the start, or since it was absent.
    Unanswered,
    /// The answer was good.
    Good,
    /// There was no answer, or it could not be used.
    Failed,
    /// The answer was 401 or 403.
    Unauthorized,
    /// The protocol version was out of range.
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
pub(in crate::engine) enum SourcePresence {
    /// A source names it, or no source has finished its first search yet.
    Named,
    /// No source names it any more. Its last address is polled once more.
    Leaving,
    /// No source names it any more, and it still answers.
    Unnamed,
    /// No source names it any more, and it does not answer or is not polled.
    Absent {
        /// Since when.
        since: Instant,
        /// What removed it.
        by: RemovedBy,
    },
}

/// The state of a scenario, the reason, and since when.
#[derive(Debug)]
pub(in crate::engine) struct CurrentState {
    lifecycle: Lifecycle,
    /// In one sentence without a full stop.
    reason: String,
    since: Timestamp,
    /// The last state that was announced in an event; `None` for a scenario that was just found.
    reported: Option<ScenarioState>,
}

/// Whether the current state was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateNotice {
    /// It was announced before.
    Already,
    /// It was not announced before.
    Anew {
        /// The state that was announced last.
        before: Option<ScenarioState>,
    },
}

impl CurrentState {
    /// The state of a scenario that was just found.
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            lifecycle: Lifecycle::Connecting,
            reason: "not polled yet".into(),
            since: now,
            reported: None,
        }
    }

    pub(super) fn lifecycle(&self) -> Lifecycle {
        self.lifecycle
    }

    pub(super) fn reason(&self) -> &str {
        &self.reason
    }

    pub(super) fn since(&self) -> Timestamp {
        self.since
    }

    /// The last announced state; `None` if none was announced.
    pub(super) fn announced_state(&self) -> Option<ScenarioState> {
        self.reported
    }

    /// Takes over the announced state when the name goes to another scenario: for readers of events
    /// it is the name whose state changes.
    pub(super) fn follows(&mut self, before: &Self) {
        self.reported = before.reported;
    }

    /// Sets another state and reason. Returns whether the visible state changed, and whether the
    /// visible reason changed.
    pub(super) fn enter(
        &mut self,
        lifecycle: Lifecycle,
        reason: String,
        now: Timestamp,
    ) -> (bool, bool) {
        let turned = self.lifecycle.shown() != lifecycle.shown();
        if turned {
            self.since = now;
        }
        self.lifecycle = lifecycle;
        let reworded = self.reason != reason;
        self.reason = reason;
        (turned, reworded)
    }

    /// Marks the current state as announced, and returns whether it was announced before.
    pub(super) fn mark_announced(&mut self) -> StateNotice {
        let state = self.lifecycle.shown();
        let before = self.reported.replace(state);
        if before == Some(state) {
            StateNotice::Already
        } else {
            StateNotice::Anew { before }
        }
    }
}
