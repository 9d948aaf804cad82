//! Metrics of requests to scenarios, by outcome.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::family::{Family, MetricKind};
use super::histogram::DurationHistogram;

/// All outcomes: an answer, or the kind of the error. Any other outcome counts as the last one.
const OUTCOMES: [&str; 12] = [
    "ok",
    "not-modified",
    "refused",
    "unresolved",
    "timeout",
    "broken",
    "proxy",
    "status",
    "too-large",
    "redirect",
    "address",
    "other",
];

/// Counts requests to scenarios.
#[derive(Debug, Default)]
pub struct Fetches {
    times: [DurationHistogram; OUTCOMES.len()],
    bytes: AtomicU64,
}

impl Fetches {
    /// A request ended with `ok`, `not-modified` or the kind of an error. `bytes` is the size of
    /// the decoded body.
    pub fn ended(&self, outcome: &str, took: Duration, bytes: usize) {
        let place = OUTCOMES
            .iter()
            .position(|known| *known == outcome)
            .unwrap_or(OUTCOMES.len() - 1);
        if let Some(times) = self.times.get(place) {
            times.observe(took);
        }
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The metrics.
    pub fn families(&self) -> Vec<Family> {
        let mut counts = Family::new(
            MetricKind::Counter,
            "callsheet_fetches",
            "Requests to scenarios by outcome; those that a scenario answered with 304 are `not-modified`.",
        );
        let mut times = Family::new(
            MetricKind::Histogram,
            "callsheet_fetch_duration_seconds",
            "How long requests to scenarios took, from the start to the last byte or the failure.",
        );
        for (outcome, measured) in OUTCOMES
            .iter()
            .zip(self.times.iter().map(DurationHistogram::measured))
        {
            counts = counts.with_label("outcome", *outcome, measured.count);
            if measured.count > 0 {
                times = times.with_label("outcome", *outcome, measured);
            }
        }
        let bytes = Family::new(
            MetricKind::Counter,
            "callsheet_fetch_received_bytes",
            "Bytes of bodies that scenarios answered, after decoding.",
        );
        vec![
            counts,
            times,
            bytes.value(self.bytes.load(Ordering::Relaxed)),
        ]
    }
}
