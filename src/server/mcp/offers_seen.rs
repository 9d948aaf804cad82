//! What one client has seen of prompts and resources, to tell when its lists of them changed.

use std::sync::Arc;

use crate::catalog::{Catalog, CatalogReader, ViewQuery};
use crate::model::{RelayedKind, RelayedOffer, ScenarioName};

/// Something that a client wants to hear of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ListChange {
    /// Its list of tools.
    Tools,
    /// Its list of prompts.
    Prompts,
    /// Its lists of resources and templates.
    Resources,
    /// The resource with this URI.
    Resource(String),
}

/// The part of a list that a scenario offers. One that did not change is the same `Arc`.
type Part = (ScenarioName, Arc<[RelayedOffer]>);
/// A list in its parts.
type Parts = Vec<Part>;

/// See the module.
pub(super) struct OffersSeen {
    reader: CatalogReader,
    view: ViewQuery,
    /// By kind, in the order of [`RelayedKind::ALL`].
    seen: [Parts; 3],
}

impl OffersSeen {
    /// What this client sees now.
    pub(super) fn new(reader: CatalogReader, view: ViewQuery) -> Self {
        let seen = parts(&reader.snapshot().catalog, &view);
        Self { reader, view, seen }
    }

    /// Waits for the next snapshot, and says which lists it changes; maybe none. Never completes
    /// when there are no more snapshots. Cancel-safe.
    pub(super) async fn changed(&mut self) -> Vec<ListChange> {
        let Some(snapshot) = self.reader.changed().await else {
            return std::future::pending().await;
        };
        let before = std::mem::replace(&mut self.seen, parts(&snapshot.catalog, &self.view));
        let kinds = RelayedKind::ALL
            .into_iter()
            .zip(before.iter().zip(&self.seen));
        let changed = kinds.filter(|(_, (before, now))| !same(before, now));
        let changed = changed.map(|(kind, _)| match kind {
            RelayedKind::Prompts => ListChange::Prompts,
            RelayedKind::Resources | RelayedKind::Templates => ListChange::Resources,
        });
        changed.collect()
    }
}

fn parts(catalog: &Catalog, view: &ViewQuery) -> [Parts; 3] {
    RelayedKind::ALL.map(|kind| {
        let parts = catalog.shown(view).map(|entry| {
            (
                entry.name.clone(),
                Arc::clone(entry.manifest.relayed.of(kind)),
            )
        });
        parts.filter(|(_, offers)| !offers.is_empty()).collect()
    })
}

fn same(before: &Parts, now: &Parts) -> bool {
    let is_same = |((old, before), (new, now)): (&Part, &Part)| {
        old == new && (Arc::ptr_eq(before, now) || before == now)
    };
    before.len() == now.len() && before.iter().zip(now).all(is_same)
}
