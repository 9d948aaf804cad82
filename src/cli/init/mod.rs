//! `callsheet init`: finds what offers tools on this machine, shows it, and writes a first
//! configuration with a comment on everything. Starts and contacts nothing that it finds unless a
//! person wants its texts checked, and changes no file that is there.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::import::{self, ImportedServers};
use super::table::{ColumnFit, TextTable, cell};
use super::{CommandError, config_place, edited, output};
use crate::config::client_files::{ClientServer, EntryTarget};
use crate::config::edit::{ConfigEdit, WrittenConfig};
use crate::config::{self, LoadOptions};
use crate::runtime::Clock;

mod sources;
mod texts;

use sources::{FoundEndpoint, ScannedSources};
use texts::CheckedTexts;

/// The text that a new file begins with.
const BEGINNING: &str = include_str!("beginning.toml");
/// The text for a file without any scenario.
const EXAMPLE: &str = "\n#[[scenarios]]\n#name = \"notes\"\n#url = \"http://127.0.0.1:8080\"\n";

/// Arguments of `init`.
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Files with `mcpServers` beside those of the known clients, such as .mcp.json of a project.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the file.
    #[arg(long)]
    write: bool,
    /// Start or contact the servers of clients, and show suspicious texts before a model reads
    /// them.
    #[arg(long)]
    check: bool,
    /// Configuration file to write, as `serve` takes it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl InitArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let place = config_place(self.config.as_deref())?;
        let options = LoadOptions {
            file: place.exists().then(|| place.clone()),
            ..LoadOptions::from_process()
        };
        let (loaded, _) = config::load_usable(&options);
        let servers =
            import::of_known_clients(&self.files, &import::home(), loaded.config.server.listen)?;
        if loaded.config.discovery.mdns.enabled {
            output::note("listening to the local network for a few seconds");
        }
        let found = sources::scan(&loaded.config, Clock::system()).await;
        let checked = if self.check {
            Some(CheckedTexts::of(&servers, &loaded.config).await)
        } else {
            None
        };
        if self.json {
            return self.run_for_program(&place, &servers, &found, checked.as_ref());
        }
        print(&servers, &found);
        if let Some(checked) = &checked {
            checked.print();
        }
        if place.exists() {
            return exists(&place, self.write);
        }
        if !self.write {
            let config = self
                .config
                .as_ref()
                .map(|file| format!(" --config {}", file.display()))
                .unwrap_or_default();
            let files = self.files.iter().map(|file| file.display().to_string());
            let command: Vec<_> = [format!("callsheet init --write{config}")]
                .into_iter()
                .chain(files)
                .collect();
            output::wrapped(
                "",
                &format!("`{}` writes {}", command.join(" "), place.display()),
            );
            return Ok(());
        }
        self.write(&place, &servers)
    }

    /// The same with one JSON object in place of text.
    fn run_for_program(
        &self,
        place: &Path,
        servers: &ImportedServers,
        found: &ScannedSources,
        checked: Option<&CheckedTexts>,
    ) -> Result<(), CommandError> {
        let was_there = place.exists();
        if self.write {
            if was_there {
                return exists(place, true);
            }
            Self::write_file(place, servers)?;
        }
        let mut report = servers.to_json();
        if let Some(left_out) = report["left_out"].as_array_mut() {
            left_out.extend(found.left_out.iter().map(|line| json!(line)));
        }
        let endpoint = |found: &FoundEndpoint| {
            let source = found.source.as_str();
            let is_trusted = found.is_trusted;
            json!({"name": found.name, "where": found.place, "source": source, "trusted": is_trusted})
        };
        report["found"] = found.endpoints.iter().map(endpoint).collect();
        if let Some(checked) = checked {
            report["checked"] = checked.to_json();
        }
        report["file"] = place.display().to_string().into();
        report["was_there"] = was_there.into();
        report["written"] = self.write.into();
        output::json(&report);
        Ok(())
    }

    /// Writes the file with an entry for each server of a client. The daemon finds the rest by
    /// itself.
    fn write_file(place: &Path, servers: &ImportedServers) -> Result<WrittenConfig, CommandError> {
        let mut edit = ConfigEdit::open(place, &LoadOptions::from_process());
        edit.begin_with(&if servers.taken.is_empty() {
            format!("{BEGINNING}{EXAMPLE}")
        } else {
            BEGINNING.to_owned()
        });
        for server in &servers.taken {
            let comment = format!("From {}.", servers.shown(&server.from));
            edit.add_of_client(server.name.as_str(), &server.entry, &comment)
                .map_err(edited::failed)?;
        }
        edit.write().map_err(edited::failed)
    }

    /// Writes the file, and prints what to do next.
    fn write(&self, place: &Path, servers: &ImportedServers) -> Result<(), CommandError> {
        let written = Self::write_file(place, servers)?;
        let count = output::count(servers.taken.len(), "scenario");
        output::wrapped(
            "",
            &format!("written to {}, with {count}", written.path.display()),
        );
        edited::print_secrets(&written);
        let config = self
            .config
            .as_ref()
            .map(|file| format!(" --config {}", file.display()))
            .unwrap_or_default();
        let is_unchecked = !self.check && !servers.taken.is_empty();
        let check = is_unchecked.then(|| {
            let files = self.files.iter().map(|file| format!(" {}", file.display()));
            (
                format!("callsheet init --check{}", files.collect::<String>()),
                "starts the servers, and shows suspicious texts before a model reads them",
            )
        });
        output::line("\nnext:");
        for (command, what) in check.into_iter().chain([
            (format!("callsheet serve{config}"), "runs the daemon"),
            (
                "callsheet tools".to_owned(),
                "lists the tools, in another terminal",
            ),
            ("callsheet add NAME ADDRESS".to_owned(), "adds a scenario"),
            (
                "callsheet connect CLIENT --write".to_owned(),
                "gives the list to an MCP client",
            ),
        ]) {
            output::line(&format!("  {command:<34}{what}"));
        }
        Ok(())
    }
}

