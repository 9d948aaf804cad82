//! The bounds of a profile (a persona, a role): which tools it may see at all. Preferences choose
//! within it and never widen it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::name::ScenarioName;

/// A level of permission, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Permission {
    /// Every client. Also the level of a tool that requires no permission.
    #[default]
    Guest,
    /// A known user.
    User,
    /// An administrator.
    Admin,
    /// The owner.
    Owner,
    /// The level of a tool that requires an unknown level. No level reaches it; see
    /// [`UnknownLevel`] for the other reading.
    Unknown,
}

/// How an unknown permission level is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownLevel {
    /// No profile with a level may see a tool that requires it: a typing error must not open a tool
    /// that its author wanted to restrict.
    #[default]
    Refuse,
    /// As `guest`, so that every caller may use the tool.
    Guest,
}

/// The bounds of a profile. Without any, everything is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// Only tools of these scenarios; all when absent, none when empty.
    pub scenarios: Option<BTreeSet<ScenarioName>>,
    /// Only tools that require at most this permission; all if absent.
    pub permission: Option<Permission>,
    /// How tools that require an unknown level are treated, if `permission` is set.
    pub unknown: UnknownLevel,
    /// Whether MCP clients get tools that search in place of the whole list; as the configuration
    /// says for all clients if absent.
    pub searches: Option<bool>,
    /// Whether it is the profile of clients that name none.
    pub is_default: bool,
}

/// A text that is not a level of permission.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a level of permission: use `guest`, `user`, `admin` or `owner`")]
pub struct InvalidPermission(pub String);

impl Profile {
    /// Whether tools of this scenario may be seen.
    pub fn allows_scenario(&self, name: &ScenarioName) -> bool {
        self.scenarios
            .as_ref()
            .is_none_or(|allowed| allowed.contains(name))
    }

    /// Whether tools that require this permission may be seen.
    pub fn allows_permission(&self, required: Permission) -> bool {
        self.permission.is_none_or(|level| match required {
            Permission::Unknown => self.unknown == UnknownLevel::Guest,
            required => required <= level,
        })
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
            Self::Unknown => "unknown",
        }
    }
}

/// Parses one of the four known levels.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_reaches_itself_and_all_below() {
        let levels = [
            Permission::Guest,
            Permission::User,
            Permission::Admin,
            Permission::Owner,
        ];
        for (had, level) in levels.into_iter().enumerate() {
            let profile = Profile {
                permission: Some(level),
                ..Profile::default()
            };
            for (wanted, other) in levels.into_iter().enumerate() {
                assert_eq!(
                    profile.allows_permission(other),
                    wanted <= had,
                    "{level} asked for {other}"
                );
            }
        }
    }

    #[test]
    fn a_level_that_nobody_knows_is_reached_by_none_unless_it_is_read_as_guest() {
        let owner = Profile {
            permission: Some(Permission::Owner),
            ..Profile::default()
        };
        assert!(!owner.allows_permission(Permission::Unknown));
        assert!(
            Profile {
                unknown: UnknownLevel::Guest,
                ..owner
            }
            .allows_permission(Permission::Unknown)
        );
        assert!(
            Profile::default().allows_permission(Permission::Unknown),
            "without a level nothing is asked"
        );
        assert!(
            "unknown".parse::<Permission>().is_err(),
            "nobody can be given it"
        );
    }
}
