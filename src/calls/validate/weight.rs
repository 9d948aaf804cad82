//! The weight of JSON values and the size of patterns: each is computed once and remembered.
//!
//! Independent of JSON Schema keywords.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::pattern;

/// Bytes of text that weigh as much as one value.
const TEXT_UNIT: usize = 8;

/// Weights of values and sizes of patterns, remembered by their addresses. The lifetime keeps what
/// was weighed where it is.
#[derive(Debug, Default)]
pub(super) struct Weights<'a> {
    known: HashMap<usize, u64>,
    weighed: std::marker::PhantomData<&'a Value>,
}

impl<'a> Weights<'a> {
    /// The weight of a value: one for each value within it, and one for each eight bytes of text.
    pub(super) fn of(&mut self, value: &'a Value) -> u64 {
        let address = std::ptr::from_ref(value).addr();
        match value {
            Value::String(own) => 1 + text(own),
            // Those within them are remembered too, so that weighing every level of a nested value
            // stays linear.
            Value::Array(_) | Value::Object(_) if self.known.contains_key(&address) => {
                self.known[&address]
            }
            Value::Array(items) => {
                let weight = items
                    .iter()
                    .map(|item| self.of(item))
                    .fold(1, u64::saturating_add);
                self.remember(address, weight)
            }
            Value::Object(members) => {
                let each = members
                    .iter()
                    .map(|(name, member)| text(name).saturating_add(self.of(member)));
                let weight = each.fold(1, u64::saturating_add);
                self.remember(address, weight)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        }
    }

    /// The weight of the names of an object's members: one for each, and one for each eight bytes.
    pub(super) fn names(&mut self, members: &'a Map<String, Value>) -> u64 {
        // No value has the address of the map within it.
        let address = std::ptr::from_ref(members).addr();
        let weigh = || {
            members
                .keys()
                .map(|name| 1 + text(name))
                .fold(0, u64::saturating_add)
        };
        *self.known.entry(address).or_insert_with(weigh)
    }

    /// The number of states of a pattern.
    pub(super) fn states(&mut self, pattern: &'a str) -> u64 {
        *self
            .known
            .entry(pattern.as_ptr().addr())
            .or_insert_with(|| pattern::states(pattern))
    }

    fn remember(&mut self, address: usize, weight: u64) -> u64 {
        self.known.insert(address, weight);
        weight
    }
}

/// The weight of a text's bytes.
pub(super) fn text(text: &str) -> u64 {
    (text.len() / TEXT_UNIT) as u64
}
