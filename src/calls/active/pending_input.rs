//! Input that a tool waits for, until its caller gives it.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::model::JsonText;
use crate::protocols::InputWanted;

/// Input that a tool waits for. Dropping it declines.
pub struct PendingInput {
    /// The id by which it is given.
    pub id: Arc<str>,
    /// What the tool needs.
    pub wanted: InputWanted,
    /// Until when it can be given; then it is declined.
    pub expires_at: Timestamp,
    given: Mutex<Option<oneshot::Sender<JsonText>>>,
}

impl PendingInput {
    /// Input that is wanted until then, under a new id that cannot be guessed, and where it comes
    /// when it is given.
    pub(crate) fn new(
        wanted: InputWanted,
        expires_at: Timestamp,
    ) -> (Self, oneshot::Receiver<JsonText>) {
        let (given, received) = oneshot::channel();
        // 122 random bits from the system.
        let id = Uuid::new_v4().to_string().into();
        (
            Self {
                id,
                wanted,
                expires_at,
                given: Mutex::new(Some(given)),
            },
            received,
        )
    }

    /// Gives the result of the request: the text of one JSON object. Whether it was still waited
    /// for.
    pub(crate) fn give(&self, result: JsonText) -> bool {
        let given = self.given.lock().take();
        given.is_some_and(|waiting| waiting.send(result).is_ok())
    }
}

impl fmt::Debug for PendingInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingInput")
            .field("id", &self.id)
            .field("wanted", &self.wanted)
            .finish_non_exhaustive()
    }
}
