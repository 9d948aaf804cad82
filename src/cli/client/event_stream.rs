//! The events of a daemon, as they come over one connection.

use bytes::Bytes;

use super::MAX_ANSWER;
use crate::transports::http::EventParser;

/// Events as they come.
#[derive(Debug)]
pub(in crate::cli) struct DaemonEventStream {
    response: reqwest::Response,
    /// What came and was not read yet.
    rest: Bytes,
    parser: EventParser,
}

/// One event.
#[derive(Debug)]
pub(in crate::cli) struct DaemonEvent {
    /// The latest id that the stream gave; empty when none.
    pub(in crate::cli) id: String,
    /// Its name.
    pub(in crate::cli) event: String,
    /// Its data.
    pub(in crate::cli) data: String,
}

impl DaemonEventStream {
    /// The events in this answer.
    pub(super) fn new(response: reqwest::Response) -> Self {
        Self {
            response,
            rest: Bytes::new(),
            parser: EventParser::new(MAX_ANSWER),
        }
    }

    /// The next event; `None` when the stream has ended, for any reason, or has an event that is
    /// too large. Cancel-safe.
    pub(in crate::cli) async fn next(&mut self) -> Option<DaemonEvent> {
        loop {
            if let Some(received) = self.parser.read(&mut self.rest) {
                return (!received.cut).then(|| DaemonEvent {
                    id: self.parser.last_id(),
                    event: received.event,
                    data: received.data,
                });
            }
            self.rest = self.response.chunk().await.ok()??;
        }
    }
}
