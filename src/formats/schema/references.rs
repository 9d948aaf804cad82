//! References stay within the schema. Remote ones are never fetched: a provider could make the
//! daemon send requests to any address.

use serde_json::Value;

use super::budget::{LOOKUP, VALUE};
use super::walk::each_object;
use super::{Context, TransformError};

/// Refuses references to what is not within the schema.
pub fn local_references(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    let mut targets = Vec::new();
    each_object(schema, |members, _| {
        for target in ["$ref", "$dynamicRef"]
            .iter()
            .filter_map(|keyword| members.get(*keyword)?.as_str())
        {
            context.budget.charge(VALUE + LOOKUP * target.len())?;
            targets.push(target.to_owned());
        }
        Ok(())
    })?;
    match targets.iter().find(|target| find(schema, target).is_none()) {
        Some(target) => Err(TransformError::reference(target)),
        None => Ok(()),
    }
}

/// What a reference within the schema points at (RFC 6901 section 6).
pub(super) fn find<'a>(root: &'a Value, target: &str) -> Option<&'a Value> {
    root.pointer(target.strip_prefix('#')?)
        .filter(|found| found.is_object() || found.is_boolean())
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
            let mut schema = json!({"properties": {"x": {"$ref": target}, "$ref": {"type": "string"}}, "$defs": {"a": {}}});
            let mut context = Context::for_schema(&schema);
            assert_eq!(
                local_references(&mut schema, &mut context).is_ok(),
                held,
                "{target}"
            );
        }
    }
}
