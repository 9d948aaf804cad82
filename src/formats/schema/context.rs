//! What the steps of one run share: their remaining budget, and the notes on their changes.

use std::fmt::Display;

use serde_json::Value;

use super::budget::{TransformBudget, weight};
use super::error::TransformError;
use crate::model::finding::near;
use crate::model::text::truncate_at_char_boundary;

/// Notes kept for one schema; a hostile schema could have one at each place.
const MAX_NOTES: usize = 16;
/// Bytes of a note's message.
const MESSAGE: usize = 700;
/// Bytes of a pointer that are written before it is cut to that of a place around it.
const POINTER: usize = 600;

/// What a step does: it changes the schema in place, pays for that from the budget of the context,
/// and tells it what changed. An error means that the tool cannot be offered at all.
pub type TransformFn = fn(&mut Value, &mut Context) -> Result<(), TransformError>;

/// One step.
#[derive(Debug, Clone, Copy)]
pub struct Transform {
    /// Its name, such as `drop_noise`, perhaps with its module before it.
    path: &'static str,
    run: TransformFn,
}

impl Transform {
    /// What it is called in figures, such as `drop_noise`.
    pub fn name(self) -> &'static str {
        self.path.rsplit("::").next().unwrap_or(self.path)
    }
}

/// A step under the name of its function.
pub(in crate::formats) const fn step(path: &'static str, run: TransformFn) -> Transform {
    Transform { path, run }
}

/// What a step left out or changed in meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransformNote {
    /// Where in the schema as the scenario wrote it, as a JSON pointer (RFC 6901); `""` is the
    /// whole schema. Of a place with a long pointer, that of the nearest place around it.
    pub pointer: String,
    /// What was done and why, in one sentence without a full stop.
    pub message: String,
    /// The next step for the scenario's author; empty when there is none.
    pub hint: &'static str,
}

/// What the steps of one run share.
#[derive(Debug)]
pub struct Context {
    /// What the steps may still spend.
    pub budget: TransformBudget,
    /// What the schema takes now, in bytes.
    size: usize,
    changed: bool,
    /// The steps that changed something, in order; one that runs twice may be here twice.
    by: Vec<Transform>,
    notes: Vec<TransformNote>,
    further: usize,
}

impl Context {
    /// The context of a run over this schema.
    pub fn for_schema(schema: &Value) -> Self {
        let size = weight(schema);
        Self {
            budget: TransformBudget::for_size(size),
            size,
            changed: false,
            by: Vec::new(),
            notes: Vec::new(),
            further: 0,
        }
    }

    /// Runs a step.
    pub(super) fn run(
        &mut self,
        step: Transform,
        schema: &mut Value,
    ) -> Result<(), TransformError> {
        self.read_again()?;
        let before = std::mem::take(&mut self.changed);
        (step.run)(schema, self)?;
        if self.changed {
            self.by.push(step);
            self.size = weight(schema);
        }
        self.changed |= before;
        Ok(())
    }

    /// Pays for reading the whole schema once, which must not have grown too large.
    pub(super) fn read_again(&mut self) -> Result<(), TransformError> {
        self.budget.begin(self.size)
    }

    /// Something changed that means the same as before.
    pub fn silent(&mut self) {
        self.changed = true;
    }

    /// Something changed that a person may want to know. Place and message are written only if they
    /// are kept.
    pub fn lossy(&mut self, place: impl Display, message: impl Display, hint: &'static str) {
        self.changed = true;
        if self.notes.len() < MAX_NOTES {
            let pointer = near(&truncate_at_char_boundary(place, POINTER).text).to_owned();
            self.notes.push(TransformNote {
                pointer,
                message: truncate_at_char_boundary(message, MESSAGE).text,
                hint,
            });
        } else {
            self.further += 1;
        }
    }

    /// Whether a step changed anything.
    pub(super) fn changed(&self) -> bool {
        self.changed
    }

    /// The notes, the last one telling how many more there would be, and the steps that changed
    /// something.
    pub(super) fn finish(mut self) -> (Vec<TransformNote>, Vec<Transform>) {
        if self.further > 0 {
            let message = format!(
                "{} further places of this schema were changed",
                self.further
            );
            self.notes.push(TransformNote {
                pointer: String::new(),
                message,
                hint: "",
            });
        }
        (self.notes, self.by)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::{self, Display};

    use serde_json::json;

    use super::*;

    /// A text that is longer than any memory.
    struct Endless;

    impl Display for Endless {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            loop {
                f.write_str("ö/")?;
            }
        }
    }

    #[test]
    fn texts_of_notes_are_cut_before_they_are_written() {
        let mut context = Context::for_schema(&json!({}));
        context.lossy(format_args!("/properties/{Endless}"), Endless, "");
        for _ in 0..MAX_NOTES {
            context.lossy("/a", "b", "");
        }
        let (notes, _) = context.finish();
        assert!(
            (MESSAGE - 1..=MESSAGE).contains(&notes[0].message.len()),
            "a whole character"
        );
        assert!(notes[0].pointer.starts_with("/properties/") && notes[0].pointer.len() <= POINTER);
        assert!(notes[0].pointer.ends_with('ö'), "a whole step");
        assert_eq!(
            notes[MAX_NOTES].message,
            "1 further places of this schema were changed"
        );
    }
}
