//! The servers in files of MCP clients, as a person is shown them: those that can be taken, and why
//! others are left out.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::known_files;
use crate::cli::{CommandError, output};
use crate::config::StaticScenario;
use crate::config::client_files::{
    ClientServer, ClientServers, EntryTarget, LeftOutReason, MAX_CLIENT_FILE, ReadEntry, Variables,
    read_client_file,
};
use crate::config::edit::command_file;

/// The servers of some files.
#[derive(Debug)]
pub(in crate::cli) struct ImportedServers {
    /// Those that can be taken.
    pub(in crate::cli) taken: Vec<ClientServer>,
    /// A line for each that is left out.
    left_out: Vec<String>,
    /// The same for those that the configuration has already, with their names.
    known: Vec<(String, String)>,
    /// The home folder, for paths that are shown.
    home: PathBuf,
}

/// The home folder of this user; empty without one.
pub(in crate::cli) fn home() -> PathBuf {
    std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default()
}

/// The servers in these files, and in those of the known clients of this user. A file of a client
/// that cannot be read is named among what is left out. `own` is the address of callsheet itself.
///
/// # Errors
/// One of the named files cannot be read, or has no servers.
pub(in crate::cli) fn of_known_clients(
    named: &[PathBuf],
    home: &Path,
    own: SocketAddr,
) -> Result<ImportedServers, CommandError> {
    let mut found = ClientServers {
        own: Some(own),
        ..ClientServers::default()
    };
    for file in named {
        let (path, entries) = read(file).map_err(|why| unusable(file, &why))?;
        found.add(entries.map_err(|why| unusable(file, &why))?, &path);
    }
    let mut unread = Vec::new();
    for file in known_files::existing(home) {
        match read(&file) {
            // A client without servers has a file all the same.
            Ok((path, entries)) => found.add(entries.unwrap_or_default(), &path),
            Err(why) => unread.push(format!("{}: {why}", file.display())),
        }
    }
    let mut servers = ImportedServers::new(found, home);
    servers.left_out.append(&mut unread);
    Ok(servers)
}

/// The error of a file that was named.
pub(super) fn unusable(file: &Path, why: &str) -> CommandError {
    CommandError::Usage {
        message: format!("{} cannot be used: {why}", file.display()),
        hint: "name a file with `mcpServers`, such as ~/.cursor/mcp.json".into(),
    }
}

/// What a file of a client names: its absolute path, and the entries or why it has none.
///
/// # Errors
/// A sentence: the file cannot be read.
pub(super) fn read(file: &Path) -> Result<(PathBuf, Result<Vec<ReadEntry>, String>), String> {
    let path = std::path::absolute(file).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let opened = std::fs::File::open(&path).map_err(|error| error.to_string())?;
    opened
        .take(MAX_CLIENT_FILE + 1)
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_CLIENT_FILE {
        return Err(format!("it is larger than {} MiB", MAX_CLIENT_FILE >> 20));
    }
    let environment = |name: &str| std::env::var(name).ok();
    let here = std::env::current_dir().unwrap_or_default();
    let mut entries = read_client_file(
        &text,
        &path,
        &Variables::new(&environment).in_project(&here),
    );
    let folder = path.parent().unwrap_or(Path::new("/"));
    for target in entries
        .iter_mut()
        .flatten()
        .filter_map(|entry| Some(&mut entry.entry.as_mut().ok()?.target))
    {
        in_its_folder(target, folder);
    }
    Ok((path, entries))
}

/// Gives a program that is started with the name of a file beside its entry the folder of that
/// entry: the file of a project has such names, and its client runs in that folder.
fn in_its_folder(target: &mut EntryTarget, folder: &Path) {
    if let EntryTarget::Program {
        args,
        cwd: cwd @ None,
        ..
    } = target
        && args
            .iter()
            .any(|arg| Path::new(arg).is_relative() && folder.join(arg).is_file())
    {
        *cwd = Some(folder.to_owned());
    }
}

/// The command of a program that is not on this machine, as far as its `PATH` shows.
fn missing_command(target: &EntryTarget) -> Option<&str> {
    let EntryTarget::Program { command, env, .. } = target else {
        return None;
    };
    let own = env
        .iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, path)| path.clone());
    let search = own.or_else(|| std::env::var("PATH").ok());
    command_file(command, search.as_deref())
        .is_none()
        .then_some(command)
}

