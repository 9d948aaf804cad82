//! How soon faults are noticed and healed: `callsheet-bench faults --rounds 5`.
//!
//! Each fault happens to a scenario of its own, all in one daemon, beside scenarios that are well.
//! Noticed is when health shows it, healed when the scenario is live and the list holds what it
//! says.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use callsheet::runtime::{Clock, Tasks};
use serde_json::Value;
use tokio::time::Instant;

use crate::checker::ListReader;
use crate::child_process::Daemon;
use crate::faulty_scenario::{FaultyScenario, GRACE, HASTE, Mode, TOOLS};
use crate::report::{self, median};
use crate::{manifests, raw_http};

const WELL: usize = 40;
const PATIENCE: Duration = Duration::from_secs(40);

/// What happens, and how it ends.
#[derive(Debug, Clone, Copy)]
struct Fault {
    name: &'static str,
    begin: Begin,
    /// How long it lasts after it was noticed; a long one ends once the tools are withdrawn.
    lasts: Lasts,
    elsewhere: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Begin {
    Kill,
    /// And its source takes it back.
    Leave,
    Play(Mode),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Lasts {
    /// It is back at once.
    Moment,
    UntilNoticed,
    UntilWithdrawn,
}

const FAULTS: [Fault; 11] = [
    fault(
        "killed (connection refused), back within grace",
        Begin::Kill,
        Lasts::UntilNoticed,
        false,
    ),
    fault(
        "killed for longer than grace",
        Begin::Kill,
        Lasts::UntilWithdrawn,
        false,
    ),
    fault(
        "killed and taken back by its source",
        Begin::Leave,
        Lasts::UntilWithdrawn,
        false,
    ),
    fault(
        "restarted on the same port",
        Begin::Kill,
        Lasts::Moment,
        false,
    ),
    fault(
        "restarted on another port that its source tells",
        Begin::Kill,
        Lasts::Moment,
        true,
    ),
    fault(
        "hung (takes connections, says nothing)",
        Begin::Play(Mode::Hung),
        Lasts::UntilNoticed,
        false,
    ),
    fault(
        "hung for longer than grace",
        Begin::Play(Mode::Hung),
        Lasts::UntilWithdrawn,
        false,
    ),
    fault(
        "answers 500",
        Begin::Play(Mode::Failing),
        Lasts::UntilNoticed,
        false,
    ),
    fault(
        "answers one byte a second",
        Begin::Play(Mode::Drip),
        Lasts::UntilNoticed,
        false,
    ),
    fault(
        "closes in the midst of an answer",
        Begin::Play(Mode::Cut),
        Lasts::UntilNoticed,
        false,
    ),
    fault(
        "manifest broken",
        Begin::Play(Mode::Broken),
        Lasts::UntilNoticed,
        false,
    ),
];

const fn fault(name: &'static str, begin: Begin, lasts: Lasts, elsewhere: bool) -> Fault {
    Fault {
        name,
        begin,
        lasts,
        elsewhere,
    }
}

/// Seconds from a beginning.
#[derive(Default)]
struct FaultTimes {
    noticed: Vec<f64>,
    withdrawn: Vec<f64>,
    healed: Vec<f64>,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let rounds = match arguments {
        [] => 5,
        [key, rounds] if key == "--rounds" => rounds.parse()?,
        _ => anyhow::bail!("faults [--rounds N]"),
    };
    println!("{}\n{rounds} rounds, with{HASTE}", report::machine());
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut lines = each_alone(rounds).await?;
        lines.push(all_at_once(rounds).await?);
        println!(
            "\n| Fault | noticed after | withdrawn after | healed after |\n|---|---|---|---|\n{}",
            lines.join("\n")
        );
        Ok(())
    })
}

