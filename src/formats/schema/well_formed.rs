//! Keywords hold what JSON Schema says they hold: one that does not makes a vendor refuse the whole
//! request.
//!
//! What cannot be meant is taken out, so that the rest of the tool stays usable; what older drafts
//! wrote otherwise is rewritten.

use serde_json::{Map, Value};

use super::walk::{Holds, Role, each_schema, holds};
use super::{Context, TransformError, each_once, short, take, upgrade};

const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "array", "object", "null",
];

/// Removes keywords with an invalid value.
pub fn well_formed(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    each_schema(schema, |schema, place| {
        match schema {
            Value::Object(members) => {
                if upgrade::number_strict_bounds(members) {
                    context.silent();
                }
                repair_required(members, place.pointer, context);
                each_type_once(members, context);
                take_odd(members, place.pointer, context);
            }
            Value::Bool(_) => {}
            // Whether a root that is not a schema can be offered at all is not decided here.
            _ if place.role == Role::Root => {}
            other => {
                let message = format!(
                    "`{}` is not a schema, so any value is accepted there",
                    short(other)
                );
                context.lossy(
                    place.pointer,
                    message,
                    "write an object, or `true` for anything",
                );
                *other = Value::Object(Map::new());
            }
        }
        Ok(())
    })
}

/// Takes out the keywords that hold what they may not.
fn take_odd(members: &mut Map<String, Value>, pointer: &str, context: &mut Context) {
    members.retain(|keyword, value| {
        let fits = acceptable(keyword, value);
        if !fits {
            context.lossy(
                format_args!("{pointer}/{keyword}"),
                format_args!(
                    "`{keyword}` was left out: `{}` is not a valid value for it",
                    short(value)
                ),
                hint(keyword),
            );
        }
        fits
    });
}

/// Whether a keyword may hold this value (the metaschema of 2020-12, without what no vendor looks
/// at).
fn acceptable(keyword: &str, value: &Value) -> bool {
    match keyword {
        "type" => match value {
            Value::String(name) => is_type(name),
            Value::Array(names) => {
                !names.is_empty() && names.iter().all(|name| name.as_str().is_some_and(is_type))
            }
            _ => false,
        },
        "enum" | "examples" | "required" => value.is_array(),
        "title" | "description" | "pattern" | "format" | "$ref" | "$schema" | "$id" | "$anchor"
        | "$comment" => value.is_string(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value
                .as_f64()
                .is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
        }
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        // What holds one schema was looked at as a schema itself.
        _ => match holds(keyword) {
            Some((Holds::List, _)) => value.is_array(),
            Some((Holds::Map, _)) => value.is_object(),
            Some((Holds::One, _)) | None => true,
        },
    }
}

fn is_type(name: &str) -> bool {
    TYPES.contains(&name)
}

/// A type that is named twice says no more than once.
fn each_type_once(members: &mut Map<String, Value>, context: &mut Context) {
    if let Some(Value::Array(names)) = members.get_mut("type")
        && each_once(names)
    {
        context.silent();
    }
}

/// Only names, each once.
fn repair_required(members: &mut Map<String, Value>, pointer: &str, context: &mut Context) {
    let Some(Value::Array(names)) = members.get_mut("required") else {
        return;
    };
    let written = names.len();
    names.retain(Value::is_string);
    if names.len() < written {
        let message = "what is not a name was taken out of `required`";
        context.lossy(
            format_args!("{pointer}/required"),
            message,
            hint("required"),
        );
    }
    if each_once(names) {
        context.silent();
    }
    if names.is_empty() {
        take(members, "required");
        context.silent();
    }
}

fn hint(keyword: &str) -> &'static str {
    match keyword {
        "type" => "use `string`, `number`, `integer`, `boolean`, `array`, `object` or `null`",
        "required" => "list the names of required properties beside `properties`",
        _ => "see the keyword in JSON Schema 2020-12",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut schema: Value, expected: &Value, places: &[&str]) {
        let mut context = Context::for_schema(&schema);
        well_formed(&mut schema, &mut context).unwrap();
        assert_eq!(schema.to_string(), expected.to_string());
        let notes = context.finish().0;
        let seen: Vec<_> = notes.iter().map(|note| note.pointer.as_str()).collect();
        assert_eq!(seen, places);
    }

    #[test]
    fn what_cannot_be_meant_goes_and_the_rest_stays() {
        check(
            json!({"type": "object", "properties": {
                "a": {"type": "str", "required": true, "description": "kept"},
                "b": "text", "c": {"type": ["string", "strng"], "enum": "x", "minLength": -1},
                "required": {"type": "string"}},
                "required": ["a", 1, "a", "required"], "anyOf": {}}),
            &json!({"type": "object", "properties": {
                "a": {"description": "kept"}, "b": {}, "c": {}, "required": {"type": "string"}},
                "required": ["a", "required"]}),
            &[
                "/required",
                "/anyOf",
                "/properties/a/type",
                "/properties/a/required",
                "/properties/b",
                "/properties/c/type",
                "/properties/c/enum",
                "/properties/c/minLength",
            ],
        );
    }

    #[test]
    fn bounds_of_draft_4_become_those_of_today_and_types_stand_once() {
        check(
            json!({"properties": {"a": {"minimum": 0, "exclusiveMinimum": true}, "b": {"maximum": 9, "exclusiveMaximum": false},
                "c": {"type": ["string", "null", "string"]}}}),
            &json!({"properties": {"a": {"exclusiveMinimum": 0}, "b": {"maximum": 9}, "c": {"type": ["string", "null"]}}}),
            &[],
        );
    }
}