/// What a target has that another one with the same command or address has not: the names of
/// variables or headers, whose values may be secret, and the folder.
fn own_parts(target: &EntryTarget, other: &EntryTarget) -> Vec<String> {
    let names = |pairs: &[(String, String)], others: &[(String, String)]| -> Vec<String> {
        pairs
            .iter()
            .filter(|pair| !others.contains(pair))
            .map(|pair| format!("`{}`", pair.0))
            .collect()
    };
    match (target, other) {
        (
            EntryTarget::Program { env, cwd, .. },
            EntryTarget::Program {
                env: other_env,
                cwd: other_cwd,
                ..
            },
        ) => {
            let folder = cwd.as_ref().filter(|_| cwd != other_cwd);
            let folder = folder.map(|folder| format!("folder {}", folder.display()));
            names(env, other_env).into_iter().chain(folder).collect()
        }
        (
            EntryTarget::Address { headers, .. },
            EntryTarget::Address {
                headers: other_headers,
                ..
            },
        ) => names(headers, other_headers),
        _ => Vec::new(),
    }
}

impl ImportedServers {
    /// What was found, for a person with this home folder.
    pub(super) fn new(found: ClientServers, home: &Path) -> Self {
        let left_out = found.left_out.iter().map(|entry| {
            let next = match entry.why {
                LeftOutReason::SwitchedOff => "; `callsheet import --disabled` takes it too",
                _ => "",
            };
            format!(
                "{} ({}): {}{next}",
                entry.name,
                entry.from.display(),
                entry.why
            )
        });
        Self {
            left_out: left_out.collect(),
            known: Vec::new(),
            taken: found.taken,
            home: home.to_owned(),
        }
    }

    /// Leaves out those whose names are among these, or that a scenario of the configuration is.
    pub(super) fn leave_out_known(&mut self, names: &[String], scenarios: &[StaticScenario]) {
        for server in std::mem::take(&mut self.taken) {
            let owner = if names.iter().any(|name| name == server.name.as_str()) {
                Some(format!(
                    "the configuration has a scenario `{}` already",
                    server.name
                ))
            } else {
                let key = server
                    .entry
                    .target
                    .to_target()
                    .ok()
                    .map(|target| target.address_key());
                let same = scenarios
                    .iter()
                    .find(|known| Some(known.target.address_key()) == key);
                same.map(|known| format!("the configuration has it already, as `{}`", known.name))
            };
            match owner {
                Some(why) => {
                    let line = format!("{} ({}): {why}", server.name, server.from.display());
                    self.known.push((server.name.to_string(), line));
                }
                None => self.taken.push(server),
            }
        }
    }

    /// A path as a person writes it.
    pub(in crate::cli) fn shown(&self, path: &Path) -> String {
        let below = path
            .strip_prefix(&self.home)
            .ok()
            .filter(|_| !self.home.as_os_str().is_empty());
        below
            .map_or(path.to_owned(), |below| Path::new("~").join(below))
            .display()
            .to_string()
    }

    /// A server as a person tells it from the others: its command or address and, where another
    /// server has the same one, what it alone has.
    pub(super) fn described(&self, server: &ClientServer) -> String {
        let text = server.entry.target.to_string();
        let others = self.taken.iter().filter(|other| other.name != server.name);
        let alike = others.filter(|other| other.entry.target.to_string() == text);
        let own: BTreeSet<String> = alike
            .flat_map(|other| own_parts(&server.entry.target, &other.entry.target))
            .collect();
        if own.is_empty() {
            return text;
        }
        format!(
            "{text} (its own {})",
            own.into_iter().collect::<Vec<_>>().join(", ")
        )
    }

    /// The same for programs: the servers that can be taken, and a line for each of the others.
    pub(in crate::cli) fn to_json(&self) -> Value {
        let servers = self.taken.iter().map(|server| {
            json!({
                "name": server.name.as_str(),
                "server": server.entry.target.to_string(),
                "from": server.from,
                "ignored": server.entry.ignored,
                "missing_command": missing_command(&server.entry.target),
            })
        });
        let known = self.known.iter().map(|(_, line)| line);
        let left_out: Vec<&String> = self.left_out.iter().chain(known).collect();
        json!({"servers": servers.collect::<Vec<_>>(), "left_out": left_out})
    }

    /// Prints what is left out, and what is ignored or cannot be started of the others.
    pub(in crate::cli) fn print_left_out(&self) {
        for line in &self.left_out {
            output::wrapped("left out: ", line);
        }
        match self.known.as_slice() {
            [] => {}
            [(_, line)] => output::wrapped("left out: ", line),
            all => {
                let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
                let count = output::count(all.len(), "server");
                let line = format!(
                    "{count} that the configuration has already: {}",
                    names.join(", ")
                );
                output::wrapped("left out: ", &line);
            }
        }
        for server in self
            .taken
            .iter()
            .filter(|server| !server.entry.ignored.is_empty())
        {
            let members = server.entry.ignored.join(", ");
            output::wrapped(
                "note: ",
                &format!(
                    "{}: {members} has no meaning here and is ignored",
                    server.name
                ),
            );
        }
        for server in &self.taken {
            if let Some(command) = missing_command(&server.entry.target) {
                let why = format!(
                    "{}: the command `{command}` is not there; install it to start this one",
                    server.name
                );
                output::wrapped("note: ", &why);
            }
        }
    }
}
