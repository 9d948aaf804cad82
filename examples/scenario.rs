//! A scenario in one file: offers a tool, announces itself on the local network, and says goodbye
//! when it is asked to stop.
//!
//! `cargo run --example scenario -- library 192.168.1.20:8123 9d0f6a2e-5a53-4a53-8f83-0c4b8a5a4f6d`.
//! The third argument says who it is wherever it runs; without it nothing is announced.

#![allow(clippy::print_stdout, reason = "a program that tells its address")]

use anyhow::{Context as _, Result};
use callsheet::provide::{
    self, Announcement, Parameter, Registry, RegistryConfig, StaticProvider, ToolDefinition,
};
use callsheet::runtime::{StopTrigger, signal};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, listen, id @ ..] = arguments.as_slice() else {
        anyhow::bail!("scenario NAME ADDRESS [ID]")
    };

    let about = RegistryConfig {
        scenario_name: name.clone(),
        scenario_version: "1.0.0".into(),
        scenario_description: "Lends books".into(),
        ..RegistryConfig::default()
    };
    let registry = Registry::new(about)?;
    let find = ToolDefinition::new(format!("{name}_find"), "Finds books by their title")?
        .parameter("title", Parameter::string("A part of the title").required());
    registry.register(StaticProvider::new("books").tool(find));

    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}"))?;
    let address = listener.local_addr()?;
    let announced = match id {
        [id, ..] => Some(Announcement::new(name, address, id).start().await?),
        [] => None,
    };
    println!("{address}");
    let (trigger, stop) = StopTrigger::new();
    let stop_requested = signal::stop_signal()?;
    let goodbye = async {
        stop_requested.await;
        trigger.stop();
        if let Some(announced) = announced {
            announced.goodbye().await;
        }
    };
    tokio::join!(
        provide::serve(listener, registry, async move { stop.wait().await }),
        goodbye
    )
    .0?;
    Ok(())
}
