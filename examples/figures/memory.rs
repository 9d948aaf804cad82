//! What the daemon holds in memory: with nothing to do, with a large fleet, with its list asked
//! for, and after many changes.

use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::runtime::Clock;
use tokio::runtime::Runtime;

use crate::child_process::Daemon;
use crate::manifests::{self, TOOLS};
use crate::plan::Plan;
use crate::report::{Row, median};
use crate::scenarios::Scenarios;
use crate::truth_guard::TruthGuard;
use crate::{daemon_list, list_check, raw_http};

/// What was needed to get somewhere may take a moment to be given back, and what is stored is
/// written behind.
const SETTLED: Duration = Duration::from_secs(3);
const SETTINGS: &str = "refresh.forced_gap = \"1ms\"\n";
/// Changes come this far apart, in parts of the churn.
const APART: Duration = Duration::from_millis(20);
/// Megabytes that the daemon may take beside what it keeps of the manifests.
const BASE: f64 = 30.0;
/// Sizes of fleets, in scenarios.
const SIZES: [(usize, Bounds); 2] = [
    (50, Bounds::Megabytes(45.0)),
    (1_000, Bounds::Manifests(2.0, 3.0)),
];

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let runtime = Runtime::new()?;
    let idle = Daemon::start(None, &[], "1s", "")?;
    runtime.block_on(daemon_list::ready(&idle))?;
    std::thread::sleep(SETTLED);
    let alone = idle.child.memory("VmRSS")?;
    drop(idle);
    println!("without scenarios {alone:.1} MB");
    let mut rows = vec![
        Row::new(
            "memory.idle",
            "resident memory without scenarios",
            alone,
            "MB",
        )
        .at_most(20.0),
    ];

    for (count, bounds) in SIZES {
        rows.extend(measure(&runtime, plan, count, bounds)?);
    }
    if !plan.quick {
        rows.extend(measure(&runtime, plan, plan.fleet, Bounds::None)?);
    }
    Ok(rows)
}

/// What is wanted of a fleet's memory.
#[derive(Clone, Copy)]
enum Bounds {
    /// So many megabytes after the first sweep.
    Megabytes(f64),
    /// So many times the bytes of the manifests, and [`BASE`], after the first sweep and after the
    /// list was requested.
    Manifests(f64, f64),
    /// No goal, and no changes are made.
    None,
}

fn measure(runtime: &Runtime, plan: &Plan, count: usize, bounds: Bounds) -> Result<Vec<Row>> {
    let scenarios = Scenarios::start(count, Duration::ZERO)?;
    let guard = runtime.block_on(TruthGuard::start())?;
    let daemon = Daemon::start(None, &guard.beside(scenarios.named()), "120s", SETTINGS)?;
    let guard =
        runtime.block_on(async { guard.watch(daemon.address, Duration::from_secs(60), false) });
    runtime.block_on(daemon_list::ready(&daemon))?;
    std::thread::sleep(SETTLED);
    let swept = daemon.child.memory("VmRSS")?;
    let peak = daemon.child.memory("VmHWM")?;
    let bytes: usize = (0..count).map(|at| manifests::manifest(at, 0).len()).sum();
    let list = runtime.block_on(daemon_list::whole(
        &daemon,
        count * TOOLS + TruthGuard::tools(),
    ))?;
    list_check::check(&list.body, 0..count, TOOLS, |_| 0)?;
    let body = list.body.len();
    drop(list);
    std::thread::sleep(SETTLED);
    let listed = daemon.child.memory("VmRSS")?;
    let highest = daemon.child.memory("VmHWM")?;
    #[expect(clippy::cast_precision_loss, reason = "some hundred megabytes")]
    let megabytes = bytes as f64 / 1e6;
    #[expect(clippy::cast_precision_loss, reason = "some hundred megabytes")]
    let body = body as f64 / 1e6;
    println!(
        "{count} scenarios, {megabytes:.1} MB of manifests: {swept:.1} MB (peak {peak:.1} MB), with the list ({body:.1} MB) requested \
         {listed:.1} MB (peak {highest:.1} MB)"
    );
    let name = format!(
        "resident memory with {} tools of {count} scenarios",
        count * TOOLS
    );
    let row = |id: &str, more: &str, ours: f64, peak: f64| {
        Row::new(
            format!("memory.{count}.{id}"),
            format!("{name}{more}"),
            ours,
            "MB",
        )
        .note(format!("peak {peak:.0} MB"))
    };
    let after_list = format!(", after the whole list ({body:.1} MB) was requested");
    let rows = [
        row("swept", ", after the first sweep", swept, peak),
        row("listed", &after_list, listed, highest),
    ];
    let of_manifests = |row: Row, times: f64| {
        let against = format!("{times} x {megabytes:.1} MB of manifests + {BASE} MB");
        row.against(against, times * megabytes + BASE).at_most(1.0)
    };
    let [swept, listed] = rows;
    let mut rows = match bounds {
        Bounds::Megabytes(most) => vec![swept.at_most(most), listed],
        Bounds::Manifests(first, second) => {
            vec![of_manifests(swept, first), of_manifests(listed, second)]
        }
        Bounds::None => vec![swept, listed],
    };
    if let Bounds::Manifests(..) = bounds {
        rows.push(changed(runtime, plan, &scenarios, &daemon)?);
    }
    runtime.block_on(guard.end())?;
    Ok(rows)
}

/// What many changes leave behind.
fn changed(runtime: &Runtime, plan: &Plan, scenarios: &Scenarios, daemon: &Daemon) -> Result<Row> {
    let (early, late, changes) = runtime.block_on(churn(plan, scenarios, daemon))?;
    let minutes = plan.churn.as_secs_f64() / 60.0;
    println!("{changes} changes in {minutes:.1} minutes: {early:.0} MB, then {late:.0} MB");
    let name = format!("the same over {minutes:.1} minutes in which {changes} scenarios change");
    Ok(Row::new("memory.churn", name, late, "MB")
        .against("after a fifth of them", early)
        .at_most(1.05))
}

/// Changes scenarios for a while: memory after a fifth of it and at its end, and how many changed.
async fn churn(plan: &Plan, scenarios: &Scenarios, daemon: &Daemon) -> Result<(f64, f64, usize)> {
    let clock = Clock::system();
    let start = clock.now();
    let mut changes = 0;
    let mut next = 0;
    let mut uses = Vec::new();
    while start.elapsed() < plan.churn {
        scenarios.change(next).await?;
        let path = format!("/api/v1/scenarios/{}/refresh", manifests::name(next));
        let asked = raw_http::once(daemon.address, "POST", &path).await?;
        ensure!(asked.status == 200, "{}", asked.status);
        uses.push((start.elapsed(), daemon.child.memory("VmRSS")?));
        // Far from the last one, and all of them before one comes again.
        next = (next + 7_919) % scenarios.addresses.len();
        changes += 1;
        clock.sleep(APART).await;
    }
    let within = |from: Duration, to: Duration| {
        let seen = uses.iter().filter(|(at, _)| (from..=to).contains(at));
        median(&seen.map(|(_, memory)| *memory).collect::<Vec<_>>())
    };
    let fifth = plan.churn / 5;
    Ok((
        within(fifth, fifth * 3 / 2),
        within(fifth * 9 / 2, plan.churn),
        changes,
    ))
}
