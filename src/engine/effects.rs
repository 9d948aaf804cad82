//! What the parts of the engine want done. A part only names it; the loop does it, in one place and one order (`apply.rs`).

use std::time::Duration;

use tokio::time::Instant;

use super::persist::manifest_writer::SaveRequest;
use crate::model::{Finding, Isolated, ScenarioName, StateTransition};

/// What a part wants done, in the order in which it is done: closed, stored, notified, polled, published.
#[derive(Default)]
pub(super) struct Effects {
    /// Scenarios whose session is closed: each is another process now, or not known any more.
    pub(super) close: Vec<ScenarioName>,
    /// To be stored behind the loop.
    pub(super) store: Vec<SaveRequest>,
    /// To be notified, most of them once the rest is published.
    pub(super) notify: Vec<Notice>,
    /// To be polled ahead of their schedule, with the time over which that is spread.
    pub(super) poll: Vec<(PollSet, Duration)>,
    /// To be published, in this order.
    pub(super) publish: Vec<Dirty>,
}

/// Which scenarios are to be polled.
pub(super) enum PollSet {
    /// These.
    These(Vec<ScenarioName>),
    /// All that are trusted.
    Trusted,
}

/// A part of what is published that has to be made anew.
pub(super) enum Dirty {
    /// What is published under this name does not hold any more.
    Cleared(ScenarioName),
    /// A scenario has to be judged again.
    Scenario(ScenarioName, ChangeKind),
    /// A scenario is not known any more.
    Gone(StateTransition),
    /// The findings of the sources.
    Sources(Vec<Finding>),
    /// Whether the daemon is cut off.
    Isolated(Option<Isolated>),
    /// The times that people are shown of all scenarios.
    Times,
}

/// A client or a part that waits is notified.
pub(super) enum Notice {
    /// A poll of this scenario ended, or none will come.
    Polled(ScenarioName),
    /// This scenario is not waited for any more.
    Released(ScenarioName),
    /// These scenarios are not withdrawn for their failures before then.
    Reprieved(Vec<ScenarioName>, Instant),
}

/// How much of a scenario changed besides what judging it may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ChangeKind {
    /// Only time passed.
    Same,
    /// Only when it was polled and is polled next.
    Confirmed,
    /// Anything may have changed.
    Changed,
}

impl Effects {
    /// That a scenario has to be judged again.
    pub(super) fn scenario(name: &ScenarioName, settled: ChangeKind) -> Self {
        Self { publish: vec![Dirty::Scenario(name.clone(), settled)], ..Self::default() }
    }

    /// That these have to be polled within a time.
    pub(super) fn poll(names: Vec<ScenarioName>, within: Duration) -> Self {
        Self { poll: vec![(PollSet::These(names), within)], ..Self::default() }
    }

    /// Both, these first.
    pub(super) fn and(mut self, mut more: Self) -> Self {
        self.close.append(&mut more.close);
        self.store.append(&mut more.store);
        self.poll.append(&mut more.poll);
        self.publish.append(&mut more.publish);
        self.notify.append(&mut more.notify);
        self
    }
}
