//! The JSON object in a file of a bundle, kept as its text.
//!
//! A tree of values takes up to a hundred times the bytes of its text, and all tools are held at
//! once. So a tree exists only while one document is read, only of the members that are used, and
//! only within a budget; schemas and members that are not known stay text throughout.

use std::collections::HashMap;

use serde::de::Error as _;
use serde_json::{Map, Value};

use super::BundleError;
use super::document_members::DocumentError;
use crate::json::layout::compact;
use crate::json::members::MemberTexts;
use crate::json::scan::{JsonToken, Tokens};
use crate::json::write::quoted;
use crate::model::JsonText;

/// Bytes of one file at most.
pub(super) const FILE_MAX: u64 = 256 * 1024;
/// Levels of lists and objects at most.
const DEPTH_MAX: usize = 128;
/// The bytes of the trees of one document, in multiples of its own bytes.
const TREE_TIMES: usize = 32;
/// The bytes added to that, however small the document is.
const TREE_BESIDES: usize = 1024 * 1024;
/// The bytes of a value in a tree, in a list or an object that has grown for it, at most.
const VALUE_BYTES: usize = 160;
/// The bytes of an object in a tree besides those of its values: room for four members, at most.
const OBJECT_BYTES: usize = 512;

/// The text of one JSON object, as it stands in its file. Equal when the texts are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDocument(JsonText);

impl StoredDocument {
    /// Keeps the text of a file. Fails with the reader's own words when it is no JSON object.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let text = JsonText::parse(text)?;
        MemberTexts::parse(text.get())?;
        if text.nests_deeper_than(DEPTH_MAX) {
            return Err(serde_json::Error::custom(format!(
                "it nests deeper than {DEPTH_MAX} levels"
            )));
        }
        Ok(Self(text))
    }

    /// The text of an object: indented, or without spaces where it would be too large to be read
    /// otherwise.
    pub fn from_members(members: &Map<String, Value>) -> Result<Self, BundleError> {
        // JSON values can always be written.
        let text = serde_json::to_string_pretty(members).unwrap_or_default();
        Self(JsonText::known(text)).fitting()
    }

    /// The document with other members, each with its name and the text of its value. One without a
    /// text is left out. The others stay as they were written.
    pub(super) fn with(&self, others: &[(&str, Option<String>)]) -> Result<Self, BundleError> {
        let mut members: Vec<(&str, &str)> = Vec::new();
        let mut known: HashMap<&str, usize> = HashMap::new();
        let written = self.member_texts();
        let own = written.iter().filter(|(name, _)| {
            others
                .iter()
                .all(|(other, text)| other != name || text.is_some())
        });
        let changed = others
            .iter()
            .filter_map(|(name, text)| Some((*name, text.as_deref()?)));
        for (name, text) in own.chain(changed) {
            let at = *known.entry(name).or_insert(members.len());
            match members.get_mut(at) {
                Some(member) => member.1 = text,
                None => members.push((name, text)),
            }
        }
        let lines = members
            .iter()
            .map(|(name, text)| format!("  {}: {text}", quoted(name)));
        let text = format!("{{\n{}\n}}", lines.collect::<Vec<_>>().join(",\n"));
        Self(JsonText::known(text)).fitting()
    }

    /// The document if a file of it can be read again, without blanks where it cannot otherwise.
    fn fitting(self) -> Result<Self, BundleError> {
        let fits = |document: &Self| (document.get().len() as u64) < FILE_MAX;
        if fits(&self) {
            return Ok(self);
        }
        let compact = Self(JsonText::known(compact(self.get())));
        if fits(&compact) {
            return Ok(compact);
        }
        let slug = self
            .member_texts()
            .get("slug")
            .and_then(|slug| serde_json::from_str(slug).ok());
        Err(BundleError::TooLarge(slug.unwrap_or_default()))
    }

    /// The texts of its members.
    pub(super) fn member_texts(&self) -> MemberTexts<'_> {
        // It was read before it was kept.
        MemberTexts::parse(self.get()).unwrap_or_default()
    }

    /// The members with these names as trees, for one reader. Of two with the same name the last
    /// one counts. Refused where they need more memory than a document of this size may take.
    pub(super) fn members(&self, names: &[&str]) -> Result<Map<String, Value>, DocumentError> {
        let whole = self.get().len() * TREE_TIMES + TREE_BESIDES;
        let mut members = Map::new();
        let mut left = whole;
        for (name, text) in self
            .member_texts()
            .iter()
            .filter(|(name, _)| names.contains(name))
        {
            let wrong = |message: String| DocumentError {
                pointer: format!("/{name}"),
                message,
            };
            left = left.checked_sub(tree_bytes(text)).ok_or_else(|| {
                wrong(format!("takes more memory than is left of the {whole} bytes for a document of this size"))
            })?;
            let value = serde_json::from_str(text)
                .map_err(|error| wrong(format!("cannot be read: {error}")))?;
            members.insert(name.to_owned(), value);
        }
        Ok(members)
    }

    /// The text, without blanks around it.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

