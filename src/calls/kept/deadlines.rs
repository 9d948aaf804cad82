//! When kept items are due, in the order of time, so that none is looked at before.

use std::collections::BTreeSet;

use jiff::Timestamp;
use tokio::time::Instant;

/// When an item ends by itself, whichever clock comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::calls) struct KeptDeadline {
    /// By the clock that cannot be set back.
    pub(in crate::calls) mono: Instant,
    /// By the clock that the wait was announced with.
    pub(in crate::calls) wall: Timestamp,
}

/// The numbers of items that have a deadline, by both clocks.
#[derive(Debug, Default)]
pub(super) struct KeptDeadlines {
    by_mono: BTreeSet<(Instant, u64)>,
    by_wall: BTreeSet<(Timestamp, u64)>,
}

impl KeptDeadlines {
    pub(super) fn add(&mut self, number: u64, deadline: KeptDeadline) {
        self.by_mono.insert((deadline.mono, number));
        self.by_wall.insert((deadline.wall, number));
    }

    pub(super) fn remove(&mut self, number: u64, deadline: KeptDeadline) {
        self.by_mono.remove(&(deadline.mono, number));
        self.by_wall.remove(&(deadline.wall, number));
    }

    /// The first of all by the clock that cannot be set back.
    pub(super) fn first(&self) -> Option<Instant> {
        self.by_mono.first().map(|(at, _)| *at)
    }

    /// Those that are due, in the order in which they were added.
    pub(super) fn due(&self, now: Instant, wall: Timestamp) -> BTreeSet<u64> {
        let by_mono = self
            .by_mono
            .range(..=(now, u64::MAX))
            .map(|(_, number)| *number);
        let by_wall = self
            .by_wall
            .range(..=(wall, u64::MAX))
            .map(|(_, number)| *number);
        by_mono.chain(by_wall).collect()
    }
}
