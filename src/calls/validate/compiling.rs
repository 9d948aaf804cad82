//! Whether a schema may be compiled, and how large the result would be, counted before compiling.
//!
//! The validator is a library that trusts its schemas. Some keywords make it compile or apply a
//! schema in ways whose cost cannot be counted from outside: those that depend on what other
//! keywords evaluated, on the way in, or on addresses. A schema with one of them is not used. Of
//! the others everything that grows faster than the text is counted here and bounded: a definition
//! is compiled anew for each spelling of a reference to it, every part keeps the pointer to itself,
//! values that are no schemas are copied, and schemas that are applied to the same value multiply
//! where branches refer to the same definition.
//!
//! What stands in `default`, `const` and the like is taken for a schema, too: a reference may lead
//! there. What a check costs is paid while it is made (see [`super::meter`]), at prices that are
//! found here.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::references::{Outside, References};

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
/// Schemas that are applied to one value, through branches and references: each costs time, also
/// where it reads nothing of the value.
const SCHEMAS_ON_VALUE_MAX: u64 = 20_000;
/// How deep these may nest. The validator recurses, and a schema that reads nothing does not notice
/// that its stack ends.
const LEVELS_ON_VALUE_MAX: u64 = 500;
/// Schemas that read nothing and are applied for one unit of a check's work.
const IDLE_SCHEMAS_A_UNIT: u64 = 4;
/// How many keywords may be inspected to find what distinguishes branches.
const MOST_LOOKS: u64 = 50_000;
/// The number of branches from which on the validator looks for a member that distinguishes them.
const MANY_BRANCHES: usize = 3;
/// Keywords that read the value in every draft.
const READING: [&str; 4] = ["type", "const", "enum", "pattern"];
/// Bytes of text that weigh as much as one value.
const TEXT_UNIT: usize = 8;
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
    /// Deeper than [`SCHEMA_LEVELS_MAX`] or [`LEVELS_ON_VALUE_MAX`].
    #[error("the schemas that it refers to nest too deeply together")]
    Depth,
    /// More than [`SCHEMAS_ON_VALUE_MAX`].
    #[error(
        "its branches and references multiply to more than {SCHEMAS_ON_VALUE_MAX} schemas on one value"
    )]
    Multiplied,
    /// References that lead back to where they began without going on in the arguments.
    #[error("its references lead back to themselves on one value")]
    Circle,
    /// More than [`MOST_LOOKS`].
    #[error("its branches take too long to tell apart")]
    Branches,
}

/// What was counted of a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SchemaSize {
    /// Its size once it is compiled, in units of some hundred bytes.
    pub(super) units: u64,
    /// Bytes of the longest pointer to a part of it.
    pub(super) longest_pointer: u64,
    /// How deep schemas nest that are applied to one value.
    pub(super) levels_on_value: u64,
    /// Schemas that are applied to one value and read nothing of it.
    pub(super) idle_on_value: u64,
    /// Whether numbers are divided by a fraction.
    pub(super) has_fractions: bool,
}

impl SchemaSize {
    /// What it costs to take a member or an item out of its value: as many schemas that read
    /// nothing may be applied to it.
    pub(super) fn price_of_child(self) -> u64 {
        1 + self.idle_on_value / IDLE_SCHEMAS_A_UNIT
    }

    /// Bytes of the ways through a schema that an error about a value at this depth may keep.
    pub(super) fn error_bytes(self, depth: u64) -> u64 {
        let references = self.levels_on_value.saturating_mul(depth + 1);
        self.longest_pointer.saturating_mul(references)
    }
}

/// Counts a schema.
pub(super) fn measure(schema: &Value) -> Result<SchemaSize, NotCompiled> {
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
    Ok(count.size)
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

/// The schemas that are applied to the value of one schema: itself, and those that its branches and
/// references lead to.
#[derive(Debug, Clone, Copy)]
struct OnValue {
    schemas: u64,
    /// Those of them that read nothing and lead to no other.
    idle: u64,
    levels: u64,
    /// Names that these require. To distinguish branches the validator looks for each in each of
    /// them.
    names: u64,
}

/// Adds up the parts of one schema.
struct Count<'a> {
    references: References<'a>,
    size: SchemaSize,
    looks: u64,
    /// The weights of values that are copied, by their addresses.
    weights: HashMap<usize, u64>,
    /// What a schema (its address) applies to its value; `None` while that is being counted.
    on_value: HashMap<usize, Option<OnValue>>,
    /// References seen so far. Each spelling is compiled by itself.
    known: HashSet<&'a str>,
    /// Those whose targets are still to be counted.
    waiting: Vec<&'a str>,
}

