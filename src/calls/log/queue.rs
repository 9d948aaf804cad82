//! The queue of lines that are to be written, and the one task that writes them: to the store, and
//! calls to the audit log too where one is configured.
//!
//! If the queue is full, a line is dropped and counted: a call never waits for a disk, and never
//! fails because of one.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::mpsc;

use super::{ActivityLog, LogEntry, NUMBERS_AHEAD, NumberedCall, document};
use crate::calls::audit::{AuditEntry, AuditSettings, AuditWriter};
use crate::metrics::AuditCounts;
use crate::runtime::{Clock, Tasks};
use crate::state::{LogKind, StateStore, Write};

/// How many lines may wait to be written.
const QUEUE: usize = 4_096;
/// How many bytes of arguments and results may wait with them. A single larger text may wait alone.
const WAITING: usize = 16 * 1024 * 1024;
/// How many lines are written together.
const BATCH: usize = 256;
/// How long the writer waits for lines that can be written together with a first one: the store
/// waits for the disk once for all of them.
const GATHER_TIME: Duration = Duration::from_millis(100);
/// With so many bytes of arguments and results they are written at once.
const GATHERED_BYTES_MAX: usize = WAITING / 2;

/// The shortest and the longest time after which the writer looks for lines that are too old. The
/// longest one is for a clock that was set, and for a machine that slept.
const LOOKS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3600)];

/// Where lines are stored: set after the start, once.
#[derive(Default)]
pub(in crate::calls) struct LogStore(pub(super) OnceLock<Arc<dyn StateStore>>);

impl std::fmt::Debug for LogStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogStore").finish_non_exhaustive()
    }
}

/// A line that is to be written.
#[derive(Debug)]
pub(in crate::calls) enum LogLine {
    /// A call, and its line of the audit log.
    Call(NumberedCall, Option<(Arc<AuditSettings>, AuditEntry)>),
    /// A line that is no call.
    Change(LogEntry),
    /// No line: what is not kept any more is deleted.
    Trim,
}

/// The queue of lines. The writer ends when the last handle is dropped, after it wrote every line.
#[derive(Debug)]
pub(in crate::calls) struct LogQueue {
    lines: mpsc::Sender<LogLine>,
    waiting: Arc<AtomicUsize>,
    audited: Arc<AuditCounts>,
    logged: Arc<AuditCounts>,
}

impl LogLine {
    /// The size of its arguments and its result, in bytes.
    fn bytes(&self) -> usize {
        match self {
            Self::Call(call, audit) => {
                call.payload_bytes() + audit.as_ref().map_or(0, |(_, entry)| entry.bytes())
            }
            _ => 0,
        }
    }
}

impl LogQueue {
    /// Starts the task that writes. `counts` are those of the audit log and of the store.
    pub(in crate::calls) fn start(
        log: &Arc<ActivityLog>,
        counts: (&Arc<AuditCounts>, &Arc<AuditCounts>),
        store: &Arc<LogStore>,
        clock: Clock,
        tasks: &Tasks,
    ) -> Self {
        let (queue, lines) = Self::new(counts);
        let writer = LogWriter {
            log: Arc::clone(log),
            store: Arc::clone(store),
            audit: AuditWriter::new(Arc::clone(&queue.audited)),
            waiting: Arc::clone(&queue.waiting),
            logged: Arc::clone(&queue.logged),
            clock,
        };
        tasks.spawn(writer.run(lines, tasks.clone()));
        queue
    }

    fn new(counts: (&Arc<AuditCounts>, &Arc<AuditCounts>)) -> (Self, mpsc::Receiver<LogLine>) {
        let (sender, lines) = mpsc::channel(QUEUE);
        let audited = Arc::clone(counts.0);
        let logged = Arc::clone(counts.1);
        (
            Self {
                lines: sender,
                waiting: Arc::default(),
                audited,
                logged,
            },
            lines,
        )
    }

    /// Queues a line. Never waits.
    pub(in crate::calls) fn enqueue(&self, line: LogLine) {
        let bytes = line.bytes();
        let audited = matches!(line, LogLine::Call(_, Some(_)));
        let counts = !matches!(line, LogLine::Trim);
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(bytes) <= WAITING;
        if fits && self.lines.try_send(line).is_ok() {
            return;
        }
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        if counts {
            self.logged.dropped();
        }
        if audited {
            self.audited.dropped();
        }
    }

    /// Counts changes of states and ends of programs that came faster than they could be read.
    pub(super) fn missed(&self, changes: u64) {
        for _ in 0..changes {
            self.logged.dropped();
        }
    }
}

