//! Many minutes of trouble: `callsheet-bench soak --minutes 20 --seed 1`.
//!
//! First, for a fifth of the time, a daemon with 90 scenarios, of which 60 are well and 30 flap at
//! random: what its readers see is what the next part is compared with. Then a daemon that has
//! hostile scenarios besides, and at last hostile callers too, for a third of the time. In every
//! part, readers keep requesting the list of the 90 scenarios, and a checker that knows the truth
//! at each moment looks for wrong answers.
//!
//! Fails when it saw one, when memory grew by more than 5 % after the warm-up of a part, when the
//! p99 of lists is more than 1.5 times as long with hostile scenarios, or when a list took more
//! than a second while there were hostile callers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use callsheet::runtime::{Clock, Stop, StopTrigger, Tasks};
use fastrand::Rng;
use tokio::time::Instant;

use crate::checker::{self, LEEWAY, Rules, SOON, Verdict, Watched};
use crate::child_process::Daemon;
use crate::faulty_scenario::{FaultyScenario, GRACE, HASTE, Mode};
use crate::readers::{self, Answers};
use crate::report::{self, median};
use crate::{hostile_callers, hostile_scenarios, raw_http};

const STEADY: usize = 60;
const FLAPPING: usize = 30;
/// What is not the default besides [`HASTE`]. A body of 8 MiB is the default too; it is what
/// hostile ones are cut at.
const SETTINGS: &str = r#"refresh.max_tools = 50
health.forget = "1m"
views.max_bytes = "16 MiB"
discovery.vrooli.rescan_interval = "1s"
"#;
/// The profile whose list the readers request. It sees the scenarios that are there in every part,
/// so lists of the same tools are compared.
const PROFILE: &str = "readers";
const LIST: &str = "/api/v1/tools?profile=readers";
/// How fast the readers ask, each of them.
const PACE: Duration = Duration::from_millis(50);
const READERS: usize = 4;
/// How often the checker looks.
const EVERY: Duration = Duration::from_millis(100);
/// See [`Rules::idle`].
const IDLE: Duration = Duration::from_secs(6);
/// How much of the run is warm-up, from when memory is watched; at least so long.
const WARM: (u32, Duration) = (5, Duration::from_secs(30));
/// Growth of resident memory that is allowed, in percent.
const GROWTH: f64 = 5.0;
/// How many times as long as without hostile scenarios the p99 of lists may be with them.
const SLOWER: f64 = 1.5;
/// How long a list may take while there are hostile callers, in milliseconds.
const LONGEST: f64 = 1_000.0;
/// The share of the time for the part before, and for the part with hostile callers, and how long
/// each is at least.
const BEFORE: (u32, Duration) = (5, Duration::from_secs(30));
const CALLERS: (u32, Duration) = (3, Duration::from_secs(60));

/// What may happen to a scenario.
const FAULTS: [&str; 9] = [
    "killed, back at its port",
    "killed, back at another port",
    "killed and taken back by its source",
    "restarted within 50 ms",
    "hung",
    "answering 500",
    "answering nonsense",
    "cutting its answers",
    "slow",
];

/// How often something happened.
type Flaps = BTreeMap<&'static str, usize>;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut minutes = 20.0;
    let mut seed = 1;
    for pair in arguments.chunks(2) {
        match pair {
            [key, value] if key == "--minutes" => minutes = value.parse().context("--minutes")?,
            [key, value] if key == "--seed" => seed = value.parse().context("--seed")?,
            _ => anyhow::bail!("soak [--minutes N] [--seed N]"),
        }
    }
    println!(
        "{}\nseed {seed}, {minutes} minutes, with{HASTE}{SETTINGS}",
        report::machine()
    );
    tokio::runtime::Runtime::new()?.block_on(soak(Duration::from_secs_f64(minutes * 60.0), seed))
}

async fn soak(span: Duration, seed: u64) -> Result<()> {
    let (before, mut verdict, flaps) =
        without_hostile((span / BEFORE.0).max(BEFORE.1), seed).await?;
    println!(
        "without hostile scenarios: list p50, p99, longest {:.1}, {:.1}, {:.1} ms",
        before.p50, before.p99, before.most
    );
    let tasks = Tasks::new();
    let folder = tempfile::tempdir()?;
    let actors = actors(folder.path(), &tasks).await?;
    let (_hostile, addresses) = hostile_scenarios::start()?;
    let hostile = hostile_scenarios::NAMES
        .iter()
        .map(|name| (*name).to_owned())
        .zip(addresses);
    let daemon = daemon(&actors, hostile, folder.path())?;
    crate::daemon_list::ready(&daemon).await?;

    let (trigger, stop) = StopTrigger::new();
    let checked = tasks.spawn(check(&daemon, &actors, &hostile_scenarios::LISTED, &stop));
    let troubled = Troubled::start(actors, seed, &stop, &tasks);
    let scenarios = part(&daemon, span).await?;
    let length = (span / CALLERS.0).max(CALLERS.1);
    println!("hostile callers from here on");
    let callers = hostile_callers::start(daemon.address, length)?;
    let with_callers = part(&daemon, length).await?;
    let attacks = hostile_callers::end(callers)?;
    trigger.stop();
    verdict.add(checked.await?);
    let flaps = troubled.end(flaps).await?;
    report(
        span,
        (&before, &scenarios, &with_callers),
        &attacks,
        &flaps,
        &verdict,
    )
}

