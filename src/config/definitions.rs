//! `[[definitions]]`: tools that are defined by their schemas, and what runs them.
//!
//! A schema is written as JSON, since its order matters to LLMs and a table of TOML has none. A
//! file with a schema is read whenever the configuration is.

use std::path::PathBuf;

use super::Config;
use super::shape::Shape;
use super::units::ValueError;
use super::value_reader::ValueReader;
use crate::model::{DEFINITIONS, ScenarioName, Scope};
use crate::protocols::definitions::{Definition, DefinitionError};
use crate::runtime::open_files::read_regular;

/// Bytes of a file with a schema at most.
const MAX_SCHEMA: u64 = 1024 * 1024;

/// The shape of the list.
pub(super) const SHAPE: Shape = Shape::List(&Shape::Table(&[
    ("name", Shape::Text),
    ("schema", Shape::Verbatim),
    (
        "activity",
        Shape::TextOrList(&[("profile", Shape::Text), ("activity", Shape::Text)]),
    ),
    ("file", Shape::Text),
]));

/// Reads the definitions, and takes those that keep the rules.
pub(super) fn read(written: &mut ValueReader<'_>, config: &mut Config) {
    let is_taken = |name: &ScenarioName| name.as_str() == DEFINITIONS;
    let mut names = config
        .scenarios
        .iter()
        .map(|scenario| &scenario.name)
        .chain(config.modules.services.keys());
    if names.any(is_taken) && written.value.is_some() {
        let message = format!(
            "a scenario is called `{DEFINITIONS}`, which is the name of the scenario that these become"
        );
        written.reject(ValueError::new(message, "give that scenario another name"));
        return;
    }
    written.each(|_, mut at| {
        let Some(definition) = definition(&mut at) else {
            return;
        };
        let Some(definition) = with_activities(definition, &mut at, config) else {
            return;
        };
        if config
            .definitions
            .iter()
            .any(|known| known.name() == definition.name())
        {
            let message = format!("`{}` is defined already", definition.name());
            at.reject(ValueError::new(message, "make one definition of the two"));
        } else {
            config.definitions.push(definition);
        }
    });
}

/// The definition that an entry's schema is.
fn definition(at: &mut ValueReader<'_>) -> Option<Definition> {
    let mut name = None::<String>;
    let mut schema = None::<String>;
    let mut file = None::<PathBuf>;
    at.key("name").text(&mut name, |text| Ok(text.to_owned()));
    at.key("schema")
        .text(&mut schema, |text| Ok(text.to_owned()));
    at.key("file").path(&mut file);
    let (key, text) = match (schema, file) {
        (Some(schema), None) => ("schema", schema),
        (None, Some(file)) => match read_regular(&file, MAX_SCHEMA) {
            Ok(text) => ("file", text),
            Err(why) => {
                let message = format!("{} cannot be read: {why}", file.display());
                at.key("file")
                    .reject(ValueError::new(message, "name a file with one JSON Schema"));
                return None;
            }
        },
        (Some(_), Some(_)) => {
            at.key("file").reject(ValueError::new(
                "this definition has a `schema` too",
                "take one of the two out",
            ));
            return None;
        }
        (None, None) => {
            // A value that was refused already is complained of once.
            if at.key("file").value.is_none() && at.key("schema").value.is_none() {
                let hint = "add `schema = '{...}'` or `file = \"NAME.json\"` to it";
                at.reject(ValueError::new("this definition has no schema", hint));
            }
            return None;
        }
    };
    Definition::parse(name.as_deref(), &text)
        .map_err(|error| at.key(key).reject(wrong(&error)))
        .ok()
}

/// The definition with the activities that its entry names.
fn with_activities(
    definition: Definition,
    at: &mut ValueReader<'_>,
    config: &Config,
) -> Option<Definition> {
    let mut at = at.key("activity");
    let mut named = None::<String>;
    at.text(&mut named, activity);
    let mut defined = match named {
        Some(named) => definition
            .run_by(&named)
            .map_err(|error| at.reject(wrong(&error)))
            .ok()?,
        None => definition,
    };
    let mut profiles = Vec::new();
    at.each(|_, mut at| {
        let mut profile = None::<String>;
        let mut named = None::<String>;
        at.require(
            "profile",
            ValueError::new(
                "this activity has no profile",
                "add `profile = \"NAME\"` to it",
            ),
        );
        let missing = "this activity names no tool";
        at.require(
            "activity",
            ValueError::new(missing, "add `activity = \"SCENARIO/TOOL\"` to it"),
        );
        at.key("profile")
            .text(&mut profile, |text| known_profile(text, &profiles, config));
        at.key("activity").text(&mut named, activity);
        if let (Some(profile), Some(named)) = (profile, named) {
            defined = defined.clone().run_for(&profile, &named);
            profiles.push(profile);
        }
    });
    Some(defined)
}

fn activity(text: &str) -> Result<String, ValueError> {
    if text.is_empty() {
        let hint = "name it as \"SCENARIO/TOOL\", or leave the key out: then the tool with the name of the definition runs it, if there is one";
        return Err(ValueError::new("the activity is empty", hint));
    }
    Ok(text.to_owned())
}

/// A profile that a client may name, once for each definition.
fn known_profile(text: &str, others: &[String], config: &Config) -> Result<String, ValueError> {
    if others.iter().any(|other| other == text) {
        let message = format!("the profile {text:?} has an activity here already");
        return Err(ValueError::new(message, "keep one of the two"));
    }
    if !config.profiles.is_empty() && !config.profiles.contains_key(text) {
        return Err(ValueError::new(
            format!("no profile is called {text:?}"),
            "name one of `[[profiles]]`",
        ));
    }
    match format!("profile:{text}").parse() {
        Ok(Scope::Profile(name)) => Ok(name),
        _ => Err(ValueError::new(
            format!("{text:?} cannot be the name of a profile"),
            "use 1 to 200 characters",
        )),
    }
}

fn wrong(error: &DefinitionError) -> ValueError {
    ValueError::new(error.to_string(), error.hint())
}
