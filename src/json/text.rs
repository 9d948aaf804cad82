//! JSON that is kept as its text.

use std::fmt;
use std::sync::Arc;

use super::scan::Tokens;

/// The text of one valid JSON value, shared: clones point to the same bytes. Equal when the texts
/// are.
///
/// Kept instead of a tree, which costs seven times the memory, and instead of `serde_json`'s own
/// raw value, which is copied twice on its way behind an `Arc` and checked again wherever a text
/// was written here.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonText(Arc<str>);

impl JsonText {
    /// Keeps a text that is one JSON value, blanks around it left out. Fails with the reader's own
    /// words when it is none.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let raw: &serde_json::value::RawValue = serde_json::from_str(text)?;
        Ok(Self(raw.get().into()))
    }

    /// Keeps a text that was checked, or written from what was checked.
    pub(crate) fn known(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Whether lists and objects nest deeper than so many levels. Most readers stop somewhere.
    pub(crate) fn nests_deeper_than(&self, levels: usize) -> bool {
        let mut depth = 0_usize;
        Tokens::new(&self.0).any(|token| {
            match token.first {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth > levels
        })
    }

    /// Whether both are the same text in memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The text.
    pub fn get(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_one_value_and_refuses_the_rest() {
        assert_eq!(JsonText::parse(" {\"a\": 1} ").unwrap().get(), "{\"a\": 1}");
        for text in ["", "{", "{} {}", "nul", "{a:1}"] {
            assert!(JsonText::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn depth_counts_no_brackets_within_strings() {
        let brackets = format!("\"{}\\\"{}\"", "[".repeat(200), "{".repeat(200));
        assert!(!JsonText::parse(&brackets).unwrap().nests_deeper_than(0));
        let nested = JsonText::parse(r#"[{"a":[]},[[1]]]"#).unwrap();
        assert!(!nested.nests_deeper_than(3));
        assert!(nested.nests_deeper_than(2));
    }
}
