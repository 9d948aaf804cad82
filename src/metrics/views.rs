//! Metrics of requests for lists, by how much work was already done.

use super::counter_vec::CounterVec;
use super::family::{Family, MetricKind};

const REPEATED: usize = 0;
const HIT: usize = 1;
const MISS: usize = 2;
const OUTCOMES: &[&str] = &["repeated", "hit", "miss"];

/// Counts requests for lists by outcome.
#[derive(Debug)]
pub struct ViewCounts(CounterVec);

impl Default for ViewCounts {
    fn default() -> Self {
        Self(CounterVec::new(OUTCOMES))
    }
}

impl ViewCounts {
    /// The whole answer was in the cache of sent answers.
    pub fn repeated(&self) {
        self.0.add(REPEATED, 1);
    }

    /// The body was in the cache (`kept`), or had to be made.
    pub fn looked_up(&self, kept: bool) {
        self.0.add(if kept { HIT } else { MISS }, 1);
    }

    /// The metrics. `entries` and `bytes` are the current size of the cache of bodies.
    pub fn families(&self, entries: u64, bytes: u64) -> Vec<Family> {
        let lists = Family::new(
            MetricKind::Counter,
            "callsheet_view_requests",
            "Requests for lists by outcome: answered as sent before (`repeated`), from a prepared body (`hit`), or with a new body (`miss`).",
        );
        let count = Family::new(
            MetricKind::Gauge,
            "callsheet_view_cache_entries",
            "Prepared bodies in the cache.",
        );
        let size = Family::new(
            MetricKind::Gauge,
            "callsheet_view_cache_bytes",
            "Memory that prepared bodies use, approximately.",
        );
        vec![
            self.0.to_family("outcome", lists),
            count.value(entries),
            size.value(bytes),
        ]
    }
}
