//! Adds scenarios to a configuration file without touching what it says, and their secrets to a
//! file beside it that only its owner can read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, value};

use crate::cli::CommandError;
use crate::cli::replace::{FileReaders, replace};
use crate::config::client_files::EntryTarget;
use crate::model::ScenarioName;

/// The file for secrets, beside the configuration.
const SECRETS: &str = "secrets.toml";

/// Scenarios to be added.
pub(super) struct Addition {
    /// The text of the new entries.
    text: String,
    /// For each scenario the values of its variables or headers.
    secrets: BTreeMap<String, Vec<(String, String)>>,
}

/// What was written.
pub(super) enum WrittenFiles {
    Added {
        /// The file with the secrets, if there are any.
        secrets: Option<PathBuf>,
    },
}

/// The names of the scenarios that a configuration file has, if it exists.
pub(super) fn existing_names(place: &Path) -> Result<BTreeSet<String>, CommandError> {
    let document = read(place)?;
    let Some(scenarios) = document.get("scenarios") else { return Ok(BTreeSet::new()) };
    let Some(tables) = scenarios.as_array_of_tables() else {
        return Err(refused(place, "`scenarios` is not written as `[[scenarios]]`"));
    };
    let names = tables.iter().filter_map(|table| table.get("name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}

impl Addition {
    /// The entries for these scenarios.
    pub(super) fn new<'a>(scenarios: impl Iterator<Item = (&'a ScenarioName, &'a EntryTarget)>) -> Self {
        let mut addition = Self { text: String::new(), secrets: BTreeMap::new() };
        for (name, target) in scenarios {
            addition.add(name.as_str(), target);
        }
        addition
    }

    fn add(&mut self, name: &str, target: &EntryTarget) {
        let text = &mut self.text;
        let _ = write!(text, "\n[[scenarios]]\nname = {}\n", quoted(name));
        let (key, secrets) = match target {
            EntryTarget::Program { command, args, env, cwd } => {
                let _ = writeln!(text, "command = {}", quoted(&located(command)));
                if !args.is_empty() {
                    let args: Vec<_> = args.iter().map(|arg| quoted(arg)).collect();
                    let _ = writeln!(text, "args = [{}]", args.join(", "));
                }
                if let Some(cwd) = cwd {
                    let _ = writeln!(text, "cwd = {}", quoted(&cwd.display().to_string()));
                }
                ("env", env)
            }
            EntryTarget::Address { url, headers } => {
                let _ = writeln!(text, "url = {}", quoted(url.as_str()));
                ("headers", headers)
            }
        };
        let mut members: Vec<_> = secrets
            .iter()
            .map(|(own, _)| {
                format!("{} = {{ file = \"{SECRETS}\", key = {} }}", quoted(own), quoted(&format!("{name}.{own}")))
            })
            .collect();
        // A service has another PATH than the person who imports, and `npx` has to find `node`.
        if let (EntryTarget::Program { env, .. }, Ok(path)) = (target, std::env::var("PATH"))
            && env.iter().all(|(own, _)| own != "PATH")
        {
            members.push(format!("PATH = {}", quoted(&path)));
        }
        if !members.is_empty() {
            let _ = writeln!(text, "{key} = {{ {} }}", members.join(", "));
        }
        if !secrets.is_empty() {
            self.secrets.insert(name.to_owned(), secrets.clone());
        }
    }

    /// Writes the secrets first, so that the configuration never refers to what is not there.
    pub(super) fn write(self, place: &Path) -> Result<WrittenFiles, CommandError> {
        let failed = |error: std::io::Error| refused(place, &error.to_string());
        let folder = place.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let secrets = (!self.secrets.is_empty()).then(|| folder.join(SECRETS));
        if let Some(secrets) = &secrets {
            let mut document = read(secrets)?;
            for (scenario, values) in &self.secrets {
                document.entry(scenario).or_insert_with(toml_edit::table);
                for (name, secret) in values {
                    document[scenario][name] = value(secret);
                }
            }
            replace(secrets, &document.to_string(), FileReaders::Owner)
                .map_err(|error| refused(secrets, &error.to_string()))?;
        }
        let before = std::fs::read_to_string(place).unwrap_or_default();
        let separator = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        let added = if before.is_empty() { self.text.trim_start() } else { &self.text };
        let after = format!("{before}{separator}{added}");
        after.parse::<DocumentMut>().map_err(|error| refused(place, &error.to_string()))?;
        replace(place, &after, FileReaders::AsBefore).map_err(failed)?;
        Ok(WrittenFiles::Added { secrets })
    }
}

/// The absolute path of a command that is found in PATH now, so that another PATH finds it too.
fn located(command: &str) -> String {
    if command.contains('/') {
        return command.to_owned();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(command)).find(|file| file.is_file());
    found.map_or_else(|| command.to_owned(), |file| file.display().to_string())
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn read(place: &Path) -> Result<DocumentMut, CommandError> {
    match std::fs::read_to_string(place) {
        Ok(text) => text.parse().map_err(|error: toml_edit::TomlError| refused(place, &error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(DocumentMut::new()),
        Err(error) => Err(refused(place, &error.to_string())),
    }
}

fn refused(place: &Path, why: &str) -> CommandError {
    CommandError::Refused {
        message: format!("{} cannot be changed: {why}", place.display()),
        hint: Some("write the entries by hand; `callsheet import` without `--write` shows them".to_owned()),
    }
}