impl<'a> Count<'a> {
    fn new(schema: &'a Value) -> Self {
        Self {
            references: References::new(schema),
            size: SchemaSize::default(),
            looks: 0,
            weights: HashMap::new(),
            on_value: HashMap::new(),
            known: HashSet::new(),
            waiting: Vec::new(),
        }
    }

    fn add(&mut self, units: u64) -> Result<(), NotCompiled> {
        self.size.units = self.size.units.saturating_add(units);
        if self.size.units > MOST_UNITS {
            Err(NotCompiled::Size)
        } else {
            Ok(())
        }
    }

    /// Counts a value and what is in it; `pointer` is the length of the way to it, and `named` says
    /// that its members are no keywords. Returns how deep it nests.
    fn part(&mut self, value: &'a Value, pointer: u64, named: bool) -> Result<u64, NotCompiled> {
        self.add(1 + pointer / POINTER_UNIT)?;
        self.size.longest_pointer = self.size.longest_pointer.max(pointer);
        let mut deep = 0;
        match value {
            Value::Array(items) => {
                for item in items {
                    deep = deep.max(self.part(item, pointer + 4, false)?);
                }
            }
            Value::Object(members) => {
                self.add(OBJECT_UNITS)?;
                if !named {
                    self.schema(value)?;
                }
                for (name, held) in members {
                    self.add(text_weight(name))?;
                    if !named {
                        self.keyword(name, held)?;
                    }
                    let below = !named && NAMED.contains(&name.as_str());
                    deep = deep.max(self.part(held, pointer + name.len() as u64 + 1, below)?);
                }
            }
            Value::String(text) => {
                self.add(text_weight(text))?;
                return Ok(0);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => return Ok(0),
        }
        Ok(deep + 1)
    }

    /// Counts what a schema applies to its value.
    fn schema(&mut self, schema: &'a Value) -> Result<(), NotCompiled> {
        let on_value = self.on_value(schema, 0)?;
        self.size.levels_on_value = self.size.levels_on_value.max(on_value.levels);
        self.size.idle_on_value = self.size.idle_on_value.max(on_value.idle);
        Ok(())
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
            ("multipleOf", Value::Number(step)) if !step.is_u64() => {
                self.size.has_fractions = true;
            }
            ("anyOf" | "oneOf", Value::Array(branches)) if branches.len() >= MANY_BRANCHES => {
                for branch in branches {
                    let on_value = self.on_value(branch, 0)?;
                    let looks = on_value.schemas.saturating_mul(on_value.names + 1);
                    self.looks = self.looks.saturating_add(looks);
                }
                if self.looks > MOST_LOOKS {
                    return Err(NotCompiled::Branches);
                }
            }
            _ => {}
        }
        if NOT_COPIED.contains(&keyword) {
            return Ok(());
        }
        let weight = self.weight(held);
        self.add(weight)
    }

    /// What a schema applies to its value, each counted once for every way to it. `level` is its
    /// own below the one that began.
    fn on_value(&mut self, schema: &'a Value, level: u64) -> Result<OnValue, NotCompiled> {
        let Some(keywords) = schema.as_object() else {
            return Ok(OnValue::idle());
        };
        let address = std::ptr::from_ref(schema).addr();
        if let Some(counted) = self.on_value.get(&address) {
            return counted.ok_or(NotCompiled::Circle);
        }
        if level > LEVELS_ON_VALUE_MAX {
            return Err(NotCompiled::Depth);
        }
        self.on_value.insert(address, None);
        let applied = self.applied(keywords)?;
        let mut all = OnValue::of_keywords(keywords, applied.is_empty());
        for below in applied {
            all.include(self.on_value(below, level + 1)?);
        }
        if all.schemas > SCHEMAS_ON_VALUE_MAX {
            return Err(NotCompiled::Multiplied);
        }
        if all.levels > LEVELS_ON_VALUE_MAX {
            return Err(NotCompiled::Depth);
        }
        self.on_value.insert(address, Some(all));
        Ok(all)
    }

