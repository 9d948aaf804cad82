//! A small tree of the values of a JSON text, for rules that judge them. It borrows its strings and
//! costs a third of `serde_json`'s tree, since most of a manifest is prose.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// The types of JSON Schema (core, section 4.2.1; `integer` by validation, section 6.1.1).
pub(crate) const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "array", "object", "null",
];

/// One JSON value. Numbers are `f64`, which is enough to check ranges and types.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    /// Members in the order of the text. If a name occurs twice, the last one counts.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Parses a text. `None` if it is not JSON, is nested too deeply or contains a number that does
    /// not fit `f64`.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// A member of an object. Searches linearly.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.members()
            .iter()
            .rfind(|(own, _)| own == name)
            .map(|(_, value)| value)
    }

    /// The same, but `None` for `null`.
    pub(crate) fn get_non_null(&self, name: &str) -> Option<&Self> {
        self.get(name).filter(|value| **value != Self::Null)
    }

    /// A member that is a string and not empty.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.get(name)?.text().filter(|text| !text.is_empty())
    }

    /// The members of an object; empty for any other value.
    pub(crate) fn members(&self) -> &[(Cow<'a, str>, Self)] {
        match self {
            Self::Object(members) => members,
            _ => &[],
        }
    }

    /// The elements of a list.
    pub(crate) fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The kind of the value, as a phrase for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// Whether the value is of a JSON Schema type. A number without a fraction is an integer (JSON
    /// Schema validation, section 6.1.1).
    pub(crate) fn is_of(&self, kind: &str) -> bool {
        match self {
            Self::Null => kind == "null",
            Self::Bool(_) => kind == "boolean",
            Self::Number(number) => kind == "number" || kind == "integer" && number.fract() == 0.0,
            Self::Text(_) => kind == "string",
            Self::List(_) => kind == "array",
            Self::Object(_) => kind == "object",
        }
    }
}

/// A member name, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct MemberKey<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "see the type")]
    fn visit_i64<E>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "see the type")]
    fn visit_u64<E>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(MemberKey(name)) = map.next_key()? {
            members.push((name, map.next_value()?));
        }
        Ok(Json::Object(members))
    }
}
