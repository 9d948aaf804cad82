//! Remembers which era each server speaks, so that a new connection begins with the right greeting.
//!
//! Over a restart of the daemon the stored list says which revision the server spoke. What is
//! remembered is only tried first: a server that refuses it is probed again.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};

use super::revision::McpRevision;
use crate::model::Target;

/// What is known of a server before it is greeted, from an earlier connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Modern,
    Legacy,
    /// Legacy, over HTTP+SSE.
    Sse,
}

impl Era {
    /// That of a revision; over which transport is not known.
    pub(super) fn of(revision: McpRevision) -> Self {
        if revision.is_modern() {
            Self::Modern
        } else {
            Self::Legacy
        }
    }
}

/// The most servers that are remembered.
const REMEMBERED_SERVERS_MAX: usize = 10_000;

/// The era of each server, by its address.
#[derive(Debug, Default)]
pub(super) struct Eras(Mutex<HashMap<String, Era>>);

impl Eras {
    fn table(&self) -> MutexGuard<'_, HashMap<String, Era>> {
        self.0.lock()
    }

    pub(super) fn known(&self, target: &Target) -> Option<Era> {
        self.table().get(target.url().as_str()).copied()
    }

    /// What was spoken in another run of the daemon. What this run found out counts more.
    pub(super) fn recall(&self, target: &Target, era: Era) {
        let mut table = self.table();
        if table.len() < REMEMBERED_SERVERS_MAX {
            table.entry(target.url().as_str().to_owned()).or_insert(era);
        }
    }

    pub(super) fn remember(&self, target: &Target, era: Era) {
        let mut table = self.table();
        if table.len() >= REMEMBERED_SERVERS_MAX {
            table.clear();
        }
        table.insert(target.url().as_str().to_owned(), era);
    }

    pub(super) fn forget(&self, target: &Target) {
        self.table().remove(target.url().as_str());
    }
}
