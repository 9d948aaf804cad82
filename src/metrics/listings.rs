//! Metric of polls for the tools of scenarios, by outcome: beyond the requests themselves.

use super::counter_vec::CounterVec;
use super::family::{Family, MetricKind};

/// All outcomes: a manifest, the confirmation of the known one, or the kind of the error. Failed
/// requests are `unanswered`.
const OUTCOMES: &[&str] = &[
    "manifest",
    "unchanged",
    "unanswered",
    "unknown-protocol",
    "malformed",
    "incompatible",
    "other",
];

/// Counts polls by outcome.
#[derive(Debug)]
pub struct Listings(CounterVec);

impl Default for Listings {
    fn default() -> Self {
        Self(CounterVec::new(OUTCOMES))
    }
}

impl Listings {
    /// A poll ended with `outcome`.
    pub fn ended(&self, outcome: &str) {
        self.0.count(outcome);
    }

    /// The metric.
    pub fn families(&self) -> Vec<Family> {
        let help = "Listings of scenarios by outcome, those inside the process and probes of unknown protocols included.";
        vec![self.0.to_family(
            "outcome",
            Family::new(MetricKind::Counter, "callsheet_listings", help),
        )]
    }
}
