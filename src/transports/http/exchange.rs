//! A POST whose answer is one document or a stream of events, as MCP's Streamable HTTP has it.
//!
//! A redirect is followed within the origin when it keeps the method and the body (RFC 9110
//! sections 15.4.8 and 15.4.9): the server refused to do the work at the first address. Nothing is
//! repeated otherwise, and a status that is no success is an answer, too. What the messages mean is
//! not known here.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use tokio::sync::{MutexGuard, OwnedSemaphorePermit};

use super::connections::request;
use super::sse::{EventLimits, EventStream, is_event_stream};
use super::{Address, CallLimits, HttpResponse, ResponseHead, Unanswered, Upstream, failure};
use crate::transports::TransportError;

/// The answer to a POST.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "made once per answer and taken apart at once, never stored"
)]
pub enum StreamedResponse {
    /// The whole answer.
    Document(HttpResponse),
    /// A stream of events that has just begun.
    Events(ResponseHead, EventStream),
}

/// A place among the requests that may be under way at once, for polls. Dropping it frees the
/// place.
#[derive(Debug)]
pub struct PollTurn<'a> {
    _turn: MutexGuard<'a, ()>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Upstream {
    /// Sends one JSON document to the address itself. Either shape of answer is accepted; a stream
    /// of events is returned as soon as it begins, and its limits are those of `limits` too.
    ///
    /// Dropping the future, or the stream, closes the connection.
    pub async fn post_streamed(
        &self,
        body: impl Into<Bytes>,
        limits: &CallLimits,
    ) -> Result<StreamedResponse, Unanswered> {
        let address = self.address.called("").map_err(Unanswered::unsent)?;
        let exchange = self.exchange_streamed(address.clone(), body.into(), limits);
        // It may still have been connecting; that is not known here, so the worse is assumed.
        let timeout = |_| {
            Err(Unanswered::sent(TransportError::Timeout {
                url: address.to_string(),
                limit: limits.timeout,
            }))
        };
        let answered = tokio::time::timeout(limits.timeout, exchange)
            .await
            .unwrap_or_else(timeout);
        answered.map_err(|failed| failed.masked(&self.credentials.mask()))
    }

    async fn exchange_streamed(
        &self,
        mut address: Address,
        body: Bytes,
        limits: &CallLimits,
    ) -> Result<StreamedResponse, Unanswered> {
        let settings = self.client.settings.load_full();
        let mut redirects = 0;
        let mut attempt = self
            .attempt(&address, limits.repeatable)
            .await
            .map_err(Unanswered::unsent)?;
        loop {
            let mut headers = limits.headers.clone();
            headers.insert(
                ACCEPT,
                HeaderValue::from_static("application/json, text/event-stream"),
            );
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.extend(attempt.headers().clone());
            let request = request(Method::POST, &address, &headers, body.clone())
                .map_err(Unanswered::unsent)?;
            let requested = self.client.now();
            let answered = self
                .connections
                .call(request)
                .await
                .map_err(|error| Unanswered {
                    sent: !failure::unsent(&error),
                    error: failure::explain(&address, &error, settings.limits.connect),
                })?;
            let (answer, head) = self.received(answered, requested);
            if attempt
                .is_refused(head.status, &head.headers)
                .await
                .map_err(Unanswered::sent)?
            {
                continue;
            }
            let moved = matches!(
                head.status,
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            );
            if let Some(location) = head.headers.get(LOCATION).filter(|_| moved) {
                let refuse = |target| TransportError::Redirect {
                    url: address.to_string(),
                    target,
                };
                let next = address
                    .redirected(location)
                    .map_err(|target| Unanswered::unsent(refuse(target)))?;
                if redirects == settings.limits.max_redirects {
                    return Err(Unanswered::unsent(refuse(next.to_string())));
                }
                redirects += 1;
                address = next;
                continue;
            }
            if head.status.is_success() && is_event_stream(&head.headers) {
                let limits = EventLimits {
                    max_event: limits.max_body,
                    silence: limits.timeout,
                    per_minute: limits.max_body.saturating_mul(4),
                };
                let events = EventStream::new(self, &address, answer, limits);
                return Ok(StreamedResponse::Events(head, events));
            }
            let answer = self
                .read(limits.max_body, &address, answer, head)
                .await
                .map_err(Unanswered::sent)?;
            return Ok(StreamedResponse::Document(answer));
        }
    }

    /// Waits for a place among the polls that may be under way at once.
    pub async fn poll_turn(&self) -> PollTurn<'_> {
        // The turn comes first: a poll that cannot start yet must not take a permit.
        let turn = self.turn.lock().await;
        let permits = self.client.settings.load().permits.clone();
        // The semaphore is never closed.
        PollTurn {
            _turn: turn,
            _permit: permits.acquire_owned().await.ok(),
        }
    }

    /// The limits of one request of a poll.
    pub fn poll_limits(&self) -> CallLimits {
        let settings = self.client.settings.load();
        let most = settings.limits.max_body;
        let max_body = self.max_body.map_or(most, |own| own.min(most));
        CallLimits {
            timeout: settings.limits.whole,
            max_body,
            headers: HeaderMap::new(),
            repeatable: true,
        }
    }

    /// The address that this one refers to as a reference (RFC 3986 section 4.1), with the same
    /// credentials. Fails with [`TransportError::Redirect`] for another origin.
    pub fn redirected_to(&self, reference: &str) -> Result<Self, TransportError> {
        let mask = self.credentials.mask();
        let refuse = |target| {
            TransportError::Redirect {
                url: self.address.to_string(),
                target,
            }
            .masked(&mask)
        };
        let reference = HeaderValue::from_str(reference);
        let reference =
            reference.map_err(|_| refuse("an address that cannot be read".to_owned()))?;
        let address = self.address.redirected(&reference).map_err(refuse)?;
        Ok(Self {
            address,
            ..self.clone()
        })
    }
}
