//! JSON Schema transforms: small steps that make a tool's schema acceptable to a vendor.
//!
//! ```text
//! text -> tree -> step, step, ... (each over all schemas, by walk) -> text, notes (what was lost)
//!                   `-> context: budget and notes                     the same text, if unchanged
//! ```
//!
//! A vendor is a list of steps: `COMMON`, `COMPILED` or `SIMPLE`, and a few of its own. For example
//! `plain::const_to_enum` makes `{"enum": [1]}` of `{"const": 1}`.
//!
//! What is kept true here:
//!
//! - A step changes keywords only. Names of parameters are the user's, and so is everything inside
//!   `default`, `examples`, `enum` and `const`. The order of members stays, because LLMs write
//!   arguments in that order.
//! - A reference is looked up in the schema, and nowhere else.
//! - A step pays for its work before it does it. The budget counts bytes and never time, so the
//!   same schema always ends alike.
//! - What loses information leaves a note. A schema that no step changed stays the text that came
//!   in.
//!
//! Read in this order:
//!
//! 1. This file ([`apply`]), `context.rs`, `budget.rs`, `error.rs`, `walk.rs` (which keywords hold
//!    schemas).
//! 2. Repairs: `noise.rs`, `well_formed.rs`, `upgrade.rs`, `items.rs`, `root.rs`, `required.rs`,
//!    `references.rs`, `patterns.rs`; `valid.rs` (no transform is needed).
//! 3. Plainer schemas: `fold.rs`, `inline.rs`, `all_of.rs`, `plain.rs`, `types.rs`, `keywords.rs`.
//! 4. Strict modes: `close.rs`.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use crate::model::JsonText;
use crate::model::text::truncate_at_char_boundary;

pub mod all_of;
pub mod budget;
pub mod close;
pub mod context;
pub mod error;
pub mod fold;
pub mod inline;
pub mod items;
pub mod keywords;
pub mod noise;
pub mod patterns;
pub mod plain;
pub mod references;
pub mod required;
pub mod root;
pub mod types;
pub mod upgrade;
pub mod valid;
pub mod walk;
pub mod well_formed;

pub(super) use context::step;
pub use context::{Context, Transform, TransformFn, TransformNote};
pub use error::TransformError;
pub use walk::escaped;

/// A list of steps, written as the functions that they are.
macro_rules! steps {
    ($($step:path),* $(,)?) => { [$($crate::formats::schema::step(stringify!($step), $step)),*] };
}
pub(super) use steps;

/// A schema after the steps.
#[derive(Debug, Clone)]
pub struct Applied<'a> {
    /// Its text; the very text that came in when no step had to change anything.
    pub json: Cow<'a, str>,
    /// What was lost, in the order it happened.
    pub notes: Vec<TransformNote>,
    /// The steps that changed something, in the order they ran.
    pub by: Vec<Transform>,
    /// Bytes that the steps read, copied and wrote; a [`budget::TransformBudget`] bounds them.
    pub work: usize,
}

impl<'a> Applied<'a> {
    /// Whether the steps lost no information and only changed how it is written.
    pub(super) fn means_the_same(&self) -> bool {
        self.notes.is_empty() && !self.by.is_empty()
    }

    /// The schema as it came.
    pub(super) fn undone(self, raw: &'a JsonText) -> Self {
        Self {
            json: Cow::Borrowed(raw.get()),
            by: Vec::new(),
            ..self
        }
    }
}

/// Runs the steps over a schema.
pub fn apply<'a>(raw: &'a JsonText, steps: &[Transform]) -> Result<Applied<'a>, TransformError> {
    apply_within(raw, steps, &mut |_| Ok(()))
}

/// The same, with a last look at what came out.
pub(super) fn apply_within<'a>(
    raw: &'a JsonText,
    steps: &[Transform],
    check: &mut dyn FnMut(&mut Value) -> Result<(), TransformError>,
) -> Result<Applied<'a>, TransformError> {
    // A value tree nests at most 128 levels, so the steps may recurse.
    let mut schema: Value = serde_json::from_str(raw.get())
        .map_err(|error| TransformError::Unreadable(error.to_string()))?;
    let mut context = Context::for_schema(&schema);
    for step in steps {
        context.run(*step, &mut schema)?;
    }
    // For the check, and for writing it.
    context.read_again()?;
    check(&mut schema)?;
    let work = context.budget.spent();
    if !context.changed() {
        return Ok(Applied {
            json: Cow::Borrowed(raw.get()),
            notes: Vec::new(),
            by: Vec::new(),
            work,
        });
    }
    let json = schema.to_string();
    drop(schema);
    if !crate::json::soundness::is_sound(&json) {
        // Folding can nest a schema deeper than it came.
        return Err(TransformError::Unreadable(
            "it nests too deeply once its references are followed".into(),
        ));
    }
    let (notes, by) = context.finish();
    Ok(Applied {
        json: Cow::Owned(json),
        notes,
        by,
        work,
    })
}

/// The steps that every LLM vendor needs.
pub(super) const COMMON: &[Transform] = &steps![
    noise::drop_noise,
    well_formed::well_formed,
    patterns::sound_patterns,
    upgrade::to_2020,
    items::array_items,
    root::object_root,
    references::local_references,
    fold::flat_root,
    references::local_references,
    required::known_required,
];

/// The steps for targets that compile patterns, as `OpenAI` does.
pub(super) const COMPILED: &[Transform] =
    &join::<{ COMMON.len() + 1 }>(COMMON, &steps![patterns::common_patterns]);

/// The steps for a target that takes few keywords and no references; its own vocabulary comes last.
pub(super) const SIMPLE: &[Transform] = &steps![
    noise::drop_noise,
    well_formed::well_formed,
    upgrade::to_2020,
    items::array_items,
    root::object_root,
    references::local_references,
    fold::flat_root,
    references::local_references,
    inline::inline,
    all_of::merge,
    plain::no_booleans,
    plain::one_of_to_any_of,
    plain::const_to_enum,
    items::array_items,
    root::object_root,
    required::known_required,
];

/// Two lists of steps, one behind the other. `N` is the length of both together.
pub(super) const fn join<const N: usize>(
    first: &[Transform],
    second: &[Transform],
) -> [Transform; N] {
    assert!(
        first.len() + second.len() == N,
        "N is the length of both lists"
    );
    let mut joined = [first[0]; N];
    let mut at = 0;
    while at < N {
        joined[at] = if at < first.len() {
            first[at]
        } else {
            second[at - first.len()]
        };
        at += 1;
    }
    joined
}

/// Takes a member out and keeps the order of the others. Each call moves all members behind it, so
/// that of many members at once `retain` takes care.
pub(super) fn take(map: &mut serde_json::Map<String, Value>, key: &str) -> Option<Value> {
    // `remove` would put the last member in its place.
    map.shift_remove(key)
}

/// Takes out what stands in a list for the second time; whether there was any.
fn each_once(list: &mut Vec<Value>) -> bool {
    let mut seen = HashSet::new();
    let first: Vec<bool> = list.iter().map(|value| seen.insert(value)).collect();
    let mut first = first.into_iter();
    let before = list.len();
    list.retain(|_| first.next().unwrap_or(true));
    list.len() < before
}

/// The beginning of a value's text, for a message.
fn short(value: &Value) -> String {
    truncate_at_char_boundary(value, 60).text
}
