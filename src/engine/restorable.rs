//! Whether what is published is just what a start from the store would publish, which is when a list may be kept for that start.
//!
//! The loop says whether all that it publishes is stored, and the ledger that nothing was stored which it has not taken in yet. Both are
//! needed: preferences and decisions are stored before the loop hears of them, manifests after.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot;

use super::core::Core;
use super::record::Record;
use super::{Command, EngineError, EngineHandle};
use crate::catalog::Snapshot;
use crate::config::Config;
use crate::state::{Content, Decision, StateStore};

/// A snapshot that a start would publish just so, as far as lists show it.
#[derive(Debug, Clone)]
pub struct Restorable {
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// What has to be in the store at that start.
    pub content: Content,
    /// The configuration that has to be in force then.
    pub config: Arc<Config>,
}

/// What the loop says of it.
#[derive(Debug)]
pub(super) struct Candidate {
    snapshot: Arc<Snapshot>,
    config: Arc<Config>,
    /// Saves that were begun until then, all of which the loop has taken in.
    begun: u64,
}

/// Counts saves, from before they are begun until the loop has taken in what came of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Ledger {
    pub(super) fn begin(&self) {
        self.0.begun.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn end(&self, count: u64) {
        self.0.ended.fetch_add(count, Ordering::SeqCst);
    }

    fn begun(&self) -> u64 {
        self.0.begun.load(Ordering::SeqCst)
    }

    /// How many were begun, when all of them have ended.
    fn balanced(&self) -> Option<u64> {
        let ended = self.0.ended.load(Ordering::SeqCst);
        Some(self.begun()).filter(|begun| *begun == ended)
    }
}

/// The store and what is under way to it. Without a store nothing is restorable.
#[derive(Clone, Default)]
pub(super) struct Stored {
    store: Option<Arc<dyn StateStore>>,
    ledger: Ledger,
}

impl Stored {
    pub(super) fn new(store: Arc<dyn StateStore>, ledger: Ledger) -> Self {
        Self { store: Some(store), ledger }
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

impl EngineHandle {
    /// What is published now, if a start from what is stored now would publish the same; `None` while something is on its way to the store
    /// or from there, and while anything is published (or withheld) that is not (or is) in the store.
    pub async fn restorable(&self) -> Result<Option<Restorable>, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Restorable(reply)).await.map_err(|_| EngineError::Stopping)?;
        let Some(candidate) = answer.await.map_err(|_| EngineError::Stopping)?? else { return Ok(None) };
        let Some(store) = &self.stored.store else { return Ok(None) };
        let content = store.content().await?;
        let Candidate { snapshot, config, begun } = candidate;
        // Whatever was begun since may be in that content, and is not in this snapshot.
        if self.stored.ledger.begun() != begun {
            return Ok(None);
        }
        let revision = (snapshot.catalog.revision().to_string(), snapshot.generated_at);
        let content = content.filter(|content| content.revision.as_ref() == Some(&revision));
        Ok(content.map(|content| Restorable { snapshot, content, config }))
    }
}

impl Core {
    /// What is published, if all of it would come back from the store.
    pub(super) fn candidate(&self) -> Option<Candidate> {
        let begun = self.parts.saves.ledger.balanced()?;
        let snapshot = self.press.settled()?;
        let stored = self.records.values().all(|record| comes_back(record, &snapshot));
        stored.then(|| Candidate { snapshot, config: Arc::clone(&self.parts.config), begun })
    }
}

/// Whether a start would publish of this scenario what is published of it now. It publishes what is stored of those who were let in, however
/// they fared.
fn comes_back(record: &Record, snapshot: &Snapshot) -> bool {
    let published = snapshot.catalog.entry(&record.name).is_some_and(|entry| entry.is_published());
    let stored = record.offer.as_ref().map(|held| held.manifest.digest);
    if record.is_trusted() && record.decision != Some(Decision::Blocked) {
        record.kept == stored && published == stored.is_some()
    } else {
        !published
    }
}
