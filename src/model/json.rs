//! JSON that is kept as its text.

use std::fmt;

use super::text::{Place, SharedText, TextBlock};

/// The text of one valid JSON value, shared: clones point to the same bytes. Equal when the texts are.
///
/// Kept instead of a tree, which costs seven times the memory, and instead of `serde_json`'s own raw value, which is copied twice on its
/// way behind an `Arc` and checked again wherever a text was written here.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonText(SharedText);

impl JsonText {
    /// Keeps a text that is one JSON value, blanks around it left out. Fails with the reader's own words when it is none.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let raw: &serde_json::value::RawValue = serde_json::from_str(text)?;
        Ok(Self(raw.get().into()))
    }

    /// Keeps a text that was checked, or written from what was checked.
    pub(crate) fn known(text: &str) -> Self {
        Self(text.into())
    }

    /// The same for a text that was put into a buffer.
    pub(crate) fn known_at(place: &Place, block: &TextBlock) -> Self {
        Self(block.text(place))
    }

    /// The same for a text that is shared already.
    pub(crate) fn known_text(text: SharedText) -> Self {
        Self(text)
    }

    /// The text as it is shared.
    pub(super) fn shared(&self) -> &SharedText {
        &self.0
    }

    /// The text.
    pub fn get(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_one_value_and_refuses_the_rest() {
        assert_eq!(JsonText::read(" {\"a\": 1} ").unwrap().get(), "{\"a\": 1}");
        for text in ["", "{", "{} {}", "nul", "{a:1}"] {
            assert!(JsonText::read(text).is_err(), "{text}");
        }
    }
}
