//! The soak's checker beside a figure: some scenarios of its own among the others, of which it
//! knows at each moment what they said. Two of them end and start again with other tools while the
//! figure is taken, if that is wanted.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::runtime::{Clock, Stop, StopTrigger, Tasks};
use tokio::task::JoinHandle;

use crate::checker::{self, Rules, Verdict, Watched};
use crate::faulty_scenario::FaultyScenario;
use crate::manifests;
use crate::raw_http;

/// The numbers of its scenarios begin here.
pub(crate) const FIRST: usize = 90_000;
/// How many they are.
pub(crate) const COUNT: usize = 5;
/// How many of them end now and then.
const RESTLESS: usize = 2;
/// How often it looks: seldom enough to be no load.
const EVERY: Duration = Duration::from_millis(250);
/// `health.grace`, as it is by default.
const GRACE: Duration = Duration::from_secs(300);
/// One that was away is asked again after some seconds, and may be away again.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long a restless one lives, and how long it is away.
const TURNS: (Duration, Duration) = (Duration::from_secs(3), Duration::from_millis(300));

/// Scenarios that will be watched.
pub(crate) struct TruthGuard {
    actors: Vec<FaultyScenario>,
    tasks: Tasks,
}

/// Scenarios that are watched.
pub(crate) struct RunningTruthGuard {
    daemon: SocketAddr,
    /// Their list.
    path: String,
    stop: StopTrigger,
    verdict: JoinHandle<Verdict>,
    restless: Vec<JoinHandle<Result<()>>>,
    // They answer as long as they are held.
    _steady: Vec<FaultyScenario>,
}

impl TruthGuard {
    /// Starts the scenarios, on this runtime: it must go on while the figure is taken.
    pub(crate) async fn start() -> Result<Self> {
        let tasks = Tasks::new();
        let mut actors = Vec::new();
        for at in FIRST..FIRST + COUNT {
            actors.push(FaultyScenario::start(at, GRACE, None, &tasks).await?);
        }
        Ok(Self { actors, tasks })
    }

    /// How many tools they have together.
    pub(crate) fn tools() -> usize {
        COUNT * crate::faulty_scenario::TOOLS
    }

    /// These scenarios after others.
    pub(crate) fn beside(&self, others: Vec<(String, SocketAddr)>) -> Vec<(String, SocketAddr)> {
        let own = self
            .actors
            .iter()
            .map(|actor| (actor.name(), actor.address));
        others.into_iter().chain(own).collect()
    }

    /// Begins to check a daemon that asks each of its scenarios every `interval`.
    pub(crate) fn watch(
        self,
        daemon: SocketAddr,
        interval: Duration,
        restless: bool,
    ) -> RunningTruthGuard {
        let Self { actors, tasks } = self;
        let (stop, stopped) = StopTrigger::new();
        let names: Vec<String> = actors.iter().map(FaultyScenario::name).collect();
        let path = format!("{}?scenario={}", crate::daemon_list::PATH, names.join(","));
        // An ask may fail, and the next one waits for its turn in a large fleet.
        let rules = Rules {
            path: path.clone(),
            every: EVERY,
            grace: GRACE,
            idle: interval.mul_f64(1.1) + Duration::from_secs(20),
        };
        let most = if restless { RESTLESS } else { 0 };
        let is_restless = |actor: &FaultyScenario| actor.at < FIRST + most;
        let watched = actors.iter().map(|actor| Watched {
            at: actor.at,
            steady: !is_restless(actor),
            truth: Box::new(actor.watch()),
        });
        let checked = checker::check(
            daemon,
            watched.collect(),
            BTreeSet::new(),
            rules,
            stopped.clone(),
        );
        let verdict = tasks.spawn(checked);
        let mut turning = Vec::new();
        let mut steady = Vec::new();
        for actor in actors {
            if is_restless(&actor) {
                turning.push(tasks.spawn(turn(actor, stopped.clone(), tasks.clone())));
            } else {
                steady.push(actor);
            }
        }
        RunningTruthGuard {
            daemon,
            path,
            stop,
            verdict,
            restless: turning,
            _steady: steady,
        }
    }
}

/// Ends and starts it again, until the figure is taken.
async fn turn(mut actor: FaultyScenario, stop: Stop, tasks: Tasks) -> Result<()> {
    let clock = Clock::system();
    loop {
        tokio::select! {
            () = stop.wait() => return Ok(()),
            () = clock.sleep(TURNS.0) => {}
        }
        actor.kill().await;
        clock.sleep(TURNS.1).await;
        actor.run_again(&tasks).await?;
    }
}

impl RunningTruthGuard {
    /// Waits until all of their tools are listed: a restless one may have been away when it was
    /// asked for the first time, and then the daemon, which is ready without it, tries again soon.
    pub(crate) async fn listed(&self) -> Result<()> {
        let clock = Clock::system();
        let end = clock.now() + PATIENCE;
        loop {
            let list = raw_http::once(self.daemon, "GET", &self.path).await?;
            let listed = list.header("callsheet-tools").unwrap_or_default();
            if listed == TruthGuard::tools().to_string() {
                return Ok(());
            }
            ensure!(
                clock.now() < end,
                "{listed} of the guard's {} tools are listed",
                TruthGuard::tools()
            );
            clock.sleep(EVERY).await;
        }
    }

    /// Ends it, and fails when it saw a wrong answer.
    pub(crate) async fn end(self) -> Result<()> {
        self.stop.stop();
        for each in self.restless {
            each.await??;
        }
        let Verdict {
            looks,
            wrong,
            explained,
        } = self.verdict.await?;
        ensure!(
            wrong.is_empty(),
            "wrong answers in {looks} looks: {wrong:?}\n{}",
            explained.join("\n")
        );
        ensure!(looks > 0, "the list was never looked at");
        println!(
            "the checker looked {looks} times at {}..: nothing wrong",
            manifests::name(FIRST)
        );
        Ok(())
    }
}
