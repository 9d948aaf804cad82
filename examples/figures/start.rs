//! How soon after a kill the last good list is answered again, with nobody there to ask.

use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::runtime::Clock;

use crate::child::Daemon;
use crate::manifests::TOOLS;
use crate::plan::Plan;
use crate::report::{Row, median};
use crate::scenarios::Scenarios;
use crate::{fleet, raw, truth};

/// What was answered last is stored behind the answers; nothing comes any more when the files did not grow for so long.
const STORED: Duration = Duration::from_secs(3);
/// Scenarios, and the milliseconds within which their list is to be there.
const SMALL: (usize, f64) = (50, 20.0);
const LARGE: (usize, f64) = (10_000, 200.0);

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let mut rows = measure(plan, SMALL.0, Some(SMALL.1))?;
    rows.extend(measure(plan, plan.fleet, (plan.fleet == LARGE.0).then_some(LARGE.1))?);
    Ok(rows)
}

fn measure(plan: &Plan, count: usize, most: Option<f64>) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let clock = Clock::system();
    let (scenarios, tools) = (Scenarios::start(count, Duration::ZERO)?, count * TOOLS);
    let mut daemon = Daemon::start(None, &scenarios.named(), "120s", "")?;
    runtime.block_on(fleet::ready(&daemon))?;
    let mut size = 0;
    while size != daemon.stored()? {
        size = daemon.stored()?;
        std::thread::sleep(STORED);
    }
    let wanted = runtime.block_on(fleet::whole(&daemon, tools))?.body;
    // From here on the list can only be what was stored.
    scenarios.freeze()?;
    let (mut listening, mut first, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..plan.rounds() {
        daemon.kill()?;
        let start = clock.now();
        daemon.again()?;
        listening.push(start.elapsed().as_secs_f64() * 1e3);
        let (mut connection, begun) = runtime.block_on(fleet::begun(&daemon, tools))?;
        first.push(start.elapsed().as_secs_f64() * 1e3);
        let body = runtime.block_on(connection.rest(begun))?.body;
        whole.push(start.elapsed().as_secs_f64() * 1e3);
        // It is compared in the end, and once with what the scenarios said themselves.
        ensure!(body == wanted, "another list than before the kill");
        if round == 0 {
            truth::check(&body, 0..count, TOOLS, |_| 0)?;
        }
        let health = runtime.block_on(raw::once(daemon.address, "GET", "/healthz"))?;
        ensure!(health.status == 200, "{}", health.status);
    }
    let (listening, first, whole) = (median(&listening), median(&first), median(&whole));
    println!(
        "{tools} tools after a kill: listening {listening:.1} ms, first byte of the list {first:.1} ms, the whole {whole:.1} ms"
    );
    let told = format!("{tools} tools, from process start after a kill to");
    let row = Row::new(format!("start.{tools}.first"), format!("{told} the first answered list"), first, "ms");
    let row = row.note(format!("listening after {listening:.1} ms"));
    #[expect(clippy::cast_precision_loss, reason = "some hundred megabytes")]
    let megabytes = wanted.len() as f64 / 1e6;
    Ok(vec![
        if let Some(most) = most { row.at_most(most) } else { row },
        Row::new(
            format!("start.{tools}.whole"),
            format!("{told} the last byte of the list ({megabytes:.1} MB)"),
            whole,
            "ms",
        ),
    ])
}
