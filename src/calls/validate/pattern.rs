//! How large regular expressions become, estimated before they are compiled.
//!
//! Patterns run on an engine whose time is linear in the text, but a factor of that is the size of the compiled pattern, and a
//! repetition such as `(ab){1000}` makes a short one large. Nothing is compiled here.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Size of a pattern that cannot be parsed here, though perhaps by the validator, whose syntax is that of ECMA 262.
const UNKNOWN: u64 = 10_000;
/// Bytes of one state of a compiled pattern, in round numbers.
const STATE_BYTES: u64 = 32;
/// States that are followed at once cost little more than one, so that a unit of work stands for several.
const STATES_A_UNIT: u64 = 16;

/// The number of states that a pattern compiles to, roughly.
pub(super) fn states(pattern: &str) -> u64 {
    // ECMA's classes such as `\w` are those of ASCII.
    let ascii = ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern).ok();
    let parsed = ascii.or_else(|| ParserBuilder::new().build().parse(pattern).ok());
    parsed.map_or(UNKNOWN, |hir| size(&hir))
}

/// Bytes that a compiled pattern takes, roughly.
pub(super) fn bytes(pattern: &str) -> u64 {
    states(pattern).saturating_mul(STATE_BYTES)
}

/// The work of matching a text against a pattern with so many states, in the units of a check.
pub(super) fn work(states: u64, text: &str) -> u64 {
    (text.len() as u64).saturating_mul(states / STATES_A_UNIT + 1) / 8 + 1
}

fn size(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        // One range of characters is up to four ranges of bytes.
        HirKind::Class(Class::Unicode(class)) => 4 * class.ranges().len() as u64,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
            size(&repetition.sub).saturating_add(1).saturating_mul(u64::from(times))
        }
        HirKind::Capture(capture) => size(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().map(size).fold(1, u64::saturating_add),
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
        assert!(states("[é-ü]+") < 20);
        assert!(work(states("^a+$"), &"a".repeat(800)) < 200);
    }
}
