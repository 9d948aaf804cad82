//! Writing JSON objects member by member, so that raw texts are embedded as they are and callsheet
//! decides the order of keys.
//!
//! It never checks that a raw text is JSON; [`sound`] does, for those that hand one in.

use serde_json::Value;

/// Brackets that `serde_json` and most other readers nest at most.
const MAX_DEPTH: usize = 127;
/// A double holds every number of fewer digits than this.
const MAX_DIGITS: usize = 300;

/// One JSON object under way.
#[derive(Debug)]
pub(super) struct ObjectWriter {
    out: Vec<u8>,
    empty: bool,
}

impl ObjectWriter {
    /// An object that begins behind what is already in `out`.
    pub(super) fn after(mut out: Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// A member whose value is JSON text already.
    pub(super) fn raw(&mut self, key: &str, json: &str) -> &mut Self {
        self.key(key);
        self.out.extend_from_slice(json.as_bytes());
        self
    }

    /// A member whose value is a text.
    pub(super) fn text(&mut self, key: &str, text: &str) -> &mut Self {
        self.key(key);
        push_quoted(&mut self.out, text);
        self
    }

    /// A member whose value is a text, if there is one.
    pub(super) fn optional(&mut self, key: &str, text: Option<&str>) -> &mut Self {
        if let Some(text) = text {
            self.text(key, text);
        }
        self
    }

    /// A member whose value is `true` or `false`.
    pub(super) fn flag(&mut self, key: &str, flag: bool) -> &mut Self {
        self.raw(key, if flag { "true" } else { "false" })
    }

    fn key(&mut self, key: &str) {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        push_quoted(&mut self.out, key);
        self.out.push(b':');
    }

    /// Ends the object.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }
}

/// `text` as a JSON string, quotes included.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The same, behind what is already in `out`. Hardly any text needs escapes, and a list of 20,000
/// tools has half a million.
fn push_quoted(out: &mut Vec<u8>, text: &str) {
    // Not left at the first, which lets the compiler look at many bytes at once.
    let escapes = text.bytes().map(|byte| u8::from(byte < b' ' || byte == b'"' || byte == b'\\'));
    if escapes.fold(0, |any, escapes| any | escapes) > 0 {
        out.extend_from_slice(quoted(text).as_bytes());
    } else {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    }
}

/// Whether common readers can read a raw text within a bigger document. A raw value may nest
/// without limit, hold half a surrogate pair or a number beyond a double; one such value makes
/// readers refuse the whole list.
pub(super) fn sound(json: &str) -> bool {
    !suspicious(json.as_bytes()) || serde_json::from_str::<Value>(json).is_ok()
}

/// One cheap pass over the bytes: whether the text *may* hold one of those. Most texts stop here
/// and are never parsed.
fn suspicious(json: &[u8]) -> bool {
    let (mut brackets, mut at) = (0, 0);
    while let Some(skipped) = json[at..].iter().position(|byte| TELLING[usize::from(*byte)]) {
        at += skipped + 1;
        let after = &json[at..];
        match json[at - 1] {
            b'{' | b'[' => brackets += 1,
            b'\\' => {
                if let [b'u', b'd' | b'D', ..] = after {
                    return true;
                }
                at = json.len().min(at + 1);
            }
            _ => {
                let more = after.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(after.len());
                if more >= MAX_DIGITS || matches!(after.get(more), Some(b'e' | b'E')) {
                    return true;
                }
                at += more;
            }
        }
    }
    brackets > MAX_DEPTH
}

/// The bytes at which [`suspicious`] stops: brackets that open, backslashes, digits.
const TELLING: [bool; 256] = {
    let mut stops = [false; 256];
    let mut byte = 0;
    while byte < stops.len() {
        stops[byte] = matches!(byte, 0x5b | 0x7b | 0x5c | 0x30..=0x39);
        byte += 1;
    }
    stops
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_texts_are_told_from_odd_ones() {
        for good in [r#"{"a":"\u00e9 1e5 \ud83d\ude00"}"#, "[1e5]", "[\"3e9d\"]", "[]"] {
            assert!(sound(good), "{good}");
        }
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let long = "9".repeat(400);
        for bad in [r#"["\ud83d"]"#, "[1e999]", &deep, &long] {
            assert!(!sound(bad), "{bad}");
        }
        let wide = format!("[{}[]]", "[],".repeat(500));
        assert!(sound(&wide));
    }

    #[test]
    fn members_are_escaped_and_stand_in_the_order_written() {
        let mut object = ObjectWriter::after(b"[".to_vec());
        object.text("a\"b", "line\nend").raw("raw", "[ 1 ]").flag("on", true).optional("none", None);
        assert_eq!(object.end(), br#"[{"a\"b":"line\nend","raw":[ 1 ],"on":true}"#);
    }
}
