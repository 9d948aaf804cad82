//! What the model gets for one call, before a vendor's shape is given to it.

use super::read::ReadCall;
use crate::model::JsonText;

/// The answer to one call.
#[derive(Debug)]
pub struct ModelAnswer<'a> {
    /// The call.
    pub call: &'a ReadCall,
    /// Whether it is marked as an error, where the vendor has a mark.
    pub is_error: bool,
    /// What it says. There is at least one text or file.
    pub blocks: Vec<ModelBlock>,
    /// The result as JSON, if the blocks say the same and no more.
    pub value: Option<JsonText>,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelBlock {
    /// A text.
    Text(String),
    /// A file that the vendor takes.
    File {
        /// Its media type.
        media_type: String,
        /// Its bytes, in base64.
        data: String,
    },
}

impl ModelAnswer<'_> {
    /// All its texts.
    pub(super) fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            ModelBlock::Text(text) => Some(text.as_str()),
            ModelBlock::File { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Whether it is made of texts alone.
    pub(super) fn is_text(&self) -> bool {
        self.blocks
            .iter()
            .all(|block| matches!(block, ModelBlock::Text(_)))
    }

    /// All its texts, for vendors without a mark for errors.
    pub(super) fn marked_text(&self) -> String {
        if self.is_error {
            format!("Error: {}", self.text())
        } else {
            self.text()
        }
    }
}
