//! Whether a schema may be compiled, and how large the result would be, counted before compiling.
//!
//! The validator is a library that trusts its schemas. Some keywords make it compile or apply a
//! schema in ways whose cost cannot be counted from outside: those that depend on what other
//! keywords evaluated, on the way in, or on addresses. A schema with one of them is not used. Of
//! the others everything that grows faster than the text is counted here and bounded: a definition
//! is compiled anew for each spelling of a reference to it, every part keeps the pointer to itself,
//! and values that are no schemas are copied.
//!
//! What stands in `default`, `const` and the like is taken for a schema, too: a reference may lead
//! there. What a check costs is counted in [`super::cost`].

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::references::{Outside, References};
use super::weight::{self, Weights};

/// The size of a compiled schema at most. A unit takes up to about a hundred bytes.
const MOST_UNITS: u64 = 500_000;
/// Units of an object, which may become a part of the validator.
const OBJECT_UNITS: u64 = 8;
/// Bytes of a pointer that weigh as much as one unit.
const POINTER_UNIT: u64 = 16;
/// How deep the schema and all that it refers to may nest, taken together: as deep as the longest
/// chain of references could lead. Such a chain is compiled, applied and freed by recursion.
const SCHEMA_LEVELS_MAX: u64 = 4_000;
/// References with different targets or spellings. What is compiled later is kept with all the
/// schemas that lead to it.
const MOST_REFERENCES: usize = 2_000;
/// How many keywords may be inspected to find what distinguishes branches.
const MOST_LOOKS: u64 = 50_000;
/// The number of branches from which on the validator looks for a member that distinguishes them.
const MANY_BRANCHES: usize = 3;
/// How deep it looks for that member.
const LOOKS_DEEP: u32 = 16;
/// Bytes of a reference, which is resolved anew wherever it stands.
const LONGEST_REFERENCE: usize = 2_000;

/// The draft that schemas of draft 4 are checked by.
const DRAFT_6: &str = "http://json-schema.org/draft-06/schema#";

/// Keywords whose cost cannot be counted.
const UNCOUNTED: [&str; 7] = [
    "unevaluatedProperties",
    "unevaluatedItems",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
];
/// Keywords that hold schemas under names, which are no keywords.
const NAMED: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];
/// Keywords of every draft that hold schemas. The value of any other may be copied.
const NOT_COPIED: [&str; 11] = [
    "properties",
    "patternProperties",
    "definitions",
    "dependencies",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "items",
    "additionalItems",
    "additionalProperties",
];

/// Why a schema is not compiled, as the end of "cannot be used to check arguments: ...".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotCompiled {
    /// It has a keyword of [`UNCOUNTED`].
    #[error("it uses `{0}`, and what that costs cannot be foreseen")]
    Keyword(&'static str),
    /// A schema within it has an address or a draft of its own.
    #[error("it embeds a schema with a `{0}` of its own")]
    Embedded(&'static str),
    /// A reference to what is not within the schema.
    #[error(transparent)]
    Reference(#[from] Outside),
    /// A reference longer than [`LONGEST_REFERENCE`].
    #[error("it has a reference of more than {LONGEST_REFERENCE} bytes")]
    LongReference,
    /// More than [`MOST_REFERENCES`].
    #[error("it has more than {MOST_REFERENCES} different references")]
    References,
    /// More than [`MOST_UNITS`].
    #[error("it is too large together with what it refers to")]
    Size,
    /// Deeper than [`SCHEMA_LEVELS_MAX`].
    #[error("the schemas that it refers to nest too deeply together")]
    Depth,
    /// More than [`MOST_LOOKS`].
    #[error("its branches take too long to tell apart")]
    Branches,
}

/// The size of the compiled schema, in units of some hundred bytes.
pub(super) fn measure(schema: &Value) -> Result<u64, NotCompiled> {
    refuse(schema, schema, true)?;
    let mut count = Count::new(schema);
    let mut deep = count.part(schema, 0, false)?;
    while let Some(reference) = count.waiting.pop() {
        let target = count.references.target(reference)?;
        deep += count.part(target, reference.len() as u64, false)?;
        if deep > SCHEMA_LEVELS_MAX {
            return Err(NotCompiled::Depth);
        }
    }
    Ok(count.units)
}

/// Removes the address of the whole schema: no reference uses it, and each part would keep it. A
/// schema of draft 4 counts as one of draft 6, which has numbers for strict bounds.
pub(super) fn without_address(schema: &mut Value) {
    let draft_4 = is_draft_4(schema);
    let Some(keywords) = schema.as_object_mut() else {
        return;
    };
    keywords.shift_remove(if draft_4 { "id" } else { "$id" });
    if draft_4 {
        keywords.insert("$schema".to_owned(), DRAFT_6.into());
    }
}

/// Refuses keywords whose cost cannot be counted, wherever they stand, and references that lead
/// outside.
fn refuse(value: &Value, root: &Value, is_root: bool) -> Result<(), NotCompiled> {
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| refuse(item, root, false)),
        Value::Object(members) => members.iter().try_for_each(|(keyword, held)| {
            if let Some(keyword) = UNCOUNTED.iter().find(|uncounted| *uncounted == keyword) {
                return Err(NotCompiled::Keyword(keyword));
            }
            match (keyword.as_str(), held) {
                ("$ref", Value::String(reference)) if !reference.starts_with('#') => {
                    Err(Outside::new(reference).into())
                }
                ("$ref", Value::String(reference)) if reference.len() > LONGEST_REFERENCE => {
                    Err(NotCompiled::LongReference)
                }
                // A property may have one of these names; its value is not a text.
                ("$id", Value::String(_)) if !is_root => Err(NotCompiled::Embedded("$id")),
                ("id", Value::String(_)) if !is_root && is_draft_4(root) => {
                    Err(NotCompiled::Embedded("id"))
                }
                ("$schema", Value::String(_)) if !is_root && root.get("$schema") != Some(held) => {
                    Err(NotCompiled::Embedded("$schema"))
                }
                _ => refuse(held, root, false),
            }
        }),
        _ => Ok(()),
    }
}

