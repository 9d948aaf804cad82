//! `callsheet check`: what is wrong with a manifest, an MCP server or a JSON-RPC server and, at an
//! address, with how its list is served. Needs no daemon.
//!
//! ```text
//! file or stdin -> inspect -------------------+
//! address -> serving, mcp, json_rpc ----------+--> Inspected --> report: text, JSON, GitHub
//! COMMAND, or servers in a client's file -> mcp +
//! ```
//!
//! What is kept true here:
//!
//! - No tool is called. A list is requested several times, and changes between equal requests are
//!   findings.
//! - A program that is started for a check is ended again.
//! - Findings come from the same decoders and rules as in the daemon (`protocols`, `lint`).
//! - The exit code says whether there is an error, whatever form the report has.
//!
//! Read in this order: this file (what the argument is), `serving.rs` (a manifest at an address),
//! `mcp.rs`, `json_rpc.rs`, `client.rs`, then `report.rs` and `position.rs` (lines of a file).

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use url::Url;

use super::add::variables;
use super::{CommandError, output};
use crate::config::client_files::{ClientServer, EntryTarget};
use crate::config::{Config, LoadOptions, NetworkConfig, web_address, without_route};
use crate::model::{AcceptedVersions, HttpTarget, Severity, Target};
use crate::protocols::mcp::Mcp;
use crate::protocols::tool_discovery::{self, Inspected};
use crate::protocols::{Fits, Protocol as _, module};

mod client;
mod json_rpc;
pub(super) mod mcp;
mod position;
mod report;
pub(super) mod serving;

use report::CheckReport;

/// Bytes of a file or of standard input, far beyond what a daemon takes.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Address of a scenario, MCP server or JSON-RPC server (http or https, with or without
    /// /api/v1/tools, /manifest or /rpc), a file with a manifest, a client's file with MCP servers
    /// (each is started or contacted), or `-` for standard input.
    #[arg(value_name = "URL|FILE", required_unless_present = "command")]
    subject: Option<String>,
    /// Command of an MCP server, which is started for the check and ended again.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "subject")]
    command: Vec<String>,
    /// A variable of the command; without a value it gets that of this shell.
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Treat warnings as errors.
    #[arg(long)]
    strict: bool,
    /// Print JSON instead of text.
    #[arg(long, help_heading = "Output", conflicts_with = "format")]
    json: bool,
    /// Print in this form instead of text.
    #[arg(long, value_enum, value_name = "FORM", help_heading = "Output")]
    format: Option<ReportForm>,
}

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportForm {
    /// For people.
    Text,
    /// For programs, as `--json`.
    Json,
    /// For workflows of GitHub: findings are shown at their lines.
    Github,
}

impl CheckArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let network = NetworkConfig::from_environment(&LoadOptions::from_process());
        let config = Config {
            network,
            ..Config::for_state(PathBuf::new())
        };
        let subject = self.subject.clone().unwrap_or_default();
        if let Some(target) = self.program()? {
            let inspected = mcp::inspect_server(&target, &config)
                .await
                .map_err(mcp::Unlisted::into_failure)?;
            return self.finish(&CheckReport::new(
                target.to_string(),
                inspected,
                self.strict,
            ));
        }
        if let Some(base) = address(&subject)? {
            let target = HttpTarget {
                may_use_proxy: true,
                ..HttpTarget::at(base)
            };
            let (subject, inspected) = inspect_address(target, &config).await?;
            return self.finish(&CheckReport::new(subject, inspected, self.strict));
        }
        let body = read(&subject)?;
        if let Some(servers) = mcp::servers_in(
            std::str::from_utf8(&body).unwrap_or_default(),
            Path::new(&subject),
        ) {
            let mut checked: Vec<_> = mcp::left_out(&servers).collect();
            for server in &servers.taken {
                checked.push(inspect_entry(server, &config).await);
            }
            return self.finish_all(&subject, checked);
        }
        let inspected = inspect(&body, &AcceptedVersions::default());
        let report = CheckReport::new(subject.clone(), inspected, self.strict);
        self.finish(&if subject == "-" {
            report
        } else {
            report.of_file(&body)
        })
    }

    /// The program that is checked, if it is one.
    fn program(&self) -> Result<Option<Target>, CommandError> {
        let Some((command, args)) = self.command.split_first() else {
            if self.env.is_empty() {
                return Ok(None);
            }
            return Err(CommandError::Usage {
                message: "`--env` belongs to a command".into(),
                hint: "leave `--env` out, or write `callsheet check --env NAME=VALUE -- COMMAND`"
                    .into(),
            });
        };
        let program = EntryTarget::Program {
            command: command.clone(),
            args: args.to_vec(),
            env: variables(&self.env)?,
            cwd: None,
        };
        let target = program.to_target().map_err(|message| CommandError::Usage {
            message,
            hint: "correct the command and its variables".into(),
        })?;
        Ok(Some(target))
    }

    fn form(&self) -> ReportForm {
        if self.json {
            ReportForm::Json
        } else {
            self.format.unwrap_or(ReportForm::Text)
        }
    }

    /// Prints the report of one document or server.
    fn finish(&self, report: &CheckReport) -> Result<(), CommandError> {
        match self.form() {
            ReportForm::Text => report.print(),
            ReportForm::Json => report.print_json(),
            ReportForm::Github => report.print_github(),
        }
        if report.worst() == Some(Severity::Error) {
            Err(CommandError::Found)
        } else {
            Ok(())
        }
    }

    /// Prints the reports of the servers of a file, each with its name.
    fn finish_all(
        &self,
        file: &str,
        checked: Vec<(String, Inspected)>,
    ) -> Result<(), CommandError> {
        let reports: Vec<_> = checked
            .into_iter()
            .map(|(name, inspected)| CheckReport::new(name, inspected, self.strict))
            .collect();
        match self.form() {
            ReportForm::Text => {
                for report in &reports {
                    output::line(&format!("{}:", output::sanitize(report.subject())));
                    report.print();
                    output::line("");
                }
            }
            ReportForm::Json => {
                let servers: Vec<_> = reports.iter().map(CheckReport::to_json).collect();
                output::json(&serde_json::json!({"checked": file, "servers": servers}));
            }
            ReportForm::Github => reports.iter().for_each(CheckReport::print_github),
        }
        let has_error = reports
            .iter()
            .any(|report| report.worst() == Some(Severity::Error));
        if has_error {
            Err(CommandError::Found)
        } else {
            Ok(())
        }
    }
}

