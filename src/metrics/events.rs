//! Events on their way to readers.

use std::sync::atomic::{AtomicU64, Ordering};

use super::counter_vec::CounterVec;
use super::family::{Family, MetricKind};

/// Every name of an event.
const EVENTS: &[&str] = &["snapshot", "catalog", "scenario", "finding", "approval", "operation"];

/// Counts events and the readers that were let go.
#[derive(Debug)]
pub struct EventCounts {
    sent: CounterVec,
    dropped: AtomicU64,
    overrun: AtomicU64,
}

impl Default for EventCounts {
    fn default() -> Self {
        Self { sent: CounterVec::new(EVENTS), dropped: AtomicU64::new(0), overrun: AtomicU64::new(0) }
    }
}

impl EventCounts {
    /// An event of this name was given to one reader.
    pub fn sent(&self, event: &str) {
        self.sent.count(event);
    }

    /// So many readers did not keep up, and were let go with so many events before them.
    pub fn overrun(&self, readers: u64, events: u64) {
        self.overrun.fetch_add(readers, Ordering::Relaxed);
        self.dropped.fetch_add(events, Ordering::Relaxed);
    }

    /// The metrics, with how many follow now.
    pub fn families(&self, subscribers: usize) -> Vec<Family> {
        let sent = Family::new(
            MetricKind::Counter,
            "callsheet_events_sent",
            "Events that were sent to subscribers; an event that 10 subscribers get counts 10 times.",
        );
        let dropped = Family::new(
            MetricKind::Counter,
            "callsheet_events_dropped",
            "Unsent events of subscribers that were disconnected because they were too slow; they may resume.",
        );
        let overrun = Family::new(
            MetricKind::Counter,
            "callsheet_event_readers_dropped",
            "Subscribers of events that were disconnected because they were too slow.",
        );
        let follow = Family::new(MetricKind::Gauge, "callsheet_event_subscribers", "Current subscribers of events.");
        vec![
            self.sent.to_family("event", sent),
            dropped.value(self.dropped.load(Ordering::Relaxed)),
            overrun.value(self.overrun.load(Ordering::Relaxed)),
            follow.value(subscribers),
        ]
    }
}
