//! JSON at the level of its text: a look that takes the blanks out and tells what needs more than that, and a small tree for what must
//! be rewritten.
//!
//! `serde_json::Value` would change what it passes on (numbers lose digits, escapes are rewritten) and costs seven times the memory;
//! the tree here keeps every scalar as the text that was published. Nothing here knows the protocol.

use std::borrow::Cow;
use std::collections::HashSet;

use super::envelope::Raw;
use super::flaw::Flaw;
use crate::model::JsonText;

/// How deep the text of one member may nest. `serde_json` readers stop at 128 levels, and a published list adds a few around a schema.
pub(in crate::protocols) const MAX_DEPTH: usize = 100;
/// Up to so many members, comparing each with each costs less than hashing their names.
pub(in crate::protocols) const FEW: usize = 12;
/// Longer numbers are looked at, since they may be out of the range of a double.
const PLAIN_NUMBER: usize = 20;

/// Whether a byte may stand within a number or a literal.
fn in_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// The index after the closing quote of the string that opens at `at`, or the end of an unclosed one.
fn string_end(bytes: &[u8], at: usize) -> usize {
    string_extent(bytes, at).0
}

/// The same, and whether the string holds escapes.
fn string_extent(bytes: &[u8], at: usize) -> (usize, bool) {
    let (mut at, mut escapes) = (at + 1, false);
    loop {
        at = quote_or_backslash(bytes, at);
        match bytes.get(at) {
            None => return (bytes.len(), escapes),
            Some(b'"') => return (at + 1, escapes),
            Some(_) => {
                escapes = true;
                at = (at + 2).min(bytes.len());
            }
        }
    }
}

/// The index of the next quote or backslash, or the end. Most of a manifest is prose between quotes, so it goes in steps of eight bytes.
fn quote_or_backslash(bytes: &[u8], from: usize) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // The lowest set bit marks the first byte of the word that is `byte`; bits above it may be set in error.
    let marks = |word: u64, byte: u8| {
        let zeroed = word ^ (ONES * u64::from(byte));
        zeroed.wrapping_sub(ONES) & !zeroed & HIGH
    };
    let mut at = from;
    while let Some(chunk) = bytes[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let found = marks(word, b'"') | marks(word, b'\\');
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'\\')).map_or(bytes.len(), |more| at + more)
}

/// What a look at a text found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::protocols) enum Look {
    /// May be passed on as it is.
    Plain,
    /// Holds something that only a tree can judge or rewrite.
    Odd,
    /// Nests deeper than [`MAX_DEPTH`].
    TooDeep,
}

/// Looks over a valid JSON text once, and gives it without the blanks between its tokens. `member` gets the name of each member of the
/// outermost object (as written, without quotes) with the text from its value on; `odd` says which names ask for a tree, at any depth.
///
/// `null`, escapes in names, `\u` escapes (possibly half a surrogate pair) and numbers that a double may not hold are odd as well.
pub(in crate::protocols) fn look<'a>(
    text: &'a str,
    odd: impl Fn(&str) -> bool,
    mut member: impl FnMut(&'a str, &'a str),
) -> (Look, Cow<'a, str>) {
    let bytes = text.as_bytes();
    let mut found = Look::Plain;
    let (mut at, mut depth, mut last, mut escaped) = (0, 0_usize, "", false);
    let (mut compact, mut kept) = (String::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' => {
                (at, escaped) = string_extent(bytes, start);
                last = &text[start + 1..at - 1];
                if escaped && last.contains("\\u") {
                    found = Look::Odd;
                }
            }
            b':' => {
                if escaped || odd(last) {
                    found = Look::Odd;
                }
                if depth == 1 {
                    member(last, text[at..].trim_start());
                }
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return (Look::TooDeep, Cow::Borrowed(text));
                }
            }
            b'}' | b']' => depth -= 1,
            b'n' => found = Look::Odd,
            b'-' | b'0'..=b'9' => {
                at = token_end(bytes, start);
                if !plain_number(&text[start..at]) {
                    found = Look::Odd;
                }
            }
            b' ' | b'\t' | b'\n' | b'\r' => {
                compact.reserve(text.len() - compact.len());
                compact.push_str(&text[kept..start]);
                at = bytes[at..].iter().position(|byte| *byte > b' ').map_or(bytes.len(), |more| at + more);
                kept = at;
            }
            _ => {}
        }
    }
    if kept == 0 {
        return (found, Cow::Borrowed(text));
    }
    compact.push_str(&text[kept..]);
    (found, Cow::Owned(compact))
}

