//! The events of a daemon, as they come over one connection.

use super::MAX_ANSWER;
use crate::cli::sse;

/// Events as they come.
#[derive(Debug)]
pub(in crate::cli) struct DaemonEventStream {
    response: reqwest::Response,
    reader: sse::SseParser,
}

impl DaemonEventStream {
    /// The events in this answer.
    pub(super) fn new(response: reqwest::Response) -> Self {
        Self {
            response,
            reader: sse::SseParser::default(),
        }
    }

    /// The next event; `None` when the stream has ended, for any reason. Cancel-safe.
    pub(in crate::cli) async fn next(&mut self) -> Option<sse::SseEvent> {
        loop {
            if let Some(received) = self.reader.next() {
                return Some(received);
            }
            let chunk = self.response.chunk().await.ok()??;
            self.reader.push(&chunk);
            if self.reader.buffered() > MAX_ANSWER {
                return None;
            }
        }
    }
}
