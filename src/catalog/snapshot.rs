//! One writer, many readers: what is published, as one immutable value.
//!
//! A reader takes a [`Snapshot`] and answers its whole request from it. The writer cannot be
//! cloned.

use std::sync::Arc;

use arc_swap::ArcSwap;
use imbl::{OrdMap, Vector};
use jiff::Timestamp;
use tokio::sync::watch;

use super::{Catalog, FormerNames, RevisionHistory};
use crate::model::{
    ConfigState, Finding, Health, Isolated, RecordedEnd, ScenarioName, StateTransition,
};

/// Events of one kind that a snapshot remembers. A reader that misses more than that many between
/// two snapshots learns that it missed some.
const REMEMBERED: usize = 4096;

/// All that is published at one moment, as one value.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The merged tools.
    pub catalog: Catalog,
    /// The names that its list does not have any more.
    pub former_names: FormerNames,
    /// When this revision of the catalog came to be.
    pub generated_at: Timestamp,
    /// The health of every scenario that any source, the store or an operator knows of.
    pub health: OrdMap<ScenarioName, Arc<Health>>,
    /// Findings of sources, manifests and the store; those of the merge are in the catalog.
    pub findings: Arc<Vec<Finding>>,
    /// Grows by one with each snapshot of this process.
    pub sequence: u64,
    /// The latest changes of state.
    pub transitions: StateTransitions,
    /// The latest ends of programs.
    pub program_ends: ProgramEnds,
    /// Set while the daemon takes itself to be cut off.
    pub isolated: Option<Isolated>,
    /// How the daemon stands to its configuration, when it follows it.
    pub configuration: Option<Arc<ConfigState>>,
}

/// The latest changes of state of all scenarios.
pub type StateTransitions = RecentEvents<StateTransition>;

/// The latest ends of programs that callsheet started.
pub type ProgramEnds = RecentEvents<RecordedEnd>;

/// The latest events of one kind of all scenarios, in order. Cheap to clone: clones share what they
/// hold.
#[derive(Debug, Clone)]
pub struct RecentEvents<T> {
    total: u64,
    recent: Vector<Arc<T>>,
}

impl<T> Default for RecentEvents<T> {
    fn default() -> Self {
        Self {
            total: 0,
            recent: Vector::new(),
        }
    }
}

impl<T> RecentEvents<T> {
    /// Adds the newest.
    pub fn push(&mut self, event: T) {
        self.total += 1;
        self.recent.push_back(Arc::new(event));
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
    }

    /// How many happened since `earlier`, a former state of the same.
    pub fn count_since(&self, earlier: &Self) -> u64 {
        self.total.saturating_sub(earlier.total)
    }

    /// What happened since `earlier`, a former state of the same. `None` when some of it is not
    /// remembered any more.
    pub fn since(&self, earlier: &Self) -> Option<Vec<Arc<T>>> {
        let missed = usize::try_from(self.total.checked_sub(earlier.total)?).ok()?;
        if missed > self.recent.len() {
            return None;
        }
        // From the newest on: a snapshot adds few to the thousands that are remembered.
        let mut events: Vec<_> = self.recent.iter().rev().take(missed).cloned().collect();
        events.reverse();
        Some(events)
    }
}

/// Publishes snapshots. There is one.
#[derive(Debug)]
pub struct CatalogWriter {
    current: Arc<ArcSwap<Snapshot>>,
    past: Arc<ArcSwap<RevisionHistory>>,
    published: watch::Sender<u64>,
}

/// Reads snapshots. Cheap to clone; reading never waits.
#[derive(Debug, Clone)]
pub struct CatalogReader {
    current: Arc<ArcSwap<Snapshot>>,
    past: Arc<ArcSwap<RevisionHistory>>,
    published: watch::Receiver<u64>,
}

/// A store that holds `first`.
pub fn catalog_store(first: Snapshot) -> (CatalogWriter, CatalogReader) {
    let (sender, receiver) = watch::channel(first.sequence);
    let current = Arc::new(ArcSwap::from_pointee(first));
    let past = Arc::<ArcSwap<RevisionHistory>>::default();
    let writer = CatalogWriter {
        current: Arc::clone(&current),
        past: Arc::clone(&past),
        published: sender,
    };
    (
        writer,
        CatalogReader {
            current,
            past,
            published: receiver,
        },
    )
}

impl CatalogWriter {
    /// Makes `snapshot` the one that readers get.
    pub fn publish(&mut self, snapshot: Snapshot) {
        let sequence = snapshot.sequence;
        // The past is published first, so that a client's list is always found in one of the two.
        if RevisionHistory::differ(&self.current.load().catalog, &snapshot.catalog) {
            let mut past = RevisionHistory::clone(&self.past.load());
            past.remember(&self.current.load().catalog, &snapshot.catalog);
            self.past.store(Arc::new(past));
        }
        self.current.store(Arc::new(snapshot));
        self.published.send_replace(sequence);
    }

    /// The snapshot that readers get now.
    pub fn current(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }
}

impl CatalogReader {
    /// What is published now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// The catalogs before the present one. Taken after a snapshot, it holds every list that was
    /// given out until then and is remembered.
    pub fn history(&self) -> Arc<RevisionHistory> {
        self.past.load_full()
    }

    /// Waits for a snapshot that this reader has not seen yet. `None` when the writer is gone.
    /// Cancel-safe.
    pub async fn changed(&mut self) -> Option<Arc<Snapshot>> {
        self.published.changed().await.ok()?;
        Some(self.current.load_full())
    }
}