/// Compares the list with the truth until `stop`. It may have tools of the `hostile` scenarios, too.
fn check(
    daemon: &Daemon,
    actors: &[FaultyScenario],
    hostile: &[&str],
    stop: &Stop,
) -> impl Future<Output = Verdict> + Send + use<> {
    let watched = actors.iter().map(|actor| Watched {
        at: actor.at,
        steady: actor.at < STEADY,
        truth: Box::new(actor.watch()),
    });
    let others: BTreeSet<String> = hostile.iter().map(|name| (*name).to_owned()).collect();
    let rules = Rules {
        path: crate::daemon_list::PATH.to_owned(),
        every: EVERY,
        grace: GRACE,
        idle: IDLE,
    };
    checker::check(
        daemon.address,
        watched.collect(),
        others,
        rules,
        stop.clone(),
    )
}

/// What the readers and the checker see of a daemon without hostile scenarios.
async fn without_hostile(span: Duration, seed: u64) -> Result<(Answers, Verdict, Flaps)> {
    let tasks = Tasks::new();
    let folder = tempfile::tempdir()?;
    let actors = actors(folder.path(), &tasks).await?;
    let daemon = daemon(&actors, std::iter::empty(), folder.path())?;
    crate::daemon_list::ready(&daemon).await?;
    let (trigger, stop) = StopTrigger::new();
    let checked = tasks.spawn(check(&daemon, &actors, &[], &stop));
    let troubled = Troubled::start(actors, seed, &stop, &tasks);
    let readers = readers::start((daemon.address, LIST), READERS, PACE, span)?;
    watch(&daemon, Clock::system().now() + span).await?;
    trigger.stop();
    let flaps = troubled.end(Flaps::new()).await?;
    Ok((readers::end(readers)?, checked.await?, flaps))
}

/// A daemon for these and further scenarios.
fn daemon(
    actors: &[FaultyScenario],
    further: impl Iterator<Item = (String, SocketAddr)>,
    folder: &Path,
) -> Result<Daemon> {
    let named = actors
        .iter()
        .filter(|actor| !is_found(actor.at))
        .map(|actor| (actor.name(), actor.address));
    let named: Vec<(String, SocketAddr)> = named.chain(further).collect();
    let seen: Vec<String> = actors
        .iter()
        .map(|actor| format!("{:?}", actor.name()))
        .collect();
    // As one line: what follows it belongs to the top level, too.
    let profile = format!(
        "profiles = [{{name = {PROFILE:?}, scenarios = [{}]}}]\n",
        seen.join(", ")
    );
    let settings = format!(
        "{HASTE}{SETTINGS}discovery.vrooli.path = {:?}\n{profile}",
        folder.display().to_string()
    );
    Daemon::configured(None, &named, &settings)
}

/// What was seen in one part of the run.
struct Part {
    uses: Uses,
    answers: Answers,
}

async fn part(daemon: &Daemon, span: Duration) -> Result<Part> {
    let readers = readers::start((daemon.address, LIST), READERS, PACE, span)?;
    let uses = watch(daemon, Clock::system().now() + span).await?;
    Ok(Part {
        uses,
        answers: readers::end(readers)?,
    })
}

/// The scenarios, some of which flap.
struct Troubled {
    flapping: Vec<tokio::task::JoinHandle<Result<Flaps>>>,
    // They answer as long as they are held.
    _steady: Vec<FaultyScenario>,
}

impl Troubled {
    fn start(actors: Vec<FaultyScenario>, seed: u64, stop: &Stop, tasks: &Tasks) -> Self {
        let mut flapping = Vec::new();
        let mut steady = Vec::new();
        for actor in actors {
            if actor.at < STEADY {
                steady.push(actor);
            } else {
                let rng = Rng::with_seed(seed.wrapping_mul(1_000).wrapping_add(actor.at as u64));
                flapping.push(tasks.spawn(flap(actor, rng, stop.clone(), tasks.clone())));
            }
        }
        Self {
            flapping,
            _steady: steady,
        }
    }

