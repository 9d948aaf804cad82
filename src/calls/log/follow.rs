//! Begins the log with what was stored, and adds each change of a state that is published.

use std::sync::Arc;

use super::document;
use super::queue::{LogLine, LogQueue};
use crate::calls::{CallDependencies, Calls};
use crate::catalog::{CatalogReader, Snapshot, StateTransitions};
use crate::state::{LogNumbers, LogRow};

impl Calls {
    /// Begins with the stored lines, and follows the states until the stop.
    pub(in crate::calls) fn begin_log(&self, stored: &[LogRow], used: LogNumbers, parts: &CallDependencies) {
        if self.0.log_store.0.set(Arc::clone(&parts.store)).is_err() {
            return;
        }
        let entries: Vec<_> = stored.iter().filter_map(document::entry).collect();
        let unread = stored.len() - entries.len();
        if unread > 0 {
            tracing::warn!(lines = unread, "lines of the log were written by another version and are not shown");
        }
        let used = LogNumbers { line: stored.iter().map(|row| row.number).fold(used.line, u64::max), ..used };
        self.0.log.begin(entries, used, self.0.clock.wall());
        self.trim_log();
        let Some(queue) = self.0.queue.load_full() else { return };
        let stop = parts.stop.clone();
        let calls = self.clone();
        let reader = parts.reader.clone();
        parts.tasks.spawn(async move {
            tokio::select! {
                () = stop.wait() => {}
                () = calls.follow_states(reader, &queue) => {}
            }
        });
    }

    async fn follow_states(&self, mut reader: CatalogReader, queue: &LogQueue) {
        let mut seen = StateTransitions::default();
        let mut next = Some(reader.snapshot());
        while let Some(snapshot) = next {
            self.add_states(&snapshot, &seen, queue);
            seen = snapshot.transitions.clone();
            next = reader.changed().await;
        }
    }

    fn add_states(&self, snapshot: &Snapshot, seen: &StateTransitions, queue: &LogQueue) {
        let Some(changes) = snapshot.transitions.since(seen) else {
            queue.missed(snapshot.transitions.count_since(seen));
            return;
        };
        for change in changes {
            let state = self.0.log.add_state(change, self.0.clock.wall());
            queue.enqueue(LogLine::State(state));
        }
    }
}
