//! JSON Schema transforms: small steps that make a tool's schema acceptable to a vendor.
//!
//! Each step is a pure function over a tree of values that keeps the order of members (LLMs write arguments in that order). A vendor
//! is a list of steps. A step changes keywords only: names of parameters are the user's, and so is everything inside `default`,
//! `examples`, `enum` and `const`. Nothing is looked up outside the schema.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use crate::model::JsonText;

pub mod all_of;
pub mod budget;
pub mod close;
pub mod context;
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
pub mod walk;
pub mod well_formed;

pub use context::{Context, Note};
pub use walk::escaped;

use context::beginning;

/// What a step does: it changes the schema in place, pays for that from the budget of the context,
/// and tells it what changed. An error means that the tool cannot be offered at all.
pub type Step = fn(&mut Value, &mut Context) -> Result<(), Refused>;

/// One step.
#[derive(Debug, Clone, Copy)]
pub struct Transform {
    /// Its name, such as `drop_noise`, perhaps with its module before it.
    path: &'static str,
    run: Step,
}

impl Transform {
    /// What it is called in figures, such as `drop_noise`.
    pub fn name(self) -> &'static str {
        self.path.rsplit("::").next().unwrap_or(self.path)
    }
}

/// A list of steps, written as the functions that they are.
macro_rules! steps {
    ($($step:path),* $(,)?) => { [$($crate::formats::schema::step(stringify!($step), $step)),*] };
}
pub(super) use steps;

/// A step under the name of its function.
pub(super) const fn step(path: &'static str, run: Step) -> Transform {
    Transform { path, run }
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
    /// What a reference means is not within the schema; nothing is ever fetched for it.
    #[error("its schema refers to `{0}`, which is not within it")]
    Reference(String),
    /// The schema would become huge, or cost too much work.
    #[error("its schema is too large or too deep once its references are followed")]
    TooLarge,
    /// The target is known to refuse it.
    #[error("it has {0}, which the target refuses")]
    Beyond(String),
}

/// A schema after the steps.
#[derive(Debug, Clone)]
pub struct Applied<'a> {
    /// Its text; the very text that came in when no step had to change anything.
    pub json: Cow<'a, str>,
    /// What was lost, in the order it happened.
    pub notes: Vec<Note>,
    /// The steps that changed something, in the order they ran.
    pub by: Vec<Transform>,
    /// Bytes that the steps read, copied and wrote; a [`budget::Budget`] bounds them.
    pub work: usize,
}

/// Runs the steps over a schema.
pub fn apply<'a>(raw: &'a JsonText, steps: &[Transform]) -> Result<Applied<'a>, Refused> {
    apply_within(raw, steps, &mut |_| Ok(()))
}

/// The same, with a last look at what came out.
pub(super) fn apply_within<'a>(
    raw: &'a JsonText,
    steps: &[Transform],
    check: &mut dyn FnMut(&mut Value) -> Result<(), Refused>,
) -> Result<Applied<'a>, Refused> {
    // A value tree nests at most 128 levels, so the steps may recurse.
    let mut schema: Value = serde_json::from_str(raw.get()).map_err(|error| Refused::Unreadable(error.to_string()))?;
    let mut context = Context::of(&schema);
    for step in steps {
        context.run(*step, &mut schema)?;
    }
    // For the check, and for writing it.
    context.read_again()?;
    check(&mut schema)?;
    let work = context.budget.spent();
    if !context.changed() {
        return Ok(Applied { json: Cow::Borrowed(raw.get()), notes: Vec::new(), by: Vec::new(), work });
    }
    let json = schema.to_string();
    drop(schema);
    if !super::write::sound(&json) {
        // Folding can nest a schema deeper than it came.
        return Err(Refused::Unreadable("it nests too deeply once its references are followed".into()));
    }
    let (notes, by) = context.finish();
    Ok(Applied { json: Cow::Owned(json), notes, by, work })
}

impl Refused {
    /// What a reference means is not within the schema.
    fn reference(target: &str) -> Self {
        Self::Reference(beginning(target, 100))
    }

    /// The next step for the scenario's author.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => {
                "nest at most 127 levels, escape characters in whole pairs, and keep numbers within a double"
            }
            Self::Reference(_) => "put what is referred to under `$defs` of the same schema",
            Self::TooLarge => "write the schema without references that repeat large parts or lead back to themselves",
            Self::Beyond(_) => "rename or simplify it, or use another format",
            Self::NotAnObject(_) => "give the schema the type `object` and make each argument one of its properties",
        }
    }
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
pub(super) const COMPILED: &[Transform] = &join::<{ COMMON.len() + 1 }>(COMMON, &steps![patterns::common_patterns]);

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
pub(super) const fn join<const N: usize>(first: &[Transform], second: &[Transform]) -> [Transform; N] {
    assert!(first.len() + second.len() == N, "N is the length of both lists");
    let mut joined = [first[0]; N];
    let mut at = 0;
    while at < N {
        joined[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
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
    beginning(value, 60)
}