    /// How often each thing happened, besides what happened before.
    async fn end(self, mut flaps: Flaps) -> Result<Flaps> {
        for each in self.flapping {
            for (kind, count) in each.await?? {
                *flaps.entry(kind).or_default() += count;
            }
        }
        Ok(flaps)
    }
}

async fn actors(folder: &Path, tasks: &Tasks) -> Result<Vec<FaultyScenario>> {
    let mut actors = Vec::new();
    for at in 0..STEADY + FLAPPING {
        let folder = is_found(at).then(|| folder.to_owned());
        actors.push(FaultyScenario::start(at, GRACE, folder, tasks).await?);
    }
    Ok(actors)
}

/// Every second one is found by its process file, the others are configured.
fn is_found(at: usize) -> bool {
    at % 2 == 1
}

/// Breaks a scenario and mends it again, at random.
async fn flap(mut actor: FaultyScenario, mut rng: Rng, stop: Stop, tasks: Tasks) -> Result<Flaps> {
    let clock = Clock::system();
    let mut flaps = Flaps::new();
    let wait = |most: Duration, rng: &mut Rng| {
        let wait = most.mul_f64(rng.f64());
        let stop = stop.clone();
        async move {
            tokio::select! {
                () = stop.wait() => true,
                () = clock.sleep(wait) => false,
            }
        }
    };
    loop {
        if wait(GRACE, &mut rng).await {
            return Ok(flaps);
        }
        let kind = FAULTS[rng.usize(..FAULTS.len())];
        // Some are over long before the grace is, some long after.
        let long = GRACE.mul_f64(if rng.bool() { 0.6 } else { 2.0 });
        let found = is_found(actor.at);
        match kind {
            "killed, back at another port" | "killed and taken back by its source" if !found => {
                continue;
            }
            "killed, back at its port"
            | "killed, back at another port"
            | "restarted within 50 ms" => {
                actor.kill().await;
            }
            "killed and taken back by its source" => {
                actor.kill().await;
                actor.leave()?;
            }
            "hung" => actor.set_mode(Mode::Hung),
            "answering 500" => actor.set_mode(Mode::Failing),
            "answering nonsense" => actor.set_mode(Mode::Broken),
            "cutting its answers" => actor.set_mode(Mode::Cut),
            _ => actor.set_mode(Mode::Slow(Duration::from_millis(rng.u64(100..800)))),
        }
        *flaps.entry(kind).or_default() += 1;
        let stopped = wait(
            if kind.starts_with("restarted") {
                Duration::from_millis(50)
            } else {
                long
            },
            &mut rng,
        )
        .await;
        match kind {
            "killed, back at another port" => actor.run_elsewhere(&tasks).await?,
            _ if kind.starts_with("killed") || kind.starts_with("restarted") => {
                actor.run_again(&tasks).await?;
            }
            _ => actor.set_mode(Mode::Good),
        }
        if stopped {
            return Ok(flaps);
        }
    }
}

/// What the daemon uses, second by second.
#[derive(Default)]
struct Uses {
    at: Vec<Instant>,
    memory: Vec<f64>,
    files: Vec<f64>,
    threads: Vec<f64>,
    tasks: Vec<f64>,
}

async fn watch(daemon: &Daemon, end: Instant) -> Result<Uses> {
    let clock = Clock::system();
    let mut uses = Uses::default();
    let mut next_report = clock.now();
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    while clock.now() < end {
        let health = raw_http::once(daemon.address, "GET", "/healthz").await?;
        let health: serde_json::Value = serde_json::from_slice(&health.body)?;
        uses.at.push(clock.now());
        uses.memory.push(daemon.child.memory("VmRSS")?);
        uses.files.push(daemon.child.entries("fd")? as f64);
        uses.threads.push(daemon.child.entries("task")? as f64);
        uses.tasks
            .push(health["tasks"].as_f64().context("no number of tasks")?);
        if clock.now() >= next_report {
            next_report += Duration::from_secs(60);
            println!(
                "memory {:.1} MB, {} left",
                daemon.child.memory("VmRSS")?,
                shown(end - clock.now())
            );
        }
        clock.sleep(Duration::from_secs(1)).await;
    }
    Ok(uses)
}

fn shown(span: Duration) -> String {
    format!("{:.1} minutes", span.as_secs_f64() / 60.0)
}

