//! Counters of one thing, told apart by a label with a fixed set of values.

use std::sync::atomic::{AtomicU64, Ordering};

use super::family::Family;

/// One counter for each value that the label may have. A value that is not among them counts for the last one.
#[derive(Debug)]
pub struct CounterVec {
    values: &'static [&'static str],
    counts: Box<[AtomicU64]>,
}

impl CounterVec {
    /// All at zero. `values` must not be empty, or nothing is counted.
    pub fn new(values: &'static [&'static str]) -> Self {
        Self { values, counts: values.iter().map(|_| AtomicU64::new(0)).collect() }
    }

    /// Counts one of this value.
    pub fn count(&self, value: &str) {
        self.add(self.place(value), 1);
    }

    /// Where a value stands among those that there are.
    pub(super) fn place(&self, value: &str) -> usize {
        self.values.iter().position(|known| *known == value).unwrap_or(self.values.len().saturating_sub(1))
    }

    pub(super) fn add(&self, place: usize, count: u64) {
        if let Some(counter) = self.counts.get(place) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Every value with its count so far.
    pub fn counted(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.values.iter().zip(&self.counts).map(|(value, count)| (*value, count.load(Ordering::Relaxed)))
    }

    /// `family` with one sample for each value of `label`.
    pub(super) fn to_family(&self, label: &'static str, family: Family) -> Family {
        self.counted().fold(family, |family, (value, count)| family.with_label(label, value, count))
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
        assert_eq!(tally.counted().collect::<Vec<_>>(), [("good", 2), ("other", 2)]);
        CounterVec::new(&[]).count("anything");
    }
}
