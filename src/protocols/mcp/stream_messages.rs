//! The messages on the stream that answers one request.
//!
//! A legacy server may end the stream before the answer; it is opened again where it ended, after
//! the time that the server named. Answers to other requests are skipped. This module answers
//! nothing.

use std::collections::VecDeque;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::{Instant, sleep_until};

use super::deadline::UNTIMED;
use super::request::{Reply, RequestError};
use crate::protocols::json_rpc::{self, RpcMessage};
use crate::transports::TransportError;
use crate::transports::http::{EventLimits, EventStream, ResumePoint, ServerEvent, Upstream};

/// The most messages that are kept while a caller is waited for; further ones are dropped.
const KEPT: usize = 64;
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The messages of a stream that may concern one request.
pub(super) struct StreamMessages<'a> {
    upstream: &'a Upstream,
    /// The headers of the session, if its server may continue a stream.
    session: Option<HeaderMap>,
    events: Option<EventStream>,
    /// Where the stream ended that has to be opened again, and when that may be.
    ended: Option<(ResumePoint, Instant)>,
    read: VecDeque<RpcMessage>,
    /// The id of the request.
    id: u64,
    max_body: usize,
}

impl<'a> StreamMessages<'a> {
    /// Those of these events for the request with this id. With the headers of a session, a stream
    /// that ended early is opened again.
    pub(super) fn new(
        (upstream, session): (&'a Upstream, Option<HeaderMap>),
        events: EventStream,
        id: u64,
        max_body: usize,
    ) -> Self {
        Self { upstream, session, events: Some(events), ended: None, read: VecDeque::new(), id, max_body }
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

    /// The next event, of the stream or of the one that continues it. Cancel-safe.
    async fn event(&mut self) -> Result<ServerEvent, RequestError> {
        loop {
            if let Some(events) = &mut self.events {
                if let Some(event) = events.next().await.map_err(RequestError::Unanswered)? {
                    return Ok(event);
                }
                let point = events.resume_point().or_else(|| self.ended.take().map(|(point, _)| point));
                let now = self.upstream.now();
                self.ended = point.map(|point| (point.clone(), now + point.after));
                self.events = None;
            }
            let again = match &self.ended {
                Some((point, at)) => {
                    sleep_until(*at).await;
                    self.resume(&point.id).await?
                }
                None => None,
            };
            let message = "the stream ended before the answer".to_owned();
            let broken =
                || RequestError::Unanswered(TransportError::Broken { url: self.upstream.to_string(), message });
            self.events = Some(again.ok_or_else(broken)?);
        }
    }

    /// Opens the stream again after this event. `None` if it cannot be continued.
    async fn resume(&self, id: &str) -> Result<Option<EventStream>, RequestError> {
        let (Some(session), Ok(id)) = (&self.session, HeaderValue::from_str(id)) else { return Ok(None) };
        let mut headers = session.clone();
        headers.insert(LAST_EVENT_ID, id);
        let per_minute = self.max_body.saturating_mul(4);
        let limits = EventLimits { max_event: self.max_body, silence: UNTIMED, per_minute };
        self.upstream.events_with("", limits, headers).await.map_err(RequestError::Unanswered)
    }

    /// Reads one event.
    async fn read(&mut self) -> Result<(), RequestError> {
        let event = self.event().await?;
        if event.cut {
            let (url, limit) = (self.upstream.to_string(), self.max_body);
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