impl Uses {
    /// The middle of what was seen in a part of the time, after the warm-up and at the end.
    fn both(&self, values: &[f64]) -> Result<(f64, f64)> {
        let first = self.at.first().context("nothing was seen")?;
        let last = self.at.last().context("nothing was seen")?;
        let whole = *last - *first;
        let warm = (whole / WARM.0).max(WARM.1);
        let part = (whole / 10).max(Duration::from_secs(10));
        let within = |from: Instant, to: Instant| -> Vec<f64> {
            let seen = self
                .at
                .iter()
                .zip(values)
                .filter(|(at, _)| (from..=to).contains(*at));
            seen.map(|(_, value)| *value).collect()
        };
        let early = within(*first + warm, *first + warm + part);
        ensure!(
            !early.is_empty(),
            "too short to tell growth: at least a minute is needed"
        );
        Ok((median(&early), median(&within(*last - part, *last))))
    }
}

impl Part {
    /// By how many percent its memory grew after the warm-up.
    fn growth(&self) -> Result<f64> {
        let (early, late) = self.uses.both(&self.uses.memory)?;
        Ok((late / early - 1.0) * 100.0)
    }

    fn print(&self, what: &str) -> Result<()> {
        let Self { uses, answers } = self;
        let (early, late) = uses.both(&uses.memory)?;
        let pair = |values: &[f64]| -> Result<String> {
            let (early, late) = uses.both(values)?;
            let most = values.iter().copied().fold(0.0, f64::max);
            Ok(format!("{early:.0} / {late:.0} (most {most:.0})"))
        };
        println!("| **{what}** | |");
        println!(
            "| lists read, of them failed | {}, {} |",
            answers.count, answers.failed
        );
        println!(
            "| list p50, p99, longest | {:.1} ms, {:.1} ms, {:.1} ms |",
            answers.p50, answers.p99, answers.most
        );
        println!(
            "| resident memory | {early:.1} MB / {late:.1} MB ({:+.1} %) |",
            self.growth()?
        );
        println!(
            "| file descriptors | {} |\n| threads | {} |",
            pair(&uses.files)?,
            pair(&uses.threads)?
        );
        println!("| tasks | {} |", pair(&uses.tasks)?);
        Ok(())
    }
}

fn report(
    span: Duration,
    (before, scenarios, callers): (&Answers, &Part, &Part),
    attacks: &[String],
    flaps: &Flaps,
    verdict: &Verdict,
) -> Result<()> {
    let wrong: usize = verdict.wrong.values().map(|(cases, _)| cases).sum();
    let slower = scenarios.answers.p99 / before.p99;
    println!(
        "\n| soak of {:.0} minutes, after warm-up / at the end | |\n|---|---|",
        span.as_secs_f64() / 60.0
    );
    println!(
        "| scenarios: well, flapping, hostile | {STEADY}, {FLAPPING}, {} |",
        hostile_scenarios::NAMES.len()
    );
    println!(
        "| without hostile ones: list p50, p99, longest | {:.1} ms, {:.1} ms, {:.1} ms |",
        before.p50, before.p99, before.most
    );
    scenarios.print("with hostile scenarios")?;
    println!("| p99 of lists against that without them | {slower:.2} (at most {SLOWER}) |");
    callers.print("with hostile callers too")?;
    println!(
        "| longest list | {:.0} ms (at most {LONGEST:.0} ms) |",
        callers.answers.most
    );
    for line in attacks {
        println!("| - {} |", line.replacen(": ", " | ", 1));
    }
    println!("| **in all parts** | |");
    let each: Vec<String> = flaps
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    println!(
        "| flaps | {}: {} |",
        flaps.values().sum::<usize>(),
        each.join(", ")
    );
    println!("| looks of the checker | {} |", verdict.looks);
    println!(
        "| wrong answers (a tool listed longer than grace + {} ms, missing {} s after it answered, ...) | {wrong} |",
        LEEWAY.as_millis(),
        SOON.as_secs()
    );
    for (kind, (cases, looks)) in &verdict.wrong {
        println!("| - {kind} | {cases} (in {looks} looks) |");
    }
    for why in &verdict.explained {
        println!("\n{why}");
    }
    for part in [scenarios, callers] {
        ensure!(
            part.answers.failed == 0,
            "{} readers' requests failed",
            part.answers.failed
        );
        let growth = part.growth()?;
        ensure!(growth <= GROWTH, "memory grew by {growth:.1} %");
    }
    ensure!(wrong == 0, "{wrong} wrong answers");
    ensure!(
        slower <= SLOWER,
        "the p99 of lists is {slower:.2} times as long with hostile scenarios"
    );
    ensure!(
        callers.answers.most <= LONGEST,
        "a list took {:.0} ms with hostile callers",
        callers.answers.most
    );
    Ok(())
}
