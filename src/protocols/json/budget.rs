//! How much memory what is made of one document may take.
//!
//! A tool of fifteen bytes becomes a structure of three hundred, and a member that nobody knows one of eighty. Where tools have
//! descriptions and schemas, that is little beside their texts. A document that was written for it becomes twenty times as large as its
//! bytes, and many documents are read at once. So whatever is made is counted, and a part that goes beyond what is left is left out as
//! malformed.
//!
//! What is counted takes at most five times the bytes of the document and half a megabyte. With what is not counted (the places of the
//! items that are taken, the buffer of the texts, the findings), reading a document takes less than eight times its bytes and a megabyte,
//! whatever it holds.

use std::sync::Arc;

use super::flaw::Flaw;
use crate::model::{Facts, JsonText, Tool};

/// So many times the bytes of the document may be taken.
const TIMES: usize = 5;
/// What may be taken besides, however small the document is.
const BESIDES: usize = 512 * 1024;
/// What an allocation takes that is shared, besides what is in it: two counters, and where the text is.
pub(in crate::protocols) const SHARED: usize = 4 * size_of::<usize>();

/// What a tool takes besides its texts: while it is read, and in the manifest.
pub(in crate::protocols) const TOOL: usize = 2 * size_of::<Tool>() + SHARED;
/// What the facts of a tool take that no other tool has, with their lines in the tables of those in use.
pub(in crate::protocols) const FACTS: usize = size_of::<Facts>() + 3 * SHARED;
/// What a member takes that nobody knows, besides its name and its value.
pub(in crate::protocols) const MEMBER: usize = size_of::<(Arc<str>, JsonText)>();

/// What may still be taken.
#[derive(Debug)]
pub(in crate::protocols) struct DecodeBudget {
    whole: usize,
    left: usize,
}

impl DecodeBudget {
    /// For a document of so many bytes.
    pub(in crate::protocols) fn for_document(bytes: usize) -> Self {
        let whole = bytes.saturating_mul(TIMES).saturating_add(BESIDES);
        Self { whole, left: whole }
    }

    /// Bytes that may still be taken, also for a moment.
    pub(in crate::protocols) fn left(&self) -> usize {
        self.left
    }

    /// How many tools there may be, if each is as small as a tool can be.
    pub(in crate::protocols) fn tools(&self) -> usize {
        self.left / TOOL
    }

    /// Counts what is made of a part of the document. It stays counted if the part is left out after all.
    pub(in crate::protocols) fn take(&mut self, bytes: usize) -> Result<(), Flaw> {
        let Some(left) = self.left.checked_sub(bytes) else { return Err(self.exceeded()) };
        self.left = left;
        Ok(())
    }

    /// A part would take more than is left.
    pub(in crate::protocols) fn exceeded(&self) -> Flaw {
        let what = format!("takes more memory than is left of the {} bytes for a manifest of this size", self.whole);
        Flaw::new("", what).hint("leave out what is not set, and members that the protocol does not know")
    }
}

/// What a text takes that is shared by itself.
pub(in crate::protocols) fn shared_text_bytes(text: &str) -> usize {
    text.len() + SHARED
}
