//! `anyOf` written as a list of types, for targets that read one or several types and no
//! alternatives.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::walk::each_object;
use super::{Context, TransformError, take};

/// Turns `anyOf` into a list of types where that means the same: each branch has types of its own,
/// and all its other keywords apply to these alone. No note. The branches are moved, since what
/// stands within them would else be copied level by level.
pub fn alternatives_to_types(
    schema: &mut Value,
    context: &mut Context,
) -> Result<(), TransformError> {
    each_object(schema, |members, _| {
        let Some(Value::Array(branches)) = members.get("anyOf") else {
            return Ok(());
        };
        let Some(keywords) = keywords(branches) else {
            return Ok(());
        };
        if keywords
            .iter()
            .any(|keyword| *keyword != "description" && members.contains_key(*keyword))
        {
            return Ok(());
        }
        let Some(Value::Array(branches)) = take(members, "anyOf") else {
            return Ok(());
        };
        for (keyword, value) in merged(branches) {
            // What stands around the alternatives describes the whole.
            members.entry(keyword).or_insert(value);
        }
        context.silent();
        Ok(())
    })
}

/// The keywords of all branches as one schema; `None` if that would change the meaning.
fn keywords(branches: &[Value]) -> Option<HashSet<&str>> {
    let mut types = HashSet::new();
    let mut keywords = HashSet::from(["type"]);
    let mut all_listed = true;
    for branch in branches {
        let branch = branch.as_object()?;
        let name = branch.get("type")?;
        let named = match name {
            Value::String(_) => std::slice::from_ref(name),
            Value::Array(names) => names.as_slice(),
            _ => return None,
        };
        // Types of which one branch says less than another would get the narrower words.
        if named.iter().any(|name| types.contains(name)) {
            return None;
        }
        types.extend(named);
        for (keyword, value) in branch {
            let is_new = keywords.insert(keyword.as_str());
            match keyword.as_str() {
                "type" => {}
                // Lists of values are put together.
                "enum" if value.is_array() => {}
                "items" | "properties" | "required" | "description" if is_new => {}
                _ => return None,
            }
        }
        all_listed &= branch.contains_key("enum") || *name == "null";
    }
    // A list of values holds for all types, so each type needs one.
    (all_listed || !keywords.contains("enum")).then_some(keywords)
}

/// The branches as one schema.
fn merged(branches: Vec<Value>) -> Map<String, Value> {
    let mut types = Vec::new();
    let mut rest = Map::new();
    let mut values: Option<Vec<Value>> = None;
    for mut branch in branches {
        let members = branch
            .as_object_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        let listed = members.contains_key("enum");
        let before = types.len();
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                ("type", Value::Array(names)) => types.extend(names),
                ("type", name) => types.push(name),
                ("enum", Value::Array(more)) => values.get_or_insert_default().extend(more),
                (_, value) => drop(rest.insert(keyword, value)),
            }
        }
        if let Some(values) = values
            .as_mut()
            .filter(|_| !listed && types[before..] == ["null"])
        {
            values.push(Value::Null);
        }
    }
    if let Some(mut values) = values {
        if types.iter().any(|name| name == "null") && !values.contains(&Value::Null) {
            values.push(Value::Null);
        }
        rest.insert("enum".into(), values.into());
    }
    let types = if types.len() == 1 {
        types.remove(0)
    } else {
        types.into()
    };
    rest.shift_insert(0, "type".into(), types);
    rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: &Value, expected: &Value) {
        let mut schema = json!({"type": "object", "properties": {"a": value}});
        let mut context = Context::for_schema(&schema);
        alternatives_to_types(&mut schema, &mut context).unwrap();
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
        check(
            &json!({"anyOf": [{"type": "string"}]}),
            &json!({"type": "string"}),
        );
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
