//! Which parts of a schema a value is meant for, when `null` may stand for what was left out.
//!
//! Constants, types, required members and closed objects are compared, at every depth and through
//! references; everything else is left to the check of the arguments. The work is bounded: past the
//! bound no alternative counts as meant.

use std::cell::{Cell, RefCell};

use serde_json::Value;

use crate::calls::validate::references::References;

/// References and alternatives that are followed from one schema.
const MAX_FOLLOWED: usize = 32;
/// Comparisons of a value or a name with a part of a schema, and members, items and alternatives
/// that are looked at for them, for one call.
const MAX_STEPS: usize = 1_000_000;

/// The schemas of one tool.
pub(super) struct Schemas<'s> {
    references: RefCell<References<'s>>,
    steps: Cell<usize>,
}

impl<'s> Schemas<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        Self {
            references: RefCell::new(References::new(root)),
            steps: Cell::new(0),
        }
    }

    /// The schemas that hold for a value: these, those that they refer to, all of `allOf`, and of
    /// alternatives the first that the value may be meant for.
    pub(super) fn applying(&self, value: &Value, schemas: &[&'s Value]) -> Vec<&'s Value> {
        let mut found: Vec<&'s Value> = Vec::new();
        let mut open = schemas.to_vec();
        while let Some(schema) = open.pop() {
            let listed = ["allOf", "anyOf", "oneOf"].map(|name| length(schema, name));
            if found.len() >= MAX_FOLLOWED || !self.step(1 + listed.iter().sum::<usize>()) {
                break;
            }
            if found.iter().any(|known| std::ptr::eq(*known, schema)) {
                continue;
            }
            found.push(schema);
            open.extend(self.referred(schema));
            open.extend(list(schema, "allOf"));
            for alternatives in ["anyOf", "oneOf"] {
                open.extend(
                    list(schema, alternatives).find(|branch| self.is_meant_for(value, branch, 0)),
                );
            }
        }
        found
    }

    /// What a reference within the schema points to.
    fn referred(&self, schema: &'s Value) -> Option<&'s Value> {
        let target = schema.get("$ref")?.as_str()?;
        self.references.borrow_mut().target(target).ok()
    }

    /// Whether a schema allows `null`.
    pub(super) fn allows_null(&self, schema: &'s Value, depth: usize) -> bool {
        if depth > MAX_FOLLOWED || !self.step(1) {
            return true;
        }
        let Some(members) = schema.as_object() else {
            return schema != &Value::Bool(false);
        };
        let by_type = members.get("type").is_none_or(|kind| match kind {
            Value::String(name) => name == "null",
            Value::Array(names) => names.iter().any(|name| name == "null"),
            _ => true,
        }) || members.get("nullable") == Some(&Value::Bool(true));
        let any = |name: &str| {
            !members.contains_key(name)
                || list(schema, name).any(|branch| self.allows_null(branch, depth + 1))
        };
        by_type
            && members.get("const").is_none_or(Value::is_null)
            && (!members.contains_key("enum") || list(schema, "enum").any(Value::is_null))
            && list(schema, "allOf").all(|part| self.allows_null(part, depth + 1))
            && any("anyOf")
            && any("oneOf")
            && self
                .referred(schema)
                .is_none_or(|target| self.allows_null(target, depth + 1))
    }

    /// Whether a value may be meant for a schema, if what is unset in it is left out.
    fn is_meant_for(&self, value: &Value, schema: &'s Value, depth: usize) -> bool {
        if depth > MAX_FOLLOWED || !self.step(1 + length(schema, "enum")) {
            return false;
        }
        if value.is_null() {
            return self.allows_null(schema, depth);
        }
        let below = |schema: &'s Value| self.is_meant_for(value, schema, depth + 1);
        let any = |name: &str| schema.get(name).is_none() || list(schema, name).any(below);
        schema != &Value::Bool(false)
            && has_type(value, schema)
            && schema.get("const").is_none_or(|constant| constant == value)
            && (schema.get("enum").is_none()
                || list(schema, "enum").any(|constant| constant == value))
            && self.has_members(value, schema, depth)
            && self.has_items(value, schema, depth)
            && list(schema, "allOf").all(below)
            && any("anyOf")
            && any("oneOf")
            && self.referred(schema).is_none_or(below)
    }

    fn has_members(&self, value: &Value, schema: &'s Value, depth: usize) -> bool {
        let Some(members) = value.as_object() else {
            return true;
        };
        if !self.step(members.len()) {
            return false;
        }
        let properties = schema.get("properties");
        let further = schema
            .get("additionalProperties")
            .filter(|_| schema.get("patternProperties").is_none());
        let is_required = |name: &str| self.require(name, &[schema]);
        required(schema).all(|name| members.contains_key(name))
            && members.iter().all(|(name, value)| {
                let property = properties.and_then(|properties| properties.get(name));
                match property.or(further) {
                    Some(property) if value.is_null() => {
                        property != &Value::Bool(false) && !is_required(name)
                            || self.allows_null(property, depth)
                    }
                    Some(property) => self.is_meant_for(value, property, depth + 1),
                    None => !value.is_null() || !is_required(name),
                }
            })
    }

    fn has_items(&self, value: &Value, schema: &'s Value, depth: usize) -> bool {
        let Some(values) = value.as_array() else {
            return true;
        };
        let is_within_bound = self.step(values.len());
        is_within_bound
            && values.iter().enumerate().all(|(index, value)| {
                items(&[schema], index)
                    .into_iter()
                    .all(|item| self.is_meant_for(value, item, depth + 1))
            })
    }

    /// Whether one of these schemas requires a member. So does each past the bound of the work.
    pub(super) fn require(&self, name: &str, schemas: &[&'s Value]) -> bool {
        schemas.iter().any(|schema| {
            !self.step(length(schema, "required"))
                || required(schema).any(|required| required == name)
        })
    }

    /// Counts comparisons; whether they are within the bound.
    fn step(&self, comparisons: usize) -> bool {
        self.steps.set(self.steps.get().saturating_add(comparisons));
        self.steps.get() <= MAX_STEPS
    }
}

/// The names that a schema requires.
fn required(schema: &Value) -> impl Iterator<Item = &str> {
    list(schema, "required").filter_map(Value::as_str)
}

/// What these schemas say of the property with this name.
pub(super) fn properties<'s>(schemas: &[&'s Value], name: &str) -> Vec<&'s Value> {
    schemas
        .iter()
        .filter_map(|schema| schema.get("properties")?.get(name))
        .collect()
}

