//! Checks the Unix socket of the command line, beside the state.

use super::super::client::{self, DaemonClient};
use super::super::instance::{self, DaemonRecord};
use super::daemon::{self, DaemonProbe};
use super::report::{CheckArea, DoctorReport};
use super::shown;
use crate::config::{Config, LoadOptions};
use crate::state::sqlite;

/// Checks the socket. `here` is the daemon that answers at its address; returns it, or else the one
/// that answers on the socket.
pub(super) async fn check(
    config: &Config,
    here: Option<DaemonClient>,
    report: &mut DoctorReport,
) -> Option<DaemonClient> {
    let path = config.state.command_socket();
    let subject = shown(&path);
    if !instance::serves(&path) {
        match &here {
            Some(daemon) if has_state(config, daemon) => {
                let message = "the running daemon does not listen there; commands reach it by its address only";
                let hint = "the log of the daemon has the reason; a path that is too long needs another `state.path`";
                report.warning(CheckArea::Socket, &subject, message, hint);
            }
            Some(daemon) => {
                let message = format!(
                    "not used: the daemon at {} has another state",
                    daemon.address_text()
                );
                report.ok(CheckArea::Socket, &subject, message);
            }
            None => {}
        }
        return here;
    }
    let by_socket = client::address_of(config.server.listen).and_then(DaemonClient::at);
    let Ok(by_socket) = by_socket.and_then(|daemon| daemon.with_socket(&path)) else {
        return here;
    };
    match daemon::probe(&by_socket).await {
        DaemonProbe::Version(version) => {
            let message = format!(
                "a callsheet daemon {version} answers, also while all its connections are in use"
            );
            report.ok(CheckArea::Socket, &subject, message);
            Some(here.unwrap_or(by_socket))
        }
        DaemonProbe::Other(why) => {
            let hint = "look at the log of the daemon, or start it again";
            report.error(CheckArea::Socket, &subject, why, hint);
            here
        }
    }
}

/// Whether this daemon has the state of the configuration: a process has it, and the daemon did not
/// record itself as another process. That of `callsheet demo`, or of another configuration, may
/// answer at the same address.
fn has_state(config: &Config, daemon: &DaemonClient) -> bool {
    let Some(holder) = sqlite::holder(&config.state.path) else {
        return false;
    };
    let recorded = DaemonRecord::at(
        daemon.address_text(),
        &LoadOptions::from_process(),
        &config.state,
    );
    let recorded = recorded.map(|record| record.pid);
    recorded.is_none() || holder.process.is_none() || recorded == holder.process
}
