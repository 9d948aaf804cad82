//! What a profile (a persona, a role) may see at all. Preferences choose within it and never widen it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::name::ScenarioName;

/// A level of permission, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Permission {
    /// Anybody. Also what a tool asks that asks nothing, or something unknown.
    #[default]
    Guest,
    /// A known user.
    User,
    /// Someone who administers.
    Admin,
    /// The owner.
    Owner,
}

/// The bounds of a profile. Without any, everything is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// Only tools of these scenarios; all when absent, none when empty.
    pub scenarios: Option<BTreeSet<ScenarioName>>,
    /// Only tools that ask at most this permission; all when absent.
    pub permission: Option<Permission>,
}

/// A text that is no level of permission.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no level of permission: use `guest`, `user`, `admin` or `owner`")]
pub struct InvalidPermission(pub String);

impl Profile {
    /// Whether tools of this scenario may be seen.
    pub fn allows_scenario(&self, name: &ScenarioName) -> bool {
        self.scenarios.as_ref().is_none_or(|allowed| allowed.contains(name))
    }

    /// Whether tools that ask this permission may be seen.
    pub fn allows_permission(&self, asked: Permission) -> bool {
        self.permission.is_none_or(|level| asked <= level)
    }
}

impl Permission {
    /// The level as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::User => "user",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
}

impl FromStr for Permission {
    type Err = InvalidPermission;

    fn from_str(text: &str) -> Result<Self, InvalidPermission> {
        [Self::Guest, Self::User, Self::Admin, Self::Owner]
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or_else(|| InvalidPermission(text.chars().take(120).collect()))
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
