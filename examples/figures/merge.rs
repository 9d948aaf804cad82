//! The part of a change that the catalog does, in one process without any network: what 20 tools
//! cost that change among more and more others.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Result, ensure};
use callsheet::catalog::{Catalog, Change, Inputs, Offer, Visibility, build};
use callsheet::model::{AcceptedVersions, ScenarioName};
use callsheet::protocols::tool_discovery::decode;
use callsheet::runtime::Clock;

use crate::manifests::{self, TOOLS};
use crate::plan::Plan;
use crate::report::{Row, median, percentile};

/// Sizes of catalogs, in scenarios.
const FLEETS: [usize; 3] = [50, 1_000, 10_000];

/// A catalog that changes.
struct MergeCase {
    catalog: Catalog,
    changes: Vec<Change>,
    /// Microseconds of each change.
    times: Vec<f64>,
}

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let clock = Clock::system();
    let mut cases = FLEETS
        .map(MergeCase::new)
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    // In turns, so that what else the machine does hits all.
    for round in 0..plan.pick(300, 2_000) {
        for case in &mut cases {
            let before = case.catalog.revision();
            let change = case.changes[round % case.changes.len()].clone();
            let start = clock.now();
            let next = case.catalog.with(change);
            case.times.push(start.elapsed().as_secs_f64() * 1e6);
            ensure!(next.revision() != before, "nothing changed");
            case.catalog = black_box(next);
        }
    }
    let p50: Vec<f64> = cases.iter().map(|case| median(&case.times)).collect();
    let mut rows = Vec::new();
    for ((scenarios, case), p50) in FLEETS.iter().zip(&cases).zip(&p50) {
        let tools = scenarios * TOOLS;
        let p99 = percentile(&case.times, 99);
        println!("20 of {tools} tools change in the catalog: p50 {p50:.0} us, p99 {p99:.0} us");
        let name = format!("20 of {tools} tools change, the catalog's part, p50");
        let row =
            Row::new(format!("merge.{tools}"), name, *p50, "us").note(format!("p99 {p99:.0} us"));
        rows.push(row);
    }
    if let (Some(row), &[small, _, _]) = (rows.get_mut(1), &p50[..]) {
        *row = row.clone().against("of 1,000", small).at_most(1.5);
    }
    Ok(rows)
}

impl MergeCase {
    fn new(scenarios: usize) -> Result<Self> {
        let offers = (0..scenarios)
            .map(|at| offer(at, 0))
            .collect::<Result<BTreeMap<_, _>>>()?;
        let catalog = build(&Inputs {
            offers,
            ..Inputs::default()
        });
        let mut changes = Vec::new();
        for edition in [1, 0] {
            // Scattered over the catalog.
            for at in (0..scenarios).step_by(scenarios / 10) {
                let (name, offer) = offer(at, edition)?;
                changes.push(Change::Offer(name, Some(offer)));
            }
        }
        Ok(Self {
            catalog,
            changes,
            times: Vec::new(),
        })
    }
}

fn offer(at: usize, edition: u64) -> Result<(ScenarioName, Offer)> {
    let decoded = decode(
        manifests::manifest(at, edition).as_bytes(),
        &AcceptedVersions::default(),
    )
    .map_err(|error| anyhow::anyhow!("{error}"))?;
    let offer = Offer {
        manifest: Arc::new(decoded.manifest),
        visibility: Visibility::Published,
    };
    Ok((manifests::name(at).parse()?, offer))
}
