//! The bounds of a client's profile, and profiles that are not configured.
//!
//! Without `[[profiles]]` a profile is a scope of preferences, and has no bounds. As soon as there
//! is one, profiles are bounds, and a typing error in a name must not lift them: a profile that is
//! not configured sees and calls no tools. Where none is configured, as soon as a preference
//! names a profile, the known ones are those that preferences or definitions name, and another name
//! sees no tools either. While no profile is known, lists accept every name.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use super::{Catalog, ViewQuery, nearest};
use crate::model::{
    CallerBounds, Permission, Profile, Profiles, Scope, UnknownLevel, WithNextStep, bounds,
};

/// A refusal names so many profiles; if there are more, it says so.
const NAMED: usize = 10;

/// The bounds of a profile that is not known, where others are.
static NOTHING: Profile = Profile {
    scenarios: Some(BTreeSet::new()),
    permission: None,
    unknown: UnknownLevel::Refuse,
    searches: None,
    is_default: false,
};

/// An unknown profile: it is not configured while others are, or no profile is configured and
/// neither a preference nor a definition names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownProfile {
    /// As the client wrote it.
    pub name: String,
    /// The profiles that are known, in order.
    pub known: Vec<String>,
    /// Whether `known` are the profiles of the configuration.
    pub is_bounded: bool,
}

impl Catalog {
    /// The profiles, as this catalog was built from them.
    pub(crate) fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// The bounds of a profile that is configured.
    pub fn profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.known.get(name)
    }

    /// The name of the client's profile: the one it names, or else the one that is configured for
    /// clients that name none.
    pub fn profile_of<'a>(&'a self, query: &'a ViewQuery) -> Option<&'a str> {
        let default = || {
            let profiles = self.profiles.known.iter().filter(|_| !query.of_operator);
            profiles
                .filter(|(_, profile)| profile.is_default)
                .map(|(name, _)| name.as_str())
                .next()
        };
        query.profile.as_deref().or_else(default)
    }

    /// Whether preferences of a profile or chat, or bounds, may hold for a client.
    pub fn is_scoped(&self, query: &ViewQuery) -> bool {
        query.chat.is_some() || query.permission.is_some() || self.profile_of(query).is_some()
    }

    /// Whether profiles are configured, and clients that name none have none.
    pub(super) fn has_optional_profiles(&self) -> bool {
        !self.profiles.known.is_empty()
            && !self
                .profiles
                .known
                .values()
                .any(|profile| profile.is_default)
    }

    /// The bounds of a client: of its profile, and of the level that it names. A profile that is
    /// not known where others are may see no tools. Everything that a client may see or call is
    /// judged by them.
    pub(crate) fn bounds(&self, query: &ViewQuery) -> CallerBounds<'_> {
        let of_name = |name| {
            self.profile(name)
                .or_else(|| self.is_unknown(query).then_some(&NOTHING))
        };
        let profile = self.profile_of(query).and_then(of_name);
        bounds(query.permission, profile, &self.profiles)
    }

    /// Set if the client's profile sees no tools because it is not known and others are.
    pub fn unknown_profile(&self, query: &ViewQuery) -> Option<UnknownProfile> {
        let name = query.profile.as_ref()?;
        self.is_unknown(query).then(|| self.unknown(name))
    }

    /// The same of a scope of preferences, which makes a profile known where none is configured.
    pub(super) fn unknown_scope(&self, scope: &Scope) -> Option<UnknownProfile> {
        let Scope::Profile(name) = scope else {
            return None;
        };
        (!self.profiles.known.is_empty() && !self.profiles.known.contains_key(name))
            .then(|| self.unknown(name))
    }

    /// Set if the client's profile may not call: it is not configured, and if no profile is
    /// configured, no preference names it either.
    pub(crate) fn may_not_call(&self, query: &ViewQuery) -> Option<UnknownProfile> {
        let name = query.profile.as_ref()?;
        let known = self.profiles.known.contains_key(name)
            || (self.profiles.known.is_empty() && self.is_preferred(name));
        (!known).then(|| self.unknown(name))
    }

    /// Whether a preference of this scope holds for a profile that is known already. One of any
    /// other profile would make that one known, and lists would refuse the names that are not.
    pub(crate) fn knows_scope(&self, scope: &Scope) -> bool {
        match scope {
            Scope::Global | Scope::Chat(_) => true,
            Scope::Profile(name) => {
                self.profiles.known.contains_key(name) || self.is_preferred(name)
            }
        }
    }

    /// Whether the client's profile is not known while others are. An operator's view may be of a
    /// profile that the next preference makes known.
    fn is_unknown(&self, query: &ViewQuery) -> bool {
        let Some(name) = &query.profile else {
            return false;
        };
        if !self.profiles.known.is_empty() {
            return !self.profiles.known.contains_key(name);
        }
        let is_named = || self.is_preferred(name) || self.has_activities_for(name);
        let is_any = || self.preferences().profiles().next().is_some();
        !query.of_operator && !is_named() && is_any()
    }

    /// Whether a preference names the profile.
    fn is_preferred(&self, name: &str) -> bool {
        self.preferences()
            .scope(&Scope::Profile(name.to_owned()))
            .next()
            .is_some()
    }

    fn unknown(&self, name: &str) -> UnknownProfile {
        let is_bounded = !self.profiles.known.is_empty();
        let named = self
            .preferences()
            .profiles()
            .chain(self.profiles_of_activities());
        let known: BTreeSet<&str> = if is_bounded {
            self.profiles.known.keys().map(String::as_str).collect()
        } else {
            named.collect()
        };
        UnknownProfile {
            name: name.to_owned(),
            known: known.into_iter().map(str::to_owned).collect(),
            is_bounded,
        }
    }
}

/// Why a tool that requires this permission is beyond these bounds of a client.
pub(super) fn beyond_level(
    query: &ViewQuery,
    bounds: &CallerBounds<'_>,
    required: Permission,
) -> String {
    let level = bounds.permission.unwrap_or_default();
    let whose = if query.permission == Some(level) {
        "caller"
    } else {
        "profile"
    };
    format!("it requires the permission `{required}`, and the {whose} has `{level}`")
}

impl UnknownProfile {
    /// What makes the name known.
    fn made_known(&self) -> &'static str {
        if self.is_bounded || self.known.is_empty() {
            "add it as [[profiles]] to the configuration, or leave it out"
        } else {
            "set a preference in its scope, or leave it out"
        }
    }
}

impl WithNextStep for UnknownProfile {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        let near = nearest(
            &self.name,
            self.known.iter().map(|known| (known.as_str(), known)),
        );
        let made_known = self.made_known();
        Some(match near.first() {
            Some(near) => format!("{made_known}; did you mean `{near}`?").into(),
            None => made_known.into(),
        })
    }
}

impl std::error::Error for UnknownProfile {}

impl fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = self.next_step().unwrap_or_default();
        if self.known.is_empty() {
            return write!(f, "no profile is called `{}`; {next}", self.name);
        }
        let known: Vec<String> = self
            .known
            .iter()
            .take(NAMED)
            .map(|name| format!("`{name}`"))
            .collect();
        let more = if self.known.len() > NAMED {
            " and more"
        } else {
            ""
        };
        let known = known.join(", ");
        write!(
            f,
            "no profile is called `{}`, so it may see and call no tools; known are {known}{more}; {next}",
            self.name
        )
    }
}
