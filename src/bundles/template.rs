//! Texts with placeholders: `${name}`, `${name.member}`, `${name[0]}`.
//!
//! A placeholder stands for an argument of the call, a secret of the configuration, or the tool's
//! own `slug` or `version`. A value is escaped for its place when it is put in; a text never
//! becomes a template.

use std::collections::{BTreeMap, BTreeSet};

use super::written_value::WrittenValue;
use crate::model::Secret;

/// Bytes of a template at most.
pub(super) const TEMPLATE_MAX: usize = 64 * 1024;
/// Bytes of a placeholder at most.
const PLACEHOLDER_MAX: usize = 200;

/// Bytes that the allocator takes for a block besides what is in it, at most.
const ALLOCATION_BYTES: usize = 24;

/// The bytes of memory of a text of its own.
pub(super) fn text_bytes(text: &str) -> usize {
    size_of::<String>() + ALLOCATION_BYTES + text.len()
}

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTemplate(Box<[TemplatePiece]>);

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePiece {
    Literal(String),
    Place(Placeholder),
}

/// A placeholder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placeholder {
    /// As it is written between the braces.
    text: String,
    /// The argument or secret.
    name: String,
    /// The way below it.
    steps: Box<[ArgumentStep]>,
}

/// One step into an argument.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ArgumentStep {
    Member(String),
    Element(usize),
}

/// A text that is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    /// A placeholder has no end.
    #[error("`${{` without `}}`")]
    Open,
    /// A placeholder is outside the grammar.
    #[error(
        "`${{{0}}}` is not a placeholder: write a name, with `.member` and `[0]` behind it where needed"
    )]
    Placeholder(String),
    /// It is longer than is read.
    #[error("it is longer than {TEMPLATE_MAX} bytes")]
    TooLong,
}

/// Why a template gives no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotFilled<'t> {
    /// A placeholder has no value.
    Missing(&'t Placeholder),
    /// The text would be longer than it may be.
    TooLong,
}

/// What the placeholders of one call stand for.
#[derive(Debug, Clone)]
pub struct CallValues<'a> {
    /// The arguments of the call, an object.
    pub arguments: &'a WrittenValue,
    /// The parameters that the tool declares. They hide secrets and facts of the same name.
    pub declared: &'a BTreeSet<String>,
    /// The secrets that this tool uses, by name.
    pub secrets: &'a BTreeMap<String, Secret>,
    /// The slug and the version of the tool.
    pub tool: (&'a str, &'a str),
}

impl TextTemplate {
    /// Parses a template. A `$` that no brace follows is a text.
    pub fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        if text.len() > TEMPLATE_MAX {
            return Err(InvalidTemplate::TooLong);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once("${") {
            let (place, after) = after.split_once('}').ok_or(InvalidTemplate::Open)?;
            if !literal.is_empty() {
                parts.push(TemplatePiece::Literal(literal.to_owned()));
            }
            parts.push(TemplatePiece::Place(Placeholder::parse(place)?));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(TemplatePiece::Literal(rest.to_owned()));
        }
        Ok(Self(parts.into()))
    }

    /// The bytes of memory that it takes with its place in a list, which may be half empty.
    pub(super) fn held_bytes(&self) -> usize {
        let of_piece = |piece: &TemplatePiece| match piece {
            TemplatePiece::Literal(text) => text_bytes(text),
            TemplatePiece::Place(place) => place.held_bytes(),
        };
        let pieces = self
            .0
            .iter()
            .map(|piece| size_of::<TemplatePiece>() + of_piece(piece));
        2 * size_of::<Self>() + ALLOCATION_BYTES + pieces.sum::<usize>()
    }

    /// Whether it has no placeholder.
    pub fn is_literal(&self) -> bool {
        self.places().next().is_none()
    }

    /// Its placeholders, in order.
    pub fn places(&self) -> impl Iterator<Item = &Placeholder> {
        self.0.iter().filter_map(|part| match part {
            TemplatePiece::Place(place) => Some(place),
            TemplatePiece::Literal(_) => None,
        })
    }

    /// The texts around the placeholders.
    pub(super) fn literals(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            TemplatePiece::Literal(text) => Some(text.as_str()),
            TemplatePiece::Place(_) => None,
        })
    }

    /// The placeholder, if it is the whole template.
    pub(super) fn only_place(&self) -> Option<&Placeholder> {
        match &self.0[..] {
            [TemplatePiece::Place(place)] => Some(place),
            _ => None,
        }
    }

    /// Its text with the values of a call, each through `escape`. A template may name a long value
    /// many times: it is not filled much beyond `most` bytes.
    pub fn fill(
        &self,
        values: &CallValues<'_>,
        escape: impl Fn(&str) -> String,
        most: usize,
    ) -> Result<String, NotFilled<'_>> {
        let mut text = String::new();
        for part in &*self.0 {
            match part {
                TemplatePiece::Literal(literal) => text.push_str(literal),
                TemplatePiece::Place(place) => {
                    text.push_str(&escape(
                        &values.text(place).ok_or(NotFilled::Missing(place))?,
                    ));
                }
            }
            if text.len() > most {
                return Err(NotFilled::TooLong);
            }
        }
        Ok(text)
    }
}

