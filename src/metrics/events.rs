//! Metrics of events and their subscribers.

use std::sync::atomic::{AtomicU64, Ordering};

use super::counter_vec::CounterVec;
use super::family::{Family, MetricKind};

/// All names of events.
const EVENTS: &[&str] = &[
    "snapshot",
    "catalog",
    "scenario",
    "finding",
    "approval",
    "operation",
    "call",
];

/// Counts sent events, and subscribers that were disconnected because they were too slow.
#[derive(Debug)]
pub struct EventCounts {
    sent: CounterVec,
    dropped: AtomicU64,
    overrun: AtomicU64,
}

impl Default for EventCounts {
    fn default() -> Self {
        Self {
            sent: CounterVec::new(EVENTS),
            dropped: AtomicU64::new(0),
            overrun: AtomicU64::new(0),
        }
    }
}

impl EventCounts {
    /// An event was sent to one subscriber.
    pub fn sent(&self, event: &str) {
        self.sent.count(event);
    }

    /// `readers` subscribers were disconnected because they were too slow; `events` were not sent
    /// to them.
    pub fn overrun(&self, readers: u64, events: u64) {
        self.overrun.fetch_add(readers, Ordering::Relaxed);
        self.dropped.fetch_add(events, Ordering::Relaxed);
    }

    /// The metrics. `subscribers` is the number of current subscribers, and `remembered` the bytes
    /// of events for those that resume.
    pub fn families(&self, subscribers: usize, remembered: usize) -> Vec<Family> {
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
        let follow = Family::new(
            MetricKind::Gauge,
            "callsheet_event_subscribers",
            "Current subscribers of events.",
        );
        let kept = Family::new(
            MetricKind::Gauge,
            "callsheet_event_ring_bytes",
            "Bytes of events that are remembered for all filters together, roughly.",
        );
        vec![
            self.sent.to_family("event", sent),
            dropped.value(self.dropped.load(Ordering::Relaxed)),
            overrun.value(self.overrun.load(Ordering::Relaxed)),
            follow.value(subscribers),
            kept.value(remembered),
        ]
    }
}
