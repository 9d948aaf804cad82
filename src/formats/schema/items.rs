//! Arrays say what their items are: OpenAI refuses "array schema missing items", and the list form
//! of draft 7.
//!
//! Silent: `items: {}` is what a missing `items` means, and `prefixItems` is what the list form is
//! called since 2020-12.

use serde_json::{Map, Value};

use super::walk::each_object;
use super::{Context, TransformError, take};

/// Gives every array `items`, as one schema.
pub fn array_items(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    each_object(schema, |members, _| {
        if matches!(members.get("items"), Some(Value::Array(_))) {
            let rest =
                take(members, "additionalItems").unwrap_or_else(|| Value::Object(Map::new()));
            // In the place of the old list, so that the order of the others stays; the first items
            // come last.
            let first = members.insert("items".into(), rest).unwrap_or_default();
            let empty = first.as_array().is_none_or(Vec::is_empty);
            if !empty && !members.contains_key("prefixItems") {
                members.insert("prefixItems".into(), first);
            }
            context.silent();
        } else if is_array(members) && !members.contains_key("items") {
            members.insert("items".into(), Value::Object(Map::new()));
            context.silent();
        }
        Ok(())
    })
}

fn is_array(members: &Map<String, Value>) -> bool {
    match members.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut schema: Value, expected: &Value) {
        let mut context = Context::for_schema(&schema);
        array_items(&mut schema, &mut context).unwrap();
        assert_eq!(schema.to_string(), expected.to_string());
    }

    #[test]
    fn arrays_get_items_wherever_they_are() {
        check(
            json!({"properties": {"a": {"type": "array", "title": "t"}, "b": {"anyOf": [{"type": ["array", "null"]}]},
                "c": {"type": "array", "items": {"type": "array"}}}}),
            &json!({"properties": {"a": {"type": "array", "title": "t", "items": {}},
                "b": {"anyOf": [{"type": ["array", "null"], "items": {}}]},
                "c": {"type": "array", "items": {"type": "array", "items": {}}}}}),
        );
    }

    #[test]
    fn the_list_form_becomes_prefix_items() {
        check(
            json!({"type": "array", "items": [{"type": "string"}, {"type": "array"}], "additionalItems": false, "title": "t"}),
            &json!({"type": "array", "items": false, "title": "t",
                "prefixItems": [{"type": "string"}, {"type": "array", "items": {}}]}),
        );
    }
}
