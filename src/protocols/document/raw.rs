//! One JSON value as its text, before it is interpreted.

use serde_json::value::RawValue;

/// The text of one valid JSON value, without blanks around it.
#[derive(Debug, Clone, Copy)]
pub(in crate::protocols) struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// The value that a parser found.
    pub(in crate::protocols) fn from_raw_value(found: &'a RawValue) -> Self {
        Self(found.get())
    }

    /// The text.
    pub(in crate::protocols) fn get(self) -> &'a str {
        self.0
    }
}
