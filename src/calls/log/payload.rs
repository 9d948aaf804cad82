//! Arguments and results in the log, where the operator wants them (`calls.log_payloads`).
//!
//! A text is kept up to the configured size, with the size that it had. Secrets that callsheet
//! sends to the scenario are replaced in it: in results where they entered, in arguments here.

use serde::{Deserialize, Serialize};

use crate::model::text::beginning;

/// Bytes beyond the configured size in which secrets are replaced, so that none is cut in two.
const MASKED_BEYOND: usize = 32 * 1024;

/// The arguments and the result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPayload {
    /// The arguments as the caller sent them.
    pub arguments: KeptText,
    /// The result, if the scenario gave one.
    pub result: Option<KeptText>,
}

/// JSON, or the beginning of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptText {
    /// What is kept of it.
    pub text: String,
    /// Bytes of the whole text.
    pub bytes: u64,
    /// Whether its end is not kept.
    pub cut: bool,
}

impl CallPayload {
    /// What is kept of a call: of each text at most `most` bytes, of the arguments with their
    /// secrets replaced by `masked`.
    pub(in crate::calls) fn new(
        arguments: &str,
        result: Option<&str>,
        most: usize,
        masked: impl FnOnce(String) -> String,
    ) -> Self {
        let arguments = KeptText::new(arguments, most, masked);
        Self {
            arguments,
            result: result.map(|result| KeptText::new(result, most, |text| text)),
        }
    }

    /// Bytes of its texts.
    pub(super) fn bytes(&self) -> usize {
        self.arguments.text.len() + self.result.as_ref().map_or(0, |result| result.text.len())
    }
}

impl KeptText {
    fn new(whole: &str, most: usize, masked: impl FnOnce(String) -> String) -> Self {
        let read = beginning(whole, most.saturating_add(MASKED_BEYOND));
        let mut text = masked(read.to_owned());
        let kept = beginning(&text, most).len();
        let cut = kept < text.len() || read.len() < whole.len();
        text.truncate(kept);
        text.shrink_to_fit();
        Self {
            text,
            bytes: whole.len() as u64,
            cut,
        }
    }
}
