//! `callsheet import`: takes over the servers that MCP clients on this machine already use. Shows
//! what it would take, and writes it only when told to by `--write`. It starts no server.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::output;
use super::table::{ColumnFit, TextTable, cell};
use super::{CommandError, config_place};
use crate::config::client_files::{ClientEntry, EntryTarget, MAX_CLIENT_FILE, Variables, read_client_file};
use crate::model::{ScenarioName, StdioTarget, Target};

mod known_files;
mod write;

use write::{Addition, WrittenFiles};

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Files of clients, such as ~/.cursor/mcp.json; by default those of the known clients of this user.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the servers to the configuration, and the values of their variables and headers to secrets.toml beside it.
    #[arg(long)]
    write: bool,
    /// Also take servers that their client has switched off.
    #[arg(long)]
    disabled: bool,
    /// Configuration file to write to, as `serve` takes it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// One server that can be taken.
struct Candidate {
    name: ScenarioName,
    entry: ClientEntry,
    from: PathBuf,
}

/// What was found in all files.
#[derive(Default)]
struct Found {
    candidates: Vec<Candidate>,
    /// What was left out, and why.
    left_out: Vec<String>,
    /// What was ignored of the candidates.
    notes: Vec<String>,
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
        let mut found = Found::default();
        for file in &files {
            self.read(file, &mut found)?;
        }
        let known = write::existing_names(&place)?;
        found.leave_out_known(&known);
        found.print(&home);
        if found.candidates.is_empty() {
            output::line("no server can be taken");
            return Ok(());
        }
        let count = found.candidates.len();
        let addition =
            Addition::new(found.candidates.iter().map(|candidate| (&candidate.name, &candidate.entry.target)));
        if !self.write {
            output::line(&format!(
                "{} can be taken; `callsheet import --write` writes them to {}",
                servers(count),
                place.display()
            ));
            return Ok(());
        }
        match addition.write(&place)? {
            WrittenFiles::Added { secrets } => {
                output::line(&format!("{} written to {}", servers(count), place.display()));
                if let Some(secrets) = secrets {
                    output::line(&format!("the values of their variables and headers are in {}", secrets.display()));
                }
                output::line("a running daemon takes them now; otherwise start one with `callsheet serve`");
            }
        }
        Ok(())
    }

    fn read(&self, file: &Path, found: &mut Found) -> Result<(), CommandError> {
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
        for read in entries {
            found.add(&read.name, read.entry, &absolute, self.disabled);
        }
        Ok(())
    }
}

impl Found {
    fn add(&mut self, name: &str, entry: Result<ClientEntry, String>, from: &Path, with_disabled: bool) {
        let mut leave_out = |why: &str| self.left_out.push(format!("{name} ({}): {why}", from.display()));
        let entry = match entry {
            Ok(entry) => entry,
            Err(why) => return leave_out(&why),
        };
        if entry.disabled && !with_disabled {
            return leave_out("its client has switched it off; `--disabled` takes it too");
        }
        if is_callsheet(&entry.target) {
            return leave_out("it is callsheet itself");
        }
        let Some(own) = scenario_name(name) else {
            return leave_out("its name cannot be that of a scenario");
        };
        if let Some(same) = self.candidates.iter().find(|known| known.entry.target == entry.target) {
            let note = format!("the same server as `{}` of {}", same.name, same.from.display());
            return self.left_out.push(format!("{name} ({}): {note}", from.display()));
        }
        if !entry.ignored.is_empty() {
            self.notes.push(format!("{name}: {} has no meaning here and is ignored", entry.ignored.join(", ")));
        }
        let name = self.free_name(own);
        self.candidates.push(Candidate { name, entry, from: from.to_owned() });
    }

    /// The name, or the name with a number where another server has it.
    fn free_name(&self, own: ScenarioName) -> ScenarioName {
        let is_free = |name: &ScenarioName| self.candidates.iter().all(|known| known.name != *name);
        let numbered = (2..).filter_map(|number| format!("{own}-{number}").parse().ok());
        std::iter::once(own.clone()).chain(numbered).take(1_000).find(is_free).unwrap_or(own)
    }

    /// Leaves out what the configuration has already, by name.
    fn leave_out_known(&mut self, known: &BTreeMap<String, Option<Target>>) {
        let (kept, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.candidates).into_iter().partition(|each| !known.contains_key(each.name.as_str()));
        self.candidates = kept;
        for each in left {
            let why = format!("the configuration has a scenario `{}` already", each.name);
            self.left_out.push(format!("{} ({}): {why}", each.name, each.from.display()));
        }
    }

    fn print(&self, home: &Path) {
        if !self.candidates.is_empty() {
            let fit = ColumnFit::Whole;
            let mut table = TextTable::new(&[("NAME", fit), ("SERVER", ColumnFit::Cut), ("FROM", fit)]);
            for Candidate { name, entry, from } in &self.candidates {
                let from = from.strip_prefix(home).map_or(from.clone(), |below| Path::new("~").join(below));
                table.row([cell(name.as_str()), cell(shown(&entry.target)), cell(from.display().to_string())]);
            }
            table.print();
        }
        for line in &self.left_out {
            output::line(&format!("left out: {line}"));
        }
        for line in &self.notes {
            output::line(&format!("note: {line}"));
        }
    }
}

/// So many servers.
fn servers(count: usize) -> String {
    if count == 1 { "1 server".to_owned() } else { format!("{count} servers") }
}

/// The exact command line, or the address.
fn shown(target: &EntryTarget) -> String {
    match target {
        EntryTarget::Program { command, args, .. } => StdioTarget::new(command).with_args(args.clone()).to_string(),
        EntryTarget::Address { url, .. } => Target::at(url.clone()).to_string(),
    }
}

/// Whether an entry starts this program, which would list itself.
fn is_callsheet(target: &EntryTarget) -> bool {
    let EntryTarget::Program { command, .. } = target else { return false };
    Path::new(command).file_stem().is_some_and(|name| name == "callsheet")
}

/// The name of an entry as that of a scenario: characters that it cannot have become `-`.
fn scenario_name(name: &str) -> Option<ScenarioName> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = name.trim().chars().take(100).map(|c| if allowed(c) { c } else { '-' }).collect();
    name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).parse().ok()
}
