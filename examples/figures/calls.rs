//! What the daemon adds to a call of one of 1,000 and of 20,000 tools, against a bare reverse proxy
//! that does the same hop; and what calls cost that wait.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use callsheet::runtime::Clock;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::callee::{ARGUMENTS, Process, TOOL};
use crate::child_process::{Child, Daemon};
use crate::manifests::TOOLS;
use crate::plan::Plan;
use crate::raw_http;
use crate::report::{Row, median};
use crate::scenarios::Scenarios;
use crate::{daemon_list, load};

/// Scenarios beside the one that is called.
const FLEETS: [usize; 2] = [50, 1_000];
/// What is measured is measured in turns, so that what else the machine does hits both.
const SPAN: Duration = Duration::from_secs(2);
/// Where what is measured runs together with the scenario, and where the load runs.
const OURS: usize = 0;
const LOAD: usize = 1;
/// Calls at once, and the most that the daemon may take for one, in times of the proxy.
const CASES: [(usize, f64); 2] = [(1, 2.0), (32, 2.5)];
const WAITERS: usize = 10_000;
/// The settings of a daemon at which so many wait.
const WAITING: &str = "calls.queue_timeout = \"1h\"\ncalls.queue = 12000\ncalls.concurrency = 32\nserver.max_connections = 24000\n";
/// The most that a call that waits may cost, in KB.
const MOST_KB: f64 = 20.0;
/// Nothing here takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for count in FLEETS {
        let others = Scenarios::start(count, Duration::ZERO)?;
        let scenario = Process::scenario(OURS, false)?;
        let proxy = Process::proxy(OURS, scenario.address)?;
        let daemon = daemon(
            scenario.address,
            others.named(),
            "server.ready_timeout = \"120s\"\n",
        )?;
        for (connections, most) in CASES {
            let case = CallCase {
                tools: count * TOOLS,
                connections,
                most,
            };
            rows.extend(case.compare(plan, [scenario.address, proxy.address, daemon.address])?);
        }
    }
    rows.push(waiting()?);
    Ok(rows)
}

/// A daemon that knows the scenario, and its tool is listed.
pub(crate) fn daemon(
    scenario: SocketAddr,
    others: Vec<(String, SocketAddr)>,
    settings: &str,
) -> Result<Daemon> {
    let text =
        format!("{settings}discovery.mdns.enabled = false\ndiscovery.vrooli.enabled = false\n");
    let mut all = others;
    all.push(("files".to_owned(), scenario));
    let daemon = Daemon::configured(Some(OURS), &all, &text)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        daemon_list::ready(&daemon).await?;
        until_listed(daemon.address).await
    })?;
    Ok(daemon)
}

async fn until_listed(daemon: SocketAddr) -> Result<()> {
    let end = Clock::system().now() + PATIENCE;
    while raw_http::once(daemon, "GET", &format!("/api/v1/tools/{TOOL}"))
        .await?
        .status
        != 200
    {
        ensure!(Clock::system().now() < end, "the tool is never listed");
    }
    Ok(())
}

fn request() -> String {
    let body = format!(r#"{{"tool_name":"{TOOL}","arguments":{ARGUMENTS}}}"#);
    let length = body.len().to_string();
    let headers = [
        ("content-type", "application/json"),
        ("content-length", length.as_str()),
    ];
    raw_http::request("POST", "/api/v1/tools/execute", &headers) + &body
}

/// Calls of one tool among others.
struct CallCase {
    tools: usize,
    connections: usize,
    most: f64,
}

impl CallCase {
    fn compare(&self, plan: &Plan, servers: [SocketAddr; 3]) -> Result<[Row; 2]> {
        let Self {
            tools,
            connections,
            most,
        } = self;
        let request = request();
        let span = plan.pick(SPAN / 4, SPAN);
        let mut rounds = [Vec::new(), Vec::new(), Vec::new()];
        // The first round warms up.
        for round in 0..=plan.rounds() {
            for (rounds, address) in rounds.iter_mut().zip(servers) {
                let found = load::put(LOAD, address, &request, *connections, span)?;
                if round > 0 {
                    rounds.push(found);
                }
            }
        }
        let of = |value: fn(&load::Round) -> f64| {
            rounds
                .each_ref()
                .map(|rounds| rounds.iter().map(value).collect::<Vec<_>>())
        };
        let [direct, proxy, ours] = of(|round| round.p50);
        let [_, proxy99, ours99] = of(|round| round.p99);
        let name = format!("a call of one of {tools} tools at concurrency {connections}");
        let note = format!("a direct call {:.0} us", median(&direct));
        println!(
            "{name}: p50 {:.0} us; through a bare proxy {:.0} us; {note}",
            median(&ours),
            median(&proxy)
        );
        let against = "bare hyper reverse proxy";
        let id = format!("calls.{tools}.{connections}");
        Ok([
            Row::new(
                format!("{id}.p50"),
                format!("{name}: p50"),
                median(&ours),
                "us",
            )
            .against(against, median(&proxy))
            .ratios(&ours, &proxy)
            .at_most(*most)
            .note(note),
            Row::new(
                format!("{id}.p99"),
                format!("{name}: p99"),
                median(&ours99),
                "us",
            )
            .against(against, median(&proxy99))
            .ratios(&ours99, &proxy99),
        ])
    }
}

/// The memory of the daemon that calls take which wait for their turn, the connections of those who
/// wait included.
fn waiting() -> Result<Row> {
    let scenario = Process::scenario(OURS, true)?;
    let daemon = daemon(scenario.address, Vec::new(), WAITING)?;
    let before = daemon.child.memory("VmRSS")?;
    let arguments = [
        "play-waiters".to_owned(),
        daemon.address.to_string(),
        (WAITERS + 32).to_string(),
    ];
    let mut waiters = Child::start(Some(LOAD), &arguments)?;
    waiters.line()?;
    tokio::runtime::Runtime::new()?.block_on(until_all_wait(daemon.address))?;
    let after = daemon.child.memory("VmRSS")?;
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let each = (after - before) * 1_000.0 / WAITERS as f64;
    let figure = format!(
        "{WAITERS} calls that wait for their turn: memory of each, its client's connection included"
    );
    let note = format!("{before:.0} MB before, {after:.0} MB after");
    println!("{figure}: {each:.1} KB; {note}");
    Ok(Row::new("calls.waiting", figure, each, "KB")
        .at_most(MOST_KB)
        .note(note))
}

async fn until_all_wait(daemon: SocketAddr) -> Result<()> {
    let all = async {
        // A daemon that has no room left answers this neither.
        while count(daemon).await? < WAITERS {
            Clock::system().sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    };
    tokio::time::timeout(PATIENCE, all)
        .await
        .context("they do not all wait")?
}

/// How many calls wait, as the daemon counts them.
async fn count(daemon: SocketAddr) -> Result<usize> {
    let mut stream = TcpStream::connect(daemon).await?;
    stream
        .write_all(b"GET /metrics HTTP/1.0\r\nhost: localhost\r\n\r\n")
        .await?;
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut text).await?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("callsheet_calls_waiting "));
    Ok(line.context("no such metric")?.parse()?)
}

/// The role of those who wait: each on a connection of its own. Prints a line when all have asked.
pub(crate) fn wait(arguments: &[String]) -> Result<()> {
    let [address, count] = arguments else {
        anyhow::bail!("waiters ADDRESS COUNT")
    };
    let address = address.parse::<SocketAddr>()?;
    let count = count.parse::<usize>()?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let request = request();
            let mut held = Vec::with_capacity(count);
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
