//! Connecting to a scenario within the limit of time, with TLS where its address says https.
//!
//! It sends no request and keeps no connection. A connector can have a fixed socket address: some
//! names only a source can resolve, and some addresses no URL can write (a link-local IPv6 address
//! with its interface). The name stays in the request, for the `Host` header and for TLS.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{fmt, io, vec};

use arc_swap::ArcSwap;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::Uri;
use http::uri::Scheme;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use super::interim::BoundedStream;
use super::settings::ClientSettings;
use super::tls::Tls;

/// What the client and its parts fail with before it is judged.
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Makes connections. Clones share the limit and the TLS configuration.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    http: HttpConnector<Resolver>,
    tls: Tls,
    settings: Arc<ArcSwap<ClientSettings>>,
}

impl Connector {
    /// A connector that looks up host names. Its connections stand within the limit that is in
    /// force when they are begun.
    pub(super) fn new(settings: Arc<ArcSwap<ClientSettings>>) -> Self {
        Self {
            http: tcp(Resolver::System(GaiResolver::new())),
            tls: Tls::default(),
            settings,
        }
    }

    /// The same connector, with this socket address for every host name.
    pub(super) fn dialling(&self, address: SocketAddr) -> Self {
        Self {
            http: tcp(Resolver::Fixed(address)),
            ..self.clone()
        }
    }
}

fn tcp(resolver: Resolver) -> HttpConnector<Resolver> {
    let mut http = HttpConnector::new_with_resolver(resolver);
    http.set_nodelay(true);
    // TLS is added to connections that this makes.
    http.enforce_http(false);
    http
}

impl Service<Uri> for Connector {
    type Response = TokioIo<BoundedStream<TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Self {
            mut http,
            tls,
            settings,
        } = self.clone();
        let limit = settings.load().limits.connect;
        let connecting = async move {
            let stream = if to.scheme() == Some(&Scheme::HTTPS) {
                HttpsConnector::from((http, tls.config())).call(to).await?
            } else {
                MaybeHttpsStream::Http(http.call(to).await?)
            };
            Ok(TokioIo::new(BoundedStream::new(TokioIo::new(stream))))
        };
        async move {
            let late = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
            tokio::time::timeout(limit, connecting)
                .await
                .unwrap_or_else(late)
        }
        .boxed()
    }
}

/// Finds the socket addresses of a host name.
#[derive(Debug, Clone)]
enum Resolver {
    /// The operating system resolves the name.
    System(GaiResolver),
    /// Every name has this address.
    Fixed(SocketAddr),
}

/// A host name without an address. It distinguishes this failure from those of connecting.
#[derive(Debug)]
pub(super) struct Unresolved(io::Error);

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Unresolved;
    type Future = BoxFuture<'static, Result<Self::Response, Unresolved>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Unresolved>> {
        match self {
            Self::System(resolver) => resolver.poll_ready(context).map_err(Unresolved),
            Self::Fixed(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, name: Name) -> Self::Future {
        match self {
            Self::System(resolver) => {
                let found = resolver.call(name);
                async move {
                    Ok(found
                        .await
                        .map_err(Unresolved)?
                        .collect::<Vec<_>>()
                        .into_iter())
                }
                .boxed()
            }
            Self::Fixed(address) => std::future::ready(Ok(vec![*address].into_iter())).boxed(),
        }
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
