//! A small tree of JSON for texts that must be rewritten.
//!
//! `serde_json::Value` would change what it passes on (numbers lose digits, escapes are rewritten);
//! this tree keeps every scalar as the text that was published. The sender chooses how many values
//! a text holds, so a tree takes no more memory than its budget has left. This module knows no
//! protocol.

use std::borrow::Cow;
use std::collections::HashSet;

use super::budget::{DecodeBudget, MEMBER, shared_text_bytes};
use super::flaw::Flaw;
use super::raw::Raw;
use super::text::{MAX_DEPTH, ScanResult, kind, plain_number, scan, string, string_end, token_end};
use crate::model::JsonText;

/// Up to this many members, comparing each with each costs less than hashing their names.
pub(in crate::protocols) const FEW: usize = 12;
/// An object with more members is charged for the hash tables that renaming its members needs.
const MANY: usize = 256;
/// The bytes charged for each member of such an object.
const HASHED: usize = 128;

/// A JSON value. Scalars keep the text they were written in. Borrowed parts point into the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::protocols) enum Node<'a> {
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
    List(Vec<Node<'a>>),
    Scalar(Cow<'a, str>),
}

impl<'a> Node<'a> {
    /// Parses a valid JSON text. A text that nests deeper than [`MAX_DEPTH`], or whose tree takes
    /// more than the budget has left, is a flaw. Of members with the same name the last one counts,
    /// as in most readers.
    pub(in crate::protocols) fn parse(text: &'a str, budget: &DecodeBudget) -> Result<Self, Flaw> {
        NodeParser { text, at: 0, depth: 0, room: budget.left(), budget }.node()
    }

    /// A scalar, from its JSON text.
    pub(in crate::protocols) fn scalar(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Scalar(text.into())
    }

    /// The scalar's JSON text.
    pub(in crate::protocols) fn as_scalar(&self) -> Option<&str> {
        match self {
            Self::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// The text between the quotes, escapes untouched, if it is a string.
    pub(in crate::protocols) fn as_string(&self) -> Option<&str> {
        self.as_scalar()?.strip_prefix('"')?.strip_suffix('"')
    }

    /// The kind of the value, as a phrase for messages.
    pub(in crate::protocols) fn kind(&self) -> &'static str {
        match self {
            Self::Object(_) => "an object",
            Self::List(_) => "a list",
            Self::Scalar(text) => kind(text),
        }
    }

    /// The JSON text, compact.
    pub(in crate::protocols) fn text(&self) -> String {
        let mut out = String::with_capacity(self.bytes());
        self.write(&mut out);
        out
    }

    /// The bytes of the JSON text, if no name needs escapes.
    fn bytes(&self) -> usize {
        match self {
            Self::Scalar(text) => text.len(),
            Self::List(items) => 2 + items.iter().map(|item| item.bytes() + 1).sum::<usize>(),
            Self::Object(members) => {
                2 + members.iter().map(|(name, value)| name.len() + value.bytes() + 4).sum::<usize>()
            }
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Scalar(text) => out.push_str(text),
            Self::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    comma(out, index);
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    comma(out, index);
                    write_string(out, name);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

fn comma(out: &mut String, index: usize) {
    if index > 0 {
        out.push(',');
    }
}

/// Writes a JSON string.
pub(in crate::protocols) fn write_string(out: &mut String, text: &str) {
    // The scan does not stop at the first match, so that the compiler can check many bytes at once.
    let escapes = text.bytes().map(|byte| u8::from(byte < b' ' || byte == b'"' || byte == b'\\'));
    if escapes.fold(0, |any, escapes| any | escapes) == 0 {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::Value::from(text).to_string());
    }
}

struct NodeParser<'a, 'b> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Bytes that the tree may still take.
    room: usize,
    budget: &'b DecodeBudget,
}

impl<'a> NodeParser<'a, '_> {
    /// The next byte that is not a blank; 0 at the end.
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or(0)
    }

    fn node(&mut self) -> Result<Node<'a>, Flaw> {
        match self.peek() {
            b'{' => {
                let mut members = Vec::new();
                self.each(|reader| {
                    let name = string(reader.string()?).ok_or_else(bad_string)?;
                    reader.peek();
                    reader.at += 1; // the colon
                    let value = reader.node()?;
                    reader.put(&mut members, (name, value))
                })?;
                if members.len() > MANY {
                    self.take(members.len() * HASHED)?;
                }
                Ok(Node::Object(last_wins(members)))
            }
            b'[' => {
                let mut items = Vec::new();
                self.each(|reader| {
                    let item = reader.node()?;
                    reader.put(&mut items, item)
                })?;
                Ok(Node::List(items))
            }
            b'"' => {
                let text = self.string()?;
                // A lone surrogate passes as JSON here and fails in the next reader.
                if text.contains('\\') && text.contains("\\u") && string(text).is_none() {
                    return Err(bad_string());
                }
                Ok(Node::scalar(text))
            }
            _ => self.token(),
        }
    }

    /// Appends an element, if the budget of the tree allows it.
    fn put<T>(&mut self, all: &mut Vec<T>, one: T) -> Result<(), Flaw> {
        if all.len() == all.capacity() {
            let more = all.len().max(2);
            self.take(more * size_of::<T>())?;
            // Growing may move the elements, and then both copies exist for a moment.
            if self.room < all.len() * size_of::<T>() {
                return Err(self.budget.exceeded());
            }
            all.reserve_exact(more);
        }
        all.push(one);
        Ok(())
    }

    fn take(&mut self, bytes: usize) -> Result<(), Flaw> {
        self.room = self.room.checked_sub(bytes).ok_or_else(|| self.budget.exceeded())?;
        Ok(())
    }

    /// Reads the list or object at the current position, item by item.
    fn each(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), Flaw>) -> Result<(), Flaw> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Flaw::too_deep());
        }
        self.at += 1;
        while !matches!(self.peek(), b']' | b'}' | 0) {
            item(self)?;
            if self.peek() == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    fn string(&mut self) -> Result<&'a str, Flaw> {
        let start = self.at;
        self.at = string_end(self.text.as_bytes(), start);
        self.text.get(start..self.at).ok_or_else(bad_string)
    }

    fn token(&mut self) -> Result<Node<'a>, Flaw> {
        let start = self.at;
        self.at = token_end(self.text.as_bytes(), start);
        let token = &self.text[start..self.at];
        let number = token.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        if token.is_empty() || number && !plain_number(token) && !token.parse::<f64>().is_ok_and(f64::is_finite) {
            return Err(Flaw::new("", "has a number that is too large for every reader")
                .hint("write numbers within a double's range"));
        }
        Ok(Node::scalar(token))
    }
}

