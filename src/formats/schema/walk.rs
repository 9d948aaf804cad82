//! The walk over every schema within a schema: the only place that knows which keywords hold
//! schemas.
//!
//! It never enters values (`default`, `examples`, `enum`, `const`) and never takes the name of a
//! parameter for a keyword.

use serde_json::{Map, Value};

use super::TransformError;
use crate::model::finding::push_step;

/// The value that a schema within a schema applies to.
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
pub struct SchemaLocation<'a> {
    /// JSON pointer from the root (RFC 6901).
    pub pointer: &'a str,
    /// The value that this schema applies to.
    pub role: Role,
    /// Properties and items that it is within.
    pub depth: usize,
}

/// What is done at each place; an error ends the walk.
type Visit<'v> = dyn FnMut(&mut Value, &SchemaLocation<'_>) -> Result<(), TransformError> + 'v;

/// How a keyword holds schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    One,
    List,
    Map,
}

/// Which keywords hold schemas (JSON Schema 2020-12 sections 10 and 11 of the core, and what draft
/// 7 called otherwise). `dependencies` of draft 7 is not among them: its members may also be lists
/// of names.
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
pub fn each_schema(
    root: &mut Value,
    mut visit: impl FnMut(&mut Value, &SchemaLocation<'_>) -> Result<(), TransformError>,
) -> Result<(), TransformError> {
    descend(root, &mut String::new(), Role::Root, 0, &mut visit)
}

/// The same without those that are no objects: `true`, `false`, and what is not a schema.
pub fn each_object(
    root: &mut Value,
    mut visit: impl FnMut(&mut Map<String, Value>, &SchemaLocation<'_>) -> Result<(), TransformError>,
) -> Result<(), TransformError> {
    each_schema(root, |schema, place| {
        schema
            .as_object_mut()
            .map_or(Ok(()), |members| visit(members, place))
    })
}

fn descend(
    schema: &mut Value,
    pointer: &mut String,
    role: Role,
    depth: usize,
    visit: &mut Visit<'_>,
) -> Result<(), TransformError> {
    visit(
        schema,
        &SchemaLocation {
            pointer,
            role,
            depth,
        },
    )?;
    let Some(members) = schema.as_object_mut() else {
        return Ok(());
    };
    for (keyword, held) in members {
        let Some((shape, role)) = holds(keyword) else {
            continue;
        };
        let depth = depth + usize::from(matches!(keyword.as_str(), "properties" | "items"));
        let outer = pointer.len();
        push_step(pointer, keyword);
        let mut inside = |step: &str, inner: &mut Value| {
            let outer = pointer.len();
            push_step(pointer, step);
            let done = descend(inner, pointer, role, depth, visit);
            pointer.truncate(outer);
            done
        };
        match (shape, held) {
            // Draft 7 wrote a list of schemas for the first items.
            (Holds::List | Holds::One, Value::Array(list)) => {
                list.iter_mut()
                    .enumerate()
                    .try_for_each(|(index, inner)| inside(&index.to_string(), inner))?;
            }
            (Holds::Map, Value::Object(map)) => map
                .iter_mut()
                .try_for_each(|(name, inner)| inside(name, inner))?,
            (Holds::One, inner) => descend(inner, pointer, role, depth, visit)?,
            (Holds::List | Holds::Map, _) => {}
        }
        pointer.truncate(outer);
    }
    Ok(())
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
        let visit = |_: &mut Value, place: &SchemaLocation<'_>| {
            seen.push((place.pointer.to_owned(), place.role, place.depth));
            Ok(())
        };
        each_schema(&mut schema, visit).unwrap();
        let seen: Vec<_> = seen
            .iter()
            .map(|(pointer, role, depth)| (pointer.as_str(), *role, *depth))
            .collect();
        assert_eq!(
            seen,
            [
                ("", Role::Root, 0),
                ("/properties/items", Role::Value, 1),
                ("/properties/items/items", Role::Value, 2),
                ("/properties/a~1b~0c", Role::Value, 1),
                ("/properties/a~1b~0c/anyOf/0", Role::Branch, 1),
                ("/properties/a~1b~0c/anyOf/1", Role::Branch, 1),
            ]
        );
    }
}
