//! How soon what is announced on the network is listed, how soon it leaves, and what a flood of
//! announcements costs. The network is a UDP port of its own on the loopback interface; what is
//! announced from this machine is trusted.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use callsheet::discovery::mdns::SERVICE_TYPE;
use callsheet::runtime::{Clock, Tasks};
use mdns_sd::{Error, IfKind, ServiceDaemon, ServiceInfo};
use tokio::time::Instant;

use crate::child_process::Daemon;
use crate::daemon_list;
use crate::manifests::{TOOLS, name};
use crate::plan::Plan;
use crate::raw_http;
use crate::report::{Row, median, percentile};
use crate::scenarios::Scenarios;

const ROUNDS: usize = 50;
const CROWD: usize = 200;
const FLOOD: usize = 5_000;
/// Goodbyes are said this far apart.
const APART: Duration = Duration::from_millis(120);
/// How often the list is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// Nothing here takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(90);
/// The first of the ports that the flood names; nothing answers there.
const NOBODY: u16 = 20_000;

pub(crate) fn run(_: &Plan) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let mut rows = runtime.block_on(come_and_go())?;
    rows.push(runtime.block_on(crowd())?);
    rows.push(runtime.block_on(flood())?);
    Ok(rows)
}

/// A network with someone on it who announces.
struct Network {
    port: u16,
    mdns: ServiceDaemon,
    clock: Clock,
}

impl Network {
    fn new() -> Result<Self> {
        // A port that is free now.
        let port = UdpSocket::bind("0.0.0.0:0")?.local_addr()?.port();
        let mdns = ServiceDaemon::new_with_port(port)?;
        mdns.disable_interface(IfKind::All)?;
        mdns.enable_interface(IfKind::LoopbackV4)?;
        Ok(Self {
            port,
            mdns,
            clock: Clock::system(),
        })
    }

