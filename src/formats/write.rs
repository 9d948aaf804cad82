//! Writing JSON objects member by member, so that raw texts are embedded as they are and the order of keys is ours.
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
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        self.out.extend_from_slice(quoted(key).as_bytes());
        self.out.push(b':');
        self.out.extend_from_slice(json.as_bytes());
        self
    }

    /// A member whose value is a text.
    pub(super) fn text(&mut self, key: &str, text: &str) -> &mut Self {
        self.raw(key, &quoted(text))
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

/// Whether common readers can read a raw text within a bigger document. A raw value may nest without limit, hold half a surrogate
/// pair or a number beyond a double; one such value makes readers refuse the whole list.
pub(super) fn sound(json: &str) -> bool {
    !suspicious(json.as_bytes()) || serde_json::from_str::<Value>(json).is_ok()
}

/// One cheap pass over the bytes: whether the text *may* hold one of those. Most texts stop here and are never parsed.
fn suspicious(json: &[u8]) -> bool {
    let (mut brackets, mut digits, mut before) = (0, 0, [0; 2]);
    for &byte in json {
        let lower = byte.to_ascii_lowercase();
        brackets += usize::from(matches!(byte, b'{' | b'['));
        if (lower == b'e' && digits > 0) || (lower == b'd' && before == *b"\\u") {
            return true;
        }
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > MAX_DIGITS {
            return true;
        }
        before = [before[1], byte];
    }
    brackets > MAX_DEPTH
}

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
