//! Checks whether a daemon answers, and which version it has.

use std::net::SocketAddr;
use std::time::Duration;

use super::super::CommandError;
use super::super::client::{self, DaemonClient};
use super::super::instance::DaemonRecord;
use super::report::{CheckArea, DoctorReport};
use crate::config::{LoadOptions, LoadedConfig};

/// How long the process that listens there may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What answers at an address.
pub(super) enum DaemonProbe {
    /// A callsheet daemon of this version.
    Version(String),
    /// Another program, or no answer: the reason as text.
    Other(String),
}

/// Checks whether a callsheet daemon answers.
pub(super) async fn probe(daemon: &DaemonClient) -> DaemonProbe {
    match tokio::time::timeout(PATIENCE, daemon.version()).await {
        Ok(Ok(version)) => DaemonProbe::Version(version),
        Ok(Err(
            CommandError::Problem { message, .. } | CommandError::Unreachable { message, .. },
        )) => DaemonProbe::Other(message),
        Ok(Err(_)) => DaemonProbe::Other("its answer cannot be read".to_owned()),
        Err(_) => DaemonProbe::Other(format!(
            "it accepts connections, but did not answer within {} s",
            PATIENCE.as_secs()
        )),
    }
}

/// The running daemon that follows this configuration, as it says itself.
pub(super) fn recorded(options: &LoadOptions, loaded: &LoadedConfig) -> Option<DaemonClient> {
    DaemonClient::recorded(DaemonRecord::following(options, loaded)?).ok()
}

/// The daemon that runs with this configuration, as it says itself, or else at its listen address.
pub(super) async fn running_at(
    listen: SocketAddr,
    recorded: Option<DaemonClient>,
    report: &mut DoctorReport,
) -> Option<DaemonClient> {
    let at_port = || client::address_of(listen).and_then(DaemonClient::at).ok();
    let daemon = recorded.or_else(|| if listen.port() == 0 { None } else { at_port() })?;
    let DaemonProbe::Version(version) = probe(&daemon).await else {
        return None;
    };
    let message = format!(
        "a callsheet daemon {version} answers; it runs with the configuration that it read before"
    );
    let subject = daemon
        .address_text()
        .trim_start_matches("http://")
        .to_owned();
    report.ok(CheckArea::Port, &subject, message);
    Some(daemon)
}

/// Checks the daemon at the given address; returns it if it answers.
pub(super) async fn check(daemon: DaemonClient, report: &mut DoctorReport) -> Option<DaemonClient> {
    let subject = daemon.address_text().to_owned();
    match probe(&daemon).await {
        DaemonProbe::Version(version) => {
            report.ok(
                CheckArea::Daemon,
                &subject,
                format!("a callsheet daemon {version} answers"),
            );
            Some(daemon)
        }
        DaemonProbe::Other(why) => {
            let hint =
                "start it with `callsheet serve`, or name another with `--url` or `CALLSHEET_URL`";
            report.error(CheckArea::Daemon, &subject, why, hint);
            None
        }
    }
}
