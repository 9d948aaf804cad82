//! JSON Schema transforms: small steps that make a tool's schema acceptable to a vendor.
//!
//! Each step is a pure function over a tree of values that keeps the order of members (LLMs write arguments in that order). A vendor
//! is a list of steps. A step changes keywords only: names of parameters are the user's, and so is everything inside `default`,
//! `examples`, `enum` and `const`. Nothing is looked up outside the schema.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::JsonText;

pub mod fold;
pub mod items;
pub mod noise;
pub mod required;
pub mod root;
pub mod walk;
pub mod well_formed;

pub use walk::escaped;

/// Notes kept for one schema; a hostile schema could have one at each place.
const MAX_NOTES: usize = 16;

/// One step. It changes the schema in place and tells the log; an error means that the tool cannot be offered at all.
pub type Transform = fn(&mut Value, &mut Log) -> Result<(), Refused>;

/// What a step left out or changed in meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where in the schema as the scenario wrote it, as a JSON pointer (RFC 6901); `""` is the whole schema.
    pub pointer: String,
    /// What was done and why, in one sentence without a full stop.
    pub message: String,
    /// The next step for the scenario's author; empty when there is none.
    pub hint: &'static str,
}

/// What the steps did so far.
#[derive(Debug, Default)]
pub struct Log {
    changed: bool,
    notes: Vec<Note>,
    further: usize,
}

/// Why a schema cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No common reader takes the text.
    #[error("its schema cannot be read as JSON ({0})")]
    Unreadable(String),
    /// Arguments of a call are always an object.
    #[error("its schema describes {0}, but the arguments of a call are always an object")]
    NotAnObject(String),
}

/// A schema after the steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied<'a> {
    /// Its text; the very text that came in when no step had to change anything.
    pub json: Cow<'a, str>,
    /// What was lost, in the order it happened.
    pub notes: Vec<Note>,
}

/// Runs the steps over a schema.
pub fn apply<'a>(raw: &'a JsonText, steps: &[Transform]) -> Result<Applied<'a>, Refused> {
    // A value tree nests at most 128 levels, so the steps may recurse.
    let mut schema: Value = serde_json::from_str(raw.get()).map_err(|error| Refused::Unreadable(error.to_string()))?;
    let mut log = Log::default();
    for step in steps {
        step(&mut schema, &mut log)?;
    }
    if !log.changed {
        return Ok(Applied { json: Cow::Borrowed(raw.get()), notes: Vec::new() });
    }
    let json = Cow::Owned(schema.to_string());
    if !super::write::sound(&json) {
        // Folding can nest a schema deeper than it came.
        return Err(Refused::Unreadable("it nests too deeply once its references are followed".into()));
    }
    Ok(Applied { json, notes: log.into_notes() })
}

impl Log {
    /// Something changed that means the same as before.
    pub fn silent(&mut self) {
        self.changed = true;
    }

    /// Something changed that a person may want to know.
    pub fn lossy(&mut self, pointer: impl Into<String>, message: impl Into<String>, hint: &'static str) {
        self.changed = true;
        if self.notes.len() < MAX_NOTES {
            self.notes.push(Note { pointer: pointer.into(), message: message.into(), hint });
        } else {
            self.further += 1;
        }
    }

    /// The notes, the last one telling how many more there would be.
    fn into_notes(mut self) -> Vec<Note> {
        if self.further > 0 {
            let message = format!("{} further places of this schema were changed", self.further);
            self.notes.push(Note { pointer: String::new(), message, hint: "" });
        }
        self.notes
    }
}

impl Refused {
    /// The next step for the scenario's author.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => {
                "nest at most 127 levels, escape characters in whole pairs, and keep numbers within a double"
            }
            Self::NotAnObject(_) => "give the schema the type `object` and make each argument one of its properties",
        }
    }
}

/// Takes a member out and keeps the order of the others.
fn take(map: &mut serde_json::Map<String, Value>, key: &str) -> Option<Value> {
    // `remove` would put the last member in its place.
    map.shift_remove(key)
}
