//! What the merge costs: building a catalog from everything, and one change in it, at a thousand,
//! ten thousand and a hundred thousand tools. A change must cost that change, however much else
//! there is.
//!
//! `cargo bench --bench catalog` prints criterion's measurements and then a table of ratios. The
//! manifests are made here.

#![allow(
    missing_docs,
    reason = "criterion's macros make items without docstrings"
)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock itself"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callsheet::catalog::{self, Catalog, Change, Inputs, Offer, Visibility};
use callsheet::model::{AcceptedVersions, NamedVersion, ScenarioName};
use callsheet::protocols::tool_discovery::decode;
use criterion::{BatchSize, Criterion, criterion_group};
use serde_json::{Value, json};

/// Tools of one scenario.
const TOOLS: usize = 20;
/// Scenarios in a catalog.
const FLEETS: [usize; 3] = [50, 500, 5_000];
/// Scenarios that change in turns for the ratios, spread over each catalog.
const CHANGING: usize = 50;
/// How often each catalog is changed for the ratios.
const ROUNDS: usize = 2_000;
/// Scenarios that have a tool of one name in common: one in so many tools collides.
const SHARED: usize = 20;

fn name(scenario: usize) -> ScenarioName {
    format!("sample-{scenario:05}").parse().unwrap()
}

/// What a scenario offers; `version` stands in one description.
fn offer(scenario: usize, version: usize) -> Offer {
    let tool = |index: usize| -> Value {
        let name = if index.is_multiple_of(SHARED) {
            format!("read_{}", scenario / SHARED)
        } else {
            format!("sample_{scenario:05}_{index:02}")
        };
        json!({
            "name": name,
            "description": format!("Sample operation {index} of version {version}"),
            "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "Where"}}},
            "metadata": {"enabled_by_default": true, "tags": ["sample"]}
        })
    };
    let manifest = json!({
        "protocol_version": "1.0",
        "scenario": {"name": name(scenario).as_str(), "version": "1.2.3", "description": "Made for measuring"},
        "tools": (0..TOOLS).map(tool).collect::<Vec<_>>(),
        "categories": [],
        "generated_at": "2026-01-15T10:30:00Z"
    });
    let manifest = decode(
        manifest.to_string().as_bytes(),
        &AcceptedVersions::default(),
    )
    .unwrap()
    .manifest;
    Offer {
        manifest: Arc::new(manifest),
        visibility: Visibility::Published,
    }
}

fn inputs(scenarios: usize) -> Inputs {
    Inputs {
        offers: (0..scenarios).map(|at| (name(at), offer(at, 0))).collect(),
        ..Inputs::default()
    }
}

/// The changes of the scenario at this place, to and fro.
fn changes(at: usize) -> [Change; 2] {
    [1, 0].map(|version| Change::Offer(name(at), Some(offer(at, version))))
}

fn changed(catalog: &mut Catalog, changes: &[Change]) {
    for change in changes {
        *catalog = catalog.with(change.clone());
    }
}

fn measure(criterion: &mut Criterion) {
    for scenarios in FLEETS {
        let inputs = inputs(scenarios);
        let mut group = criterion.benchmark_group(format!("{} tools", scenarios * TOOLS));
        group.sample_size(10);
        group.bench_function("build", |bencher| {
            bencher.iter_batched(
                || inputs.clone(),
                |inputs| catalog::build(&inputs),
                BatchSize::LargeInput,
            );
        });
        let mut catalog = catalog::build(&inputs);
        let changes = changes(scenarios / 2);
        let revision = catalog.revision();
        group.bench_function("change and back", |bencher| {
            bencher.iter(|| changed(&mut catalog, &changes));
        });
        assert_eq!(catalog.revision(), revision);
        group.finish();
    }
}

/// The check of the version that a call names, which each such call makes twice.
fn measure_version(criterion: &mut Criterion) {
    let offer = offer(0, 0);
    let tool = &offer.manifest.tools[0];
    let named = NamedVersion::from(tool.version());
    criterion.bench_function("version of a call", |bencher| {
        bencher.iter(|| named.names(black_box(tool).version()));
    });
}

/// The fastest of many runs, which other work on the machine disturbs least.
fn fastest(runs: usize, mut work: impl FnMut()) -> Duration {
    std::iter::repeat_with(|| once(&mut work))
        .take(runs)
        .min()
        .unwrap_or_default()
}

fn once(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// A catalog of which scenarios change all over.
struct Case {
    tools: usize,
    build: Duration,
    catalog: Catalog,
    changes: Vec<[Change; 2]>,
    times: Vec<Duration>,
}

impl Case {
    fn new(scenarios: usize) -> Self {
        let inputs = inputs(scenarios);
        let build = fastest(5, || _ = black_box(catalog::build(&inputs)));
        let spread = (0..scenarios).step_by(scenarios / CHANGING);
        let catalog = catalog::build(&inputs);
        let changes = spread.map(changes).collect();
        Self {
            tools: scenarios * TOOLS,
            build,
            catalog,
            changes,
            times: Vec::new(),
        }
    }

    fn change(&mut self, round: usize) {
        let changes = &self.changes[round % self.changes.len()];
        self.times
            .push(once(|| changed(&mut self.catalog, changes)) / 2);
    }

    fn median(&mut self) -> Duration {
        self.times.sort_unstable();
        self.times[self.times.len() / 2]
    }
}

/// In turns, so that what else the machine does is in all sizes alike: a mean of one size alone,
/// under load, was once 4.5 times another.
fn ratios() {
    println!(
        "{:>10}{:>14}{:>16}{:>14}{:>10}",
        "tools", "build", "per tool", "change", "ratio"
    );
    let mut cases = FLEETS.map(Case::new);
    for round in 0..ROUNDS {
        for case in &mut cases {
            case.change(round);
        }
    }
    let mut before = None;
    for mut case in cases {
        let change = case.median();
        let Case { tools, build, .. } = case;
        let ratio = change.as_secs_f64() / before.replace(change).unwrap_or(change).as_secs_f64();
        let per_tool = build / u32::try_from(tools).unwrap();
        println!("{tools:>10}{build:>14.1?}{per_tool:>16.1?}{change:>14.1?}{ratio:>10.2}");
    }
    println!(
        "build: the fastest of five; change: the median of {ROUNDS}; ratio: to a tenth of the tools"
    );
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = measure, measure_version
}

fn main() {
    benches();
    // A profile is of one measurement alone.
    if !std::env::args().any(|arg| arg == "--profile-time") {
        ratios();
    }
}
