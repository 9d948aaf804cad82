//! `allOf` merged into the schema around it, for targets that do not take it. What contradicts stays with the schema around it, and a
//! note says so.

use serde_json::{Map, Value};

use super::walk::each_schema;
use super::{Log, Refused, take};

/// Merges every `allOf`.
pub fn merge(schema: &mut Value, log: &mut Log) -> Result<(), Refused> {
    each_schema(schema, &mut |schema, place| {
        let Some(members) = schema.as_object_mut() else { return };
        let mut lost = false;
        // A branch may have an `allOf` of its own.
        while let Some(Value::Array(branches)) = take(members, "allOf") {
            log.silent();
            for branch in branches {
                match branch {
                    Value::Object(branch) => lost |= !into(members, branch),
                    Value::Bool(true) => {}
                    _ => lost = true,
                }
            }
        }
        if lost {
            let message =
                "`allOf` was merged, and what its parts say of the same keyword was left out but for the first";
            log.lossy(format!("{}/allOf", place.pointer), message, "write one schema without `allOf`");
        }
    });
    Ok(())
}

/// Whether everything of the branch is said.
fn into(members: &mut Map<String, Value>, branch: Map<String, Value>) -> bool {
    let mut whole = true;
    for (keyword, value) in branch {
        let Some(known) = members.get_mut(&keyword) else {
            members.insert(keyword, value);
            continue;
        };
        match (known, value) {
            (Value::Object(known), Value::Object(more)) if keyword == "properties" => {
                for (name, schema) in more {
                    if let Some(same) = known.get(&name) {
                        whole &= *same == schema;
                    } else {
                        known.insert(name, schema);
                    }
                }
            }
            (Value::Array(known), Value::Array(more)) if keyword == "required" || keyword == "allOf" => {
                for value in more {
                    if !known.contains(&value) {
                        known.push(value);
                    }
                }
            }
            (known, value) => whole &= *known == value,
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn branches_become_one_schema() {
        let mut schema = json!({"properties": {"a": {"description": "d", "allOf": [
            {"type": "object", "properties": {"x": {}}, "required": ["x"]},
            {"allOf": [{"properties": {"y": {}}, "required": ["x", "y"]}]}, true]},
            "b": {"allOf": [{"minimum": 1}, {"minimum": 2}]}}});
        let mut log = Log::default();
        merge(&mut schema, &mut log).unwrap();
        let expected = json!({"properties": {"a": {"description": "d", "type": "object",
            "properties": {"x": {}, "y": {}}, "required": ["x", "y"]}, "b": {"minimum": 1}}});
        assert_eq!(schema.to_string(), expected.to_string());
        assert_eq!(log.notes.len(), 1);
        assert_eq!(log.notes[0].pointer, "/properties/b/allOf");
    }
}
