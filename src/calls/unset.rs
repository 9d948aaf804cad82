//! Takes out of arguments what a model wrote only because it had to write something.
//!
//! In a strict mode every property is required, and one that was optional may be `null` instead
//! (`formats/strict.rs`). A model then sends `null` for what it leaves out, which the tool's own
//! schema does not allow. A member is taken out if its schema lists it, neither requires it nor
//! allows `null` for it; everything else keeps its bytes. This module never judges whether the
//! arguments fit.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::JsonText;
use crate::model::finding::push_step;

/// Levels of arguments that are looked at. Deeper ones keep what they have.
const MAX_DEPTH: usize = 100;
/// References and alternatives that are followed from one schema.
const MAX_REFERENCES: usize = 32;
/// Members that were taken out and are named.
const MAX_NAMED: usize = 100;

/// Arguments without unset members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithoutUnset {
    /// What is left.
    pub arguments: JsonText,
    /// JSON pointers to what was taken out, at most 100.
    pub removed: Vec<String>,
}

/// The arguments without members that are `null` and unset by the tool's schema. `None` if there are
/// none, or if the schema cannot be read.
pub fn without_unset(schema: &JsonText, arguments: &JsonText) -> Option<WithoutUnset> {
    if !arguments.get().contains("null") {
        return None;
    }
    let root: Value = serde_json::from_str(schema.get()).ok()?;
    let mut walk = Walk { root: &root, removed: Vec::new() };
    let left = walk.value(arguments.get(), &root, &mut String::new(), 0)?;
    Some(WithoutUnset { arguments: JsonText::known(left), removed: walk.removed })
}

/// The members of an object in the order written, with their names as written.
struct RawMembers<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for RawMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawMembersVisitor;
        impl<'de> Visitor<'de> for RawMembersVisitor {
            type Value = Vec<(&'de RawValue, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(RawMembersVisitor).map(RawMembers)
    }
}

struct Walk<'s> {
    root: &'s Value,
    removed: Vec<String>,
}

impl<'s> Walk<'s> {
    /// The value without what is unset in it; `None` if it stays as it is.
    fn value(&mut self, raw: &str, schema: &'s Value, pointer: &mut String, depth: usize) -> Option<String> {
        if depth > MAX_DEPTH || !raw.contains("null") {
            return None;
        }
        match raw.as_bytes().first() {
            Some(b'{') => self.object(raw, schema, pointer, depth),
            Some(b'[') => self.list(raw, schema, pointer, depth),
            _ => None,
        }
    }

    fn object(&mut self, raw: &str, schema: &'s Value, pointer: &mut String, depth: usize) -> Option<String> {
        let RawMembers(members) = serde_json::from_str(raw).ok()?;
        let named: Vec<(String, &RawValue, &RawValue)> = members
            .into_iter()
            .map(|(name, value)| Some((serde_json::from_str::<String>(name.get()).ok()?, name, value)))
            .collect::<Option<_>>()?;
        let schemas = self.applying(schema, &named);
        let mut kept = Vec::with_capacity(named.len());
        let mut changed = false;
        for (name, written, value) in &named {
            let properties: Vec<&'s Value> =
                schemas.iter().filter_map(|schema| schema.get("properties")?.get(name)).collect();
            let length = pointer.len();
            push_step(pointer, name);
            if value.get() == "null" && !properties.is_empty() && self.is_unset(name, &schemas, &properties) {
                changed = true;
                if self.removed.len() < MAX_NAMED {
                    self.removed.push(pointer.clone());
                }
            } else {
                let below = properties.first().copied();
                let below = below.or_else(|| schemas.iter().find_map(|schema| schema.get("additionalProperties")));
                let left = below.and_then(|below| self.value(value.get(), below, pointer, depth + 1));
                changed |= left.is_some();
                kept.push(format!("{}:{}", written.get(), left.as_deref().unwrap_or(value.get())));
            }
            pointer.truncate(length);
        }
        changed.then(|| format!("{{{}}}", kept.join(",")))
    }

