//! One metric with its samples at one moment. Plain data.

use super::histogram::HistogramSnapshot;

/// A metric: name, help and samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// The name, without the suffixes of its kind (`_total`, `_info`, `_bucket`), but with its unit
    /// as suffix if it has one.
    pub name: &'static str,
    /// One sentence for people.
    pub help: &'static str,
    /// Its kind.
    pub kind: MetricKind,
    /// The samples. Without any, only the help and the type are written.
    pub samples: Vec<Sample>,
}

/// The kinds of metrics (`OpenMetrics` 1.0, section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, from zero at the start of the process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Durations, by bucket.
    Histogram,
    /// Facts that do not change while the process runs.
    Info,
}

/// One value with its labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Names and values. A value may be any string.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: MetricValue,
}

/// A value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricValue {
    /// A count.
    Whole(u64),
    /// Anything else: seconds, shares, points in time as seconds since 1970.
    Real(f64),
    /// The buckets of a histogram.
    Times(HistogramSnapshot),
    /// The value of an `Info` metric, whose facts are in its labels.
    Fact,
}

impl Family {
    /// A metric without samples.
    pub fn new(kind: MetricKind, name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            kind,
            samples: Vec::new(),
        }
    }

    /// Adds a sample without labels.
    #[must_use]
    pub fn value(self, value: impl Into<MetricValue>) -> Self {
        self.sample(Vec::new(), value)
    }

    /// Adds a sample with one label.
    #[must_use]
    pub fn with_label(
        self,
        label: &'static str,
        text: impl Into<String>,
        value: impl Into<MetricValue>,
    ) -> Self {
        self.sample(vec![(label, text.into())], value)
    }

    /// Adds a sample.
    #[must_use]
    pub fn sample(
        mut self,
        labels: Vec<(&'static str, String)>,
        value: impl Into<MetricValue>,
    ) -> Self {
        self.samples.push(Sample {
            labels,
            value: value.into(),
        });
        self
    }
}

impl From<u64> for MetricValue {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<usize> for MetricValue {
    fn from(value: usize) -> Self {
        Self::Whole(value as u64)
    }
}

impl From<bool> for MetricValue {
    fn from(value: bool) -> Self {
        Self::Whole(u64::from(value))
    }
}

impl From<f64> for MetricValue {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<HistogramSnapshot> for MetricValue {
    fn from(value: HistogramSnapshot) -> Self {
        Self::Times(value)
    }
}
