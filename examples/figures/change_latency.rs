//! How soon a change of one scenario is seen, in a small and in a large catalog: from the last byte
//! of its manifest to the first byte of the new list at somebody who keeps asking for it, and to
//! the event at somebody who follows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use callsheet::runtime::{Clock, Tasks};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::changing_scenario::ChangingScenario;
use crate::child_process::Daemon;
use crate::events::{self, FollowTransport};
use crate::manifests::TOOLS;
use crate::plan::Plan;
use crate::raw_http::{self, Connection};
use crate::report::{Row, percentile};
use crate::scenarios::Scenarios;
use crate::truth_guard::TruthGuard;
use crate::{daemon_list, list_check};

/// Sizes of catalogs, in scenarios.
const FLEETS: [usize; 3] = [50, 1_000, 5_000];
/// Scenarios that change, one after the other.
const MOVERS: usize = 40;
/// They are asked more often than an operator would.
const SETTINGS: &str = "refresh.forced_gap = \"1ms\"\n";
const PATIENCE: Duration = Duration::from_secs(20);

/// Milliseconds from the last byte of a manifest.
#[derive(Default)]
struct ChangeTimes {
    list: Vec<f64>,
    event: Vec<f64>,
}

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for scenarios in FLEETS {
        if plan.quick && scenarios > plan.fleet {
            continue;
        }
        let runtime = tokio::runtime::Runtime::new()?;
        let ChangeTimes { list, event } =
            runtime.block_on(measure(scenarios, plan.pick(60, 300)))?;
        let tools = scenarios * TOOLS;
        for (id, label, times) in [
            ("list", "to the first byte of the new list", list),
            ("event", "to the event (server-sent)", event),
        ] {
            let p50 = percentile(&times, 50);
            let p99 = percentile(&times, 99);
            println!(
                "20 of {tools} tools change: from the last byte of their manifest {label} p50 {p50:.2} ms, p99 {p99:.2} ms"
            );
            let name = format!(
                "20 of {tools} tools change, p99 from the last byte of their manifest {label}"
            );
            let row = Row::new(format!("change.{tools}.{id}"), name, p99, "ms");
            rows.push(row.note(format!("p50 {p50:.2} ms, {} changes", times.len())));
        }
    }
    Ok(rows)
}

async fn measure(scenarios: usize, changes: usize) -> Result<ChangeTimes> {
    let tasks = Tasks::new();
    let movers = ChangingScenario::start(0, MOVERS, &tasks).await?;
    let others = Scenarios::some(MOVERS, scenarios - MOVERS, Duration::ZERO, TOOLS)?;
    let guard = TruthGuard::start().await?;
    let named = movers
        .iter()
        .map(|mover| (mover.name(), mover.address))
        .chain(others.named())
        .collect();
    let daemon = Daemon::start(None, &guard.beside(named), "60s", SETTINGS)?;
    daemon_list::ready(&daemon).await?;
    let tools = scenarios * TOOLS + TruthGuard::tools();
    let mut tag = daemon_list::whole(&daemon, tools)
        .await?
        .header("etag")
        .context("no tag")?
        .to_owned();
    let guard = guard.watch(daemon.address, Duration::from_secs(60), false);

    let (received, mut events) = mpsc::channel(16);
    let bytes = Arc::new(AtomicU64::new(0));
    let stream = events::begin(daemon.address, FollowTransport::Stream).await?;
    tasks.spawn(events::listen(
        stream,
        FollowTransport::Stream,
        Clock::system(),
        Arc::clone(&bytes),
        received,
    ));
    // It is told all names first.
    let mut before = None;
    while before != Some(bytes.load(Ordering::Relaxed)) {
        before = Some(bytes.load(Ordering::Relaxed));
        Clock::system().sleep(Duration::from_millis(300)).await;
    }
    let mut times = ChangeTimes::default();
    for turn in 0..changes {
        let mover = &movers[turn % MOVERS];
        mover.change();
        let path = format!("/api/v1/scenarios/{}/refresh", mover.name());
        let refreshed = raw_http::once(daemon.address, "POST", &path);
        let listed = until_new(&daemon, &tag, tools);
        let (refreshed, listed) = tokio::join!(refreshed, listed);
        let refreshed = refreshed?;
        let (at, fresh) = listed?;
        ensure!(refreshed.status == 200, "{}", refreshed.status);
        let event = tokio::time::timeout(PATIENCE, events.recv())
            .await
            .context("no event")?
            .context("nobody follows")?;
        let sent = mover.sent()?;
        times.list.push(milliseconds(sent, at));
        times.event.push(milliseconds(sent, event));
        tag = fresh;
    }
    ensure!(events.try_recv().is_err(), "an event more than changes");
    guard.end().await?;
    let list = daemon_list::whole(&daemon, tools).await?;
    let edition = |at: usize| movers.get(at).map_or(0, ChangingScenario::edition);
    list_check::check(&list.body, 0..scenarios, TOOLS, edition)?;
    Ok(times)
}

/// Keeps asking for the list until it is a new one: when that began to come, and its tag.
async fn until_new(daemon: &Daemon, tag: &str, tools: usize) -> Result<(Instant, String)> {
    let clock = Clock::system();
    let request = raw_http::request("GET", daemon_list::PATH, &[("if-none-match", tag)]);
    let mut connection = Connection::open(daemon.address).await?;
    let end = clock.now() + PATIENCE;
    loop {
        let begun = connection.begin(request.as_bytes()).await?;
        let now = clock.now();
        if begun.answer.status == 200 {
            let listed = begun.answer.header("callsheet-tools").unwrap_or_default();
            ensure!(
                listed == tools.to_string(),
                "{listed} tools while 20 change"
            );
            return Ok((
                now,
                begun.answer.header("etag").context("no tag")?.to_owned(),
            ));
        }
        ensure!(now < end, "the list is not renewed");
    }
}

fn milliseconds(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() * 1e3
}
