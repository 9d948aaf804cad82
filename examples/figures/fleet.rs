//! A thousand scenarios: how long until the whole list is there, and what it costs in memory.

use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::runtime::Clock;

use crate::child::Daemon;
use crate::manifests::TOOLS;
use crate::raw::{self, Answer};
use crate::report::{Demand, Row, median};
use crate::scenarios::Scenarios;
use crate::sweep;

pub(crate) const SCENARIOS: usize = 1_000;
const PATH: &str = "/api/v1/tools";
const ROUNDS: usize = 5;

pub(crate) fn run() -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let clock = Clock::system();
    let scenarios = Scenarios::start(SCENARIOS, Duration::ZERO)?;
    let bytes = sweep::fetch(&scenarios.addresses)?;
    let (mut ours, mut theirs, mut memory, mut peak) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = clock.now();
        ensure!(sweep::fetch(&scenarios.addresses)? == bytes, "not the same bytes");
        theirs.push(start.elapsed().as_secs_f64());

        let start = clock.now();
        let daemon = Daemon::start(None, &scenarios.addresses, "60s")?;
        let listening = start.elapsed().as_secs_f64();
        runtime.block_on(ready(&daemon))?;
        let answered = start.elapsed().as_secs_f64();
        let list = runtime.block_on(whole(&daemon))?;
        ours.push(start.elapsed().as_secs_f64());
        // What was needed to get there may take a moment to be given back, and what is stored is written behind.
        std::thread::sleep(Duration::from_secs(2));
        memory.push(daemon.child.memory("VmRSS")?);
        peak.push(daemon.child.memory("VmHWM")?);
        println!(
            "listening after {listening:.3} s, all asked {answered:.3} s, list of {} bytes {:.3} s, bare loop {:.3} s; memory {:.0} MB, peak {:.0} MB",
            list.body.len(),
            ours[ours.len() - 1],
            theirs[theirs.len() - 1],
            memory[memory.len() - 1],
            peak[peak.len() - 1],
        );
    }
    let (ours, theirs, memory, peak) = (median(&ours), median(&theirs), median(&memory), median(&peak));
    #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
    let megabytes = bytes as f64 / 1e6;
    let bound = 3.0 * megabytes + 30.0;
    Ok(vec![
        Row {
            figure: format!(
                "{SCENARIOS} scenarios of {TOOLS} tools ({megabytes:.1} MB): from start to the first whole list"
            ),
            ours: format!("{ours:.2} s"),
            theirs: format!("bare reqwest loop: {theirs:.2} s"),
            value: ours / theirs,
            demand: Some(Demand::AtMost(1.5, "")),
        },
        Row {
            figure: "the same: resident memory after it".into(),
            ours: format!("{memory:.0} MB (peak {peak:.0} MB)"),
            theirs: format!("3 x {megabytes:.1} MB + 30 MB = {bound:.0} MB"),
            value: memory / bound,
            demand: Some(Demand::AtMost(1.0, "")),
        },
    ])
}

/// Waits until the daemon is ready.
pub(crate) async fn ready(daemon: &Daemon) -> Result<()> {
    let clock = Clock::system();
    let end = clock.now() + Duration::from_secs(60);
    while raw::once(daemon.address, "GET", "/readyz").await?.status != 200 {
        ensure!(clock.now() < end, "the daemon is not ready after a minute");
        clock.sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// The list, which must have the tools of every scenario.
pub(crate) async fn whole(daemon: &Daemon) -> Result<Answer> {
    let list = raw::once(daemon.address, "GET", PATH).await?;
    let tools = list.header("callsheet-tools").unwrap_or_default();
    ensure!(tools == (SCENARIOS * TOOLS).to_string(), "{tools} tools when ready");
    Ok(list)
}
