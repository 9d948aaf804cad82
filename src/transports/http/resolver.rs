//! Finds the addresses of a host, and connects to them over TCP. It judges no address.

use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::vec;

use futures_util::future::{BoxFuture, FutureExt as _};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower::Service;

use super::connect_error::Unresolved;

/// Connects over TCP.
pub(super) type TcpConnector = HttpConnector<Resolver>;

/// Finds the socket addresses of a host name.
#[derive(Debug, Clone)]
pub(super) enum Resolver {
    /// The operating system resolves the name.
    System(GaiResolver),
    /// Every name has this address.
    Fixed(SocketAddr),
}

impl Resolver {
    /// What the operating system says.
    pub(super) fn system() -> Self {
        Self::System(GaiResolver::new())
    }
}

/// Connections to what this resolver finds, also for addresses with https.
pub(super) fn tcp(resolver: Resolver) -> TcpConnector {
    let mut http = HttpConnector::new_with_resolver(resolver);
    http.set_nodelay(true);
    // TLS is added to connections that this makes.
    http.enforce_http(false);
    http
}

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
