//! Closed objects, for the strict modes: the arguments that an LLM writes have the members described and no others.
//!
//! A schema that means to take anything cannot be said strictly, so it is refused here and offered as it is elsewhere.

use serde_json::{Map, Value, json};

use super::walk::{Role, each_schema};
use super::{Log, Refused};

/// Closes every object; those that take members of any name are refused.
pub fn close_objects(schema: &mut Value, log: &mut Log) -> Result<(), Refused> {
    let mut open = None;
    each_schema(schema, &mut |schema, place| {
        let Some(members) = schema.as_object_mut() else { return };
        if members.is_empty() || !["type", "enum", "anyOf"].iter().any(|keyword| members.contains_key(*keyword)) {
            open.get_or_insert_with(|| format!("a value of any type at `{}`", place.pointer));
            return;
        }
        if !names(members).any(|name| name == "object") && !members.contains_key("properties") {
            return;
        }
        let described = members.get("properties").and_then(Value::as_object).is_some_and(|known| !known.is_empty());
        let free = match members.get("additionalProperties") {
            Some(Value::Bool(false)) => return,
            Some(_) => true,
            None => !described && place.role != Role::Root,
        };
        if free {
            open.get_or_insert_with(|| format!("an object with members of any name at `{}`", place.pointer));
        }
        members.insert("additionalProperties".into(), false.into());
        log.silent();
    });
    open.map_or(Ok(()), |what| Err(Refused::Beyond(what)))
}

/// Requires every property; one that was optional may be null instead.
pub fn require_all(schema: &mut Value, log: &mut Log) -> Result<(), Refused> {
    each_schema(schema, &mut |schema, _| {
        let Some(members) = schema.as_object_mut() else { return };
        let required = members.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) else { return };
        let all: Vec<Value> = properties.keys().map(|name| Value::from(name.as_str())).collect();
        let optional = properties.iter_mut().filter(|(name, _)| !required.iter().any(|known| known == name.as_str()));
        optional.for_each(|(_, schema)| nullable(schema));
        // Also where there is nothing to require: the vendor asks for the list itself.
        if all.len() != required.len() || all.is_empty() {
            log.silent();
            members.insert("required".into(), all.into());
        }
    });
    Ok(())
}

/// Lists of types become alternatives, each with the keywords of the whole.
pub fn one_type_each(schema: &mut Value, log: &mut Log) -> Result<(), Refused> {
    each_schema(schema, &mut |schema, place| {
        let Some(members) = schema.as_object_mut() else { return };
        let Some(Value::Array(types)) = members.get("type").cloned() else { return };
        log.silent();
        if place.role == Role::Root || types.len() == 1 || members.contains_key("anyOf") {
            members.insert("type".into(), types.first().cloned().unwrap_or_default());
            if types.len() > 1 {
                let message = "of several types the first stays";
                log.lossy(format!("{}/type", place.pointer), message, "use `anyOf` with one type in each");
            }
            return;
        }
        let description = super::take(members, "description");
        let whole = std::mem::take(members);
        let each = types.iter().map(|name| alternative(&whole, name)).collect();
        members.extend(description.map(|text| ("description".to_owned(), text)));
        members.insert("anyOf".into(), Value::Array(each));
    });
    Ok(())
}

/// What a schema says of one of its types.
fn alternative(whole: &Map<String, Value>, name: &Value) -> Value {
    let null = *name == "null";
    let fits = |value: &Value| match name.as_str() {
        Some("string") => value.is_string(),
        Some("number" | "integer") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => value.is_null(),
    };
    let mut one = Map::from_iter([("type".to_owned(), name.clone())]);
    for (keyword, value) in whole {
        let here = match keyword.as_str() {
            "type" => continue,
            "items" | "minItems" => *name == "array",
            "properties" | "required" | "additionalProperties" => *name == "object",
            "enum" => {
                let fitting: Vec<Value> = value.as_array().into_iter().flatten().filter(|v| fits(v)).cloned().collect();
                if !fitting.is_empty() && !null {
                    one.insert("enum".into(), fitting.into());
                }
                continue;
            }
            _ => !null,
        };
        if here {
            one.insert(keyword.clone(), value.clone());
        }
    }
    Value::Object(one)
}

fn names(members: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let (one, list) = match members.get("type") {
        Some(Value::String(name)) => (Some(name.as_str()), None),
        Some(Value::Array(names)) => (None, Some(names)),
        _ => (None, None),
    };
    one.into_iter().chain(list.into_iter().flatten().filter_map(Value::as_str))
}

fn nullable(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    if let Some(Value::Array(branches)) = members.get_mut("anyOf") {
        if !branches.iter().any(|branch| branch.get("type").is_some_and(|name| name == "null")) {
            branches.push(json!({"type": "null"}));
        }
        return;
    }
    match members.get_mut("type") {
        Some(Value::Array(names)) if !names.iter().any(|name| name == "null") => names.push("null".into()),
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
            step(&mut schema, &mut Log::default()).unwrap();
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
            assert!(matches!(close_objects(&mut schema, &mut Log::default()), Err(Refused::Beyond(_))), "{schema}");
        }
    }

    #[test]
    fn several_types_become_alternatives() {
        let mut schema = json!({"type": "object", "properties": {"a": {"type": ["array", "null"], "items": {"type": "string"}, "description": "d"}}});
        one_type_each(&mut schema, &mut Log::default()).unwrap();
        let expected =
            json!({"description": "d", "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]});
        assert_eq!(schema["properties"]["a"].to_string(), expected.to_string());
    }
}
