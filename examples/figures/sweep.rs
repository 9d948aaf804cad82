//! Asking a large fleet: for the first time, again where nothing changed, and minute after minute;
//! against the bare loop that asks the same scenarios as often at once and does nothing with what
//! they say.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::runtime::Clock;
use tokio::runtime::Runtime;

use crate::bare_loop::{self, Passes, Took};
use crate::child_process::Daemon;
use crate::manifests::TOOLS;
use crate::plan::Plan;
use crate::report::{Row, median};
use crate::scenarios::Scenarios;
use crate::truth_guard::TruthGuard;
use crate::{daemon_list, list_check};

/// How often a quiet fleet is asked; a quick run has no minute.
const INTERVALS: (u64, u64) = (10, 60);

/// What a first sweep leaves to be done (storing the manifests, the index of the search) is done by
/// then.
const SETTLED: Duration = Duration::from_secs(5);

/// What was measured, of the daemon and of the loop.
#[derive(Default)]
struct SweepTimes {
    ours: Vec<Took>,
    theirs: Vec<Took>,
}

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let runtime = Runtime::new()?;
    let scenarios = Scenarios::start(plan.fleet, Duration::ZERO)?;
    let interval = Duration::from_secs(plan.pick(INTERVALS.0, INTERVALS.1));
    let mut first = SweepTimes::default();
    let mut again = Vec::new();
    let mut bytes = 0;
    let rounds = plan.pick(2, 3);
    let mut steady = None;
    for round in 0..rounds {
        let loops = bare_loop::run_on(&scenarios.addresses)?;
        let Passes {
            first: asked,
            again: confirmed,
            ..
        } = loops;
        bytes = loops.bytes;
        first.theirs.push(asked);
        again.push(each(confirmed.busy, plan.fleet));
        let guard = runtime.block_on(TruthGuard::start())?;
        let named = guard.beside(scenarios.named());
        let mut settings = format!("refresh.min_interval = \"{}s\"\n", interval.as_secs());
        if plan.quick {
            // The scenarios say that they stay as they are for a minute.
            let _ = writeln!(
                settings,
                "refresh.max_interval = \"{}s\"",
                interval.as_secs()
            );
        }
        let start = Clock::system().now();
        let daemon = Daemon::start(None, &named, "120s", &settings)?;
        let listening = start.elapsed().as_secs_f64();
        let guard = runtime.block_on(async { guard.watch(daemon.address, interval, true) });
        runtime.block_on(daemon_list::ready(&daemon))?;
        let asked = Took {
            wall: start.elapsed().as_secs_f64(),
            busy: daemon.child.cpu()?,
        };
        first.ours.push(asked);
        println!(
            "sweep of {}: {:.2} s (listening after {listening:.2} s), processor {:.2} s; the loop {:.2} s, {:.2} s; its sweep of 304s {:.2} s, {:.2} s",
            plan.fleet,
            asked.wall,
            asked.busy,
            first.theirs[round].wall,
            first.theirs[round].busy,
            confirmed.wall,
            confirmed.busy,
        );
        if round + 1 == rounds {
            steady = Some(quiet(&runtime, plan, &daemon, interval)?);
        }
        runtime.block_on(async {
            guard.listed().await?;
            guard.end().await?;
            let list =
                daemon_list::whole(&daemon, plan.fleet * TOOLS + TruthGuard::tools()).await?;
            list_check::check(&list.body, 0..plan.fleet, TOOLS, |_| 0)
        })?;
    }
    #[expect(clippy::cast_precision_loss, reason = "some hundred megabytes")]
    let label = format!(
        "{} scenarios of {TOOLS} tools ({:.0} MB)",
        plan.fleet,
        bytes as f64 / 1e6
    );
    let mut rows = Vec::from(first.rows(
        "sweep.first",
        &format!("{label}, first sweep from process start"),
    ));
    if let Some((steady, confirmed)) = steady {
        // Asks that are forced are unconditional, so only those that are due are answered by 304.
        let name = format!(
            "{label}, asked again as they are due and all answered by 304: processor time of each"
        );
        let theirs = median(&again);
        let row = Row::new("sweep.again", name, confirmed, "us")
            .against("bare reqwest loop, all at once", theirs);
        rows.extend([row, steady]);
    }
    Ok(rows)
}

impl SweepTimes {
    fn rows(&self, id: &str, name: &str) -> [Row; 2] {
        let row = |what: &str, label: &str, of: fn(&Took) -> f64| {
            let [ours, theirs] =
                [&self.ours, &self.theirs].map(|took| took.iter().map(of).collect::<Vec<_>>());
            Row::new(
                format!("{id}.{what}"),
                format!("{name}: {label}"),
                median(&ours),
                "s",
            )
            .against("bare reqwest loop", median(&theirs))
            .ratios(&ours, &theirs)
        };
        [
            row("wall", "time", |took| took.wall),
            row("busy", "processor time", |took| took.busy),
        ]
    }
}

/// Microseconds of each of so many asks.
#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn each(seconds: f64, asks: usize) -> f64 {
    seconds * 1e6 / asks as f64
}

/// What a fleet costs in which nothing happens, and each of its asks.
fn quiet(
    runtime: &Runtime,
    plan: &Plan,
    daemon: &Daemon,
    interval: Duration,
) -> Result<(Row, f64)> {
    std::thread::sleep(SETTLED);
    let counted = || runtime.block_on(daemon_list::metric(daemon, "callsheet_listings_total"));
    let asks = counted()?;
    let busy = daemon.child.cpu()?;
    std::thread::sleep(plan.steady);
    let asks = counted()? - asks;
    let busy = daemon.child.cpu()? - busy;
    let percent = 100.0 * busy / plan.steady.as_secs_f64();
    let span = plan.steady.as_secs();
    let interval = interval.as_secs();
    println!("quiet for {span} s: {asks} asks, {percent:.1} % of a core");
    let name = format!(
        "{} scenarios asked every {interval} s, over {span} s: share of a core",
        plan.fleet
    );
    let row = Row::new("sweep.steady", name, percent, "%").note(format!("{asks} asks"));
    ensure!(asks > 0.0, "nobody was asked");
    Ok((row, busy * 1e6 / asks))
}
