//! A root without alternatives: vendors refuse `oneOf`, `anyOf`, `allOf`, `enum`, `const` and `not`
//! there.
//!
//! What the branches describe is folded into one list of properties, so that an LLM still sees
//! every argument. Which of them go together cannot be said any more, and a note says so.
//! References within the schema are followed, within a budget; others never.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::budget::{LOOKUP, MEMBER, TransformBudget, weight};
use super::{Context, TransformError, each_once, take};

/// What may not stand at the root, and `$ref`, which hides what stands there.
const BARRED: [&str; 7] = ["$ref", "allOf", "anyOf", "oneOf", "enum", "const", "not"];
/// References and branches followed one within the other.
const FOLLOWED_LEVELS_MAX: usize = 60;
/// Work for each schema that is read, whatever its content.
const SCHEMA_READ_WORK: usize = 512;

/// Folds the branches at the root into its properties.
pub fn flat_root(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    let barred = |members: &Map<String, Value>| {
        BARRED
            .iter()
            .copied()
            .filter(|k| members.contains_key(*k))
            .collect()
    };
    let present: Vec<&str> = schema.as_object().map(barred).unwrap_or_default();
    if present.is_empty() {
        return Ok(());
    }
    let root: &Value = schema;
    let shape = Fold {
        root,
        budget: &mut context.budget,
        within: Vec::new(),
    }
    .shape(root)?;
    let Some(members) = schema.as_object_mut() else {
        return Ok(());
    };
    for keyword in present {
        take(members, keyword);
        let (message, hint) = outcome(keyword);
        context.lossy(format_args!("/{keyword}"), message, hint);
    }
    members.insert("properties".into(), Value::Object(shape.properties));
    if shape.required.is_empty() {
        take(members, "required");
    } else {
        members.insert(
            "required".into(),
            shape.required.into_iter().map(|(name, _)| name).collect(),
        );
    }
    Ok(())
}

fn outcome(keyword: &str) -> (String, &'static str) {
    match keyword {
        "enum" | "const" | "not" => (
            format!("`{keyword}` at the root was left out: LLM requests take none there"),
            "write it at single properties, or in the description",
        ),
        "$ref" | "allOf" => (
            format!(
                "`{keyword}` at the root was folded into its properties: LLM requests take none there"
            ),
            "write the properties at the root",
        ),
        _ => (
            format!(
                "`{keyword}` at the root was folded into one list of properties: LLM requests take no alternatives there"
            ),
            "offer one tool for each alternative, or describe which arguments go together",
        ),
    }
}

/// What is left of a schema of an object.
#[derive(Debug, Default)]
struct FoldedObject {
    properties: Map<String, Value>,
    /// Names alone: a map keeps them in order and finds them at once.
    required: Map<String, Value>,
    /// Properties with several descriptions, which stand in a list.
    joined: HashSet<String>,
}

struct Fold<'a> {
    root: &'a Value,
    budget: &'a mut TransformBudget,
    /// The schemas that are being looked at, each within the one before.
    within: Vec<&'a Value>,
}

impl<'a> Fold<'a> {
    /// A schema with its references and branches folded in. One that leads back to itself says no
    /// more than it said already.
    fn shape(&mut self, schema: &'a Value) -> Result<FoldedObject, TransformError> {
        self.budget.charge(SCHEMA_READ_WORK)?;
        let Some(members) = schema.as_object() else {
            return Ok(FoldedObject::default());
        };
        if self.within.iter().any(|outer| std::ptr::eq(*outer, schema)) {
            return Ok(FoldedObject::default());
        }
        if self.within.len() == FOLLOWED_LEVELS_MAX {
            return Err(TransformError::TooLarge);
        }
        self.within.push(schema);
        let mut shape = self.own(members)?;
        if let Some(target) = members.get("$ref").and_then(Value::as_str) {
            self.budget.charge(LOOKUP * target.len())?;
            if let Some(target) = resolve(self.root, target) {
                shape.and(self.shape(target)?);
            }
        }
        for branch in list(members, "allOf") {
            shape.and(self.shape(branch)?);
        }
        for keyword in ["anyOf", "oneOf"] {
            // A branch that is not an object can be met by no arguments at all.
            let mut objects = list(members, keyword)
                .iter()
                .filter(|branch| may_be_object(branch));
            let Some(first) = objects.next() else {
                continue;
            };
            let mut either = self.shape(first)?;
            for branch in objects {
                either = either.or(self.shape(branch)?);
            }
            self.settle(&mut either, "anyOf")?;
            shape.and(either);
        }
        self.settle(&mut shape, "allOf")?;
        // Each caller that takes the names over moves each of them once more.
        self.budget
            .charge((shape.properties.len() + shape.required.len()) * MEMBER)?;
        self.within.pop();
        Ok(shape)
    }

    /// The content of a schema by itself.
    fn own(&mut self, members: &Map<String, Value>) -> Result<FoldedObject, TransformError> {
        let mut shape = FoldedObject::default();
        if let Some(properties) = members.get("properties")
            && let Value::Object(properties) = self.budget.copy(properties)?
        {
            shape.properties = properties;
        }
        for name in list(members, "required").iter().filter_map(Value::as_str) {
            self.budget.write(MEMBER + name.len())?;
            shape.required.insert(name.to_owned(), Value::Null);
        }
        Ok(shape)
    }