/// Checks what answers at an address: an MCP server first where it looks like one, elsewhere after
/// what serves a manifest; a JSON-RPC server last.
pub(super) async fn inspect_address(
    http: HttpTarget,
    config: &Config,
) -> Result<(String, Inspected), CommandError> {
    let target = Target::from(http.clone());
    let looks_like_mcp = matches!(Mcp::default().fits(&target), Fits::ProbeFirst { .. });
    if looks_like_mcp {
        let inspected = Box::pin(mcp::inspect_server(&target, config)).await;
        return inspected
            .map(|inspected| (target.to_string(), inspected))
            .map_err(mcp::Unlisted::into_failure);
    }
    let served = Box::pin(serving::inspect_scenario(http, config)).await;
    if served
        .as_ref()
        .is_ok_and(|(_, inspected)| inspected.manifest.is_some())
    {
        return served;
    }
    if let Ok(inspected) = Box::pin(mcp::inspect_server(&target, config)).await {
        return Ok((target.to_string(), inspected));
    }
    match Box::pin(json_rpc::inspect_server(&target, config)).await {
        Some(inspected) => Ok((target.to_string(), inspected)),
        None => served,
    }
}

/// Checks one server of a client's file.
pub(super) async fn inspect_entry(server: &ClientServer, config: &Config) -> (String, Inspected) {
    let inspected = match server.entry.target.to_target() {
        Ok(target) => {
            let inspected = mcp::inspect_server(&target, config).await;
            inspected.unwrap_or_else(|unlisted| {
                if let Target::Stdio(_) = target {
                    unlisted.print_stderr(Some(server.name.as_str()));
                }
                unlisted.into_inspected()
            })
        }
        // It was left out before.
        Err(_) => Inspected::refused(Vec::new()),
    };
    (server.name.to_string(), inspected)
}

/// The document in a file or from standard input.
fn read(subject: &str) -> Result<Vec<u8>, CommandError> {
    let mut body = Vec::new();
    let from = if subject == "-" {
        "standard input"
    } else {
        subject
    };
    let read = if subject == "-" {
        std::io::stdin()
            .lock()
            .take(MAX_FILE + 1)
            .read_to_end(&mut body)
    } else {
        std::fs::File::open(subject).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut body))
    };
    read.map_err(|error| CommandError::Usage {
        message: format!("{from} cannot be read: {error}"),
        hint: "name a file with a manifest, an address like http://127.0.0.1:15000, or `-` for standard input".into(),
    })?;
    if body.len() as u64 > MAX_FILE {
        let message = format!("{from} is larger than {} MiB", MAX_FILE >> 20);
        return Err(CommandError::Usage {
            message,
            hint: "no daemon would take such a manifest".into(),
        });
    }
    Ok(body)
}

/// Checks a document of either protocol.
fn inspect(body: &[u8], accept: &AcceptedVersions) -> Inspected {
    if module::is_module(body) {
        module::inspect(body)
    } else {
        tool_discovery::inspect(body, accept)
    }
}

/// The base address that `subject` names; `None` if it names a file, which may be called like an
/// address without its scheme.
fn address(subject: &str) -> Result<Option<Url>, CommandError> {
    let has_scheme = subject.contains("://");
    if !has_scheme && Path::new(subject).exists() {
        return Ok(None);
    }
    match web_address(subject) {
        Some(url) => Ok(Some(without_route(url))),
        None if !has_scheme => Ok(None),
        None => Err(CommandError::Usage {
            // It may hold a password, so it is not repeated.
            message: "the address cannot be polled".into(),
            hint: "write it like http://127.0.0.1:15000".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_route_is_taken_off_an_address() {
        for (subject, base) in [
            ("http://h:1", Some("http://h:1/")),
            ("http://h:1/api/v1/tools", Some("http://h:1/")),
            ("https://h/x/api/v1/tools/", Some("https://h/x")),
            ("https://h/x", Some("https://h/x")),
            ("http://h:1/manifest", Some("http://h:1/")),
            ("localhost:1/api/v1/tools", Some("http://localhost:1/")),
            ("manifest.json", None),
            ("-", None),
        ] {
            assert_eq!(
                address(subject).unwrap().as_ref().map(Url::as_str),
                base,
                "{subject}"
            );
        }
        assert!(matches!(
            address("ftp://h/"),
            Err(CommandError::Usage { .. })
        ));
    }
}
