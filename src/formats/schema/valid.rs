//! Schemas that need no transform, for targets that take draft 2020-12 as it is.
//!
//! It changes nothing, and looks nothing up outside the schema.

use serde_json::Value;

use super::noise::has_noise;

/// The dialect of a schema that names none (MCP 2026-07-28, tools).
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Whether a schema is a valid one of draft 2020-12 for the arguments of a tool, so that it can be
/// passed on byte for byte: that of an object, without references to the outside, without members
/// that only say "not set", and with an object for each property. The last is a rule of the
/// protocol (`Tool.inputSchema.properties`): a client that holds to it refuses the whole list for
/// one property written as `true`.
pub fn is_2020(schema: &str) -> bool {
    serde_json::from_str(schema).is_ok_and(|schema| is_valid(&schema))
}

fn is_valid(schema: &Value) -> bool {
    let dialect = schema
        .get("$schema")
        .is_none_or(|dialect| dialect == DIALECT);
    dialect
        && schema.get("type").is_some_and(|kind| kind == "object")
        && !has_boolean_property(schema)
        && !has_noise(schema)
        && !refers_outside(schema)
        && jsonschema::draft202012::meta::is_valid(schema)
}

/// Whether a property of the root is written as `true` or `false`.
fn has_boolean_property(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.is_some_and(|properties| properties.values().any(Value::is_boolean))
}

/// Whether anything is referred to that is not in the schema itself.
fn refers_outside(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members
                .iter()
                .any(|(keyword, value)| match (keyword.as_str(), value) {
                    ("$ref" | "$dynamicRef", Value::String(target)) => !target.starts_with('#'),
                    // Names of older drafts, which readers of this one do not know.
                    ("definitions" | "$recursiveRef" | "dependencies", _) => true,
                    _ => refers_outside(value),
                })
        }
        Value::Array(items) => items.iter().any(refers_outside),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_every_reader_of_the_draft_can_use_needs_no_transform() {
        for valid in [
            json!({"type": "object"}),
            json!({"$schema": DIALECT, "type": "object", "required": [], "properties": {"a": {"default": null}}}),
            json!({"type": "object", "$defs": {"x": true}, "properties": {"a": {"$ref": "#/$defs/x"}}}),
        ] {
            assert!(is_valid(&valid), "{valid}");
        }
        for other in [
            json!({}),
            json!({"type": "string"}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}),
            json!({"type": "object", "properties": {"a": {"type": "text"}}}),
            json!({"type": "object", "properties": {"a": {"enum": []}}}),
            json!({"type": "object", "properties": {"a": {"items": null}}}),
            json!({"type": "object", "properties": {"a": {"$ref": "https://elsewhere.example/x"}}}),
            json!({"type": "object", "definitions": {}}),
            json!({"type": "object", "properties": {"a": true}}),
        ] {
            assert!(!is_valid(&other), "{other}");
        }
    }
}
