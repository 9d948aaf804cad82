//! `[[profiles]]` and `[permissions]`: what a persona may see at all.

use std::collections::BTreeMap;

use super::check::{Section, scenario_name};
use super::modules::words;
use super::raw;
use super::units::Wrong;
use crate::model::{Permission, Profile, Scope, UnknownLevel};

/// The profiles that keep the rules, by name.
pub(super) fn read(raw: Vec<raw::Profile>, unknown: UnknownLevel, list: &mut Section<'_>) -> BTreeMap<String, Profile> {
    let mut profiles = BTreeMap::new();
    for (i, raw) in raw.into_iter().enumerate() {
        let mut at = Section { path: list.path.index(i), complaints: &mut *list.complaints };
        let (mut name, mut profile) = (None, Profile { unknown, ..Profile::default() });
        if raw.name.is_none() {
            at.complain("name", Wrong::new("this profile has no name", "add `name = \"...\"` to it"));
        }
        at.set_text("name", raw.name, &mut name, |text| profile_name(text, &profiles).map(Some));
        // One key under two names: what either says is allowed.
        for (key, listed) in [("scenarios", raw.scenarios), ("allowed_modules", raw.allowed_modules.map(words))] {
            let Some(listed) = listed else { continue };
            let mut allowed = Vec::new();
            at.set_list(key, Some(listed), &mut allowed, scenario_name);
            profile.scenarios.get_or_insert_default().extend(allowed);
        }
        at.set_text("permission", raw.permission, &mut profile.permission, |text| level(text, unknown).map(Some));
        profiles.extend(name.map(|name| (name, profile)));
    }
    profiles
}

/// How a level is read that nobody knows.
pub(super) fn unknown_level(text: &str) -> Result<UnknownLevel, Wrong> {
    match text {
        "refuse" => Ok(UnknownLevel::Refuse),
        "guest" => Ok(UnknownLevel::Guest),
        _ => Err(Wrong::new(format!("{text:?} is no such reading"), "write \"refuse\" or \"guest\"")),
    }
}

fn level(text: &str, unknown: UnknownLevel) -> Result<Permission, Wrong> {
    match (text.parse::<Permission>(), unknown) {
        (Ok(level), _) => Ok(level),
        (Err(_), UnknownLevel::Guest) => Ok(Permission::Guest),
        (Err(wrong), UnknownLevel::Refuse) => {
            Err(Wrong::new(wrong.to_string(), "without this key every permission is allowed"))
        }
    }
}

/// A name that `profile:<name>` can hold and no other profile has.
fn profile_name(text: &str, others: &BTreeMap<String, Profile>) -> Result<String, Wrong> {
    if others.contains_key(text) {
        let message = format!("`{text}` is already the name of another profile");
        return Err(Wrong::new(message, "give each profile a name of its own"));
    }
    match format!("profile:{text}").parse() {
        Ok(Scope::Profile(name)) => Ok(name),
        _ => Err(Wrong::new(
            format!("{text:?} cannot be the name of a profile"),
            "use 1 to 200 characters without control characters",
        )),
    }
}
