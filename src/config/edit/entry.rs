//! The text of a scenario's entry, and the secrets that it refers to.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;

use crate::config::client_files::EntryTarget;

/// The file for secrets, beside the configuration.
pub(super) const SECRETS: &str = "secrets.toml";

/// Why an entry has a `PATH`.
const PATH_COMMENT: &str = "# PATH: the command is in none of the folders where a service looks, nor may be what it starts.";

/// A scenario that an entry is written for.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewEntry<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// Where it is.
    pub(super) target: &'a EntryTarget,
    /// Its protocol; an address without one is probed.
    pub(super) protocol: Option<&'a str>,
    /// When its program sleeps, where it says so.
    #[expect(
        clippy::option_option,
        reason = "absent is another answer than `never`"
    )]
    pub(super) sleep_after: Option<Option<Duration>>,
}

/// One entry as text.
#[derive(Debug)]
pub(super) struct EntryText {
    /// The lines, each with its end.
    pub(super) text: String,
    /// The values of its variables or headers, by name. The text refers to them and has none.
    pub(super) secrets: Vec<(String, String)>,
}

impl EntryText {
    /// The entry of a scenario. `search` is the `PATH` of the person who adds it, and `kept_path`
    /// the same if the entry has to have it.
    pub(super) fn new(entry: NewEntry<'_>, search: Option<&str>, kept_path: Option<&str>) -> Self {
        let NewEntry {
            name,
            target,
            protocol,
            sleep_after,
        } = entry;
        let mut text = format!("[[scenarios]]\nname = {}\n", quoted(name));
        let (key, secrets) = match target {
            EntryTarget::Program {
                command,
                args,
                env,
                cwd,
            } => {
                let _ = writeln!(text, "command = {}", quoted(&located(command, search)));
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
                if let Some(protocol) = protocol {
                    let _ = writeln!(text, "protocol = {}", quoted(protocol));
                }
                ("headers", headers)
            }
        };
        let mut members: Vec<_> = secrets
            .iter()
            .map(|(own, _)| {
                format!(
                    "{} = {{ file = \"{SECRETS}\", key = {} }}",
                    quoted(own),
                    quoted(&format!("{name}.{own}"))
                )
            })
            .collect();
        // A service has another PATH than the person who adds this, and `npx` has to find `node`.
        if let (EntryTarget::Program { env, .. }, Some(search)) = (target, kept_path)
            && env.iter().all(|(own, _)| own != "PATH")
        {
            members.push(format!("PATH = {}", quoted(&each_once(search))));
            let _ = writeln!(text, "{PATH_COMMENT}");
        }
        if !members.is_empty() {
            let _ = writeln!(text, "{key} = {{ {} }}", members.join(", "));
        }
        if let Some(sleep_after) = sleep_after {
            let _ = writeln!(text, "sleep_after = {}", quoted(&as_written(sleep_after)));
        }
        Self {
            text,
            secrets: secrets.clone(),
        }
    }
}

/// A time after which a program sleeps, as the key has it.
fn as_written(sleep_after: Option<Duration>) -> String {
    let span = sleep_after.and_then(|after| SignedDuration::try_from(after).ok());
    span.map_or_else(|| "never".to_owned(), |span| format!("{span:#}"))
}

/// The absolute path of a command that is found in PATH now, so that another PATH finds it too.
fn located(command: &str, search: Option<&str>) -> String {
    let file = command_file(command, search).filter(|_| !command.contains('/'));
    file.map_or_else(|| command.to_owned(), |file| file.display().to_string())
}

/// A `PATH` without the folders that stand in it before.
fn each_once(search: &str) -> String {
    let mut seen = BTreeSet::new();
    let folders = std::env::split_paths(search).filter(|folder| seen.insert(folder.clone()));
    let joined = std::env::join_paths(folders).ok();
    joined
        .and_then(|path| path.into_string().ok())
        .unwrap_or_else(|| search.to_owned())
}

/// The file of a command: its own path, or the first of this name in the folders of a `PATH`.
pub(crate) fn command_file(command: &str, search: Option<&str>) -> Option<PathBuf> {
    if command.contains('/') {
        return Some(PathBuf::from(command)).filter(|file| file.is_file());
    }
    let found = std::env::split_paths(search.unwrap_or_default());
    found
        .map(|folder| folder.join(command))
        .find(|file| file.is_file())
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
