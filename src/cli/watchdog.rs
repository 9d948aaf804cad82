//! `callsheet watchdog`: the process beside a daemon that ends the daemon's child processes when it
//! was killed. The daemon starts it; the help does not show it.

use super::CommandError;
use crate::transports::stdio::watchdog::{self, WatchdogCommand};

/// The name of this command.
const NAME: &str = "watchdog";

/// How the daemon starts it.
pub(super) fn command() -> Option<WatchdogCommand> {
    WatchdogCommand::of_this_program(&[NAME])
}

/// Runs until the daemon has ended.
pub(super) async fn run() -> Result<(), CommandError> {
    Ok(watchdog::run().await?)
}
