//! The usual document, taken apart in one pass.
//!
//! Most of what reading a manifest costs is going through its text, and `serde_json` goes through it byte by byte. Here it is looked at in
//! steps of eight. What is accepted is what `serde_json` accepts, with the same result; whatever is unusual (an escape in a name, deep
//! nesting, a tool that is no object) and whatever is wrong is left to it, and so is saying what.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::envelope::{Document, Loose, Members};

/// The text of one valid JSON value, without blanks around it.
#[derive(Debug, Clone, Copy)]
pub(in crate::protocols) struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// One that a parser found.
    pub(in crate::protocols) fn of(found: &'a RawValue) -> Self {
        Self(found.get())
    }

    /// The text.
    pub(in crate::protocols) fn get(self) -> &'a str {
        self.0
    }
}

/// A document whose tools, if it has any, are a list of objects.
pub(super) fn document(text: &str) -> Option<Document<'_>> {
    let mut scan = Scan::of(text);
    let (mut members, mut tools) = (Vec::with_capacity(8), None);
    scan.each_member(|scan, name| {
        if name == "tools" {
            tools = Some(Loose::List(scan.objects()?));
        } else {
            members.push((Cow::Borrowed(name), scan.raw()?));
        }
        Some(())
    })?;
    scan.is_at_end().then(|| Document { members: Members::of(members), tools })
}

/// The members of an object.
pub(super) fn members(text: &str) -> Option<Members<'_>> {
    let mut scan = Scan::of(text);
    let members = scan.members()?;
    scan.is_at_end().then_some(members)
}

/// Levels of nesting that are followed here.
const DEEP: u32 = u64::BITS;

struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next byte that is no blank; at the end 0, which begins nothing.
    fn next(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return byte;
            }
            self.at += 1;
        }
        0
    }

    /// Passes what must stand here.
    fn pass(&mut self, byte: u8) -> Option<()> {
        let is_here = self.next() == byte;
        self.at += usize::from(is_here);
        is_here.then_some(())
    }

    fn is_at_end(&mut self) -> bool {
        self.next() == 0 && self.at == self.text.len()
    }

    /// Calls `member` at the value of each member of the object that begins here.
    fn each_member(&mut self, mut member: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.pass(b'{')?;
        if self.pass(b'}').is_some() {
            return Some(());
        }
        loop {
            self.next();
            let start = self.at + 1;
            let plain = self.string()?;
            let name = self.text.get(start..self.at - 1).filter(|_| plain)?;
            self.pass(b':')?;
            member(self, name)?;
            if self.pass(b',').is_none() {
                return self.pass(b'}');
            }
        }
    }

    fn members(&mut self) -> Option<Members<'a>> {
        // Tools and scenarios have five members and more.
        let mut members = Vec::with_capacity(8);
        self.each_member(|scan, name| {
            members.push((Cow::Borrowed(name), scan.raw()?));
            Some(())
        })?;
        Some(Members::of(members))
    }

    /// A list of objects.
    fn objects(&mut self) -> Option<Vec<Loose<'a>>> {
        let mut items = Vec::new();
        self.pass(b'[')?;
        if self.pass(b']').is_some() {
            return Some(items);
        }
        loop {
            items.push(Loose::Object(self.members()?));
            if self.pass(b',').is_none() {
                return self.pass(b']').map(|()| items);
            }
        }
    }

    fn raw(&mut self) -> Option<Raw<'a>> {
        self.next();
        let start = self.at;
        self.value()?;
        self.text.get(start..self.at).map(Raw)
    }

    /// Passes a value with all that is in it.
    fn value(&mut self) -> Option<()> {
        // A bit for each level that is open, the innermost last: whether it is an object.
        let (mut levels, mut depth) = (0_u64, 0);
        loop {
            match self.next() {
                b'"' => _ = self.string()?,
                open @ (b'{' | b'[') => {
                    self.at += 1;
                    if self.pass(open + 2).is_none() {
                        if depth == DEEP {
                            return None;
                        }
                        (levels, depth) = ((levels << 1) | u64::from(open == b'{'), depth + 1);
                        if open == b'{' {
                            self.name()?;
                        }
                        continue;
                    }
                }
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => self.number()?,
            }
            // A value ended.
            loop {
                if depth == 0 {
                    return Some(());
                }
                let is_object = levels & 1 == 1;
                match (self.next(), is_object) {
                    (b',', _) => {
                        self.at += 1;
                        if is_object {
                            self.name()?;
                        }
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        (levels, depth) = (levels >> 1, depth - 1);
                    }
                    _ => return None,
                }
            }
        }
    }

    fn name(&mut self) -> Option<()> {
        self.next();
        self.string()?;
        self.pass(b':')
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let is_here = self.text.as_bytes().get(self.at..)?.starts_with(word.as_bytes());
        self.at += word.len();
        is_here.then_some(())
    }

    /// RFC 8259 section 6.
    fn number(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let is_at = |at: usize, set: &[u8]| bytes.get(at).is_some_and(|byte| set.contains(byte));
        let digits = |at: usize| {
            at + bytes.get(at..).map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count())
        };
        let whole = self.at + usize::from(is_at(self.at, b"-"));
        let mut end = digits(whole);
        if end == whole || end > whole + 1 && is_at(whole, b"0") {
            return None;
        }
        if is_at(end, b".") {
            let fraction = end + 1;
            end = digits(fraction);
            if end == fraction {
                return None;
            }
        }
        if is_at(end, b"eE") {
            let exponent = end + 1 + usize::from(is_at(end + 1, b"+-"));
            end = digits(exponent);
            if end == exponent {
                return None;
            }
        }
        self.at = end;
        Some(())
    }

    /// Passes a string (RFC 8259 section 7). Whether it holds no escapes.
    fn string(&mut self) -> Option<bool> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) != Some(&b'"') {
            return None;
        }
        let (mut at, mut plain) = (self.at + 1, true);
        loop {
            at = telling(bytes, at);
            match *bytes.get(at)? {
                b'"' => {
                    self.at = at + 1;
                    return Some(plain);
                }
                b'\\' => {
                    plain = false;
                    at += match *bytes.get(at + 1)? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
                        b'u' if bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => 6,
                        _ => return None,
                    };
                }
                // A control character.
                _ => return None,
            }
        }
    }
}

