//! The bounds of a client's profile, and profiles that are not configured.
//!
//! Without `[[profiles]]` a profile is a scope of preferences, and has no bounds. As soon as there
//! is one, profiles are bounds, and a typing error in a name must not lift them: a profile that is
//! not configured sees and calls no tools.

use std::collections::BTreeSet;
use std::fmt;

use super::{Catalog, ViewQuery};
use crate::model::{Profile, Scope, UnknownLevel};

/// A refusal names so many profiles; if there are more, it says so.
const NAMED: usize = 10;

/// The bounds of a profile that is not configured, where others are.
static NOTHING: Profile = Profile {
    scenarios: Some(BTreeSet::new()),
    permission: None,
    unknown: UnknownLevel::Refuse,
    searches: None,
    is_default: false,
};

/// An unknown profile: it is not configured while others are, or no profile is configured and no
/// preference names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownProfile {
    /// As the client wrote it.
    pub name: String,
    /// The profiles that are configured, in order.
    pub known: Vec<String>,
}

impl Catalog {
    /// The bounds of a profile that is configured.
    pub fn profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.get(name)
    }

    /// The name of the client's profile: the one it names, or else the one that is configured for
    /// clients that name none.
    pub fn profile_of<'a>(&'a self, query: &'a ViewQuery) -> Option<&'a str> {
        let default = || {
            let profiles = self.profiles.iter().filter(|_| !query.of_operator);
            profiles.filter(|(_, profile)| profile.is_default).map(|(name, _)| name.as_str()).next()
        };
        query.profile.as_deref().or_else(default)
    }

    /// Whether preferences of a profile or chat, or bounds, may hold for a client.
    pub fn is_scoped(&self, query: &ViewQuery) -> bool {
        query.chat.is_some() || self.profile_of(query).is_some()
    }

    /// Whether profiles are configured, and clients that name none have none.
    pub(super) fn has_optional_profiles(&self) -> bool {
        !self.profiles.is_empty() && !self.profiles.values().any(|profile| profile.is_default)
    }

    /// The bounds of the client's profile, if it has any. A profile that is not configured where
    /// others are may see no tools.
    pub(super) fn bounds(&self, query: &ViewQuery) -> Option<&Profile> {
        let name = self.profile_of(query)?;
        self.profiles.get(name).or_else(|| (!self.profiles.is_empty()).then_some(&NOTHING))
    }

    /// Set if the client's profile sees no tools because it is not configured and others are.
    pub fn unknown_profile(&self, query: &ViewQuery) -> Option<UnknownProfile> {
        let name = query.profile.as_ref()?;
        (!self.profiles.is_empty() && !self.profiles.contains_key(name)).then(|| self.unknown(name))
    }

    /// The same of a scope of preferences.
    pub(super) fn unknown_scope(&self, scope: &Scope) -> Option<UnknownProfile> {
        let Scope::Profile(name) = scope else { return None };
        (!self.profiles.is_empty() && !self.profiles.contains_key(name)).then(|| self.unknown(name))
    }

    /// Set if the client's profile may not call: it is not configured, and if no profile is
    /// configured, no preference names it either.
    pub(crate) fn may_not_call(&self, query: &ViewQuery) -> Option<UnknownProfile> {
        let name = query.profile.as_ref()?;
        let spoken_of = || self.preferences().scope(&Scope::Profile(name.clone())).next().is_some();
        let known = self.profiles.contains_key(name) || (self.profiles.is_empty() && spoken_of());
        (!known).then(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> UnknownProfile {
        UnknownProfile { name: name.to_owned(), known: self.profiles.keys().cloned().collect() }
    }
}

impl std::error::Error for UnknownProfile {}

impl fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let add = "add it as [[profiles]] to the configuration, or leave it out";
        if self.known.is_empty() {
            return write!(f, "no profile is called `{}`; {add}", self.name);
        }
        let known: Vec<String> = self.known.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
        let more = if self.known.len() > NAMED { " and more" } else { "" };
        let known = known.join(", ");
        write!(
            f,
            "no profile is called `{}`, so it may see and call no tools; known are {known}{more}; {add}",
            self.name
        )
    }
}
