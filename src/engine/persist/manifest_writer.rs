//! Stores last good manifests beside the loop: no client waits for these writes, and a burst of
//! them is stored in few transactions.
//!
//! Manifests are converted to text here, outside the loop and the async threads: in a first sweep
//! of 1,000 scenarios, that work would otherwise delay every following answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::catalog::pins::Baseline;
use crate::engine::message::{EngineEvent, SavedScenarios};
use crate::model::{Manifest, PeerIdentity, ScenarioName};
use crate::runtime::{Clock, Stop, Tasks};
use crate::state::{StateStore, StoredManifest, StoredPins, Write, manifest};

/// Writes are gathered until none comes for this long, so that a first sweep has the processor and
/// the disk to itself.
const GATHER: Duration = Duration::from_millis(500);
/// The longest time of gathering: a crash loses at most this much, and all of it can be fetched
/// again.
const GATHERING_MAX: Duration = Duration::from_secs(5);
/// The number of manifests written in one save, which bounds the texts in memory: about 5 MB of
/// usual ones.
const BATCH: usize = 256;

/// A write to be done.
pub(in crate::engine) enum SaveRequest {
    /// A scenario's last good manifest; its text becomes the document of the other value.
    Manifest(Arc<Manifest>, Box<StoredManifest>),
    /// Only the peer that has the scenario's name is to be stored.
    Claim(ScenarioName, PeerIdentity),
    /// All data of a scenario is to be deleted.
    Forget(ScenarioName),
    /// The published revision and its time of origin.
    Revision(String, Timestamp),
    /// What was accepted of a scenario; `None` forgets it.
    Pins(ScenarioName, Option<Arc<Baseline>>),
    /// When scenarios last confirmed their stored manifests.
    AnswerTimes(Vec<(ScenarioName, Timestamp)>),
}

/// What a write is about; a later write about the same replaces an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum SaveSubject {
    Revision,
    Scenario(ScenarioName),
    Pins(ScenarioName),
    /// Stands last, because it changes what the writes about scenarios add.
    AnswerTimes,
}

/// The last write of each subject, in the order in which they are stored.
type SaveBatch = BTreeMap<SaveSubject, SaveRequest>;

impl SaveRequest {
    /// What it is about.
    fn subject(&self) -> SaveSubject {
        match self {
            Self::Manifest(_, stored) => SaveSubject::Scenario(stored.scenario.clone()),
            Self::Claim(scenario, _) | Self::Forget(scenario) => {
                SaveSubject::Scenario(scenario.clone())
            }
            Self::Revision(..) => SaveSubject::Revision,
            Self::Pins(scenario, _) => SaveSubject::Pins(scenario.clone()),
            Self::AnswerTimes(_) => SaveSubject::AnswerTimes,
        }
    }

    /// The scenario whose manifest it stores.
    fn manifest_of(&self) -> Option<ScenarioName> {
        match self {
            Self::Manifest(_, stored) => Some(stored.scenario.clone()),
            _ => None,
        }
    }

    /// The scenario whose baseline it stores.
    fn baseline_of(&self) -> Option<ScenarioName> {
        match self {
            Self::Pins(scenario, Some(_)) => Some(scenario.clone()),
            _ => None,
        }
    }

    fn write(self) -> Write {
        match self {
            Self::Manifest(manifest, stored) => Write::Manifest(StoredManifest {
                document: manifest::write(&manifest).into(),
                ..*stored
            }),
            Self::Claim(scenario, party) => Write::Claim(scenario, party),
            Self::Forget(scenario) => Write::ForgetManifest(scenario),
            Self::Revision(revision, since) => Write::Revision(revision, since),
            Self::Pins(scenario, Some(baseline)) => Write::Pins(StoredPins {
                scenario,
                document: baseline.write().into(),
            }),
            Self::Pins(scenario, None) => Write::ForgetPins(scenario),
            Self::AnswerTimes(times) => Write::AnswerTimes(times),
        }
    }
}

/// Adds a write to those that are gathered. Times of answers are of few scenarios each, so they
/// replace none of other scenarios.
fn add(gathered: &mut SaveBatch, next: SaveRequest) {
    match (gathered.get_mut(&next.subject()), next) {
        (Some(SaveRequest::AnswerTimes(times)), SaveRequest::AnswerTimes(later)) => {
            times.extend(later);
        }
        (_, next) => {
            gathered.insert(next.subject(), next);
        }
    }
}

/// Receives writes and stores them.
pub(in crate::engine) struct ManifestWriter {
    pub(in crate::engine) store: Arc<dyn StateStore>,
    pub(in crate::engine) saves: mpsc::Receiver<SaveRequest>,
    pub(in crate::engine) events: mpsc::Sender<EngineEvent>,
    pub(in crate::engine) clock: Clock,
    pub(in crate::engine) tasks: Tasks,
}

impl ManifestWriter {
    /// Stores writes until the engine is gone and the queue is empty: a stop does not lose queued
    /// writes. A failure is sent as an event; the event of the next save shows when storing works
    /// again.
    pub(in crate::engine) async fn run(mut self, stop: Stop) {
        while let Some(first) = self.saves.recv().await {
            let mut gathered = self.gather(first, &stop).await;
            while !gathered.is_empty() {
                let rest = gathered.keys().nth(BATCH).cloned();
                let later = rest
                    .map(|rest| gathered.split_off(&rest))
                    .unwrap_or_default();
                self.save(std::mem::replace(&mut gathered, later)).await;
            }
        }
    }

    /// Collects the writes of the gathering time. A stop ends the waiting; writes queued before it
    /// are still taken.
    async fn gather(&mut self, first: SaveRequest, stop: &Stop) -> SaveBatch {
        let mut gathered = SaveBatch::from([(first.subject(), first)]);
        let begun = self.clock.now();
        loop {
            let end = (begun + GATHERING_MAX).min(self.clock.now() + GATHER);
            let next = tokio::select! {
                biased;
                next = self.saves.recv() => next,
                () = stop.wait() => None,
                () = self.clock.sleep_until(end) => None,
            };
            let Some(next) = next else { return gathered };
            add(&mut gathered, next);
        }
    }

    async fn save(&self, batch: SaveBatch) {
        let requests = batch.values();
        let scenarios = SavedScenarios {
            manifests: requests
                .clone()
                .filter_map(SaveRequest::manifest_of)
                .collect(),
            baselines: requests.filter_map(SaveRequest::baseline_of).collect(),
        };
        let written = self
            .tasks
            .spawn_blocking(|| batch.into_values().map(SaveRequest::write).collect());
        // It fails only when the runtime is shutting down, and then no write is possible.
        let Ok(writes) = written.await else { return };
        let result = self.store.save(writes).await;
        // Fails only when the engine is gone; the remaining writes are still stored.
        let _ = self
            .events
            .send(EngineEvent::Saved(result, scenarios))
            .await;
    }
}
