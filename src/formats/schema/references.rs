//! References stay within the schema. Remote ones are never fetched: a provider could make the daemon ask anyone.

use serde_json::Value;

use super::walk::each_schema;
use super::{Log, Refused};

/// Refuses references to what is not within the schema.
pub fn local_references(schema: &mut Value, _log: &mut Log) -> Result<(), Refused> {
    let mut targets = Vec::new();
    each_schema(schema, &mut |schema, _| {
        for keyword in ["$ref", "$dynamicRef"] {
            targets.extend(schema.get(keyword).and_then(Value::as_str).map(str::to_owned));
        }
    });
    match targets.into_iter().find(|target| find(schema, target).is_none()) {
        Some(target) => Err(Refused::Reference(target.chars().take(100).collect())),
        None => Ok(()),
    }
}

/// What a reference within the schema points at (RFC 6901 section 6).
pub(super) fn find<'a>(root: &'a Value, target: &str) -> Option<&'a Value> {
    root.pointer(target.strip_prefix('#')?).filter(|found| found.is_object() || found.is_boolean())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_within_is_refused() {
        for (target, held) in [
            ("#/$defs/a", true),
            ("#", true),
            ("#/$defs/b", false),
            ("http://127.0.0.1/s", false),
            ("a.json#/b", false),
        ] {
            let mut schema =
                json!({"properties": {"x": {"$ref": target}, "$ref": {"type": "string"}}, "$defs": {"a": {}}});
            assert_eq!(local_references(&mut schema, &mut Log::default()).is_ok(), held, "{target}");
        }
    }
}
