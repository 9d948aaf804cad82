//! A JSON value as a tree whose numbers keep the digits that its author wrote: the arguments of a
//! call, and what a template of a body says.

use std::collections::HashMap;
use std::fmt;

use serde::de::Error as _;
use serde_json::value::RawValue;

use crate::json::members::MemberTexts;
use crate::json::write::quoted;
use crate::model::JsonText;

/// Levels of lists and objects at most; arguments that nest deeper are refused before.
const DEPTH_MAX: usize = 128;

/// A JSON value. It is shown as JSON without blanks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrittenValue {
    /// `null`.
    Null,
    /// A string.
    Text(String),
    /// A number as it was written, `true` or `false`.
    Plain(Box<str>),
    /// An array.
    List(Vec<Self>),
    /// An object.
    Object(WrittenMembers),
}

/// The members of an object, in their order. Of two with the same name the last one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenMembers {
    members: Vec<(String, WrittenValue)>,
    places: HashMap<String, usize>,
}

impl WrittenValue {
    /// Takes a text apart. Fails for one that nests deeper than 128 levels, and for a broken
    /// string.
    pub fn parse(text: &JsonText) -> Result<Self, serde_json::Error> {
        Self::read(text.get(), DEPTH_MAX)
    }

    fn read(text: &str, levels: usize) -> Result<Self, serde_json::Error> {
        let below = || {
            levels
                .checked_sub(1)
                .ok_or_else(|| serde_json::Error::custom("it nests too deeply"))
        };
        Ok(match text.as_bytes().first() {
            Some(b'n') => Self::Null,
            Some(b'"') => Self::Text(serde_json::from_str(text)?),
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text)?;
                let levels = below()?;
                Self::List(
                    items
                        .into_iter()
                        .map(|item| Self::read(item.get(), levels))
                        .collect::<Result<_, _>>()?,
                )
            }
            Some(b'{') => {
                let written = MemberTexts::parse(text)?;
                let levels = below()?;
                let mut members = WrittenMembers::default();
                for (name, value) in written.iter() {
                    members.set(name.to_owned(), Self::read(value, levels)?);
                }
                Self::Object(members)
            }
            _ => Self::Plain(text.into()),
        })
    }

    /// The member of an object.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(object) = self else {
            return None;
        };
        object
            .places
            .get(name)
            .and_then(|place| object.members.get(*place))
            .map(|(_, value)| value)
    }

    /// The element of an array.
    pub fn element(&self, index: usize) -> Option<&Self> {
        let Self::List(items) = self else { return None };
        items.get(index)
    }
}

impl WrittenMembers {
    /// Each name with its value, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &WrittenValue)> {
        self.members
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }

    fn set(&mut self, name: String, value: WrittenValue) {
        if let Some(earlier) = self
            .places
            .get(&name)
            .and_then(|place| self.members.get_mut(*place))
        {
            earlier.1 = value;
        } else {
            self.places.insert(name.clone(), self.members.len());
            self.members.push((name, value));
        }
    }
}

impl fmt::Display for WrittenValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = |index: usize| if index == 0 { "" } else { "," };
        match self {
            Self::Null => f.write_str("null"),
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::Plain(written) => f.write_str(written),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", separator(index))?;
                }
                f.write_str("]")
            }
            Self::Object(object) => {
                f.write_str("{")?;
                for (index, (name, value)) in object.members.iter().enumerate() {
                    write!(f, "{}{}:{value}", separator(index), quoted(name))?;
                }
                f.write_str("}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_they_were_written_without_blanks() {
        for (text, shown) in [
            (
                r#"{ "b" : [1e2, 1.10 , -0.0], "a": {"x":null} }"#,
                r#"{"b":[1e2,1.10,-0.0],"a":{"x":null}}"#,
            ),
            ("12345678901234567890123", "12345678901234567890123"),
            (r#"["\u00e9\n", true, {}, []]"#, r#"["é\n",true,{},[]]"#),
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
        ] {
            assert_eq!(
                WrittenValue::parse(&JsonText::parse(text).unwrap())
                    .unwrap()
                    .to_string(),
                shown
            );
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(WrittenValue::parse(&JsonText::parse(&deep).unwrap()).is_err());
    }
}
