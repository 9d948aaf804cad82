//! The history that pages show: the latencies of each scenario's latest answers, and its states of
//! the last day.
//!
//! Bounded, in memory only, since the start of the daemon. The engine does not keep it, because it
//! does not need it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use imbl::ordmap::DiffItem;
use jiff::{SignedDuration, Timestamp};

use crate::catalog::{CatalogReader, Snapshot};
use crate::model::{Health, ScenarioName, StateTransition};
use crate::runtime::{Clock, Stop, Tasks};

/// At most this many latencies are kept of each scenario.
const MAX_LATENCIES: usize = 60;
/// At most this many changes of state are kept of each scenario.
const MAX_TRANSITIONS: usize = 200;
/// Older changes of state are dropped.
pub(super) const SPAN: SignedDuration = SignedDuration::from_hours(24);
/// The minimum time between two looks at the snapshot.
const PAUSE: Duration = Duration::from_millis(50);

/// Handle of the history. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct History {
    since: Timestamp,
    recorded: Arc<Mutex<RecordedHistory>>,
}

type Histories = BTreeMap<ScenarioName, ScenarioHistory>;

/// The history up to a snapshot.
#[derive(Debug)]
struct RecordedHistory {
    upto: Arc<Snapshot>,
    pasts: Histories,
}

/// The history of one scenario, the oldest entries first.
#[derive(Debug, Clone, Default)]
pub(super) struct ScenarioHistory {
    /// The latencies of its latest answers.
    pub(super) latencies: VecDeque<LatencySample>,
    /// Its changes of state.
    pub(super) transitions: VecDeque<Arc<StateTransition>>,
}

/// The latency of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LatencySample {
    /// When the answer came.
    pub(super) at: Timestamp,
    pub(super) milliseconds: u64,
}

impl History {
    /// Records published snapshots until `stop`.
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

    /// Records a snapshot, unless it is already recorded. Handlers call this before they show a
    /// snapshot: a page that is fetched because of a change must not show the old history.
    pub(super) fn catch_up(&self, snapshot: &Arc<Snapshot>, now: Timestamp) {
        let mut learnt = self.recorded();
        if snapshot.sequence > learnt.upto.sequence {
            learnt.record(snapshot, now);
        }
    }

    /// When recording started.
    pub(super) fn since(&self) -> Timestamp {
        self.since
    }

    /// The history of a scenario; empty if it is unknown.
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
            // The last change before the span is kept: it gives the state at the begin of the span.
            while turns.len() > MAX_TRANSITIONS
                || turns.get(1).is_some_and(|second| now.duration_since(second.at) > SPAN)
            {
                turns.pop_front();
            }
        }
    }
}

/// Records the latency of an answer, if the answer is new.
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
