//! What is wrong with a configuration: every problem, each with its place, its key and the next
//! step.

use std::fmt;

use super::origin::ValueOrigin;

/// A configuration that cannot be used. Holds at least one problem; displays all of them, one below
/// the other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The problems: those of the file in its order, then those of the environment, then those of
    /// flags.
    pub problems: Vec<Diagnostic>,
}

/// One thing that is wrong. Displays as `path:line:column: key: message` and a second line
/// `  hint: ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The place of what is wrong.
    pub origin: ValueOrigin,
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

impl Diagnostic {
    /// Its place, its key and what is wrong, in one line: the first of two when it is displayed.
    pub fn line(&self) -> String {
        let place = match &self.origin {
            ValueOrigin::File {
                path,
                position: Some(at),
            } => format!("{}:{}:{}: ", path.display(), at.line, at.column),
            ValueOrigin::File {
                path,
                position: None,
            } => format!("{}: ", path.display()),
            ValueOrigin::Default => String::new(),
            other => format!("{other}: "),
        };
        let key = self
            .key
            .as_ref()
            .map(|key| format!("{key}: "))
            .unwrap_or_default();
        format!("{place}{key}{}", self.message)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  hint: {}", self.line(), self.hint)
    }
}
