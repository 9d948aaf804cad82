//! The table of figures, and small arithmetic.

use std::fmt::Write;

/// One figure.
pub(crate) struct Row {
    /// What was measured.
    pub(crate) figure: String,
    /// What callsheet does.
    pub(crate) ours: String,
    /// What it is compared with.
    pub(crate) theirs: String,
    /// The figure that the demand speaks of.
    pub(crate) value: f64,
    /// What it has to be; nothing for what is only told.
    pub(crate) demand: Option<Demand>,
}

/// A bound on a figure, with the unit to show it in.
#[derive(Clone, Copy)]
pub(crate) enum Demand {
    AtLeast(f64, &'static str),
    AtMost(f64, &'static str),
}

impl Demand {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound, _) => value >= bound,
            Self::AtMost(bound, _) => value <= bound,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::AtLeast(_, unit) | Self::AtMost(_, unit) => unit,
        }
    }
}

/// The rows as a table in Markdown.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text =
        "| figure | callsheet | compared with | ratio | demand | holds |\n|---|---|---|---|---|---|\n".to_owned();
    for Row { figure, ours, theirs, value, demand } in rows {
        let (value, bound, holds) = match demand {
            None => (String::new(), String::new(), ""),
            Some(demand) => {
                let (sign, bound) = match demand {
                    Demand::AtLeast(bound, _) => ("at least", bound),
                    Demand::AtMost(bound, _) => ("at most", bound),
                };
                let unit = demand.unit();
                let holds = if demand.holds(*value) { "yes" } else { "**no**" };
                (format!("{value:.2}{unit}"), format!("{sign} {bound}{unit}"), holds)
            }
        };
        // Writing to a text cannot fail.
        let _ = writeln!(text, "| {figure} | {ours} | {theirs} | {value} | {bound} | {holds} |");
    }
    text
}

/// What the figures were measured on.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']));
    format!("{cores} cores, {}, {}", model.unwrap_or("unknown processor"), std::env::consts::OS)
}

/// The middle one; 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
