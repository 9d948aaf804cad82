//! Limits the memory for what is made of one document.
//!
//! A tool of fifteen bytes becomes a structure of three hundred bytes, and an unknown member one of
//! eighty. With usual descriptions and schemas that is little beside the texts. But a document can
//! be written so that it becomes twenty times as large as its bytes, and many documents are read at
//! once. So everything that is made is counted, and a part that needs more than is left is left out
//! as malformed.
//!
//! What is counted takes at most five times the bytes of the document and half a megabyte. With
//! what is not counted (the list of the selected items, the buffer of the texts, the findings),
//! reading a document takes less than eight times its bytes and a megabyte, whatever it contains.

use std::sync::Arc;

use super::flaw::Flaw;
use crate::json::tree::{Node, TreeFlaw};
use crate::model::{Facts, JsonText, Tool};

/// The budget in multiples of the document's bytes.
const TIMES: usize = 5;
/// The bytes added to that, however small the document is.
const BESIDES: usize = 512 * 1024;
/// The overhead of a shared allocation: two counters, and the pointer and length of the text.
pub(in crate::protocols) const SHARED: usize = 4 * size_of::<usize>();

/// The bytes of a tool without its texts: while it is read, and in the manifest.
pub(in crate::protocols) const TOOL: usize = 2 * size_of::<Tool>() + SHARED;
/// The bytes of facts that only one tool has, with their entries in the tables of facts in use.
pub(in crate::protocols) const FACTS: usize = size_of::<Facts>() + 3 * SHARED;
/// The bytes of an unknown member without its name and value.
pub(in crate::protocols) const MEMBER: usize = size_of::<(Arc<str>, JsonText)>();

/// The memory that may still be used.
#[derive(Debug)]
pub(in crate::protocols) struct DecodeBudget {
    whole: usize,
    left: usize,
}

impl DecodeBudget {
    /// The budget for a document of this many bytes.
    pub(in crate::protocols) fn for_document(bytes: usize) -> Self {
        let whole = bytes.saturating_mul(TIMES).saturating_add(BESIDES);
        Self { whole, left: whole }
    }

    /// The tree of a valid JSON text, if it takes no more than is left.
    pub(in crate::protocols) fn tree<'a>(&self, text: &'a str) -> Result<Node<'a>, Flaw> {
        Node::parse(text, self.left).map_err(|flaw| match flaw {
            TreeFlaw::TooDeep => Flaw::too_deep(),
            TreeFlaw::TooLarge => self.exceeded(),
            TreeFlaw::BrokenString => Flaw::broken_string(),
            TreeFlaw::NumberTooLarge => Flaw::number_too_large(),
        })
    }

    /// The most tools that fit, if each is as small as a tool can be.
    pub(in crate::protocols) fn tools(&self) -> usize {
        self.left / TOOL
    }

    /// Counts the bytes of a part of the document. They stay counted if the part is left out later.
    pub(in crate::protocols) fn take(&mut self, bytes: usize) -> Result<(), Flaw> {
        let Some(left) = self.left.checked_sub(bytes) else {
            return Err(self.exceeded());
        };
        self.left = left;
        Ok(())
    }

    /// The flaw of a part that needs more than is left.
    pub(in crate::protocols) fn exceeded(&self) -> Flaw {
        let what = format!(
            "takes more memory than is left of the {} bytes for a manifest of this size",
            self.whole
        );
        Flaw::new("", what)
            .hint("leave out what is not set, and members that the protocol does not know")
    }
}

/// The bytes of a text in a shared allocation of its own.
pub(in crate::protocols) fn shared_text_bytes(text: &str) -> usize {
    text.len() + SHARED
}