/// Writes lines from the queue.
struct LogWriter {
    log: Arc<ActivityLog>,
    store: Arc<LogStore>,
    audit: AuditWriter,
    waiting: Arc<AtomicUsize>,
    logged: Arc<AuditCounts>,
    clock: Clock,
}

impl LogWriter {
    /// Adds the lines that follow soon, as far as they may be written together.
    async fn gather(&self, batch: &mut Vec<LogLine>, lines: &mut mpsc::Receiver<LogLine>) {
        let mut end = pin!(self.clock.sleep(GATHER_TIME));
        let mut bytes: usize = batch.iter().map(LogLine::bytes).sum();
        while batch.len() < BATCH && bytes < GATHERED_BYTES_MAX {
            let line = tokio::select! {
                biased;
                line = lines.recv() => line,
                () = &mut end => return,
            };
            let Some(line) = line else { return };
            bytes += line.bytes();
            batch.push(line);
        }
    }

    async fn run(mut self, mut lines: mpsc::Receiver<LogLine>, tasks: Tasks) {
        let mut batch = Vec::new();
        loop {
            let received = tokio::select! {
                biased;
                received = lines.recv_many(&mut batch, BATCH) => received,
                () = self.clock.sleep(self.next_look()) => {
                    self.store(&[], NUMBERS_AHEAD).await;
                    continue;
                }
            };
            if received == 0 {
                // No line follows, so that the next daemon leaves no gap.
                self.store(&[], 0).await;
                return;
            }
            if received < BATCH {
                self.gather(&mut batch, &mut lines).await;
            }
            let taken = std::mem::take(&mut batch);
            let bytes: usize = taken.iter().map(LogLine::bytes).sum();
            self.store(&taken, NUMBERS_AHEAD).await;
            let mut audited = Vec::new();
            for line in taken {
                if let LogLine::Call(_, Some(entry)) = line {
                    audited.push(entry);
                }
            }
            let waiting = Arc::clone(&self.waiting);
            if !audited.is_empty() {
                let written = tasks.spawn_blocking(move || {
                    self.audit.write(&audited);
                    self
                });
                match written.await {
                    Ok(writer) => self = writer,
                    Err(error) => {
                        tracing::error!(error = %error, "the log ended unexpectedly; restart the daemon to have it written again");
                        return;
                    }
                }
            }
            waiting.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// The time until the oldest line is too old, or until a store that failed is tried again.
    fn next_look(&self) -> Duration {
        let [shortest, longest] = LOOKS;
        if self.log.is_failing() {
            return shortest;
        }
        let left = self.log.oldest_for(self.clock.wall());
        left.map_or(longest, |left| Duration::try_from(left).unwrap_or_default())
            .clamp(shortest, longest)
    }

    /// Stores the lines that are still kept, and deletes those that are not. The next daemon uses
    /// no number up to `ahead` beyond the latest.
    async fn store(&self, lines: &[LogLine], ahead: u64) {
        let Some(store) = self.store.0.get() else {
            return;
        };
        self.log.prune(self.clock.wall());
        let keeps_payloads = self.log.keeps_payloads();
        let entry = |line: &LogLine| match line {
            LogLine::Call(call, _) => {
                let payload = call.payload.clone().filter(|_| keeps_payloads);
                Some(LogEntry::Call(NumberedCall {
                    payload,
                    ..call.clone()
                }))
            }
            LogLine::Change(change) => Some(change.clone()),
            LogLine::Trim => None,
        };
        // Read once for all lines: each reading takes the lock under which calls add theirs.
        let first_call = self.log.first(LogKind::Call);
        let first_change = self.log.first(LogKind::State);
        let kept = |entry: &LogEntry| match entry.kind() {
            LogKind::Call => entry.line() >= first_call,
            LogKind::State | LogKind::End | LogKind::Start => entry.line() >= first_change,
        };
        let rows: Vec<_> = lines
            .iter()
            .filter_map(entry)
            .filter(kept)
            .map(|entry| document::entry_row(&entry))
            .collect();
        let stored = rows.len();
        let mut writes = vec![Write::Log(rows)];
        // Only lines that were dropped since: the store looks at each of them once.
        let mut deleted = Vec::new();
        for kind in LogKind::ALL {
            let lines = self.log.to_delete(kind);
            if !lines.is_empty() {
                deleted.push((kind, lines.end));
                writes.push(Write::TrimLog(kind, lines));
            }
        }
        let forgets_payloads = self.log.forgets_payloads();
        if forgets_payloads {
            writes.push(Write::ForgetLogPayloads);
        }
        writes.push(Write::LogNumbers(self.log.numbers(ahead)));
        let saved = store.save(writes).await;
        if forgets_payloads && saved.is_ok() {
            self.log.set_payloads_forgotten();
        }
        if saved.is_ok() {
            for (kind, below) in deleted {
                self.log.set_deleted(kind, below);
            }
        }
        for _ in 0..stored {
            if saved.is_ok() {
                self.logged.written();
            } else {
                self.logged.failed();
            }
        }
        if self.log.note_stored(saved.is_ok()) {
            match saved {
                Ok(()) => tracing::info!("the log of calls and states is stored again"),
                Err(error) => {
                    tracing::warn!(error = %error, "the log of calls and states cannot be stored; calls go on, and a restart loses its latest lines");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use parking_lot::Mutex;

    use super::*;
    use crate::calls::ended_call::EndedCall;
    use crate::calls::log::LogLimits;
    use crate::calls::{Request, Requester};
    use crate::config::CallsConfig;
    use crate::model::JsonText;
    use crate::state::{Restored, StateError};

    /// A store that only notes how many lines of the log it is given at a time.
    #[derive(Default)]
    struct BatchStore(Mutex<Vec<usize>>);

    impl StateStore for BatchStore {
        fn load(&self) -> BoxFuture<'_, Result<Restored, StateError>> {
            Box::pin(async { Ok(Restored::default()) })
        }

        fn save(&self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StateError>> {
            let lines = writes.iter().map(|write| {
                if let Write::Log(rows) = write {
                    rows.len()
                } else {
                    0
                }
            });
            self.0.lock().push(lines.sum());
            Box::pin(async { Ok(()) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lines_that_follow_each_other_soon_are_stored_together() {
        let log = Arc::new(ActivityLog::new(LogLimits::from_config(
            &CallsConfig::default(),
        )));
        let batches = Arc::new(BatchStore::default());
        let store = Arc::new(LogStore::default());
        assert!(store.0.set(Arc::<BatchStore>::clone(&batches)).is_ok());
        let clock = Clock::system();
        let tasks = Tasks::new();
        let queue = LogQueue::start(
            &log,
            (&Arc::default(), &Arc::default()),
            &store,
            clock,
            &tasks,
        );
        let request = Request::new("read", JsonText::known("{}"), Requester::full_access());
        for _ in 0..3 {
            let now = clock.wall();
            let call = log.add_call(EndedCall::of_request(&request, now), None, now);
            queue.enqueue(LogLine::Call(call, None));
            clock.sleep(GATHER_TIME / 4).await;
        }
        clock.sleep(GATHER_TIME).await;
        assert_eq!(*batches.0.lock(), [3]);
        drop(queue);
        tasks.finish(GATHER_TIME).await;
    }

    /// A queue whose writer is stuck.
    fn stuck() -> (LogQueue, mpsc::Receiver<LogLine>) {
        LogQueue::new((&Arc::default(), &Arc::default()))
    }

    fn line(bytes: usize) -> LogLine {
        let arguments = format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        let arguments = JsonText::parse(&arguments).unwrap();
        let at = jiff::Timestamp::UNIX_EPOCH;
        let call = Arc::new(EndedCall::of_request(
            &Request::new("read", arguments.clone(), Requester::full_access()),
            at,
        ));
        let entry = AuditEntry {
            call: Arc::clone(&call),
            arguments,
            reasoning: None,
        };
        let config = CallsConfig {
            audit: Some("/audit".into()),
            ..CallsConfig::default()
        };
        let settings = AuditSettings::from_config(&config).unwrap();
        let line = LogLine::Call(
            NumberedCall {
                number: 1,
                line: 1,
                ended: at,
                call,
                payload: None,
            },
            Some((settings, entry)),
        );
        assert_eq!(line.bytes(), bytes);
        line
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        let (queue, mut lines) = stuck();
        for _ in 0..QUEUE + 3 {
            queue.enqueue(line(10));
        }
        assert_eq!(queue.audited.all_dropped(), 3);
        assert_eq!(queue.logged.all_dropped(), 3);
        assert_eq!(queue.waiting.load(Ordering::Relaxed), QUEUE * 10);
        assert!(lines.try_recv().is_ok());
        queue.enqueue(line(10));
        assert_eq!(queue.audited.all_dropped(), 3);
    }

    #[test]
    fn only_so_many_bytes_of_arguments_wait() {
        let (queue, _lines) = stuck();
        for bytes in [2 * WAITING, 10, 10] {
            queue.enqueue(line(bytes));
        }
        assert_eq!(
            queue.audited.all_dropped(),
            2,
            "one larger text alone may wait"
        );
        let (queue, _lines) = stuck();
        for bytes in [WAITING / 2, WAITING / 2, 10] {
            queue.enqueue(line(bytes));
        }
        assert_eq!(queue.audited.all_dropped(), 1);
    }
}
