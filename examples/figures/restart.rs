//! How soon after a kill the last good list is served again, with nobody there to ask.

use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::runtime::Clock;

use crate::child::Daemon;
use crate::fleet::{self, SCENARIOS};
use crate::manifests::TOOLS;
use crate::raw;
use crate::report::{Demand, Row, median};
use crate::scenarios::Scenarios;

const ROUNDS: usize = 7;
/// What was answered last is stored behind the answers, within a second.
const STORED: Duration = Duration::from_secs(3);

pub(crate) fn run() -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let clock = Clock::system();
    let scenarios = Scenarios::start(SCENARIOS, Duration::ZERO)?;
    let mut daemon = Daemon::start(None, &scenarios.addresses, "60s")?;
    runtime.block_on(async {
        fleet::ready(&daemon).await?;
        fleet::whole(&daemon).await?;
        clock.sleep(STORED).await;
        Ok::<_, anyhow::Error>(())
    })?;
    // From here on the list can only be what was stored.
    drop(scenarios);
    let (mut published, mut listed) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        daemon.kill()?;
        let start = clock.now();
        daemon.again()?;
        published.push(start.elapsed().as_secs_f64() * 1e3);
        runtime.block_on(fleet::whole(&daemon))?;
        listed.push(start.elapsed().as_secs_f64() * 1e3);
        let health = runtime.block_on(raw::once(daemon.address, "GET", "/healthz"))?;
        ensure!(health.status == 200, "{}", health.status);
    }
    let (published, listed) = (median(&published), median(&listed));
    println!("after a kill the list is published after {published:.1} ms, and with a client after {listed:.1} ms");
    Ok(vec![
        Row {
            figure: format!("{SCENARIOS} scenarios of {TOOLS} tools: from starting after a kill to the published list"),
            ours: format!("{published:.0} ms"),
            theirs: "-".into(),
            value: published,
            demand: Some(Demand::AtMost(100.0, " ms")),
        },
        Row {
            figure: "the same: until a client has the whole list".into(),
            ours: format!("{listed:.0} ms"),
            theirs: "-".into(),
            value: 0.0,
            demand: None,
        },
    ])
}
