//! What operators add while the daemon runs, besides the configuration.

use std::fmt;
use std::str::FromStr;

/// The kinds of additions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdditionKind {
    /// The bounds of a profile, as in `[[profiles]]`.
    Profile,
    /// A tool that is defined by its schema, as in `[[definitions]]`.
    Definition,
}

impl AdditionKind {
    /// The kind as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Definition => "definition",
        }
    }
}

impl FromStr for AdditionKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Profile, Self::Definition]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no kind of addition"))
    }
}

impl fmt::Display for AdditionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
