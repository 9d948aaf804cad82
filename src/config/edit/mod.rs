//! Changes the scenarios of a configuration file, for the command line and for the dashboard.
//!
//! ```text
//! open -> file_edit (what was read) -> add, remove: entries, entry -> new text
//! write: secrets.toml first -> load the new text -> is the file as it was read? -> replace
//! ```
//!
//! What is kept true here:
//!
//! - Every other byte of the file stays: comments, order, mode and owner.
//! - What comes out is loaded like any configuration before it is written.
//! - A file is replaced by one rename. One that another program has written to meanwhile is left
//!   alone.
//! - Values of variables and headers go to a file beside it that only its owner can read. It is
//!   written first, and taken back if the change fails.
//! - A change that fails says which lines a person may write instead ([`EditError`]).
//!
//! Read in this order: this file ([`ConfigEdit`]), `entries.rs` (which entries a file has, and
//! where), `entry.rs` (the text of one), `file_edit.rs` (between reading and writing),
//! `replace.rs`, `error.rs`.
//!
//! Contacts no scenario and starts no program.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, value};

use super::client_files::{ClientEntry, EntryTarget, is_own_address};
use super::load::load_text;
use super::options::LoadOptions;
use super::{Config, MCP, StaticScenario};

mod entries;
mod entry;
mod error;
mod file_edit;
mod replace;

use entries::{FileEntries, without};
pub(crate) use entry::command_file;
use entry::{EntryText, NewEntry, SECRETS};
pub(crate) use error::EditError;
use file_edit::FileEdit;
pub(crate) use replace::{FileReaders, replace};

/// The folders in which every service finds programs.
const USUAL_FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];
/// What a person does with the lines of a new entry.
const PASTE: &str = "write the entry at the end of the file yourself";
/// What a person does with the lines of a new file.
const CREATE: &str = "write these lines to the file yourself, or name another with `--config`";
/// What a person does with the lines of an entry that is to go.
const TAKE_OUT: &str = "take the entry out of the file yourself";

/// A configuration file that is being changed. Nothing is written before [`write`](Self::write).
#[derive(Debug)]
pub(crate) struct ConfigEdit {
    file: FileEdit,
    /// The text as it will be.
    text: String,
    /// How the configuration is loaded, with this file.
    options: LoadOptions,
    /// The values for the file of secrets: scenario, name, value.
    secrets: Vec<(String, String, String)>,
    /// What a person writes, if this program cannot.
    lines: String,
    by_hand: &'static str,
    /// Whether an entry is taken out whose values are in the file of secrets.
    leaves_secrets: bool,
    /// The `PATH` of the daemon that takes the file, if one runs.
    daemon_path: Option<String>,
    /// Where that daemon is, if it is known.
    daemon_address: Option<SocketAddr>,
    /// The names of the entries that have to be listed.
    listed: Vec<String>,
}

/// What was written.
#[derive(Debug)]
pub(crate) struct WrittenConfig {
    /// The file.
    pub(crate) path: PathBuf,
    /// The lines that were added.
    pub(crate) lines: String,
    /// The file with the secrets, if the change brought some.
    pub(crate) secrets: Option<PathBuf>,
    /// Whether an entry was taken out whose values stay in the file of secrets.
    pub(crate) leaves_secrets: bool,
}

impl ConfigEdit {
    /// Reads the file, which need not exist. `options` are those that it is loaded with. A file
    /// that cannot be read is refused when it is to be changed.
    pub(crate) fn open(path: &Path, options: &LoadOptions) -> Self {
        let options = LoadOptions {
            file: Some(path.to_owned()),
            ..options.clone()
        };
        let file = FileEdit::open(path);
        let text = file.text().unwrap_or_default().to_owned();
        let secrets = Vec::new();
        let lines = String::new();
        Self {
            file,
            text,
            options,
            secrets,
            lines,
            by_hand: PASTE,
            leaves_secrets: false,
            daemon_path: None,
            daemon_address: None,
            listed: Vec::new(),
        }
    }

    /// Sets where the daemon is that takes the file: it may listen elsewhere than the file says.
    pub(crate) fn for_daemon_at(&mut self, address: SocketAddr) {
        self.daemon_address = Some(address);
    }

