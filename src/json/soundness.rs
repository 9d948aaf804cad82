//! Whether other readers can read a text where it is put into a larger one.
//!
//! A text may nest without limit, hold half a surrogate pair, or a number beyond a double. Each is
//! valid JSON, and one of them makes most readers refuse the whole list that holds it.

use std::borrow::Cow;

use serde_json::Value;

use super::LEVELS_MAX;
use super::scan::Tokens;

/// Brackets that `serde_json` and most other readers nest at most.
const READER_LEVELS_MAX: usize = 127;
/// A double holds every number of fewer digits than this.
const DOUBLE_DIGITS_MAX: usize = 300;
/// Longer numbers need the tree, because they may be out of the range of a double.
const PLAIN_NUMBER_BYTES_MAX: usize = 20;

/// The result of scanning a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanResult {
    /// May be passed on as it is.
    Plain,
    /// Holds something that only a tree can judge or rewrite.
    Odd,
    /// Nests deeper than [`LEVELS_MAX`].
    TooDeep,
}

/// Scans a valid JSON text once and returns it without the blanks between its tokens. `member` gets
/// the name of each member of the outermost object (as written, without quotes) with the text from
/// the start of its value. `needs_tree` says which names need a tree, at any depth.
///
/// `null`, escapes in names, `\u` escapes (possibly a lone surrogate) and numbers that may be out
/// of the range of a double need a tree as well.
pub(crate) fn scan<'a>(
    text: &'a str,
    needs_tree: impl Fn(&str) -> bool,
    mut member: impl FnMut(&'a str, &'a str),
) -> (ScanResult, Cow<'a, str>) {
    let mut found = ScanResult::Plain;
    let mut depth = 0_usize;
    let mut last_name = "";
    let mut last_has_escapes = false;
    let mut compact = String::new();
    // The text up to `copied` is in `compact`; it was read up to `reached`.
    let mut copied = 0;
    let mut reached = 0;
    for token in Tokens::new(text) {
        if token.at > reached {
            compact.reserve(text.len() - compact.len());
            compact.push_str(&text[copied..reached]);
            copied = token.at;
        }
        reached = token.end();
        match token.first {
            b'"' => {
                last_name = token.unquoted();
                last_has_escapes = token.has_escapes;
                if token.has_escapes && last_name.contains("\\u") {
                    found = ScanResult::Odd;
                }
            }
            b':' => {
                if last_has_escapes || needs_tree(last_name) {
                    found = ScanResult::Odd;
                }
                if depth == 1 {
                    member(last_name, text[reached..].trim_start());
                }
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > LEVELS_MAX {
                    return (ScanResult::TooDeep, Cow::Borrowed(text));
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'n' => found = ScanResult::Odd,
            b'-' | b'0'..=b'9' if !is_plain_number(token.text) => found = ScanResult::Odd,
            _ => {}
        }
    }
    if copied == 0 && reached == text.len() {
        return (found, Cow::Borrowed(text));
    }
    compact.push_str(&text[copied..reached]);
    (found, Cow::Owned(compact))
}

/// Whether a number is certainly in the range of a double.
pub(super) fn is_plain_number(number: &str) -> bool {
    number.len() <= PLAIN_NUMBER_BYTES_MAX && !number.contains(['e', 'E'])
}

/// Whether common readers can read a raw text within a bigger document.
pub(crate) fn is_sound(json: &str) -> bool {
    !is_suspicious(json.as_bytes()) || serde_json::from_str::<Value>(json).is_ok()
}

/// One cheap pass over the bytes: whether the text *may* hold what some readers refuse. Most texts
/// stop here and are never parsed. It does not tell strings from the rest, which makes it several
/// times as fast as the tokens are.
fn is_suspicious(json: &[u8]) -> bool {
    let mut brackets = 0;
    let mut at = 0;
    while let Some(skipped) = json[at..]
        .iter()
        .position(|byte| IS_TELLING[usize::from(*byte)])
    {
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
                let more = after
                    .iter()
                    .position(|byte| !byte.is_ascii_digit())
                    .unwrap_or(after.len());
                if more >= DOUBLE_DIGITS_MAX || matches!(after.get(more), Some(b'e' | b'E')) {
                    return true;
                }
                at += more;
            }
        }
    }
    brackets > READER_LEVELS_MAX
}

/// The bytes at which [`is_suspicious`] stops: brackets that open, backslashes, digits.
const IS_TELLING: [bool; 256] = {
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
    fn unreadable_texts_are_distinguished_from_odd_ones() {
        for good in [
            r#"{"a":"\u00e9 1e5 \ud83d\ude00"}"#,
            "[1e5]",
            "[\"3e9d\"]",
            "[]",
        ] {
            assert!(is_sound(good), "{good}");
        }
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let long = "9".repeat(400);
        for bad in [r#"["\ud83d"]"#, "[1e999]", &deep, &long] {
            assert!(!is_sound(bad), "{bad}");
        }
        let wide = format!("[{}[]]", "[],".repeat(500));
        assert!(is_sound(&wide));
    }

    #[test]
    fn a_scan_removes_blanks_and_reports_what_needs_a_tree() {
        let mut members = Vec::new();
        let text = " {\"a\" : [1, {\"b\":2}],\n \"c\":\"x y\" } ";
        let scanned = scan(
            text,
            |_| false,
            |name, value| members.push((name, &value[..1])),
        );
        assert_eq!(scanned.0, ScanResult::Plain);
        assert_eq!(scanned.1, r#"{"a":[1,{"b":2}],"c":"x y"}"#);
        assert_eq!(members, [("a", "["), ("c", "\"")]);
        assert!(matches!(
            scan("[1]", |_| false, |_, _| {}).1,
            Cow::Borrowed("[1]")
        ));
        for odd in [
            "[null]",
            r#"["\u0041"]"#,
            r#"{"\n":1}"#,
            "[1e2]",
            "[123456789012345678901]",
            r#"{"odd":1}"#,
        ] {
            assert_eq!(
                scan(odd, |name| name == "odd", |_, _| {}).0,
                ScanResult::Odd,
                "{odd}"
            );
        }
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(
            scan(&nested(LEVELS_MAX), |_| false, |_, _| {}).0,
            ScanResult::Plain
        );
        assert_eq!(
            scan(&nested(LEVELS_MAX + 1), |_| false, |_, _| {}).0,
            ScanResult::TooDeep
        );
    }
}
