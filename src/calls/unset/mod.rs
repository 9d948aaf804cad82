//! Takes out of arguments what a model wrote only because it had to write something.
//!
//! In a strict mode every property is required, and one that was optional may be `null` instead
//! (`formats/strict.rs`). A model then sends `null` for what it leaves out, which the tool's own
//! schema does not allow. A member is taken out if its schema lists it, neither requires it nor
//! allows `null` for it; everything else keeps its bytes. This module never judges whether the
//! arguments fit.

use serde_json::Value;

use crate::model::JsonText;
use crate::model::finding::{near, push_step};

mod intended;
mod rewrite;

use intended::Schemas;

/// Levels of arguments that are looked at. Deeper ones keep what they have.
const VISITED_LEVELS_MAX: usize = 100;
/// Members that were taken out and are named.
const MAX_NAMED: usize = 100;

/// Arguments without unset members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithoutUnset {
    /// What is left.
    pub arguments: JsonText,
    /// JSON pointers to what was taken out, at most 100; instead of a long one, that of the nearest
    /// place around it.
    pub removed: Vec<String>,
}

/// The arguments without members that are `null` and unset by the tool's schema. `None` if there
/// are none, or if the schema cannot be read.
pub fn without_unset(schema: &JsonText, arguments: &JsonText) -> Option<WithoutUnset> {
    if !arguments.get().contains("null") {
        return None;
    }
    let root: Value = serde_json::from_str(schema.get()).ok()?;
    let mut kept: Value = serde_json::from_str(arguments.get()).ok()?;
    let mut walk = Walk {
        schemas: Schemas::new(&root),
        pointer: String::new(),
        removed: Vec::new(),
    };
    walk.value(&mut kept, &[&root], 0);
    if walk.removed.is_empty() {
        return None;
    }
    let arguments = JsonText::known(rewrite::without_removed(arguments.get(), &kept)?);
    Some(WithoutUnset {
        arguments,
        removed: walk.removed,
    })
}

struct Walk<'s> {
    schemas: Schemas<'s>,
    /// Where the walk is.
    pointer: String,
    removed: Vec<String>,
}

impl<'s> Walk<'s> {
    /// Takes out what is unset in a value for which all of these schemas hold.
    fn value(&mut self, value: &mut Value, schemas: &[&'s Value], depth: usize) {
        if depth > VISITED_LEVELS_MAX
            || schemas.is_empty()
            || !matches!(value, Value::Object(_) | Value::Array(_))
        {
            return;
        }
        let schemas = self.schemas.applying(value, schemas);
        match value {
            Value::Object(members) => members.retain(|name, value| {
                let properties = intended::properties(&schemas, name);
                let length = self.pointer.len();
                push_step(&mut self.pointer, name);
                let is_unset = value.is_null() && self.is_unset(name, &schemas, &properties);
                if is_unset {
                    if self.removed.len() < MAX_NAMED {
                        self.removed.push(near(&self.pointer).to_owned());
                    }
                } else {
                    let below = if properties.is_empty() {
                        intended::further_properties(&schemas)
                    } else {
                        properties
                    };
                    self.value(value, &below, depth + 1);
                }
                self.pointer.truncate(length);
                !is_unset
            }),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let length = self.pointer.len();
                    push_step(&mut self.pointer, &index.to_string());
                    self.value(item, &intended::items(&schemas, index), depth + 1);
                    self.pointer.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// Whether a member that is `null` stands for one that was left out.
    fn is_unset(&self, name: &str, schemas: &[&'s Value], properties: &[&'s Value]) -> bool {
        !properties
            .iter()
            .all(|property| self.schemas.allows_null(property, 0))
            && !self.schemas.require(name, schemas)
    }
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

    /// `OpenAPI` 3.0 wrote it so, and many generators still do.
    #[test]
    fn a_null_that_a_nullable_type_allows_has_a_meaning() {
        let schema = json!({"type": "object", "properties": {
            "end": {"type": "string", "nullable": true}, "start": {"type": "string", "nullable": false}}});
        let (text, removed) = left(&schema, r#"{"end":null,"start":null}"#).unwrap();
        assert_eq!(text, r#"{"end":null}"#);
        assert_eq!(removed, ["/start"]);
    }

    #[test]
    fn only_what_is_neither_required_nor_allowed_to_be_null_is_taken_out() {
        let schema = json!({"type": "object", "required": ["must"], "properties": {
            "must": {"type": "string"}, "may": {"type": "string"}, "null": {"type": ["string", "null"]}, "any": {}}});
        let (text, removed) = left(
            &schema,
            r#"{ "must":null,"may":null, "null":null,"any":null,"other":null,"n":1.50 }"#,
        )
        .unwrap();
        assert_eq!(
            text,
            r#"{"must":null,"null":null,"any":null,"other":null,"n":1.50}"#
        );
        assert_eq!(removed, ["/may"]);
        // The last has a number that no check can read, so the call is refused for that.
        for untouched in [
            r#"{"must":"x"}"#,
            r#"{"must":"null"}"#,
            r#"{"null":null}"#,
            r#"{"may":null,"n":1e999}"#,
        ] {
            assert_eq!(left(&schema, untouched), None, "{untouched}");
        }
    }

    #[test]
    fn it_holds_at_every_depth_and_through_references() {
        let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
            "$defs": {"item": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/name"}}},
                "name": {"type": "string"}}});
        let (text, removed) =
            left(&schema, r#"{"list":[{"a":1,"b":null},{"a":null,"b":"x"}]}"#).unwrap();
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
        assert_eq!(
            left(&schema, r#"{"v":{"kind":"b","x":null,"y":"1"}}"#)
                .unwrap()
                .0,
            r#"{"v":{"kind":"b","y":"1"}}"#
        );
        assert_eq!(
            left(&schema, r#"{"v":{"kind":"a","x":"1","y":null}}"#)
                .unwrap()
                .0,
            r#"{"v":{"kind":"a","x":"1"}}"#
        );
    }

    #[test]
    fn circles_and_depth_end() {
        let schema = json!({"type": "object", "$ref": "#", "properties": {"a": {"$ref": "#/properties/a"}, "b": {"$ref": "#"}}});
        let deep = format!("{}null{}", r#"{"b":"#.repeat(90), "}".repeat(90));
        let _ = left(&schema, &deep);
        assert_eq!(left(&schema, r#"{"a":null}"#), None);
    }
}
