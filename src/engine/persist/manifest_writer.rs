//! Writes last good manifests behind the engine's back: nobody waits for them, and what comes in a burst goes out in few writes.
//!
//! Manifests become text here, beside the loop and the async threads: in a first sweep of 1,000 scenarios that work, done in the loop,
//! would hold up every answer behind it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::engine::message::EngineEvent;
use crate::model::{Manifest, PeerIdentity, ScenarioName};
use crate::runtime::{Clock, Stop, Tasks};
use crate::state::{StateStore, StoredManifest, Write, manifest};

/// Writes are gathered until none comes for so long: a first sweep has the processor and the disk to itself.
const GATHER: Duration = Duration::from_millis(500);
/// But no longer than this: what a crash costs at most, and all of it can be asked for again.
const LONGEST: Duration = Duration::from_secs(5);
/// Manifests written in one save, which bounds the texts in memory: about 5 MB of usual ones.
const BATCH: usize = 256;

/// Something to be saved.
pub(in crate::engine) enum SaveRequest {
    /// A scenario's last good manifest, which becomes the document of what goes with it.
    Manifest(Arc<Manifest>, Box<StoredManifest>),
    /// Of a scenario only who has its name is to be kept.
    Claim(ScenarioName, PeerIdentity),
    /// Nothing of a scenario is to be kept any more.
    Forget(ScenarioName),
    /// The published revision, and since when.
    Revision(String, Timestamp),
}

/// The last of each subject: a scenario's manifest, or the revision.
type SaveBatch = BTreeMap<Option<ScenarioName>, SaveRequest>;

impl SaveRequest {
    /// What a later one replaces.
    fn subject(&self) -> Option<ScenarioName> {
        match self {
            Self::Manifest(_, stored) => Some(stored.scenario.clone()),
            Self::Claim(scenario, _) | Self::Forget(scenario) => Some(scenario.clone()),
            Self::Revision(..) => None,
        }
    }

    fn write(self) -> Write {
        match self {
            Self::Manifest(manifest, stored) => {
                Write::Manifest(StoredManifest { document: manifest::write(&manifest).into(), ..*stored })
            }
            Self::Claim(scenario, party) => Write::Claim(scenario, party),
            Self::Forget(scenario) => Write::ForgetManifest(scenario),
            Self::Revision(revision, since) => Write::Revision(revision, since),
        }
    }
}

/// Where saves come from and go to.
pub(in crate::engine) struct ManifestWriter {
    pub(in crate::engine) store: Arc<dyn StateStore>,
    pub(in crate::engine) saves: mpsc::Receiver<SaveRequest>,
    pub(in crate::engine) events: mpsc::Sender<EngineEvent>,
    pub(in crate::engine) clock: Clock,
    pub(in crate::engine) tasks: Tasks,
}

impl ManifestWriter {
    /// Saves what comes until the engine is gone and nothing is left: what was queued before a stop is not lost by it. A failure is
    /// told as an event; the next save tells when it works again.
    pub(in crate::engine) async fn run(mut self, stop: Stop) {
        while let Some(first) = self.saves.recv().await {
            let mut gathered = self.gather(first, &stop).await;
            while !gathered.is_empty() {
                let rest = gathered.keys().nth(BATCH).cloned();
                let later = rest.map(|rest| gathered.split_off(&rest)).unwrap_or_default();
                self.save(std::mem::replace(&mut gathered, later)).await;
            }
        }
    }

    /// What comes within the time to gather. A stop ends the waiting; what was queued before it is still taken.
    async fn gather(&mut self, first: SaveRequest, stop: &Stop) -> SaveBatch {
        let mut gathered = SaveBatch::from([(first.subject(), first)]);
        let begun = self.clock.now();
        loop {
            let end = (begun + LONGEST).min(self.clock.now() + GATHER);
            let next = tokio::select! {
                biased;
                next = self.saves.recv() => next,
                () = stop.wait() => None,
                () = self.clock.sleep_until(end) => None,
            };
            let Some(next) = next else { return gathered };
            gathered.insert(next.subject(), next);
        }
    }

    async fn save(&self, batch: SaveBatch) {
        let scenarios = batch.iter().filter(|(_, save)| matches!(save, SaveRequest::Manifest(..)));
        let scenarios = scenarios.filter_map(|(scenario, _)| scenario.clone()).collect();
        let written = self.tasks.spawn_blocking(|| batch.into_values().map(SaveRequest::write).collect());
        // It fails only when the runtime goes down, and then nothing can be saved.
        let Ok(writes) = written.await else { return };
        let result = self.store.save(writes).await;
        // Fails only when the engine is gone; what it left to be saved is saved all the same.
        let _ = self.events.send(EngineEvent::ManifestsSaved(result, scenarios)).await;
    }
}
