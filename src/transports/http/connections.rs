//! The HTTP client: one for lists, looks and calls, for http and https.
//!
//! Lists and looks keep no idle connection, because a poll a minute would hold one open for each
//! scenario (24 KB each) and find it closed by the server most times. Calls come in bursts, so they
//! keep theirs for a moment. It never follows a redirect and decides about no error.
//!
//! A request goes out a second time in one case alone: it was given to a kept connection that
//! closed before the first byte of the request was written. hyper gives such a request back, and
//! the client sends it over another connection. No server has seen it, so this holds for calls as
//! well.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HeaderMap, HeaderValue, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioTimer;
use tower::ServiceExt as _;
use tower_http::decompression::{Decompression, DecompressionBody};

use super::Address;
use super::connector::{Connector, Route};
use crate::runtime::{Stop, Tasks};
use crate::transports::TransportError;

/// The `User-Agent` of every request.
const AGENT: &str = concat!("callsheet/", env!("CARGO_PKG_VERSION"));

/// Idle connections for calls that are kept per host, and for how long. Many servers close theirs
/// after five seconds, and a call that meets a closing connection is lost, for it is not repeated.
/// So ours are given up before that, which also bounds how many are open in all: those that calls
/// used in the last four seconds.
const IDLE_PER_HOST: usize = 32;
const IDLE: Duration = Duration::from_secs(4);

/// Sends requests. Each part is one client of hyper-util; they differ in what they keep.
#[derive(Debug)]
pub(super) struct Connections {
    connector: Connector,
    executor: Spawner,
    /// Each connection serves one request, whose answer's content coding is taken off.
    polls: Decompression<Client<Connector, Full<Bytes>>>,
    /// Connections are kept. Scenarios that are called are near, where packing costs more time than
    /// sending, so no content coding is requested.
    calls: Client<Connector, Full<Bytes>>,
}

impl Connections {
    /// Connections that `connector` makes and `executor` runs.
    pub(super) fn new(connector: Connector, executor: Spawner) -> Arc<Self> {
        let client = |idle| {
            Client::builder(executor.clone())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .pool_max_idle_per_host(idle)
                .build(connector.clone())
        };
        let polls = Decompression::new(client(0));
        let calls = client(IDLE_PER_HOST);
        Arc::new(Self {
            connector,
            executor,
            polls,
            calls,
        })
    }

    /// Connections to this socket address, whatever the host name. They are shared with no other
    /// scenario: a name may mean another machine on another network.
    pub(super) fn dialling(&self, address: SocketAddr) -> Arc<Self> {
        self.by(Route::Fixed(address))
    }

    /// Connections of their own by this route.
    pub(super) fn by(&self, route: Route) -> Arc<Self> {
        Self::new(self.connector.by(route), self.executor.clone())
    }

    /// Sends a request over a connection of its own, and waits for the head of the answer. Dropping
    /// the future or the body closes the connection.
    pub(super) async fn poll(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<DecompressionBody<Incoming>>, Error> {
        self.polls.clone().oneshot(request).await
    }

    /// Sends a request over a kept connection or a new one, and waits for the head of the answer.
    /// The connection is kept when the body is read to its end.
    pub(super) async fn call(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Error> {
        self.calls.request(request).await
    }
}

/// A request with these headers besides those of every request. Fails with
/// [`TransportError::Address`] when the address cannot be written in a request.
pub(super) fn request(
    method: Method,
    address: &Address,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, TransportError> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = address.uri()?;
    let all = request.headers_mut();
    all.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    all.insert(ACCEPT, HeaderValue::from_static("application/json"));
    all.extend(headers.clone());
    Ok(request)
}

/// Runs what hyper leaves to others: connections while requests go over them, and closing old ones.
#[derive(Debug, Clone)]
pub(super) struct Spawner {
    pub(super) tasks: Tasks,
    /// Ends all of it.
    pub(super) end: Stop,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Spawner {
    fn execute(&self, future: F) {
        let end = self.end.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = future => {}
                () = end.wait() => {}
            }
        });
    }
}
