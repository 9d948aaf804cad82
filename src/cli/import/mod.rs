//! `callsheet import`: takes over the servers that MCP clients on this machine already use. Shows
//! what it would take, and writes it only with `--write`. It starts no server.

use std::path::{Path, PathBuf};

use clap::Args;

use super::client::shell_word;
use super::edited;
use super::output;
use super::table::{ColumnFit, TextTable, cell};
use super::{CommandError, config_place};
use crate::config::client_files::ClientServers;
use crate::config::edit::ConfigEdit;
use crate::config::{self, LoadOptions, StaticScenario};

mod known_files;
mod servers;

pub(super) use servers::{ImportedServers, home, of_known_clients};

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Files of clients, such as ~/.cursor/mcp.json; by default those of the known clients of this
    /// user.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the servers to the configuration, and the values of their variables and headers to
    /// secrets.toml beside it.
    #[arg(long)]
    write: bool,
    /// Also take servers that their client has switched off.
    #[arg(long)]
    disabled: bool,
    /// Configuration file to write to, as `serve` takes it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl ImportArgs {
    pub(super) fn run(self) -> Result<(), CommandError> {
        let home = home();
        let files = if self.files.is_empty() {
            known_files::existing(&home)
        } else {
            self.files.clone()
        };
        if files.is_empty() {
            let message = format!("no file of a known client was found in {}", home.display());
            let hint = format!(
                "name one; looked for are those of {}",
                known_files::clients()
            );
            return Err(CommandError::Refused {
                message,
                hint: Some(hint),
            });
        }
        let place = config_place(self.config.as_deref())?;
        let mut found = ClientServers {
            own: own_address(&place),
            with_disabled: self.disabled,
            ..ClientServers::default()
        };
        for file in &files {
            self.read(file, &mut found)?;
        }
        let mut servers = ImportedServers::new(found, &home);
        let mut edit = ConfigEdit::open(&place, &LoadOptions::from_process());
        servers.leave_out_known(&edit.names()?, &known_scenarios(&place));
        if !self.json {
            print(&servers);
        }
        if servers.taken.is_empty() {
            self.finish(&servers, &place, false, "no server can be taken");
            return Ok(());
        }
        let count = output::count(servers.taken.len(), "server");
        if !self.write {
            let command = self.writing();
            let next = format!(
                "{count} can be taken; `{command}` writes them to {}",
                place.display()
            );
            self.finish(&servers, &place, false, &next);
            return Ok(());
        }
        for server in &servers.taken {
            // What tells two servers of one name apart.
            let comment = format!("From {}.", servers.shown(&server.from));
            edit.add_of_client(server.name.as_str(), &server.entry, &comment)
                .map_err(edited::failed)?;
        }
        let written = edit.write().map_err(edited::failed)?;
        self.finish(
            &servers,
            &written.path,
            true,
            &format!("{count} written to {}", written.path.display()),
        );
        if !self.json {
            edited::print_secrets(&written);
            output::wrapped(
                "",
                "a running daemon takes them now; otherwise start one with `callsheet serve`",
            );
        }
        Ok(())
    }

    /// Prints what was done, or what can be.
    fn finish(&self, servers: &ImportedServers, file: &Path, is_written: bool, text: &str) {
        if self.json {
            let mut report = servers.to_json();
            report["file"] = file.display().to_string().into();
            report["written"] = is_written.into();
            output::json(&report);
        } else {
            output::wrapped("", text);
        }
    }

    /// The command that writes what was shown.
    fn writing(&self) -> String {
        let config = self
            .config
            .iter()
            .flat_map(|file| ["--config".to_owned(), shell_word(&file.to_string_lossy())]);
        let files = self
            .files
            .iter()
            .map(|file| shell_word(&file.to_string_lossy()));
        let switched_off = self.disabled.then(|| "--disabled".to_owned());
        let words = ["callsheet import --write".to_owned()].into_iter();
        words
            .chain(switched_off)
            .chain(config)
            .chain(files)
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn read(&self, file: &Path, found: &mut ClientServers) -> Result<(), CommandError> {
        let (path, entries) = servers::read(file).map_err(|why| servers::unusable(file, &why))?;
        match entries {
            Ok(entries) => found.add(entries, &path),
            // A client without servers has a file all the same.
            Err(_) if self.files.is_empty() => {}
            Err(why) => return Err(servers::unusable(file, &why)),
        }
        Ok(())
    }
}

/// Prints what can be taken, what is left out, and what is ignored.
fn print(servers: &ImportedServers) {
    if !servers.taken.is_empty() {
        let fit = ColumnFit::Whole;
        // What tells two servers apart may be at the end of a command, so none is cut.
        let mut table =
            TextTable::new(&[("NAME", fit), ("SERVER", ColumnFit::Wrap), ("FROM", fit)]);
        for server in &servers.taken {
            let described = servers.described(server);
            table.row([
                cell(server.name.as_str()),
                cell(described),
                cell(servers.shown(&server.from)),
            ]);
        }
        table.print();
    }
    servers.print_left_out();
}

/// The scenarios of this configuration, as far as it can be used.
fn known_scenarios(place: &Path) -> Vec<StaticScenario> {
    let options = LoadOptions {
        file: place.exists().then(|| place.to_owned()),
        ..LoadOptions::from_process()
    };
    config::load_usable(&options).0.config.static_scenarios()
}

/// The address that a daemon with this configuration listens on, if the file can be used.
fn own_address(place: &Path) -> Option<std::net::SocketAddr> {
    let options = LoadOptions {
        file: place.exists().then(|| place.to_owned()),
        ..LoadOptions::from_process()
    };
    config::load(&options)
        .ok()
        .map(|loaded| loaded.config.server.listen)
}
