//! What references within one schema lead to, found without resolving addresses as a validator does.
//!
//! A reference may have several possible targets here: a fragment is looked up in the root and in every embedded resource
//! (`$id`), and a dynamic anchor may stand in several places. All of them are given, so that whatever a validator chooses is
//! among them. Never looks outside the schema.

use serde_json::Value;

/// The root of a schema and its named parts.
#[derive(Debug)]
pub(super) struct References<'a> {
    root: &'a Value,
    /// Whether the root has an identifier, so that an address may mean it.
    has_address: bool,
    /// Schemas within the root with an identifier of their own: `$id`, or `id` in draft 4.
    resources: Vec<&'a Value>,
    /// Schemas that an anchor names.
    anchors: Vec<(&'a str, &'a Value)>,
}

impl<'a> References<'a> {
    /// Goes over the schema once.
    pub(super) fn new(root: &'a Value) -> Self {
        let mut references = Self { root, has_address: false, resources: Vec::new(), anchors: Vec::new() };
        references.index(root);
        references
    }

    /// The whole schema.
    pub(super) fn root(&self) -> &'a Value {
        self.root
    }

    /// Also enters values such as `default`, which hold no schemas: a name too many does no harm.
    fn index(&mut self, value: &'a Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.index(item)),
            Value::Object(members) => {
                for (keyword, held) in members {
                    match (keyword.as_str(), held) {
                        ("$id" | "id", Value::String(id)) => match id.strip_prefix('#') {
                            // How anchors were written before 2019-09.
                            Some(anchor) => self.anchors.push((anchor, value)),
                            // The root is a target by itself.
                            None if std::ptr::eq(value, self.root) => self.has_address = true,
                            None => self.resources.push(value),
                        },
                        ("$anchor" | "$dynamicAnchor", Value::String(anchor)) => self.anchors.push((anchor, value)),
                        _ => self.index(held),
                    }
                }
            }
            _ => {}
        }
    }

    /// Every schema that a reference may mean (RFC 3986 section 4.4, RFC 6901 section 6). Empty if it leads outside.
    pub(super) fn targets(&self, reference: &str) -> Vec<&'a Value> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = percent_decoded(fragment);
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return self.anchors.iter().filter(|(name, _)| *name == fragment).map(|(_, schema)| *schema).collect();
        }
        if !address.is_empty() && !self.has_address && self.resources.is_empty() {
            return Vec::new();
        }
        // Addresses are not resolved here, so that each resource may be the one that is meant.
        self.resources.iter().copied().chain([self.root]).filter_map(|schema| schema.pointer(&fragment)).collect()
    }

    /// How many embedded schemas have an identifier of their own.
    pub(super) fn resources(&self) -> usize {
        self.resources.len()
    }
}

fn percent_decoded(fragment: &str) -> std::borrow::Cow<'_, str> {
    percent_encoding::percent_decode_str(fragment).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_anchors_and_embedded_resources_are_found() {
        let schema = json!({"$defs": {
            "a b": {"title": "pointer"}, "t~u": {"title": "escaped"},
            "named": {"$anchor": "here", "title": "anchor"},
            "old": {"$id": "#there", "title": "old anchor"},
            "tree": {"$id": "https://example.com/tree.json", "title": "tree", "$defs": {"leaf": {"title": "leaf"}}},
        }});
        let references = References::new(&schema);
        for (reference, titles) in [
            ("#/$defs/a%20b", vec!["pointer"]),
            ("#/$defs/t~0u", vec!["escaped"]),
            ("#here", vec!["anchor"]),
            ("#there", vec!["old anchor"]),
            ("https://example.com/tree.json", vec!["tree"]),
            ("tree.json#/$defs/leaf", vec!["leaf"]),
            ("#/$defs/leaf", vec!["leaf"]),
            ("other.json", vec!["tree"]),
            ("#missing", vec![]),
        ] {
            let found: Vec<&str> =
                references.targets(reference).iter().filter_map(|target| target["title"].as_str()).collect();
            assert_eq!(found, titles, "{reference}");
        }
        assert_eq!(references.targets("#").len(), 2, "the root and the embedded resource");
        assert!(References::new(&json!({})).targets("other.json").is_empty());
        let named = json!({"$id": "https://example.com/root.json", "$defs": {"a": {}}});
        let references = References::new(&named);
        assert_eq!((references.resources(), references.targets("#/$defs/a").len()), (0, 1), "the root counts once");
        assert_eq!(references.targets("https://example.com/root.json#/$defs/a").len(), 1);
    }
}
