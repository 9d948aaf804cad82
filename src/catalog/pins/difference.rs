//! What is pinned, and how it differs from what was accepted.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::catalog::definition_diff::DefinitionDifference;
use crate::model::{DefinitionVersion, Tool};

/// The member of a scenario's own description that holds its instructions for models.
pub(super) const INSTRUCTIONS: &str = "instructions";

/// What a difference is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PinSubject {
    /// The instructions of the server.
    Instructions,
    /// The tool with this original name.
    Tool(Arc<str>),
}

/// How something differs from what was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinChange {
    /// It has another definition.
    Changed,
    /// It was not there.
    New,
    /// It is not there any more.
    Removed,
}

/// One difference.
#[derive(Debug, Clone)]
pub struct PinDifference {
    /// What differs.
    pub subject: PinSubject,
    /// How.
    pub change: PinChange,
    /// The version that was accepted.
    pub accepted: Option<DefinitionVersion>,
    /// What is there now.
    pub offered: Option<PinnedText>,
    /// Since when it is as it is.
    pub since: Timestamp,
    /// Whether it changed more than three times in a week.
    pub is_frequent: bool,
    /// What was accepted.
    pub(super) before: Option<AcceptedText>,
}

/// A definition, or the text of instructions.
#[derive(Debug, Clone, PartialEq)]
pub enum PinnedText {
    /// The definition of a tool.
    Tool(Arc<Tool>),
    /// Instructions.
    Instructions(Arc<str>),
}

/// What an operator accepts: this version, or that it is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedPin {
    /// What is accepted.
    pub subject: PinSubject,
    /// The version that was shown; `None` if it was shown as removed.
    pub version: Option<DefinitionVersion>,
}

/// What is known of an accepted text.
#[derive(Debug, Clone)]
pub(super) enum AcceptedText {
    /// The text itself, shared with the manifest that has it.
    Known(PinnedText),
    /// What was stored. Boxed, since few are after the first look.
    Stored(Box<StoredVersion>),
}

/// What was stored of an accepted text.
#[derive(Debug, Clone)]
pub(super) struct StoredVersion {
    pub(super) version: DefinitionVersion,
    /// The document of the text, if it was kept.
    pub(super) document: Option<Arc<str>>,
}

impl PinnedText {
    /// The version of it.
    pub fn version(&self) -> DefinitionVersion {
        match self {
            Self::Tool(tool) => tool.version(),
            Self::Instructions(text) => DefinitionVersion::of_instructions(text),
        }
    }

    /// All of it that counts, as one document.
    pub(super) fn document(&self) -> Value {
        match self {
            Self::Tool(tool) => tool.definition_document(),
            Self::Instructions(text) => serde_json::json!({ INSTRUCTIONS: &**text }),
        }
    }

    /// Whether both say the same. Versions are computed only where the texts differ.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tool(one), Self::Tool(other)) if Arc::ptr_eq(one, other) => true,
            _ => self == other || self.version() == other.version(),
        }
    }
}

impl AcceptedText {
    pub(super) fn version(&self) -> DefinitionVersion {
        match self {
            Self::Known(text) => text.version(),
            Self::Stored(stored) => stored.version,
        }
    }

    pub(super) fn is(&self, offered: &PinnedText) -> bool {
        match self {
            Self::Known(text) => text.is(offered),
            Self::Stored(stored) => stored.version == offered.version(),
        }
    }

    /// What differs from it now, if it is known.
    pub(super) fn difference(&self, offered: &PinnedText) -> Option<DefinitionDifference> {
        let before = match self {
            Self::Known(text) => text.document(),
            Self::Stored(stored) => serde_json::from_str(stored.document.as_deref()?).ok()?,
        };
        let now = offered.document();
        Some(DefinitionDifference::between_documents(&before, &now))
    }
}

impl PinSubject {
    /// The name of the tool, if it is one.
    pub fn tool(&self) -> Option<&Arc<str>> {
        match self {
            Self::Tool(name) => Some(name),
            Self::Instructions => None,
        }
    }
}

impl PinDifference {
    /// Whether it is held where changes are: what is gone cannot be.
    pub fn is_held(&self) -> bool {
        self.change != PinChange::Removed
    }

    /// The version that it has now.
    pub fn version(&self) -> Option<DefinitionVersion> {
        self.offered.as_ref().map(PinnedText::version)
    }

    /// The parts in which a changed one differs; `None` if there is no other text, or the accepted
    /// one is not kept.
    pub fn difference(&self) -> Option<DefinitionDifference> {
        self.before.as_ref()?.difference(self.offered.as_ref()?)
    }

    /// What accepts it.
    pub fn as_shown(&self) -> AcceptedPin {
        AcceptedPin {
            subject: self.subject.clone(),
            version: self.version(),
        }
    }
}
