//! JSON with other blanks between its parts, and otherwise as it came: indented for people, or in
//! one line for protocols of lines.

use crate::model::JsonText;

/// At most this many levels are indented.
const DEEPEST: usize = 40;
/// The most bytes of a character.
const CHARACTER_BYTES: usize = 4;

/// The arguments of a call, for a person that decides about it.
#[derive(Debug)]
pub(in crate::server) struct ReadableArguments {
    /// With line ends and indents between their parts, and otherwise as they will be sent; cut
    /// where they are not whole.
    pub(in crate::server) text: String,
    /// Whether they have no more characters than are shown. A call of which less is shown must not
    /// be approved there.
    pub(in crate::server) is_whole: bool,
}

impl ReadableArguments {
    /// The arguments where at most so many characters are shown.
    pub(in crate::server) fn new(arguments: &JsonText, most_characters: usize) -> Self {
        // What has more bytes than these has more characters than are shown.
        let text = indented(arguments.get(), CHARACTER_BYTES * most_characters);
        let is_whole = text.chars().nth(most_characters).is_none();
        Self { text, is_whole }
    }
}

/// Adds line breaks and indents to a JSON text without other changes; the output is cut after
/// `most` bytes. Parsing and writing it again would hide duplicate members and how numbers are
/// written.
pub(in crate::server) fn indented(json: &str, most: usize) -> String {
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut escaped = false;
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        if out.len() > most {
            break;
        }
        if quoted {
            out.push(c);
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            ' ' | '\n' | '\r' | '\t' => {}
            '{' | '[' => {
                out.push(c);
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c => {
                quoted = c == '"';
                out.push(c);
            }
        }
    }
    out
}

/// JSON without line ends. They stand between its values only (RFC 8259 section 7), so a blank in
/// their place means the same. Results of tools are passed on as they came, and some are indented.
pub(in crate::server) fn in_one_line(json: &[u8]) -> impl Iterator<Item = u8> {
    json.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte })
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(DEEPEST)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blanks_between_the_parts_change() {
        let json = r#"{"a":[ ], "a" : {"b":1.50,"c\"}\\":"x, y: {"},"d":[1,[]]}"#;
        let expected = "{\n  \"a\": [],\n  \"a\": {\n    \"b\": 1.50,\n    \"c\\\"}\\\\\": \"x, y: {\"\n  },\n  \"d\": [\n    1,\n    []\n  ]\n}";
        assert_eq!(indented(json, 1_000), expected);
        assert!(indented(json, 10).len() < 20, "cut");
    }

    #[test]
    fn arguments_are_whole_as_long_as_they_have_no_more_characters_than_are_shown() {
        let arguments = JsonText::parse(r#"{"å":1}"#).unwrap();
        let shown = ReadableArguments::new(&arguments, 12);
        assert_eq!(shown.text, "{\n  \"å\": 1\n}");
        assert!(shown.is_whole);
        assert!(!ReadableArguments::new(&arguments, 11).is_whole);
    }
}
