//! `callsheet connect`: how an MCP client is configured to use callsheet. Prints the entry, or
//! writes it into the client's own file and keeps a copy of what was there. Needs no daemon.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, builder::PossibleValue};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde_json::Value;
use toml_edit::DocumentMut;

use super::client::DaemonClient;
use super::{CommandError, RemoteArgs, output};
use crate::config::client_files::{ClientConnection, ClientSnippet, KnownClient, MAX_CLIENT_FILE};
use crate::config::edit::{FileReaders, replace};
use crate::runtime::open_files::read_regular;

/// The name of the entry.
const ENTRY: &str = env!("CARGO_PKG_NAME");

/// The most copies of a client's file that are kept.
const MOST_BACKUPS: u32 = 100;

/// Arguments of `connect`.
#[derive(Debug, Args)]
pub(super) struct ConnectArgs {
    /// The client.
    #[arg(value_enum)]
    client: ClientName,
    /// Only the tools of this profile.
    #[arg(long)]
    profile: Option<String>,
    /// As a caller of this level, which lowers that of the profile.
    #[arg(long, value_name = "LEVEL", value_parser = ["guest", "user", "admin", "owner"], hide_possible_values = true)]
    permission: Option<String>,
    /// Have the client send requests to the daemon's address, which has to run then. Otherwise the
    /// client starts `callsheet mcp`, which starts the daemon if none runs.
    #[arg(long)]
    http: bool,
    /// Write the entry into the client's file; what was there is kept in a file with `.backup`
    /// behind its name.
    #[arg(long)]
    write: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// A client on the command line.
#[derive(Debug, Clone, Copy)]
struct ClientName(KnownClient);

impl ValueEnum for ClientName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [ClientName; 10] = {
            let mut all = [ClientName(KnownClient::Claude); 10];
            let mut at = 0;
            while at < all.len() {
                all[at] = ClientName(KnownClient::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.id()).help(self.0.name()))
    }
}

impl ConnectArgs {
    pub(super) fn run(self) -> Result<(), CommandError> {
        let client = self.client.0;
        let snippet = client.snippet(&self.connection()?);
        let name = self
            .profile
            .as_ref()
            .map_or_else(|| ENTRY.to_owned(), |profile| format!("{ENTRY}-{profile}"));
        let home = std::env::var_os("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute());
        let file = home.and_then(|home| client.file(&home));
        if !self.write {
            if let Some(file) = &file {
                output::note(&format!("for {}; `--write` puts it there", file.display()));
            }
            output::line(&snippet.text(&name));
            return Ok(());
        }
        let Some(file) = file else {
            return Err(CommandError::Usage {
                message: format!("{} keeps no entries in a file of this user", client.name()),
                hint: "leave `--write` out, and use what is printed".to_owned(),
            });
        };
        match write(&file, &name, &snippet)? {
            WrittenEntry::Same => {
                output::line(&format!("{} has this entry already", file.display()));
            }
            WrittenEntry::New => output::line(&format!("written to {}", file.display())),
            WrittenEntry::Changed(backup) => {
                output::line(&format!(
                    "written to {}; what was there is in {}",
                    file.display(),
                    backup.display()
                ));
            }
        }
        output::line(&format!("restart {} to use it", client.name()));
        Ok(())
    }

    fn connection(&self) -> Result<ClientConnection, CommandError> {
        if self.http {
            if !self.client.0.takes_address() {
                return Err(CommandError::Usage {
                    message: format!("{} takes no address in its file", self.client.0.name()),
                    hint: "leave `--http` out".to_owned(),
                });
            }
            let base = DaemonClient::from_args(&self.remote)?
                .address_text()
                .to_owned();
            let below = self
                .profile
                .as_ref()
                .map(|profile| format!("/{profile}"))
                .unwrap_or_default();
            let level = self
                .permission
                .as_ref()
                .map(|level| format!("?permission={level}"))
                .unwrap_or_default();
            let address = format!("{base}/mcp{below}{level}");
            return Ok(ClientConnection::Address(address));
        }
        let mut args = vec!["mcp".to_owned()];
        if let Some(profile) = &self.profile {
            args.extend(["--profile".to_owned(), profile.clone()]);
        }
        if let Some(level) = &self.permission {
            args.extend(["--permission".to_owned(), level.clone()]);
        }
        if let Some(url) = self.remote.address() {
            args.extend(["--url".to_owned(), url]);
        }
        if let Some(config) = &self.remote.config {
            args.extend([
                "--config".to_owned(),
                std::path::absolute(config)?.display().to_string(),
            ]);
        }
        // The client may have another PATH.
        Ok(ClientConnection::Command {
            program: std::env::current_exe()?.display().to_string(),
            args,
        })
    }
}

/// What became of a file.
enum WrittenEntry {
    /// It had the entry already.
    Same,
    /// There was no such file.
    New,
    /// It was changed, and what was there before is here.
    Changed(PathBuf),
}

/// Writes an entry into a client's file. Everything else in the file stays as it is, comments
/// included.
fn write(file: &Path, name: &str, snippet: &ClientSnippet) -> Result<WrittenEntry, CommandError> {
    let refused = |why: String| CommandError::Refused {
        message: format!("{} cannot be changed: {why}", file.display()),
        hint: Some("leave `--write` out, and paste what is printed".to_owned()),
    };
    let before = match read_regular(file, MAX_CLIENT_FILE) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(refused(error.to_string())),
    };
    let text = before.as_deref().unwrap_or_default();
    let after = match snippet {
        ClientSnippet::Json(key, entry) => in_json(text, key, name, entry),
        ClientSnippet::Toml(key, entry) => in_toml(text, key, name, entry),
        ClientSnippet::Shell(_) => Err("it has no entries".to_owned()),
    };
    let after = after.map_err(refused)?;
    if before.as_ref() == Some(&after) {
        return Ok(WrittenEntry::Same);
    }
    let mut backup = None;
    if before.is_some() {
        let path = free_backup(file)
            .ok_or_else(|| refused(format!("{MOST_BACKUPS} copies of it are kept already")))?;
        // A file of a client may hold secrets, and so may its copy: it gets the same mode.
        std::fs::copy(file, &path)
            .map_err(|error| refused(format!("no copy of it can be kept: {error}")))?;
        backup = Some(path);
    }
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(|error| refused(error.to_string()))?;
    }
    replace(file, &after, FileReaders::AsBefore).map_err(|error| refused(error.to_string()))?;
    Ok(backup.map_or(WrittenEntry::New, WrittenEntry::Changed))
}

