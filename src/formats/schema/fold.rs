//! A root without alternatives: vendors refuse `oneOf`, `anyOf`, `allOf`, `enum`, `const` and `not` there.
//!
//! What the branches describe is folded into one list of properties, so that an LLM still sees every argument. Which of them go
//! together cannot be said any more, and a note says so. References within the schema are followed, within a budget; others never.

use serde_json::{Map, Value};

use super::{Log, Refused, take};

/// What may not stand at the root, and `$ref`, which hides what stands there.
const BARRED: [&str; 7] = ["$ref", "allOf", "anyOf", "oneOf", "enum", "const", "not"];
/// Schemas looked at for one root: references can make a small text describe a huge one.
const BUDGET: usize = 256;
/// Bytes, roughly, of the properties taken over while the branches of one root are looked at: each reference to a large definition takes
/// all of it over once more.
const TAKEN_OVER: usize = 4 * 1024 * 1024;
/// References and branches followed one within the other.
const MAX_DEPTH: usize = 16;

/// Folds the branches at the root into its properties.
pub fn flat_root(schema: &mut Value, log: &mut Log) -> Result<(), Refused> {
    let barred = |members: &Map<String, Value>| BARRED.iter().copied().filter(|k| members.contains_key(*k)).collect();
    let present: Vec<&str> = schema.as_object().map(barred).unwrap_or_default();
    if present.is_empty() {
        return Ok(());
    }
    let shape = Fold { root: schema, budget: BUDGET, bytes: TAKEN_OVER + weight(schema) }.shape(schema, 0);
    let Some(members) = schema.as_object_mut() else { return Ok(()) };
    for keyword in present {
        take(members, keyword);
        let (message, hint) = outcome(keyword);
        log.lossy(format!("/{keyword}"), message, hint);
    }
    members.insert("properties".into(), Value::Object(shape.properties));
    if shape.required.is_empty() {
        take(members, "required");
    } else {
        members.insert("required".into(), shape.required.into());
    }
    Ok(())
}

fn outcome(keyword: &str) -> (String, &'static str) {
    match keyword {
        "enum" | "const" | "not" => (
            format!("`{keyword}` at the root was left out: LLM requests take none there"),
            "say it of single properties, or in the description",
        ),
        "$ref" | "allOf" => (
            format!("`{keyword}` at the root was folded into its properties: LLM requests take none there"),
            "write the properties at the root",
        ),
        _ => (
            format!(
                "`{keyword}` at the root was folded into one list of properties: LLM requests take no alternatives there"
            ),
            "offer one tool for each alternative, or say in the description which arguments go together",
        ),
    }
}

/// What is left of a schema of an object.
#[derive(Debug, Default)]
struct Shape {
    properties: Map<String, Value>,
    required: Vec<String>,
}

#[derive(Debug)]
struct Fold<'a> {
    root: &'a Value,
    /// Schemas that may still be looked at.
    budget: usize,
    /// Bytes that may still be taken over.
    bytes: usize,
}

impl Fold<'_> {
    /// A schema with its references and branches folded in.
    fn shape(&mut self, schema: &Value, depth: usize) -> Shape {
        let mut shape = Shape::default();
        let Some(members) = schema.as_object().filter(|_| self.budget > 0 && depth < MAX_DEPTH) else { return shape };
        self.budget -= 1;
        if let Some(properties @ Value::Object(taken)) = members.get("properties") {
            let Some(bytes) = self.bytes.checked_sub(weight(properties)) else {
                self.budget = 0;
                return shape;
            };
            self.bytes = bytes;
            shape.properties.clone_from(taken);
        }
        let required = members.get("required").and_then(Value::as_array).into_iter().flatten();
        shape.required.extend(required.filter_map(Value::as_str).map(str::to_owned));
        let root = self.root;
        if let Some(target) = members.get("$ref").and_then(Value::as_str).and_then(|text| resolve(root, text)) {
            shape.and(self.shape(target, depth + 1));
        }
        for branch in list(members, "allOf") {
            shape.and(self.shape(branch, depth + 1));
        }
        for keyword in ["anyOf", "oneOf"] {
            // A branch that is no object can be met by no arguments at all.
            let objects = list(members, keyword).iter().filter(|branch| may_be_object(branch));
            // One after the other: all of them together may be large.
            if let Some(either) = objects.map(|branch| self.shape(branch, depth + 1)).reduce(Shape::or) {
                shape.and(either);
            }
        }
        shape
    }
}

