//! The catalogs that were published before this one, for names that a client took from an older
//! list.
//!
//! A catalog shares with its successor whatever did not change, so keeping it costs what did. The
//! last [`KEPT`] are remembered, fewer when what only they hold is large.

use std::collections::VecDeque;
use std::sync::Arc;

use imbl::ordmap::DiffItem;

use super::{Catalog, CatalogEntry, ViewQuery};

/// Catalogs remembered at most.
pub const KEPT: usize = 64;
/// The most bytes that only earlier catalogs keep in memory: a scenario whose manifest is large and
/// changes all the time must not cost more, nor the first sweep of a large fleet.
const KEPT_BYTES: usize = 8 * 1024 * 1024;
/// What a tool costs besides its texts, roughly.
const TOOL_BYTES: usize = 512;
/// What a name that is claimed or given back leaves behind, roughly: names stand in no order, so
/// each is in another node of the map of claims, and a tool claims two.
const CLAIMS_BYTES: usize = 4096;

/// Former catalogs, the newest last. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct RevisionHistory {
    former: VecDeque<Arc<Former>>,
    bytes: usize,
}

/// One of them.
#[derive(Debug)]
struct Former {
    catalog: Catalog,
    /// Of what its successor does not hold.
    bytes: usize,
}

impl RevisionHistory {
    /// Whether one shows otherwise in some list than the other: what does not is not remembered
    /// twice.
    pub(super) fn differ(before: &Catalog, after: &Catalog) -> bool {
        before.revision() != after.revision()
            || !Arc::ptr_eq(&before.preferences, &after.preferences)
            || !Arc::ptr_eq(&before.profiles, &after.profiles)
    }

    /// `before` gives way to `after`, which [differs](Self::differ) from it.
    pub(super) fn remember(&mut self, before: &Catalog, after: &Catalog) {
        let left = before
            .entries
            .diff(&after.entries)
            .map(|change| match change {
                DiffItem::Update {
                    old: (_, old),
                    new: (_, new),
                } if same_names(old, new) => weight(old),
                DiffItem::Update {
                    old: (_, old),
                    new: (_, new),
                } => weight(old) + claims(old) + claims(new),
                DiffItem::Remove(_, old) => weight(old) + claims(old),
                DiffItem::Add(_, new) => claims(new),
            });
        let bytes = left.sum();
        self.former.push_back(Arc::new(Former {
            catalog: before.clone(),
            bytes,
        }));
        self.bytes += bytes;
        while self.former.len() > KEPT || self.bytes > KEPT_BYTES {
            let Some(forgotten) = self.former.pop_front() else {
                return;
            };
            self.bytes -= forgotten.bytes;
        }
    }

    /// The latest catalog whose list had this revision for the scope of `query`.
    pub fn find(&self, query: &ViewQuery, revision: &str) -> Option<&Catalog> {
        self.newest_first()
            .find(|catalog| catalog.has_revision(query, revision))
    }

    /// Every remembered catalog, the latest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Catalog> {
        self.former.iter().rev().map(|former| &former.catalog)
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.former.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.former.is_empty()
    }
}

impl Catalog {
    /// Whether its list has this revision for the scope of `query`.
    pub fn has_revision(&self, query: &ViewQuery, revision: &str) -> bool {
        self.revision_for(query).to_string() == revision
    }
}

fn same_names(old: &CatalogEntry, new: &CatalogEntry) -> bool {
    old.tools
        .iter()
        .map(|tool| &tool.id)
        .eq(new.tools.iter().map(|tool| &tool.id))
}

/// What the claims of an entry leave behind when they come or go.
fn claims(entry: &CatalogEntry) -> usize {
    entry.tools.len() * CLAIMS_BYTES
}

/// What an entry holds by itself.
fn weight(entry: &CatalogEntry) -> usize {
    let tools = entry.manifest.tools.iter();
    let bytes = tools.map(|tool| TOOL_BYTES + tool.bytes());
    bytes.sum::<usize>() + entry.manifest.bytes_besides_tools()
}
