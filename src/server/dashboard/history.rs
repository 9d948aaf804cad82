//! What pages show of the past: how long each scenario's latest answers took, and where it stood in the last day.
//!
//! Bounded, in memory, since the daemon started. The engine keeps none of this: it needs none of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use imbl::ordmap::DiffItem;
use jiff::{SignedDuration, Timestamp};

use crate::catalog::{CatalogReader, Snapshot};
use crate::model::{Health, ScenarioName, StateTransition};
use crate::runtime::{Clock, Stop, Tasks};

/// Latencies kept of each scenario.
const MAX_LATENCIES: usize = 60;
/// Changes of state kept of each scenario.
const MAX_TRANSITIONS: usize = 200;
/// How far back changes of state are kept.
pub(super) const SPAN: SignedDuration = SignedDuration::from_hours(24);
/// The least time between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Remembers. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct History {
    since: Timestamp,
    recorded: Arc<Mutex<RecordedHistory>>,
}

type Histories = BTreeMap<ScenarioName, ScenarioHistory>;

/// What is remembered, up to a snapshot.
#[derive(Debug)]
struct RecordedHistory {
    upto: Arc<Snapshot>,
    pasts: Histories,
}

/// What is remembered of one scenario, the oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct ScenarioHistory {
    /// How long its latest answers took.
    pub(super) latencies: VecDeque<LatencySample>,
    /// Where it turned.
    pub(super) transitions: VecDeque<Arc<StateTransition>>,
}

/// How long an answer took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LatencySample {
    /// When it came.
    pub(super) at: Timestamp,
    pub(super) milliseconds: u64,
}

impl History {
    /// Follows what is published until `stop`.
    pub(super) fn start(mut reader: CatalogReader, clock: Clock, tasks: &Tasks, stop: Stop) -> Self {
        let learnt = Arc::new(Mutex::new(RecordedHistory::from(reader.snapshot())));
        let history = Self { since: clock.wall(), recorded: learnt };
        let learning = history.clone();
        tasks.spawn(async move {
            loop {
                let snapshot = tokio::select! {
                    () = stop.wait() => return,
                    snapshot = reader.changed() => snapshot,
                };
                let Some(snapshot) = snapshot else { return };
                learning.catch_up(&snapshot, clock.wall());
                clock.sleep(PAUSE).await;
            }
        });
        history
    }

    /// Learns what a snapshot says, unless it did already. Whoever shows a snapshot asks for this first: a page that is fetched because something
    /// changed must not be told what was before.
    pub(super) fn catch_up(&self, snapshot: &Arc<Snapshot>, now: Timestamp) {
        let mut learnt = self.recorded();
        if snapshot.sequence > learnt.upto.sequence {
            learnt.record(snapshot, now);
        }
    }

    /// Since when anything is remembered.
    pub(super) fn since(&self) -> Timestamp {
        self.since
    }

    /// What is remembered of a scenario.
    pub(super) fn for_scenario(&self, name: &ScenarioName) -> ScenarioHistory {
        self.recorded().pasts.get(name).cloned().unwrap_or_default()
    }

    /// The latest latencies of a scenario.
    pub(super) fn latencies(&self, name: &ScenarioName) -> Vec<LatencySample> {
        self.recorded().pasts.get(name).map(|past| past.latencies.iter().copied().collect()).unwrap_or_default()
    }

    fn recorded(&self) -> MutexGuard<'_, RecordedHistory> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordedHistory {
    fn from(first: Arc<Snapshot>) -> Self {
        let mut pasts = Histories::new();
        for health in first.health.values() {
            record_latency(&mut pasts, None, health);
        }
        for turn in first.transitions.since(&crate::catalog::StateTransitions::default()).unwrap_or_default() {
            pasts.entry(turn.name.clone()).or_default().transitions.push_back(turn);
        }
        Self { upto: first, pasts }
    }

    fn record(&mut self, after: &Arc<Snapshot>, now: Timestamp) {
        let (before, pasts) = (std::mem::replace(&mut self.upto, Arc::clone(after)), &mut self.pasts);
        for change in before.health.diff(&after.health) {
            match change {
                DiffItem::Add(_, health) => record_latency(pasts, None, health),
                DiffItem::Update { old: (_, old), new: (_, new) } => record_latency(pasts, Some(old), new),
                DiffItem::Remove(name, _) => {
                    pasts.remove(name);
                }
            }
        }
        for turn in after.transitions.since(&before.transitions).unwrap_or_default() {
            if !after.health.contains_key(&turn.name) {
                continue;
            }
            let turns = &mut pasts.entry(turn.name.clone()).or_default().transitions;
            turns.push_back(turn);
            // The last one before the span tells where it stood when the span begins.
            while turns.len() > MAX_TRANSITIONS
                || turns.get(1).is_some_and(|second| now.duration_since(second.at) > SPAN)
            {
                turns.pop_front();
            }
        }
    }
}

/// Keeps how long an answer took that was not known before.
fn record_latency(pasts: &mut Histories, before: Option<&Arc<Health>>, after: &Health) {
    let (Some(milliseconds), Some(at)) = (after.latency_ms, after.last_success) else { return };
    let answered = Some(at) != before.and_then(|before| before.last_success);
    if answered {
        let latencies = &mut pasts.entry(after.name.clone()).or_default().latencies;
        latencies.push_back(LatencySample { at, milliseconds });
        if latencies.len() > MAX_LATENCIES {
            latencies.pop_front();
        }
    }
}
