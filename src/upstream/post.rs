//! Sending a call: one POST of JSON, whose answer is taken whatever its status.
//!
//! Calls run side by side and keep a few idle connections of their own. Nothing is repeated once bytes may have been sent, and no redirect
//! is followed: what a tool does must happen neither twice nor elsewhere. How many are under way is not this module's business.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use super::client::read;
use super::dial::TARGET;
use super::failure::Failure;
use super::plain::{Head, Plain};
use super::{Address, Answer, AskError, Client, Upstream, failure};

/// What one request may cost, and what goes with it.
#[derive(Debug, Clone)]
pub struct CallLimits {
    /// From the start to the last byte of the answer, connecting included.
    pub timeout: Duration,
    /// Bytes of the answer's body.
    pub max_body: usize,
    /// Headers besides those of every request, such as an authorization. Never logged here.
    pub headers: HeaderMap,
}

/// No usable answer came.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{error}")]
pub struct Unanswered {
    /// Why.
    pub error: AskError,
    /// Whether anything may have been sent. When not, nobody has seen the request, and it may be sent again.
    pub sent: bool,
}

impl Unanswered {
    fn unsent(error: AskError) -> Self {
        Self { error, sent: false }
    }

    fn sent(error: AskError) -> Self {
        Self { error, sent: true }
    }
}

impl Upstream {
    /// Sends one JSON document to `path` below the base address. Every status is an answer, a redirect too.
    ///
    /// Cancel-safe in that nothing is left behind here; the scenario may have begun what it was asked to do.
    pub async fn post(&self, path: &str, body: impl Into<Bytes>, limits: &CallLimits) -> Result<Answer, Unanswered> {
        if let Some(name) = self.local() {
            let message = format!("`{name}` is inside this program, where nothing is sent");
            return Err(Unanswered::unsent(AskError::Address(message)));
        }
        let target = self.address.target(path).map_err(Unanswered::unsent)?;
        let address = &target.address;
        let (client, settings, body) = (&self.client, self.client.settings.load_full(), body.into());
        let connect = settings.limits.connect;
        let exchange = async {
            match (self.dial, &target.plain) {
                (None, Some(to)) => {
                    client.post_plainly(settings.plain(client.clock), to, connect, address, body, limits).await
                }
                // In boxes: reqwest's futures are large, and would be moved with the others, too.
                (None, None) => {
                    let http = settings.calling().map_err(Unanswered::unsent)?;
                    Box::pin(client.send_call(http, connect, address, body, limits)).await
                }
                (Some(target), _) => {
                    let http = settings.dialling().map_err(Unanswered::unsent)?;
                    Box::pin(TARGET.scope(target, client.send_call(http, connect, address, body, limits))).await
                }
            }
        };
        match tokio::time::timeout(limits.timeout, exchange).await {
            Ok(answered) => answered,
            // It may have been connecting still; that cannot be told, so the worse is taken.
            Err(_) => Err(Unanswered::sent(AskError::Timeout { url: address.to_string(), limit: limits.timeout })),
        }
    }
}

impl Client {
    async fn post_plainly(
        &self,
        http: &Plain,
        to: &Head,
        connect: Duration,
        address: &Address,
        body: Bytes,
        limits: &CallLimits,
    ) -> Result<Answer, Unanswered> {
        let requested = self.now();
        let answered = http.post(to, &limits.headers, body).await;
        let (head, body) = answered.map_err(|error| unanswered(address, &error, connect))?.into_parts();
        read(limits.max_body, address, body, self.head(head, requested)).await.map_err(Unanswered::sent)
    }

    async fn send_call(
        &self,
        http: &reqwest::Client,
        connect: Duration,
        address: &Address,
        body: Bytes,
        limits: &CallLimits,
    ) -> Result<Answer, Unanswered> {
        let requested = self.now();
        let request = http
            .post(address.url())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .headers(limits.headers.clone())
            .body(body);
        let response = request.send().await.map_err(|error| unanswered(address, &error, connect))?;
        let (head, body) = http::Response::from(response).into_parts();
        read(limits.max_body, address, body, self.head(head, requested)).await.map_err(Unanswered::sent)
    }
}

fn unanswered(address: &Address, error: &impl Failure, connect: Duration) -> Unanswered {
    Unanswered { sent: !failure::unsent(error), error: failure::explain(address, error, connect) }
}
