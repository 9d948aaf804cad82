//! The template of a body: a JSON document, a form, a text or XML.
//!
//! In JSON a placeholder outside quotes stands for the whole value, whatever its type; one inside
//! is a part of the text. What its values hold never becomes a part of the document's structure.

use serde_json::Value;
use url::form_urlencoded;

use super::refused_value::RefusedValue;
use super::template::{CallValues, NotFilled, Placeholder, TextTemplate, text_bytes};
use super::written_value::WrittenValue;
use crate::json::write::{quoted, write_string};
use crate::model::JsonText;

/// Marks a text that stood as a placeholder outside quotes. No JSON text has it unescaped.
const BARE: char = '\u{0}';

/// A template of a body.
#[derive(Debug, Clone)]
pub(super) struct BodyTemplate {
    kind: BodyKind,
    /// The content type where no header of the tool says it.
    pub(super) content_type: &'static str,
}

/// How a body is written.
#[derive(Debug, Clone)]
enum BodyKind {
    Json(BodyNode),
    Form(Vec<(TextTemplate, TextTemplate)>),
    Text(TextTemplate),
    Xml(TextTemplate),
}

/// A part of a JSON document.
#[derive(Debug, Clone, PartialEq)]
enum BodyNode {
    /// The JSON of a value as the template has it, digit by digit, with all that is in it.
    Literal(Box<str>),
    /// The value itself.
    Whole(Placeholder),
    /// A text with placeholders.
    Text(TextTemplate),
    List(Box<[BodyNode]>),
    Object(Box<[(String, BodyNode)]>),
}

impl BodyTemplate {
    /// Parses a body of a content type, which decides how values are escaped. Without one it is
    /// JSON. The error is a sentence without its subject.
    pub(super) fn parse(text: &str, content_type: Option<&str>) -> Result<Self, String> {
        let media = content_type
            .unwrap_or("application/json")
            .split(';')
            .next()
            .unwrap_or_default()
            .trim();
        let media = media.to_ascii_lowercase();
        let template =
            || TextTemplate::parse(text).map_err(|error| format!("cannot be read: {error}"));
        let (kind, content_type) = if media == "application/json" || media.ends_with("+json") {
            (BodyKind::Json(json(text)?), "application/json")
        } else if media == "application/x-www-form-urlencoded" {
            (
                BodyKind::Form(form(text)?),
                "application/x-www-form-urlencoded",
            )
        } else if media == "application/xml" || media == "text/xml" || media.ends_with("+xml") {
            if let Some(forbidden) = text.chars().find(|c| !is_xml(*c)) {
                return Err(format!("has {}", outside_xml(forbidden)));
            }
            (BodyKind::Xml(template()?), "application/xml")
        } else if media == "text/plain" || template()?.is_literal() {
            (BodyKind::Text(template()?), "text/plain; charset=utf-8")
        } else {
            return Err(format!(
                "has placeholders, and how values are escaped in `{media}` is not known"
            ));
        };
        Ok(Self { kind, content_type })
    }

    /// The same of a JSON value in place of a text.
    pub(super) fn from_json(value: &Value) -> Result<Self, String> {
        Ok(Self {
            kind: BodyKind::Json(json(&value.to_string())?),
            content_type: "application/json",
        })
    }

    /// Its placeholders.
    pub(super) fn places(&self) -> Vec<&Placeholder> {
        match &self.kind {
            BodyKind::Json(node) => node.places(),
            BodyKind::Form(pairs) => pairs
                .iter()
                .flat_map(|(name, value)| name.places().chain(value.places()))
                .collect(),
            BodyKind::Text(template) | BodyKind::Xml(template) => template.places().collect(),
        }
    }

    /// The bytes of memory that it takes, estimated from above.
    pub(super) fn held_bytes(&self) -> usize {
        match &self.kind {
            BodyKind::Json(node) => node.held_bytes(),
            BodyKind::Form(pairs) => pairs
                .iter()
                .map(|(name, value)| name.held_bytes() + value.held_bytes())
                .sum(),
            BodyKind::Text(template) | BodyKind::Xml(template) => template.held_bytes(),
        }
    }

