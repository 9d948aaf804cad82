//! What a conversation carries: the tools of an earlier list in their order, as a text that the
//! client sends back.
//!
//! The text holds all that is needed, so the daemon stores no state for a conversation: the text
//! stays valid after a restart and at another daemon, and equal requests have equal answers. It
//! holds no names of tools, only digests of their identities and of their written forms.

use std::fmt::{self, Write};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::model::ToolId;

/// One tool of a list as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToolMark {
    /// Digest of its identity.
    pub tool: u32,
    /// Digest of what was written of it.
    pub content: u16,
}

/// Tools of an earlier list, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct StickyTools {
    marks: Arc<[ToolMark]>,
    unreadable: bool,
}

/// Hexadecimal digits of one tool: 8 of its identity and 4 of its content.
const DIGITS: usize = 12;

impl ToolMark {
    /// The mark of a tool of which this was written.
    pub fn new(id: &ToolId, written: &[u8]) -> Self {
        let [a, b, ..] = xxh3_64(written).to_be_bytes();
        Self {
            tool: digest(id),
            content: u16::from_be_bytes([a, b]),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (tool, content) = text.split_at_checked(8)?;
        Some(Self {
            tool: u32::from_str_radix(tool, 16).ok()?,
            content: u16::from_str_radix(content, 16).ok()?,
        })
    }
}

fn digest(id: &ToolId) -> u32 {
    let [a, b, c, d, ..] = xxh3_64(id.to_string().as_bytes()).to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

impl StickyTools {
    /// Most tools that are carried. The text of more would be longer than what servers and proxies
    /// take as a header.
    pub const MOST: usize = 400;

    /// The text of what was written; `None` for more tools than [`StickyTools::MOST`].
    pub fn text(marks: &[ToolMark]) -> Option<String> {
        let mut text = String::with_capacity(marks.len() * DIGITS);
        for ToolMark { tool, content } in marks {
            let _ = write!(text, "{tool:08x}{content:04x}");
        }
        (marks.len() <= Self::MOST).then_some(text)
    }

    /// Reads such a text. An invalid text carries no tools and is marked as invalid: a conversation
    /// must not fail for it.
    pub fn parse(text: &str) -> Self {
        let legal =
            text.bytes().all(|byte| byte.is_ascii_hexdigit()) && text.len() <= Self::MOST * DIGITS;
        let bytes = if legal { text.as_bytes() } else { &[] };
        let mark = |chunk: &[u8]| ToolMark::parse(std::str::from_utf8(chunk).ok()?);
        let marks: Option<Arc<[ToolMark]>> = (legal && text.len().is_multiple_of(DIGITS))
            .then(|| bytes.chunks(DIGITS).map(mark).collect())
            .flatten();
        Self {
            unreadable: marks.is_none(),
            marks: marks.unwrap_or_default(),
        }
    }

    /// Whether the text was invalid.
    pub fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// The tools, in order.
    pub fn marks(&self) -> &[ToolMark] {
        &self.marks
    }

    /// Where a tool stood.
    pub(super) fn places(&self) -> impl Fn(&ToolId) -> Option<usize> {
        let mut places: Vec<(u32, usize)> = self
            .marks
            .iter()
            .enumerate()
            .map(|(at, mark)| (mark.tool, at))
            .collect();
        places.sort_unstable();
        move |id| {
            let at = places
                .binary_search_by_key(&digest(id), |(tool, _)| *tool)
                .ok()?;
            places.get(at).map(|(_, place)| *place)
        }
    }
}

impl fmt::Display for StickyTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::text(&self.marks).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_anything_else_carries_nothing() {
        let marks = ["a/b", "b/c"].map(|id| ToolMark::new(&id.parse().unwrap(), id.as_bytes()));
        let text = StickyTools::text(&marks).unwrap();
        assert_eq!(text.len(), 24);
        let read = StickyTools::parse(&text);
        assert_eq!(read.marks(), marks);
        assert!(!read.is_unreadable());
        assert_eq!(read.to_string(), text.clone());
        assert!(!StickyTools::parse("").is_unreadable());
        let long = "0".repeat((StickyTools::MOST + 1) * DIGITS);
        for invalid in [
            "x",
            "00",
            &text[1..],
            "+0000000000a",
            "00000000\u{e4}00",
            &long,
        ] {
            let read = StickyTools::parse(invalid);
            assert!(read.is_unreadable() && read.marks().is_empty(), "{invalid}");
        }
        assert!(StickyTools::text(&vec![marks[0]; StickyTools::MOST + 1]).is_none());
    }

    #[test]
    fn a_tool_that_is_carried_is_found_at_its_place() {
        let ids: Vec<ToolId> = ["b/c", "a/b", "c/d"]
            .iter()
            .map(|id| id.parse().unwrap())
            .collect();
        let marks: Vec<ToolMark> = ids[..2].iter().map(|id| ToolMark::new(id, b"")).collect();
        let carried = StickyTools::parse(&StickyTools::text(&marks).unwrap());
        let places = carried.places();
        assert_eq!(
            ids.iter().map(&places).collect::<Vec<_>>(),
            [Some(0), Some(1), None]
        );
    }
}
