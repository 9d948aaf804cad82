//! `anyOf` said as a list of types, for targets that read a type or several and no alternatives.

use serde_json::{Map, Value};

use super::walk::each_schema;
use super::{Log, Refused, take};

/// Turns `anyOf` into a list of types where that means the same: each branch has types of its own, and whatever else it says speaks
/// of these alone. Silent.
pub fn alternatives_to_types(schema: &mut Value, log: &mut Log) -> Result<(), Refused> {
    each_schema(schema, &mut |schema, _| {
        let Some(members) = schema.as_object_mut() else { return };
        let Some(Value::Array(branches)) = members.get("anyOf") else { return };
        let Some(merged) = merged(branches) else { return };
        if merged.keys().any(|keyword| keyword != "description" && members.contains_key(keyword)) {
            return;
        }
        take(members, "anyOf");
        for (keyword, value) in merged {
            // What stands around the alternatives describes the whole.
            members.entry(keyword).or_insert(value);
        }
        log.silent();
    });
    Ok(())
}

/// The branches as one schema; nothing when that would mean something else.
fn merged(branches: &[Value]) -> Option<Map<String, Value>> {
    let mut types: Vec<Value> = Vec::new();
    let mut rest = Map::new();
    let mut values: Option<Vec<Value>> = None;
    for branch in branches {
        let branch = branch.as_object()?;
        let named = match branch.get("type")? {
            Value::String(name) => vec![Value::from(name.as_str())],
            Value::Array(names) => names.clone(),
            _ => return None,
        };
        // Types of which one branch says less than another would get the narrower words.
        if named.iter().any(|name| types.contains(name)) {
            return None;
        }
        for (keyword, value) in branch {
            match keyword.as_str() {
                "type" => {}
                "enum" => values.get_or_insert_default().extend(value.as_array()?.iter().cloned()),
                "items" | "properties" | "required" | "description" if !rest.contains_key(keyword) => {
                    rest.insert(keyword.clone(), value.clone());
                }
                _ => return None,
            }
        }
        if !branch.contains_key("enum") && named == ["null"] {
            values = values.map(|values| [values, vec![Value::Null]].concat());
        }
        types.extend(named);
    }
    let listed = branches.iter().all(|branch| branch.get("enum").is_some() || branch["type"] == "null");
    match values {
        // A list of values holds for all types, so each type needs one.
        Some(_) if !listed => return None,
        Some(mut values) => {
            if types.iter().any(|name| name == "null") && !values.contains(&Value::Null) {
                values.push(Value::Null);
            }
            rest.insert("enum".into(), values.into());
        }
        None => {}
    }
    let types = if types.len() == 1 { types.remove(0) } else { types.into() };
    rest.shift_insert(0, "type".into(), types);
    Some(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: &Value, expected: &Value) {
        let mut schema = json!({"type": "object", "properties": {"a": value}});
        alternatives_to_types(&mut schema, &mut Log::default()).unwrap();
        assert_eq!(schema["properties"]["a"].to_string(), expected.to_string());
    }

    #[test]
    fn alternatives_of_types_become_a_list_of_them() {
        check(
            &json!({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "d"}),
            &json!({"description": "d", "type": ["string", "null"]}),
        );
        check(
            &json!({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}),
            &json!({"type": ["array", "null"], "items": {"type": "integer"}}),
        );
        check(
            &json!({"anyOf": [{"type": "null"}, {"type": "string", "enum": ["x"]}]}),
            &json!({"type": ["null", "string"], "enum": ["x", null]}),
        );
        check(&json!({"anyOf": [{"type": "string"}]}), &json!({"type": "string"}));
    }

    #[test]
    fn what_would_mean_something_else_stays() {
        for held in [
            json!({"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "integer"}]}),
            json!({"anyOf": [{"type": "object", "properties": {}}, {"type": "object"}]}),
            json!({"anyOf": [{"type": "string"}, {}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}], "type": "string"}),
            json!({"anyOf": [{"type": "string", "description": "a"}, {"type": "integer", "description": "b"}]}),
        ] {
            check(&held, &held);
        }
    }
}