    /// The error for a character that XML cannot hold, with the placeholder whose value has it.
    fn refused_character(&self, values: &CallValues<'_>, forbidden: char) -> RefusedValue {
        let places = self.places();
        let has_it = |place: &&&Placeholder| {
            values
                .text(place)
                .is_some_and(|text| text.contains(forbidden))
        };
        let place = places
            .iter()
            .find(has_it)
            .map_or("", |place| place.as_str());
        RefusedValue::new(
            place,
            format!("has {}; leave it out", outside_xml(forbidden)),
        )
    }

    /// The body of one call, of at most so many bytes. In JSON a member without a value is left
    /// out, and so is a pair of a form; a text needs all its values.
    pub(super) fn fill(
        &self,
        values: &CallValues<'_>,
        most: usize,
    ) -> Result<String, RefusedValue> {
        let too_long = || format!("the body would be larger than {most} bytes");
        let filled = match &self.kind {
            BodyKind::Json(node) => {
                let mut body = String::new();
                let is_there = node.fill(values, &mut body, most);
                is_there.map(|is_there| if is_there { body } else { "null".to_owned() })
            }
            BodyKind::Form(pairs) => fill_form(pairs, values, most),
            BodyKind::Text(template) => template.fill(values, str::to_owned, most),
            BodyKind::Xml(template) => template.fill(values, escape_xml, most),
        };
        let fits = filled.and_then(|body| {
            if body.len() > most {
                Err(NotFilled::TooLong)
            } else {
                Ok(body)
            }
        });
        let body = fits.map_err(|why| RefusedValue::unfilled(why, too_long))?;
        match body.chars().find(|c| !is_xml(*c)) {
            Some(forbidden) if matches!(self.kind, BodyKind::Xml(_)) => {
                Err(self.refused_character(values, forbidden))
            }
            _ => Ok(body),
        }
    }
}

/// Whether XML 1.0 can hold a character, escaped or not (section 2.2 there).
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Names a character that XML cannot hold.
fn outside_xml(c: char) -> String {
    format!(
        "the character U+{:04X}, which XML cannot hold",
        u32::from(c)
    )
}

/// The form of one call. It is not filled much beyond `most` bytes.
fn fill_form<'t>(
    pairs: &'t [(TextTemplate, TextTemplate)],
    values: &CallValues<'_>,
    most: usize,
) -> Result<String, NotFilled<'t>> {
    let mut form = form_urlencoded::Serializer::new(String::new());
    let mut left = most;
    for (name, value) in pairs {
        match (
            name.fill(values, str::to_owned, left),
            value.fill(values, str::to_owned, left),
        ) {
            (Ok(name), Ok(value)) => {
                left = left
                    .checked_sub(name.len() + value.len())
                    .ok_or(NotFilled::TooLong)?;
                form.append_pair(&name, &value);
            }
            (Err(NotFilled::TooLong), _) | (_, Err(NotFilled::TooLong)) => {
                return Err(NotFilled::TooLong);
            }
            (Err(NotFilled::Missing(_)), _) | (_, Err(NotFilled::Missing(_))) => {}
        }
    }
    Ok(form.finish())
}

