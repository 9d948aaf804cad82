//! What the daemon holds in memory: with nothing to do, with a large fleet, with its list asked for, and after many changes.

use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::runtime::Clock;
use tokio::runtime::Runtime;

use crate::child::Daemon;
use crate::guard::Guard;
use crate::manifests::{self, TOOLS};
use crate::plan::Plan;
use crate::report::{Row, median};
use crate::scenarios::Scenarios;
use crate::{fleet, raw, truth};

/// What was needed to get somewhere may take a moment to be given back, and what is stored is written behind.
const SETTLED: Duration = Duration::from_secs(3);
const SETTINGS: &str = "refresh.forced_gap = \"1ms\"\n";
/// Changes come this far apart, in parts of the churn.
const APART: Duration = Duration::from_millis(20);

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let runtime = Runtime::new()?;
    let idle = Daemon::start(None, &[], "1s", "")?;
    runtime.block_on(fleet::ready(&idle))?;
    std::thread::sleep(SETTLED);
    let alone = idle.child.memory("VmRSS")?;
    drop(idle);
    println!("without scenarios {alone:.1} MB");
    let mut rows = vec![Row::new("memory.idle", "resident memory without scenarios", alone, "MB").at_most(15.0)];

    let scenarios = Scenarios::start(plan.fleet, Duration::ZERO)?;
    let guard = runtime.block_on(Guard::start())?;
    let daemon = Daemon::start(None, &guard.beside(scenarios.named()), "120s", SETTINGS)?;
    let guard = runtime.block_on(async { guard.watch(daemon.address, Duration::from_secs(60), false) });
    runtime.block_on(fleet::ready(&daemon))?;
    std::thread::sleep(SETTLED);
    let (swept, peak) = (daemon.child.memory("VmRSS")?, daemon.child.memory("VmHWM")?);
    let bytes: usize = (0..plan.fleet).map(|at| manifests::manifest(at, 0).len()).sum();
    let tools = plan.fleet * TOOLS + Guard::tools();
    let list = runtime.block_on(fleet::whole(&daemon, tools))?;
    truth::check(&list.body, 0..plan.fleet, TOOLS, |_| 0)?;
    let body = list.body.len();
    drop(list);
    std::thread::sleep(SETTLED);
    let (listed, highest) = (daemon.child.memory("VmRSS")?, daemon.child.memory("VmHWM")?);
    #[expect(clippy::cast_precision_loss, reason = "some hundred megabytes")]
    let (megabytes, body) = (bytes as f64 / 1e6, body as f64 / 1e6);
    println!(
        "{} scenarios, {megabytes:.0} MB of manifests: {swept:.0} MB (peak {peak:.0} MB), with the list ({body:.0} MB) asked for \
         {listed:.0} MB (peak {highest:.0} MB)",
        plan.fleet
    );
    let bound = 1.3 * megabytes + 20.0;
    let against = format!("1.3 x {megabytes:.0} MB of manifests + 20 MB");
    let told = format!("resident memory with {} scenarios of {TOOLS} tools", plan.fleet);
    let row = |id: &str, more: &str, ours: f64, peak: f64| {
        let row = Row::new(format!("memory.{id}"), format!("{told}{more}"), ours, "MB").against(&against, bound);
        row.at_most(1.0).note(format!("peak {peak:.0} MB"))
    };
    rows.push(row("swept", ", after the first sweep", swept, peak));
    rows.push(row("listed", &format!(", after the whole list ({body:.0} MB) was asked for"), listed, highest));
    let (early, late, changes) = runtime.block_on(churn(plan, &scenarios, &daemon))?;
    let minutes = plan.churn.as_secs_f64() / 60.0;
    println!("{changes} changes in {minutes:.1} minutes: {early:.0} MB, then {late:.0} MB");
    let name = format!("the same over {minutes:.1} minutes in which {changes} scenarios change");
    rows.push(Row::new("memory.churn", name, late, "MB").against("after a fifth of them", early).at_most(1.05));
    runtime.block_on(guard.end())?;
    Ok(rows)
}

/// Changes scenarios for a while: memory after a fifth of it and at its end, and how many changed.
async fn churn(plan: &Plan, scenarios: &Scenarios, daemon: &Daemon) -> Result<(f64, f64, usize)> {
    let clock = Clock::system();
    let (start, mut changes, mut next) = (clock.now(), 0, 0);
    let mut uses = Vec::new();
    while start.elapsed() < plan.churn {
        scenarios.change(next).await?;
        let path = format!("/api/v1/scenarios/{}/refresh", manifests::name(next));
        let asked = raw::once(daemon.address, "POST", &path).await?;
        ensure!(asked.status == 200, "{}", asked.status);
        uses.push((start.elapsed(), daemon.child.memory("VmRSS")?));
        // Far from the last one, and all of them before one comes again.
        next = (next + 7_919) % plan.fleet;
        changes += 1;
        clock.sleep(APART).await;
    }
    let within = |from: Duration, to: Duration| {
        let seen = uses.iter().filter(|(at, _)| (from..=to).contains(at));
        median(&seen.map(|(_, memory)| *memory).collect::<Vec<_>>())
    };
    let fifth = plan.churn / 5;
    Ok((within(fifth, fifth * 3 / 2), within(fifth * 9 / 2, plan.churn), changes))
}
