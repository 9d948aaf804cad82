//! `callsheet serve`: the daemon.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;

use super::client::address_of;
use super::instance::{DaemonRecord, PublishedRecord};
use super::watchdog;
use super::{CommandError, log, output};
use crate::app::{Callsheet, StopProgress};
use crate::config::{self, LoadOptions, StateConfig};
use crate::runtime::tasks::Finish;
use crate::runtime::{Clock, Stop, open_files, signal};
use crate::server::ServeError;

/// How long a stop may take before it says what it waits for, and how often it says so then.
const FIRST_REPORT: Duration = Duration::from_secs(1);
const NEXT_REPORT: Duration = Duration::from_secs(5);

/// How long the sources may take to find something before the daemon says what to do next.
const FIRST_SOURCES: Duration = Duration::from_secs(1);

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Configuration file, instead of the one that `CALLSHEET_CONFIG` names or that is in the usual
    /// places.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on (`server.listen`); port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Database file (`state.path`).
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// End when there was no client for `mcp.linger`.
    #[arg(long, hide = true)]
    until_unused: bool,
    #[command(flatten)]
    log: log::LogArgs,
}

impl ServeArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let log = self.log.start()?;
        let options = self.options();
        let loaded = config::load(&options)?;
        // A port that is taken is the most common reason not to start, so it is taken first.
        let listener = bind(loaded.config.server.listen).await?;
        let config = loaded.file.clone();
        let configured = loaded.config.static_scenarios().len() + loaded.config.mcp.servers.len();
        let file = loaded
            .file
            .as_ref()
            .map_or_else(|| "none".to_owned(), |path| path.display().to_string());
        let state = loaded.config.state.path.display().to_string();
        let record_state = loaded.config.state.clone();
        let address = listener.local_addr()?;
        let app = Callsheet::builder(loaded.config.clone())
            .watchdog(watchdog::command())
            .start()
            .await?;
        app.follow_configuration(options.clone(), loaded)?;
        app.return_memory();
        let open_files = open_files::raise();
        tracing::info!(configuration = file, state, open_files, "started");
        output::line(&format!("callsheet listens on http://{address}"));
        app.stop_on_signal()?;
        app.notify_service_manager();
        if self.until_unused {
            app.stop_when_unused();
        }
        let record = published(address, &options, config, &record_state);
        let stopping = app.stopping();
        let progress = app.stop_progress();
        let ended = tokio::select! {
            ended = serve(app, listener, configured, record) => ended,
            error = watch_stop(&stopping, &progress) => Err(error),
        };
        log.finish().await;
        ended
    }

    fn options(&self) -> LoadOptions {
        let mut options = LoadOptions::from_process();
        options.file.clone_from(&self.config);
        let flags = [
            ("server.listen", self.listen.clone(), "--listen"),
            (
                "state.path",
                self.state.as_ref().map(|path| path.display().to_string()),
                "--state",
            ),
        ];
        for (key, value, flag) in flags {
            if let Some(value) = value {
                options.flags.push((key.into(), value, flag.into()));
            }
        }
        options
    }
}

/// Serves until the stop, and waits until all has ended.
async fn serve(
    app: Callsheet,
    listener: TcpListener,
    configured: usize,
    record: Option<PublishedRecord>,
) -> Result<(), CommandError> {
    let address = listener.local_addr()?;
    let (served, ()) = tokio::join!(app.serve(listener), greet(&app, configured, address));
    match served {
        // Cut connections are no error here: the operator asked for the stop.
        Err(cut @ ServeError::Cut { .. }) => tracing::warn!("{cut}"),
        served => served.context("serving HTTP")?,
    }
    drop(record);
    match app.finish().await {
        Finish::Clean => tracing::info!("stopped"),
        Finish::Cut(tasks) => tracing::warn!(tasks, "stopped before everything had ended"),
    }
    Ok(())
}

