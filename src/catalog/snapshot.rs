//! One writer, many readers: what is published, as one immutable value.
//!
//! A reader takes a [`Snapshot`] and answers its whole request from it. The writer cannot be cloned.

use std::sync::Arc;

use arc_swap::ArcSwap;
use imbl::OrdMap;
use jiff::Timestamp;
use tokio::sync::watch;

use super::Catalog;
use crate::model::{Finding, Health, ScenarioName};

/// Everything that is published at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The merged tools.
    pub catalog: Catalog,
    /// When this revision of the catalog came to be.
    pub generated_at: Timestamp,
    /// The health of every scenario that any source, the store or an operator knows of.
    pub health: OrdMap<ScenarioName, Arc<Health>>,
    /// Findings of sources, manifests and the store; those of the merge are in the catalog.
    pub findings: Arc<Vec<Finding>>,
    /// Grows by one with each snapshot of this process.
    pub sequence: u64,
}

/// Publishes snapshots. There is one.
#[derive(Debug)]
pub struct CatalogWriter {
    current: Arc<ArcSwap<Snapshot>>,
    published: watch::Sender<u64>,
}

/// Reads snapshots. Cheap to clone; reading never waits.
#[derive(Debug, Clone)]
pub struct CatalogReader {
    current: Arc<ArcSwap<Snapshot>>,
    published: watch::Receiver<u64>,
}

/// A store that holds `first`.
pub fn catalog_store(first: Snapshot) -> (CatalogWriter, CatalogReader) {
    let (sender, receiver) = watch::channel(first.sequence);
    let current = Arc::new(ArcSwap::from_pointee(first));
    (CatalogWriter { current: Arc::clone(&current), published: sender }, CatalogReader { current, published: receiver })
}

impl CatalogWriter {
    /// Makes `snapshot` the one that readers get.
    pub fn publish(&mut self, snapshot: Snapshot) {
        let sequence = snapshot.sequence;
        self.current.store(Arc::new(snapshot));
        self.published.send_replace(sequence);
    }

    /// What readers get now.
    pub fn current(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }
}

impl CatalogReader {
    /// What is published now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Waits for a snapshot that this reader has not been told of yet. `None` when the writer is gone. Cancel-safe.
    pub async fn changed(&mut self) -> Option<Arc<Snapshot>> {
        self.published.changed().await.ok()?;
        Some(self.current.load_full())
    }
}
