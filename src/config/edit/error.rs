//! Why a configuration file was not changed. It is then as it was.

use std::path::PathBuf;

use crate::config::error::{ConfigError, Diagnostic};
use crate::config::suggest::nearest;

/// Why a file was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    /// The name is taken.
    #[error("{} has a scenario `{name}` already", path.display())]
    NameTaken {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// Another scenario is at the same address, or is the same program.
    #[error("`{owner}` is at {address} already, and {} would name it twice", path.display())]
    SameAddress {
        /// The file.
        path: PathBuf,
        /// The name of the new entry.
        name: String,
        /// The scenario that is there.
        owner: String,
        /// The address, or the command.
        address: String,
    },
    /// It is the address of callsheet itself.
    #[error(
        "{address} is the address of callsheet itself, which cannot list its own tools as those of a provider"
    )]
    OwnAddress {
        /// The address.
        address: String,
    },
    /// No entry has this name.
    #[error("{} has no scenario `{name}`{}", path.display(), others(name, known))]
    NotThere {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
        /// The names that it has.
        known: Vec<String>,
    },
    /// The file cannot be read, written or changed by a program.
    #[error("{} cannot be {what}: {why}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What was tried: a file that was not there cannot be `created`, another cannot be
        /// `changed`.
        what: &'static str,
        /// The reason.
        why: String,
        /// What a person does with these lines.
        by_hand: &'static str,
        /// The lines.
        lines: String,
    },
    /// Another program wrote to the file after it was read here.
    #[error("{} was changed by another program meanwhile", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// What came out is no configuration that can be used: either it was none before, or the entry
    /// breaks a rule.
    #[error("{} would be no usable configuration: {}", path.display(), first(problems))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problems: ConfigError,
    },
}

impl EditError {
    /// The next step, if there is one.
    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            // The values of variables and headers are secrets, so the command is not repeated here.
            Self::NameTaken { name, .. } => format!(
                "take another name, or put it in the place of that one: `callsheet add {name} --replace` with the same arguments"
            ),
            Self::SameAddress { name, owner, .. } => format!(
                "`callsheet remove {owner}` makes room for `{name}`; other names for tools: `callsheet prefs set tool:{owner}/TOOL --alias NAME`"
            ),
            Self::OwnAddress { .. } => "name the address of another program".to_owned(),
            Self::NotThere { name, known, .. } => {
                let near = nearest(name, known.iter().map(String::as_str))?;
                format!("did you mean `{near}`?")
            }
            Self::Unwritable { by_hand, .. } => (*by_hand).to_owned(),
            Self::Changed { .. } => "try again".to_owned(),
            Self::Invalid { problems, .. } => problems.problems.first()?.hint.clone(),
        })
    }
}

/// The names that a file has instead of one that it lacks, unless that was meant for one of them.
fn others(name: &str, known: &[String]) -> String {
    if known.is_empty() {
        ", and no other".to_owned()
    } else if nearest(name, known.iter().map(String::as_str)).is_some() {
        String::new()
    } else {
        format!(", but has {}", known.join(", "))
    }
}

/// The first problem; each is a sentence of its own.
fn first(error: &ConfigError) -> String {
    error
        .problems
        .first()
        .map(Diagnostic::line)
        .unwrap_or_default()
}
