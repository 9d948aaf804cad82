//! Where the daemon is that the clients on this machine use. A mistake in the configuration does
//! not stop them: a daemon that runs has an earlier one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use url::Url;

use crate::cli::instance::{self, DaemonRecord};
use crate::cli::{CommandError, RemoteArgs, output};
use crate::config::{self, ClientConfig, ConfigError, Diagnostic, LoadOptions, LoadedConfig, ValueOrigin};

/// Where the daemon of this user is: where a running one says it is, unless another configuration
/// is meant that names its own address. A mistake in the configuration does not stop the clients of
/// a daemon that runs with an earlier one.
///
/// What only this process lacks is no mistake here. It is returned as a doubt, which the daemon
/// settles.
pub(super) fn located(remote: &RemoteArgs, mut options: LoadOptions) -> Result<LocatedDaemon, CommandError> {
    options.file.clone_from(&remote.config);
    let ClientConfig { loaded, problems, process_problems } = config::load_for_client(&options);
    let running = DaemonRecord::running(&options);
    let is_in_doubt = problems.is_empty() && !process_problems.is_empty();
    note(problems, running.is_some())?;
    let DaemonAddress { url, socket } = address(&loaded, running)?;
    Ok(LocatedDaemon { url, socket, is_in_doubt })
}

/// The daemon that the clients on this machine use.
pub(super) struct LocatedDaemon {
    /// Its address.
    pub(super) url: Url,
    /// The Unix socket on which it listens too.
    pub(super) socket: Option<PathBuf>,
    /// Whether this process lacks what the configuration names, so that only the daemon knows
    /// whether it can be used.
    pub(super) is_in_doubt: bool,
}

/// Where a daemon is reached.
struct DaemonAddress {
    url: Url,
    /// The Unix socket on which it listens too.
    socket: Option<PathBuf>,
}

impl DaemonAddress {
    /// Where the daemon that runs says it is.
    fn recorded(record: DaemonRecord) -> Result<Self, CommandError> {
        let socket = record.socket.filter(|socket| instance::serves(socket));
        Ok(Self { url: parse_url(&record.url)?, socket })
    }
}

/// Where the daemon is that runs, or else the configured one.
fn address(loaded: &LoadedConfig, running: Option<DaemonRecord>) -> Result<DaemonAddress, CommandError> {
    let of_variable = loaded
        .values
        .iter()
        .any(|value| value.key == "server.listen" && matches!(value.origin, ValueOrigin::Environment(_)));
    let listen = loaded.config.server.listen;
    // A variable with an address names the daemon there, and not the one that has the state.
    let socket = (!of_variable).then(|| loaded.config.state.command_socket());
    match running {
        Some(record) if record.follows(loaded.file.as_deref()) && !of_variable => DaemonAddress::recorded(record),
        Some(record) => match configured(listen) {
            Ok(url) if instance::accepts(&url) => {
                let is_other = |socket: &PathBuf| record.socket.as_ref() != Some(socket) && instance::serves(socket);
                Ok(DaemonAddress { url, socket: socket.filter(is_other) })
            }
            _ => DaemonAddress::recorded(record),
        },
        None => {
            let socket = socket.filter(|socket| instance::serves(socket));
            Ok(DaemonAddress { url: configured(listen)?, socket })
        }
    }
}

/// The address at which a daemon that listens there is reached.
fn configured(listen: SocketAddr) -> Result<Url, CommandError> {
    if listen.port() == 0 {
        return Err(CommandError::Unreachable {
            message: "no daemon of this user runs".to_owned(),
            hint: "start one with `callsheet serve`, or name another with `--url` or `CALLSHEET_URL`".into(),
        });
    }
    address_of(listen)
}

/// Prints the mistake beside the output. Fails if it leaves no address at which a daemon can be
/// tried.
fn note(problems: Vec<Diagnostic>, is_running: bool) -> Result<(), CommandError> {
    if !is_running && problems.iter().any(|problem| problem.key.as_deref() == Some("server.listen")) {
        return Err(ConfigError { problems }.into());
    }
    if let Some(problem) = problems.first() {
        note_unusable(&problem.line(), &problem.hint, is_running);
    }
    Ok(())
}

/// Prints one problem of the configuration beside the output.
pub(super) fn note_unusable(message: &str, hint: &str, is_running: bool) {
    let problem = output::sanitize(&format!("{message} ({hint})"));
    let running = if is_running { ", and the running daemon has an earlier one" } else { "" };
    output::note(&format!("the configuration cannot be used{running}: {problem}"));
}

/// The address at which what listens there is reached from this machine.
pub(in crate::cli) fn address_of(mut listen: SocketAddr) -> Result<Url, CommandError> {
    if listen.ip().is_unspecified() {
        let loopback: IpAddr = if listen.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        listen.set_ip(loopback);
    }
    parse_url(&format!("http://{listen}"))
}

/// Reads the address of a daemon as people write it.
pub(in crate::cli) fn parse_url(text: &str) -> Result<Url, CommandError> {
    config::web_address(text).ok_or_else(|| CommandError::Usage {
        message: format!("`{text}` is not the address of a daemon"),
        hint: "write it like http://127.0.0.1:7400".into(),
    })
}
