//! The short way of a call: one POST over a connection that is kept for the next one.
//!
//! reqwest's layers (redirects, content codings, proxies, retries, parsing the address anew) take longer than all that a call needs, and
//! none of them is of use to it; so do a pool with locks of its own and a task for each connection. So what needs none of them comes here:
//! an address with http, without credentials and without a target of its own. TLS and names that only a source can resolve are reqwest's,
//! and asking for manifests has a [`direct`](super::direct) way.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, Uri};
use http_body_util::Full;

use super::connector::{Connector, Unanswered, target};
use super::pool::{Place, Pool};
use super::settings::OURS;
use super::wire::{Driven, Lost, Wire};
use crate::runtime::Clock;

/// Sends calls over plain HTTP.
#[derive(Debug)]
pub(super) struct Plain {
    connector: Connector,
    pool: Arc<Pool>,
}

/// The body of what a call is answered.
pub(super) type CallBody = Driven<Full<Bytes>, Place>;

impl Plain {
    /// A client whose connections stand within `connect`, looking up the host included.
    pub(super) fn new(connect: Duration, clock: Clock) -> Self {
        Self { connector: Connector::new(connect), pool: Pool::new(clock) }
    }

    /// Posts a JSON document and waits for the head of the answer.
    ///
    /// It is sent once. Only where a kept connection turns out to have ended before the first byte was written, it goes over another one
    /// (RFC 9110 section 9.2.2: what is not idempotent is repeated only by who knows that it was never taken up).
    pub(super) async fn post(
        &self,
        to: &Head,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Response<CallBody>, Unanswered> {
        let mut request = to.request(headers, body);
        while let Some(wire) = self.pool.take(&to.host) {
            match wire.send(request, self.pool.place(&to.host)).await {
                Ok(answer) => return Ok(answer),
                Err(Lost::Unsent(again, _)) => request = *again,
                Err(Lost::Broken(error)) => return Err(Unanswered::Broken(error)),
            }
        }
        // In a box: it is rare, and would be moved with every call.
        Box::pin(self.post_anew(to, request)).await
    }

    async fn post_anew(&self, to: &Head, request: Request<Full<Bytes>>) -> Result<Response<CallBody>, Unanswered> {
        let line = self.connector.connect(to.uri.clone()).await?;
        let wire = Wire::new(line).await.map_err(Unanswered::Broken)?;
        let answer = wire.send(request, self.pool.place(&to.host)).await;
        answer.map_err(|(Lost::Unsent(_, error) | Lost::Broken(error))| Unanswered::Broken(error))
    }
}

/// The head of what is posted to one address, but for what each request adds.
#[derive(Debug)]
pub(super) struct Head {
    uri: Uri,
    /// The host with its port.
    host: Arc<str>,
    target: Uri,
    headers: HeaderMap,
}

impl Head {
    /// For an address with a host.
    pub(super) fn new(uri: Uri) -> Self {
        let json = HeaderValue::from_static("application/json");
        let mut headers = HeaderMap::from_iter([
            (USER_AGENT, HeaderValue::from_static(OURS)),
            (ACCEPT, json.clone()),
            (CONTENT_TYPE, json),
        ]);
        let host = uri.authority().map_or("", |authority| authority.as_str());
        // A URL leaves out the port that its scheme has by default.
        headers.extend(HeaderValue::from_str(host).ok().map(|host| (HOST, host)));
        Self { host: host.into(), target: target(&uri), headers, uri }
    }

    fn request(&self, headers: &HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) =
            (Method::POST, self.target.clone(), self.headers.clone());
        if !headers.is_empty() {
            request.headers_mut().extend(headers.clone());
        }
        request
    }
}
