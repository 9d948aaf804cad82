//! Begins the log with what was stored, and adds each change of a state and each end of a program
//! that is published.

use std::sync::Arc;

use super::queue::{LogLine, LogQueue};
use super::{LogEntry, NumberedEnd, NumberedStart, NumberedState, StoredFrom, document};
use crate::calls::{CallDependencies, Calls};
use crate::catalog::{CatalogReader, RecentEvents, Snapshot};
use crate::state::{EarlierLog, LogRow};

impl Calls {
    /// Begins with the stored lines, and follows what is published until the stop.
    pub(in crate::calls) fn begin_log(
        &self,
        stored: &[LogRow],
        earlier: Option<EarlierLog>,
        parts: &CallDependencies,
    ) {
        if self.0.log_store.0.set(Arc::clone(&parts.store)).is_err() {
            return;
        }
        let entries: Vec<_> = stored.iter().filter_map(document::entry).collect();
        let unread = stored.len() - entries.len();
        if unread > 0 {
            tracing::warn!(
                lines = unread,
                "lines of the log were written by another version and are not shown"
            );
        }
        let mut used = earlier.map(|earlier| earlier.numbers).unwrap_or_default();
        used.line = stored
            .iter()
            .map(|row| row.number)
            .fold(used.line, u64::max);
        let latest = entries.iter().map(LogEntry::at).max();
        let previous_until = earlier.map(|earlier| earlier.written).max(latest);
        let stored_from = StoredFrom::lines(stored, used.line + 1);
        self.0
            .log
            .begin(entries, stored_from, used, self.0.clock.wall());
        self.trim_log();
        let Some(queue) = self.0.queue.load_full() else {
            return;
        };
        let at = self.0.clock.wall();
        let version = env!("CARGO_PKG_VERSION").into();
        self.add_change(
            |line| {
                LogEntry::Start(NumberedStart {
                    line,
                    at,
                    version,
                    previous_until,
                })
            },
            &queue,
        );
        let stop = parts.stop.clone();
        let calls = self.clone();
        let reader = parts.reader.clone();
        parts.tasks.spawn(async move {
            tokio::select! {
                () = stop.wait() => {}
                () = calls.follow_snapshots(reader) => {}
            }
        });
    }

    async fn follow_snapshots(&self, mut reader: CatalogReader) {
        let mut next = Some(reader.snapshot());
        while let Some(snapshot) = next {
            self.catch_up(&snapshot);
            // Comparing the definitions of a large list takes longer than other requests may wait.
            let calls = self.clone();
            self.0
                .tasks
                .off_thread(move || calls.follow_definitions(&snapshot))
                .await;
            next = reader.changed().await;
        }
    }

    /// Adds what a snapshot changes in definitions to their histories, unless it was added already.
    pub(in crate::calls) fn follow_definitions(&self, snapshot: &Snapshot) {
        if self.0.log_store.0.get().is_some() {
            let at = self.0.clock.wall();
            self.0.histories.follow(snapshot, at);
        }
    }

    /// Adds what is new in a snapshot, unless it was added already. Readers do this before they
    /// read: a client that requests the log because of a change finds it there. The end of a
    /// program comes before the change of a state that it causes.
    pub(in crate::calls) fn catch_up(&self, snapshot: &Snapshot) {
        // After the stop, and before the stored lines were read, no line is added.
        let Some(queue) = self
            .0
            .queue
            .load_full()
            .filter(|_| self.0.log_store.0.get().is_some())
        else {
            return;
        };
        let mut seen = self.0.log.seen();
        if seen.upto.is_some_and(|upto| snapshot.sequence <= upto) {
            return;
        }
        for end in news(&snapshot.program_ends, &seen.ends, &queue) {
            self.add_change(|line| LogEntry::End(NumberedEnd { line, end }), &queue);
        }
        for change in news(&snapshot.transitions, &seen.states, &queue) {
            self.add_change(
                |line| LogEntry::State(NumberedState { line, change }),
                &queue,
            );
        }
        seen.ends = snapshot.program_ends.clone();
        seen.states = snapshot.transitions.clone();
        seen.upto = Some(snapshot.sequence);
    }

    fn add_change(&self, make: impl FnOnce(u64) -> LogEntry, queue: &LogQueue) {
        let change = self.0.log.add_change(make, self.0.clock.wall());
        queue.enqueue(LogLine::Change(change));
    }
}

/// The events that a snapshot adds; those that came faster than they could be read are counted.
fn news<T>(all: &RecentEvents<T>, seen: &RecentEvents<T>, queue: &LogQueue) -> Vec<Arc<T>> {
    all.since(seen).unwrap_or_else(|| {
        queue.missed(all.count_since(seen));
        Vec::new()
    })
}