/// What is said of a file that is there already.
fn exists(place: &Path, write: bool) -> Result<(), CommandError> {
    let message = format!("{} is there already, and stays as it is", place.display());
    let hint =
        "`callsheet import --write` adds servers of clients to it, `callsheet add` any scenario";
    if write {
        return Err(CommandError::Refused {
            message,
            hint: Some(hint.to_owned()),
        });
    }
    output::wrapped("", &format!("{message}; {hint}"));
    Ok(())
}

/// Prints what was found.
fn print(servers: &ImportedServers, scanned: &ScannedSources) {
    let found = &scanned.endpoints;
    if servers.taken.is_empty() && found.is_empty() {
        output::line("no scenario was found on this machine");
    } else {
        let fit = ColumnFit::Whole;
        let mut table = TextTable::new(&[("NAME", fit), ("WHERE", ColumnFit::Cut), ("FROM", fit)]);
        for server in &servers.taken {
            let from = servers.shown(&server.from);
            table.row([
                cell(server.name.as_str()),
                cell(server.entry.target.to_string()),
                cell(from),
            ]);
        }
        for endpoint in found {
            let name = endpoint
                .name
                .clone()
                .unwrap_or_else(|| "(named by itself)".to_owned());
            table.row([
                cell(output::sanitize(&name)),
                cell(output::sanitize(&endpoint.place)),
                cell(source(endpoint)),
            ]);
        }
        table.print();
    }
    servers.print_left_out();
    for line in &scanned.left_out {
        output::wrapped("left out: ", &output::sanitize(line));
    }
    if !found.is_empty() {
        output::line("the daemon finds those without a file by itself: they need no entry");
    }
    print_sleep_hint(servers);
    if found.iter().any(|endpoint| !endpoint.is_trusted) {
        output::line("one that is not trusted waits until `callsheet trust NAME`");
    }
}

/// How programs sleep, and where a person sees what that saves and which lose no session by it.
fn print_sleep_hint(servers: &ImportedServers) {
    let is_program =
        |server: &&ClientServer| matches!(server.entry.target, EntryTarget::Program { .. });
    let programs = servers.taken.iter().filter(is_program).count();
    if programs > 0 {
        let many = output::count(programs, "program");
        output::wrapped(
            "",
            &format!(
                "{many} would run all the time; with `mcp.sleep_after = \"10m\"` those that no client uses end, and start for the next call; `callsheet scenarios --wide` shows what they cost and which lose no session by it"
            ),
        );
    }
}

/// Where an endpoint was found, in words.
fn source(endpoint: &FoundEndpoint) -> String {
    let source = endpoint.source.spec().found;
    if endpoint.is_trusted {
        source.to_owned()
    } else {
        format!("{source}, not trusted")
    }
}
