//! `callsheet doctor`: what keeps the daemon or a scenario from working, and what to do about it.
//!
//! ```text
//! configuration -> port -> socket -> state -> mdns -> proxy -> scenarios -> approvals
//!       | cannot be used                each adds to DoctorReport: ok, skipped, warning, error
//!       `-> daemon (one that runs with an earlier configuration) -> scenarios -> approvals
//! ```
//!
//! What is kept true here:
//!
//! - The checks only read: they create no file, send no message to the local network, fetch only
//!   the tools of scenarios, and request no tunnel of a proxy.
//! - A check whose requirement is missing is reported as skipped.
//! - What is wrong has a next step beside it.
//!
//! Read in this order: this file (the order of the checks), `report.rs`, then one file per check:
//! `configuration.rs`, `port.rs` with `port_owner.rs`, `socket.rs`, `state.rs`, `mdns.rs`,
//! `proxy.rs`, `scenarios.rs`, `approvals.rs`; `daemon.rs` finds the daemon that they speak to.

use std::path::{Path, PathBuf};

use clap::Args;

use self::report::{CheckArea, DoctorReport};
use super::client::DaemonClient;
use super::{CommandError, named_address, parse_named};
use crate::config::{Config, LoadOptions};

mod approvals;
mod configuration;
mod daemon;
mod mdns;
mod port;
mod port_owner;
mod proxy;
mod report;
mod scenarios;
mod socket;
mod state;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Address of a daemon to ask for its scenarios; by default `CALLSHEET_URL`, or the configured
    /// listen address.
    #[arg(long, value_name = "URL", help_heading = "Daemon")]
    url: Option<String>,
    /// Configuration file, as `serve` takes it.
    #[arg(long, value_name = "FILE", help_heading = "Daemon")]
    config: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl DoctorArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let mut report = DoctorReport::default();
        let mut options = LoadOptions::from_process();
        options.file.clone_from(&self.config);
        let (loaded, usable) = configuration::check(&options, &mut report);
        let config = &loaded.config;
        if usable {
            let here = port::check(
                config.server.listen,
                daemon::recorded(&options, &loaded),
                &mut report,
            )
            .await;
            let here = socket::check(config, here, &mut report).await;
            let named = self.named(&mut report).await?;
            let daemon = named.as_ref().or(here.as_ref());
            state::check(&config.state.path, here.is_some(), &mut report);
            mdns::check(&config.discovery.mdns, &mut report);
            proxy::check(&config.network, config.refresh.connect_timeout, &mut report).await;
            scenarios::check(config, daemon, &mut report).await;
            approvals::check(daemon, &mut report).await;
        } else {
            self.check_running(config, daemon::recorded(&options, &loaded), &mut report)
                .await?;
        }
        if self.json {
            report.print_json();
        } else {
            report.print();
        }
        match (usable, report.errors()) {
            (false, _) => Err(CommandError::FoundConfig),
            (true, 0) => Ok(()),
            (true, _) => Err(CommandError::Found),
        }
    }

    /// Checks what a daemon knows that runs with an earlier configuration. `config` is what can be
    /// used of the written one.
    async fn check_running(
        &self,
        config: &Config,
        recorded: Option<DaemonClient>,
        report: &mut DoctorReport,
    ) -> Result<(), CommandError> {
        let daemon = match self.named(report).await? {
            Some(daemon) => Some(daemon),
            None => daemon::running_at(config.server.listen, recorded, report).await,
        };
        let skipped: &[CheckArea] = match &daemon {
            Some(_) => &[CheckArea::State, CheckArea::Mdns],
            None => &[
                CheckArea::Port,
                CheckArea::State,
                CheckArea::Mdns,
                CheckArea::Scenarios,
            ],
        };
        for check in skipped {
            let hint = "fix the configuration first";
            report.skipped(
                *check,
                "",
                "not checked: the configuration cannot be used",
                hint,
            );
        }
        if daemon.is_some() {
            scenarios::check(config, daemon.as_ref(), report).await;
            approvals::check(daemon.as_ref(), report).await;
        }
        Ok(())
    }

    /// The daemon that an argument or the environment names, if it answers.
    async fn named(&self, report: &mut DoctorReport) -> Result<Option<DaemonClient>, CommandError> {
        let Some(url) = named_address(self.url.as_deref()) else {
            return Ok(None);
        };
        let url = parse_named(self.url.as_deref(), &url)?;
        Ok(daemon::check(DaemonClient::at(url)?, report).await)
    }
}

/// A path as text.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
