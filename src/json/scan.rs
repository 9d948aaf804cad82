//! JSON at the level of its text: a scan that removes the blanks and reports what needs a tree (see
//! [`node`](super::node)).
//!
//! This module knows no protocol.

use std::borrow::Cow;

/// The deepest nesting of the text of one member. `serde_json` readers stop at 128 levels, and a
/// published list adds a few around a schema.
pub(in crate::protocols) const MAX_DEPTH: usize = 100;
/// Longer numbers need the tree, because they may be out of the range of a double.
const PLAIN_NUMBER: usize = 20;

/// Whether a byte may stand within a number or a literal.
fn in_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// The index after the closing quote of the string that opens at `at`; the end if it is not closed.
pub(super) fn string_end(bytes: &[u8], at: usize) -> usize {
    string_extent(bytes, at).0
}

/// Like [`string_end`], and whether the string holds escapes.
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

/// The index of the next quote or backslash, or the end. Most of a manifest is prose between
/// quotes, so the search takes steps of eight bytes.
fn quote_or_backslash(bytes: &[u8], from: usize) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // The lowest set bit marks the first byte of the word that is `byte`; bits above it may be
    // wrong.
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

/// The result of scanning a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::protocols) enum ScanResult {
    /// May be passed on as it is.
    Plain,
    /// Holds something that only a tree can judge or rewrite.
    Odd,
    /// Nests deeper than [`MAX_DEPTH`].
    TooDeep,
}

/// Scans a valid JSON text once and returns it without the blanks between its tokens. `member` gets
/// the name of each member of the outermost object (as written, without quotes) with the text from
/// the start of its value. `needs_tree` says which names need a tree, at any depth.
///
/// `null`, escapes in names, `\u` escapes (possibly a lone surrogate) and numbers that may be out
/// of the range of a double need a tree as well.
pub(in crate::protocols) fn scan<'a>(
    text: &'a str,
    needs_tree: impl Fn(&str) -> bool,
    mut member: impl FnMut(&'a str, &'a str),
) -> (ScanResult, Cow<'a, str>) {
    let bytes = text.as_bytes();
    let mut found = ScanResult::Plain;
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
                    found = ScanResult::Odd;
                }
            }
            b':' => {
                if escaped || needs_tree(last) {
                    found = ScanResult::Odd;
                }
                if depth == 1 {
                    member(last, text[at..].trim_start());
                }
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return (ScanResult::TooDeep, Cow::Borrowed(text));
                }
            }
            b'}' | b']' => depth -= 1,
            b'n' => found = ScanResult::Odd,
            b'-' | b'0'..=b'9' => {
                at = token_end(bytes, start);
                if !plain_number(&text[start..at]) {
                    found = ScanResult::Odd;
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

/// The index after the number or the literal that begins at `at`.
pub(super) fn token_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| !in_token(*byte)).map_or(bytes.len(), |length| at + length)
}

/// Whether a number is certainly in the range of a double.
pub(super) fn plain_number(number: &str) -> bool {
    number.len() <= PLAIN_NUMBER && !number.contains(['e', 'E'])
}

/// The decoded text of a JSON string. `None` if it is not a string or its escapes are broken.
pub(in crate::protocols) fn string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(json).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// Calls `item` with each item, as written, of the list at the start of a JSON text. False when the
/// text does not begin with a list, or when an item is not a string.
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

/// The kind of a JSON value, as a phrase for messages.
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
