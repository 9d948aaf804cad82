//! The audit log: one line of JSON for each call that was requested, whatever its outcome.
//!
//! Its lines come from the queue of the log ([`log`](super::log)): a call never waits for a disk,
//! and never fails because of one; a line that found no room there is counted, and the daemon's log
//! reports it. Arguments are written as a digest unless configured otherwise.
//!
//! Never written: results, addresses, credentials. Never done here: waiting until a line is safe on
//! the disk (a crash of the machine may lose the last lines).

use std::path::PathBuf;
use std::sync::Arc;

use crate::config;
use crate::metrics::AuditCounts;

mod entry;
mod file;

pub(super) use entry::AuditEntry;
use file::RotatingFile;

/// Where the log is and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AuditSettings {
    path: PathBuf,
    arguments: bool,
    max_size: u64,
    keep: usize,
}

impl AuditSettings {
    /// The configured log, if there is one.
    pub(super) fn from_config(config: &config::CallsConfig) -> Option<Arc<Self>> {
        let config::CallsConfig {
            audit_arguments: arguments,
            audit_max_size: max_size,
            audit_keep: keep,
            ..
        } = *config;
        config.audit.clone().map(|path| {
            Arc::new(Self {
                path,
                arguments,
                max_size,
                keep,
            })
        })
    }
}

/// Writes the lines.
#[derive(Debug)]
pub(super) struct AuditWriter {
    /// The file with its settings, once a line was written.
    open: Option<(Arc<AuditSettings>, RotatingFile)>,
    counts: Arc<AuditCounts>,
    /// The count of dropped lines at the last report.
    reported: u64,
    failing: bool,
}

impl AuditWriter {
    /// A writer that has written no line.
    pub(super) fn new(counts: Arc<AuditCounts>) -> Self {
        Self {
            open: None,
            reported: counts.all_dropped(),
            counts,
            failing: false,
        }
    }

    /// Writes lines, each by its own settings. Blocking.
    pub(super) fn write(&mut self, entries: &[(Arc<AuditSettings>, AuditEntry)]) {
        if let Some((_, file)) = &mut self.open {
            file.look();
        }
        for (settings, entry) in entries {
            if self
                .open
                .as_ref()
                .is_none_or(|(present, _)| present != settings)
            {
                let mut file =
                    RotatingFile::at(settings.path.clone(), settings.max_size, settings.keep);
                file.look();
                self.open = Some((Arc::clone(settings), file));
            }
            let Some((_, file)) = &mut self.open else {
                continue;
            };
            let written = entry
                .line(settings.arguments)
                .and_then(|line| file.write(&line));
            match written {
                Ok(()) => self.counts.written(),
                Err(_) => self.counts.failed(),
            }
            self.log_transition(written);
        }
        let dropped = self.counts.all_dropped();
        if let Some((_, file)) = self.open.as_ref().filter(|_| dropped > self.reported) {
            let path = file.path().display();
            let lines = dropped - self.reported;
            tracing::warn!(path = %path, lines, "calls are missing in the audit log: they ended faster than they could be written");
            self.reported = dropped;
        }
    }

    /// Logs the first failure, and the first success after it.
    fn log_transition(&mut self, written: std::io::Result<()>) {
        let Some((_, file)) = &self.open else { return };
        let path = file.path().display();
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
