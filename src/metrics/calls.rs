//! Metrics of calls of tools, by outcome.

use std::time::Duration;

use super::family::{Family, MetricKind};
use super::histogram::DurationHistogram;

/// All outcomes: an answer, or the code of the refusal. Any other outcome counts as the last one.
const OUTCOMES: [&str; 32] = [
    "ok",
    "failed",
    "running",
    "input_required",
    "given_up",
    "unknown_tool",
    "tool_gone",
    "unknown_revision",
    "ambiguous",
    "not_trusted",
    "disabled",
    "not_allowed",
    "unknown_profile",
    "invalid_arguments",
    "output_missing",
    "invalid_output",
    "no_activity",
    "approval_required",
    "rate_limited",
    "busy",
    "memory_share_full",
    "memory_full",
    "circuit_open",
    "unavailable",
    "not_callable",
    "bad_answer",
    "timeout",
    "unreachable",
    "too_large",
    "result_left_out",
    "broken",
    "other",
];

/// Counts calls.
#[derive(Debug, Default)]
pub struct CallCounts([DurationHistogram; OUTCOMES.len()]);

impl CallCounts {
    /// A call ended with `outcome`. `took` includes the time in the queue.
    pub fn ended(&self, outcome: &str, took: Duration) {
        let place = OUTCOMES
            .iter()
            .position(|known| *known == outcome)
            .unwrap_or(OUTCOMES.len() - 1);
        if let Some(times) = self.0.get(place) {
            times.observe(took);
        }
    }

    /// The metrics. `waiting` is the number of calls in the queue now.
    pub fn families(&self, waiting: usize) -> Vec<Family> {
        let mut counts = Family::new(
            MetricKind::Counter,
            "callsheet_calls",
            "Calls of tools by outcome: `failed` are those that the tool itself reports as failed, `running` those that continue after the answer, `given_up` those that the client cancelled before they were sent.",
        );
        let mut times = Family::new(
            MetricKind::Histogram,
            "callsheet_call_duration_seconds",
            "How long calls of tools took, from the request to the answer, time in the queue included.",
        );
        for (outcome, measured) in OUTCOMES
            .iter()
            .zip(self.0.iter().map(DurationHistogram::measured))
        {
            counts = counts.with_label("outcome", *outcome, measured.count);
            if measured.count > 0 {
                times = times.with_label("outcome", *outcome, measured);
            }
        }
        let waiting = Family::new(
            MetricKind::Gauge,
            "callsheet_calls_waiting",
            "Calls of tools that wait in the queue.",
        )
        .value(waiting);
        vec![counts, times, waiting]
    }
}