/// The index of the next quote, backslash or control character, or the end.
fn telling(bytes: &[u8], from: usize) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    const BLANK: u64 = ONES * b' ' as u64;
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let (quote, backslash) = (word ^ (ONES * u64::from(b'"')), word ^ (ONES * u64::from(b'\\')));
        // In each of the three, the lowest bit that is set marks the first such byte of the word; bits above it may be set in error.
        let found = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(BLANK) & !word);
        let found = found & HIGH;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..b' ')).map_or(bytes.len(), |more| at + more)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What each of the two makes of a text, as text.
    fn both(text: &str) -> (Option<String>, Option<String>) {
        let shown = |document: Document<'_>| format!("{document:?}");
        (document(text).map(shown), Document::parsed(text).ok().map(shown))
    }

    fn agree(text: &str) {
        if let (Some(scanned), parsed) = both(text) {
            assert_eq!(Some(scanned), parsed, "{text}");
        }
    }

    const USUAL: &str = concat!(
        r#" {"protocol_version" : "1.0", "scenario":{"name":"a\u00e9\n","x":[1,-0.5e+3,[],{}, {"y":null}]},"#,
        r#""tools":[{"name":"one", "parameters":{"type":"object","properties":{}}} , {"name":"tea ☕","z":true}, {}],"#,
        "\"q\":0,\n\t\"w\":false, \"w\":\"twice\"}",
    );

    #[test]
    fn the_usual_is_scanned() {
        let (scanned, parsed) = both(USUAL.trim_start());
        assert!(scanned.is_some());
        assert_eq!(scanned, parsed);
        for text in ["{}", "{ }", r#"{"tools":[]}"#, r#"{"tools":[ {} ],"tools":[]}"#] {
            assert!(document(text).is_some(), "{text}");
            agree(text);
        }
    }

    #[test]
    fn what_is_wrong_or_unusual_is_left_to_the_parser() {
        let values = [
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "tru",
            "nul",
            "\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u12",
            "[1,]",
            "[1 2]",
            "{,}",
            "{\"a\"}",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "[}",
            "{]",
            "\"\u{1}\"",
            "\"1234567\u{1f}\"",
            "",
            "1 2",
            "'a'",
            "[",
            "{",
        ];
        for value in values {
            let text = format!("{{\"a\":{value}}}");
            assert!(document(&text).is_none(), "{text}");
            assert!(Document::parsed(&text).is_err(), "{text}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(66), "]".repeat(66));
        for text in [r#"{"a\u0062":1}"#, r#"{"tools":[1]}"#, r#"{"tools":null}"#, &deep] {
            assert!(document(text).is_none() && Document::parsed(text).is_ok(), "{text}");
        }
        for text in ["{} {}", "{}x", "[]", "", "{\"a\":1"] {
            assert!(document(text).is_none(), "{text}");
        }
    }

    proptest! {
        /// Whatever happens to a document, what is accepted here is what the parser accepts, and the same comes of it.
        #[test]
        fn the_parser_agrees(changes in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..3, "[\\x00-\\x7fé☕{}\\[\\],:\"0-9eEtfn\\\\u. -]"), 1..4)) {
            let mut text: Vec<char> = USUAL.trim().chars().collect();
            for (at, how, with) in changes {
                let at = at.index(text.len());
                match how {
                    0 => drop(text.remove(at)),
                    1 => text[at] = with.chars().next().unwrap(),
                    _ => text.insert(at, with.chars().next().unwrap()),
                }
            }
            agree(&text.into_iter().collect::<String>());
        }
    }
}