impl Shape {
    /// Both hold.
    fn and(&mut self, other: Self) {
        for (name, schema) in other.properties {
            join(&mut self.properties, name, schema, "allOf");
        }
        for name in other.required {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }

    /// One of them holds: every property of either, and required what both require.
    fn or(mut self, other: Self) -> Self {
        self.required.retain(|name| other.required.contains(name));
        for (name, schema) in other.properties {
            join(&mut self.properties, name, schema, "anyOf");
        }
        self
    }
}

/// Adds a property; two different descriptions of one name stand in a list under `keyword`.
fn join(properties: &mut Map<String, Value>, name: String, schema: Value, keyword: &str) {
    let Some(known) = properties.get_mut(&name) else {
        properties.insert(name, schema);
        return;
    };
    if *known == schema {
        return;
    }
    if let Some(Value::Array(list)) = known.as_object_mut().filter(|k| k.len() == 1).and_then(|k| k.get_mut(keyword)) {
        if !list.contains(&schema) {
            list.push(schema);
        }
        return;
    }
    let both = Value::Array(vec![known.take(), schema]);
    *known = Value::Object(Map::from_iter([(keyword.to_owned(), both)]));
}

/// What a value costs in memory, roughly.
fn weight(value: &Value) -> usize {
    const VALUE: usize = 64;
    let held = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + weight(value)).sum(),
        _ => 0,
    };
    VALUE + held
}

fn list<'a>(members: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    members.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn may_be_object(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => true,
    }
}

/// What a reference within the schema points at.
fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut schema: Value, expected: &Value, places: &[&str]) {
        let mut log = Log::default();
        flat_root(&mut schema, &mut log).unwrap();
        assert_eq!(schema.to_string(), expected.to_string());
        let seen: Vec<_> = log.notes.iter().map(|note| note.pointer.as_str()).collect();
        assert_eq!(seen, places);
    }

    #[test]
    fn alternatives_become_one_list_of_properties() {
        check(
            json!({"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"], "oneOf": [
                {"properties": {"kind": {"const": "file"}, "path": {"type": "string"}}, "required": ["kind", "path"]},
                {"properties": {"kind": {"const": "url"}, "url": {"type": "string"}}, "required": ["kind", "url"]},
                {"type": "null"}]}),
            &json!({"type": "object", "properties": {
                "kind": {"allOf": [{"type": "string"}, {"anyOf": [{"const": "file"}, {"const": "url"}]}]},
                "path": {"type": "string"}, "url": {"type": "string"}}, "required": ["kind"]}),
            &["/oneOf"],
        );
    }

    #[test]
    fn a_root_that_is_a_reference_shows_what_it_refers_to() {
        check(
            json!({"type": "object", "properties": {}, "$ref": "#/$defs/Args", "$defs": {
                "Args": {"allOf": [{"$ref": "#/$defs/Base"}], "properties": {"b": {"type": "integer"}}, "required": ["b"]},
                "Base": {"properties": {"a": {"$ref": "#/$defs/Args"}}, "required": ["a"]}}}),
            &json!({"type": "object", "properties": {"b": {"type": "integer"}, "a": {"$ref": "#/$defs/Args"}}, "$defs": {
                "Args": {"allOf": [{"$ref": "#/$defs/Base"}], "properties": {"b": {"type": "integer"}}, "required": ["b"]},
                "Base": {"properties": {"a": {"$ref": "#/$defs/Args"}}, "required": ["a"]}}, "required": ["b", "a"]}),
            &["/$ref"],
        );
    }

    #[test]
    fn alternatives_of_required_names_leave_the_properties() {
        check(
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
                "not": {"required": ["a", "b"]}}),
            &json!({"type": "object", "properties": {"a": {}, "b": {}}}),
            &["/anyOf", "/not"],
        );
    }

    #[test]
    fn a_large_definition_is_not_taken_over_again_and_again() {
        let large: Map<String, Value> =
            (0..100).map(|n| (format!("p{n}"), json!({"description": "x".repeat(10_000)}))).collect();
        let branches: Vec<Value> = (0..200).map(|n| json!({"$ref": "#/$defs/large", "title": n.to_string()})).collect();
        let schema = json!({"type": "object", "properties": {"own": {}}, "anyOf": branches,
            "$defs": {"large": {"properties": large}}});
        let mut fold = Fold { root: &schema, budget: BUDGET, bytes: TAKEN_OVER + weight(&schema) };
        let shape = fold.shape(&schema, 0);
        assert_eq!(shape.properties.len(), 101, "the first branches are still told");
        assert_eq!(fold.budget, 0, "the rest is left");
        assert!(fold.bytes < weight(&schema));
    }

    #[test]
    fn circles_and_explosions_end() {
        let mut defs = Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            defs.insert(
                format!("l{level}"),
                json!({"allOf": [next, next, next], "properties": {format!("p{level}"): {}}}),
            );
        }
        let mut schema =
            json!({"type": "object", "properties": {}, "$ref": "#", "allOf": [{"$ref": "#/$defs/l0"}], "$defs": defs});
        flat_root(&mut schema, &mut Log::default()).unwrap();
        assert!(schema["properties"].get("p0").is_some());
        assert!(schema.get("$ref").is_none() && schema.get("allOf").is_none());
    }
}
