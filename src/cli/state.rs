//! `callsheet state export` and `callsheet state import`: a copy of what outlives the daemon, and
//! the way back. They work on the files themselves, so that they need no daemon. An export may be
//! made beside a running one.
//!
//! `callsheet state accept-loss` tells a running daemon that an operator accepts what was lost.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::client::{DaemonClient, QueryPairs};
use super::{CommandError, RemoteArgs, output};
use crate::config::{self, LoadOptions};
use crate::model::WithNextStep as _;
use crate::runtime::Clock;
use crate::state::{StateError, sqlite};

/// Arguments of `state`.
#[derive(Debug, Args)]
pub(super) struct StateArgs {
    #[command(subcommand)]
    command: StateCommand,
}

#[derive(Debug, Subcommand)]
enum StateCommand {
    /// Write a copy of the state to a new file. A daemon may be running.
    Export(CopyArgs),
    /// Accept that stored decisions were lost when the state was damaged: tools are called again.
    AcceptLoss(AcceptLossArgs),
    /// Replace the state by an exported copy. The daemon must be stopped; the replaced state is
    /// kept beside the new one.
    Import(CopyArgs),
}

#[derive(Debug, Args)]
struct AcceptLossArgs {
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Args)]
struct CopyArgs {
    /// The exported file. The daemon's identity is kept beside it in `FILE.id`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Configuration file to take `state.path` from, as `serve` takes it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Database file (`state.path`).
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    state: Option<PathBuf>,
}

impl StateArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        match self.command {
            StateCommand::AcceptLoss(AcceptLossArgs { remote }) => accept_loss(&remote).await,
            StateCommand::Export(copy) => copy.export(),
            StateCommand::Import(copy) => copy.import(),
        }
    }
}

/// Tells the daemon that the loss is accepted.
async fn accept_loss(remote: &RemoteArgs) -> Result<(), CommandError> {
    let daemon = DaemonClient::for_operator(remote)?;
    let path = ["state", "accept-loss"];
    let answer = daemon
        .send(
            http::Method::POST,
            &path,
            QueryPairs::new(),
            None,
            "accepted",
        )
        .await?;
    if remote.json {
        output::answer(&answer.body, &answer.value);
        return Ok(());
    }
    match output::text(&answer.value, "/lost") {
        lost if lost.is_empty() => {
            output::line("no stored decision was lost; tools are called as before");
        }
        lost => output::line(&format!("accepted, tools are called again: {lost}")),
    }
    Ok(())
}

impl CopyArgs {
    fn export(&self) -> Result<(), CommandError> {
        let state = self.state()?;
        sqlite::export(&state, &self.file).map_err(|error| refused(&error))?;
        output::line(&format!(
            "exported `{}` to `{}`",
            shown(&state),
            shown(&self.file)
        ));
        Ok(())
    }

    fn import(&self) -> Result<(), CommandError> {
        let state = self.state()?;
        let replaced =
            sqlite::import(&state, &self.file, Clock::system()).map_err(|error| refused(&error))?;
        output::line(&format!(
            "imported `{}` into `{}`",
            shown(&self.file),
            shown(&state)
        ));
        if let Some(replaced) = replaced {
            output::note(&format!(
                "the state that was there before is `{}`",
                shown(&replaced)
            ));
        }
        Ok(())
    }

    /// The database that `serve` would use.
    fn state(&self) -> Result<PathBuf, CommandError> {
        if let Some(state) = &self.state {
            return Ok(state.clone());
        }
        let mut options = LoadOptions::from_process();
        options.file.clone_from(&self.config);
        Ok(config::load(&options)?.config.state.path)
    }
}

/// The error as the command line prints it: what happened, and the next step as the hint.
fn refused(error: &StateError) -> CommandError {
    CommandError::Refused {
        message: error.what_is_wrong(),
        hint: error.next_step().map(Cow::into_owned),
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
