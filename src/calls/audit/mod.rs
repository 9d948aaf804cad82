//! The audit log: one line of JSON for each call that was requested, whatever its outcome.
//!
//! A call only puts its line into a queue, and one task writes the lines. If the queue is full, the
//! line is dropped and counted, and the daemon's log reports it: a call never waits for a disk, and
//! never fails because of one. Arguments are written as a digest unless configured otherwise.
//!
//! Never written: results, addresses, credentials. Never done here: waiting until a line is safe on
//! the disk (a crash of the machine may lose the last lines).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use crate::config;
use crate::metrics::AuditCounts;
use crate::runtime::Tasks;

mod entry;
mod file;

pub(super) use entry::AuditEntry;
use file::RotatingFile;

/// How many lines may wait to be written.
const QUEUE: usize = 4_096;
/// How many bytes of arguments may wait with them. A single larger text may wait alone.
const WAITING: usize = 16 * 1024 * 1024;
/// How many lines are written together.
const BATCH: usize = 256;

/// Where the log is and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AuditSettings {
    path: PathBuf,
    arguments: bool,
    max_size: u64,
    keep: usize,
}

/// The queue of lines. The writer ends when the last handle is dropped, after it wrote every line.
#[derive(Debug)]
pub(super) struct Audit {
    settings: AuditSettings,
    queue: mpsc::Sender<Box<AuditEntry>>,
    waiting: Arc<AtomicUsize>,
    counts: Arc<AuditCounts>,
}

impl AuditSettings {
    fn from_config(config: &config::CallsConfig) -> Option<Self> {
        let config::CallsConfig { audit_arguments: arguments, audit_max_size: max_size, audit_keep: keep, .. } =
            *config;
        config.audit.clone().map(|path| Self { path, arguments, max_size, keep })
    }
}

impl Audit {
    /// The configured log, if there is one. Returns `present` if its settings are the same.
    pub(super) fn configured(
        config: &config::CallsConfig,
        present: Option<Arc<Self>>,
        counts: &Arc<AuditCounts>,
        tasks: &Tasks,
    ) -> Option<Arc<Self>> {
        let settings = AuditSettings::from_config(config)?;
        if let Some(present) = present.filter(|present| present.settings == settings) {
            return Some(present);
        }
        let (queue, lines) = mpsc::channel(QUEUE);
        let (waiting, counts) = (Arc::default(), Arc::clone(counts));
        let file = RotatingFile::at(settings.path.clone(), settings.max_size, settings.keep);
        let writer =
            AuditWriter { file, waiting: Arc::clone(&waiting), counts: Arc::clone(&counts), ..AuditWriter::default() };
        tasks.spawn(writer.run(lines, settings.arguments, tasks.clone()));
        Some(Arc::new(Self { settings, queue, waiting, counts }))
    }

    /// Queues the line of a call that is over. Never waits.
    pub(super) fn enqueue(&self, entry: Box<AuditEntry>) {
        let bytes = entry.bytes();
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(bytes) <= WAITING;
        if !fits || self.queue.try_send(entry).is_err() {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
            self.counts.dropped();
        }
    }
}

/// Writes lines from the queue.
#[derive(Debug, Default)]
struct AuditWriter {
    file: RotatingFile,
    waiting: Arc<AtomicUsize>,
    counts: Arc<AuditCounts>,
    /// The count of dropped lines at the last report.
    reported: u64,
    failing: bool,
}

impl AuditWriter {
    async fn run(mut self, mut lines: mpsc::Receiver<Box<AuditEntry>>, whole: bool, tasks: Tasks) {
        self.reported = self.counts.all_dropped();
        let mut batch = Vec::new();
        while lines.recv_many(&mut batch, BATCH).await > 0 {
            let entries = std::mem::take(&mut batch);
            let written = tasks.spawn_blocking(move || {
                self.write(&entries, whole);
                self
            });
            match written.await {
                Ok(writer) => self = writer,
                Err(error) => {
                    tracing::error!(error = %error, "the audit log ended unexpectedly; restart the daemon to have it written again");
                    return;
                }
            }
        }
    }

    /// Writes lines. Blocking.
    fn write(&mut self, entries: &[Box<AuditEntry>], whole: bool) {
        self.file.look();
        for entry in entries {
            let written = entry.line(whole).and_then(|line| self.file.write(&line));
            self.waiting.fetch_sub(entry.bytes(), Ordering::Relaxed);
            match written {
                Ok(()) => self.counts.written(),
                Err(_) => self.counts.failed(),
            }
            self.log_transition(written);
        }
        let dropped = self.counts.all_dropped();
        if dropped > self.reported {
            let (path, lines) = (self.file.path().display(), dropped - self.reported);
            tracing::warn!(path = %path, lines, "calls are missing in the audit log: they ended faster than they could be written");
            self.reported = dropped;
        }
    }

    /// Logs the first failure, and the first success after it.
    fn log_transition(&mut self, written: std::io::Result<()>) {
        let path = self.file.path().display();
        match written {
            Err(error) if !self.failing => {
                let hint = "make the folder and give the daemon the right to write there, or change `calls.audit`; calls go on meanwhile";
                tracing::error!(path = %path, error = %error, hint, "the audit log cannot be written");
                self.failing = true;
            }
            Ok(()) if self.failing => {
                tracing::info!(path = %path, "the audit log is written again");
                self.failing = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Request;
    use crate::calls::ended_call::EndedCall;
    use crate::model::JsonText;

    /// A log whose writer is stuck.
    fn stuck() -> (Audit, mpsc::Receiver<Box<AuditEntry>>) {
        let (queue, lines) = mpsc::channel(QUEUE);
        let settings = AuditSettings { path: PathBuf::from("/audit"), arguments: false, max_size: 1, keep: 1 };
        (Audit { settings, queue, waiting: Arc::default(), counts: Arc::default() }, lines)
    }

    fn entry(bytes: usize) -> Box<AuditEntry> {
        let arguments = format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        let arguments = JsonText::parse(&arguments).unwrap();
        let call = EndedCall::of_request(&Request::new("read", arguments.clone()), jiff::Timestamp::UNIX_EPOCH);
        let entry = AuditEntry { call, arguments, reasoning: None };
        assert_eq!(entry.bytes(), bytes);
        Box::new(entry)
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        let (audit, mut lines) = stuck();
        for _ in 0..QUEUE + 3 {
            audit.enqueue(entry(10));
        }
        assert_eq!(audit.counts.all_dropped(), 3);
        assert_eq!(audit.waiting.load(Ordering::Relaxed), QUEUE * 10);
        assert!(lines.try_recv().is_ok());
        audit.enqueue(entry(10));
        assert_eq!(audit.counts.all_dropped(), 3);
    }

    #[test]
    fn only_so_many_bytes_of_arguments_wait() {
        let (audit, _lines) = stuck();
        for bytes in [2 * WAITING, 10, 10] {
            audit.enqueue(entry(bytes));
        }
        assert_eq!(audit.counts.all_dropped(), 2, "one larger text alone may wait");
        let (audit, _lines) = stuck();
        for bytes in [WAITING / 2, WAITING / 2, 10] {
            audit.enqueue(entry(bytes));
        }
        assert_eq!(audit.counts.all_dropped(), 1);
    }
}
