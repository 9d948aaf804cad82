//! How soon after a kill the last good list is answered again while no scenario answers: it is
//! merged anew from what is stored.

use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::runtime::Clock;
use tokio::runtime::Runtime;

use crate::child_process::Daemon;
use crate::manifests::TOOLS;
use crate::plan::Plan;
use crate::report::{Row, median};
use crate::scenarios::Scenarios;
use crate::{daemon_list, list_check, raw_http};

/// What was answered last is stored behind the answers; nothing comes any more when the files did
/// not grow for so long.
const STORED: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(120);
/// Scenarios, and the milliseconds within which their list is to be there.
const BOUNDS: [(usize, f64); 2] = [(50, 60.0), (1_000, 600.0)];

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (count, most) in BOUNDS {
        rows.extend(measure(plan, count, Some(most))?);
    }
    if BOUNDS.iter().all(|(count, _)| *count != plan.fleet) {
        rows.extend(measure(plan, plan.fleet, None)?);
    }
    Ok(rows)
}

/// What is looked at after each start.
#[derive(Default)]
struct StartTimes {
    listening: Vec<f64>,
    first: Vec<f64>,
    whole: Vec<f64>,
}

fn measure(plan: &Plan, count: usize, most: Option<f64>) -> Result<Vec<Row>> {
    let runtime = Runtime::new()?;
    let scenarios = Scenarios::start(count, Duration::ZERO)?;
    let tools = count * TOOLS;
    let mut daemon = Daemon::start(None, &scenarios.named(), "120s", "")?;
    runtime.block_on(daemon_list::ready(&daemon))?;
    let wanted = runtime.block_on(daemon_list::whole(&daemon, tools))?.body;
    list_check::check(&wanted, 0..count, TOOLS, |_| 0)?;
    stored(&daemon)?;
    // From here on the list can only be what was stored.
    scenarios.freeze()?;
    let mut rounds = StartTimes::default();
    for _ in 0..plan.rounds() {
        daemon.kill()?;
        rounds.start(&runtime, &mut daemon, tools, &wanted)?;
    }
    let label = format!("{tools} tools, from process start after a kill to");
    #[expect(clippy::cast_precision_loss, reason = "some hundred megabytes")]
    let megabytes = wanted.len() as f64 / 1e6;
    let first = rounds.row(
        format!("start.{tools}.first"),
        format!("{label} the first answered list"),
    );
    let last = format!("{label} the last byte of the list ({megabytes:.1} MB)");
    Ok(vec![
        if let Some(most) = most {
            first.at_most(most)
        } else {
            first
        },
        Row::new(
            format!("start.{tools}.whole"),
            last,
            median(&rounds.whole),
            "ms",
        ),
    ])
}

/// Waits until everything is stored.
fn stored(daemon: &Daemon) -> Result<()> {
    let end = Clock::system().now() + PATIENCE;
    let mut size = None;
    while size != Some(daemon.stored()?) {
        ensure!(
            Clock::system().now() < end,
            "the files still grow after {PATIENCE:?}"
        );
        size = Some(daemon.stored()?);
        std::thread::sleep(STORED);
    }
    Ok(())
}

impl StartTimes {
    /// Starts the daemon once more; its list must be the one it had.
    fn start(
        &mut self,
        runtime: &Runtime,
        daemon: &mut Daemon,
        tools: usize,
        wanted: &[u8],
    ) -> Result<()> {
        let start = Clock::system().now();
        let taken = || start.elapsed().as_secs_f64() * 1e3;
        daemon.again()?;
        self.listening.push(taken());
        let (mut connection, begun) = runtime.block_on(daemon_list::begun(daemon, tools))?;
        self.first.push(taken());
        let body = runtime.block_on(connection.rest(begun))?.body;
        self.whole.push(taken());
        ensure!(body == wanted, "another list than before the kill");
        let health = runtime.block_on(raw_http::once(daemon.address, "GET", "/healthz"))?;
        ensure!(health.status == 200, "{}", health.status);
        Ok(())
    }

    fn row(&self, id: String, label: String) -> Row {
        let [listening, first, whole] =
            [&self.listening, &self.first, &self.whole].map(|times| median(times));
        println!(
            "{id}: listening {listening:.1} ms, first byte of the list {first:.1} ms, the whole {whole:.1} ms"
        );
        Row::new(id, label, first, "ms").note(format!("listening after {listening:.1} ms"))
    }
}
