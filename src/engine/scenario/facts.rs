//! What is known of a scenario from its answers and its sources, from which its state follows (`lifecycle.rs`).

use jiff::Timestamp;
use tokio::time::Instant;

use super::lifecycle::{Lifecycle, RemovedBy};
use crate::model::ScenarioState;

/// How long a manifest in force counts as live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum ManifestTerm {
    /// It was restored from the store, and was not confirmed yet.
    Restored,
    /// Until then.
    Until(Instant),
    /// Not any more: its scenario was absent since, and what comes back may be something else.
    Ended,
    /// Not any more: its scenario was down since, so that its tools were withdrawn.
    Withdrawn,
}

/// What the last answer of a scenario came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum LastPoll {
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
pub(in crate::engine) enum SourcePresence {
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

/// The state of a scenario, why and since when.
#[derive(Debug)]
pub(in crate::engine) struct CurrentState {
    lifecycle: Lifecycle,
    /// In one sentence without a full stop.
    reason: String,
    since: Timestamp,
    /// The state that was last told of; none yet for a scenario that was just heard of.
    told: Option<ScenarioState>,
}

/// Whether a state was told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateNotice {
    /// It was.
    Already,
    /// It was not; another one was, or none.
    Anew {
        /// The one before.
        before: Option<ScenarioState>,
    },
}

impl CurrentState {
    /// That of a scenario that was just heard of.
    pub(super) fn new(now: Timestamp) -> Self {
        Self { lifecycle: Lifecycle::Connecting, reason: "not asked yet".into(), since: now, told: None }
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

    /// Whether it was told of, so that it is known to others.
    pub(super) fn announced_state(&self) -> Option<ScenarioState> {
        self.told
    }

    /// The name has come to another scenario: to those who follow states it is the name whose state changes.
    pub(super) fn follows(&mut self, before: &Self) {
        self.told = before.told;
    }

    /// Takes another state or reason in. Whether people see another state, and whether they see another reason.
    pub(super) fn enter(&mut self, lifecycle: Lifecycle, reason: String, now: Timestamp) -> (bool, bool) {
        let turned = self.lifecycle.shown() != lifecycle.shown();
        if turned {
            self.since = now;
        }
        self.lifecycle = lifecycle;
        let reworded = self.reason != reason;
        self.reason = reason;
        (turned, reworded)
    }

    /// Whether this state was told of already. From now on it counts as told.
    pub(super) fn mark_announced(&mut self) -> StateNotice {
        let state = self.lifecycle.shown();
        let before = self.told.replace(state);
        if before == Some(state) { StateNotice::Already } else { StateNotice::Anew { before } }
    }
}
