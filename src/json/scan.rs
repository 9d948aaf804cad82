//! The tokens of a JSON text, in one pass without copies. Everything here that looks into a text
//! without reading its values uses them.
//!
//! The text must be valid JSON, which a reader checked when it came. Another text gives other
//! tokens and no panic.

use std::borrow::Cow;

/// One token of a text. Blanks between the tokens are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JsonToken<'a> {
    /// The first byte, which says what it is: a bracket, `,`, `:`, `"` for a string, and anything
    /// else for a number or a literal.
    pub(crate) first: u8,
    /// Where it begins in the text.
    pub(crate) at: usize,
    /// The token as it was written.
    pub(crate) text: &'a str,
    /// Whether it is a string with escapes.
    pub(crate) has_escapes: bool,
}

impl<'a> JsonToken<'a> {
    /// Where it ends in the text.
    pub(crate) fn end(&self) -> usize {
        self.at + self.text.len()
    }

    /// What is between the quotes of a string, as written.
    pub(crate) fn unquoted(&self) -> &'a str {
        let inner = self.text.strip_prefix('"').unwrap_or(self.text);
        inner.strip_suffix('"').unwrap_or(inner)
    }
}

/// The tokens of a text, in their order.
#[derive(Debug, Clone)]
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    /// The tokens of this text.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = JsonToken<'a>;

    fn next(&mut self) -> Option<JsonToken<'a>> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        let first = *bytes.get(self.at)?;
        let at = self.at;
        let mut has_escapes = false;
        self.at = match first {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => at + 1,
            b'"' => string_end(bytes, at, &mut has_escapes),
            _ => scalar_end(bytes, at),
        };
        // Every token ends behind an ASCII character, or with the text.
        Some(JsonToken {
            first,
            at,
            text: self.text.get(at..self.at)?,
            has_escapes,
        })
    }
}

/// The index after the closing quote of the string that opens at `at`; the end if it is not closed.
fn string_end(bytes: &[u8], at: usize, has_escapes: &mut bool) -> usize {
    let mut at = at + 1;
    // Most of a manifest is prose between quotes, so the search looks at many bytes at once.
    while let Some(further) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
        at += further;
        if bytes[at] == b'"' {
            return at + 1;
        }
        *has_escapes = true;
        at = (at + 2).min(bytes.len());
    }
    bytes.len()
}

/// The index after the number or the literal that begins at `at`.
fn scalar_end(bytes: &[u8], at: usize) -> usize {
    let ends = |byte: &u8| {
        matches!(
            byte,
            b' ' | b'\t' | b'\n' | b'\r' | b'{' | b'}' | b'[' | b']' | b',' | b':' | b'"'
        )
    };
    bytes[at..]
        .iter()
        .position(ends)
        .map_or(bytes.len(), |length| at + length)
}

/// The decoded text of a JSON string. `None` if it is not a string or its escapes are broken.
pub(crate) fn string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(json).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Calls `item` with each item, as written, of the list at the start of a JSON text. False when the
/// text does not begin with a list, or when an item is not a string.
pub(crate) fn each_string<'a>(json: &'a str, mut item: impl FnMut(&'a str)) -> bool {
    let mut tokens = Tokens::new(json);
    if tokens.next().is_none_or(|token| token.first != b'[') {
        return false;
    }
    for token in tokens {
        match token.first {
            b'"' => item(token.text),
            b',' => {}
            byte => return byte == b']',
        }
    }
    false
}

/// The kind of a JSON value, as a phrase for messages.
pub(crate) fn kind(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<&str> {
        Tokens::new(text).map(|token| token.text).collect()
    }

    #[test]
    fn a_text_is_split_into_its_tokens_without_blanks() {
        let text = " {\"a\\\"{\" : [ -1.5e3,true ],\r\n\t\"é\":null}";
        let expected = [
            "{",
            "\"a\\\"{\"",
            ":",
            "[",
            "-1.5e3",
            ",",
            "true",
            "]",
            ",",
            "\"é\"",
            ":",
            "null",
            "}",
        ];
        assert_eq!(tokens(text), expected);
        let found: Vec<JsonToken<'_>> = Tokens::new(text).collect();
        assert!(
            found
                .iter()
                .all(|token| text[token.at..token.end()] == *token.text)
        );
        assert!(found[1].has_escapes);
        assert!(!found[9].has_escapes);
        assert_eq!(found[1].unquoted(), "a\\\"{");
    }

    #[test]
    fn a_text_that_is_no_json_gives_tokens_until_its_end() {
        assert_eq!(tokens("é{\"é"), ["é", "{", "\"é"]);
        assert_eq!(tokens("\"\\é"), ["\"\\é"]);
        assert_eq!(tokens("\"\\"), ["\"\\"]);
        assert_eq!(tokens(" "), Vec::<&str>::new());
    }

    #[test]
    fn items_are_visited_only_in_a_list_of_strings() {
        let visit = |json: &str| {
            let mut items = Vec::new();
            let is_list = each_string(json, |item| items.push(item.to_owned()));
            is_list.then_some(items)
        };
        assert_eq!(
            visit(r#"[ "a" , "b\"" ], "c""#).unwrap(),
            ["\"a\"", "\"b\\\"\""]
        );
        for other in ["", "\"a\"", "[1]", "[\"a\"", "{}"] {
            assert_eq!(visit(other), None, "{other}");
        }
    }
}
