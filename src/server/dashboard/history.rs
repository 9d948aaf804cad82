//! The history that pages show: the latencies of each scenario's latest answers, and its states as
//! the log has them.
//!
//! The latencies are in memory only, bounded, since the start of the daemon. The engine does not
//! keep them, because it does not need them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use imbl::ordmap::DiffItem;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

use crate::calls::{Calls, LogEntry, LogWanted};
use crate::catalog::{CatalogReader, Snapshot};
use crate::model::{Health, ScenarioName};
use crate::runtime::{Clock, Stop, Tasks};
use crate::state::LogKind;

/// At most this many latencies are kept of each scenario.
const MAX_LATENCIES: usize = 60;
/// At most this many changes of a scenario are read from the log, and as many starts.
const MAX_CHANGES: usize = 200;
/// The minimum time between two looks at the snapshot.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// Handle of the history. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct History {
    recorded: Arc<Mutex<RecordedHistory>>,
}

/// The latencies of the latest answers, the oldest first.
type Latencies = BTreeMap<ScenarioName, VecDeque<LatencySample>>;

/// The latencies up to a snapshot.
#[derive(Debug)]
struct RecordedHistory {
    upto: Arc<Snapshot>,
    latencies: Latencies,
}

/// What the log has of a scenario.
#[derive(Debug, Clone, Default)]
pub(super) struct ScenarioHistory {
    /// Its changes of state, the ends of its program and the starts of callsheet, the oldest first.
    pub(super) lines: Vec<LogEntry>,
    /// Since when the log has them; `None` if it keeps none.
    pub(super) since: Option<Timestamp>,
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
    pub(super) fn start(
        mut reader: CatalogReader,
        clock: Clock,
        tasks: &Tasks,
        stop: Stop,
    ) -> Self {
        let learnt = Arc::new(Mutex::new(RecordedHistory::from(reader.snapshot())));
        let history = Self { recorded: learnt };
        let learning = history.clone();
        tasks.spawn(async move {
            loop {
                let snapshot = tokio::select! {
                    () = stop.wait() => return,
                    snapshot = reader.changed() => snapshot,
                };
                let Some(snapshot) = snapshot else { return };
                learning.catch_up(&snapshot);
                clock.sleep(LOOK_INTERVAL_MIN).await;
            }
        });
        history
    }

    /// Records a snapshot, unless it is already recorded. Handlers call this before they show a
    /// snapshot: a page that is fetched because of a change must not show the old history.
    pub(super) fn catch_up(&self, snapshot: &Arc<Snapshot>) {
        let mut learnt = self.recorded();
        if snapshot.sequence > learnt.upto.sequence {
            learnt.record(snapshot);
        }
    }

    /// The latest latencies of a scenario.
    pub(super) fn latencies(&self, name: &ScenarioName) -> Vec<LatencySample> {
        self.recorded()
            .latencies
            .get(name)
            .map(|past| past.iter().copied().collect())
            .unwrap_or_default()
    }

    fn recorded(&self) -> MutexGuard<'_, RecordedHistory> {
        self.recorded.lock()
    }
}

impl ScenarioHistory {
    /// Reads the history of a scenario from the log.
    pub(super) fn read(calls: &Calls, name: &ScenarioName) -> Self {
        let read = |kinds: Vec<LogKind>, scenario: Option<ScenarioName>| {
            calls.log(&LogWanted {
                kinds,
                scenario,
                limit: MAX_CHANGES,
                ..LogWanted::default()
            })
        };
        let changes = read(vec![LogKind::State, LogKind::End], Some(name.clone()));
        let mut lines = changes.lines;
        lines.extend(read(vec![LogKind::Start], None).lines);
        lines.sort_by_key(LogEntry::line);
        Self {
            lines,
            since: changes.states_since,
        }
    }
}

impl RecordedHistory {
    fn from(first: Arc<Snapshot>) -> Self {
        let mut latencies = Latencies::new();
        for health in first.health.values() {
            record_latency(&mut latencies, None, health);
        }
        Self {
            upto: first,
            latencies,
        }
    }

    fn record(&mut self, after: &Arc<Snapshot>) {
        let before = std::mem::replace(&mut self.upto, Arc::clone(after));
        for change in before.health.diff(&after.health) {
            match change {
                DiffItem::Add(_, health) => record_latency(&mut self.latencies, None, health),
                DiffItem::Update {
                    old: (_, old),
                    new: (_, new),
                } => {
                    record_latency(&mut self.latencies, Some(old), new);
                }
                DiffItem::Remove(name, _) => {
                    self.latencies.remove(name);
                }
            }
        }
    }
}

/// Records the latency of an answer, if the answer is new.
fn record_latency(all: &mut Latencies, before: Option<&Arc<Health>>, after: &Health) {
    let (Some(milliseconds), Some(at)) = (after.latency_ms, after.last_success) else {
        return;
    };
    let answered = Some(at) != before.and_then(|before| before.last_success);
    if answered {
        let latencies = all.entry(after.name.clone()).or_default();
        latencies.push_back(LatencySample { at, milliseconds });
        if latencies.len() > MAX_LATENCIES {
            latencies.pop_front();
        }
    }
}
