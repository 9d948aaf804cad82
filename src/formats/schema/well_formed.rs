//! Keywords hold what JSON Schema says they hold: one that does not makes a vendor refuse the whole request.
//!
//! What cannot be meant is taken out, so that the rest of the tool stays usable; what older drafts wrote otherwise is rewritten.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::walk::{Holds, Role, each_schema, holds};
use super::{Log, Refused, take};

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// Takes out keywords whose value cannot be what they hold.
pub fn well_formed(schema: &mut Value, log: &mut Log) -> Result<(), Refused> {
    each_schema(schema, &mut |schema, place| match schema {
        Value::Object(members) => {
            rewrite_exclusive(members, log);
            repair_required(members, place.pointer, log);
            each_type_once(members, log);
            let odd: Vec<String> = members.iter().filter(|(k, v)| !acceptable(k, v)).map(|(k, _)| k.clone()).collect();
            for keyword in odd {
                let value = take(members, &keyword).unwrap_or_default();
                log.lossy(
                    format!("{}/{keyword}", place.pointer),
                    format!("`{keyword}` was left out: {} is not what it may hold", short(&value)),
                    hint(&keyword),
                );
            }
        }
        Value::Bool(_) => {}
        // Whether a root that is no schema can be offered at all is not decided here.
        _ if place.role == Role::Root => {}
        other => {
            let message = format!("{} is no schema, so anything is taken there", short(other));
            log.lossy(place.pointer, message, "write an object, or `true` for anything");
            *other = Value::Object(Map::new());
        }
    });
    Ok(())
}

/// Whether a keyword may hold this value (the metaschema of 2020-12, without what no vendor looks at).
fn acceptable(keyword: &str, value: &Value) -> bool {
    match keyword {
        "type" => match value {
            Value::String(name) => is_type(name),
            Value::Array(names) => !names.is_empty() && names.iter().all(|name| name.as_str().is_some_and(is_type)),
            _ => false,
        },
        "enum" | "examples" | "required" => value.is_array(),
        "title" | "description" | "pattern" | "format" | "$ref" | "$schema" | "$id" | "$anchor" | "$comment" => {
            value.is_string()
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
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

/// Draft 4 wrote a strict bound as a flag beside the bound; since draft 6 it is the bound.
fn rewrite_exclusive(members: &mut Map<String, Value>, log: &mut Log) {
    for (bound, strict) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let Some(Value::Bool(flag)) = members.get(strict) else { continue };
        if *flag && members.get(bound).is_some_and(Value::is_number) {
            if let Some(number) = take(members, bound) {
                members.insert(strict.into(), number);
            }
        } else {
            // A flag without a bound, or an unset one, says nothing.
            take(members, strict);
        }
        log.silent();
    }
}

/// A type that is named twice says no more than once.
fn each_type_once(members: &mut Map<String, Value>, log: &mut Log) {
    let Some(Value::Array(names)) = members.get_mut("type") else { return };
    let mut seen = Vec::new();
    let before = names.len();
    names.retain(|name| {
        !seen.contains(name) && {
            seen.push(name.clone());
            true
        }
    });
    if names.len() < before {
        log.silent();
    }
}

/// Only names, each once.
fn repair_required(members: &mut Map<String, Value>, pointer: &str, log: &mut Log) {
    let Some(Value::Array(names)) = members.get_mut("required") else { return };
    let written = names.len();
    names.retain(Value::is_string);
    if names.len() < written {
        let message = "what is not a name was taken out of `required`";
        log.lossy(format!("{pointer}/required"), message, hint("required"));
    }
    let mut seen = BTreeSet::new();
    let with_repeats = names.len();
    names.retain(|name| name.as_str().is_some_and(|name| seen.insert(name.to_owned())));
    if names.len() < with_repeats {
        log.silent();
    }
    if names.is_empty() {
        take(members, "required");
        log.silent();
    }
}

fn hint(keyword: &str) -> &'static str {
    match keyword {
        "type" => "use `string`, `number`, `integer`, `boolean`, `array`, `object` or `null`",
        "required" => "list the names of required properties beside `properties`",
        _ => "see the keyword in JSON Schema 2020-12",
    }
}

fn short(value: &Value) -> String {
    format!("`{}`", value.to_string().chars().take(60).collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut schema: Value, expected: &Value, places: &[&str]) {
        let mut log = Log::default();
        well_formed(&mut schema, &mut log).unwrap();
        assert_eq!(schema.to_string(), expected.to_string());
        let seen: Vec<_> = log.notes.iter().map(|note| note.pointer.as_str()).collect();
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
