//! A schema without references: each is replaced by what it points at, within the budget. Where one
//! leads back to itself, anything is taken, and a note says so.

use serde_json::{Map, Value, json};

use super::budget::{LOOKUP, MEMBER, TransformBudget, VALUE};
use super::references::find;
use super::walk::{Holds, each_object, holds};
use super::{Context, TransformError};

/// Schemas one within the other; what nests deeper is refused by common readers.
const SCHEMA_LEVELS_MAX: usize = 60;

/// Replaces every reference, and takes definitions out.
pub fn inline(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    if !mentions(schema)? {
        return Ok(());
    }
    let root = std::mem::take(schema);
    let mut writer = Inline {
        root: &root,
        budget: &mut context.budget,
        within: vec![&root],
        circles: false,
    };
    *schema = writer.write(&root, 0)?;
    let circles = writer.circles;
    context.silent();
    if circles {
        context.lossy(
            "",
            "where the schema refers back to itself, anything is taken",
            "describe a bounded number of levels",
        );
    }
    Ok(())
}

/// Whether any schema has what is taken out here.
fn mentions(schema: &mut Value) -> Result<bool, TransformError> {
    let mut found = false;
    each_object(schema, |members, _| {
        found |= GONE
            .iter()
            .chain(&["$ref", "$dynamicRef"])
            .any(|keyword| members.contains_key(*keyword));
        Ok(())
    })?;
    Ok(found)
}

const GONE: [&str; 5] = ["$defs", "definitions", "$anchor", "$dynamicAnchor", "$id"];

struct Inline<'a> {
    root: &'a Value,
    budget: &'a mut TransformBudget,
    /// The root, and what the references that are being followed point at.
    within: Vec<&'a Value>,
    circles: bool,
}

impl<'a> Inline<'a> {
    /// A schema written out.
    fn write(&mut self, schema: &'a Value, depth: usize) -> Result<Value, TransformError> {
        if depth > SCHEMA_LEVELS_MAX {
            return Err(TransformError::TooLarge);
        }
        let Some(members) = schema.as_object() else {
            return self.budget.copy(schema);
        };
        self.budget.write(VALUE)?;
        let mut written = Map::new();
        for (keyword, held) in members {
            if GONE.contains(&keyword.as_str()) || keyword == "$ref" || keyword == "$dynamicRef" {
                continue;
            }
            self.budget.write(MEMBER + keyword.len())?;
            written.insert(keyword.clone(), self.held(keyword, held, depth)?);
        }
        let target = ["$ref", "$dynamicRef"]
            .iter()
            .find_map(|keyword| members.get(*keyword))
            .and_then(Value::as_str);
        if let Some(target) = target {
            for (keyword, value) in self.follow(target, depth)? {
                // What stands beside a reference says it more precisely.
                written.entry(keyword).or_insert(value);
            }
        }
        Ok(Value::Object(written))
    }

    fn held(
        &mut self,
        keyword: &str,
        held: &'a Value,
        depth: usize,
    ) -> Result<Value, TransformError> {
        match (holds(keyword), held) {
            (Some((Holds::List | Holds::One, _)), Value::Array(list)) => {
                self.budget.write(VALUE)?;
                list.iter()
                    .map(|inner| self.write(inner, depth + 1))
                    .collect()
            }
            (Some((Holds::Map, _)), Value::Object(map)) => {
                self.budget.write(VALUE)?;
                let mut written = Map::new();
                for (name, inner) in map {
                    self.budget.write(MEMBER + name.len())?;
                    written.insert(name.clone(), self.write(inner, depth + 1)?);
                }
                Ok(Value::Object(written))
            }
            (Some((Holds::One, _)), inner) => self.write(inner, depth + 1),
            _ => self.budget.copy(held),
        }
    }

    fn follow(&mut self, target: &str, depth: usize) -> Result<Map<String, Value>, TransformError> {
        self.budget.charge(VALUE + LOOKUP * target.len())?;
        let found = find(self.root, target).ok_or_else(|| TransformError::reference(target))?;
        if self.within.iter().any(|outer| std::ptr::eq(*outer, found)) {
            self.circles = true;
            return Ok(Map::new());
        }
        self.within.push(found);
        let written = self.write(found, depth + 1)?;
        self.within.pop();
        Ok(match written {
            Value::Object(members) => members,
            // `false` allows nothing at all.
            Value::Bool(false) => Map::from_iter([("not".to_owned(), json!({}))]),
            _ => Map::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_written_out_and_circles_end() {
        let mut schema = json!({"properties": {
            "a": {"$ref": "#/$defs/text", "description": "mine"}, "b": {"$ref": "#/$defs/node"}},
            "$defs": {"text": {"type": "string", "description": "theirs"},
                "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}});
        let mut context = Context::for_schema(&schema);
        inline(&mut schema, &mut context).unwrap();
        let expected = json!({"properties": {"a": {"description": "mine", "type": "string"},
            "b": {"type": "object", "properties": {"next": {}}}}});
        assert_eq!(schema.to_string(), expected.to_string());
        assert_eq!(context.finish().0.len(), 1);
    }

    #[test]
    fn explosions_are_refused() {
        let mut defs = Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            defs.insert(format!("l{level}"), json!({"anyOf": [next, next]}));
        }
        defs.insert("l40".into(), json!({}));
        let mut schema = json!({"properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": defs});
        let mut context = Context::for_schema(&schema);
        assert_eq!(
            inline(&mut schema, &mut context),
            Err(TransformError::TooLarge)
        );
    }

    #[test]
    fn values_are_paid_for_with_each_reference() {
        let values: Vec<u32> = (0..2_000).collect();
        let of = |references: usize| {
            let named = (0..references).map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/b"})));
            json!({"properties": named.collect::<Map<_, _>>(), "$defs": {"b": {"enum": values.clone()}}})
        };
        let done = |mut schema: Value| {
            let mut context = Context::for_schema(&schema);
            inline(&mut schema, &mut context)
        };
        assert_eq!(done(of(5)), Ok(()));
        assert_eq!(done(of(30)), Err(TransformError::TooLarge));
    }

    #[test]
    fn a_long_pointer_is_paid_for_with_each_reference() {
        let name = "n".repeat(20_000);
        let mut defs = Map::from_iter([(name.clone(), json!({}))]);
        for level in 0..10 {
            let next = if level == 0 {
                name.clone()
            } else {
                format!("l{}", level - 1)
            };
            let next = json!({"$ref": format!("#/$defs/{next}")});
            defs.insert(format!("l{level}"), json!({"anyOf": [next, next]}));
        }
        let mut schema = json!({"properties": {"a": {"$ref": "#/$defs/l9"}}, "$defs": defs});
        let mut context = Context::for_schema(&schema);
        assert_eq!(
            inline(&mut schema, &mut context),
            Err(TransformError::TooLarge)
        );
    }
}
