//! JSON with other blanks between its parts, and otherwise as it came. Reading it and writing it
//! again would hide members with the same name, and how numbers are written.

use super::scan::Tokens;

/// At most this many levels are indented.
const INDENTED_LEVELS_MAX: usize = 40;

/// The text without the blanks between its parts.
pub(crate) fn compact(json: &str) -> String {
    Tokens::new(json).map(|token| token.text).collect()
}

/// The text with line breaks and indents for people, cut after `bytes_max` bytes.
pub(crate) fn indented(json: &str, bytes_max: usize) -> String {
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut tokens = Tokens::new(json).peekable();
    while let Some(token) = tokens.next() {
        if out.len() > bytes_max {
            break;
        }
        match token.first {
            b'{' | b'[' => {
                out.push_str(token.text);
                if let Some(end) = tokens.next_if(|next| matches!(next.first, b'}' | b']')) {
                    out.push_str(end.text);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push_str(token.text);
            }
            b',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            b':' => out.push_str(": "),
            _ => push_part(&mut out, token.text, bytes_max),
        }
    }
    out
}

/// Adds a text until there are more bytes than that.
fn push_part(out: &mut String, text: &str, bytes_max: usize) {
    for character in text.chars() {
        if out.len() > bytes_max {
            break;
        }
        out.push(character);
    }
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(INDENTED_LEVELS_MAX)));
}

/// JSON without line ends. They stand between its values only (RFC 8259 section 7), so a blank in
/// their place means the same. Results of tools are passed on as they came, and some are indented.
pub(crate) fn in_one_line(json: &[u8]) -> impl Iterator<Item = u8> {
    json.iter().map(|byte| {
        if matches!(byte, b'\n' | b'\r') {
            b' '
        } else {
            *byte
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blanks_between_the_parts_change() {
        let json = r#"{"a":[ ], "a" : {"b":1.50,"c\"}\\":"x, y: {"},"d":[1,[]]}"#;
        let expected = "{\n  \"a\": [],\n  \"a\": {\n    \"b\": 1.50,\n    \"c\\\"}\\\\\": \"x, y: {\"\n  },\n  \"d\": [\n    1,\n    []\n  ]\n}";
        assert_eq!(indented(json, 1_000), expected);
        assert_eq!(
            compact(expected),
            r#"{"a":[],"a":{"b":1.50,"c\"}\\":"x, y: {"},"d":[1,[]]}"#
        );
        assert!(indented(json, 10).len() < 20, "cut");
        assert!(
            indented(&format!("\"{}\"", "x".repeat(1_000)), 10).len() < 20,
            "cut within a text"
        );
    }
}
