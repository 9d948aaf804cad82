//! `callsheet demo`: four sample scenarios, a daemon for them, and its list. Three are HTTP servers
//! that speak the Tool Discovery Protocol, one of them found by its process file; the fourth is an
//! MCP server that the daemon starts.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::client::{DaemonClient, QueryPairs, address_of};
use super::instance::DaemonRecord;
use super::{CommandError, RemoteArgs, output, scenarios, serve, tools, watchdog};
use crate::app::Callsheet;
use crate::config::{Config, LoadOptions, StaticScenario};
use crate::events::SubscribeRequest;
use crate::model::Target;
use crate::runtime::{Clock, Tasks};

mod follow;
mod mcp_server;
mod samples;

pub(super) use mcp_server::run as run_mcp_server;
use samples::SampleScenario;

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Print what there is and exit, instead of following changes until Ctrl-C.
    #[arg(long)]
    once: bool,
    /// Address to listen on; a free port of this machine by default.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: std::net::SocketAddr,
    /// Seconds after which the weather station alternately stops and starts.
    #[arg(long, value_name = "SECONDS", default_value_t = 12, hide = true)]
    turn: u32,
}

impl DemoArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let clock = Clock::system();
        let tasks = Tasks::new();
        let folder = tempfile::tempdir().context("a folder for the demo's state cannot be made")?;
        let [notes, mail, weather] = samples::start(clock, &tasks).await?;
        let mut config = config(folder.path(), self.listen, &[&notes, &mail], &weather)?;
        config.scenarios.push(mcp_server::scenario()?);
        let listener = serve::bind(self.listen).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let reached_at = address_of(listener.local_addr()?)?.to_string();
        let record = DaemonRecord {
            url: reached_at,
            pid: std::process::id(),
            config: None,
            socket: None,
        };
        let _published = record.publish_demo(&LoadOptions::from_process());
        let app = Callsheet::builder(config)
            .clock(clock)
            .watchdog(watchdog::command())
            .start()
            .await?;
        app.stop_on_signal()?;
        let mut reader = app.reader();
        let shown = async {
            // The static scenarios are awaited by the daemon itself, the one found by its process
            // file is awaited here.
            app.readiness().wait().await;
            let all = async {
                while reader.snapshot().catalog.entries().count() < 4
                    && reader.changed().await.is_some()
                {}
            };
            // What has not answered by now is shown as it is.
            let _ = tokio::time::timeout(Duration::from_secs(10), all).await;
            show(&url).await?;
            if !self.once {
                suggest(&url);
                let turn = Duration::from_secs(self.turn.max(1).into());
                let changes = app
                    .events()
                    .subscribe(SubscribeRequest::default())
                    .await
                    .map_err(anyhow::Error::new)?;
                follow::follow(changes, weather, clock, &tasks, app.stopping(), turn).await;
            }
            app.stop();
            Ok::<_, CommandError>(())
        };
        let (served, shown) = tokio::join!(app.serve(listener), shown);
        served.context("serving HTTP")?;
        app.finish().await;
        shown
    }
}

/// A configuration that touches only the demo: its own state, its own process files, short
/// intervals.
fn config(
    folder: &Path,
    listen: std::net::SocketAddr,
    named: &[&SampleScenario],
    found: &SampleScenario,
) -> Result<Config, CommandError> {
    let mut config = Config::for_state(folder.join("state.db"));
    config.server.listen = listen;
    config.server.stop_timeout = Duration::from_secs(1);
    config.discovery.environment.enabled = false;
    // A demo must not appear on the local network.
    config.discovery.mdns.enabled = false;
    config.discovery.vrooli.path = Some(folder.join("processes"));
    config.refresh.min_interval = Duration::from_secs(2);
    config.refresh.backoff_max = Duration::from_secs(2);
    config.refresh.timeout = Duration::from_secs(2);
    config.health.grace = Duration::from_secs(4);
    for sample in named {
        config.scenarios.push(StaticScenario {
            name: sample.name.clone(),
            target: Target::at(sample.url.clone()),
            protocol: None,
            sleep_after: None,
        });
    }
    let process = folder.join("processes").join(found.name.as_str());
    std::fs::create_dir_all(&process)?;
    let file = json!({
        "pid": std::process::id(), "phase": "develop", "scenario": found.name.as_str(), "step": "start-api",
        "port": found.url.port(), "status": "running",
    });
    std::fs::write(process.join("start-api.json"), file.to_string())?;
    Ok(config)
}

/// Prints the tables as `callsheet scenarios` and `callsheet tools --all` do, over HTTP like them.
async fn show(url: &str) -> Result<(), CommandError> {
    let remote = RemoteArgs {
        url: Some(url.to_owned()),
        config: None,
        json: false,
    };
    let daemon = DaemonClient::from_args(&remote)?;
    output::line(&format!("dashboard: {url}/ (open it in a browser)"));
    output::line(&format!("callsheet listens on {url}\n"));
    let list = daemon
        .get(&["scenarios"], QueryPairs::new(), "scenarios")
        .await?;
    scenarios::show(
        &list.value,
        &scenarios::ScenarioTableStyle::default(),
        Clock::system().wall(),
    );
    output::line("");
    let list = daemon
        .list(vec![("include_disabled", "true".into())])
        .await?;
    tools::show(&list.value);
    Ok(())
}

/// What to try while the demo runs. The program is called as it was here: `cargo run` leaves it
/// where no shell looks for it.
fn suggest(url: &str) {
    let program = std::env::args_os()
        .next()
        .unwrap_or_else(|| "callsheet".into());
    output::line("\ntry in another terminal:");
    output::line(&format!("  curl '{url}/api/v1/tools?format=openai'"));
    output::line(&format!(
        "  {} explain notes/search --url {url}",
        program.display()
    ));
    output::line(&format!(
        "  {} call --url {url} notes/search --words lemons",
        program.display()
    ));
    output::line(&format!(
        "  {} call --url {url} units/convert_length --value 26.2 --from mile --to kilometre",
        program.display()
    ));
}
