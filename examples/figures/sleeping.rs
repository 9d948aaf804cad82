//! Programs that sleep: how many run, how soon their list is there after a start, what the first
//! call of one costs against the same program without a daemon, what further calls cost, and how
//! often an idle daemon with sleepers is woken.

use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::runtime::Clock;
use tokio::runtime::Runtime;

use crate::child_process::Daemon;
use crate::manifests::{self, TOOLS};
use crate::mcp::bare;
use crate::mcp::servers::{self, HttpServers};
use crate::mcp::{ARGUMENTS, OFF, listed, tables};
use crate::plan::Plan;
use crate::raw_http::{self, Connection};
use crate::report::{Row, median};

/// Programs, and as many servers over HTTP.
const COUNT: usize = 100;
/// After which time without a client a program sleeps.
const SLEEPY: &str = "mcp.sleep_after = \"1s\"\n";
/// The same, but so late that none sleeps while further calls are measured.
const LATE: &str = "mcp.sleep_after = \"10m\"\n";
/// Further calls of each daemon.
const CALLS: usize = 500;
/// How long the idle daemon is watched.
const IDLE: Duration = Duration::from_secs(60);
/// What a start needs may take a moment to be over.
const SETTLED: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let runtime = Runtime::new()?;
    let mut daemon = Daemon::with_tables(None, &format!("{OFF}{SLEEPY}"), &tables(COUNT, &[])?)?;
    runtime.block_on(listed(&daemon, COUNT * TOOLS))?;
    until_children(&daemon, 0)?;
    let mut rows = vec![first_list(plan, &runtime, &mut daemon)?];
    #[expect(clippy::cast_precision_loss, reason = "a hundred at most")]
    let running = daemon.child.children(servers::CHILD)? as f64;
    let name = format!("{COUNT} programs asleep after a start: child processes");
    rows.push(Row::new("sleeping.children", name, running, "processes").at_most(0.0));
    rows.push(idle(&daemon)?);
    rows.push(first_calls(plan, &runtime, &daemon)?);
    drop(daemon);
    rows.push(further_calls(&runtime)?);
    Ok(rows)
}

/// Waits until so many of its programs run.
fn until_children(daemon: &Daemon, count: usize) -> Result<()> {
    let end = Clock::system().now() + PATIENCE;
    while daemon.child.children(servers::CHILD)? != count {
        ensure!(
            Clock::system().now() < end,
            "{} programs run after {PATIENCE:?}, not {count}",
            daemon.child.children(servers::CHILD)?
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// From the start of the process to the whole list, against a daemon with as many stored servers
/// over HTTP.
fn first_list(plan: &Plan, runtime: &Runtime, ours: &mut Daemon) -> Result<Row> {
    let over_http = HttpServers::start(None, 0, COUNT)?;
    let mut theirs = Daemon::with_tables(None, OFF, &tables(0, &over_http.addresses)?)?;
    runtime.block_on(listed(&theirs, COUNT * TOOLS))?;
    // What was listed is stored behind the answers.
    std::thread::sleep(SETTLED);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..plan.rounds() {
        for (daemon, times) in [&mut *ours, &mut theirs].into_iter().zip(&mut times) {
            daemon.kill()?;
            let start = Clock::system().now();
            daemon.again()?;
            runtime.block_on(listed(daemon, COUNT * TOOLS))?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    let [ours, theirs] = times;
    let name = format!(
        "{COUNT} programs asleep, {TOOLS} tools each: from process start to the whole list"
    );
    let against = format!("{COUNT} stored scenarios over HTTP");
    Ok(Row::new("sleeping.list", name, median(&ours), "ms")
        .against(against, median(&theirs))
        .ratios(&ours, &theirs)
        .at_most(1.15))
}

/// How often the threads of the idle daemon wait anew, against one without any scenario.
fn idle(ours: &Daemon) -> Result<Row> {
    let theirs = Daemon::with_tables(None, OFF, "")?;
    std::thread::sleep(SETTLED);
    let before = [ours.child.waits()?, theirs.child.waits()?];
    std::thread::sleep(IDLE);
    let after = [ours.child.waits()?, theirs.child.waits()?];
    #[expect(clippy::cast_precision_loss, reason = "some thousand at most")]
    let [ours, theirs] = [after[0] - before[0], after[1] - before[1]].map(|waits| waits as f64);
    let name = format!("{COUNT} programs asleep: wake-ups of the idle daemon in {IDLE:?}");
    Ok(Row::new("sleeping.idle", name, ours, "wake-ups")
        .against("daemon without scenarios", theirs)
        .at_most(1.2))
}

/// A call of the first tool of a program.
fn call(at: usize) -> String {
    let tool = manifests::tool(at, 0);
    let body = format!(r#"{{"tool_name":"{tool}","arguments":{ARGUMENTS}}}"#);
    let headers = [("content-type", "application/json")];
    raw_http::post("/api/v1/tools/execute", &headers, &body)
}

async fn called(connection: &mut Connection, at: usize) -> Result<f64> {
    let request = call(at);
    let start = Clock::system().now();
    let answer = connection.get(request.as_bytes()).await?;
    let taken = start.elapsed().as_secs_f64() * 1e3;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    ensure!(answer.status == 200, "{} {text}", answer.status);
    Ok(taken)
}

/// The first call of a program that sleeps, against starting the same program, greeting, listing
/// and calling it.
fn first_calls(plan: &Plan, runtime: &Runtime, daemon: &Daemon) -> Result<Row> {
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for at in 0..plan.pick(20, COUNT) {
        ours.push(runtime.block_on(async {
            let mut connection = Connection::open(daemon.address).await?;
            called(&mut connection, at).await
        })?);
        let start = Clock::system().now();
        runtime.block_on(bare::first_call(at))?;
        theirs.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let name = "the first call of a program that sleeps";
    Ok(Row::new("sleeping.first-call", name, median(&ours), "ms")
        .against(
            "starting, greeting, listing and calling it",
            median(&theirs),
        )
        .ratios(&ours, &theirs)
        .at_most(1.1))
}

/// Further calls of a program that may sleep later, against those of one that never sleeps.
fn further_calls(runtime: &Runtime) -> Result<Row> {
    let daemons = [format!("{OFF}{LATE}"), OFF.to_owned()]
        .map(|settings| Daemon::with_tables(None, &settings, &tables(1, &[])?));
    let [ours, theirs] = daemons;
    let daemons = [ours?, theirs?];
    let mut times = [Vec::new(), Vec::new()];
    runtime.block_on(async {
        let mut connections = Vec::new();
        for daemon in &daemons {
            listed(daemon, TOOLS).await?;
            let mut connection = Connection::open(daemon.address).await?;
            called(&mut connection, 0).await?;
            connections.push(connection);
        }
        for _ in 0..CALLS {
            for (connection, times) in connections.iter_mut().zip(&mut times) {
                times.push(called(connection, 0).await?);
            }
        }
        anyhow::Ok(())
    })?;
    let [ours, theirs] = times;
    Ok(Row::new(
        "sleeping.further-calls",
        "further calls of a program that may sleep",
        median(&ours),
        "ms",
    )
    .against("the same where none may sleep", median(&theirs))
    .at_most(1.1))
}
