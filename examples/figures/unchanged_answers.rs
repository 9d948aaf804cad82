//! What a change costs that is none: real servers write the same tools in another order and with
//! another time stamp on every request.

use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::model::AcceptedVersions;
use callsheet::protocols::tool_discovery::decode;
use callsheet::runtime::{Clock, Tasks};

use crate::changing_scenario::ChangingScenario;
use crate::child_process::Daemon;
use crate::manifests::{self, TOOLS};
use crate::plan::Plan;
use crate::report::{Row, median};
use crate::truth_guard::TruthGuard;
use crate::{daemon_list, raw_http};

const MOVERS: usize = 50;
const SETTINGS: &str = "refresh.forced_gap = \"1ms\"\n";

/// What the scenarios do between two asks.
#[derive(Clone, Copy, PartialEq)]
enum ScenarioAction {
    Nothing,
    SayAgain,
    Change,
}

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let asks = plan.pick(20, 60);
    let [nothing, again, change] = runtime.block_on(measure(plan.rounds(), asks))?;
    let decoding = decoding()?;
    println!(
        "processor time of the daemon for an ask: the same bytes {nothing:.0} us, reordered and restamped {again:.0} us, changed {change:.0} us; \
         decoding with its digest alone {decoding:.0} us"
    );
    Ok(vec![
        Row::new(
            "same.again",
            "a manifest reordered and restamped: processor time of its ask; the revision stays",
            again,
            "us",
        )
        .against(
            "an ask for the same bytes, and decoding alone",
            nothing + decoding,
        )
        .at_most(1.1)
        .note(format!("decoding alone {decoding:.0} us")),
        Row::new("same.change", "the same of one that changes", change, "us"),
    ])
}

/// Microseconds of the daemon's processor time for each ask, by what the scenario does.
async fn measure(rounds: usize, asks: usize) -> Result<[f64; 3]> {
    let tasks = Tasks::new();
    let movers = ChangingScenario::start(0, MOVERS, &tasks).await?;
    let guard = TruthGuard::start().await?;
    let named = movers
        .iter()
        .map(|mover| (mover.name(), mover.address))
        .collect();
    let daemon = Daemon::start(None, &guard.beside(named), "60s", SETTINGS)?;
    daemon_list::ready(&daemon).await?;
    let guard = guard.watch(daemon.address, Duration::from_secs(60), false);
    let tools = MOVERS * TOOLS + TruthGuard::tools();
    let mut busy = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (busy, turn) in busy.iter_mut().zip([
            ScenarioAction::Nothing,
            ScenarioAction::SayAgain,
            ScenarioAction::Change,
        ]) {
            let before = daemon_list::whole(&daemon, tools).await?;
            let spent = daemon.child.cpu()?;
            for ask in 0..asks {
                for mover in &movers {
                    match turn {
                        ScenarioAction::Nothing => {}
                        ScenarioAction::SayAgain => mover.say_again(1 + round * asks + ask),
                        ScenarioAction::Change => mover.change(),
                    }
                    let path = format!("/api/v1/scenarios/{}/refresh", mover.name());
                    let asked = raw_http::once(daemon.address, "POST", &path).await?;
                    ensure!(asked.status == 200, "{}", asked.status);
                }
            }
            #[expect(clippy::cast_precision_loss, reason = "some thousands")]
            busy.push((daemon.child.cpu()? - spent) * 1e6 / (asks * MOVERS) as f64);
            let after = daemon_list::whole(&daemon, tools).await?;
            let kept = after.body == before.body;
            let wanted = turn != ScenarioAction::Change;
            ensure!(
                kept == wanted,
                "the list is {} where it should not be",
                if kept { "the same" } else { "another" }
            );
        }
    }
    guard.end().await?;
    Ok(busy.map(|busy| median(&busy)))
}

/// Microseconds to decode one manifest, its digest included.
fn decoding() -> Result<f64> {
    let clock = Clock::system();
    let manifests: Vec<String> = (0..MOVERS)
        .map(|at| manifests::reordered(at, 0, at))
        .collect();
    let mut times = Vec::new();
    for _ in 0..40 {
        for manifest in &manifests {
            let start = clock.now();
            let decoded = decode(manifest.as_bytes(), &AcceptedVersions::default());
            times.push(start.elapsed().as_secs_f64() * 1e6);
            decoded.map_err(|error| anyhow::anyhow!("{error}"))?;
        }
    }
    Ok(median(&times))
}