    /// The schemas that these keywords apply to the same value.
    fn applied(&mut self, keywords: &'a Map<String, Value>) -> Result<Vec<&'a Value>, NotCompiled> {
        let mut applied = Vec::new();
        for (keyword, held) in keywords {
            match (keyword.as_str(), held) {
                ("$ref", Value::String(reference)) => {
                    applied.push(self.references.target(reference)?);
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => applied.extend(schemas),
                ("not" | "if" | "then" | "else", schema) => applied.push(schema),
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    applied.extend(schemas.values());
                }
                _ => {}
            }
        }
        Ok(applied)
    }

    /// The weight of a value: one for each value within it, and one for each eight bytes of text.
    /// Those of values within are remembered too, so that weighing every level of a nested value
    /// stays linear.
    fn weight(&mut self, value: &'a Value) -> u64 {
        let address = std::ptr::from_ref(value).addr();
        if let Some(weight) = self.weights.get(&address) {
            return *weight;
        }
        let weight = match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => return 1,
            Value::String(text) => return 1 + text_weight(text),
            Value::Array(items) => {
                let each = items.iter().map(|item| self.weight(item));
                each.fold(1, u64::saturating_add)
            }
            Value::Object(members) => {
                let each = members
                    .iter()
                    .map(|(name, member)| text_weight(name).saturating_add(self.weight(member)));
                each.fold(1, u64::saturating_add)
            }
        };
        self.weights.insert(address, weight);
        weight
    }
}

impl OnValue {
    /// One schema that reads nothing.
    fn idle() -> Self {
        Self {
            schemas: 1,
            idle: 1,
            levels: 1,
            names: 0,
        }
    }

    /// One with these keywords, without what it applies; `is_last` says that this is nothing.
    fn of_keywords(keywords: &Map<String, Value>, is_last: bool) -> Self {
        let reads = READING
            .iter()
            .any(|keyword| keywords.contains_key(*keyword));
        let required = keywords.get("required").and_then(Value::as_array);
        Self {
            idle: u64::from(is_last && !reads),
            names: required.map_or(0, |names| names.len() as u64),
            ..Self::idle()
        }
    }

    /// Adds what one of its branches or its reference applies.
    fn include(&mut self, below: Self) {
        self.schemas = self.schemas.saturating_add(below.schemas);
        self.idle = self.idle.saturating_add(below.idle);
        self.levels = self.levels.max(below.levels + 1);
        self.names = self.names.saturating_add(below.names);
    }
}

/// The weight of a text's bytes.
fn text_weight(text: &str) -> u64 {
    (text.len() / TEXT_UNIT) as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        assert!(measure(&recursive).unwrap().units < 200);
    }

    #[test]
    fn branches_that_take_long_to_tell_apart_are_refused() {
        let mut schema = chain(
            10,
            |link: Value| json!({"required": vec!["a"; 9], "allOf": [link, link]}),
        );
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
        let wide = json!({"properties": (0..2_500).map(|n| (format!("p{n}"), json!({"$ref": format!("#/$defs/d{n}")}))).collect::<Map<_, _>>(),
            "$defs": (0..2_500).map(|n| (format!("d{n}"), json!({}))).collect::<Map<_, _>>()});
        assert_eq!(measure(&wide), Err(NotCompiled::References));
    }

    #[test]
    fn what_is_applied_to_one_value_is_bounded() {
        assert!(measure(&chain(400, |next| next)).is_ok());
        assert_eq!(measure(&chain(600, |next| next)), Err(NotCompiled::Depth));
        for branch in ["anyOf", "oneOf", "allOf"] {
            let doubled = |next: Value| json!({branch: [next, next]});
            let few = measure(&chain(12, doubled)).unwrap();
            assert_eq!(
                (few.levels_on_value, few.idle_on_value),
                (26, 1),
                "{branch}"
            );
            assert_eq!(
                measure(&chain(26, doubled)),
                Err(NotCompiled::Multiplied),
                "{branch}"
            );
        }
        // Schemas that read nothing make each value dearer.
        let idle = json!({"items": {"allOf": vec![json!({}); 4_000]}});
        assert_eq!(measure(&idle).unwrap().price_of_child(), 1_001);
        let reading = json!({"items": {"allOf": vec![json!({"type": "string"}); 4_000]}});
        assert_eq!(measure(&reading).unwrap().price_of_child(), 1);
    }

    #[test]
    fn references_that_lead_back_on_one_value_are_refused() {
        let circle = |size: usize| {
            let others = |own| {
                (0..size)
                    .filter(move |n| *n != own)
                    .map(|n| json!({"$ref": format!("#/$defs/d{n}")}))
            };
            let defs: Map<String, Value> = (0..size)
                .map(|n| {
                    (
                        format!("d{n}"),
                        json!({"allOf": others(n).collect::<Vec<_>>()}),
                    )
                })
                .collect();
            json!({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs})
        };
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"dependentSchemas": {"x": {"$ref": "#/dependentSchemas/x"}}}),
            circle(14),
        ] {
            assert_eq!(measure(&schema), Err(NotCompiled::Circle), "{schema}");
        }
        let onward = json!({"properties": {"x": {"if": {"type": "array"}, "then": {"$ref": "#"}}}});
        assert!(measure(&onward).is_ok());
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