/// In draft 4 an address is called `id`, which is a common name of members elsewhere.
fn is_draft_4(root: &Value) -> bool {
    root.get("$schema")
        .and_then(Value::as_str)
        .is_some_and(|draft| draft.contains("draft-04"))
}

/// What the validator collects of a branch to distinguish it from others.
#[derive(Debug, Clone, Copy, Default)]
struct Collected {
    /// Schemas that it looks at.
    schemas: u64,
    /// Names that these require. It looks for each in each of them.
    names: u64,
}

/// Adds up the parts of one schema.
struct Count<'a> {
    references: References<'a>,
    weights: Weights<'a>,
    units: u64,
    looks: u64,
    /// What is collected of a schema (its address) at a depth.
    collected: HashMap<(usize, u32), Collected>,
    /// References seen so far. Each spelling is compiled by itself.
    known: HashSet<&'a str>,
    /// Those whose targets are still to be counted.
    waiting: Vec<&'a str>,
}

impl<'a> Count<'a> {
    fn new(schema: &'a Value) -> Self {
        Self {
            references: References::new(schema),
            weights: Weights::default(),
            units: 0,
            looks: 0,
            collected: HashMap::new(),
            known: HashSet::new(),
            waiting: Vec::new(),
        }
    }

    fn add(&mut self, units: u64) -> Result<(), NotCompiled> {
        self.units = self.units.saturating_add(units);
        if self.units > MOST_UNITS {
            Err(NotCompiled::Size)
        } else {
            Ok(())
        }
    }

    fn look(&mut self, looks: u64) -> Result<(), NotCompiled> {
        self.looks = self.looks.saturating_add(looks);
        if self.looks > MOST_LOOKS {
            Err(NotCompiled::Branches)
        } else {
            Ok(())
        }
    }

