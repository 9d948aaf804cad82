//! How large regular expressions become, estimated before they are compiled.
//!
//! Patterns run on an engine whose time is linear in the text, but with the size of the compiled
//! pattern as a factor, and a repetition such as `(ab){1000}` makes a short pattern large. Patterns
//! are never compiled here.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Size of a pattern that cannot be parsed here, though perhaps by the validator, whose syntax is
/// that of ECMA 262.
const UNKNOWN: u64 = 10_000;
/// Bytes of one state of a compiled pattern, in round numbers.
const STATE_BYTES: u64 = 32;
/// Bytes that a pattern takes besides: tables that are filled while it is matched.
const PATTERN_BYTES: u64 = 8 * 1024;
/// Bytes of a pattern that is measured. A longer one counts as larger than any may be, because
/// parsing it takes long by itself.
const MEASURED_PATTERN_BYTES_MAX: usize = 4 * 1024;
/// States that one character is held against in one unit of work. All may be followed at once.
const STATES_A_UNIT: u64 = 4;
/// States of a class with characters beyond ASCII, which are sequences of bytes, besides those of
/// its ranges.
const SEQUENCES: u64 = 8;

/// The number of states that a pattern compiles to, roughly.
pub(super) fn states(pattern: &str) -> u64 {
    if pattern.len() > MEASURED_PATTERN_BYTES_MAX {
        return u64::MAX;
    }
    // ECMA's classes such as `\w` are those of ASCII.
    let ascii = ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .build()
        .parse(pattern)
        .ok();
    let parsed = ascii.or_else(|| ParserBuilder::new().build().parse(pattern).ok());
    parsed.map_or(UNKNOWN, |hir| size(&hir))
}

/// Bytes that a compiled pattern takes, roughly.
pub(super) fn bytes(pattern: &str) -> u64 {
    states(pattern)
        .saturating_mul(STATE_BYTES)
        .saturating_add(PATTERN_BYTES)
}

/// The work of matching a text against a pattern with so many states, in the units of a check.
pub(super) fn work(states: u64, text: &str) -> u64 {
    let read = text.len() as u64;
    (read.saturating_mul(states) / STATES_A_UNIT).saturating_add(read / 8 + 1)
}

fn size(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        // What is more than ASCII in a class of bytes stands for all other characters.
        HirKind::Class(Class::Bytes(class)) => {
            if class.is_ascii() {
                1
            } else {
                4 + SEQUENCES
            }
        }
        HirKind::Literal(literal) => literal.0.len() as u64,
        // One range of characters is up to four ranges of bytes.
        HirKind::Class(Class::Unicode(class)) if class.is_ascii() => 1,
        HirKind::Class(Class::Unicode(class)) => 4 * class.ranges().len() as u64 + SEQUENCES,
        HirKind::Repetition(repetition) => {
            let times = repetition
                .max
                .unwrap_or(repetition.min.saturating_add(1))
                .max(1);
            size(&repetition.sub)
                .saturating_add(1)
                .saturating_mul(u64::from(times))
        }
        HirKind::Capture(capture) => size(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(size).fold(1, u64::saturating_add)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply_and_what_is_unknown_counts_as_large() {
        assert!(states(r"^[\w-]{1,64}$") < 200);
        assert!(states("a{1000}") >= 1000);
        assert!(states("((a{100}){100}){100}") >= 1_000_000);
        assert_eq!(states("(?=x)y"), UNKNOWN);
        assert!(states("[é-ü]+") < 40);
        assert!(work(states("^a+$"), &"a".repeat(800)) < 2_000);
        assert!(
            states(".{100}") >= 1_000 && states("[^a]{100}") >= 1_000,
            "characters are up to four bytes"
        );
        assert_eq!(
            states(&"a".repeat(MEASURED_PATTERN_BYTES_MAX + 1)),
            u64::MAX
        );
    }

    #[test]
    fn every_state_is_counted_for_every_character() {
        let text = "ab".repeat(500_000);
        assert!(work(states("a[ab]{1000}[c-z]"), &text) > 200_000_000);
        assert!(work(states("^[a-z][a-z0-9-]{0,62}$"), "some-name") < 500);
    }
}