    fn list(&mut self, raw: &str, schema: &'s Value, pointer: &mut String, depth: usize) -> Option<String> {
        let items: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
        let schemas = self.applying(schema, &[]);
        let each = schemas.iter().find_map(|schema| schema.get("items"));
        let first = schemas.iter().find_map(|schema| schema.get("prefixItems")?.as_array());
        let mut changed = false;
        let mut kept = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let below = first.and_then(|first| first.get(index)).or(each);
            let length = pointer.len();
            push_step(pointer, &index.to_string());
            let left = below.and_then(|below| self.value(item.get(), below, pointer, depth + 1));
            pointer.truncate(length);
            changed |= left.is_some();
            kept.push(left.unwrap_or_else(|| item.get().to_owned()));
        }
        changed.then(|| format!("[{}]", kept.join(",")))
    }

    fn is_unset(&self, name: &str, schemas: &[&'s Value], properties: &[&'s Value]) -> bool {
        let required = schemas.iter().any(|schema| {
            let names = schema.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|required| required == name))
        });
        !required && !properties.iter().all(|property| self.allows_null(property, 0))
    }

    /// The schemas that hold for an object with these members: the schema itself, those that it
    /// refers to, all of `allOf`, and of alternatives the first that the members may be meant for.
    fn applying(&self, schema: &'s Value, members: &[(String, &RawValue, &RawValue)]) -> Vec<&'s Value> {
        let (mut found, mut open) = (Vec::new(), vec![schema]);
        while let Some(schema) = open.pop() {
            if found.len() >= MAX_REFERENCES {
                break;
            }
            found.push(schema);
            open.extend(self.referred(schema));
            open.extend(schema.get("allOf").and_then(Value::as_array).into_iter().flatten());
            for alternatives in ["anyOf", "oneOf"] {
                let all = schema.get(alternatives).and_then(Value::as_array).into_iter().flatten();
                open.extend(all.map(|branch| self.resolved(branch)).find(|branch| self.may_mean(branch, members)));
            }
        }
        found
    }

    /// Whether an object with these members may be meant for a branch, if what is unset in it is
    /// left out.
    fn may_mean(&self, branch: &Value, members: &[(String, &RawValue, &RawValue)]) -> bool {
        let is_object = branch.get("type").is_none_or(|kind| kind == "object") && branch.get("properties").is_some();
        if members.is_empty() || !is_object {
            return false;
        }
        let properties = branch.get("properties").and_then(Value::as_object);
        let required = branch.get("required").and_then(Value::as_array).into_iter().flatten();
        let has = |name: &Value| members.iter().any(|(own, _, value)| *own == *name && value.get() != "null");
        let is_closed = branch.get("additionalProperties") == Some(&Value::Bool(false));
        let needed = |name: &Value| {
            let property = properties.and_then(|properties| properties.get(name.as_str()?));
            has(name) || property.is_some_and(|property| self.allows_null(property, 0))
        };
        required.into_iter().all(needed)
            && members.iter().all(|(name, _, value)| match properties.and_then(|properties| properties.get(name)) {
                Some(property) => value.get() == "null" || agrees(property, value),
                None => !is_closed,
            })
    }

    fn resolved(&self, schema: &'s Value) -> &'s Value {
        let mut now = schema;
        for _ in 0..MAX_REFERENCES {
            match self.referred(now) {
                Some(next) => now = next,
                None => break,
            }
        }
        now
    }

    /// What a local reference points to.
    fn referred(&self, schema: &'s Value) -> Option<&'s Value> {
        let target = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        if target.is_empty() { Some(self.root) } else { self.root.pointer(target) }
    }

    fn allows_null(&self, schema: &Value, depth: usize) -> bool {
        if depth > MAX_REFERENCES {
            return true;
        }
        let Some(members) = schema.as_object() else { return schema != &Value::Bool(false) };
        let each = |name: &str| members.get(name).and_then(Value::as_array);
        let kind = members.get("type").is_none_or(|kind| match kind {
            Value::String(name) => name == "null",
            Value::Array(names) => names.iter().any(|name| name == "null"),
            _ => true,
        }) || members.get("nullable") == Some(&Value::Bool(true));
        kind && members.get("const").is_none_or(Value::is_null)
            && each("enum").is_none_or(|values| values.iter().any(Value::is_null))
            && each("allOf").is_none_or(|all| all.iter().all(|one| self.allows_null(one, depth + 1)))
            && ["anyOf", "oneOf"].into_iter().all(|name| {
                each(name).is_none_or(|branches| branches.iter().any(|one| self.allows_null(one, depth + 1)))
            })
            && members.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#')).is_none_or(
                |target| {
                    let found = if target.is_empty() { Some(self.root) } else { self.root.pointer(target) };
                    found.is_none_or(|found| self.allows_null(found, depth + 1))
                },
            )
    }
}

/// Whether a value agrees with the constants and the type of its schema, as far as that is seen at
/// once.
fn agrees(schema: &Value, value: &RawValue) -> bool {
    let is = |wanted: &Value| serde_json::from_str::<Value>(value.get()).is_ok_and(|value| value == *wanted);
    let kind = match value.get().as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        _ => "number",
    };
    let fits = |name: &Value| name == kind || kind == "number" && name == "integer";
    schema.get("const").is_none_or(is)
        && schema.get("enum").and_then(Value::as_array).is_none_or(|values| values.iter().any(is))
        && schema
            .get("type")
            .is_none_or(|types| types.as_array().map_or_else(|| fits(types), |all| all.iter().any(fits)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn left(schema: &Value, arguments: &str) -> Option<(String, Vec<String>)> {
        let schema = JsonText::known(schema.to_string());
        let left = without_unset(&schema, &JsonText::parse(arguments).unwrap())?;
        Some((left.arguments.get().to_owned(), left.removed))
    }

    #[test]
    fn only_what_is_neither_required_nor_allowed_to_be_null_is_taken_out() {
        let schema = json!({"type": "object", "required": ["must"], "properties": {
            "must": {"type": "string"}, "may": {"type": "string"}, "null": {"type": ["string", "null"]}, "any": {}}});
        let (text, removed) =
            left(&schema, r#"{ "must":null,"may":null, "null":null,"any":null,"other":null,"n":1e999 }"#).unwrap();
        assert_eq!(text, r#"{"must":null,"null":null,"any":null,"other":null,"n":1e999}"#);
        assert_eq!(removed, ["/may"]);
        for untouched in [r#"{"must":"x"}"#, r#"{"must":"null"}"#, r#"{"null":null}"#] {
            assert_eq!(left(&schema, untouched), None, "{untouched}");
        }
    }

    #[test]
    fn it_holds_at_every_depth_and_through_references() {
        let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
            "$defs": {"item": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/name"}}},
                "name": {"type": "string"}}});
        let (text, removed) = left(&schema, r#"{"list":[{"a":1,"b":null},{"a":null,"b":"x"}]}"#).unwrap();
        assert_eq!(text.as_str(), r#"{"list":[{"a":1},{"b":"x"}]}"#);
        assert_eq!(removed, vec!["/list/0/b".to_owned(), "/list/1/a".into()]);
    }

    #[test]
    fn of_alternatives_the_one_that_the_members_are_meant_for_counts() {
        let branch = |kind: &str, required: &[&str]| {
            json!({"type": "object", "required": required, "additionalProperties": false,
            "properties": {"kind": {"const": kind}, "x": {"type": "string"}, "y": {"type": "string"}}})
        };
        let schema = json!({"type": "object", "properties": {"v": {"anyOf": [branch("a", &["kind", "x"]), branch("b", &["kind"])]}}});
        assert_eq!(left(&schema, r#"{"v":{"kind":"b","x":null,"y":"1"}}"#).unwrap().0, r#"{"v":{"kind":"b","y":"1"}}"#);
        assert_eq!(left(&schema, r#"{"v":{"kind":"a","x":"1","y":null}}"#).unwrap().0, r#"{"v":{"kind":"a","x":"1"}}"#);
    }

    #[test]
    fn circles_and_depth_end() {
        let schema =
            json!({"type": "object", "$ref": "#", "properties": {"a": {"$ref": "#/properties/a"}, "b": {"$ref": "#"}}});
        let deep = format!("{}null{}", r#"{"b":"#.repeat(90), "}".repeat(90));
        let _ = left(&schema, &deep);
        assert_eq!(left(&schema, r#"{"a":null}"#), None);
    }
}