    /// Counts a value and what is in it; `pointer` is the length of the way to it, and `named` says
    /// that its members are no keywords. Returns how deep it nests.
    fn part(&mut self, value: &'a Value, pointer: u64, named: bool) -> Result<u64, NotCompiled> {
        self.add(1 + pointer / POINTER_UNIT)?;
        let mut deep = 0;
        match value {
            Value::Array(items) => {
                for item in items {
                    deep = deep.max(self.part(item, pointer + 4, false)?);
                }
            }
            Value::Object(members) => {
                self.add(OBJECT_UNITS)?;
                for (name, held) in members {
                    self.add(weight::text(name))?;
                    if !named {
                        self.keyword(name, held)?;
                    }
                    let below = !named && NAMED.contains(&name.as_str());
                    deep = deep.max(self.part(held, pointer + name.len() as u64 + 1, below)?);
                }
            }
            Value::String(text) => {
                self.add(weight::text(text))?;
                return Ok(0);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => return Ok(0),
        }
        Ok(deep + 1)
    }

    /// Counts what a keyword takes besides its value.
    fn keyword(&mut self, keyword: &str, held: &'a Value) -> Result<(), NotCompiled> {
        match (keyword, held) {
            ("$ref", Value::String(reference)) if self.known.insert(reference) => {
                if self.known.len() > MOST_REFERENCES {
                    return Err(NotCompiled::References);
                }
                self.waiting.push(reference);
            }
            ("anyOf" | "oneOf", Value::Array(branches)) if branches.len() >= MANY_BRANCHES => {
                for branch in branches {
                    let collected = self.collect(branch, 0)?;
                    self.look(
                        collected
                            .schemas
                            .saturating_mul(collected.names.saturating_add(1)),
                    )?;
                }
            }
            _ => {}
        }
        if NOT_COPIED.contains(&keyword) {
            return Ok(());
        }
        let weight = self.weights.of(held);
        self.add(weight)
    }

    /// What is collected of a branch. Counting takes one look for each schema and depth.
    fn collect(&mut self, schema: &'a Value, depth: u32) -> Result<Collected, NotCompiled> {
        let Some(keywords) = schema.as_object().filter(|_| depth <= LOOKS_DEEP) else {
            return Ok(Collected {
                schemas: 1,
                names: 0,
            });
        };
        let key = (std::ptr::from_ref(schema).addr(), depth);
        if let Some(collected) = self.collected.get(&key) {
            return Ok(*collected);
        }
        self.look(1)?;
        let names = keywords
            .get("required")
            .and_then(Value::as_array)
            .map_or(0, |names| names.len() as u64);
        let mut all = Collected { schemas: 1, names };
        if let Some(Value::String(reference)) = keywords.get("$ref") {
            let target = self.references.target(reference)?;
            all = all.and(self.collect(target, depth + 1)?);
        }
        for part in keywords
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            all = all.and(self.collect(part, depth + 1)?);
        }
        self.collected.insert(key, all);
        Ok(all)
    }
}

