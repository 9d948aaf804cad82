//! The root of a schema describes an object: the arguments of a call always are one.

use serde_json::{Map, Value};

use super::{Context, TransformError, short};

/// Gives the root the type `object` and `properties`. A schema that describes something else is
/// refused.
pub fn object_root(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    let Some(members) = schema.as_object_mut() else {
        return Err(TransformError::NotAnObject(format!(
            "no members (`{}`)",
            short(schema)
        )));
    };
    match members.get("type") {
        Some(Value::String(name)) if name == "object" => {}
        Some(Value::Array(names)) if names.iter().any(|name| name == "object") => {
            members.insert("type".into(), "object".into());
            context.lossy(
                "/type",
                "the type became `object` alone: arguments are always one",
                "write the type `object` at the root",
            );
        }
        Some(other) => {
            return Err(TransformError::NotAnObject(format!(
                "the type `{}`",
                short(other)
            )));
        }
        None => {
            // First, where people look for it.
            members.shift_insert(0, "type".into(), "object".into());
            context.silent();
        }
    }
    if !members.contains_key("properties") {
        members.insert("properties".into(), Value::Object(Map::new()));
        context.silent();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn roots_become_objects_or_are_refused() {
        let mut bare = json!({"title": "t"});
        let mut context = Context::for_schema(&bare);
        object_root(&mut bare, &mut context).unwrap();
        assert_eq!(
            bare.to_string(),
            r#"{"type":"object","title":"t","properties":{}}"#
        );
        assert!(context.changed());

        let mut nullable = json!({"type": ["object", "null"], "properties": {}});
        object_root(&mut nullable, &mut context).unwrap();
        assert_eq!(nullable.to_string(), r#"{"type":"object","properties":{}}"#);

        for mut other in [
            json!({"type": "string"}),
            json!(true),
            json!([]),
            json!({"type": ["array"]}),
        ] {
            assert!(
                matches!(
                    object_root(&mut other, &mut context),
                    Err(TransformError::NotAnObject(_))
                ),
                "{other}"
            );
        }
        assert_eq!(context.finish().0.len(), 1, "only the second is noted");
    }
}