    /// Sets the `PATH` of the daemon that takes the file. An entry that is added gets the one of
    /// the person who adds it only if that is another one.
    pub(crate) fn for_daemon_with_path(&mut self, path: &str) {
        self.daemon_path = Some(path.to_owned());
    }

    /// Whether a program needs the `PATH` of the person who adds it, because its daemon does not
    /// find the command in its own one. Where none runs it may be a service, which has the usual
    /// folders.
    fn needs_path(&self, target: &EntryTarget, search: &str) -> bool {
        let EntryTarget::Program { command, .. } = target else {
            return false;
        };
        let file = command_file(command, Some(search));
        if let Some(known) = &self.daemon_path {
            return known != search
                && (file.is_none() || command_file(command, Some(known)) != file);
        }
        let folder = file.as_deref().and_then(Path::parent);
        !folder.is_some_and(|folder| USUAL_FOLDERS.iter().any(|usual| Path::new(usual) == folder))
    }

    /// The names of the scenarios in it, in order.
    ///
    /// # Errors
    /// It cannot be read, or is no TOML.
    pub(crate) fn names(&self) -> Result<Vec<String>, EditError> {
        Ok(self.entries()?.spans.into_keys().collect())
    }

    /// Begins with this text instead of the one that was read.
    pub(crate) fn begin_with(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        text.clone_into(&mut self.lines);
        self.by_hand = CREATE;
    }

    /// Adds an entry to the end of the file. A comment gets a line above it.
    ///
    /// # Errors
    /// The name is taken, or the file writes its scenarios as a list in brackets.
    pub(crate) fn add(
        &mut self,
        name: &str,
        target: &EntryTarget,
        comment: Option<&str>,
    ) -> Result<(), EditError> {
        let entry = NewEntry {
            name,
            target,
            protocol: None,
            sleep_after: None,
        };
        self.insert(entry, comment)
    }

