//! The members of one JSON object as they were written, in their order. No value is read, so none
//! has to fit a type of Rust.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object. A name may stand there twice.
#[derive(Debug, Default)]
pub(crate) struct MemberTexts<'a>(Vec<MemberText<'a>>);

#[derive(Debug)]
struct MemberText<'a> {
    name: String,
    /// The name as it was written, with its quotes.
    written: &'a str,
    value: &'a str,
}

impl<'a> MemberTexts<'a> {
    /// Takes an object apart. Fails for anything else.
    pub(crate) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Each name with the text of its value, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|member| (member.name.as_str(), member.value))
    }

    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|member| member.name.as_str())
    }

    /// The text of the value of the member with this name. Of several the last one counts, as where
    /// an object is read as a tree.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rfind(|member| member.name == name).map(|member| member.value)
    }

    /// The text of the object with those members only that pass.
    pub(crate) fn filtered(&self, passes: impl Fn(&str) -> bool) -> String {
        let members = self.0.iter().filter(|member| passes(&member.name));
        let members: Vec<String> = members.map(|member| format!("{}:{}", member.written, member.value)).collect();
        format!("{{{}}}", members.join(","))
    }
}

struct MemberTextsVisitor;

impl<'de> Visitor<'de> for MemberTextsVisitor {
    type Value = MemberTexts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((written, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            let (written, value) = (written.get(), value.get());
            let name = serde_json::from_str(written).map_err(A::Error::custom)?;
            members.push(MemberText { name, written, value });
        }
        Ok(MemberTexts(members))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MemberTexts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MemberTextsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_text_and_their_order() {
        let text = r#"{ "b\u0061" : 1e999, "_x":{"y": [ 1 ]}, "b":2, "b":3 }"#;
        let members = MemberTexts::parse(text).unwrap();
        assert_eq!(members.names().collect::<Vec<_>>(), ["ba", "_x", "b", "b"]);
        assert_eq!(members.get("ba"), Some("1e999"));
        assert_eq!(members.get("b"), Some("3"));
        assert_eq!(members.filtered(|name| name != "_x"), r#"{"b\u0061":1e999,"b":2,"b":3}"#);
        assert_eq!(MemberTexts::parse("{}").unwrap().filtered(|_| true), "{}");
        for text in ["[]", "7", "{", "null"] {
            assert!(MemberTexts::parse(text).is_err(), "{text}");
        }
    }
}
