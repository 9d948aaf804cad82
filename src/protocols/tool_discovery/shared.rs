//! Texts that repeat within one document, kept once.

use std::collections::HashSet;
use std::sync::Arc;

/// The texts met so far: categories and tags.
#[derive(Debug, Default)]
pub(super) struct Shared(HashSet<Arc<str>>);

impl Shared {
    pub(super) fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.0.insert(new.clone());
        new
    }
}
