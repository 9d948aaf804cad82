//! The walk over every schema within a schema: the only place that knows which keywords hold schemas.
//!
//! It never enters values (`default`, `examples`, `enum`, `const`) and never takes the name of a parameter for a keyword.

use serde_json::Value;

/// What a schema within a schema speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The arguments as a whole.
    Root,
    /// A value of its own: a property, an item.
    Value,
    /// The same value as the schema around it: a branch of `anyOf`, `then`, ...
    Branch,
    /// Whatever refers to it.
    Definition,
}

/// Where the walk is.
#[derive(Debug)]
pub struct Place<'a> {
    /// JSON pointer from the root (RFC 6901).
    pub pointer: &'a str,
    /// What this schema speaks of.
    pub role: Role,
}

/// How a keyword holds schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    One,
    List,
    Map,
}

/// Which keywords hold schemas (JSON Schema 2020-12 sections 10 and 11 of the core, and what draft 7 called otherwise). `dependencies`
/// of draft 7 is not among them: its members may also be lists of names.
pub(super) fn holds(keyword: &str) -> Option<(Holds, Role)> {
    Some(match keyword {
        "properties" | "patternProperties" => (Holds::Map, Role::Value),
        "$defs" | "definitions" => (Holds::Map, Role::Definition),
        "dependentSchemas" => (Holds::Map, Role::Branch),
        "items"
        | "additionalItems"
        | "additionalProperties"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contains"
        | "propertyNames"
        | "contentSchema" => (Holds::One, Role::Value),
        "if" | "then" | "else" | "not" => (Holds::One, Role::Branch),
        "prefixItems" => (Holds::List, Role::Value),
        "allOf" | "anyOf" | "oneOf" => (Holds::List, Role::Branch),
        _ => return None,
    })
}

/// Visits the root and every schema below it, each before those within it.
pub fn each_schema(root: &mut Value, visit: &mut dyn FnMut(&mut Value, &Place<'_>)) {
    descend(root, &mut String::new(), Role::Root, visit);
}

fn descend(schema: &mut Value, pointer: &mut String, role: Role, visit: &mut dyn FnMut(&mut Value, &Place<'_>)) {
    visit(schema, &Place { pointer, role });
    let Some(members) = schema.as_object_mut() else { return };
    for (keyword, held) in members {
        let Some((shape, role)) = holds(keyword) else { continue };
        let outer = enter(pointer, keyword);
        match (shape, held) {
            // Draft 7 wrote a list of schemas for the first items.
            (Holds::List | Holds::One, Value::Array(list)) => {
                for (index, inner) in list.iter_mut().enumerate() {
                    let outer = enter(pointer, &index.to_string());
                    descend(inner, pointer, role, visit);
                    pointer.truncate(outer);
                }
            }
            (Holds::Map, Value::Object(map)) => {
                for (name, inner) in map {
                    let outer = enter(pointer, name);
                    descend(inner, pointer, role, visit);
                    pointer.truncate(outer);
                }
            }
            (Holds::One, inner) => descend(inner, pointer, role, visit),
            (Holds::List | Holds::Map, _) => {}
        }
        pointer.truncate(outer);
    }
}

/// Adds a step to the pointer; returns its length before.
fn enter(pointer: &mut String, step: &str) -> usize {
    let before = pointer.len();
    pointer.push('/');
    pointer.push_str(&escaped(step));
    before
}

/// A key as a step of a JSON pointer (RFC 6901 section 3).
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_schema_is_visited_once_and_no_value_is() {
        let mut schema = json!({
            "type": "object",
            "properties": {
                "items": {"type": "array", "items": {"enum": [{"type": "not a schema"}]}, "default": [{"items": 1}]},
                "a/b~c": {"anyOf": [{"const": {"properties": {"x": {}}}}, true]},
            },
            "examples": [{"properties": {"y": {}}}],
        });
        let mut seen = Vec::new();
        each_schema(&mut schema, &mut |_, place| seen.push((place.pointer.to_owned(), place.role)));
        let seen: Vec<_> = seen.iter().map(|(pointer, role)| (pointer.as_str(), *role)).collect();
        assert_eq!(
            seen,
            [
                ("", Role::Root),
                ("/properties/items", Role::Value),
                ("/properties/items/items", Role::Value),
                ("/properties/a~1b~0c", Role::Value),
                ("/properties/a~1b~0c/anyOf/0", Role::Branch),
                ("/properties/a~1b~0c/anyOf/1", Role::Branch),
            ]
        );
    }
}
