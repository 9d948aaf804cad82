//! `callsheet import`: takes over the servers that MCP clients on this machine already use. Shows
//! what it would take, and writes it only with `--write`. It starts no server.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::edited;
use super::output;
use super::table::{ColumnFit, TextTable, cell};
use super::{CommandError, config_place};
use crate::config::client_files::{
    ClientServer, ClientServers, LeftOutReason, MAX_CLIENT_FILE, Variables, read_client_file,
};
use crate::config::edit::ConfigEdit;
use crate::config::{self, LoadOptions};

mod known_files;

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
}

impl ImportArgs {
    pub(super) fn run(self) -> Result<(), CommandError> {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let files = if self.files.is_empty() { known_files::existing(&home) } else { self.files.clone() };
        if files.is_empty() {
            let message = format!("no file of a known client was found in {}", home.display());
            let hint = format!("name one; looked for are those of {}", known_files::clients());
            return Err(CommandError::Refused { message, hint: Some(hint) });
        }
        let place = config_place(self.config.as_deref())?;
        let mut found =
            ClientServers { own: own_address(&place), with_disabled: self.disabled, ..ClientServers::default() };
        for file in &files {
            self.read(file, &mut found)?;
        }
        let mut left_out: Vec<String> = found
            .left_out
            .iter()
            .map(|entry| {
                let next = match entry.why {
                    LeftOutReason::SwitchedOff => "; `--disabled` takes it too",
                    _ => "",
                };
                format!("{} ({}): {}{next}", entry.name, entry.from.display(), entry.why)
            })
            .collect();
        let mut edit = ConfigEdit::open(&place, &LoadOptions::from_process());
        let known = edit.names()?;
        let (known, new): (Vec<_>, Vec<_>) =
            found.taken.into_iter().partition(|server| known.iter().any(|name| name == server.name.as_str()));
        left_out.extend(known.iter().map(|server| {
            let why = format!("the configuration has a scenario `{}` already", server.name);
            format!("{} ({}): {why}", server.name, server.from.display())
        }));
        print(&new, &left_out, &home);
        if new.is_empty() {
            output::line("no server can be taken");
            return Ok(());
        }
        let count = output::count(new.len(), "server");
        if !self.write {
            let place = place.display();
            output::line(&format!("{count} can be taken; `callsheet import --write` writes them to {place}"));
            return Ok(());
        }
        for server in &new {
            edit.add(server.name.as_str(), &server.entry.target, None).map_err(edited::failed)?;
        }
        let written = edit.write().map_err(edited::failed)?;
        output::line(&format!("{count} written to {}", written.path.display()));
        edited::print_secrets(&written);
        output::line("a running daemon takes them now; otherwise start one with `callsheet serve`");
        Ok(())
    }

    fn read(&self, file: &Path, found: &mut ClientServers) -> Result<(), CommandError> {
        let unusable = |why: String| CommandError::Usage {
            message: format!("{} cannot be used: {why}", file.display()),
            hint: "name a file with `mcpServers`, such as ~/.cursor/mcp.json".into(),
        };
        let absolute = std::path::absolute(file).map_err(|error| unusable(error.to_string()))?;
        let mut text = String::new();
        let opened = std::fs::File::open(&absolute).map_err(|error| unusable(error.to_string()))?;
        opened.take(MAX_CLIENT_FILE + 1).read_to_string(&mut text).map_err(|error| unusable(error.to_string()))?;
        if text.len() as u64 > MAX_CLIENT_FILE {
            return Err(unusable(format!("it is larger than {} MiB", MAX_CLIENT_FILE >> 20)));
        }
        let environment = |name: &str| std::env::var(name).ok();
        let entries = match read_client_file(&text, &absolute, &Variables::new(&environment)) {
            Ok(entries) => entries,
            // A client without servers has a file all the same.
            Err(_) if self.files.is_empty() => return Ok(()),
            Err(why) => return Err(unusable(why)),
        };
        found.add(entries, &absolute);
        Ok(())
    }
}

/// Prints what can be taken, what is left out, and what is ignored.
fn print(servers: &[ClientServer], left_out: &[String], home: &Path) {
    if !servers.is_empty() {
        let fit = ColumnFit::Whole;
        let mut table = TextTable::new(&[("NAME", fit), ("SERVER", ColumnFit::Cut), ("FROM", fit)]);
        for ClientServer { name, entry, from } in servers {
            let from = from.strip_prefix(home).map_or(from.clone(), |below| Path::new("~").join(below));
            table.row([cell(name.as_str()), cell(entry.target.to_string()), cell(from.display().to_string())]);
        }
        table.print();
    }
    for line in left_out {
        output::line(&format!("left out: {line}"));
    }
    for server in servers.iter().filter(|server| !server.entry.ignored.is_empty()) {
        let members = server.entry.ignored.join(", ");
        output::line(&format!("note: {}: {members} has no meaning here and is ignored", server.name));
    }
}

/// The address that a daemon with this configuration listens on, if the file can be used.
fn own_address(place: &Path) -> Option<std::net::SocketAddr> {
    let options = LoadOptions { file: place.exists().then(|| place.to_owned()), ..LoadOptions::from_process() };
    config::load(&options).ok().map(|loaded| loaded.config.server.listen)
}
