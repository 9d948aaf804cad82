//! The short way of a call: hyper's own client, with connections that are kept for the next one.
//!
//! reqwest's layers (redirects, content codings, proxies, retries, parsing the address anew) take longer than all that a call needs, and
//! none of them is of use to it. So what needs none of them comes here: an address with http, without credentials and without a target
//! of its own. TLS and names that only a source can resolve are reqwest's, and asking for manifests has a [`direct`](super::direct) way.

use std::task::{Context, Poll};
use std::time::Duration;
use std::{error, fmt, io};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiResolver, Name};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower::Service;

use super::settings::{CALLS_IDLE, CALLS_IDLE_PER_HOST, OURS};

/// Sends calls over plain HTTP. Clones share the connections.
#[derive(Debug, Clone)]
pub(super) struct Plain(Client<HttpConnector<Resolver>, Full<Bytes>>);

impl Plain {
    /// A client whose connections stand within `connect`.
    pub(super) fn new(connect: Duration) -> Self {
        let mut connector = HttpConnector::new_with_resolver(Resolver::new());
        connector.set_connect_timeout(Some(connect));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(CALLS_IDLE_PER_HOST)
            .pool_idle_timeout(CALLS_IDLE)
            .pool_timer(TokioTimer::new())
            // Each head has it already.
            .set_host(false)
            .build(connector);
        Self(client)
    }

    /// Posts a JSON document and waits for the head of the answer.
    pub(super) async fn post(&self, to: &Head, headers: &HeaderMap, body: Bytes) -> Result<Response<Incoming>, Error> {
        let mut request = Request::new(Full::new(body));
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) =
            (Method::POST, to.uri.clone(), to.headers.clone());
        if !headers.is_empty() {
            request.headers_mut().extend(headers.clone());
        }
        self.0.request(request).await
    }
}

/// The head of what is posted to one address, but for what each request adds.
#[derive(Debug)]
pub(super) struct Head {
    uri: Uri,
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
        // What the client would write by itself, for each request anew. A URL leaves out the port that its scheme has by default.
        let host = uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
        headers.extend(host.map(|host| (HOST, host)));
        Self { uri, headers }
    }
}

/// The system's resolver, whose failures can be told from those of connecting.
#[derive(Debug, Clone)]
pub(super) struct Resolver(GaiResolver);

impl Resolver {
    pub(super) fn new() -> Self {
        Self(GaiResolver::new())
    }
}

/// A host name without an address.
#[derive(Debug)]
pub(super) struct Unresolved(io::Error);

impl Service<Name> for Resolver {
    type Response = GaiAddrs;
    type Error = Unresolved;
    type Future = BoxFuture<'static, Result<GaiAddrs, Unresolved>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Unresolved>> {
        self.0.poll_ready(context).map_err(Unresolved)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let found = self.0.call(name);
        async move { found.await.map_err(Unresolved) }.boxed()
    }
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the host name has no address")
    }
}

impl error::Error for Unresolved {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.0)
    }
}
