//! Texts that stand in one buffer.
//!
//! A manifest has three longer texts for each tool. As allocations of their own they cost a fleet of 20,000 tools two megabytes more, and
//! the time of 60,000 allocations; together they are one.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A shared text: a part of a bigger one, or all of one of its own. Clones point to the same bytes. Equal when the texts are, wherever
/// they stand. It keeps the whole buffer alive.
///
/// A fleet of 10,000 scenarios has 600,000 of these, so places are numbers of 32 bits: what would end beyond 4 GiB is taken to be empty.
#[derive(Clone)]
pub struct SharedText {
    whole: Arc<Box<str>>,
    /// Always within `whole`, at the bounds of characters.
    start: u32,
    length: u32,
}

/// A buffer that is being filled.
#[derive(Debug, Default)]
pub struct TextBuffer(String);

/// A filled buffer.
#[derive(Debug, Clone)]
pub struct TextBlock(pub(super) Arc<Box<str>>);

/// Where a text stands in the buffer that it was put into.
#[derive(Debug, Clone)]
pub struct Place(Range<usize>);

impl TextBuffer {
    /// An empty buffer that need not grow for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(String::with_capacity(bytes))
    }

    /// Makes room for so many bytes more.
    pub fn reserve(&mut self, bytes: usize) {
        self.0.reserve_exact(bytes);
    }

    /// Puts a text behind the others.
    pub fn put(&mut self, text: &str) -> Place {
        let start = self.0.len();
        self.0.push_str(text);
        Place(start..self.0.len())
    }

    /// How many bytes stand in it; where [`cut_to`](Self::cut_to) goes back to.
    pub fn filled(&self) -> usize {
        self.0.len()
    }

    /// Takes out what was put in since it was filled so far.
    pub fn cut_to(&mut self, filled: usize) {
        self.0.truncate(filled);
    }

    /// Ends the filling; no byte more than was put in is kept.
    pub fn finish(self) -> TextBlock {
        TextBlock(Arc::new(self.0.into_boxed_str()))
    }
}

impl TextBlock {
    /// The text at a place of the same buffer; empty for a place that it does not have.
    pub fn text(&self, place: &Place) -> SharedText {
        let range = if self.0.get(place.0.clone()).is_some() { place.0.clone() } else { 0..0 };
        SharedText::cut(Arc::clone(&self.0), &range)
    }
}

impl SharedText {
    /// All of a text.
    pub(super) fn whole(whole: Arc<Box<str>>) -> Self {
        let range = 0..whole.len();
        Self::cut(whole, &range)
    }

    /// A part that the text has.
    fn cut(whole: Arc<Box<str>>, range: &Range<usize>) -> Self {
        match (u32::try_from(range.start), u32::try_from(range.len())) {
            (Ok(start), Ok(length)) => Self { whole, start, length },
            _ => Self { whole, start: 0, length: 0 },
        }
    }

    /// Whether both are the same bytes in memory.
    #[cfg(test)]
    pub(super) fn stands_with(&self, other: &Self) -> bool {
        std::ptr::eq(&raw const **self, &raw const **other)
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        let start = self.start as usize;
        self.whole.get(start..start + self.length as usize).unwrap_or_default()
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self::whole(Arc::new(text.into_boxed_str()))
    }
}

impl AsRef<str> for SharedText {
    fn as_ref(&self) -> &str {
        self
    }
}

impl PartialEq for SharedText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SharedText {}

impl Hash for SharedText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_one_buffer_are_like_texts_of_their_own() {
        let mut buffer = TextBuffer::with_capacity(16);
        let first = buffer.put("tea ☕");
        let filled = buffer.filled();
        let lost = buffer.put("spilled");
        buffer.cut_to(filled);
        let second = buffer.put("é");
        let block = buffer.finish();
        assert_eq!(block.text(&first), SharedText::from("tea ☕"));
        assert_eq!(&*block.text(&second), "é");
        assert_eq!(&*block.text(&lost), "", "it is not there any more");
    }
}
