//! What a run is to measure, as it was asked for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

/// The options.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Smaller fleets, fewer rounds: whether everything works, and roughly how well.
    pub(crate) quick: bool,
    /// Scenarios of the large fleet.
    pub(crate) fleet: usize,
    /// How long scenarios change while memory is watched.
    pub(crate) churn: Duration,
    /// How long a fleet in which nothing happens is watched.
    pub(crate) steady: Duration,
    /// A file for the figures.
    pub(crate) json: Option<PathBuf>,
    /// A file with a place for the table.
    pub(crate) readme: Option<PathBuf>,
    /// Which figures; none means all.
    pub(crate) figures: Vec<String>,
}

/// What is understood.
pub(crate) const USAGE: &str = "[FIGURE ...] [--quick] [--scenarios N] [--churn MINUTES] [--steady SECONDS] [--daemon PROGRAM] [--json FILE] [--readme FILE]";

/// Where real tools and questions are, if they are there.
pub(crate) fn corpus() -> PathBuf {
    std::env::var_os("CALLSHEET_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        PathBuf::from,
    )
}

impl Plan {
    pub(crate) fn read(arguments: &[String]) -> Result<Self> {
        let quick = arguments.iter().any(|argument| argument == "--quick");
        let mut plan = Self {
            quick,
            fleet: if quick { 1_000 } else { 10_000 },
            churn: Duration::from_secs(if quick { 20 } else { 60 }),
            // A fleet that was asked within a second is asked again between 60 and 63 s later.
            steady: Duration::from_secs(if quick { 11 } else { 66 }),
            json: None,
            readme: None,
            figures: Vec::new(),
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || {
                rest.next()
                    .with_context(|| format!("{argument} of what? {USAGE}"))
            };
            match argument.as_str() {
                "--quick" => {}
                "--scenarios" => plan.fleet = value()?.parse()?,
                "--churn" => plan.churn = Duration::from_secs_f64(value()?.parse::<f64>()? * 60.0),
                "--steady" => plan.steady = Duration::from_secs(value()?.parse()?),
                // Set once: an option that stands twice counts as it stands first.
                "--daemon" => _ = crate::child_process::PROGRAM.set(value()?.into()),
                "--json" => plan.json = Some(value()?.into()),
                "--readme" => plan.readme = Some(value()?.into()),
                other if other.starts_with("--") => anyhow::bail!("what is {other}? {USAGE}"),
                figure => plan.figures.push(figure.to_owned()),
            }
        }
        Ok(plan)
    }

    /// The one for a quick run or the one for a thorough one.
    pub(crate) fn pick<T>(&self, quick: T, thorough: T) -> T {
        if self.quick { quick } else { thorough }
    }

    /// How often something is measured.
    pub(crate) fn rounds(&self) -> usize {
        self.pick(3, 9)
    }
}