fn bad_string() -> Flaw {
    Flaw::new("", "has a text with a broken escape").hint("write valid Unicode escapes, surrogates in pairs")
}

/// Keeps the last one of members with the same name.
pub(in crate::protocols) fn last_wins<V>(mut members: Vec<(Cow<'_, str>, V)>) -> Vec<(Cow<'_, str>, V)> {
    let repeated = if members.len() <= FEW {
        members.iter().enumerate().any(|(index, (name, _))| members[..index].iter().any(|(earlier, _)| earlier == name))
    } else {
        members.iter().map(|(name, _)| name.as_ref()).collect::<HashSet<_>>().len() < members.len()
    };
    if repeated {
        let mut seen = HashSet::new();
        members.reverse();
        members.retain(|(name, _)| seen.insert(name.to_string()));
        members.reverse();
    }
    members
}

/// The shared text of a value of an unknown member, if other readers can read it.
pub(in crate::protocols) fn share_unknown(raw: Raw<'_>, budget: &mut DecodeBudget) -> Result<JsonText, Flaw> {
    let (found, text) = scan(raw.get(), |_| false, |_, _| {});
    let text = match found {
        ScanResult::Plain => text,
        ScanResult::Odd => {
            drop(text);
            Node::parse(raw.get(), budget)?.text().into()
        }
        ScanResult::TooDeep => return Err(Flaw::too_deep()),
    };
    budget.take(MEMBER + shared_text_bytes(&text))?;
    Ok(JsonText::known(text))
}