/// Says what a stop waits for while it takes long. Completes at a second signal, as the error of a
/// daemon that ended at once.
async fn watch_stop(stopping: &Stop, progress: &StopProgress) -> CommandError {
    stopping.wait().await;
    let report = async {
        let mut wait = FIRST_REPORT;
        loop {
            Clock::system().sleep(wait).await;
            wait = NEXT_REPORT;
            let awaited = progress.awaited();
            let awaited = if awaited.is_empty() {
                "work that is being saved".to_owned()
            } else {
                awaited.join(", ")
            };
            tracing::warn!(
                "still stopping, waiting for {awaited}; a second Ctrl-C or SIGTERM ends it at once"
            );
        }
    };
    // The first signal has come: this is registered for those after it.
    let second = async {
        match signal::stop_signal() {
            Ok(second) => second.await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        never = report => never,
        name = second => {
            let awaited = progress.awaited().join(", ");
            let error = anyhow::anyhow!("ended at once by a second {name}, without waiting for {awaited}");
            CommandError::Daemon { error, hint: None }
        }
    }
}

/// Prints how many scenarios there are and where the dashboard is; where there is none, what to do
/// next.
async fn greet(app: &Callsheet, configured: usize, address: SocketAddr) {
    let dashboard = address_of(address).map(String::from).unwrap_or_default();
    if configured > 0 {
        let scenarios = output::count(configured, "scenario");
        let are = if configured == 1 { "is" } else { "are" };
        return output::line(&format!(
            "{scenarios} {are} configured; dashboard: {dashboard}"
        ));
    }
    let mut reader = app.reader();
    let found =
        async { while reader.snapshot().health.is_empty() && reader.changed().await.is_some() {} };
    let stop = app.stopping();
    tokio::select! {
        () = stop.wait() => return,
        () = found => {}
        () = Clock::system().sleep(FIRST_SOURCES) => {}
    }
    let found = reader.snapshot().health.len();
    if found > 0 {
        let scenarios = output::count(found, "scenario");
        let were = if found == 1 { "was" } else { "were" };
        return output::line(&format!(
            "no scenario is configured, {scenarios} {were} found; dashboard: {dashboard}"
        ));
    }
    output::line(&format!(
        "no scenario is configured or found yet; dashboard: {dashboard}"
    ));
    output::line("next, in another terminal:");
    for (command, what) in [
        (
            "callsheet init",
            "looks for MCP servers and other scenarios on this machine",
        ),
        (
            "callsheet add NAME ADDRESS",
            "adds a scenario; `callsheet add NAME -- COMMAND` starts one",
        ),
        (
            "callsheet import",
            "takes over the MCP servers of a client's file",
        ),
        ("callsheet demo", "shows callsheet at work with samples"),
    ] {
        output::line(&format!("  {command:<28}{what}"));
    }
}

/// Says where the daemon is, for commands in any folder.
fn published(
    address: SocketAddr,
    options: &LoadOptions,
    config: Option<PathBuf>,
    state: &StateConfig,
) -> Option<PublishedRecord> {
    let url = address_of(address).ok()?.to_string();
    let socket = std::path::absolute(state.command_socket()).ok();
    let record = DaemonRecord {
        url,
        pid: std::process::id(),
        config,
        socket,
    };
    Some(record.publish(options, state))
}

/// Binds the address, or returns why it cannot be bound.
pub(super) async fn bind(listen: SocketAddr) -> Result<TcpListener, CommandError> {
    TcpListener::bind(listen).await.map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AddrInUse => "another program listens there, perhaps a callsheet daemon (`callsheet doctor` names it); stop that one, or",
            ErrorKind::AddrNotAvailable => "this machine has no such address;",
            ErrorKind::PermissionDenied => "this user may not use that port;",
            _ => "",
        };
        let hint = format!("{why} use `--listen` for another address, where port 0 takes a free one");
        let error = anyhow::Error::new(error).context(format!("cannot listen on {listen}"));
        CommandError::Daemon { error, hint: Some(hint.trim_start().to_owned()) }
    })
}
