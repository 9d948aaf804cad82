//! Whether the active configuration is the written one.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::finding::{CappedFindings, Finding, FindingCode};

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
            let message =
                format!("`{key}` keeps its value until a restart, although the configuration has another one");
            findings.push(Finding::new(FindingCode::ConfigWaiting, message).hint("restart the daemon"));
        }
        for key in &self.renamed {
            findings.push(Finding::new(FindingCode::ConfigDeprecated, key.to_string()).hint(key.hint()));
        }
        findings.finish()
    }
}

impl RenamedKey {
    /// How to fix it.
    pub fn hint(self) -> String {
        format!("write `{}` instead: a later version will not read the old name", self.new)
    }
}

impl fmt::Display for RenamedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is the old name of `{}`", self.old, self.new)
    }
}