    /// Announces at once: whether the name is free, for which a program waits three quarters of a
    /// second, is not asked.
    async fn announce(&self, name: &str, port: u16) -> Result<()> {
        let record = [
            ("txtvers", "1"),
            ("path", "/api/v1/tools"),
            ("proto", "1.0"),
            ("id", name),
            ("boot", "1"),
        ];
        let kind = format!("{SERVICE_TYPE}.local.");
        let mut service = ServiceInfo::new(
            &kind,
            name,
            "figures.local.",
            "127.0.0.1",
            port,
            &record[..],
        )?;
        service.set_requires_probe(false);
        while let Err(error) = self.mdns.register(service.clone()) {
            // Its queue of commands is short.
            ensure!(
                error == Error::Again,
                "`{name}` cannot be announced: {error}"
            );
            self.clock.sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    async fn goodbye(&self, name: &str) -> Result<()> {
        self.mdns
            .unregister(&format!("{name}.{SERVICE_TYPE}.local."))?
            .recv_async()
            .await?;
        Ok(())
    }
}

/// Waits until the first tool of scenario number `at` is listed, or is not; when that was.
async fn seen(daemon: SocketAddr, at: usize, listed: bool) -> Result<Instant> {
    let clock = Clock::system();
    let end = clock.now() + PATIENCE;
    let path = format!("/api/v1/tools/work_{at:04}_00");
    loop {
        if (raw_http::once(daemon, "GET", &path).await?.status == 200) == listed {
            return Ok(clock.now());
        }
        ensure!(
            clock.now() < end,
            "scenario {at} is not as it should be after {PATIENCE:?}"
        );
        clock.sleep(LOOK).await;
    }
}

async fn come_and_go() -> Result<Vec<Row>> {
    let network = Arc::new(Network::new()?);
    let scenarios = Arc::new(Scenarios::start(ROUNDS, Duration::ZERO)?);
    let daemon = Daemon::listening(&[], network.port)?;
    daemon_list::ready(&daemon).await?;
    let mut listed = Vec::new();
    for (at, scenario) in scenarios.addresses.iter().enumerate() {
        let start = network.clock.now();
        network.announce(&name(at), scenario.port()).await?;
        let came = seen(daemon.address, at, true).await?;
        listed.push(came.duration_since(start).as_secs_f64());
    }
    // A scenario is asked again a second after it was asked at the earliest.
    network.clock.sleep(Duration::from_secs(2)).await;
    let tasks = Tasks::new();
    let address = daemon.address;
    let mut leaving = Vec::new();
    for at in 0..ROUNDS {
        // They are waited for beside each other: a goodbye is heard only a second after it was
        // said.
        let network = Arc::clone(&network);
        let scenarios = Arc::clone(&scenarios);
        leaving.push(tasks.spawn(async move { leave(at, &network, &scenarios, address).await }));
        Clock::system().sleep(APART).await;
    }
    let mut withdrawn = Vec::new();
    for left in leaving {
        withdrawn.push(left.await??);
    }
    Ok(vec![
        spread(
            "network.come",
            "from an announcement on the network to its tools in the list",
            &listed,
        ),
        spread(
            "network.go",
            "from its goodbye to their withdrawal",
            &withdrawn,
        ),
    ])
}

/// One scenario ends and says goodbye; the seconds until its tools are gone.
async fn leave(
    at: usize,
    network: &Network,
    scenarios: &Scenarios,
    daemon: SocketAddr,
) -> Result<f64> {
    scenarios.end(at).await?;
    let end = network.clock.now();
    network.goodbye(&name(at)).await?;
    let went = seen(daemon, at, false).await?;
    Ok(went.duration_since(end).as_secs_f64())
}

async fn crowd() -> Result<Row> {
    let network = Network::new()?;
    let scenarios = Scenarios::start(CROWD, Duration::ZERO)?;
    let daemon = Daemon::listening(&[], network.port)?;
    daemon_list::ready(&daemon).await?;
    let start = network.clock.now();
    for (at, address) in scenarios.addresses.iter().enumerate() {
        network.announce(&name(at), address.port()).await?;
    }
    // None leaves again, so it may be looked for one after the other.
    for at in 0..CROWD {
        seen(daemon.address, at, true).await?;
    }
    let took = start.elapsed().as_secs_f64();
    Ok(row(
        "network.crowd",
        &format!("{CROWD} scenarios of {TOOLS} tools announced at once: until all are listed"),
        took,
        "s",
    ))
}

async fn flood() -> Result<Row> {
    let network = Network::new()?;
    let scenarios = Scenarios::start(1, Duration::ZERO)?;
    let daemon = Daemon::listening(&scenarios.named(), network.port)?;
    daemon_list::ready(&daemon).await?;
    seen(daemon.address, 0, true).await?;
    let before = daemon.child.memory("VmRSS")?;
    let start = network.clock.now();
    for (port, at) in (NOBODY..).zip(0..FLOOD) {
        network.announce(&format!("flood-{at:04}"), port).await?;
    }
    let mut reported = String::new();
    let end = start + PATIENCE;
    loop {
        let finding = untaken(daemon.address).await?;
        if !finding.is_empty() && finding == reported {
            break;
        }
        ensure!(
            network.clock.now() < end,
            "after {PATIENCE:?} it is still counted: {reported}"
        );
        reported = finding;
        // The count is told once a second at most.
        network.clock.sleep(Duration::from_secs(3)).await;
    }
    seen(daemon.address, 0, true).await?;
    let after = daemon.child.memory("VmRSS")?;
    let peak = daemon.child.memory("VmHWM")?;
    let figure = format!(
        "{FLOOD} announcements at once behind which nothing is: resident memory ({reported})"
    );
    Ok(row("network.flood", &figure, after, "MB")
        .note(format!("{before:.0} MB before, peak {peak:.0} MB")))
}

/// The finding that counts what was not taken; empty while there is none.
async fn untaken(daemon: SocketAddr) -> Result<String> {
    let body = raw_http::once(daemon, "GET", "/api/v1/findings?code=entry-ignored")
        .await?
        .body;
    let findings: serde_json::Value = serde_json::from_slice(&body)?;
    let findings = findings["findings"].as_array().context("no findings")?;
    let message = findings
        .iter()
        .filter_map(|finding| finding["message"].as_str())
        .find(|text| text.contains("not taken"));
    Ok(message.unwrap_or_default().to_owned())
}

/// Of some seconds.
fn spread(id: &str, figure: &str, seconds: &[f64]) -> Row {
    let p50 = median(seconds);
    let p99 = percentile(seconds, 99);
    row(id, &format!("{figure}, p50"), p50, "s")
        .note(format!("p99 {p99:.2} s over {}", seconds.len()))
}

fn row(id: &str, figure: &str, ours: f64, unit: &'static str) -> Row {
    println!("{figure}: {ours:.2} {unit}");
    Row::new(id, figure, ours, unit)
}
