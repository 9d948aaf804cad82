//! Starts a daemon for the clients that `callsheet mcp` serves, if none runs.
//!
//! Clients start together, so one of them starts the daemon under a lock and the others wait for
//! it. The daemon is a process of its own, which outlives the client that started it, and ends by
//! itself when it has had no client for `mcp.linger`. The working folder of a client plays no part:
//! a file of a project must not decide what is started.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::{Child, Command};

use super::client::DaemonClient;
use super::instance::{DaemonRecord, private_folder};
use super::{CommandError, RemoteArgs};
use crate::config::LoadOptions;
use crate::runtime::{Clock, Tasks};

/// How long a daemon may take until it answers; its store may have to be repaired.
const START_TIME_MAX: Duration = Duration::from_secs(60);
/// How often it is looked for meanwhile.
const START_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// How often a client shows that it is there; a daemon closes connections without requests after 30
/// s.
const PRESENT: Duration = Duration::from_secs(10);
/// The most lines of the log of a daemon that did not start that are shown.
const LAST_LINES: usize = 5;
/// How a daemon that is started for its clients only knows that.
pub(super) const UNTIL_UNUSED: &str = "--until-unused";

/// The options of a client: the working folder does not count.
pub(super) fn options() -> LoadOptions {
    LoadOptions {
        cwd: PathBuf::from("/"),
        ..LoadOptions::from_process()
    }
}

/// The daemon of this user, started now if none runs. One that is named by its address is never
/// started.
pub(super) async fn daemon(remote: &RemoteArgs) -> Result<DaemonClient, CommandError> {
    if remote.address().is_some() {
        return DaemonClient::for_operator_in(remote, LoadOptions::from_process());
    }
    if let Some(daemon) = answering(remote).await? {
        return Ok(daemon);
    }
    let no_folder = || CommandError::Unreachable {
        message: "no daemon runs, and there is no home folder to start one in".to_owned(),
        hint: "start one with `callsheet serve`, and name it with `--url`".to_owned(),
    };
    let folder = options().runtime_folder().ok_or_else(no_folder)?;
    private_folder(&folder)?;
    let lock = folder.join("start.lock");
    // Held until this function returns; the system gives it back when this process ends.
    let _lock = Tasks::new().blocking(move || locked(&lock)).await?;
    if let Some(daemon) = answering(remote).await? {
        return Ok(daemon);
    }
    let log = folder.join("started.log");
    let started = start(remote.config.as_deref(), &log)?;
    wait(remote, started, &log).await
}

/// Is a client of the daemon until it is dropped: a connection stays open, so that a daemon that
/// was started for its clients goes on. One that was killed meanwhile is started again.
pub(super) async fn stay(client: Arc<DaemonClient>, remote: RemoteArgs) {
    loop {
        if client.version().await.is_err() && remote.address().is_none() {
            // What went wrong is the answer to the next request.
            let _ = daemon(&remote).await;
        }
        Clock::system().sleep(PRESENT).await;
    }
}

/// The daemon, if it answers. A configuration that cannot be used is an error.
async fn answering(remote: &RemoteArgs) -> Result<Option<DaemonClient>, CommandError> {
    let daemon = match DaemonClient::for_operator_in(remote, options()) {
        Ok(daemon) => daemon,
        Err(CommandError::Unreachable { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    match daemon.version().await {
        Ok(_) => Ok(Some(daemon)),
        Err(CommandError::Unreachable { .. }) if DaemonRecord::of_user(&options()).is_none() => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn locked(path: &Path) -> std::io::Result<File> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    file.lock()?;
    Ok(file)
}

/// Starts a daemon whose log goes to a file of its own.
fn start(config: Option<&Path>, log: &Path) -> Result<Child, CommandError> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve").arg(UNTIL_UNUSED).current_dir("/");
    if let Some(config) = config {
        command.arg("--config").arg(std::path::absolute(config)?);
    }
    if std::env::var_os("CALLSHEET_LOG").is_none() {
        // The file is not rotated.
        command.env("CALLSHEET_LOG", "warn");
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(log)?);
    #[cfg(unix)]
    // A signal to the group of the client does not end it.
    command.process_group(0);
    Ok(command.spawn()?)
}

/// Waits until the daemon answers, or has ended.
async fn wait(
    remote: &RemoteArgs,
    mut started: Child,
    log: &Path,
) -> Result<DaemonClient, CommandError> {
    let clock = Clock::system();
    let deadline = clock.now() + START_TIME_MAX;
    let failed = |what: &str| {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ");
        CommandError::Unreachable {
            message: format!(
                "the daemon {what}{}{last}",
                if last.is_empty() { "" } else { ": " }
            ),
            hint: format!(
                "run `callsheet serve` to see why; its log is {}",
                log.display()
            ),
        }
    };
    loop {
        let is_there = DaemonRecord::of_user(&options())
            .is_some_and(|record| Some(record.pid) == started.id());
        if is_there && let Some(daemon) = answering(remote).await? {
            return Ok(daemon);
        }
        if started.try_wait()?.is_some() {
            return Err(failed("that was started ended at once"));
        }
        if clock.now() >= deadline {
            return Err(failed(&format!(
                "that was started did not answer within {} s",
                START_TIME_MAX.as_secs()
            )));
        }
        clock.sleep(START_CHECK_INTERVAL).await;
    }
}
