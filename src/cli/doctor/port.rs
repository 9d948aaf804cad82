//! Checks the listen address: free, used by a callsheet daemon, or used by another program.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};

use super::super::client::{self, DaemonClient};
use super::daemon::{self, DaemonProbe};
use super::port_owner;
use super::report::{CheckArea, DoctorReport};

/// Checks the address, and returns the daemon that answers there, if any. `recorded` is the daemon
/// of this configuration that runs, as it says itself: it may have taken a free port.
pub(super) async fn check(
    listen: SocketAddr,
    recorded: Option<DaemonClient>,
    report: &mut DoctorReport,
) -> Option<DaemonClient> {
    let subject = listen.to_string();
    if let Some(daemon) = recorded.filter(|daemon| !is_at(listen, daemon))
        && let DaemonProbe::Version(version) = daemon::probe(&daemon).await
    {
        let message = match listen.port() {
            0 => format!(
                "a callsheet daemon {version} answers, at the port that it took when it started"
            ),
            _ => format!(
                "a callsheet daemon {version} answers; it was started for this address, not for {listen}"
            ),
        };
        report.ok(CheckArea::Port, daemon.address_text(), message);
        return Some(daemon);
    }
    if listen.port() == 0 {
        report.ok(
            CheckArea::Port,
            &subject,
            "a free port is taken at each start; no daemon of this configuration runs",
        );
        return None;
    }
    match bindable(listen) {
        Ok(()) => report.ok(CheckArea::Port, &subject, "free; no daemon runs there"),
        Err(error) if error.kind() == ErrorKind::AddrInUse => return taken(listen, report).await,
        Err(error) => {
            let hint = match error.kind() {
                ErrorKind::AddrNotAvailable => {
                    "this machine has no such address: set `server.listen` to one it has"
                }
                ErrorKind::PermissionDenied => {
                    "this user may not use that port: set `server.listen` to one above 1023"
                }
                _ => "set `server.listen` to another address",
            };
            report.error(
                CheckArea::Port,
                &subject,
                format!("cannot be listened on: {error}"),
                hint,
            );
        }
    }
    None
}

/// Whether this is the daemon at the listen address. `--listen` or a variable may have given it
/// another one.
fn is_at(listen: SocketAddr, daemon: &DaemonClient) -> bool {
    client::address_of(listen)
        .is_ok_and(|url| url.as_str().trim_end_matches('/') == daemon.address_text())
}

/// Whether a daemon could listen there. The address is bound without listening, so a daemon that
/// starts at this moment can still use it.
fn bindable(listen: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(listen), Type::STREAM, None)?;
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.bind(&listen.into())
}

async fn taken(listen: SocketAddr, report: &mut DoctorReport) -> Option<DaemonClient> {
    let subject = listen.to_string();
    let owner = port_owner::process_on_port(listen)
        .map(|process| format!("{process} "))
        .unwrap_or_default();
    let daemon = client::address_of(listen).and_then(DaemonClient::at).ok()?;
    match daemon::probe(&daemon).await {
        DaemonProbe::Version(version) => {
            report.ok(
                CheckArea::Port,
                &subject,
                format!("a callsheet daemon {version} answers {owner}").trim_end(),
            );
            Some(daemon)
        }
        DaemonProbe::Other(why) => {
            let owner = if owner.is_empty() {
                "another program "
            } else {
                &owner
            };
            let hint = "stop it, or set `server.listen` to another address";
            report.error(
                CheckArea::Port,
                &subject,
                format!("{owner}listens there: {why}"),
                hint,
            );
            None
        }
    }
}
