//! What is wrong with a configuration: every problem, each with its place, its key and the next step.

use std::fmt;

use super::origin::Origin;

/// A configuration that cannot be used. Holds at least one problem; displays all of them, one below the other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The problems: those of the file in its order, then those of the environment, then those of flags.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong. Displays as `path:line:column: key: message` and a second line `  hint: ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The place of what is wrong.
    pub origin: Origin,
    /// The key, unless the file as a whole is meant.
    pub key: Option<String>,
    /// What is wrong, in one clause.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { "\n" })?;
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File { path, position: Some(at) } => write!(f, "{}:{}:{}: ", path.display(), at.line, at.column)?,
            Origin::File { path, position: None } => write!(f, "{}: ", path.display())?,
            Origin::Default => {}
            other => write!(f, "{other}: ")?,
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        write!(f, "{}\n  hint: {}", self.message, self.hint)
    }
}