impl Placeholder {
    fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        let wrong = || InvalidTemplate::Placeholder(text.chars().take(PLACEHOLDER_MAX).collect());
        let (name, mut rest) = text.split_at(text.find(['.', '[']).unwrap_or(text.len()));
        if text.len() > PLACEHOLDER_MAX || !is_name(name) {
            return Err(wrong());
        }
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let (index, after) = after.split_once(']').ok_or_else(wrong)?;
                // A sign would be parsed, too.
                let index = index
                    .parse()
                    .ok()
                    .filter(|_| index.bytes().all(|byte| byte.is_ascii_digit()));
                steps.push(ArgumentStep::Element(index.ok_or_else(wrong)?));
                rest = after;
            } else {
                let after = rest.strip_prefix('.').ok_or_else(wrong)?;
                let (member, after) = after.split_at(after.find(['.', '[']).unwrap_or(after.len()));
                steps.push(ArgumentStep::Member(
                    Some(member)
                        .filter(|name| is_name(name))
                        .ok_or_else(wrong)?
                        .to_owned(),
                ));
                rest = after;
            }
        }
        Ok(Self {
            text: text.to_owned(),
            name: name.to_owned(),
            steps: steps.into(),
        })
    }

    /// The bytes of memory that it takes besides its place in a list.
    pub(super) fn held_bytes(&self) -> usize {
        let of_step = |step: &ArgumentStep| match step {
            ArgumentStep::Member(name) => text_bytes(name),
            ArgumentStep::Element(_) => 0,
        };
        let steps = self
            .steps
            .iter()
            .map(|step| size_of::<ArgumentStep>() + of_step(step));
        text_bytes(&self.text) + text_bytes(&self.name) + ALLOCATION_BYTES + steps.sum::<usize>()
    }

    /// As it is written between the braces.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The argument or secret that it begins at.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn find<'v>(&self, value: &'v WrittenValue) -> Option<&'v WrittenValue> {
        self.steps.iter().try_fold(value, |value, step| match step {
            ArgumentStep::Member(name) => value.member(name),
            ArgumentStep::Element(index) => value.element(*index),
        })
    }
}

/// Letters, digits, `_` and `-`.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

impl CallValues<'_> {
    /// The value of a placeholder, `None` where it has none or is `null`.
    pub fn json(&self, place: &Placeholder) -> Option<WrittenValue> {
        let text = |text: &str| Some(WrittenValue::Text(text.to_owned()));
        if !self.declared.contains(&place.name) && place.steps.is_empty() {
            if let Some(secret) = self.secrets.get(&place.name) {
                return text(secret.expose());
            }
            match place.name.as_str() {
                "slug" => return text(self.tool.0),
                "version" => return text(self.tool.1),
                _ => {}
            }
        }
        place
            .find(self.arguments.member(&place.name)?)
            .filter(|value| **value != WrittenValue::Null)
            .cloned()
    }

    /// The same as a text: a string as it is, everything else as JSON.
    pub fn text(&self, place: &Placeholder) -> Option<String> {
        self.json(place).map(|value| match value {
            WrittenValue::Text(text) => text,
            other => other.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::JsonText;
    use serde_json::json;

    #[test]
    fn placeholders_find_their_values() {
        let arguments =
            json!({"a": {"b": [1, {"c": "x"}]}, "n": null, "t": true, "version": "mine"});
        let secrets = BTreeMap::from([("KEY".to_owned(), Secret::new("s3"))]);
        let values = |declared: &'static [&str]| {
            declared
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<BTreeSet<_>>()
        };
        let told = |text: &str, declared: &'static [&str]| {
            let declared = values(declared);
            let arguments = WrittenValue::parse(&JsonText::known(arguments.to_string())).unwrap();
            let values = CallValues {
                arguments: &arguments,
                declared: &declared,
                secrets: &secrets,
                tool: ("weather", "v2"),
            };
            match TextTemplate::parse(text)
                .unwrap()
                .fill(&values, str::to_owned, 20)
            {
                Err(NotFilled::Missing(place)) => Err(place.as_str().to_owned()),
                Err(NotFilled::TooLong) => Err("too long".to_owned()),
                Ok(text) => Ok(text),
            }
        };
        for (text, expected) in [
            ("${a.b[1].c}-${t}", Ok("x-true")),
            ("${a.b}", Ok(r#"[1,{"c":"x"}]"#)),
            ("$a $ {a} ${KEY}", Ok("$a $ {a} s3")),
            ("${slug}/${version}", Ok("weather/v2")),
            ("${a}${a}${a}${a}", Err("too long")),
            ("${n}", Err("n")),
            ("${a.b[7]}", Err("a.b[7]")),
            ("${HOME}", Err("HOME")),
        ] {
            assert_eq!(
                told(text, &[]),
                expected.map(str::to_owned).map_err(str::to_owned),
                "{text}"
            );
        }
        assert_eq!(told("${version}", &["version"]), Ok("mine".to_owned()));
        assert_eq!(told("${KEY}", &["KEY"]), Err("KEY".to_owned()));
    }

    #[test]
    fn what_is_no_placeholder_is_refused() {
        for bad in [
            "${", "${}", "${a b}", "${a.}", "${a[}", "${a[-1]}", "${a[+1]}", "${.a}", "${ä}",
            "${${a}}",
        ] {
            assert!(TextTemplate::parse(bad).is_err(), "{bad}");
        }
    }
}