    /// Takes descriptions out that stand in a list of several for the second time.
    fn settle(&mut self, shape: &mut FoldedObject, keyword: &str) -> Result<(), TransformError> {
        for name in std::mem::take(&mut shape.joined) {
            if let Some(Value::Array(list)) = shape
                .properties
                .get_mut(&name)
                .and_then(|joined| joined.get_mut(keyword))
            {
                self.budget.charge(list.iter().map(weight).sum())?;
                each_once(list);
            }
        }
        Ok(())
    }
}

impl FoldedObject {
    /// Both hold.
    fn and(&mut self, other: Self) {
        self.join(other.properties, "allOf");
        if self.required.is_empty() {
            self.required = other.required;
        } else {
            self.required.extend(other.required);
        }
    }

    /// One of them holds: every property of either, and required what both require.
    fn or(mut self, other: Self) -> Self {
        self.required
            .retain(|name, _| other.required.contains_key(name));
        self.join(other.properties, "anyOf");
        self
    }

    /// Adds properties; different descriptions of one name stand in a list under `keyword`.
    fn join(&mut self, more: Map<String, Value>, keyword: &str) {
        if self.properties.is_empty() {
            self.properties = more;
            return;
        }
        for (name, schema) in more {
            let Some(known) = self.properties.get_mut(&name) else {
                self.properties.insert(name, schema);
                continue;
            };
            if *known == schema {
                continue;
            }
            if let Some(Value::Array(list)) = known
                .as_object_mut()
                .filter(|known| known.len() == 1)
                .and_then(|known| known.get_mut(keyword))
            {
                list.push(schema);
            } else {
                let both = Value::Array(vec![known.take(), schema]);
                *known = Value::Object(Map::from_iter([(keyword.to_owned(), both)]));
            }
            self.joined.insert(name);
        }
    }
}

fn list<'a>(members: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    members
        .get(keyword)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
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
        let mut context = Context::for_schema(&schema);
        flat_root(&mut schema, &mut context).unwrap();
        assert_eq!(schema.to_string(), expected.to_string());
        let notes = context.finish().0;
        let seen: Vec<_> = notes.iter().map(|note| note.pointer.as_str()).collect();
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
    fn descriptions_that_repeat_stand_once() {
        let branch = |kind: &str| json!({"properties": {"kind": {"const": kind}}});
        let branches: Vec<Value> = ["a", "b", "a", "c", "b"].map(branch).into();
        check(
            json!({"type": "object", "allOf": [{"anyOf": branches}, branch("d"), branch("d")]}),
            &json!({"type": "object", "properties": {"kind": {"allOf": [
                {"anyOf": [{"const": "a"}, {"const": "b"}, {"const": "c"}]}, {"const": "d"}]}}}),
            &["/allOf"],
        );
    }

    /// What folding a schema comes to.
    fn fold(mut schema: Value) -> Result<Value, TransformError> {
        let mut context = Context::for_schema(&schema);
        flat_root(&mut schema, &mut context).map(|()| schema)
    }

    #[test]
    fn a_large_definition_is_not_taken_over_again_and_again() {
        let large: Map<String, Value> = (0..100)
            .map(|n| (format!("p{n}"), json!({"description": "x".repeat(10_000)})))
            .collect();
        let branches: Vec<Value> = (0..200)
            .map(|n| json!({"$ref": "#/$defs/large", "title": n.to_string()}))
            .collect();
        let mut schema = json!({"type": "object", "properties": {"own": {}}, "anyOf": branches[..5],
            "$defs": {"large": {"properties": large}}});
        assert_eq!(
            fold(schema.clone()).unwrap()["properties"]
                .as_object()
                .unwrap()
                .len(),
            101
        );
        schema["anyOf"] = branches.into();
        assert_eq!(fold(schema), Err(TransformError::TooLarge));
    }

    #[test]
    fn many_branches_are_all_folded() {
        let branch = |n: usize| json!({"properties": {"kind": {"const": n}, format!("p{n}"): {}}, "required": ["kind"]});
        let branches: Vec<Value> = (0..2_000).map(branch).collect();
        let folded = fold(json!({"type": "object", "oneOf": branches})).unwrap();
        assert_eq!(folded["properties"].as_object().unwrap().len(), 2_001);
        assert_eq!(
            folded["properties"]["kind"]["anyOf"]
                .as_array()
                .unwrap()
                .len(),
            2_000
        );
        assert_eq!(folded["required"], json!(["kind"]));
    }

    #[test]
    fn circles_end_and_explosions_are_refused() {
        let circle = json!({"type": "object", "properties": {}, "$ref": "#", "allOf": [{"$ref": "#/$defs/l0"}],
            "$defs": {"l0": {"properties": {"p0": {}}, "anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/l0"}]}}});
        let folded = fold(circle).unwrap();
        assert!(folded["properties"].get("p0").is_some());
        assert!(folded.get("$ref").is_none() && folded.get("allOf").is_none());

        let mut defs = Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            defs.insert(format!("l{level}"), json!({"allOf": [next, next, next]}));
        }
        let explosion = json!({"type": "object", "allOf": [{"$ref": "#/$defs/l0"}], "$defs": defs});
        assert_eq!(fold(explosion), Err(TransformError::TooLarge));
    }
}