    /// The same for an entry of a file of an MCP client, whose server needs no probing.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(crate) fn add_of_client(
        &mut self,
        name: &str,
        entry: &ClientEntry,
        comment: &str,
    ) -> Result<(), EditError> {
        let entry = NewEntry {
            name,
            target: &entry.target,
            protocol: Some(MCP),
            sleep_after: entry.sleep_after,
        };
        self.insert(entry, Some(comment))
    }

    fn insert(&mut self, entry: NewEntry<'_>, comment: Option<&str>) -> Result<(), EditError> {
        let name = entry.name;
        if self.by_hand == TAKE_OUT {
            self.by_hand = PASTE;
        }
        let search = self.options.set_variable("PATH");
        let kept_path = search
            .as_deref()
            .filter(|search| self.needs_path(entry.target, search));
        let EntryText { text, secrets } = EntryText::new(entry, search.as_deref(), kept_path);
        let comment = comment
            .map(|comment| format!("# {comment}\n"))
            .unwrap_or_default();
        let gap = if self.lines.is_empty() { "" } else { "\n" };
        self.lines = format!("{}{gap}{comment}{text}", self.lines);
        let entries = self.entries()?;
        if entries.spans.contains_key(name) {
            let path = self.file.path().to_owned();
            return Err(EditError::NameTaken {
                path,
                name: name.to_owned(),
            });
        }
        if !entries.is_open {
            return Err(self.unwritable("it writes `scenarios` as a list in brackets"));
        }
        let gap = match &*self.text {
            "" => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        self.text = format!("{}{gap}{comment}{text}", self.text);
        let owned = |(key, secret)| (name.to_owned(), key, secret);
        self.secrets.extend(secrets.into_iter().map(owned));
        Ok(())
    }

    /// The same for an entry that a person names: one that could never be listed is refused when
    /// the file is written.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(crate) fn add_listed(&mut self, name: &str, target: &EntryTarget) -> Result<(), EditError> {
        self.add(name, target, None)?;
        self.listed.push(name.to_owned());
        Ok(())
    }

    /// Takes an entry out, with the comment directly above it.
    ///
    /// # Errors
    /// There is none of this name, or it stands in a list in brackets.
    pub(crate) fn remove(&mut self, name: &str) -> Result<(), EditError> {
        let entries = self.entries()?;
        let Some(spans) = entries.spans.get(name) else {
            let path = self.file.path().to_owned();
            let name = name.to_owned();
            return Err(EditError::NotThere {
                path,
                name,
                known: entries.spans.into_keys().collect(),
            });
        };
        self.by_hand = TAKE_OUT;
        if spans.is_empty() {
            return Err(self.unwritable("it writes `scenarios` as a list in brackets"));
        }
        let mut texts = spans.iter().filter_map(|span| self.text.get(span.clone()));
        self.leaves_secrets |= texts.any(|text| text.contains(SECRETS));
        self.text = without(&self.text, spans);
        Ok(())
    }

    /// Writes the file, if it is a usable configuration then.
    ///
    /// # Errors
    /// It is none, another program has changed it meanwhile, or it cannot be written. Then nothing
    /// has changed.
    pub(crate) fn write(self) -> Result<WrittenConfig, EditError> {
        let secrets = self.write_secrets()?;
        let written = load_text(&self.options, &self.text)
            .map_err(|problems| EditError::Invalid {
                path: self.file.path().to_owned(),
                problems,
            })
            .and_then(|loaded| self.check_addresses(&loaded.config))
            .and_then(|()| {
                self.file.write(
                    &self.text,
                    FileReaders::AsBefore,
                    (self.lines.as_str(), self.by_hand),
                )
            });
        if let (Err(_), Some(file)) = (&written, &secrets) {
            // What cannot be taken back is a value that nothing refers to.
            let _ = file.take_back();
        }
        written?;
        let secrets = secrets.map(|file| file.path().to_owned());
        let path = self.file.path().to_owned();
        let leaves_secrets = self.leaves_secrets;
        Ok(WrittenConfig {
            path,
            lines: self.lines,
            secrets,
            leaves_secrets,
        })
    }

    /// Refuses an entry that can never be listed: another scenario is at its address, or callsheet
    /// itself.
    fn check_addresses(&self, config: &Config) -> Result<(), EditError> {
        let all = config.static_scenarios();
        for name in &self.listed {
            let Some(new) = all.iter().find(|scenario| scenario.name.as_str() == name) else {
                continue;
            };
            let address = new.target.to_string().trim_end_matches('/').to_owned();
            let own = [Some(config.server.listen), self.daemon_address];
            if new.target.http().is_some_and(|http| {
                own.into_iter()
                    .flatten()
                    .any(|own| is_own_address(&http.url, own))
            }) {
                return Err(EditError::OwnAddress { address });
            }
            let key = new.target.address_key();
            let is_there = |other: &&StaticScenario| {
                other.name != new.name && other.target.address_key() == key
            };
            if let Some(owner) = all.iter().find(is_there) {
                let path = self.file.path().to_owned();
                let owner = owner.name.to_string();
                return Err(EditError::SameAddress {
                    path,
                    name: name.clone(),
                    owner,
                    address,
                });
            }
        }
        Ok(())
    }

    /// Writes the secrets first, so that the configuration never refers to what is not there.
    fn write_secrets(&self) -> Result<Option<FileEdit>, EditError> {
        if self.secrets.is_empty() {
            return Ok(None);
        }
        let file = FileEdit::open(&self.file.path().with_file_name(SECRETS));
        let text = file
            .text()
            .map_err(|why| self.unwritable_file(&file, why))?;
        let mut document: DocumentMut = text
            .parse()
            .map_err(|error: toml_edit::TomlError| self.unwritable_file(&file, error.message()))?;
        for (scenario, name, secret) in &self.secrets {
            document.entry(scenario).or_insert_with(toml_edit::table);
            document[scenario.as_str()][name.as_str()] = value(secret);
        }
        file.write(
            &document.to_string(),
            FileReaders::Owner,
            (self.lines.as_str(), self.by_hand),
        )?;
        Ok(Some(file))
    }

    fn entries(&self) -> Result<FileEntries, EditError> {
        self.file.text().map_err(|why| self.unwritable(why))?;
        FileEntries::parse(&self.text).map_err(|why| self.unwritable(&why))
    }

    fn unwritable(&self, why: &str) -> EditError {
        self.unwritable_file(&self.file, why)
    }

    fn unwritable_file(&self, file: &FileEdit, why: &str) -> EditError {
        file.unwritable(why.trim().to_owned(), self.lines.as_str(), self.by_hand)
    }
}