/// The bytes that a tree of this text takes, estimated from above.
fn tree_bytes(text: &str) -> usize {
    let of_token = |token: JsonToken<'_>| match token.first {
        b'{' => VALUE_BYTES + OBJECT_BYTES,
        b'[' | b',' => VALUE_BYTES,
        _ => 0,
    };
    text.len() + VALUE_BYTES + Tokens::new(text).map(of_token).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(text: &str) -> StoredDocument {
        StoredDocument::parse(text).unwrap()
    }

    #[test]
    fn other_members_stay_as_they_were_written() {
        let written =
            document(r#"{"a": 1.50, "x":[1e999,{ "\"}":"\\" }], "b":true, "c": 0, "b": null}"#);
        let changed = written.with(&[
            ("b", Some("false".to_owned())),
            ("c", None),
            ("d", Some("7".to_owned())),
        ]);
        let expected = "{\n  \"a\": 1.50,\n  \"x\": [1e999,{ \"\\\"}\":\"\\\\\" }],\n  \"b\": false,\n  \"d\": 7\n}";
        assert_eq!(changed.unwrap().get(), expected);
        assert_eq!(
            compact(expected),
            r#"{"a":1.50,"x":[1e999,{"\"}":"\\"}],"b":false,"d":7}"#
        );
        let empty = StoredDocument::from_members(&Map::new()).unwrap();
        assert_eq!(
            compact(empty.with(&[("a", Some("1".to_owned()))]).unwrap().get()),
            r#"{"a":1}"#
        );
    }

    #[test]
    fn a_document_that_is_too_large_loses_its_blanks_or_is_refused() {
        let spaced = format!(
            "{{\"slug\": \"s\",{}\"t\": \"{}\"}}",
            " ".repeat(200_000),
            "x".repeat(100_000)
        );
        let changed = StoredDocument(JsonText::known(spaced))
            .with(&[("n", Some("1".to_owned()))])
            .unwrap();
        assert!(changed.get().len() < 101_000);
        let long = json!({"slug": "s", "t": "x".repeat(300_000)});
        let refused = StoredDocument::from_members(long.as_object().unwrap()).unwrap_err();
        assert!(matches!(refused, BundleError::TooLarge(slug) if slug == "s"));
    }

    #[test]
    fn only_the_members_that_are_used_are_counted() {
        let dense = format!("[{}0]", "[],".repeat(80_000));
        let written = document(&format!("{{\"impl\": {{}}, \"x\": {dense}}}"));
        assert_eq!(written.members(&["impl"]).unwrap().len(), 1);
        let refused = document(&format!("{{\"impl\": {dense}}}"))
            .members(&["impl"])
            .unwrap_err()
            .to_string();
        assert!(
            refused.starts_with("`/impl` takes more memory"),
            "{refused}"
        );
        // A usual body, as large as it may be.
        let usual = format!(
            "{{{}\"z\": 0}}",
            "\"some-name\": \"some value of a text\", ".repeat(6_000)
        );
        assert!(
            document(&format!("{{\"impl\": {usual}}}"))
                .members(&["impl"])
                .is_ok()
        );
        let deep = format!("{{\"x\": {}{}}}", "[".repeat(200), "]".repeat(200));
        assert!(
            StoredDocument::parse(&deep)
                .unwrap_err()
                .to_string()
                .contains("nests deeper")
        );
    }
}