/// Parses a JSON document in which placeholders may stand outside quotes.
fn json(text: &str) -> Result<BodyNode, String> {
    let unreadable = |error: &dyn std::fmt::Display| {
        format!("is no JSON, and no other `Content-Type` is set: {error}")
    };
    if text.contains("\\u0000") {
        return Err("has a NUL character in it".to_owned());
    }
    let mut marked = String::with_capacity(text.len());
    let mut rest = text;
    let mut quoted = false;
    while let Some(c) = rest.chars().next() {
        if !quoted && rest.starts_with("${") {
            let (place, after) = rest.split_once('}').ok_or("has `${` without `}`")?;
            write_string(&mut marked, &format!("{BARE}{place}}}"));
            rest = after;
            continue;
        }
        let length = if quoted && c == '\\' {
            1 + rest[1..].chars().next().map_or(0, char::len_utf8)
        } else {
            c.len_utf8()
        };
        quoted ^= c == '"';
        marked.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    let value = JsonText::parse(&marked).map_err(|error| unreadable(&error))?;
    BodyNode::parse(&WrittenValue::parse(&value).map_err(|error| unreadable(&error))?)
}

/// Parses the pairs of a form.
fn form(text: &str) -> Result<Vec<(TextTemplate, TextTemplate)>, String> {
    let template =
        |text: &str| TextTemplate::parse(text).map_err(|error| format!("cannot be read: {error}"));
    // Decoding leaves the characters of placeholders as they are.
    form_urlencoded::parse(text.as_bytes())
        .map(|(name, value)| Ok((template(&name)?, template(&value)?)))
        .collect()
}

impl BodyNode {
    fn parse(value: &WrittenValue) -> Result<Self, String> {
        Ok(match value {
            WrittenValue::Text(text) => {
                let template = TextTemplate::parse(text.trim_start_matches(BARE));
                let template = template.map_err(|error| format!("cannot be read: {error}"))?;
                match template.only_place() {
                    Some(place) if text.starts_with(BARE) => Self::Whole(place.clone()),
                    _ if template.is_literal() => Self::literal(value),
                    _ => Self::Text(template),
                }
            }
            WrittenValue::List(items) => {
                let items: Vec<Self> = items.iter().map(Self::parse).collect::<Result<_, _>>()?;
                if items.iter().all(Self::is_literal) {
                    Self::literal(value)
                } else {
                    Self::List(items.into())
                }
            }
            WrittenValue::Object(members) => {
                let member = |(name, value): (&str, &WrittenValue)| {
                    if name.contains("${") || name.starts_with(BARE) {
                        return Err("has a placeholder as the name of a member".to_owned());
                    }
                    Ok((name.to_owned(), Self::parse(value)?))
                };
                let members: Vec<(String, Self)> =
                    members.iter().map(member).collect::<Result<_, _>>()?;
                let is_literal = members.iter().all(|(_, node)| node.is_literal());
                if is_literal {
                    Self::literal(value)
                } else {
                    Self::Object(members.into())
                }
            }
            WrittenValue::Null | WrittenValue::Plain(_) => Self::literal(value),
        })
    }

    fn literal(value: &WrittenValue) -> Self {
        Self::Literal(value.to_string().into())
    }

    fn is_literal(&self) -> bool {
        matches!(self, Self::Literal(_))
    }

    /// The bytes of memory that it takes, estimated from above.
    fn held_bytes(&self) -> usize {
        let below: usize = match self {
            Self::Literal(json) => text_bytes(json),
            Self::Whole(place) => place.held_bytes(),
            Self::Text(template) => template.held_bytes(),
            Self::List(items) => items.iter().map(Self::held_bytes).sum(),
            Self::Object(members) => members
                .iter()
                .map(|(name, node)| text_bytes(name) + node.held_bytes())
                .sum(),
        };
        size_of::<Self>() + below
    }

    fn places(&self) -> Vec<&Placeholder> {
        match self {
            Self::Literal(_) => Vec::new(),
            Self::Whole(place) => vec![place],
            Self::Text(template) => template.places().collect(),
            Self::List(items) => items.iter().flat_map(Self::places).collect(),
            Self::Object(members) => members.iter().flat_map(|(_, node)| node.places()).collect(),
        }
    }

    /// Adds its JSON with the values of a call, and says whether it has all of them. Without one
    /// it adds no text. The body does not become much longer than `most` bytes.
    fn fill(
        &self,
        values: &CallValues<'_>,
        body: &mut String,
        most: usize,
    ) -> Result<bool, NotFilled<'_>> {
        match self {
            Self::Literal(json) => body.push_str(json),
            Self::Whole(place) => match values.json(place) {
                Some(value) => body.push_str(&value.to_string()),
                None => return Ok(false),
            },
            Self::Text(template) => match template.fill(values, str::to_owned, most) {
                Ok(text) => write_string(body, &text),
                Err(NotFilled::Missing(_)) => return Ok(false),
                Err(NotFilled::TooLong) => return Err(NotFilled::TooLong),
            },
            Self::List(items) => {
                fill_all(
                    items.iter().map(|item| (String::new(), item)),
                    values,
                    '[',
                    ']',
                    body,
                    most,
                )?;
            }
            Self::Object(members) => {
                let parts = members
                    .iter()
                    .map(|(name, node)| (format!("{}:", quoted(name)), node));
                fill_all(parts, values, '{', '}', body, most)?;
            }
        }
        if body.len() > most {
            Err(NotFilled::TooLong)
        } else {
            Ok(true)
        }
    }
}

/// Adds what has its values, each behind what stands before it.
fn fill_all<'t>(
    parts: impl Iterator<Item = (String, &'t BodyNode)>,
    values: &CallValues<'_>,
    open: char,
    close: char,
    body: &mut String,
    most: usize,
) -> Result<(), NotFilled<'t>> {
    let mut separator = open;
    for (before, node) in parts {
        let length = body.len();
        body.push(separator);
        body.push_str(&before);
        if node.fill(values, body, most)? {
            separator = ',';
        } else {
            body.truncate(length);
        }
    }
    if separator == open {
        body.push(open);
    }
    body.push(close);
    Ok(())
}

