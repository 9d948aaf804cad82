//! Effects that the parts of the engine request. A part only returns them; the loop applies them in
//! one place and one order (`apply.rs`).

use std::time::Duration;

use tokio::time::Instant;

use super::persist::manifest_writer::SaveRequest;
use crate::model::{Finding, Isolated, ScenarioName, StateTransition};

/// The effects of a part, in the order in which they are applied: close, store, notify, poll,
/// publish.
#[derive(Default)]
pub(super) struct Effects {
    /// Scenarios whose session is closed, because each is another process now or no longer known.
    pub(super) close: Vec<ScenarioName>,
    /// Writes to the store, done beside the loop.
    pub(super) store: Vec<SaveRequest>,
    /// Notices, most of them sent once the rest is published.
    pub(super) notify: Vec<Notice>,
    /// Scenarios to poll ahead of their schedule, with the time over which that is spread.
    pub(super) poll: Vec<(PollSet, Duration)>,
    /// Changes to publish, in this order.
    pub(super) publish: Vec<Dirty>,
}

/// Which scenarios are to be polled.
pub(super) enum PollSet {
    /// These.
    These(Vec<ScenarioName>),
    /// All trusted scenarios.
    Trusted,
}

/// A part of the published data that has to be made again.
pub(super) enum Dirty {
    /// The data published under this name no longer holds.
    Cleared(ScenarioName),
    /// A scenario has to be evaluated again.
    Scenario(ScenarioName, ChangeKind),
    /// A scenario is not known any more.
    Gone(StateTransition),
    /// The findings of the sources.
    Sources(Vec<Finding>),
    /// Whether the daemon is cut off.
    Isolated(Option<Isolated>),
    /// The displayed times of all scenarios.
    Times,
}

/// A client or a part that waits is notified.
pub(super) enum Notice {
    /// A poll of this scenario ended, or none will come.
    Polled(ScenarioName),
    /// A poll of this scenario has waited long, and goes on.
    Waits(ScenarioName),
    /// Readiness stops waiting for this scenario.
    Released(ScenarioName),
    /// These scenarios are not withdrawn for their failures before then.
    Reprieved(Vec<ScenarioName>, Instant),
}

/// How much of a scenario changed, apart from its evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ChangeKind {
    /// Only time passed.
    Same,
    /// Only the times of its last and next poll changed.
    Confirmed,
    /// Anything may have changed.
    Changed,
}

impl Effects {
    /// A scenario that has to be evaluated again.
    pub(super) fn scenario(name: &ScenarioName, settled: ChangeKind) -> Self {
        Self {
            publish: vec![Dirty::Scenario(name.clone(), settled)],
            ..Self::default()
        }
    }

    /// Scenarios that have to be polled within a time.
    pub(super) fn poll(names: Vec<ScenarioName>, within: Duration) -> Self {
        Self {
            poll: vec![(PollSet::These(names), within)],
            ..Self::default()
        }
    }

    /// The effects of both, these first.
    pub(super) fn and(mut self, mut more: Self) -> Self {
        self.close.append(&mut more.close);
        self.store.append(&mut more.store);
        self.poll.append(&mut more.poll);
        self.publish.append(&mut more.publish);
        self.notify.append(&mut more.notify);
        self
    }
}
