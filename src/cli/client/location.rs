//! Where the daemon is that the clients on this machine use. A mistake in the configuration does
//! not stop them: a daemon that runs has an earlier one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::Url;

use crate::cli::instance::{self, DaemonRecord};
use crate::cli::{CommandError, RemoteArgs, output};
use crate::config::{
    self, ClientConfig, ConfigError, Diagnostic, LoadOptions, LoadedConfig, ValueOrigin,
};

/// Where the daemon is that this configuration names: where a running one with this configuration
/// says it is, or else where the configuration says. A mistake in the configuration does not stop
/// the clients of a daemon that runs with an earlier one.
///
/// What only this process lacks is no mistake here. It is returned as a doubt, which the daemon
/// settles.
pub(super) fn located(
    remote: &RemoteArgs,
    mut options: LoadOptions,
) -> Result<LocatedDaemon, CommandError> {
    options.file.clone_from(&remote.config);
    let ClientConfig {
        loaded,
        problems,
        process_problems,
    } = config::load_for_client(&options);
    let following = DaemonRecord::following(&options, &loaded);
    let running = following
        .clone()
        .or_else(|| DaemonRecord::of_user(&options))
        .or_else(|| DaemonRecord::of_state(&loaded.config.state));
    let is_in_doubt = problems.is_empty() && !process_problems.is_empty();
    note(problems, running.is_some())?;
    // A variable with an address names the daemon there.
    let following = following.filter(|_| !names_address(&loaded));
    let address = match following {
        Some(record) => DaemonAddress::Recorded(record),
        None => other_address(&loaded, running)?,
    };
    Ok(LocatedDaemon {
        address,
        is_in_doubt,
    })
}

/// The daemon that the clients on this machine use.
pub(super) struct LocatedDaemon {
    /// Where it is.
    pub(super) address: DaemonAddress,
    /// Whether this process lacks what the configuration names, so that only the daemon knows
    /// whether it can be used.
    pub(super) is_in_doubt: bool,
}

/// Where a daemon is reached.
pub(super) enum DaemonAddress {
    /// Where a running one says it is.
    Recorded(DaemonRecord),
    /// Where the configuration lets one listen.
    Configured(Url),
}

/// Whether a variable of the environment has the listen address.
fn names_address(loaded: &LoadedConfig) -> bool {
    let mut values = loaded.values.iter();
    values.any(|value| {
        value.key == "server.listen" && matches!(value.origin, ValueOrigin::Environment(_))
    })
}

/// Where the daemon is when none runs that follows this configuration. A daemon that runs with
/// another one is used only if no program listens at the configured address.
fn other_address(
    loaded: &LoadedConfig,
    running: Option<DaemonRecord>,
) -> Result<DaemonAddress, CommandError> {
    match (configured(loaded.config.server.listen), running) {
        (Ok(url), Some(record)) if !instance::accepts(&url) => Ok(DaemonAddress::Recorded(record)),
        (Ok(url), _) => Ok(DaemonAddress::Configured(url)),
        (Err(_), Some(record)) => Ok(DaemonAddress::Recorded(record)),
        (Err(error), None) => Err(error),
    }
}

/// The address at which a daemon that listens there is reached.
fn configured(listen: SocketAddr) -> Result<Url, CommandError> {
    if listen.port() == 0 {
        return Err(CommandError::Unreachable {
            message: "no daemon of this user runs".to_owned(),
            hint: without_daemon(false),
        });
    }
    address_of(listen)
}

/// The next step where no daemon answers. `is_named` says that the caller gave the address.
pub(super) fn without_daemon(is_named: bool) -> String {
    match DaemonRecord::of_demo(&LoadOptions::from_process()) {
        Some(demo) => {
            let url = demo.url.trim_end_matches('/');
            let way = if is_named {
                format!("name `{url}` in its place")
            } else {
                format!("add `--url {url}`")
            };
            format!(
                "{way} to reach the demo that runs there, or start a daemon with `callsheet serve`"
            )
        }
        None => "start one with `callsheet serve`, or name another with `--url` or `CALLSHEET_URL`"
            .to_owned(),
    }
}

/// Prints the mistake beside the output. Fails if it leaves no address at which a daemon can be
/// tried.
fn note(problems: Vec<Diagnostic>, is_running: bool) -> Result<(), CommandError> {
    if !is_running
        && problems
            .iter()
            .any(|problem| problem.key.as_deref() == Some("server.listen"))
    {
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
    let running = if is_running {
        ", and the running daemon has an earlier one"
    } else {
        ""
    };
    output::note(&format!(
        "the configuration cannot be used{running}: {problem}"
    ));
}

/// The address at which what listens there is reached from this machine.
pub(in crate::cli) fn address_of(mut listen: SocketAddr) -> Result<Url, CommandError> {
    if listen.ip().is_unspecified() {
        let loopback: IpAddr = if listen.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        };
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
