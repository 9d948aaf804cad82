//! A host full of scenarios, for trying out what a daemon makes of them: offers a tool in each of
//! many scenarios and announces all of them at once, and besides announces others behind which
//! nothing is.
//!
//! `cargo run --example crowd -- 192.168.1.20 200 0` has 200 scenarios, `... 0 5000` is a flood of
//! 5,000 announcements. It prints a line once all are announced.

#![allow(clippy::print_stdout, reason = "a program that tells when it is ready")]

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result};
use callsheet::discovery::mdns::SERVICE_TYPE;
use callsheet::provide::{self, Registry, RegistryConfig, StaticProvider, ToolDefinition};
use callsheet::runtime::{Clock, StopTrigger, Tasks, signal};
use mdns_sd::{Error, ServiceDaemon, ServiceInfo};
use tokio::net::TcpListener;

/// How long a full queue of commands is waited for.
const QUEUE_WAIT: Duration = Duration::from_millis(1);
/// The first of the ports at which nothing listens.
const NOBODY: u16 = 20_000;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, served, empty] = arguments.as_slice() else {
        anyhow::bail!("crowd ADDRESS SERVED EMPTY")
    };
    let address = address.parse::<IpAddr>()?;
    let served = served.parse::<u16>()?;
    let empty = empty.parse::<u16>()?;
    let clock = Clock::system();
    let tasks = Tasks::new();
    let (trigger, stop) = StopTrigger::new();

    let mut services = Vec::new();
    for at in 0..served {
        let name = format!("crowd-{at:04}");
        let listener = TcpListener::bind(SocketAddr::new(address, 0))
            .await
            .context("cannot listen")?;
        services.push((name.clone(), listener.local_addr()?.port()));
        let about = RegistryConfig {
            scenario_name: name,
            scenario_version: "1.0.0".into(),
            ..RegistryConfig::default()
        };
        let registry = Registry::new(about)?;
        let find = ToolDefinition::new(format!("find_{at:04}"), "Finds books by their title")?;
        registry.register(StaticProvider::new("books").tool(find));
        tasks.spawn(provide::serve(listener, registry, {
            let stop = stop.clone();
            async move { stop.wait().await }
        }));
    }
    services.extend((0..empty).map(|at| (format!("empty-{at:04}"), NOBODY + at)));

    let mdns = ServiceDaemon::new()?;
    for (name, port) in &services {
        let service = service(name, address, *port)?;
        while let Err(error) = mdns.register(service.clone()) {
            // Its queue of commands is short.
            anyhow::ensure!(
                error == Error::Again,
                "`{name}` cannot be announced: {error}"
            );
            clock.sleep(QUEUE_WAIT).await;
        }
    }
    let stop_requested = signal::stop_signal()?;
    println!("{} announced", services.len());
    stop_requested.await;
    trigger.stop();
    // It says goodbye for all of them.
    mdns.shutdown()?.recv_async().await?;
    Ok(())
}

fn service(name: &str, address: IpAddr, port: u16) -> Result<ServiceInfo> {
    let record = [
        ("txtvers", "1"),
        ("path", "/api/v1/tools"),
        ("proto", "1.0"),
        ("id", name),
        ("boot", "1"),
    ];
    let kind = format!("{SERVICE_TYPE}.local.");
    let mut service =
        ServiceInfo::new(&kind, name, "crowd-host.local.", address, port, &record[..])?;
    // The names are this program's own: whether they are free need not be asked.
    service.set_requires_probe(false);
    Ok(service)
}
