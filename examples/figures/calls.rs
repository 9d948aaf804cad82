//! What the daemon adds to a call, against a bare reverse proxy that does the same hop; and what calls cost that wait.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use callsheet::runtime::Clock;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::callee::{ARGUMENTS, Process, TOOL};
use crate::child::{Child, Daemon};
use crate::load;
use crate::raw;
use crate::report::{Demand, Row, median};

/// Rounds of each, taken in turns, so that what else the machine does hits both.
const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_secs(2);
/// Where what is measured runs together with the scenario, and where the load runs.
const OURS: usize = 0;
const LOAD: usize = 1;
/// The most that the daemon may take, in times of the proxy.
const MOST: f64 = 1.25;
const WAITERS: usize = 10_000;
/// The most that a call that waits may cost, in KB.
const MOST_KB: f64 = 20.0;
/// Nothing here takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn run() -> Result<Vec<Row>> {
    let scenario = Process::scenario(OURS, false)?;
    let proxy = Process::proxy(OURS, scenario.address)?;
    let daemon = daemon(scenario.address, "")?;
    let mut rows = Vec::new();
    for connections in [1, 32] {
        rows.push(compare(connections, scenario.address, proxy.address, daemon.address)?);
    }
    drop((scenario, proxy, daemon));
    rows.push(waiting()?);
    Ok(rows)
}

/// A daemon that knows the scenario, and its tool is listed.
fn daemon(scenario: SocketAddr, settings: &str) -> Result<Daemon> {
    let text = format!("{settings}discovery.mdns.enabled = false\ndiscovery.vrooli.enabled = false\n");
    let daemon = Daemon::configured(Some(OURS), &[("files".to_owned(), scenario)], text)?;
    tokio::runtime::Runtime::new()?.block_on(until_listed(daemon.address))?;
    Ok(daemon)
}

async fn until_listed(daemon: SocketAddr) -> Result<()> {
    let end = Clock::system().now() + PATIENCE;
    while raw::once(daemon, "GET", &format!("/api/v1/tools/{TOOL}")).await?.status != 200 {
        ensure!(Clock::system().now() < end, "the tool is never listed");
    }
    Ok(())
}

fn request() -> String {
    let body = format!(r#"{{"tool_name":"{TOOL}","arguments":{ARGUMENTS}}}"#);
    let length = body.len().to_string();
    let headers = [("content-type", "application/json"), ("content-length", length.as_str())];
    raw::request("POST", "/api/v1/tools/execute", &headers) + &body
}

fn compare(connections: usize, direct: SocketAddr, proxy: SocketAddr, daemon: SocketAddr) -> Result<Row> {
    let request = request();
    let measure = |address| load::put(LOAD, address, &request, connections, SPAN).map(|round| round.p50);
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    // The first round warms up.
    for round in 0..=ROUNDS {
        for (times, address) in times.iter_mut().zip([direct, proxy, daemon]) {
            let p50 = measure(address)?;
            if round > 0 {
                times.push(p50);
            }
        }
    }
    let [direct, proxy, ours] = times.map(|times| median(&times));
    let figure = format!("a call of a tool at {connections} connections: p50 through the daemon");
    let shown = format!("{ours:.0} µs (+{:.0} µs to a direct call of {direct:.0} µs)", ours - direct);
    let theirs = format!("{proxy:.0} µs through a bare hyper reverse proxy");
    println!("{figure}: {shown}; {theirs}");
    Ok(Row { figure, ours: shown, theirs, value: ours / proxy, demand: Some(Demand::AtMost(MOST, "x")) })
}

/// The memory of the daemon that calls take which wait for their turn, the connections of those who wait included.
fn waiting() -> Result<Row> {
    let scenario = Process::scenario(OURS, true)?;
    let daemon = daemon(
        scenario.address,
        "calls.queue_timeout = \"1h\"\ncalls.concurrency = 32\nserver.max_connections = 12000\n",
    )?;
    let before = daemon.child.memory("VmRSS")?;
    let arguments = ["waiters".to_owned(), daemon.address.to_string(), (WAITERS + 32).to_string()];
    let mut waiters = Child::start(Some(LOAD), &arguments)?;
    waiters.line()?;
    tokio::runtime::Runtime::new()?.block_on(until_all_wait(daemon.address))?;
    let after = daemon.child.memory("VmRSS")?;
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let each = (after - before) * 1_000.0 / WAITERS as f64;
    let figure = format!("{WAITERS} calls that wait for their turn: memory of each, its client's connection included");
    let shown = format!("{each:.1} KB ({before:.0} MB before, {after:.0} MB after)");
    println!("{figure}: {shown}");
    Ok(Row { figure, ours: shown, theirs: String::new(), value: each, demand: Some(Demand::AtMost(MOST_KB, " KB")) })
}

async fn until_all_wait(daemon: SocketAddr) -> Result<()> {
    let end = Clock::system().now() + PATIENCE;
    while count(daemon).await? < WAITERS {
        ensure!(Clock::system().now() < end, "they do not all wait");
        Clock::system().sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// How many calls wait, as the daemon counts them.
async fn count(daemon: SocketAddr) -> Result<usize> {
    let mut stream = TcpStream::connect(daemon).await?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\nhost: localhost\r\n\r\n").await?;
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut text).await?;
    let line = text.lines().find_map(|line| line.strip_prefix("callsheet_calls_waiting "));
    Ok(line.context("no such metric")?.parse()?)
}

/// The role of those who wait: each on a connection of its own. Prints a line when all have asked.
pub(crate) fn wait(arguments: &[String]) -> Result<()> {
    let [address, count] = arguments else { anyhow::bail!("waiters ADDRESS COUNT") };
    let (address, count) = (address.parse::<SocketAddr>()?, count.parse::<usize>()?);
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let (request, mut held) = (request(), Vec::with_capacity(count));
        for _ in 0..count {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(request.as_bytes()).await?;
            held.push(stream);
        }
        println!("asked");
        std::future::pending::<()>().await;
        Ok(())
    })
}