/// The name for a copy of a file that no earlier copy has: the first one is the person's own text.
fn free_backup(file: &Path) -> Option<PathBuf> {
    let first = std::iter::once(format!("{}.backup", file.display()));
    let further = (2..=MOST_BACKUPS).map(|number| format!("{}.backup-{number}", file.display()));
    first
        .chain(further)
        .map(PathBuf::from)
        .find(|path| !path.exists())
}

/// The JSON document with the entry. Comments and the order of members stay.
fn in_json(text: &str, key: &str, name: &str, entry: &Value) -> Result<String, String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| format!("it is not JSON: {error}"))?;
    let not_object = |what: &str| format!("{what} is not an object");
    let document = root
        .object_value_or_create()
        .ok_or_else(|| not_object("it"))?;
    let servers = document
        .object_value_or_create(key)
        .ok_or_else(|| not_object(&format!("`{key}`")))?;
    let written = jsonc_parser::parse_to_serde_value::<Value>(text, &ParseOptions::default());
    let is_same = written
        .is_ok_and(|written| written.get(key).and_then(|servers| servers.get(name)) == Some(entry));
    match servers.get(name) {
        Some(_) if is_same => {}
        Some(known) => known.set_value(as_input(entry)),
        None => _ = servers.append(name, as_input(entry)),
    }
    Ok(root.to_string())
}

fn as_input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(as_input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members
                .iter()
                .map(|(name, value)| (name.clone(), as_input(value)))
                .collect(),
        ),
    }
}

/// The TOML document with the entry.
fn in_toml(text: &str, key: &str, name: &str, entry: &Value) -> Result<String, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| format!("it is not TOML: {error}"))?;
    let mut wanted = toml_edit::Table::new();
    for (member, value) in entry.as_object().into_iter().flatten() {
        let value: toml_edit::Value = match value {
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            other => other.as_str().unwrap_or_default().into(),
        };
        wanted.insert(member, toml_edit::value(value));
    }
    let mut parent = toml_edit::Table::new();
    parent.set_implicit(true);
    let servers = document
        .entry(key)
        .or_insert(toml_edit::Item::Table(parent));
    let servers = servers
        .as_table_like_mut()
        .ok_or_else(|| format!("`{key}` is no table"))?;
    let is_same = servers.get(name).is_some_and(|known| {
        let plain =
            |item: &toml_edit::Item| item.to_string().split_whitespace().collect::<String>();
        plain(known) == plain(&toml_edit::Item::Table(wanted.clone()))
    });
    if !is_same {
        servers.insert(name, toml_edit::Item::Table(wanted));
    }
    Ok(document.to_string())
}
