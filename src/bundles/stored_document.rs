//! The JSON object in a file of a bundle, kept as its text.
//!
//! A tree of values takes up to forty times the bytes of its text, and all tools are held at once.
//! So a tree exists only while one document is read or changed.

use serde_json::{Map, Value};

use super::BundleError;
use crate::model::JsonText;

/// Bytes of one file at most.
pub(super) const FILE_MAX: u64 = 256 * 1024;

/// The text of one JSON object, as it stands in its file. Equal when the texts are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDocument(JsonText);

impl StoredDocument {
    /// Keeps the text of a file. Fails with the reader's own words when it is no JSON object.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        // Read as a tree once, so that `members` finds what can be held.
        serde_json::from_str::<Map<String, Value>>(text)?;
        JsonText::parse(text).map(Self)
    }

    /// The text of an object: indented, or without spaces where it would be too large to be read
    /// otherwise.
    pub fn from_members(members: &Map<String, Value>) -> Result<Self, BundleError> {
        // JSON values can always be written.
        let mut text = serde_json::to_string_pretty(members).unwrap_or_default();
        if text.len() as u64 >= FILE_MAX {
            text = serde_json::to_string(members).unwrap_or_default();
        }
        if text.len() as u64 >= FILE_MAX {
            let slug = members.get("slug").and_then(Value::as_str).unwrap_or_default();
            return Err(BundleError::TooLarge(slug.to_owned()));
        }
        Ok(Self(JsonText::known(text)))
    }

    /// Its members as a tree, for one reader.
    pub fn members(&self) -> Map<String, Value> {
        // It was read before it was kept.
        serde_json::from_str(self.get()).unwrap_or_default()
    }

    /// The text, without blanks around it.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}
