//! Writes metrics as text: `OpenMetrics` 1.0, or Prometheus' older format (0.0.4) for clients that
//! request it.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::family::{Family, MetricKind, MetricValue, Sample};

/// The text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// Prometheus' own text format, version 0.0.4.
    Plain,
}

impl Style {
    /// The media type of the text.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Writes metrics in the given order. Values of labels are escaped.  Fails only if formatting
/// fails, which cannot happen for a text in memory.
pub fn write(families: Vec<Family>, style: Style) -> Result<String, fmt::Error> {
    let kinds: BTreeMap<&str, MetricKind> = families
        .iter()
        .map(|family| (family.name, family.kind))
        .collect();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(FamilyCollector(families)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(match style {
        Style::OpenMetrics => text,
        Style::Plain => plain(&text, &kinds),
    })
}

/// The metrics of one scrape.
#[derive(Debug)]
struct FamilyCollector(Vec<Family>);

impl Collector for FamilyCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        for family in &self.0 {
            let (name, unit) = split(family);
            let mut metric = encoder.encode_descriptor(
                name,
                family.help,
                unit.as_ref(),
                family.kind.metric_type(),
            )?;
            for sample in &family.samples {
                if sample.labels.is_empty() || family.kind == MetricKind::Info {
                    sample.encode(&mut metric, family.kind)?;
                } else {
                    sample.encode(&mut metric.encode_family(&sample.labels)?, family.kind)?;
                }
            }
        }
        Ok(())
    }
}

impl MetricKind {
    fn metric_type(self) -> MetricType {
        match self {
            Self::Counter => MetricType::Counter,
            Self::Gauge => MetricType::Gauge,
            Self::Histogram => MetricType::Histogram,
            Self::Info => MetricType::Info,
        }
    }
}

impl Sample {
    fn encode(&self, metric: &mut MetricEncoder<'_>, kind: MetricKind) -> fmt::Result {
        match &self.value {
            MetricValue::Whole(count) if kind == MetricKind::Counter => {
                metric.encode_counter::<NoLabelSet, _, f64>(count, None)
            }
            MetricValue::Real(count) if kind == MetricKind::Counter => {
                metric.encode_counter::<NoLabelSet, _, f64>(count, None)
            }
            MetricValue::Whole(value) => metric.encode_gauge(value),
            MetricValue::Real(value) => metric.encode_gauge(value),
            MetricValue::Times(times) => {
                metric.encode_histogram::<NoLabelSet>(times.sum, times.count, &times.buckets, None)
            }
            MetricValue::Fact => metric.encode_info(&self.labels),
        }
    }
}

/// The name without its unit, which the encoder appends, and the unit.
fn split(family: &Family) -> (&'static str, Option<Unit>) {
    let units = [("_seconds", Unit::Seconds), ("_bytes", Unit::Bytes)];
    let found = units
        .into_iter()
        .find_map(|(ending, unit)| Some((family.name.strip_suffix(ending)?, Some(unit))));
    found.unwrap_or((family.name, None))
}

/// Converts `OpenMetrics` to Prometheus' older format: the suffix of a counter or an info metric is
/// part of the name, an info metric is a gauge, and there are no lines for units and the end.
fn plain(text: &str, kinds: &BTreeMap<&str, MetricKind>) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.lines() {
        let about = ["# HELP ", "# TYPE "]
            .into_iter()
            .find(|about| line.starts_with(about));
        let Some(about) = about else {
            if !line.starts_with("# ") {
                plain.push_str(line);
                plain.push('\n');
            }
            continue;
        };
        let (name, rest) = line[about.len()..].split_once(' ').unwrap_or_default();
        let (ending, rest) = match kinds.get(name) {
            Some(MetricKind::Counter) => ("_total", rest),
            Some(MetricKind::Info) => ("_info", if about == "# TYPE " { "gauge" } else { rest }),
            _ => ("", rest),
        };
        for part in [about, name, ending, " ", rest, "\n"] {
            plain.push_str(part);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::DurationHistogram;
    use std::time::Duration;

    fn families() -> Vec<Family> {
        let times = DurationHistogram::default();
        times.observe(Duration::from_millis(2));
        vec![
            Family::new(MetricKind::Info, "app_build", "Which one.").with_label(
                "version",
                "1",
                MetricValue::Fact,
            ),
            Family::new(MetricKind::Counter, "app_read_bytes", "How much.").value(7_u64),
            Family::new(MetricKind::Gauge, "app_up", "Who is up.")
                .with_label("name", "a\"\\\nb", true),
            Family::new(MetricKind::Histogram, "app_wait_seconds", "How long.").with_label(
                "to",
                "x",
                times.measured(),
            ),
            Family::new(MetricKind::Gauge, "app_none", "Nothing to tell."),
        ]
    }

    #[test]
    fn open_metrics_tells_units_and_the_end() {
        let text = write(families(), Style::OpenMetrics).unwrap();
        let beginning = "# HELP app_build Which one.\n# TYPE app_build info\napp_build_info{version=\"1\"} 1\n\
            # HELP app_read_bytes How much.\n# TYPE app_read_bytes counter\n# UNIT app_read_bytes bytes\n\
            app_read_bytes_total 7\n# HELP app_up Who is up.\n# TYPE app_up gauge\n\
            app_up{name=\"a\\\"\\\\\\nb\"} 1\n";
        assert!(text.starts_with(beginning), "{text}");
        assert!(
            text.contains("\napp_wait_seconds_bucket{le=\"0.0025\",to=\"x\"} 1\n"),
            "{text}"
        );
        assert!(
            text.contains("\napp_wait_seconds_count{to=\"x\"} 1\n"),
            "{text}"
        );
        assert!(text.ends_with("# TYPE app_none gauge\n# EOF\n"), "{text}");
    }

    #[test]
    fn the_older_format_has_the_endings_in_the_names() {
        let text = write(families(), Style::Plain).unwrap();
        let beginning = "# HELP app_build_info Which one.\n# TYPE app_build_info gauge\napp_build_info{version=\"1\"} 1\n\
            # HELP app_read_bytes_total How much.\n# TYPE app_read_bytes_total counter\napp_read_bytes_total 7\n";
        assert!(text.starts_with(beginning), "{text}");
        assert!(
            !text.contains("# UNIT") && !text.contains("# EOF"),
            "{text}"
        );
    }
}
