//! `[[profiles]]` and `[permissions]`: what a persona may see at all.

use std::collections::BTreeMap;

use super::Config;
use super::rules::scenario_name;
use super::shape::Shape;
use super::units::ValueError;
use super::value_reader::ValueReader;
use crate::model::{Permission, Profile, Profiles, ScenarioName, Scope, UnknownLevel};

/// The shape of the list.
pub(super) const SHAPE: Shape = Shape::List(&Shape::Table(&[
    ("name", Shape::Text),
    ("scenarios", Shape::TEXTS),
    ("allowed_modules", Shape::Words),
    ("permission", Shape::Text),
    ("mcp_mode", Shape::Text),
]));

/// Reads the profiles, and takes those that keep the rules.
pub(super) fn read(written: &mut ValueReader<'_>, config: &mut Config) {
    let unknown = config.unknown_level;
    written.each(|_, mut at| {
        let mut name = None;
        let mut profile = Profile {
            unknown,
            ..Profile::default()
        };
        at.require(
            "name",
            ValueError::new("this profile has no name", "add `name = \"...\"` to it"),
        );
        at.key("name")
            .text(&mut name, |text| profile_name(text, &config.profiles));
        // One key under two names: what either says is allowed.
        for key in ["scenarios", "allowed_modules"] {
            if at.key(key).value.is_some() {
                let mut allowed: Vec<ScenarioName> = Vec::new();
                at.key(key).words(&mut allowed, scenario_name);
                profile.scenarios.get_or_insert_default().extend(allowed);
            }
        }
        at.key("permission")
            .text(&mut profile.permission, |text| level(text, unknown));
        at.key("mcp_mode")
            .text(&mut profile.searches, super::rules::mcp_mode);
        config
            .profiles
            .extend(name.map(|name: String| (name, profile)));
    });
}

/// The name of the profile of clients that name none. Whether there is one of this name is checked
/// when all profiles are read.
pub(super) fn default_name(text: &str) -> Result<String, ValueError> {
    match format!("profile:{text}").parse() {
        Ok(Scope::Profile(name)) => Ok(name),
        _ => Err(ValueError::new(
            format!("{text:?} cannot be the name of a profile"),
            "name one of `[[profiles]]`",
        )),
    }
}

/// What is wrong if no profile has the name that `permissions.default_profile` has.
pub(super) fn unknown_default(config: &Config) -> Option<ValueError> {
    let name = config
        .default_profile
        .as_ref()
        .filter(|name| !config.profiles.contains_key(*name))?;
    let known: Vec<String> = config
        .profiles
        .keys()
        .map(|name| format!("`{name}`"))
        .collect();
    let hint = match known.as_slice() {
        [] => "add it as `[[profiles]]`".to_owned(),
        known => format!(
            "name one of {}, or add it as `[[profiles]]`",
            known.join(", ")
        ),
    };
    Some(ValueError::new(
        format!("no profile is called {name:?}"),
        hint,
    ))
}

impl Config {
    /// The profiles, with the mark of the one that holds for clients that name none.
    pub fn marked_profiles(&self) -> Profiles {
        let marked = self.profiles.iter().map(|(name, profile)| {
            let is_default = profile.is_default || self.default_profile.as_ref() == Some(name);
            (
                name.clone(),
                Profile {
                    is_default,
                    ..profile.clone()
                },
            )
        });
        Profiles {
            known: marked.collect(),
            unknown: self.unknown_level,
        }
    }
}

/// How an unknown level is treated.
pub(super) fn unknown_level(text: &str) -> Result<UnknownLevel, ValueError> {
    match text {
        "refuse" => Ok(UnknownLevel::Refuse),
        "guest" => Ok(UnknownLevel::Guest),
        _ => Err(ValueError::new(
            format!("{text:?} is not such a reading"),
            "write \"refuse\" or \"guest\"",
        )),
    }
}

fn level(text: &str, unknown: UnknownLevel) -> Result<Permission, ValueError> {
    match (text.parse::<Permission>(), unknown) {
        (Ok(level), _) => Ok(level),
        (Err(_), UnknownLevel::Guest) => Ok(Permission::Guest),
        (Err(wrong), UnknownLevel::Refuse) => Err(ValueError::new(
            wrong.to_string(),
            "without this key every permission is allowed",
        )),
    }
}

/// A name that `profile:<name>` can hold and no other profile has.
fn profile_name(text: &str, others: &BTreeMap<String, Profile>) -> Result<String, ValueError> {
    if others.contains_key(text) {
        let message = format!("`{text}` is already the name of another profile");
        return Err(ValueError::new(
            message,
            "give each profile a name of its own",
        ));
    }
    match format!("profile:{text}").parse() {
        Ok(Scope::Profile(name)) => Ok(name),
        _ => Err(ValueError::new(
            format!("{text:?} cannot be the name of a profile"),
            "use 1 to 200 characters without control characters",
        )),
    }
}