impl Collected {
    fn and(self, other: Self) -> Self {
        Self {
            schemas: self.schemas.saturating_add(other.schemas),
            names: self.names.saturating_add(other.names),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    /// Definitions `d0` to `d{count}`, each made of the reference to the next one.
    fn chain(count: usize, link: impl Fn(Value) -> Value) -> Value {
        let mut defs: Map<String, Value> = (0..count)
            .map(|n| {
                (
                    format!("d{n}"),
                    link(json!({"$ref": format!("#/$defs/d{}", n + 1)})),
                )
            })
            .collect();
        defs.insert(format!("d{count}"), json!({"type": "string"}));
        json!({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs})
    }

    #[test]
    fn keywords_whose_cost_cannot_be_counted_are_refused_wherever_they_stand() {
        for keyword in UNCOUNTED {
            for schema in [
                json!({keyword: {}}),
                json!({"properties": {"a": {"items": [{keyword: false}]}}}),
            ] {
                assert_eq!(
                    measure(&schema),
                    Err(NotCompiled::Keyword(keyword)),
                    "{schema}"
                );
            }
        }
    }

    #[test]
    fn a_schema_has_one_address_and_one_draft() {
        let draft_4 = "http://json-schema.org/draft-04/schema#";
        let draft_7 = "http://json-schema.org/draft-07/schema#";
        for (schema, refused) in [
            (
                json!({"$id": "https://example.com/a.json", "properties": {"$id": {"type": "string"}}}),
                None,
            ),
            (
                json!({"properties": {"id": {"type": "string", "default": {"id": "x"}, "examples": [{"id": 1}]}}}),
                None,
            ),
            (
                json!({"$schema": draft_4, "id": "https://example.com/a.json"}),
                None,
            ),
            (
                json!({"$schema": draft_7, "$defs": {"a": {"$schema": draft_7}}}),
                None,
            ),
            (
                json!({"$defs": {"a": {"$id": "https://example.com/b.json"}}}),
                Some("$id"),
            ),
            (
                json!({"$schema": draft_4, "definitions": {"a": {"id": "b.json"}}}),
                Some("id"),
            ),
            (
                json!({"$schema": draft_7, "$defs": {"a": {"$schema": draft_4}}}),
                Some("$schema"),
            ),
            (
                json!({"$defs": {"a": {"$schema": draft_4}}}),
                Some("$schema"),
            ),
        ] {
            let refusal = measure(&schema).err();
            assert_eq!(refusal, refused.map(NotCompiled::Embedded), "{schema}");
        }
    }

    #[test]
    fn references_lead_to_what_is_within() {
        for outside in [
            "",
            "other.json",
            "https://json-schema.org/draft/2020-12/schema",
            "https://example.com/a.json#/$defs/a",
            "#/$defs/missing",
            "#missing",
        ] {
            let schema = json!({"$id": "https://example.com/a.json", "$defs": {"a": {}}, "not": {"$ref": outside}});
            assert_eq!(
                measure(&schema),
                Err(NotCompiled::Reference(Outside::new(outside))),
                "{outside}"
            );
        }
        let long = json!({"items": {"$ref": format!("#/$defs/{}", "a".repeat(100_000))}});
        assert_eq!(measure(&long), Err(NotCompiled::LongReference));
        let recursive = json!({"$defs": {"a": {"items": {"$ref": "#"}}}, "properties": {"b": {"$ref": "#/$defs/a"}}});
        assert!(measure(&recursive).unwrap() < 200);
    }

    #[test]
    fn branches_that_take_long_to_tell_apart_are_refused() {
        let doubled = |link: Value| json!({"allOf": [link, link, link, link]});
        let mut schema = chain(15, doubled);
        schema["oneOf"] = json!([{"$ref": "#/$defs/d0"}, {}, {}]);
        assert_eq!(measure(&schema), Err(NotCompiled::Branches));
        schema["oneOf"] = json!([{"$ref": "#/$defs/d0"}, {}]);
        assert!(measure(&schema).is_ok());
        // Each name is looked for in each of the schemas.
        let names: Vec<String> = (0..1_000).map(|n| format!("n{n}")).collect();
        let wide = json!({"required": names, "allOf": vec![json!({"properties": {}}); 1_000]});
        assert_eq!(
            measure(&json!({"anyOf": [wide, {}, {}]})),
            Err(NotCompiled::Branches)
        );
        let kinds: Vec<Value> = (0..200)
            .map(|n| json!({"required": ["kind", "a", "b"], "properties": {"kind": {"const": format!("k{n}")}}}))
            .collect();
        assert!(measure(&json!({"oneOf": kinds})).is_ok());
    }

    #[test]
    fn chains_of_references_are_bounded() {
        assert!(measure(&chain(1_000, |next| json!({"properties": {"a": next}}))).is_ok());
        assert_eq!(
            measure(&chain(1_500, |next| json!({"properties": {"a": next}}))),
            Err(NotCompiled::Depth)
        );
        assert_eq!(
            measure(&chain(2_500, |next| next)),
            Err(NotCompiled::References)
        );
    }

    #[test]
    fn what_is_copied_is_counted() {
        // Each level copies all that is below.
        let nest =
            |levels| (0..levels).fold(json!(vec![0; 20_000]), |inner, _| json!({"unknown": inner}));
        assert!(measure(&nest(3)).is_ok());
        assert_eq!(measure(&nest(60)), Err(NotCompiled::Size));
        let values = |count: usize| json!({"enum": vec![json!("a".repeat(80)); count]});
        assert!(measure(&values(10_000)).is_ok());
        assert_eq!(measure(&values(30_000)), Err(NotCompiled::Size));
    }

    #[test]
    fn pointers_and_spellings_of_references_are_counted() {
        let below = |name: usize| json!({"properties": {"a".repeat(name): {"allOf": vec![json!({}); 5_000]}}});
        assert!(measure(&below(10)).is_ok());
        assert_eq!(measure(&below(100_000)), Err(NotCompiled::Size));
        // The same place, in so many spellings.
        let spelled = |count: usize| {
            let letter = |n: usize, bit: usize| if n >> bit & 1 == 0 { "a" } else { "%61" };
            let spelling = |n: usize| (0..10).map(|bit| letter(n, bit)).collect::<String>();
            let references =
                (0..count).map(|n| json!({"$ref": format!("#/$defs/{}", spelling(n))}));
            json!({"allOf": references.collect::<Vec<_>>(), "$defs": {"a".repeat(10): {"enum": vec![0; 2_000]}}})
        };
        assert!(measure(&spelled(10)).is_ok());
        assert_eq!(measure(&spelled(1_000)), Err(NotCompiled::Size));
    }
}
