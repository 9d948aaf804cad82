//! `required` names only what `properties` has: a name without a property is refused by OpenAI when
//! it checks strictly, and tells an LLM nothing.
//!
//! Branches (`anyOf`, `then`, ...) stay: they may require what the schema around them describes.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::walk::{Role, each_object};
use super::{Context, TransformError, take};

/// Takes names out of `required` that no property has.
pub fn known_required(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    each_object(schema, |members, place| {
        let described = members.contains_key("properties");
        if place.role == Role::Branch
            || (place.role == Role::Definition && !described)
            || open_ended(members)
        {
            return Ok(());
        }
        let Some(Value::Array(required)) = members.get("required") else {
            return Ok(());
        };
        let mut known = HashSet::new();
        names_described(members, &mut known);
        let is_known = |name: &Value| name.as_str().is_some_and(|name| known.contains(name));
        let kept: Vec<bool> = required.iter().map(is_known).collect();
        for (name, _) in required.iter().zip(&kept).filter(|(_, kept)| !**kept) {
            context.lossy(
                format_args!("{}/required", place.pointer),
                format_args!("{name} was taken out of `required`: no property has this name"),
                "describe the property or do not require it",
            );
        }
        if !kept.contains(&true) {
            take(members, "required");
            context.silent();
        } else if let Some(Value::Array(required)) = members.get_mut("required") {
            let mut kept = kept.into_iter();
            required.retain(|_| kept.next().unwrap_or(true));
        }
        Ok(())
    })
}

/// Whether properties may be described where the walk does not look: behind a reference or by a
/// pattern.
fn open_ended(members: &Map<String, Value>) -> bool {
    let here = ["$ref", "$dynamicRef", "patternProperties"]
        .iter()
        .any(|keyword| members.contains_key(*keyword));
    here || branches(members).any(open_ended)
}

/// Every property name that the schema or one of its branches describes.
fn names_described<'a>(members: &'a Map<String, Value>, names: &mut HashSet<&'a str>) {
    if let Some(Value::Object(properties)) = members.get("properties") {
        names.extend(properties.keys().map(String::as_str));
    }
    for branch in branches(members) {
        names_described(branch, names);
    }
}

/// The schemas that apply to the same value.
fn branches(members: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let lists = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .filter_map(|keyword| members.get(keyword)?.as_array())
        .flatten();
    let singles = ["if", "then", "else"]
        .into_iter()
        .filter_map(|keyword| members.get(keyword));
    lists.chain(singles).filter_map(Value::as_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut schema: Value, expected: &Value) -> Vec<super::super::TransformNote> {
        let mut context = Context::for_schema(&schema);
        known_required(&mut schema, &mut context).unwrap();
        assert_eq!(schema.to_string(), expected.to_string());
        context.finish().0
    }

    #[test]
    fn names_without_a_property_go_with_a_note_and_nested_ones_stay() {
        let notes = check(
            json!({"type": "object", "required": ["a", "ghost"], "properties": {
                "a": {"type": "object", "properties": {"x": {}}, "required": ["x"]},
                "b": {"type": "object", "required": ["y"]}}}),
            &json!({"type": "object", "required": ["a"], "properties": {
                "a": {"type": "object", "properties": {"x": {}}, "required": ["x"]}, "b": {"type": "object"}}}),
        );
        let pointers: Vec<_> = notes.iter().map(|note| note.pointer.as_str()).collect();
        assert_eq!(pointers, ["/required", "/properties/b/required"]);
    }

    #[test]
    fn what_branches_references_and_patterns_may_describe_stays() {
        let schema = json!({"properties": {
            "a": {"properties": {"x": {}, "y": {}}, "anyOf": [{"required": ["x"]}, {"required": ["y"]}]},
            "b": {"required": ["x"], "oneOf": [{"properties": {"x": {}}}]},
            "c": {"$ref": "#/$defs/c", "required": ["z"]},
            "d": {"patternProperties": {"^x": {}}, "required": ["x1"]},
        }, "$defs": {"mixin": {"required": ["id"]}}});
        assert_eq!(
            check(schema.clone(), &schema).len(),
            0,
            "there is nothing in it"
        );
    }
}