/// What these schemas say of properties that they do not list.
pub(super) fn further_properties<'s>(schemas: &[&'s Value]) -> Vec<&'s Value> {
    schemas
        .iter()
        .filter_map(|schema| schema.get("additionalProperties"))
        .collect()
}

/// What these schemas say of the item at this index, in the words of every draft.
pub(super) fn items<'s>(schemas: &[&'s Value], index: usize) -> Vec<&'s Value> {
    let item = |schema: &&'s Value| {
        let items = schema.get("items");
        let first = schema.get("prefixItems").and_then(Value::as_array);
        match (first, items) {
            (Some(first), _) if index < first.len() => first.get(index),
            (None, Some(Value::Array(each))) => {
                each.get(index).or_else(|| schema.get("additionalItems"))
            }
            _ => items,
        }
    };
    schemas.iter().filter_map(item).collect()
}

/// How many items a list of the schema has.
fn length(schema: &Value, name: &str) -> usize {
    schema
        .get(name)
        .and_then(Value::as_array)
        .map_or(0, Vec::len)
}

fn list<'s>(schema: &'s Value, name: &str) -> impl Iterator<Item = &'s Value> {
    schema
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Whether the type of a value is one of its schema's. Whether a number is whole is not compared.
fn has_type(value: &Value, schema: &Value) -> bool {
    let own = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is = |name: &Value| name == own || own == "number" && name == "integer";
    schema.get("type").is_none_or(|types| {
        types
            .as_array()
            .map_or_else(|| is(types), |all| all.iter().any(is))
    })
}
