//! What the tools of one document share: short texts and facts that repeat are kept once, long texts together.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::quality::RandomState;

use super::budget::{Budget, FACTS, of_text};
use super::flaw::Flaw;
use crate::model::text::Place;
use crate::model::{Facts, TextBlock, TextBuffer};

/// Schema of a tool without parameters.
const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;
/// Metadata of a tool that has none: the protocol's first consumer takes such a tool for disabled and without approval.
const NO_METADATA: &str = r#"{"enabled_by_default":false,"requires_approval":false}"#;

/// What was met so far.
#[derive(Debug)]
pub(super) struct Shared {
    /// Categories and tags. Seeded anew for each document, so that nobody can write texts that meet.
    short: HashSet<Arc<str>, RandomState>,
    facts: HashSet<Arc<Facts>, RandomState>,
    /// Descriptions, schemas and metadata.
    long: TextBuffer,
    /// Where [`NO_PARAMETERS`] is in it.
    pub(super) no_parameters: Place,
    /// Where [`NO_METADATA`] is in it.
    pub(super) no_metadata: Place,
    /// What may still be made of the document.
    pub(super) budget: Budget,
}

impl Shared {
    /// For a document of so many bytes.
    pub(super) fn of(bytes: usize) -> Self {
        let mut long = TextBuffer::default();
        Self {
            short: HashSet::default(),
            facts: HashSet::default(),
            no_parameters: long.put(NO_PARAMETERS),
            no_metadata: long.put(NO_METADATA),
            long,
            budget: Budget::of(bytes),
        }
    }

    /// A short text.
    pub(super) fn text(&mut self, text: &str) -> Result<Arc<str>, Flaw> {
        if let Some(known) = self.short.get(text) {
            return Ok(known.clone());
        }
        // Its line in the table takes as much again.
        self.budget.take(2 * of_text(text))?;
        let new: Arc<str> = text.into();
        self.short.insert(new.clone());
        Ok(new)
    }

    /// The facts of a tool.
    pub(super) fn facts(&mut self, facts: Facts) -> Result<Arc<Facts>, Flaw> {
        if let Some(known) = self.facts.get(&facts) {
            return Ok(known.clone());
        }
        self.budget.take(FACTS + size_of_val(&*facts.tags))?;
        let new = facts.shared();
        self.facts.insert(new.clone());
        Ok(new)
    }

    /// Puts a long text behind the others.
    pub(super) fn long(&mut self, text: &str) -> Result<Place, Flaw> {
        self.budget.take(text.len())?;
        Ok(self.long.put(text))
    }

    /// How far the long texts go; where [`cut_to`](Self::cut_to) goes back to.
    pub(super) fn filled(&self) -> usize {
        self.long.filled()
    }

    /// Takes out the long texts that came since they went so far.
    pub(super) fn cut_to(&mut self, filled: usize) {
        self.long.cut_to(filled);
    }

    /// Makes room for long texts of so many bytes.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.long.reserve(bytes);
    }

    /// Ends the filling with long texts; gives them.
    pub(super) fn finish(&mut self) -> TextBlock {
        std::mem::take(&mut self.long).finish()
    }
}