/// A value as a text in XML.
fn escape_xml(value: &str) -> String {
    value
        .chars()
        .fold(String::with_capacity(value.len()), |mut text, c| {
            match c {
                '&' => text.push_str("&amp;"),
                '<' => text.push_str("&lt;"),
                '>' => text.push_str("&gt;"),
                '"' => text.push_str("&quot;"),
                '\'' => text.push_str("&apos;"),
                other => text.push(other),
            }
            text
        })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::bundles::WrittenValue;
    use crate::model::JsonText;
    use serde_json::json;

    fn fill(body: &str, content_type: Option<&str>, arguments: &Value) -> Result<String, String> {
        let values = CallValues {
            arguments: &WrittenValue::parse(&JsonText::known(arguments.to_string())).unwrap(),
            declared: &BTreeSet::new(),
            secrets: &BTreeMap::new(),
            tool: ("t", "v1"),
        };
        BodyTemplate::parse(body, content_type)?
            .fill(&values, 1_000)
            .map_err(|refused| refused.to_string())
    }

    #[test]
    fn values_never_become_structure() {
        let hostile =
            json!({"q": "\",\"admin\":true,\"x\":\"", "n": 5, "list": [1], "amp": "a&b=c<d>"});
        for (body, content_type, expected) in [
            (
                r#"{"q":"${q}","n":${n}}"#,
                None,
                r#"{"q":"\",\"admin\":true,\"x\":\"","n":5}"#,
            ),
            (
                r#"{"q":"<${n}>","list":${list},"absent":${absent}}"#,
                None,
                r#"{"q":"<5>","list":[1]}"#,
            ),
            (r#"["\"${n}", "\\"]"#, None, r#"["\"5","\\"]"#),
            (
                "a=${amp}&b=${absent}&c=1",
                Some("application/x-www-form-urlencoded"),
                "a=a%26b%3Dc%3Cd%3E&c=1",
            ),
            (
                "<a>${amp}</a>",
                Some("text/xml; charset=utf-8"),
                "<a>a&amp;b=c&lt;d&gt;</a>",
            ),
            ("say ${amp}", Some("text/plain"), "say a&b=c<d>"),
            (
                r#"[${absent},{"a":${absent}},[${absent}],${n}]"#,
                None,
                "[{},[],5]",
            ),
            ("${absent}", None, "null"),
        ] {
            assert_eq!(
                fill(body, content_type, &hostile).as_deref(),
                Ok(expected),
                "{body}"
            );
        }
        for (body, content_type) in [
            (format!("[{}]", ["${q}"; 100].join(",")), None),
            (format!("[\"{}\"]", "${q}".repeat(100)), None),
            ("${q}".repeat(100), Some("text/plain")),
            (
                ["a=${q}"; 100].join("&"),
                Some("application/x-www-form-urlencoded"),
            ),
        ] {
            let refused = fill(&body, content_type, &hostile).unwrap_err();
            assert_eq!(
                refused, "the body would be larger than 1000 bytes",
                "{body}"
            );
        }
        for (place, character) in [("nul", "U+0000"), ("end", "U+FFFF")] {
            let hostile = json!({"fine": "a\tb\u{1F600}", "nul": "a\u{0}b", "end": "\u{FFFF}"});
            let body = format!("<a>${{fine}}${{{place}}}</a>");
            let refused = fill(&body, Some("application/xml"), &hostile).unwrap_err();
            let expected = format!(
                "`{place}` has the character {character}, which XML cannot hold; leave it out"
            );
            assert_eq!(refused, expected);
            assert!(fill(&body, Some("text/plain"), &hostile).is_ok());
        }
        assert!(
            fill("<a>\u{1}</a>", Some("text/xml"), &hostile)
                .unwrap_err()
                .contains("has the character U+0001")
        );
        for (body, content_type) in [
            (r#"{"${q}":1}"#, None),
            ("{${q}:1}", None),
            ("q=${q}", None),
            ("${q}", Some("application/x-unknown")),
            ("{", None),
        ] {
            assert!(fill(body, content_type, &hostile).is_err(), "{body}");
        }
    }
}
