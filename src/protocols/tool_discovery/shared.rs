//! The texts of one document: short ones that repeat are kept once, long ones together.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::quality::RandomState;

use crate::model::TextBuffer;

/// The texts met so far.
#[derive(Debug)]
pub(super) struct Shared {
    /// Categories and tags.
    short: HashSet<Arc<str>, RandomState>,
    /// Descriptions, schemas and metadata.
    pub(super) long: TextBuffer,
}

impl Shared {
    /// For a document of so many bytes.
    pub(super) fn of(bytes: usize) -> Self {
        Self { short: HashSet::default(), long: TextBuffer::with_capacity(bytes) }
    }

    pub(super) fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.short.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.short.insert(new.clone());
        new
    }
}