async fn each_alone(rounds: usize) -> Result<Vec<String>> {
    let tasks = Tasks::new();
    let folder = tempfile::tempdir()?;
    let actors = actors(WELL + FAULTS.len(), Some(folder.path()), &tasks).await?;
    let settings = format!(
        "{HASTE}discovery.vrooli.path = \"{}\"\n",
        folder.path().display()
    );
    let daemon = Daemon::configured(None, &[], &settings)?;
    let mut actors = actors.into_iter();
    let well: Vec<FaultyScenario> = actors.by_ref().take(WELL).collect();
    let ill: Vec<_> = actors
        .zip(FAULTS)
        .map(|(actor, fault)| {
            tasks.spawn(suffer(daemon.address, actor, fault, rounds, tasks.clone()))
        })
        .collect();
    let mut lines = Vec::new();
    for (each, fault) in ill.into_iter().zip(FAULTS) {
        let FaultTimes {
            noticed,
            withdrawn,
            healed,
        } = each.await?.with_context(|| fault.name)?;
        lines.push(format!(
            "| {} | {} | {} | {} |",
            fault.name,
            shown(&noticed),
            shown(&withdrawn),
            shown(&healed)
        ));
    }
    drop(well);
    Ok(lines)
}

async fn actors(count: usize, folder: Option<&Path>, tasks: &Tasks) -> Result<Vec<FaultyScenario>> {
    let mut actors = Vec::new();
    for at in 0..count {
        actors.push(FaultyScenario::start(at, GRACE, folder.map(Path::to_owned), tasks).await?);
    }
    Ok(actors)
}

/// Half of them took at most so long, and the longest.
fn shown(times: &[f64]) -> String {
    if times.is_empty() {
        return "-".into();
    }
    format!(
        "{:.2} s (at most {:.2} s)",
        median(times),
        times.iter().copied().fold(0.0, f64::max)
    )
}

async fn suffer(
    daemon: SocketAddr,
    mut actor: FaultyScenario,
    fault: Fault,
    rounds: usize,
    tasks: Tasks,
) -> Result<FaultTimes> {
    let clock = Clock::system();
    let mut times = FaultTimes::default();
    until_listed(daemon, &actor).await.context("at the start")?;
    for _ in 0..rounds {
        // Not always at the same moment between two asks.
        clock
            .sleep(Duration::from_millis(fastrand::u64(2_500..4_500)))
            .await;
        let restarts = restarts(daemon, &actor).await?;
        let begun = clock.now();
        match fault.begin {
            Begin::Kill => actor.kill().await,
            Begin::Leave => {
                actor.kill().await;
                actor.leave()?;
            }
            Begin::Play(mode) => actor.set_mode(mode),
        }
        if fault.lasts != Lasts::Moment {
            until("noticed", || async {
                let health = health(daemon, &actor).await?;
                Ok(health["failures_in_a_row"].as_u64() > Some(0) || health["state"] != "live")
            })
            .await?;
            times.noticed.push(begun.elapsed().as_secs_f64());
        }
        if fault.lasts == Lasts::UntilWithdrawn {
            let mut looker = ListReader::new(daemon);
            let name = actor.name();
            let end = clock.now() + PATIENCE;
            while looker.read().await?.contains_key(&name) {
                ensure!(clock.now() < end, "it is not withdrawn");
                clock.sleep(Duration::from_millis(10)).await;
            }
            times.withdrawn.push(begun.elapsed().as_secs_f64());
        }
        let mended = clock.now();
        match fault.begin {
            Begin::Play(_) => actor.set_mode(Mode::Good),
            _ if fault.elsewhere => actor.run_elsewhere(&tasks).await?,
            _ => actor.run_again(&tasks).await?,
        }
        until_listed(daemon, &actor).await.context("healed")?;
        times.healed.push(mended.elapsed().as_secs_f64());
        if fault.lasts == Lasts::Moment {
            until("counted as a restart", || async {
                Ok(self::restarts(daemon, &actor).await? > restarts)
            })
            .await?;
            times.noticed.push(begun.elapsed().as_secs_f64());
        }
    }
    Ok(times)
}

