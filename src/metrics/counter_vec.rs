//! A set of counters that differ by one label with a fixed set of values.

use std::sync::atomic::{AtomicU64, Ordering};

use super::family::Family;

/// One counter for each value of the label. An unknown value counts as the last one.
#[derive(Debug)]
pub struct CounterVec {
    values: &'static [&'static str],
    counts: Box<[AtomicU64]>,
}

impl CounterVec {
    /// All counters at zero. If `values` is empty, no value is counted.
    pub fn new(values: &'static [&'static str]) -> Self {
        Self {
            values,
            counts: values.iter().map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Adds 1 to the counter of `value`.
    pub fn count(&self, value: &str) {
        self.add(self.place(value), 1);
    }

    /// The index of a value; that of the last one for an unknown value.
    pub(super) fn place(&self, value: &str) -> usize {
        self.values
            .iter()
            .position(|known| *known == value)
            .unwrap_or(self.values.len().saturating_sub(1))
    }

    pub(super) fn add(&self, place: usize, count: u64) {
        if let Some(counter) = self.counts.get(place) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Every value with its count since the start.
    pub fn counted(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.values
            .iter()
            .zip(&self.counts)
            .map(|(value, count)| (*value, count.load(Ordering::Relaxed)))
    }

    /// `family` with one sample for each value of `label`.
    pub(super) fn to_family(&self, label: &'static str, family: Family) -> Family {
        self.counted().fold(family, |family, (value, count)| {
            family.with_label(label, value, count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_counts_for_the_last() {
        let tally = CounterVec::new(&["good", "other"]);
        for value in ["good", "good", "strange", "other"] {
            tally.count(value);
        }
        assert_eq!(
            tally.counted().collect::<Vec<_>>(),
            [("good", 2), ("other", 2)]
        );
        CounterVec::new(&[]).count("anything");
    }
}
