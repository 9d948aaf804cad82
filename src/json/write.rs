//! Writes JSON strings, and objects member by member, so that raw texts are embedded as they are
//! and callsheet decides the order of keys.
//!
//! It never checks that a raw text is JSON; [`soundness`](super::soundness) does, for those that
//! hand one in.

/// What a text is written to.
pub(crate) trait TextSink {
    /// Adds a text at the end.
    fn add(&mut self, text: &str);
}

impl TextSink for String {
    fn add(&mut self, text: &str) {
        self.push_str(text);
    }
}

impl TextSink for Vec<u8> {
    fn add(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
}

/// `text` as a JSON string, quotes included.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The same, behind what is already in `out`. Hardly any text needs escapes, and a list of 20,000
/// tools has half a million.
pub(crate) fn write_string(out: &mut impl TextSink, text: &str) {
    // The pass does not stop at the first match, so that the compiler can check many bytes at once.
    let escapes = text
        .bytes()
        .map(|byte| u8::from(byte < b' ' || byte == b'"' || byte == b'\\'));
    if escapes.fold(0, |any, escapes| any | escapes) > 0 {
        out.add(&quoted(text));
    } else {
        out.add("\"");
        out.add(text);
        out.add("\"");
    }
}

/// Writes a comma before every item but the first.
pub(crate) fn write_comma(out: &mut impl TextSink, index: usize) {
    if index > 0 {
        out.add(",");
    }
}

/// One JSON object under way.
#[derive(Debug)]
pub(crate) struct ObjectWriter {
    out: Vec<u8>,
    members: usize,
}

impl ObjectWriter {
    /// An object that begins behind what is already in `out`.
    pub(crate) fn after(mut out: Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, members: 0 }
    }

    /// A member whose value is JSON text already.
    pub(crate) fn raw(&mut self, key: &str, json: &str) -> &mut Self {
        self.key(key);
        self.out.extend_from_slice(json.as_bytes());
        self
    }

    /// A member whose value is a text.
    pub(crate) fn text(&mut self, key: &str, text: &str) -> &mut Self {
        self.key(key);
        write_string(&mut self.out, text);
        self
    }

    /// A member whose value is a text, if there is one.
    pub(crate) fn optional(&mut self, key: &str, text: Option<&str>) -> &mut Self {
        if let Some(text) = text {
            self.text(key, text);
        }
        self
    }

    /// A member whose value is `true` or `false`.
    pub(crate) fn flag(&mut self, key: &str, flag: bool) -> &mut Self {
        self.raw(key, if flag { "true" } else { "false" })
    }

    fn key(&mut self, key: &str) {
        write_comma(&mut self.out, self.members);
        self.members += 1;
        write_string(&mut self.out, key);
        self.out.push(b':');
    }

    /// Ends the object.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_escaped_and_stand_in_the_order_written() {
        let mut object = ObjectWriter::after(b"[".to_vec());
        object
            .text("a\"b", "line\nend")
            .raw("raw", "[ 1 ]")
            .flag("on", true)
            .optional("none", None);
        assert_eq!(
            object.end(),
            br#"[{"a\"b":"line\nend","raw":[ 1 ],"on":true}"#
        );
    }
}
