//! A small tree of JSON for texts that must be rewritten.
//!
//! `serde_json::Value` would change what it passes on (numbers lose digits, escapes are rewritten);
//! this tree keeps every scalar as the text that was published. The sender chooses how many values
//! a text holds, so a tree takes no more memory than its caller allows.

use std::borrow::Cow;

use super::LEVELS_MAX;
use super::names::last_wins;
use super::scan::{JsonToken, Tokens, kind, string};
use super::soundness::is_plain_number;
use super::write::{write_comma, write_string};

/// An object with more members is charged for the hash tables that renaming its members needs.
const MANY_MEMBERS: usize = 256;
/// The bytes charged for each member of such an object.
const HASHED_MEMBER_BYTES: usize = 128;

/// Why a text has no tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeFlaw {
    /// It nests deeper than [`LEVELS_MAX`].
    TooDeep,
    /// Its tree takes more bytes than it may.
    TooLarge,
    /// A string has a broken escape.
    BrokenString,
    /// A number is beyond the range of a double.
    NumberTooLarge,
}

/// A JSON value. Scalars keep the text they were written in. Borrowed parts point into the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node<'a> {
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
    List(Vec<Node<'a>>),
    Scalar(Cow<'a, str>),
}

impl<'a> Node<'a> {
    /// Parses a valid JSON text. A text that nests deeper than [`LEVELS_MAX`], or whose tree takes
    /// more than `bytes_max`, is a flaw. Of members with the same name the last one counts, as in
    /// most readers.
    pub(crate) fn parse(text: &'a str, bytes_max: usize) -> Result<Self, TreeFlaw> {
        NodeParser {
            tokens: Tokens::new(text),
            depth: 0,
            bytes_left: bytes_max,
        }
        .node()
    }

    /// A scalar, from its JSON text.
    pub(crate) fn scalar(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Scalar(text.into())
    }

    /// The scalar's JSON text.
    pub(crate) fn as_scalar(&self) -> Option<&str> {
        match self {
            Self::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// The text between the quotes, escapes untouched, if it is a string.
    pub(crate) fn as_string(&self) -> Option<&str> {
        self.as_scalar()?.strip_prefix('"')?.strip_suffix('"')
    }

    /// The kind of the value, as a phrase for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Object(_) => "an object",
            Self::List(_) => "a list",
            Self::Scalar(text) => kind(text),
        }
    }

    /// The JSON text, compact.
    pub(crate) fn text(&self) -> String {
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
                2 + members
                    .iter()
                    .map(|(name, value)| name.len() + value.bytes() + 4)
                    .sum::<usize>()
            }
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Scalar(text) => out.push_str(text),
            Self::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    write_comma(out, index);
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    write_comma(out, index);
                    write_string(out, name);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// Builds a tree of the tokens of a text.
struct NodeParser<'a> {
    tokens: Tokens<'a>,
    depth: usize,
    /// Bytes that the tree may still take.
    bytes_left: usize,
}

impl<'a> NodeParser<'a> {
    /// The next value. The text is valid, so there is one wherever one is expected.
    fn node(&mut self) -> Result<Node<'a>, TreeFlaw> {
        let token = self.tokens.next().ok_or(TreeFlaw::BrokenString)?;
        self.node_from(token)
    }

    /// The value that begins with this token.
    fn node_from(&mut self, token: JsonToken<'a>) -> Result<Node<'a>, TreeFlaw> {
        match token.first {
            b'{' => {
                let mut members = Vec::new();
                self.each(|parser, name| {
                    let name = string(name.text).ok_or(TreeFlaw::BrokenString)?;
                    // The colon.
                    parser.tokens.next();
                    let value = parser.node()?;
                    parser.put(&mut members, (name, value))
                })?;
                if members.len() > MANY_MEMBERS {
                    self.take(members.len() * HASHED_MEMBER_BYTES)?;
                }
                Ok(Node::Object(last_wins(members)))
            }
            b'[' => {
                let mut items = Vec::new();
                self.each(|parser, first| {
                    let item = parser.node_from(first)?;
                    parser.put(&mut items, item)
                })?;
                Ok(Node::List(items))
            }
            // A lone surrogate passes as JSON here and fails in the next reader.
            b'"' if token.has_escapes
                && token.text.contains("\\u")
                && string(token.text).is_none() =>
            {
                Err(TreeFlaw::BrokenString)
            }
            b'-' | b'0'..=b'9' if !is_double(token.text) => Err(TreeFlaw::NumberTooLarge),
            _ => Ok(Node::scalar(token.text)),
        }
    }

    /// Appends an element, if the tree may still take it.
    fn put<T>(&mut self, all: &mut Vec<T>, one: T) -> Result<(), TreeFlaw> {
        if all.len() == all.capacity() {
            let more = all.len().max(2);
            self.take(more * size_of::<T>())?;
            // Growing may move the elements, and then both copies exist for a moment.
            if self.bytes_left < all.len() * size_of::<T>() {
                return Err(TreeFlaw::TooLarge);
            }
            all.reserve_exact(more);
        }
        all.push(one);
        Ok(())
    }

    fn take(&mut self, bytes: usize) -> Result<(), TreeFlaw> {
        self.bytes_left = self
            .bytes_left
            .checked_sub(bytes)
            .ok_or(TreeFlaw::TooLarge)?;
        Ok(())
    }

    /// Reads the list or object that was just opened, item by item. `item` gets the first token of
    /// each.
    fn each(
        &mut self,
        mut item: impl FnMut(&mut Self, JsonToken<'a>) -> Result<(), TreeFlaw>,
    ) -> Result<(), TreeFlaw> {
        self.depth += 1;
        if self.depth > LEVELS_MAX {
            return Err(TreeFlaw::TooDeep);
        }
        while let Some(token) = self.tokens.next() {
            match token.first {
                b']' | b'}' => break,
                b',' => {}
                _ => item(self, token)?,
            }
        }
        self.depth -= 1;
        Ok(())
    }
}

/// Whether every reader can hold a number.
fn is_double(number: &str) -> bool {
    is_plain_number(number) || number.parse::<f64>().is_ok_and(f64::is_finite)
}
