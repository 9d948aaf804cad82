//! Profiles and definitions that operators add while the daemon runs. They are judged by the rules
//! of `[[profiles]]` and `[[definitions]]`, and live in the store.
//!
//! An entry of the configuration goes before an addition of its name: the file is the place of what
//! is written there. It never changes a file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use toml::{Table, Value};

use super::path::KeyPath;
use super::value_reader::{Surroundings, ValueReader};
use super::{Config, definitions, profiles};
use crate::model::{AdditionKind, Finding, FindingCode, Profile, Profiles};
use crate::protocols::definitions::Definition;

/// The largest number of additions of one kind. All of them are kept in memory.
pub const ADDITIONS_MAX: usize = 1_000;

/// What was added, by name.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    /// Profiles.
    pub profiles: BTreeMap<String, Profile>,
    /// Definitions.
    pub definitions: BTreeMap<String, AddedDefinition>,
}

/// A definition that was added.
#[derive(Debug, Clone)]
pub struct AddedDefinition {
    /// The definition.
    pub definition: Definition,
    /// As it was written.
    pub entry: DefinitionEntry,
}

/// A profile as it is written: an entry of `[[profiles]]` without its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileEntry {
    /// Only tools of these scenarios; all when absent, none when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenarios: Option<Vec<String>>,
    /// Only tools that require at most this level; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
    /// Whether MCP clients get tools that search: `list` or `search`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_mode: Option<String>,
}

/// A definition as it is written: an entry of `[[definitions]]` without its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefinitionEntry {
    /// The schema, as the Tool Protocol has it.
    pub schema: Json,
    /// What runs it; by its name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<ActivityEntry>,
}

/// What runs a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ActivityEntry {
    /// One activity for everybody.
    One(String),
    /// One for each of some profiles.
    ByProfile(Vec<ProfileActivity>),
}

/// What runs a definition for callers of one profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileActivity {
    /// The profile.
    pub profile: String,
    /// `scenario/tool`.
    pub activity: String,
}

/// One addition, as it is to be from now on; `None` takes it away.
#[derive(Debug, Clone)]
pub enum AdditionChange {
    /// A profile with its entry.
    Profile(String, Option<(Profile, ProfileEntry)>),
    /// A definition.
    Definition(String, Option<Box<AddedDefinition>>),
}

/// Why an entry is refused. Displays all that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EntryError {
    /// What is wrong, each with the member that it is about.
    pub message: String,
    /// The next step for the first of them.
    pub hint: String,
}

impl Additions {
    /// What was stored, as rows of kind, name and document. One that cannot be read stays in the
    /// store and is a finding. A profile of this kind allows no tool: its bounds must not be lifted
    /// because they are not known.
    pub fn restored<'a>(
        rows: impl Iterator<Item = (AdditionKind, &'a str, &'a str)>,
        config: &Config,
    ) -> (Self, Vec<Finding>) {
        let mut additions = Self::default();
        let mut definitions = Vec::new();
        let mut findings = Vec::new();
        for (kind, name, document) in rows {
            match kind {
                AdditionKind::Profile => {
                    let read = parsed::<ProfileEntry>(document)
                        .and_then(|entry| config.judge_profile(name, &entry));
                    let profile = read.unwrap_or_else(|error| {
                        findings.push(unreadable(kind, name, &error));
                        Profile {
                            scenarios: Some(std::collections::BTreeSet::new()),
                            ..Profile::default()
                        }
                    });
                    additions.profiles.insert(name.to_owned(), profile);
                }
                AdditionKind::Definition => definitions.push((name, document)),
            }
        }
        for (name, document) in definitions {
            let read = parsed::<DefinitionEntry>(document)
                .and_then(|entry| config.judge_definition(name, entry, &additions));
            match read {
                Ok(added) => _ = additions.definitions.insert(name.to_owned(), added),
                Err(error) => {
                    findings.push(unreadable(AdditionKind::Definition, name, &error));
                }
            }
        }
        (additions, findings)
    }

    /// With one change. Returns whether there was an addition of this kind and name before.
    pub fn change(&mut self, change: &AdditionChange) -> bool {
        match change {
            AdditionChange::Profile(name, Some((profile, _))) => self
                .profiles
                .insert(name.clone(), profile.clone())
                .is_some(),
            AdditionChange::Profile(name, None) => self.profiles.remove(name).is_some(),
            AdditionChange::Definition(name, Some(added)) => self
                .definitions
                .insert(name.clone(), AddedDefinition::clone(added))
                .is_some(),
            AdditionChange::Definition(name, None) => self.definitions.remove(name).is_some(),
        }
    }

    /// Whether there are more of a kind than may be kept.
    pub fn is_full(&self) -> bool {
        self.profiles.len() > ADDITIONS_MAX || self.definitions.len() > ADDITIONS_MAX
    }

    /// The definitions, for their registry.
    pub fn registered(&self) -> Vec<Definition> {
        self.definitions
            .values()
            .map(|added| added.definition.clone())
            .collect()
    }
}

