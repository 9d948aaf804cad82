//! The bounds of a profile (a persona, a role): which tools it may see at all. Preferences choose
//! within it and never widen it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
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

/// The profiles that are known, and how levels are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profiles {
    /// By name. If there are any, a profile that is not here may see no tools.
    pub known: BTreeMap<String, Profile>,
    /// How tools that require an unknown level are treated, for callers that name a level.
    pub unknown: UnknownLevel,
}

/// What a caller may see and call at most. What is absent allows all, what is empty allows none,
/// and bounds only intersect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallerBounds<'a> {
    /// Only tools of these scenarios.
    pub scenarios: Option<Cow<'a, BTreeSet<ScenarioName>>>,
    /// Only tools that require at most this permission.
    pub permission: Option<Permission>,
    /// How tools that require an unknown level are treated, if `permission` is set.
    pub unknown: UnknownLevel,
}

/// The bounds of a caller: of the profile that it names, and of its own level. Both are
/// independent of each other, and neither widens the other.
pub fn bounds<'a>(
    level: Option<Permission>,
    profile: Option<&'a Profile>,
    profiles: &Profiles,
) -> CallerBounds<'a> {
    let of_caller = CallerBounds {
        scenarios: None,
        permission: level,
        unknown: profiles.unknown,
    };
    profile
        .map_or_else(CallerBounds::default, Profile::bounds)
        .and(of_caller)
}

/// A text that is not a level of permission.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a level of permission: use `guest`, `user`, `admin` or `owner`")]
pub struct InvalidPermission(pub String);

impl Profile {
    /// What its callers may see and call at most.
    pub fn bounds(&self) -> CallerBounds<'_> {
        CallerBounds {
            scenarios: self.scenarios.as_ref().map(Cow::Borrowed),
            permission: self.permission,
            unknown: self.unknown,
        }
    }
}

impl From<BTreeMap<String, Profile>> for Profiles {
    fn from(known: BTreeMap<String, Profile>) -> Self {
        Self {
            known,
            unknown: UnknownLevel::default(),
        }
    }
}

impl CallerBounds<'_> {
    /// What both allow.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let scenarios = match (self.scenarios, other.scenarios) {
            (Some(one), Some(two)) => Some(Cow::Owned(&*one & &*two)),
            (one, two) => one.or(two),
        };
        let (permission, unknown) = match (self.permission, other.permission) {
            (Some(one), Some(two)) => {
                let unknown = match (self.unknown, other.unknown) {
                    (UnknownLevel::Guest, UnknownLevel::Guest) => UnknownLevel::Guest,
                    _ => UnknownLevel::Refuse,
                };
                (Some(one.min(two)), unknown)
            }
            (Some(one), None) => (Some(one), self.unknown),
            (None, two) => (two, other.unknown),
        };
        Self {
            scenarios,
            permission,
            unknown,
        }
    }

    /// Whether everything is allowed.
    pub fn is_open(&self) -> bool {
        self.scenarios.is_none() && self.permission.is_none()
    }

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
    /// The levels that a profile or a caller may have, lowest first.
    pub const NAMED: [Self; 4] = [Self::Guest, Self::User, Self::Admin, Self::Owner];

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
        Self::NAMED
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
                    profile.bounds().allows_permission(other),
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
        assert!(!owner.bounds().allows_permission(Permission::Unknown));
        assert!(
            Profile {
                unknown: UnknownLevel::Guest,
                ..owner
            }
            .bounds()
            .allows_permission(Permission::Unknown)
        );
        assert!(
            CallerBounds::default().allows_permission(Permission::Unknown),
            "without a level nothing is asked"
        );
        assert!(
            "unknown".parse::<Permission>().is_err(),
            "nobody can be given it"
        );
    }

    #[test]
    fn bounds_only_intersect() {
        let names = |names: &[&str]| {
            let names = names
                .iter()
                .map(|name| name.parse::<ScenarioName>().unwrap());
            names.collect::<BTreeSet<_>>()
        };
        let persona = Profile {
            scenarios: Some(names(&["a", "b"])),
            permission: Some(Permission::Admin),
            ..Profile::default()
        };
        let profiles = Profiles::default();
        let level = |level| bounds(Some(level), Some(&persona), &profiles).permission;
        assert_eq!(level(Permission::User), Some(Permission::User));
        assert_eq!(
            level(Permission::Owner),
            Some(Permission::Admin),
            "a caller lowers and never raises"
        );
        let alone = bounds(Some(Permission::Guest), None, &profiles);
        assert!(!alone.is_open() && alone.scenarios.is_none());
        assert!(bounds(None, None, &profiles).is_open());
        let other = Profile {
            scenarios: Some(names(&["b", "c"])),
            ..Profile::default()
        };
        let both = persona.bounds().and(other.bounds());
        assert_eq!(both.scenarios.as_deref(), Some(&names(&["b"])));
        assert_eq!(both.permission, Some(Permission::Admin));
        let nothing = Profile {
            scenarios: Some(BTreeSet::new()),
            ..Profile::default()
        };
        let none = both.and(nothing.bounds());
        assert!(!none.allows_scenario(&"b".parse().unwrap()));
    }
}
