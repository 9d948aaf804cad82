//! What drafts 4 to 2019-09 wrote otherwise becomes what 2020-12 writes. Silent: it means the same.
//!
//! Flags for strict bounds are rewritten with the other malformed values, and lists of items with
//! arrays. The check of arguments rewrites the flags with the same function.

use serde_json::{Map, Value};

use super::walk::each_object;
use super::{Context, TransformError, take};

/// Renames and splits keywords of older drafts; takes `$schema` out, since targets know their
/// dialect.
pub fn to_2020(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    let moved = rename_definitions(schema, context);
    each_object(schema, |members, _| {
        if let Some(target) = take(members, "$recursiveRef") {
            // It is always "#"; what it finds without anchors is the root.
            members.entry("$ref").or_insert(target);
            context.silent();
        }
        for keyword in ["$schema", "$vocabulary", "$recursiveAnchor", "id"] {
            if take(members, keyword).is_some() {
                context.silent();
            }
        }
        if moved
            && let Some(Value::String(target)) = members.get_mut("$ref")
            && let Some(rest) = target.strip_prefix("#/definitions/")
        {
            *target = format!("#/$defs/{rest}");
        }
        if members.get("dependencies").is_some_and(Value::is_object)
            && let Some(Value::Object(dependencies)) = take(members, "dependencies")
        {
            let (lists, schemas): (Map<_, _>, Map<_, _>) = dependencies
                .into_iter()
                .partition(|(_, held)| held.is_array());
            for (keyword, held) in [("dependentRequired", lists), ("dependentSchemas", schemas)] {
                if !held.is_empty() && !members.contains_key(keyword) {
                    members.insert(keyword.into(), Value::Object(held));
                }
            }
            context.silent();
        }
        Ok(())
    })
}

/// Writes the strict bounds of a whole schema as [`number_strict_bounds`] does.
pub(crate) fn number_all_strict_bounds(schema: &mut Value) -> Result<(), TransformError> {
    each_object(schema, |members, _| {
        number_strict_bounds(members);
        Ok(())
    })
}

/// Draft 4 wrote a strict bound as a flag beside the bound; since draft 6 it is the bound. Whether
/// there was such a flag.
pub(super) fn number_strict_bounds(members: &mut Map<String, Value>) -> bool {
    let mut changed = false;
    for (bound, strict) in [
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ] {
        let Some(Value::Bool(flag)) = members.get(strict) else {
            continue;
        };
        changed = true;
        if *flag && members.get(bound).is_some_and(Value::is_number) {
            if let Some(number) = take(members, bound) {
                members.insert(strict.into(), number);
            }
        } else {
            // A flag without a bound, or an unset one, has no meaning.
            take(members, strict);
        }
    }
    changed
}

/// Only at the root, where references look for it; a schema with both keeps both.
fn rename_definitions(schema: &mut Value, context: &mut Context) -> bool {
    let Some(members) = schema.as_object_mut() else {
        return false;
    };
    if !members.contains_key("definitions") || members.contains_key("$defs") {
        return false;
    }
    let renamed = std::mem::take(members).into_iter();
    *members = renamed
        .map(|(key, value)| {
            (
                if key == "definitions" {
                    "$defs".to_owned()
                } else {
                    key
                },
                value,
            )
        })
        .collect();
    context.silent();
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_only_2019_09_had_goes() {
        let mut schema = json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "$vocabulary": {}, "$recursiveAnchor": true,
            "properties": {"sub": {"$recursiveRef": "#"}, "$recursiveRef": {"type": "string"}}});
        let mut context = Context::for_schema(&schema);
        to_2020(&mut schema, &mut context).unwrap();
        let expected =
            json!({"properties": {"sub": {"$ref": "#"}, "$recursiveRef": {"type": "string"}}});
        assert_eq!(schema.to_string(), expected.to_string());
    }

    #[test]
    fn older_words_become_those_of_today() {
        let mut schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"type": "string"}},
            "properties": {"id": {"$ref": "#/definitions/a"}, "definitions": {"id": "x"}},
            "dependencies": {"id": ["definitions"], "definitions": {"required": ["id"]}}});
        let mut context = Context::for_schema(&schema);
        to_2020(&mut schema, &mut context).unwrap();
        let expected = json!({"$defs": {"a": {"type": "string"}},
            "properties": {"id": {"$ref": "#/$defs/a"}, "definitions": {}},
            "dependentRequired": {"id": ["definitions"]}, "dependentSchemas": {"definitions": {"required": ["id"]}}});
        assert_eq!(schema.to_string(), expected.to_string());
    }
}
