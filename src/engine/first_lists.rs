//! The configured scenarios whose first list is awaited by the lists of the MCP server.
//!
//! A client that lists once would otherwise get no tools while the daemon still greets its servers.
//! Each scenario is awaited until its first answer is published, and at most until one deadline for
//! all clients, which counts from the start or from the appearance of its entry.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::ScenarioName;
use crate::runtime::{Latch, Readiness};

/// How long a first answer is awaited. A client that waits longer for a list gives up, and a server
/// that takes longer is announced by `list_changed`.
pub(crate) const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// The awaited scenarios.
#[derive(Debug)]
pub(super) struct FirstLists {
    awaited: Readiness,
    latches: BTreeMap<ScenarioName, AwaitedList>,
}

/// One awaited scenario.
#[derive(Debug)]
struct AwaitedList {
    until: Instant,
    latch: Latch,
}

impl FirstLists {
    /// No scenario is awaited. `awaited` is what the clients wait for.
    pub(super) fn new(awaited: Readiness) -> Self {
        Self {
            awaited,
            latches: BTreeMap::new(),
        }
    }

    /// Awaits the first answer of a scenario that appears now.
    pub(super) fn add(&mut self, name: ScenarioName, now: Instant) {
        let latch = self.awaited.latch(name.as_str());
        self.latches.insert(
            name,
            AwaitedList {
                until: now + FIRST_LIST_TIMEOUT,
                latch,
            },
        );
    }

    /// Takes the latch of a scenario that answered, to be dropped once the answer is published.
    pub(super) fn take(&mut self, name: &ScenarioName) -> Option<Latch> {
        self.latches.remove(name).map(|list| list.latch)
    }

    /// Whether no scenario is awaited.
    pub(super) fn is_empty(&self) -> bool {
        self.latches.is_empty()
    }

    /// When the next one is no longer awaited.
    pub(super) fn due(&self) -> Option<Instant> {
        self.latches.values().map(|list| list.until).min()
    }

    /// Drops those whose deadline is over.
    pub(super) fn expire(&mut self, now: Instant) {
        self.latches.retain(|_, list| list.until > now);
    }
}
