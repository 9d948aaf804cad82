//! What a figure is, the table of them, and small arithmetic.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;

/// Where the table in `docs/benchmarks.md` begins and ends.
const MARKS: (&str, &str) = ("<!-- figures: begin -->\n", "<!-- figures: end -->");

/// One figure.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    /// What it is found by in a later run.
    id: String,
    /// What was measured.
    name: String,
    ours: f64,
    /// What ours is compared with, in the same unit.
    theirs: Option<f64>,
    /// What that is.
    against: String,
    unit: &'static str,
    ratio: Option<f64>,
    /// The lowest and the highest ratio of all turns.
    spread: Option<(f64, f64)>,
    wanted: Option<Bound>,
    holds: Option<bool>,
    better: Better,
    /// What else is to be said of it.
    note: String,
}

/// A bound on the ratio, or on our own value where there is no ratio.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// Which way is better.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Better {
    Lower,
    Higher,
}

impl Row {
    /// A figure without anything to compare it with. `id` says from left to right which figure,
    /// which case, which value.
    pub(crate) fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        ours: f64,
        unit: &'static str,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            ours,
            theirs: None,
            against: String::new(),
            unit,
            ratio: None,
            spread: None,
            wanted: None,
            holds: None,
            better: if unit.ends_with("/s") {
                Better::Higher
            } else {
                Better::Lower
            },
            note: String::new(),
        }
    }

    /// Compares it with something.
    pub(crate) fn against(self, what: impl Into<String>, theirs: f64) -> Self {
        Self {
            against: what.into(),
            theirs: Some(theirs),
            ratio: Some(self.ours / theirs),
            ..self
        }
    }

    /// The ratios of several turns, each of two values measured side by side: the median counts,
    /// and the spread is shown.
    pub(crate) fn ratios(self, ours: &[f64], theirs: &[f64]) -> Self {
        let ratios: Vec<f64> = ours
            .iter()
            .zip(theirs)
            .map(|(ours, theirs)| ours / theirs)
            .collect();
        let low = percentile(&ratios, 0);
        let high = percentile(&ratios, 100);
        Self {
            ratio: Some(median(&ratios)),
            spread: Some((low, high)),
            ..self
        }
    }

    pub(crate) fn at_least(self, bound: f64) -> Self {
        let holds = self.bounded() >= bound;
        Self {
            wanted: Some(Bound::AtLeast(bound)),
            holds: Some(holds),
            better: Better::Higher,
            ..self
        }
    }

    pub(crate) fn at_most(self, bound: f64) -> Self {
        let holds = self.bounded() <= bound;
        Self {
            wanted: Some(Bound::AtMost(bound)),
            holds: Some(holds),
            ..self
        }
    }

    pub(crate) fn note(self, note: impl Into<String>) -> Self {
        Self {
            note: note.into(),
            ..self
        }
    }

    fn bounded(&self) -> f64 {
        self.ratio.unwrap_or(self.ours)
    }

    /// Its line in the table.
    fn line(&self) -> String {
        let note = if self.note.is_empty() {
            String::new()
        } else {
            format!(" ({})", self.note)
        };
        let theirs = self.theirs.map_or_else(String::new, |theirs| {
            format!("{}: {}", self.against, shown(theirs, self.unit))
        });
        let spread = self.spread.map_or_else(String::new, |(low, high)| {
            format!(" ({low:.2} to {high:.2})")
        });
        let ratio = self
            .ratio
            .map_or_else(String::new, |ratio| format!("{ratio:.2}{spread}"));
        let of = if self.ratio.is_some() { "" } else { self.unit };
        let wanted = match self.wanted {
            None => String::new(),
            Some(Bound::AtLeast(bound)) => {
                format!("at least {}", with_unit(&bound.to_string(), of))
            }
            Some(Bound::AtMost(bound)) => format!("at most {}", with_unit(&bound.to_string(), of)),
        };
        let holds = match self.holds {
            None => "",
            Some(true) => "yes",
            Some(false) => "**no**",
        };
        let ours = shown(self.ours, self.unit);
        format!(
            "| {} | {ours}{note} | {theirs} | {ratio} | {wanted} | {holds} |",
            self.name
        )
    }
}

/// A value with its unit, in as many digits as mean something.
fn shown(value: f64, unit: &str) -> String {
    let digits = match value.abs() {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 0.1 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0
            && digit.is_ascii_digit()
            && (whole.len() - at).is_multiple_of(3)
            && !grouped.ends_with('-')
        {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    with_unit(&(grouped + rest), unit)
}

fn with_unit(value: &str, unit: &str) -> String {
    if unit.is_empty() || unit.starts_with('/') {
        format!("{value}{unit}")
    } else {
        format!("{value} {unit}")
    }
}

/// What one run found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: String,
    commit: Option<String>,
    /// The options of the run.
    command: String,
    /// How many programs wanted a core, on average in the minute before: what is measured beside
    /// others is worth less.
    load_before: String,
    pub(crate) rows: Vec<Row>,
    /// Figures that could not be told, and why.
    pub(crate) failed: Vec<Failed>,
}

/// A figure that could not be told.
#[derive(Debug, Serialize)]
pub(crate) struct Failed {
    pub(crate) figure: &'static str,
    pub(crate) why: String,
}

impl Report {
    pub(crate) fn new(command: String) -> Self {
        let load_before = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load_before = load_before.split(' ').next().unwrap_or_default().to_owned();
        Self {
            machine: machine(),
            commit: commit(),
            command,
            load_before,
            rows: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// The table in Markdown, with the machine and what was asked above it.
    pub(crate) fn markdown(&self) -> String {
        let at = self
            .commit
            .as_deref()
            .map_or_else(String::new, |commit| format!(", commit {commit}"));
        let mut text = format!(
            "`{}` on {}{at}; load of the machine before: {}.\n\n| figure | callsheet | compared with | ratio | wanted | holds |\n\
             |---|---|---|---|---|---|\n",
            self.command, self.machine, self.load_before
        );
        for row in &self.rows {
            text.push_str(&row.line());
            text.push('\n');
        }
        for Failed { figure, why } in &self.failed {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "\n`{figure}` failed: {why}");
        }
        text
    }

    /// Writes the table between the marks of a file.
    pub(crate) fn quote(&self, file: &Path) -> Result<()> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let parts = text
            .split_once(MARKS.0)
            .and_then(|(before, rest)| Some((before, rest.split_once(MARKS.1)?.1)));
        let (before, after) =
            parts.with_context(|| format!("{} has no place for figures", file.display()))?;
        let table = self.markdown();
        Ok(std::fs::write(
            file,
            format!("{before}{}{table}{}{after}", MARKS.0, MARKS.1),
        )?)
    }
}

/// What the figures were measured on.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']));
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = memory
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<u64>().ok())
        .unwrap_or_default()
        >> 20;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = model.unwrap_or("unknown processor");
    let system = std::env::consts::OS;
    format!(
        "{cores} cores ({model}), {memory} GiB, {system} {}",
        kernel.trim()
    )
}

/// What was measured, if it stands in a repository and git is there.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let out = Command::new("git")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(arguments)
            .output()
            .ok()?;
        out.status
            .success()
            .then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_some_and(|changed| !changed.is_empty());
    Some(if changed {
        commit + " with changes"
    } else {
        commit
    })
}

/// The middle one; 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

/// The value below which so many of a hundred are; 0 of none.
pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}
