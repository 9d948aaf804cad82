//! What a tool waits for while its caller gives input.

use std::sync::Arc;

use jiff::Timestamp;

use crate::model::JsonText;

/// Input that a tool waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingInput {
    /// The id by which it is given.
    pub id: Arc<str>,
    /// The message for the user.
    pub message: String,
    /// The JSON Schema of the input, if the tool gives one.
    pub schema: Option<JsonText>,
    /// Until when it can be given; then it is declined.
    pub expires_at: Timestamp,
}
