//! Sending a call: one POST of JSON, or one request of any other kind, whose answer is taken
//! whatever its status.
//!
//! Calls run side by side and keep a few idle connections. No request is repeated once bytes may
//! have been sent, except with renewed credentials where the caller's limits allow it after a
//! refusal, and no redirect is followed: what a tool does must happen neither twice nor elsewhere.
//! How many are under way is decided elsewhere.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use url::Url;

use super::connections::request;
use super::{Address, HttpResponse, Upstream, failure};
use crate::transports::{Mask, TransportError};

/// What one request may cost, and what goes with it.
#[derive(Debug, Clone)]
pub struct CallLimits {
    /// From the start to the last byte of the answer, connecting included.
    pub timeout: Duration,
    /// Bytes of the answer's body.
    pub max_body: usize,
    /// Headers of a protocol, besides those of every request and the credentials of the target.
    pub headers: HeaderMap,
    /// Whether the request may be sent again after the server refused its credential: it changes
    /// nothing there, or nothing more when it is sent twice. Never the call of a tool.
    pub repeatable: bool,
}

/// No usable answer came.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{error}")]
pub struct Unanswered {
    /// Why.
    pub error: TransportError,
    /// Whether anything may have been sent. If not, no server has seen the request, and it may be
    /// sent again.
    pub sent: bool,
}

impl Unanswered {
    pub(super) fn unsent(error: TransportError) -> Self {
        Self { error, sent: false }
    }

    /// The same with the secrets in what a server sent masked.
    pub(super) fn masked(self, mask: &Mask) -> Self {
        Self {
            error: self.error.masked(mask),
            ..self
        }
    }

    pub(super) fn sent(error: TransportError) -> Self {
        Self { error, sent: true }
    }
}

impl Upstream {
    /// Sends one JSON document to `path` below the base address. Every status is an answer, a
    /// redirect too.
    ///
    /// Cancel-safe: no state remains here; the scenario may have begun the work.
    pub async fn post(
        &self,
        path: &str,
        body: impl Into<Bytes>,
        limits: &CallLimits,
    ) -> Result<HttpResponse, Unanswered> {
        let address = self.address.called(path).map_err(Unanswered::unsent)?;
        let mut limits = limits.clone();
        limits
            .headers
            .entry(CONTENT_TYPE)
            .or_insert(HeaderValue::from_static("application/json"));
        self.send_once(Method::POST, &address, body.into(), &limits)
            .await
    }

    /// Sends one request of any method to an address of this origin. Every status is an answer, a
    /// redirect too, and the headers are those of `limits` and of the credentials.
    ///
    /// Cancel-safe: no state remains here; the server may have begun the work.
    ///
    /// # Errors
    /// [`TransportError::Address`] for an address of another origin.
    pub async fn request(
        &self,
        method: Method,
        url: Url,
        body: Bytes,
        limits: &CallLimits,
    ) -> Result<HttpResponse, Unanswered> {
        let address = self.address.sibling(url).map_err(Unanswered::unsent)?;
        self.send_once(method, &address, body, limits).await
    }

    async fn send_once(
        &self,
        method: Method,
        address: &Address,
        body: Bytes,
        limits: &CallLimits,
    ) -> Result<HttpResponse, Unanswered> {
        let connect = self.client.settings.load().limits.connect;
        let exchange = async {
            let mut attempt = self
                .attempt(address, limits.repeatable)
                .await
                .map_err(Unanswered::unsent)?;
            loop {
                let mut headers = limits.headers.clone();
                headers.extend(attempt.headers().clone());
                let request = request(method.clone(), address, &headers, body.clone())
                    .map_err(Unanswered::unsent)?;
                let requested = self.client.now();
                let answered =
                    self.connections
                        .call(request)
                        .await
                        .map_err(|error| Unanswered {
                            sent: !failure::unsent(&error),
                            error: failure::explain(address, &error, connect),
                        })?;
                let (body, head) = self.received(answered, requested);
                if attempt
                    .is_refused(head.status, &head.headers)
                    .await
                    .map_err(Unanswered::sent)?
                {
                    continue;
                }
                return self
                    .read(limits.max_body, address, body, head)
                    .await
                    .map_err(Unanswered::sent);
            }
        };
        match tokio::time::timeout(limits.timeout, exchange).await {
            Ok(answered) => answered.map_err(|failed| failed.masked(&self.credentials.mask())),
            // It may still have been connecting; that is unknown, so the worse case is assumed.
            Err(_) => Err(Unanswered::sent(TransportError::Timeout {
                url: address.to_string(),
                limit: limits.timeout,
            })),
        }
    }
}
