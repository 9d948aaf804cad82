//! Connecting over plain HTTP, whoever then sends something there.

use std::error::Error;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use futures_util::future::{BoxFuture, FutureExt as _};
use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiResolver, Name};
use tower::Service;

use super::line::Line;

type Boxed = Box<dyn Error + Send + Sync>;

/// Makes connections within a time. Clones share nothing.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    http: HttpConnector<Resolver>,
    within: Duration,
}

/// No head of an answer came.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The address cannot be asked.
    Unmade(http::Error),
    /// There was no connection.
    Unconnected(Boxed),
    /// There was no connection in time.
    Late,
    /// The connection broke.
    Broken(hyper::Error),
}

impl Connector {
    /// One whose connections stand within that, looking up the host included.
    pub(super) fn new(within: Duration) -> Self {
        let mut http = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
        http.set_nodelay(true);
        Self { http, within }
    }

    pub(super) async fn connect(&self, to: Uri) -> Result<Line, Unanswered> {
        let connecting = self.http.clone().call(to);
        let connected = tokio::time::timeout(self.within, connecting).await.map_err(|_| Unanswered::Late)?;
        connected.map(|io| Line::new(io.into_inner())).map_err(|error| Unanswered::Unconnected(error.into()))
    }
}

/// What a server is asked for: to it, a target begins with its path (RFC 9112 section 3.2.1).
pub(super) fn target(uri: &Uri) -> Uri {
    uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")).into()
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unmade(_) => "no request could be made",
            Self::Unconnected(_) => "no connection was made",
            Self::Late => "no connection was made in time",
            Self::Broken(_) => "the connection broke",
        })
    }
}

impl Error for Unanswered {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unmade(error) => Some(error),
            Self::Unconnected(error) => Some(&**error),
            Self::Late => None,
            Self::Broken(error) => Some(error),
        }
    }
}

/// The system's resolver, whose failures can be told from those of connecting.
#[derive(Debug, Clone)]
struct Resolver(GaiResolver);

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

impl Error for Unresolved {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}
