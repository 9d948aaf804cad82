//! How soon after a kill the last good list is answered again, with nobody there to ask: one that was asked for before the kill, which is kept
//! as it was sent, and one that nobody had asked for, which is merged anew from what the store has.

use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::runtime::Clock;
use tokio::runtime::Runtime;

use crate::child::Daemon;
use crate::manifests::TOOLS;
use crate::plan::Plan;
use crate::report::{Row, median};
use crate::scenarios::Scenarios;
use crate::{fleet, raw, truth};

/// What was answered last is stored behind the answers; nothing comes any more when the files did not grow for so long.
const STORED: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(120);
/// Scenarios, and the milliseconds within which their list is to be there.
const SMALL: (usize, f64) = (50, 20.0);
const LARGE: (usize, f64) = (10_000, 200.0);

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let mut rows = measure(plan, SMALL.0, Some(SMALL.1))?;
    rows.extend(measure(plan, plan.fleet, (plan.fleet == LARGE.0).then_some(LARGE.1))?);
    Ok(rows)
}

/// What is looked at after each start.
#[derive(Default)]
struct Rounds {
    listening: Vec<f64>,
    first: Vec<f64>,
    whole: Vec<f64>,
}

fn measure(plan: &Plan, count: usize, most: Option<f64>) -> Result<Vec<Row>> {
    let runtime = Runtime::new()?;
    let (scenarios, tools) = (Scenarios::start(count, Duration::ZERO)?, count * TOOLS);
    let mut daemon = Daemon::start(None, &scenarios.named(), "120s", "")?;
    runtime.block_on(fleet::ready(&daemon))?;
    let wanted = runtime.block_on(fleet::whole(&daemon, tools))?.body;
    truth::check(&wanted, 0..count, TOOLS, |_| 0)?;
    stored(&daemon)?;
    // From here on the list can only be what was stored.
    scenarios.freeze()?;
    let (mut again, mut anew) = (Rounds::default(), Rounds::default());
    for _ in 0..plan.rounds() {
        daemon.kill()?;
        again.start(&runtime, &mut daemon, tools, &wanted)?;
    }
    for _ in 0..plan.rounds() {
        daemon.kill()?;
        daemon.forget_lists()?;
        anew.start(&runtime, &mut daemon, tools, &wanted)?;
    }
    let told = format!("{tools} tools, from process start after a kill to");
    #[expect(clippy::cast_precision_loss, reason = "some hundred megabytes")]
    let megabytes = wanted.len() as f64 / 1e6;
    let first = again.row(format!("start.{tools}.first"), format!("{told} the first answered list"), &again.first);
    let last = format!("{told} the last byte of the list ({megabytes:.1} MB)");
    let merged = format!("{told} the first list, when nobody had asked for it before");
    Ok(vec![
        if let Some(most) = most { first.at_most(most) } else { first },
        Row::new(format!("start.{tools}.whole"), last, median(&again.whole), "ms"),
        anew.row(format!("start.{tools}.anew"), merged, &anew.first),
    ])
}

/// Waits until everything is stored, the list that was asked for too.
fn stored(daemon: &Daemon) -> Result<()> {
    let end = Clock::system().now() + PATIENCE;
    let mut size = None;
    while !daemon.keeps_lists() || size != Some(daemon.stored()?) {
        ensure!(Clock::system().now() < end, "the list is not kept after {PATIENCE:?}");
        size = Some(daemon.stored()?);
        std::thread::sleep(STORED);
    }
    Ok(())
}

impl Rounds {
    /// Starts the daemon once more; its list must be the one it had.
    fn start(&mut self, runtime: &Runtime, daemon: &mut Daemon, tools: usize, wanted: &[u8]) -> Result<()> {
        let start = Clock::system().now();
        let taken = || start.elapsed().as_secs_f64() * 1e3;
        daemon.again()?;
        self.listening.push(taken());
        let (mut connection, begun) = runtime.block_on(fleet::begun(daemon, tools))?;
        self.first.push(taken());
        let body = runtime.block_on(connection.rest(begun))?.body;
        self.whole.push(taken());
        ensure!(body == wanted, "another list than before the kill");
        let health = runtime.block_on(raw::once(daemon.address, "GET", "/healthz"))?;
        ensure!(health.status == 200, "{}", health.status);
        Ok(())
    }

    fn row(&self, id: String, told: String, times: &[f64]) -> Row {
        let [listening, whole] = [&self.listening, &self.whole].map(|times| median(times));
        println!(
            "{id}: listening {listening:.1} ms, first byte of the list {:.1} ms, the whole {whole:.1} ms",
            median(times)
        );
        Row::new(id, told, median(times), "ms").note(format!("listening after {listening:.1} ms"))
    }
}
