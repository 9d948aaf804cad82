//! A schema without references: each is replaced by what it points at, within a budget. Where one leads back to itself, anything is
//! taken, and a note says so.

use serde_json::{Map, Value, json};

use super::references::find;
use super::walk::{Holds, holds};
use super::{Log, Refused};

/// Schemas written out for one schema.
const BUDGET: usize = 20_000;
/// Schemas one within the other; what nests deeper is refused by common readers.
const MAX_DEPTH: usize = 60;

/// Replaces every reference, and takes definitions out.
pub fn inline(schema: &mut Value, log: &mut Log) -> Result<(), Refused> {
    if !mentions(schema) {
        return Ok(());
    }
    let root = schema.clone();
    let mut writer = Inline { root: &root, budget: BUDGET, circles: false };
    *schema = writer.write(&root, &mut Vec::new(), 0)?;
    log.silent();
    if writer.circles {
        log.lossy(
            "",
            "where the schema refers back to itself, anything is taken",
            "describe a bounded number of levels",
        );
    }
    Ok(())
}

/// Whether any schema has what is taken out here.
fn mentions(schema: &mut Value) -> bool {
    let mut found = false;
    super::walk::each_schema(schema, &mut |schema, _| {
        found |= GONE.iter().chain(&["$ref", "$dynamicRef"]).any(|keyword| schema.get(*keyword).is_some());
    });
    found
}

const GONE: [&str; 5] = ["$defs", "definitions", "$anchor", "$dynamicAnchor", "$id"];

struct Inline<'a> {
    root: &'a Value,
    budget: usize,
    circles: bool,
}

impl<'a> Inline<'a> {
    /// A schema written out. `within` has the references that are being followed.
    fn write(&mut self, schema: &'a Value, within: &mut Vec<&'a str>, depth: usize) -> Result<Value, Refused> {
        if self.budget == 0 || depth > MAX_DEPTH {
            return Err(Refused::TooLarge);
        }
        self.budget -= 1;
        let Some(members) = schema.as_object() else { return Ok(schema.clone()) };
        let mut written = Map::new();
        for (keyword, held) in members {
            if GONE.contains(&keyword.as_str()) || keyword == "$ref" || keyword == "$dynamicRef" {
                continue;
            }
            written.insert(keyword.clone(), self.held(keyword, held, within, depth)?);
        }
        let target = ["$ref", "$dynamicRef"].iter().find_map(|keyword| members.get(*keyword)).and_then(Value::as_str);
        if let Some(target) = target {
            for (keyword, value) in self.follow(target, within, depth)? {
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
        within: &mut Vec<&'a str>,
        depth: usize,
    ) -> Result<Value, Refused> {
        Ok(match (holds(keyword), held) {
            (Some((Holds::List | Holds::One, _)), Value::Array(list)) => {
                Value::Array(list.iter().map(|inner| self.write(inner, within, depth + 1)).collect::<Result<_, _>>()?)
            }
            (Some((Holds::Map, _)), Value::Object(map)) => {
                let mut written = Map::new();
                for (name, inner) in map {
                    written.insert(name.clone(), self.write(inner, within, depth + 1)?);
                }
                Value::Object(written)
            }
            (Some((Holds::One, _)), inner) => self.write(inner, within, depth + 1)?,
            _ => held.clone(),
        })
    }

    fn follow(
        &mut self,
        target: &'a str,
        within: &mut Vec<&'a str>,
        depth: usize,
    ) -> Result<Map<String, Value>, Refused> {
        if within.contains(&target) || target == "#" {
            self.circles = true;
            return Ok(Map::new());
        }
        let found = find(self.root, target).ok_or_else(|| Refused::Reference(target.to_owned()))?;
        within.push(target);
        let written = self.write(found, within, depth + 1)?;
        within.pop();
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
        let mut log = Log::default();
        inline(&mut schema, &mut log).unwrap();
        let expected = json!({"properties": {"a": {"description": "mine", "type": "string"},
            "b": {"type": "object", "properties": {"next": {}}}}});
        assert_eq!(schema.to_string(), expected.to_string());
        assert_eq!(log.notes.len(), 1);
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
        assert_eq!(inline(&mut schema, &mut Log::default()), Err(Refused::TooLarge));
    }
}
