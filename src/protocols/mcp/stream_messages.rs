//! The messages on the stream that answers one request.
//!
//! Answers to other requests are skipped. This module answers nothing.

use std::collections::VecDeque;

use super::request::{Reply, RequestError};
use crate::protocols::json_rpc::{self, RpcMessage};
use crate::transports::TransportError;
use crate::transports::http::EventStream;

/// The most messages that are kept while a caller is waited for; further ones are dropped.
const KEPT: usize = 64;

/// The messages of a stream that may concern one request.
pub(super) struct StreamMessages {
    events: EventStream,
    read: VecDeque<RpcMessage>,
    /// The id of the request.
    id: u64,
    max_body: usize,
    url: String,
}

impl StreamMessages {
    /// Those of these events for the request with this id.
    pub(super) fn new(events: EventStream, id: u64, (max_body, url): (usize, &str)) -> Self {
        Self { events, read: VecDeque::new(), id, max_body, url: url.to_owned() }
    }

    /// The next one. The error says why none comes any more.
    pub(super) async fn next(&mut self) -> Result<RpcMessage, RequestError> {
        loop {
            if let Some(message) = self.read.pop_front() {
                return Ok(message);
            }
            self.read().await?;
        }
    }

    /// Waits for the reply, and keeps other messages for later.
    pub(super) async fn reply(&mut self) -> Result<Reply, RequestError> {
        loop {
            for message in &self.read {
                if let RpcMessage::Response { result, .. } = message {
                    return Ok(result.clone());
                }
            }
            self.read.truncate(KEPT);
            self.read().await?;
        }
    }

    /// Reads one event.
    async fn read(&mut self) -> Result<(), RequestError> {
        let broken = || {
            let message = "the stream ended before the answer".to_owned();
            RequestError::Unanswered(TransportError::Broken { url: self.url.clone(), message })
        };
        let event = self.events.next().await.map_err(RequestError::Unanswered)?.ok_or_else(broken)?;
        if event.cut {
            let (url, limit) = (self.url.clone(), self.max_body);
            return Err(RequestError::Unanswered(TransportError::TooLarge { url, limit }));
        }
        if event.event == "message" {
            // What cannot be read is no answer to this request; the stream goes on.
            let messages = json_rpc::parse(&event.data).unwrap_or_default();
            self.read.extend(messages.into_iter().filter(|message| match message {
                RpcMessage::Response { id, .. } => id.is_none_or(|id| id == self.id),
                _ => true,
            }));
        }
        Ok(())
    }
}
