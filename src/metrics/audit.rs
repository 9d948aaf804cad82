//! Metrics of the lines of the log and of the audit log, by outcome.

use std::sync::atomic::{AtomicU64, Ordering};

use super::family::{Family, MetricKind};

/// Counts lines by outcome.
#[derive(Debug, Default)]
pub struct AuditCounts {
    written: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl AuditCounts {
    /// A line was written.
    pub fn written(&self) {
        self.written.fetch_add(1, Ordering::Relaxed);
    }

    /// A line was dropped, because the queue was full.
    pub fn dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// A line could not be written.
    pub fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of dropped lines since the start.
    pub fn all_dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// The number of lines since the start that could not be written.
    pub fn all_failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// The metric of the audit log.
    pub fn family(&self) -> Family {
        self.family_of(
            "callsheet_audit_lines",
            "Lines of the audit log by outcome: `dropped` found no room in the queue, `failed` could not be written.",
        )
    }

    /// The metric of this name.
    pub fn family_of(&self, name: &'static str, help: &'static str) -> Family {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Family::new(MetricKind::Counter, name, help)
            .with_label("outcome", "written", count(&self.written))
            .with_label("outcome", "dropped", count(&self.dropped))
            .with_label("outcome", "failed", count(&self.failed))
    }
}