impl AdditionChange {
    /// The kind.
    pub fn kind(&self) -> AdditionKind {
        match self {
            Self::Profile(..) => AdditionKind::Profile,
            Self::Definition(..) => AdditionKind::Definition,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        match self {
            Self::Profile(name, _) | Self::Definition(name, _) => name,
        }
    }

    /// What is stored; `None` if it is taken away.
    pub fn document(&self) -> Option<String> {
        let written = match self {
            Self::Profile(_, Some((_, entry))) => serde_json::to_string(entry),
            Self::Definition(_, Some(added)) => serde_json::to_string(&added.entry),
            Self::Profile(_, None) | Self::Definition(_, None) => return None,
        };
        // Texts, lists and JSON values can always be written.
        Some(written.unwrap_or_default())
    }
}

impl Config {
    /// A profile as its entry says, by the rules of `[[profiles]]`.
    pub fn judge_profile(&self, name: &str, entry: &ProfileEntry) -> Result<Profile, EntryError> {
        let mut table = Table::new();
        table.insert("name".to_owned(), Value::from(name));
        let texts = |texts: &Vec<String>| {
            let texts = texts.iter().map(|text| Value::from(text.as_str()));
            Value::Array(texts.collect())
        };
        let members = [
            ("scenarios", entry.scenarios.as_ref().map(texts)),
            ("permission", entry.permission.as_deref().map(Value::from)),
            ("mcp_mode", entry.mcp_mode.as_deref().map(Value::from)),
        ];
        for (key, value) in members {
            table.extend(value.map(|value| (key.to_owned(), value)));
        }
        let mut scratch = Self::for_state(PathBuf::new());
        scratch.unknown_level = self.unknown_level;
        judge("profiles", table, |at| profiles::read(at, &mut scratch))?;
        Ok(scratch.profiles.remove(name).unwrap_or_default())
    }

    /// A definition as its entry says, by the rules of `[[definitions]]`.
    pub fn judge_definition(
        &self,
        name: &str,
        entry: DefinitionEntry,
        additions: &Additions,
    ) -> Result<AddedDefinition, EntryError> {
        let mut table = Table::new();
        table.insert("name".to_owned(), Value::from(name));
        let schema = match &entry.schema {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        table.insert("schema".to_owned(), Value::from(schema));
        let by_profile = |one: &ProfileActivity| {
            let pairs = [("profile", &one.profile), ("activity", &one.activity)];
            let pairs = pairs.map(|(key, text)| (key.to_owned(), Value::from(text.as_str())));
            Value::Table(pairs.into_iter().collect())
        };
        let activity = entry.activity.as_ref().map(|activity| match activity {
            ActivityEntry::One(text) => Value::from(text.as_str()),
            ActivityEntry::ByProfile(list) => Value::Array(list.iter().map(by_profile).collect()),
        });
        table.extend(activity.map(|value| ("activity".to_owned(), value)));
        let mut scratch = Self::for_state(PathBuf::new());
        scratch.scenarios.clone_from(&self.scenarios);
        scratch.modules.clone_from(&self.modules);
        scratch.profiles = self.profiles_with(additions).known;
        judge("definitions", table, |at| {
            definitions::read(at, &mut scratch);
        })?;
        let definition = scratch.definitions.pop().ok_or_else(|| EntryError {
            message: "this is no definition".to_owned(),
            hint: "write `\"schema\": {...}`".to_owned(),
        })?;
        Ok(AddedDefinition { definition, entry })
    }

    /// The profiles of the configuration, and those that were added under other names.
    pub fn profiles_with(&self, additions: &Additions) -> Profiles {
        let mut profiles = self.marked_profiles();
        for (name, profile) in &additions.profiles {
            let added = || Profile {
                unknown: self.unknown_level,
                ..profile.clone()
            };
            profiles.known.entry(name.clone()).or_insert_with(added);
        }
        profiles
    }
}

/// Reads one entry of a list of tables, and refuses it with all that is wrong with it.
fn judge(
    list: &str,
    entry: Table,
    read: impl FnOnce(&mut ValueReader<'_>),
) -> Result<(), EntryError> {
    let written = Value::Array(vec![Value::Table(entry)]);
    let mut violations = Vec::new();
    read(&mut ValueReader {
        path: KeyPath::dotted(list),
        value: Some(&written),
        // No member of these entries is a path or a secret.
        surroundings: Surroundings {
            to_path: &|_, _| None,
            variable: &|_| None,
        },
        violations: &mut violations,
    });
    let element = format!("{list}[0]");
    let parts: Vec<String> = violations
        .iter()
        .map(|violation| {
            let path = violation.path.to_string();
            let member = path.strip_prefix(&element).unwrap_or(&path);
            let member = member.trim_start_matches('.');
            if member.is_empty() {
                violation.wrong.message.clone()
            } else {
                format!("`{member}`: {}", violation.wrong.message)
            }
        })
        .collect();
    match violations.into_iter().next() {
        None => Ok(()),
        Some(first) => Err(EntryError {
            message: parts.join("; "),
            hint: first.wrong.hint,
        }),
    }
}

fn parsed<'a, T: Deserialize<'a>>(document: &'a str) -> Result<T, EntryError> {
    serde_json::from_str(document).map_err(|error| EntryError {
        message: error.to_string(),
        hint: String::new(),
    })
}

/// The finding that an addition cannot be read.
fn unreadable(kind: AdditionKind, name: &str, error: &EntryError) -> Finding {
    let consequence = match kind {
        AdditionKind::Profile => "so its callers see and call no tools",
        AdditionKind::Definition => "so it is not listed",
    };
    let command = match kind {
        AdditionKind::Profile => "`callsheet profiles set` or `callsheet profiles remove`",
        AdditionKind::Definition => "`PUT` or `DELETE /api/v1/definitions/{name}`",
    };
    let name = crate::model::finding::quoted_excerpt(name);
    let message = format!("the stored {kind} {name} cannot be used, {consequence}: {error}");
    Finding::new(FindingCode::StateRepaired, message)
        .hint(format!("it stays in the store; replace it with {command}"))
}
