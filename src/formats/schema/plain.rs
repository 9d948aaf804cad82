//! Rare words said in common ones: `const` as an `enum` of one, `oneOf` as `anyOf`, `true` as an
//! empty schema.

use serde_json::{Map, Value};

use super::walk::each_object;
use super::{Context, TransformError, take};

/// `const` becomes an `enum` of one value, which means the same.
pub fn const_to_enum(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    each_object(schema, |members, _| {
        if members.contains_key("const") {
            rename(members, "const", "enum", |value| Value::Array(vec![value]));
            context.silent();
        }
        Ok(())
    })
}

/// `oneOf` becomes `anyOf`: that only one of them may fit cannot be said.
pub fn one_of_to_any_of(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    each_object(schema, |members, place| {
        if !members.contains_key("oneOf") {
            return Ok(());
        }
        let message = if members.contains_key("anyOf") {
            take(members, "oneOf");
            "`oneOf` beside `anyOf` was left out"
        } else {
            rename(members, "oneOf", "anyOf", |value| value);
            "`oneOf` became `anyOf`: that exactly one of them must fit cannot be expressed"
        };
        context.lossy(
            format_args!("{}/oneOf", place.pointer),
            message,
            "use `anyOf` with alternatives that exclude each other",
        );
        Ok(())
    })
}

/// Schemas written `true` become empty ones, which mean the same; `false`, which allows nothing,
/// does too, and a note says so.
pub fn no_booleans(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    each_object(schema, |members, place| {
        for (keyword, held) in members {
            let inner: Vec<&mut Value> = match (keyword.as_str(), held) {
                (
                    "properties" | "$defs" | "patternProperties" | "dependentSchemas",
                    Value::Object(map),
                ) => map.values_mut().collect(),
                ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
                    list.iter_mut().collect()
                }
                ("items" | "contains" | "not" | "if" | "then" | "else" | "propertyNames", one) => {
                    vec![one]
                }
                _ => continue,
            };
            for schema in inner.into_iter().filter(|schema| schema.is_boolean()) {
                let allows_no_value = *schema == Value::Bool(false);
                *schema = Value::Object(Map::new());
                context.silent();
                if allows_no_value {
                    let message = "a schema that allows no value became one that allows any";
                    context.lossy(
                        format_args!("{}/{keyword}", place.pointer),
                        message,
                        "leave out what cannot be given",
                    );
                }
            }
        }
        Ok(())
    })
}

/// Puts a member under another keyword, in its place; one that is there already goes.
fn rename(members: &mut Map<String, Value>, from: &str, to: &str, change: fn(Value) -> Value) {
    let all = std::mem::take(members);
    for (keyword, value) in all {
        if keyword == from {
            members.insert(to.to_owned(), change(value));
        } else if keyword != to {
            members.insert(keyword, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rare_words_become_common_ones_in_their_place() {
        let mut schema = json!({"properties": {"const": {"const": 1, "title": "t"}, "b": {"oneOf": [{}, true]}, "c": true},
            "additionalProperties": false});
        let mut context = Context::for_schema(&schema);
        for step in [no_booleans, one_of_to_any_of, const_to_enum] {
            step(&mut schema, &mut context).unwrap();
        }
        let expected = json!({"properties": {"const": {"enum": [1], "title": "t"}, "b": {"anyOf": [{}, {}]}, "c": {}},
            "additionalProperties": false});
        assert_eq!(schema.to_string(), expected.to_string());
        assert_eq!(context.finish().0.len(), 1);
    }
}
