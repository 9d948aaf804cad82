//! A histogram of durations. It consists of atomics, for paths that a lock would slow down.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The inclusive upper bounds (`le`) in microseconds: from a cached list to a request that timed
/// out. Longer durations are in the last bucket, which has no bound.
const BOUNDS: [u32; BUCKETS - 1] = [
    100, 250, 1_000, 2_500, 10_000, 25_000, 100_000, 250_000, 1_000_000, 2_500_000, 10_000_000,
    30_000_000,
];
const BUCKETS: usize = 13;
const MICROS_PER_SECOND: f64 = 1e6;

/// Counts durations.
#[derive(Debug, Default)]
pub struct DurationHistogram {
    buckets: [AtomicU64; BUCKETS],
    nanoseconds: AtomicU64,
}

/// The counts at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramSnapshot {
    /// The sum of all durations in seconds.
    pub sum: f64,
    /// The number of durations.
    pub count: u64,
    /// The upper bound of each bucket in seconds, and its count, which does not include the buckets
    /// before it. The last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
}

impl DurationHistogram {
    /// Counts one duration.
    pub fn observe(&self, took: Duration) {
        let bucket = BOUNDS
            .iter()
            .position(|bound| took <= Duration::from_micros(u64::from(*bound)));
        if let Some(bucket) = self.buckets.get(bucket.unwrap_or(BUCKETS - 1)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        // Overflows after 580 years.
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The counts since the start. While other threads count, the sum may include slightly more or
    /// fewer durations than the buckets.
    pub fn measured(&self) -> HistogramSnapshot {
        let bounds = BOUNDS
            .iter()
            .map(|bound| f64::from(*bound) / MICROS_PER_SECOND)
            .chain([f64::INFINITY]);
        let counts = self
            .buckets
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<_> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
        HistogramSnapshot {
            sum,
            count,
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_counted_in_and_nothing_is_lost() {
        let times = DurationHistogram::default();
        for micros in [0, 100, 101, 30_000_000, 30_000_001, 90_000_000] {
            times.observe(Duration::from_micros(micros));
        }
        let measured = times.measured();
        assert_eq!(measured.count, 6);
        assert!(
            (measured.sum - 150.000_202).abs() < 1e-6,
            "{}",
            measured.sum
        );
        let filled: Vec<_> = measured
            .buckets
            .iter()
            .filter(|(_, count)| *count > 0)
            .copied()
            .collect();
        assert_eq!(
            filled,
            [(0.0001, 2), (0.00025, 1), (30.0, 1), (f64::INFINITY, 2)]
        );
    }
}
