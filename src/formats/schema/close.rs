//! Closed objects, for the strict modes: the arguments that an LLM writes have the members
//! described and no others.
//!
//! A schema that means to take anything cannot be said strictly, so it is refused here and offered
//! as it is elsewhere.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::budget::{TransformBudget, VALUE};
use super::walk::{Role, each_object};
use super::{Context, TransformError};
use crate::model::finding::near;

/// Closes every object; those that take members of any name are refused.
pub fn close_objects(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    each_object(schema, |members, place| {
        let open = |what: &str| {
            Err(TransformError::Unsupported(format!(
                "{what} at `{}`",
                near(place.pointer)
            )))
        };
        if members.is_empty()
            || !["type", "enum", "anyOf"]
                .iter()
                .any(|keyword| members.contains_key(*keyword))
        {
            return open("a value of any type");
        }
        if !names(members).any(|name| name == "object") && !members.contains_key("properties") {
            return Ok(());
        }
        let described = members
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|known| !known.is_empty());
        let free = match members.get("additionalProperties") {
            Some(Value::Bool(false)) => return Ok(()),
            Some(_) => true,
            None => !described && place.role != Role::Root,
        };
        if free {
            return open("an object with members of any name");
        }
        members.insert("additionalProperties".into(), false.into());
        context.silent();
        Ok(())
    })
}

/// Requires every property; one that was optional may be null instead.
pub fn require_all(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    each_object(schema, |members, _| {
        let required = members
            .get("required")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let Some(properties) = members.get("properties").and_then(Value::as_object) else {
            return Ok(());
        };
        let names: HashSet<&str> = required.iter().filter_map(Value::as_str).collect();
        let optional: Vec<bool> = properties
            .keys()
            .map(|name| !names.contains(name.as_str()))
            .collect();
        // Also for an empty list: the vendor requires the member itself.
        if properties.len() != required.len() || properties.is_empty() {
            context
                .budget
                .write(properties.keys().map(|name| VALUE + name.len()).sum())?;
            let all: Vec<Value> = properties
                .keys()
                .map(|name| Value::from(name.as_str()))
                .collect();
            context.silent();
            members.insert("required".into(), all.into());
        }
        let properties = members
            .get_mut("properties")
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten();
        properties
            .zip(optional)
            .filter(|(_, optional)| *optional)
            .for_each(|((_, schema), _)| nullable(schema));
        Ok(())
    })
}

/// Lists of types become alternatives, each with the keywords of the whole.
pub fn one_type_each(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    each_object(schema, |members, place| {
        let Some(Value::Array(types)) = members.get_mut("type") else {
            return Ok(());
        };
        let types = std::mem::take(types);
        context.silent();
        if place.role == Role::Root || types.len() == 1 || members.contains_key("anyOf") {
            let several = types.len() > 1;
            members.insert("type".into(), types.into_iter().next().unwrap_or_default());
            if several {
                let message = "of several types the first stays";
                context.lossy(
                    format_args!("{}/type", place.pointer),
                    message,
                    "use `anyOf` with one type in each",
                );
            }
            return Ok(());
        }
        let description = super::take(members, "description");
        let each = alternatives(std::mem::take(members), &types, &mut context.budget)?;
        members.extend(description.map(|text| ("description".to_owned(), text)));
        members.insert("anyOf".into(), Value::Array(each));
        Ok(())
    })
}

/// What a schema says of each of its types.
fn alternatives(
    whole: Map<String, Value>,
    types: &[Value],
    budget: &mut TransformBudget,
) -> Result<Vec<Value>, TransformError> {
    let alone = |name: &Value| Map::from_iter([("type".to_owned(), name.clone())]);
    let mut each: Vec<Map<String, Value>> = types.iter().map(alone).collect();
    for (keyword, value) in whole {
        let takes = |name: &Value| match keyword.as_str() {
            "type" => false,
            "items" | "minItems" => *name == "array",
            "properties" | "required" | "additionalProperties" => *name == "object",
            _ => *name != "null",
        };
        let mut left = Some(value);
        let mut accepting = types
            .iter()
            .zip(&mut each)
            .filter(|(name, _)| takes(name))
            .peekable();
        while let Some((name, one)) = accepting.next() {
            // What only one of them takes is moved, so that what stands within is not copied level
            // by level.
            let value = match &left {
                Some(value) if accepting.peek().is_some() => budget.copy(value)?,
                _ => left.take().unwrap_or_default(),
            };
            match value {
                Value::Array(mut values) if keyword == "enum" => {
                    values.retain(|value| fits(value, name));
                    if !values.is_empty() {
                        one.insert(keyword.clone(), values.into());
                    }
                }
                value => drop(one.insert(keyword.clone(), value)),
            }
        }
    }
    Ok(each.into_iter().map(Value::Object).collect())
}

