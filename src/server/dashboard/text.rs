//! Texts for people: foreign strings made harmless, times, durations and counts.
//!
//! The templates escape markup. This module handles what escaping does not: characters that reorder
//! or hide others.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};

use crate::model::text::is_invisible;

/// A foreign string, at most `max` characters of it. It cannot reorder the text around it (`bdi`),
/// and control characters and invisible characters are shown by their number.
pub(super) fn foreign(text: &str, max: usize) -> Markup {
    let mut shown = String::new();
    for c in text.chars().take(max) {
        if is_invisible(c) {
            shown.push_str("<span class=\"mark\">");
            // Writing to a text cannot fail.
            let _ = write!(shown, "U+{:04X}", u32::from(c));
            shown.push_str("</span>");
        } else {
            // The only places where a foreign character becomes markup.
            match c {
                '&' => shown.push_str("&amp;"),
                '<' => shown.push_str("&lt;"),
                '>' => shown.push_str("&gt;"),
                '"' => shown.push_str("&quot;"),
                '\'' => shown.push_str("&#39;"),
                c => shown.push(c),
            }
        }
    }
    let cut = text.chars().nth(max).is_some();
    html! { bdi { (PreEscaped(shown)) @if cut { "…" } } }
}

/// A sentence, in which text between backticks is shown as code.
pub(super) fn sentence(text: &str, max: usize) -> Markup {
    let cut: String = text.chars().take(max).collect();
    let parts: Vec<&str> = cut.split('`').collect();
    // An odd one out is no pair, and stays as it is.
    let pairs = parts.len() - 1 - (parts.len() - 1) % 2;
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if at > pairs { "`" }
            @if at % 2 == 1 && at < pairs { code { (foreign(part, max)) } } @else { (foreign(part, max)) }
        }
        @if text.chars().nth(max).is_some() { "…" }
    }
}

/// A foreign string for an attribute such as a title or a label, which cannot contain markup.
pub(super) fn foreign_plain(text: &str, max: usize) -> String {
    text.chars()
        .take(max)
        .map(|c| {
            if is_invisible(c) || c.is_control() {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

/// A duration with one unit: `34 s`, `5 min`, `3 h`, `2 d`.
pub(super) fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    match seconds {
        0..90 => format!("{seconds} s"),
        90..5_400 => format!("{} min", (seconds + 30) / 60),
        5_400..172_800 => format!("{} h", (seconds + 1_800) / 3_600),
        _ => format!("{} d", (seconds + 43_200) / 86_400),
    }
}

/// The phrases for a moment in the future (`before`) and in the past (`after`); `{}` stands for the
/// duration. The script updates them as time passes.
#[derive(Debug, Clone, Copy)]
pub(super) struct RelativePhrase {
    before: &'static str,
    after: &'static str,
}

/// A moment in the past: `12 s ago`.
pub(super) const AGO: RelativePhrase = RelativePhrase {
    before: "now",
    after: "{} ago",
};
/// Time that has passed: `for 12 s`.
pub(super) const FOR: RelativePhrase = RelativePhrase {
    before: "since now",
    after: "for {}",
};
/// A moment in the future: `in 12 s`.
pub(super) const IN: RelativePhrase = RelativePhrase {
    before: "in {}",
    after: "now",
};
/// How long an answer is still fresh.
pub(super) const FRESH: RelativePhrase = RelativePhrase {
    before: "fresh for {}",
    after: "not fresh since {}",
};

/// A moment relative to `now`.
pub(super) fn relative_time(at: Timestamp, now: Timestamp, told: RelativePhrase) -> Markup {
    let seconds = at.duration_since(now).as_secs();
    let (form, seconds) = if at > now {
        (told.before, seconds)
    } else {
        (told.after, -seconds)
    };
    let text = form.replace("{}", &span(seconds));
    html! {
        time datetime=(at) title=(minute(at)) data-at=(at.as_millisecond()) data-before=(told.before) data-after=(told.after) { (text) }
    }
}

/// `0.4 ms`, `12 ms`, `3.25 s`, `4m 54s`.
pub(super) fn duration(span: Duration) -> String {
    let milliseconds = span.as_secs_f64() * 1e3;
    match milliseconds {
        ..10.0 => format!("{milliseconds:.1} ms"),
        10.0..1_000.0 => format!("{milliseconds:.0} ms"),
        1_000.0..60_000.0 => format!("{:.2} s", span.as_secs_f64()),
        _ => format!("{}m {}s", span.as_secs() / 60, span.as_secs() % 60),
    }
}

/// A moment with seconds, in UTC.
pub(super) fn minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// `1 tool`, `2 tools`.
pub(super) fn count(number: usize, one: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {one}s")
    }
}

/// Encodes a string as one path segment (RFC 3986 section 3.3): all bytes except letters, digits,
/// `-`, `.`, `_` and `~` are encoded.
pub(super) fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_texts_are_escaped_isolated_and_show_what_hides() {
        let shown = foreign("<b>a\u{202e}b & \"c\"", 100).into_string();
        let expected =
            "<bdi>&lt;b&gt;a<span class=\"mark\">U+202E</span>b &amp; &quot;c&quot;</bdi>";
        assert_eq!(shown, expected);
        assert_eq!(foreign("abcdef", 3).into_string(), "<bdi>abc…</bdi>");
        assert_eq!(foreign_plain("a\u{202e}\nb", 9), "a\u{fffd}\u{fffd}b");
    }

    #[test]
    fn what_stands_between_backticks_is_code() {
        let shown = |text, max| {
            sentence(text, max)
                .into_string()
                .replace("<bdi>", "")
                .replace("</bdi>", "")
        };
        assert_eq!(
            shown("use `a<b` or `c`", 99),
            "use <code>a&lt;b</code> or <code>c</code>"
        );
        assert_eq!(shown("a ` b", 99), "a ` b");
        assert_eq!(shown("`a` ` b", 99), "<code>a</code> ` b");
        assert_eq!(shown("plain", 3), "pla…");
    }

    #[test]
    fn spans_have_one_unit() {
        for (seconds, told) in [
            (-3, "0 s"),
            (89, "89 s"),
            (90, "2 min"),
            (5_399, "90 min"),
            (7_200, "2 h"),
            (200_000, "2 d"),
        ] {
            assert_eq!(span(seconds), told);
        }
    }

    #[test]
    fn segments_hold_no_slash() {
        assert_eq!(segment("a/b c?#é"), "a%2Fb%20c%3F%23%C3%A9");
    }
}