async fn health(daemon: SocketAddr, actor: &FaultyScenario) -> Result<Value> {
    let answer = raw_http::once(
        daemon,
        "GET",
        &format!("/api/v1/scenarios/{}", actor.name()),
    )
    .await?;
    Ok(serde_json::from_slice(&answer.body)?)
}

async fn restarts(daemon: SocketAddr, actor: &FaultyScenario) -> Result<u64> {
    let health = health(daemon, actor).await?;
    health["restarts"]["count"]
        .as_u64()
        .or(health["restarts"].as_u64())
        .with_context(|| format!("no restarts: {health}"))
}

/// Until the list holds what the scenario says now, and health calls it live.
async fn until_listed(daemon: SocketAddr, actor: &FaultyScenario) -> Result<()> {
    let clock = Clock::system();
    let mut looker = ListReader::new(daemon);
    let end = clock.now() + PATIENCE;
    let name = actor.name();
    let edition = actor.truth().edition;
    loop {
        let listed = looker.read().await?.get(&name).is_some_and(|tools| {
            let right = |(tool, listed): (usize, &crate::checker::Listed)| {
                listed.description == manifests::description(actor.at, tool, edition)
            };
            tools.len() == TOOLS && tools.iter().enumerate().all(right)
        });
        if listed && health(daemon, actor).await?["state"] == "live" {
            return Ok(());
        }
        ensure!(clock.now() < end, "it is not listed as it is");
        clock.sleep(Duration::from_millis(10)).await;
    }
}

async fn until<F: Future<Output = Result<bool>>>(
    what: &str,
    mut seen: impl FnMut() -> F,
) -> Result<Instant> {
    let clock = Clock::system();
    let end = clock.now() + PATIENCE;
    while !seen().await? {
        ensure!(clock.now() < end, "it is not {what}");
        clock.sleep(Duration::from_millis(10)).await;
    }
    Ok(clock.now())
}

fn play(actors: &[FaultyScenario], mode: Mode) {
    for actor in actors {
        actor.set_mode(mode);
    }
}

/// All scenarios hang together, as behind a network that is cut off: the daemon takes itself to be
/// isolated and withdraws nothing.
async fn all_at_once(rounds: usize) -> Result<String> {
    let clock = Clock::system();
    let tasks = Tasks::new();
    let actors = actors(10, None, &tasks).await?;
    let named: Vec<_> = actors
        .iter()
        .map(|actor| (actor.name(), actor.address))
        .collect();
    let daemon = Daemon::configured(
        None,
        &named,
        &format!("{HASTE}discovery.vrooli.enabled = false\n"),
    )?;
    let mut times = FaultTimes::default();
    for actor in &actors {
        until_listed(daemon.address, actor)
            .await
            .context("at the start")?;
    }
    let isolated = || async {
        let ready = raw_http::once(daemon.address, "GET", "/readyz").await?;
        Ok(!serde_json::from_slice::<Value>(&ready.body)?["isolated"].is_null())
    };
    for _ in 0..rounds {
        clock
            .sleep(Duration::from_millis(fastrand::u64(2_500..4_500)))
            .await;
        let begun = clock.now();
        play(&actors, Mode::Hung);
        until("isolated", isolated).await?;
        times.noticed.push(begun.elapsed().as_secs_f64());
        clock.sleep_until(begun + GRACE + GRACE).await;
        let mut looker = ListReader::new(daemon.address);
        ensure!(
            looker.read().await?.len() == actors.len(),
            "something was withdrawn while isolated"
        );
        let mended = clock.now();
        play(&actors, Mode::Good);
        until("isolated no more", || async { Ok(!isolated().await?) }).await?;
        for actor in &actors {
            until_listed(daemon.address, actor)
                .await
                .context("after the isolation")?;
        }
        times.healed.push(mended.elapsed().as_secs_f64());
    }
    Ok(format!(
        "| all hang at once, for twice the grace (isolation) | {} | nothing is | {} |",
        shown(&times.noticed),
        shown(&times.healed)
    ))
}
