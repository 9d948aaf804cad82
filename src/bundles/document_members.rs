//! Reads members of a JSON object, each with the place of what is wrong with it.

use serde_json::{Map, Value};

/// What is wrong with a document, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pointer}` {message}")]
pub struct DocumentError {
    /// A JSON pointer.
    pub pointer: String,
    /// A sentence without its subject.
    pub message: String,
}

/// An object and where it stands, as a JSON pointer.
#[derive(Clone, Copy)]
pub(super) struct DocumentMembers<'a> {
    pub(super) object: &'a Map<String, Value>,
    pub(super) pointer: &'a str,
}

impl<'a> DocumentMembers<'a> {
    /// The error for a member.
    pub(super) fn wrong(&self, name: &str, message: impl Into<String>) -> DocumentError {
        DocumentError {
            pointer: format!("{}/{name}", self.pointer),
            message: message.into(),
        }
    }

    /// Refuses members with other names than these.
    pub(super) fn refuse_others(&self, known: &[&str]) -> Result<(), DocumentError> {
        self.refuse_others_but(&[], known)
    }

    /// The same, where some members may be there although they are not used.
    pub(super) fn refuse_others_but(
        &self,
        unused: &[&str],
        known: &[&str],
    ) -> Result<(), DocumentError> {
        let mut names = self.object.keys().map(String::as_str);
        match names.find(|name| !known.contains(name) && !unused.contains(name)) {
            None => Ok(()),
            Some(name) => Err(self.wrong(
                name,
                format!("is not known; known are {}", known.join(", ")),
            )),
        }
    }

    /// A member that is not `null`.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, DocumentError> {
        self.get(name)
            .map(|value| {
                value
                    .as_str()
                    .ok_or_else(|| self.wrong(name, "is not a text"))
            })
            .transpose()
    }

    /// A text that must be there and have something in it.
    pub(super) fn required_text(&self, name: &str) -> Result<&'a str, DocumentError> {
        let text = self.text(name)?.filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| self.wrong(name, "is missing or empty"))
    }

    /// `true` or `false`.
    pub(super) fn switch(&self, name: &str, default: bool) -> Result<bool, DocumentError> {
        self.get(name).map_or(Ok(default), |value| {
            value
                .as_bool()
                .ok_or_else(|| self.wrong(name, "is neither `true` nor `false`"))
        })
    }

    /// A whole number within a range.
    pub(super) fn number(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, DocumentError> {
        let outside = || {
            self.wrong(
                name,
                format!(
                    "is not a whole number from {} to {}",
                    range.start(),
                    range.end()
                ),
            )
        };
        let read = |value: &Value| {
            value
                .as_u64()
                .filter(|number| range.contains(number))
                .ok_or_else(outside)
        };
        self.get(name).map(read).transpose()
    }

    /// An object.
    pub(super) fn object(
        &self,
        name: &str,
    ) -> Result<Option<&'a Map<String, Value>>, DocumentError> {
        self.get(name)
            .map(|value| {
                value
                    .as_object()
                    .ok_or_else(|| self.wrong(name, "is not an object"))
            })
            .transpose()
    }

    /// A list.
    pub(super) fn list(&self, name: &str) -> Result<&'a [Value], DocumentError> {
        self.get(name).map_or(Ok(&[]), |value| {
            value
                .as_array()
                .map(Vec::as_slice)
                .ok_or_else(|| self.wrong(name, "is not a list"))
        })
    }
}
