//! The root of a schema describes an object: the arguments of a call always are one.

use serde_json::{Map, Value};

use super::{Log, Refused};

/// Gives the root the type `object` and `properties`. A schema that describes something else is refused.
pub fn object_root(schema: &mut Value, log: &mut Log) -> Result<(), Refused> {
    let Some(members) = schema.as_object_mut() else {
        return Err(Refused::NotAnObject(format!("no members (`{}`)", short(schema))));
    };
    match members.get("type") {
        Some(Value::String(name)) if name == "object" => {}
        Some(Value::Array(names)) if names.iter().any(|name| name == "object") => {
            members.insert("type".into(), "object".into());
            log.lossy(
                "/type",
                "the type became `object` alone: arguments are always one",
                "write the type `object` at the root",
            );
        }
        Some(other) => return Err(Refused::NotAnObject(format!("the type `{}`", short(other)))),
        None => {
            // First, where people look for it.
            members.shift_insert(0, "type".into(), "object".into());
            log.silent();
        }
    }
    if !members.contains_key("properties") {
        members.insert("properties".into(), Value::Object(Map::new()));
        log.silent();
    }
    Ok(())
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn roots_become_objects_or_are_refused() {
        let mut log = Log::default();
        let mut bare = json!({"title": "t"});
        object_root(&mut bare, &mut log).unwrap();
        assert_eq!(bare.to_string(), r#"{"type":"object","title":"t","properties":{}}"#);
        assert!(log.changed && log.notes.is_empty());

        let mut nullable = json!({"type": ["object", "null"], "properties": {}});
        object_root(&mut nullable, &mut log).unwrap();
        assert_eq!(nullable.to_string(), r#"{"type":"object","properties":{}}"#);
        assert_eq!(log.notes.len(), 1);

        for mut other in [json!({"type": "string"}), json!(true), json!([]), json!({"type": ["array"]})] {
            assert!(matches!(object_root(&mut other, &mut log), Err(Refused::NotAnObject(_))), "{other}");
        }
    }
}
