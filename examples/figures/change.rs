//! How soon a change of one scenario is in the list, in a small and in a large catalog.

use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::runtime::Clock;

use crate::child::Daemon;
use crate::fleet::{self, SCENARIOS};
use crate::manifests::{self, TOOLS};
use crate::raw;
use crate::report::{Row, median};
use crate::scenarios::Scenarios;

const CHANGES: usize = 21;

pub(crate) fn run() -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let scenarios = Scenarios::start(SCENARIOS, Duration::ZERO)?;
    let daemon = Daemon::start(None, &scenarios.addresses, "60s")?;
    let (mut published, mut listed) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        fleet::ready(&daemon).await?;
        fleet::whole(&daemon).await?;
        let clock = Clock::system();
        // A scenario is asked again a second after its last ask at the earliest.
        clock.sleep(Duration::from_secs(3)).await;
        for at in (0..SCENARIOS).step_by(SCENARIOS / CHANGES).take(CHANGES) {
            let name = manifests::name(at);
            scenarios.change(at).await?;
            let before = raw::once(daemon.address, "GET", &format!("/api/v1/tools?scenario={name}")).await?;
            let start = clock.now();
            let done = raw::once(daemon.address, "POST", &format!("/api/v1/scenarios/{name}/refresh")).await?;
            ensure!(done.status == 200, "{}", done.status);
            published.push(start.elapsed().as_secs_f64() * 1e3);
            fleet::whole(&daemon).await?;
            listed.push(start.elapsed().as_secs_f64() * 1e3);
            let after = raw::once(daemon.address, "GET", &format!("/api/v1/tools?scenario={name}")).await?;
            ensure!(before.header("etag") != after.header("etag"), "nothing changed");
        }
        Ok(())
    })?;
    let (published, listed) = (median(&published), median(&listed));
    println!(
        "a change is published after {published:.2} ms, fetch included; the whole list is there after {listed:.1} ms"
    );
    let row = |figure: &str, ours| Row {
        figure: format!("one of {SCENARIOS} scenarios of {TOOLS} tools changes: {figure}"),
        ours,
        theirs: "-".into(),
        value: 0.0,
        demand: None,
    };
    Ok(vec![
        row("from asking it to the new catalog", format!("{published:.2} ms")),
        row("until a client has the whole new list", format!("{listed:.0} ms")),
    ])
}
