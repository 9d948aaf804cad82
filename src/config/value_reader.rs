//! Reads one written value into the field of a key. There is a method for each kind of value.
//!
//! Layers keep only values that have the shape of their key (see `layer`), so no other value comes
//! here; one would be treated as not written. Where a value comes from is not known here.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use toml::Value;

use super::path::KeyPath;
use super::units::{ValueError, bytes, within};
use crate::model::Secret;

/// A rule that a value breaks.
#[derive(Debug)]
pub(super) struct RuleViolation {
    /// The value.
    pub(super) path: KeyPath,
    /// The other value, if the rule is about two.
    pub(super) other: Option<KeyPath>,
    /// What is wrong with it.
    pub(super) wrong: ValueError,
}

/// What the meaning of a value depends on.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    /// Makes an absolute path of a text that stands at a key; `None` if that needs a home folder
    /// and there is none.
    pub(super) to_path: &'a dyn Fn(&KeyPath, &str) -> Option<PathBuf>,
    /// A variable of the environment, if it is set.
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
}

/// What is written at one key, and where complaints about it go.
pub(super) struct ValueReader<'a> {
    /// Where the value stands.
    pub(super) path: KeyPath,
    /// The value. Without one every method leaves its field as it is.
    pub(super) value: Option<&'a Value>,
    /// For values that are paths, or that stand elsewhere.
    pub(super) surroundings: Surroundings<'a>,
    /// The problems found so far, with this value and with others.
    pub(super) violations: &'a mut Vec<RuleViolation>,
}

impl ValueReader<'_> {
    /// Notes that the value breaks a rule.
    pub(super) fn reject(&mut self, wrong: ValueError) {
        self.violations.push(RuleViolation {
            path: self.path.clone(),
            other: None,
            wrong,
        });
    }

    /// What is written below, at `path`.
    fn child<'b>(&'b mut self, path: KeyPath, value: Option<&'b Value>) -> ValueReader<'b> {
        ValueReader {
            path,
            value,
            surroundings: self.surroundings,
            violations: &mut *self.violations,
        }
    }

    /// What is written at a key of this table.
    pub(super) fn key(&mut self, key: &str) -> ValueReader<'_> {
        let value = self.value.and_then(|table| table.get(key));
        self.child(self.path.key(key), value)
    }

    /// Notes that a key of this table is missing, if it is.
    pub(super) fn require(&mut self, key: &str, missing: ValueError) {
        let mut at = self.key(key);
        if at.value.is_none() {
            at.reject(missing);
        }
    }

    /// Hands each element of this list to `read`, with its index.
    pub(super) fn each(&mut self, mut read: impl FnMut(usize, ValueReader<'_>)) {
        for (i, value) in self
            .value
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            read(i, self.child(self.path.index(i), Some(value)));
        }
    }

    /// Hands each value of this table to `read`, with its key.
    pub(super) fn each_key(&mut self, mut read: impl FnMut(&str, ValueReader<'_>)) {
        for (key, value) in self.value.and_then(Value::as_table).into_iter().flatten() {
            read(key, self.child(self.path.key(key), Some(value)));
        }
    }

    /// Sets the field if the value keeps its rule.
    fn set<V, F: From<V>>(&mut self, field: &mut F, read: Result<V, ValueError>) {
        match read {
            Ok(value) => *field = value.into(),
            Err(wrong) => self.reject(wrong),
        }
    }

    /// A text.
    pub(super) fn text<V, F: From<V>>(
        &mut self,
        field: &mut F,
        rule: impl FnOnce(&str) -> Result<V, ValueError>,
    ) {
        if let Some(text) = self.value.and_then(Value::as_str) {
            self.set(field, rule(text));
        }
    }

    /// A text that is never shown.
    pub(super) fn secret<F: From<Secret>>(
        &mut self,
        field: &mut F,
        rule: impl FnOnce(Secret) -> Result<Secret, ValueError>,
    ) {
        self.text(field, |text| rule(Secret::new(text)));
    }

    /// A list of texts. Each element that breaks the rule is a complaint of its own.
    pub(super) fn texts<V, F: FromIterator<V>>(
        &mut self,
        field: &mut F,
        rule: impl Fn(&str) -> Result<V, ValueError>,
    ) {
        let Some(texts) = self.value.map(listed) else {
            return;
        };
        let read = texts
            .iter()
            .enumerate()
            .filter_map(|(i, text)| match rule(text) {
                Ok(value) => Some(value),
                Err(wrong) => {
                    self.violations.push(RuleViolation {
                        path: self.path.index(i),
                        other: None,
                        wrong,
                    });
                    None
                }
            });
        *field = read.collect();
    }

    /// The same, where one text may stand for the list.
    pub(super) fn words<V, F: FromIterator<V>>(
        &mut self,
        field: &mut F,
        rule: impl Fn(&str) -> Result<V, ValueError>,
    ) {
        self.texts(field, rule);
    }

    /// A number within `range`.
    pub(super) fn number<V: TryFrom<u64>>(&mut self, field: &mut V, range: RangeInclusive<u64>) {
        if let Some(number) = self.value.and_then(Value::as_integer) {
            self.set(field, within(number.unsigned_abs(), &range, ""));
        }
    }

    /// A size within `range`.
    pub(super) fn size<V: TryFrom<u64>>(&mut self, field: &mut V, range: RangeInclusive<u64>) {
        let read = match self.value {
            Some(Value::Integer(number)) => Ok(number.unsigned_abs()),
            Some(Value::String(text)) => bytes(text),
            _ => return,
        };
        self.set(
            field,
            read.and_then(|bytes| within(bytes, &range, " bytes")),
        );
    }

    /// `true` or `false`.
    pub(super) fn switch(&mut self, field: &mut bool) {
        *field = self.value.and_then(Value::as_bool).unwrap_or(*field);
    }

    /// The same for a field that may be left unset.
    pub(super) fn optional_switch(&mut self, field: &mut Option<bool>) {
        *field = self.value.and_then(Value::as_bool).or(*field);
    }

    /// A whole number, also below 0, that fits the field.
    pub(super) fn integer(&mut self, field: &mut Option<i32>) {
        if let Some(number) = self.value.and_then(Value::as_integer) {
            let hint = || format!("write {} to {}", i32::MIN, i32::MAX);
            let read = i32::try_from(number);
            self.set(
                field,
                read.map_err(|_| ValueError::new(format!("{number} is out of range"), hint())),
            );
        }
    }

    /// The path of a file or folder, which becomes absolute.
    pub(super) fn path<F: From<PathBuf>>(&mut self, field: &mut F) {
        let to_path = self.surroundings.to_path;
        let place = self.path.clone();
        self.text(field, |text| {
            if text.is_empty() {
                return Err(ValueError::new(
                    "the path is empty",
                    "write a path, or leave the key out for its default",
                ));
            }
            let message = || format!("{text:?} needs a home folder, and none is known");
            to_path(&place, text).ok_or_else(|| ValueError::new(message(), "write the whole path"))
        });
    }

    /// The same, where an empty text means none.
    pub(super) fn path_or_none(&mut self, field: &mut Option<PathBuf>) {
        if self.value.and_then(Value::as_str) == Some("") {
            *field = None;
        } else {
            self.path(field);
        }
    }
}

/// The texts of a list. One text is a list with commas between its elements, or a list in JSON.
fn listed(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| {
            text.split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect()
        }),
        _ => Vec::new(),
    }
}