fn token_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| !in_token(*byte)).map_or(bytes.len(), |length| at + length)
}

fn plain_number(number: &str) -> bool {
    number.len() <= PLAIN_NUMBER && !number.contains(['e', 'E'])
}

/// A JSON value whose scalars are the text they were written in. The borrowed parts point into the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::protocols) enum Node<'a> {
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
    List(Vec<Node<'a>>),
    Scalar(Cow<'a, str>),
}

impl<'a> Node<'a> {
    /// Reads a valid JSON text; one that nests deeper than [`MAX_DEPTH`] is a flaw. Of members with the same name the last one counts,
    /// as in most readers.
    pub(in crate::protocols) fn read(text: &'a str) -> Result<Self, Flaw> {
        Reader { text, at: 0, depth: 0 }.node()
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

    /// What kind of value it is, for people.
    pub(in crate::protocols) fn kind(&self) -> &'static str {
        match self {
            Self::Object(_) => "an object",
            Self::List(_) => "a list",
            Self::Scalar(text) => kind(text),
        }
    }

    /// Its JSON text, compact.
    pub(in crate::protocols) fn text(&self) -> String {
        let mut out = String::with_capacity(1024);
        self.write(&mut out);
        out
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
    // Not left at the first, which lets the compiler look at many bytes at once.
    let odd = text.bytes().map(|byte| u8::from(byte < b' ' || byte == b'"' || byte == b'\\'));
    if odd.fold(0, |any, odd| any | odd) == 0 {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::Value::from(text).to_string());
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// The next byte that is no blank; 0 at the end.
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
                    members.push((name, reader.node()?));
                    Ok(())
                })?;
                Ok(Node::Object(last_wins(members)))
            }
            b'[' => {
                let mut items = Vec::new();
                self.each(|reader| {
                    items.push(reader.node()?);
                    Ok(())
                })?;
                Ok(Node::List(items))
            }
            b'"' => {
                let text = self.string()?;
                // Half a surrogate pair passes as JSON here and fails in the next reader.
                if text.contains('\\') && text.contains("\\u") && string(text).is_none() {
                    return Err(bad_string());
                }
                Ok(Node::scalar(text))
            }
            _ => self.token(),
        }
    }

    /// Reads what stands between the brackets at the current place, item by item.
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
            return Err(
                Flaw::new("", "holds a number that no reader can hold").hint("write numbers within a double's range")
            );
        }
        Ok(Node::scalar(token))
    }
}

fn bad_string() -> Flaw {
    Flaw::new("", "holds a text with a broken escape").hint("write valid Unicode escapes, surrogates in pairs")
}

/// Keeps the last of members with the same name.
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

/// The text that a JSON string stands for; nothing if it is no string or its escapes are broken.
pub(in crate::protocols) fn string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(json).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// Calls `item` with each item, as written, of the list that a JSON text begins with. False when it begins with no list, or when an item
/// is no string.
pub(in crate::protocols) fn each_string<'a>(json: &'a str, mut item: impl FnMut(&'a str)) -> bool {
    let bytes = json.as_bytes();
    if bytes.first() != Some(&b'[') {
        return false;
    }
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let start = at;
                at = string_end(bytes, start);
                item(&json[start..at]);
            }
            b',' | b' ' | b'\t' | b'\n' | b'\r' => at += 1,
            _ => return byte == b']',
        }
    }
    false
}

/// What kind of value a JSON text is, for people.
pub(in crate::protocols) fn kind(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Shares a value that nothing here has a name for, if other readers can read it.
pub(in crate::protocols) fn share_unknown(raw: Raw<'_>) -> Result<JsonText, Flaw> {
    match look(raw.get(), |_| false, |_, _| {}) {
        (Look::Plain, text) => Ok(JsonText::known(&text)),
        (Look::Odd, _) => Ok(JsonText::known(&Node::read(raw.get())?.text())),
        (Look::TooDeep, _) => Err(Flaw::too_deep()),
    }
}
