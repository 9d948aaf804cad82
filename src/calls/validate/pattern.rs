//! How large regular expressions become, estimated before they are compiled.
//!
//! Patterns run on an engine whose time is linear in the text, but with the size of the compiled
//! pattern as a factor, and a repetition such as `(ab){1000}` makes a short pattern large. Patterns
//! are never compiled here.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value};

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
/// States of a class with characters beyond ASCII, which are sequences of bytes, besides those of
/// its ranges.
const SEQUENCES: u64 = 8;

/// The patterns within one schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PatternSizes {
    /// Bytes of all of them once they are compiled, roughly.
    pub(super) bytes: u64,
    /// States of the largest one for texts. All may be followed at each character.
    pub(super) text_states: u64,
    /// States of the largest one for names of members.
    pub(super) name_states: u64,
}

impl PatternSizes {
    /// Adds the patterns within a value, wherever they stand. `None` as soon as they take more than
    /// so many bytes.
    pub(super) fn with(mut self, value: &Value, most_bytes: u64) -> Option<Self> {
        match value {
            Value::Array(items) => items
                .iter()
                .try_fold(self, |sizes, item| sizes.with(item, most_bytes)),
            Value::Object(members) => {
                if let Some(Value::String(pattern)) = members.get("pattern") {
                    self.text_states = self.text_states.max(self.add(pattern, most_bytes)?);
                }
                let by_name = members.get("patternProperties").and_then(Value::as_object);
                for pattern in by_name.into_iter().flat_map(Map::keys) {
                    self.name_states = self.name_states.max(self.add(pattern, most_bytes)?);
                }
                members
                    .values()
                    .try_fold(self, |sizes, member| sizes.with(member, most_bytes))
            }
            _ => Some(self),
        }
    }

    /// Adds the bytes of one pattern, and returns its states.
    fn add(&mut self, pattern: &str, most_bytes: u64) -> Option<u64> {
        let states = states(pattern);
        let bytes = states
            .saturating_mul(STATE_BYTES)
            .saturating_add(PATTERN_BYTES);
        self.bytes = self.bytes.saturating_add(bytes);
        (self.bytes <= most_bytes).then_some(states)
    }
}

/// The number of states that a pattern compiles to, roughly.
fn states(pattern: &str) -> u64 {
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
    use serde_json::json;

    use super::*;

    #[test]
    fn repetitions_multiply_and_what_is_unknown_counts_as_large() {
        assert!(states(r"^[\w-]{1,64}$") < 200);
        assert!(states("a{1000}") >= 1000);
        assert!(states("((a{100}){100}){100}") >= 1_000_000);
        assert_eq!(states("(?=x)y"), UNKNOWN);
        assert!(states("[é-ü]+") < 40);
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
    fn the_largest_pattern_for_texts_and_for_names_is_found_and_their_bytes_are_bounded() {
        let schema = json!({"properties": {"a": {"pattern": "a{100}"}, "b": {"pattern": "b{20}"}},
            "items": [{"patternProperties": {"^c{50}": {}, "d": {"pattern": "e"}}}]});
        let sizes = PatternSizes::default().with(&schema, u64::MAX).unwrap();
        assert_eq!(sizes.text_states, states("a{100}"));
        assert_eq!(sizes.name_states, states("^c{50}"));
        assert!(sizes.bytes > 5 * PATTERN_BYTES);
        assert!(PatternSizes::default().with(&schema, sizes.bytes).is_some());
        assert_eq!(PatternSizes::default().with(&schema, sizes.bytes - 1), None);
    }
}
