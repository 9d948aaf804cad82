//! Members without meaning: what serialisers write for "not set".
//!
//! Real scenarios send `"enum": []`, `"default": null`, `"pattern": ""` and the like for every
//! unset field. Taken literally an empty `enum` allows nothing at all, and vendors refuse it. No
//! note, because no information is lost.

use serde_json::{Map, Value};

use super::walk::{Role, each_object};
use super::{Context, TransformError};

/// Removes members without meaning.
pub fn drop_noise(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    each_object(schema, |members, place| {
        let nullable = place.role != Role::Root && admits_null(members);
        let before = members.len();
        members.retain(|keyword, value| !says_nothing(keyword, value, nullable));
        if members.len() < before {
            context.silent();
        }
        Ok(())
    })
}

/// Whether a schema has members without meaning that no valid schema of draft 2020-12 needs:
/// a valid one may have an empty `required`, and `null` as default.
pub fn has_noise(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(keyword, value)| {
            let is_noise = match value {
                Value::Null => !matches!(keyword.as_str(), "default" | "const"),
                Value::Array(list) => list.is_empty() && keyword == "enum",
                _ => false,
            };
            is_noise || has_noise(value)
        }),
        Value::Array(items) => items.iter().any(has_noise),
        _ => false,
    }
}

fn says_nothing(keyword: &str, value: &Value, nullable: bool) -> bool {
    match (keyword, value) {
        // The one keyword for which null is a statement of its own.
        ("const", Value::Null) => false,
        ("default", Value::Null) => !nullable,
        (_, Value::Null) => true,
        ("enum" | "required" | "allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
            list.is_empty()
        }
        ("type" | "format" | "pattern", Value::String(text)) => text.is_empty(),
        _ => false,
    }
}

/// Whether `null` may be a value of this schema; then `"default": null` is meant. Only a type
/// speaks against it, and the root, which is always an object.
fn admits_null(members: &Map<String, Value>) -> bool {
    match members.get("type") {
        Some(Value::String(name)) => name == "null",
        Some(Value::Array(names)) => names.iter().any(|name| name == "null"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut schema: Value, expected: &Value) {
        let mut context = Context::for_schema(&schema);
        drop_noise(&mut schema, &mut context).unwrap();
        assert_eq!(schema.to_string(), expected.to_string());
        assert_eq!(context.finish().0.len(), 0, "there is nothing in it");
    }

    #[test]
    fn unset_members_go_and_the_order_stays() {
        check(
            json!({"type": "object", "required": [], "properties": {
                "z": {"enum": [], "type": "string", "default": null, "items": null, "format": "", "pattern": "", "title": "t"},
                "a": {"type": "integer"},
            }, "additionalProperties": false}),
            &json!({"type": "object", "properties": {"z": {"type": "string", "title": "t"}, "a": {"type": "integer"}},
                "additionalProperties": false}),
        );
    }

    #[test]
    fn parameters_called_like_keywords_and_values_stay() {
        let schema = json!({"type": "object", "properties": {
            "enum": {"type": "array", "items": {}, "default": [], "examples": [{"enum": [], "x": null}]},
            "required": {"const": null},
            "default": {"enum": [null, []]},
        }});
        check(schema.clone(), &schema);
    }

    #[test]
    fn a_null_default_stays_where_null_is_allowed() {
        let schema = json!({"type": "object", "properties": {
            "a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
            "b": {"type": ["string", "null"], "default": null},
        }});
        check(schema.clone(), &schema);
    }
}
