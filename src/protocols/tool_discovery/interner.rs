//! What the tools of one document share: short texts and facts that repeat are kept once.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::quality::RandomState;

use super::budget::{DecodeBudget, FACTS, shared_text_bytes};
use super::flaw::Flaw;
use crate::model::{Facts, JsonText};

/// Schema of a tool without parameters.
const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;
/// Metadata of a tool that has none: the protocol's first consumer takes such a tool for disabled
/// and without approval.
const NO_METADATA: &str = r#"{"enabled_by_default":false,"requires_approval":false}"#;

/// What was met so far.
#[derive(Debug)]
pub(super) struct Interner {
    /// Categories and tags. Seeded anew for each document, so that no document can be written with
    /// colliding texts.
    short: HashSet<Arc<str>, RandomState>,
    facts: HashSet<Arc<Facts>, RandomState>,
    /// [`NO_PARAMETERS`].
    pub(super) no_parameters: JsonText,
    /// [`NO_METADATA`].
    pub(super) no_metadata: JsonText,
    /// What may still be made of the document.
    pub(super) budget: DecodeBudget,
}

impl Interner {
    /// For a document of so many bytes.
    pub(super) fn for_document(bytes: usize) -> Self {
        Self {
            short: HashSet::default(),
            facts: HashSet::default(),
            no_parameters: JsonText::known(NO_PARAMETERS),
            no_metadata: JsonText::known(NO_METADATA),
            budget: DecodeBudget::for_document(bytes),
        }
    }

    /// A short text.
    pub(super) fn text(&mut self, text: &str) -> Result<Arc<str>, Flaw> {
        if let Some(known) = self.short.get(text) {
            return Ok(known.clone());
        }
        // Its line in the table takes as much again.
        self.budget.take(2 * shared_text_bytes(text))?;
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
        let new = Arc::new(facts);
        self.facts.insert(new.clone());
        Ok(new)
    }

    /// A text that no other tool is expected to have.
    pub(super) fn own(&mut self, text: &str) -> Result<Arc<str>, Flaw> {
        self.budget.take(shared_text_bytes(text))?;
        Ok(text.into())
    }

    /// The same for a JSON text that was checked.
    pub(super) fn json(&mut self, text: &str) -> Result<JsonText, Flaw> {
        Ok(JsonText::known(self.own(text)?))
    }
}