/// Whether a value can be of a type.
fn fits(value: &Value, name: &Value) -> bool {
    match name.as_str() {
        Some("string") => value.is_string(),
        Some("number" | "integer") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => value.is_null(),
    }
}

fn names(members: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let (one, list) = match members.get("type") {
        Some(Value::String(name)) => (Some(name.as_str()), None),
        Some(Value::Array(names)) => (None, Some(names)),
        _ => (None, None),
    };
    one.into_iter()
        .chain(list.into_iter().flatten().filter_map(Value::as_str))
}

fn nullable(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(branches)) = members.get_mut("anyOf") {
        if !branches
            .iter()
            .any(|branch| branch.get("type").is_some_and(|name| name == "null"))
        {
            branches.push(json!({"type": "null"}));
        }
        return;
    }
    match members.get_mut("type") {
        Some(Value::Array(names)) if !names.iter().any(|name| name == "null") => {
            names.push("null".into());
        }
        Some(name) if name.is_string() && *name != "null" => *name = json!([name.take(), "null"]),
        _ => {}
    }
    if let Some(Value::Array(values)) = members.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_closed_and_what_was_optional_may_be_null() {
        let mut schema = json!({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]},
            "b": {"type": "object", "properties": {"c": {"anyOf": [{"type": "integer"}]}}},
            "n": {"type": "object", "properties": {}, "additionalProperties": false}}, "required": ["b", "n"]});
        for step in [close_objects, require_all] {
            let mut context = Context::for_schema(&schema);
            step(&mut schema, &mut context).unwrap();
        }
        let expected = json!({"type": "object", "properties": {"a": {"type": ["string", "null"], "enum": ["x", null]},
            "b": {"type": "object", "properties": {"c": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
                "additionalProperties": false, "required": ["c"]},
            "n": {"type": "object", "properties": {}, "additionalProperties": false, "required": []}},
            "required": ["a", "b", "n"], "additionalProperties": false});
        assert_eq!(schema.to_string(), expected.to_string());
    }

    #[test]
    fn what_takes_anything_is_refused() {
        for open in [
            json!({}),
            json!({"type": "object"}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
        ] {
            let mut schema = json!({"type": "object", "properties": {"a": open}});
            let mut context = Context::for_schema(&schema);
            assert!(
                matches!(
                    close_objects(&mut schema, &mut context),
                    Err(TransformError::Unsupported(_))
                ),
                "{schema}"
            );
        }
    }

    #[test]
    fn several_types_become_alternatives() {
        let mut schema = json!({"type": "object", "properties": {"a": {"type": ["array", "null"], "items": {"type": "string"}, "description": "d"}}});
        let mut context = Context::for_schema(&schema);
        one_type_each(&mut schema, &mut context).unwrap();
        let expected = json!({"description": "d", "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]});
        assert_eq!(schema["properties"]["a"].to_string(), expected.to_string());
    }

    #[test]
    fn each_alternative_has_the_values_of_its_type() {
        let mut schema = json!({"items": {"type": ["integer", "string", "null"], "enum": [1, "a", null, 2], "title": "t"}});
        let mut context = Context::for_schema(&schema);
        one_type_each(&mut schema, &mut context).unwrap();
        let expected = json!({"items": {"anyOf": [{"type": "integer", "enum": [1, 2], "title": "t"},
            {"type": "string", "enum": ["a"], "title": "t"}, {"type": "null"}]}});
        assert_eq!(schema.to_string(), expected.to_string());
    }
}
