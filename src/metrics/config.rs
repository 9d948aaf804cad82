//! Metrics of the configuration: reloads, and whether the file that was last read is active.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use jiff::Timestamp;

use super::counter_vec::CounterVec;
use super::family::{Family, MetricKind};

/// The outcomes of a reload.
const OUTCOMES: &[&str] = &[APPLIED, REFUSED];
const APPLIED: &str = "applied";
const REFUSED: &str = "refused";

/// Counts loads of the configuration.
#[derive(Debug)]
pub struct ConfigLoads {
    reloads: CounterVec,
    refused: AtomicBool,
    /// When the active configuration was applied, in seconds since 1970; 0 before the first one.
    applied_at: AtomicI64,
}

impl Default for ConfigLoads {
    fn default() -> Self {
        Self {
            reloads: CounterVec::new(OUTCOMES),
            refused: AtomicBool::new(false),
            applied_at: AtomicI64::new(0),
        }
    }
}

impl ConfigLoads {
    /// The configuration of the start was applied.
    pub fn started(&self, at: Timestamp) {
        self.applied_at.store(at.as_second(), Ordering::Relaxed);
    }

    /// A changed configuration was applied.
    pub fn applied(&self, at: Timestamp) {
        self.reloads.count(APPLIED);
        self.started(at);
        self.mark_valid();
    }

    /// A changed configuration was refused; the previous one stays active.
    pub fn refused(&self) {
        self.reloads.count(REFUSED);
        self.refused.store(true, Ordering::Relaxed);
    }

    /// The written configuration is valid again, whether or not it differs from the active one.
    pub fn mark_valid(&self) {
        self.refused.store(false, Ordering::Relaxed);
    }

    /// The metrics.
    #[expect(
        clippy::cast_precision_loss,
        reason = "seconds since 1970 are far below 2^53"
    )]
    pub fn families(&self) -> Vec<Family> {
        let reloads = Family::new(
            MetricKind::Counter,
            "callsheet_config_reloads",
            "Reloads of the configuration while the daemon runs, by outcome.",
        );
        let valid = Family::new(
            MetricKind::Gauge,
            "callsheet_config_valid",
            "1 if the configuration that was last read is active, 0 if it was refused.",
        );
        let at = Family::new(
            MetricKind::Gauge,
            "callsheet_config_applied_timestamp_seconds",
            "When the active configuration was applied.",
        );
        vec![
            self.reloads.to_family("outcome", reloads),
            valid.value(!self.refused.load(Ordering::Relaxed)),
            at.value(self.applied_at.load(Ordering::Relaxed) as f64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::MetricValue;

    #[test]
    fn a_refused_change_shows_until_one_comes_into_force() {
        let loads = ConfigLoads::default();
        let shown = || {
            let [reloads, valid, at] = loads.families().try_into().unwrap();
            let value = |family: &Family, at: usize| family.samples[at].value.clone();
            (
                value(&reloads, 0),
                value(&reloads, 1),
                value(&valid, 0),
                value(&at, 0),
            )
        };
        let none = MetricValue::Whole(0);
        let one = MetricValue::Whole(1);
        let at = |second| Timestamp::from_second(second).unwrap();
        loads.started(at(5));
        assert_eq!(
            shown(),
            (
                none.clone(),
                none.clone(),
                one.clone(),
                MetricValue::Real(5.0)
            )
        );
        loads.refused();
        assert_eq!(
            shown(),
            (none.clone(), one.clone(), none, MetricValue::Real(5.0))
        );
        loads.applied(at(9));
        assert_eq!(
            shown(),
            (one.clone(), one.clone(), one, MetricValue::Real(9.0))
        );
    }
}
