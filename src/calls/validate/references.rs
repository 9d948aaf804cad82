//! Resolves references within one schema, to a pointer or to an anchor. Each is resolved once and
//! remembered.
//!
//! Addresses are not resolved: a schema that has embedded ones is not used (see
//! [`super::compiling`]). Never looks outside the schema.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

/// The root of a schema and its named parts.
#[derive(Debug)]
pub(in crate::calls) struct References<'a> {
    root: &'a Value,
    /// Schemas by the anchor that names them; `None` for a name that is given twice. Filled with
    /// the first reference to an anchor.
    anchors: Option<HashMap<&'a str, Option<&'a Value>>>,
    /// Targets by the address of the text of the reference.
    found: HashMap<usize, &'a Value>,
}

/// A reference that leads to no schema within the document, or not to one alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it refers to `{0}`, which is not within it")]
pub(in crate::calls) struct Outside(String);

impl Outside {
    /// The error for this reference, which is shortened.
    pub(super) fn new(reference: &str) -> Self {
        Self(reference.chars().take(100).collect())
    }
}

impl<'a> References<'a> {
    /// The references of this schema.
    pub(in crate::calls) fn new(root: &'a Value) -> Self {
        Self {
            root,
            anchors: None,
            found: HashMap::new(),
        }
    }

    /// The schema that a reference means (RFC 3986 section 4.4, RFC 6901 section 6).
    pub(in crate::calls) fn target(&mut self, reference: &'a str) -> Result<&'a Value, Outside> {
        let address = reference.as_ptr().addr();
        if let Some(target) = self.found.get(&address) {
            return Ok(target);
        }
        let target = self
            .find(reference)
            .ok_or_else(|| Outside::new(reference))?;
        self.found.insert(address, target);
        Ok(target)
    }

    fn find(&mut self, reference: &str) -> Option<&'a Value> {
        let fragment = percent_decoded(reference.strip_prefix('#')?);
        let root = self.root;
        if fragment.is_empty() || fragment.starts_with('/') {
            return root.pointer(&fragment);
        }
        let anchors = self.anchors.get_or_insert_with(|| {
            let mut anchors = HashMap::new();
            index(root, &mut anchors);
            anchors
        });
        anchors.get(&*fragment).copied().flatten()
    }
}

/// Also enters values such as `default`, which hold no schemas: a name too many leads at most to a
/// schema that is not used.
fn index<'a>(value: &'a Value, anchors: &mut HashMap<&'a str, Option<&'a Value>>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| index(item, anchors)),
        Value::Object(members) => {
            if let Some(Value::String(anchor)) = members.get("$anchor") {
                anchors
                    .entry(anchor)
                    .and_modify(|twice| *twice = None)
                    .or_insert(Some(value));
            }
            members.values().for_each(|member| index(member, anchors));
        }
        _ => {}
    }
}

fn percent_decoded(fragment: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(fragment).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_and_anchors_are_found() {
        let schema = json!({"title": "root", "$defs": {
            "a b": {"title": "pointer"}, "t~u": {"title": "escaped"},
            "named": {"$anchor": "here", "title": "anchor"},
            "once": {"$anchor": "twice"}, "again": {"$anchor": "twice"},
        }});
        let mut references = References::new(&schema);
        for (reference, title) in [
            ("#", Some("root")),
            ("#/$defs/a%20b", Some("pointer")),
            ("#/$defs/t~0u", Some("escaped")),
            ("#here", Some("anchor")),
            ("#twice", None),
            ("#missing", None),
            ("#/$defs/missing", None),
            ("", None),
            ("other.json", None),
        ] {
            let found = references
                .target(reference)
                .ok()
                .and_then(|target| target["title"].as_str());
            assert_eq!(found, title, "{reference}");
        }
    }
}
