//! `allOf` merged into the schema around it, for targets that do not take it. What contradicts
//! stays with the schema around it, and a note says so.

use serde_json::{Map, Value};

use super::budget::MEMBER;
use super::walk::each_object;
use super::{Context, TransformError, each_once, take};

/// Merges every `allOf`. Its parts are moved, never copied.
pub fn merge(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    each_object(schema, |members, place| {
        let mut merged = false;
        let mut lost = false;
        // A branch may have an `allOf` of its own.
        while let Some(Value::Array(branches)) = take(members, "allOf") {
            merged = true;
            context.budget.charge(members.len() * MEMBER)?;
            for branch in branches {
                match branch {
                    Value::Object(branch) => lost |= !into(members, branch),
                    Value::Bool(true) => {}
                    _ => lost = true,
                }
            }
        }
        if !merged {
            return Ok(());
        }
        context.silent();
        if let Some(Value::Array(names)) = members.get_mut("required") {
            each_once(names);
        }
        if lost {
            let message =
                "`allOf` was merged; of a keyword in several parts only the first was kept";
            context.lossy(
                format_args!("{}/allOf", place.pointer),
                message,
                "write one schema without `allOf`",
            );
        }
        Ok(())
    })
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
            // Names that repeat are taken out once all are together; a branch that repeats says no
            // more than it said.
            (Value::Array(known), Value::Array(more))
                if keyword == "required" || keyword == "allOf" =>
            {
                known.extend(more);
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
        let mut context = Context::for_schema(&schema);
        merge(&mut schema, &mut context).unwrap();
        let expected = json!({"properties": {"a": {"description": "d", "type": "object",
            "properties": {"x": {}, "y": {}}, "required": ["x", "y"]}, "b": {"minimum": 1}}});
        assert_eq!(schema.to_string(), expected.to_string());
        let notes = context.finish().0;
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].pointer, "/properties/b/allOf");
    }
}
