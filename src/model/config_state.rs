//! Whether the active configuration is the written one.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::finding::{CappedFindings, Finding, FindingCode};

/// Ignored variables that are named, and characters of one name, at most.
const IGNORED_NAMES_MAX: usize = 10;
const IGNORED_NAME_CHARACTERS_MAX: usize = 100;

/// The state of the configuration in a daemon that reloads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigState {
    /// The file that the active configuration was read from, if any.
    pub file: Option<Arc<str>>,
    /// Since when it is active.
    pub since: Timestamp,
    /// How often another configuration became active since the start.
    pub reloads: u64,
    /// The keys that the last of them changed.
    pub changed: Vec<Arc<str>>,
    /// What the last of them changed in the list of scenarios.
    pub scenarios: ScenarioChanges,
    /// Changed keys that take effect at the next restart.
    pub waiting: Vec<Arc<str>>,
    /// The keys that are written under an old name.
    pub renamed: Vec<RenamedKey>,
    /// The variables of the environment that look like configuration and are none.
    pub ignored_variables: Option<IgnoredVariables>,
    /// Set while the written configuration cannot be used.
    pub refused: Option<RefusedConfig>,
}

/// A key that has another name now. The old one is still read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenamedKey {
    /// The name that it had.
    pub old: &'static str,
    /// The name that it has.
    pub new: &'static str,
}

/// Variables of the environment that have the prefix of callsheet's and are no configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredVariables {
    /// The first of them by name.
    pub names: Vec<Arc<str>>,
    /// How many there are beside those.
    pub more: usize,
    /// Those that are nearly the name of one that means something, with that name.
    pub meant: Vec<(Arc<str>, Arc<str>)>,
}

/// How many entries of a list of scenarios changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScenarioChanges {
    /// Of names that were not there.
    pub added: usize,
    /// Of names that are not there any more.
    pub removed: usize,
    /// With another address or protocol.
    pub changed: usize,
}

/// A configuration that cannot be used: the previous one stays active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedConfig {
    /// Since when that is so.
    pub since: Timestamp,
    /// The errors, one line each with place and key, and how to fix them.
    pub problems: Vec<ConfigProblem>,
}

/// One error in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The place (file, line and column), the key and the error.
    pub message: Arc<str>,
    /// How to fix it.
    pub hint: Arc<str>,
}

impl ConfigState {
    /// Whether the written configuration is active as a whole.
    pub fn is_as_written(&self) -> bool {
        self.waiting.is_empty() && self.refused.is_none()
    }

    /// What a person should know of it.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = CappedFindings::default();
        for problem in self.refused.iter().flat_map(|refused| &refused.problems) {
            let message = format!("the configuration is not reloaded: {}", problem.message);
            findings.push(Finding::new(FindingCode::ConfigRefused, message).hint(&*problem.hint));
        }
        for key in &self.waiting {
            let message = format!(
                "`{key}` keeps its value until a restart, although the configuration has another one"
            );
            findings
                .push(Finding::new(FindingCode::ConfigWaiting, message).hint("restart the daemon"));
        }
        for key in &self.renamed {
            findings.push(
                Finding::new(FindingCode::ConfigDeprecated, key.to_string()).hint(key.hint()),
            );
        }
        if let Some(ignored) = &self.ignored_variables {
            findings.push(
                Finding::new(FindingCode::EntryIgnored, ignored.to_string()).hint(ignored.hint()),
            );
        }
        findings.finish()
    }
}

impl IgnoredVariables {
    /// These variables, each with the one that was perhaps meant; `None` without any.
    pub fn new<'a>(variables: impl Iterator<Item = (&'a str, Option<String>)>) -> Option<Self> {
        let mut ignored = Self {
            names: Vec::new(),
            more: 0,
            meant: Vec::new(),
        };
        for (name, meant) in variables {
            let name: Arc<str> = name
                .chars()
                .take(IGNORED_NAME_CHARACTERS_MAX)
                .collect::<String>()
                .into();
            if let Some(meant) = meant.filter(|_| ignored.meant.len() < IGNORED_NAMES_MAX) {
                ignored.meant.push((Arc::clone(&name), meant.into()));
            }
            if ignored.names.len() < IGNORED_NAMES_MAX {
                ignored.names.push(name);
            } else {
                ignored.more += 1;
            }
        }
        (!ignored.names.is_empty()).then_some(ignored)
    }

    /// What to do about them.
    pub fn hint(&self) -> String {
        let meant: Vec<String> = self
            .meant
            .iter()
            .map(|(name, meant)| format!("for `{name}`, did you mean `{meant}`?"))
            .collect();
        if meant.is_empty() {
            "a key is written CALLSHEET_SECTION__KEY; Kubernetes sets others for a service that is called `callsheet`, \
             which `enableServiceLinks: false` in the pod prevents"
                .to_owned()
        } else {
            meant.join(" ")
        }
    }
}

impl fmt::Display for IgnoredVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
        write!(
            f,
            "these variables of the environment are no configuration and are ignored: {}",
            names.join(", ")
        )?;
        if self.more > 0 {
            write!(f, " and {} more", self.more)
        } else {
            Ok(())
        }
    }
}

impl RenamedKey {
    /// How to fix it.
    pub fn hint(self) -> String {
        format!(
            "write `{}` instead: a later version will not read the old name",
            self.new
        )
    }
}

impl fmt::Display for RenamedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is the old name of `{}`", self.old, self.new)
    }
}
