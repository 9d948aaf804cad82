//! Connecting to a scenario within the limit of time, with TLS where its address says https.
//!
//! It sends no request and keeps no connection. A connector has one [`Route`]. One of them is a
//! fixed socket address: some names only a source can resolve, and some addresses no URL can write
//! (a link-local IPv6 address with its interface). The name stays in the request, for the `Host`
//! header and for TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::Uri;
use http::uri::Scheme;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use tower::Service;

use super::connect_error::{BoxError, ProxyError};
use super::destination;
use super::interim::BoundedStream;
use super::proxy::{HopStream, Proxy, ReachedHop};
use super::resolver::{Resolver, tcp};
use super::settings::ClientSettings;
use super::tls::Tls;

/// How a connector reaches the host of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// At the addresses that the system has for it.
    Direct,
    /// At this address, whatever its name.
    Fixed(SocketAddr),
    /// Through the proxy where the rules say so and it has no private address, else as `Direct`.
    DirectOrProxy,
    /// Through the proxy, which looks it up. Its addresses were judged before.
    Proxy,
}

/// What carries the bytes of a request: TLS or none to the host, over TLS or none to a proxy.
type HostStream = MaybeHttpsStream<HopStream>;

/// Makes connections. Clones share the limit and the TLS configuration.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    route: Route,
    tls: Tls,
    settings: Arc<ArcSwap<ClientSettings>>,
}

impl Connector {
    /// A connector that looks up host names. Its connections stand within the limit that is in
    /// force when they are begun.
    pub(super) fn new(settings: Arc<ArcSwap<ClientSettings>>) -> Self {
        Self {
            route: Route::Direct,
            tls: Tls::default(),
            settings,
        }
    }

    /// The same connector with this route.
    pub(super) fn by(&self, route: Route) -> Self {
        Self {
            route,
            ..self.clone()
        }
    }

    async fn connect(self, to: Uri) -> Result<HostStream, BoxError> {
        let settings = self.settings.load_full();
        let limit = settings.limits.connect;
        match self.proxy_for(&to, &settings).await? {
            None => within(limit, self.connect_directly(to)).await,
            Some(proxy) => {
                let http = tcp(Resolver::system());
                let tunnel = proxy.connect(to.clone(), http, &self.tls, limit).await?;
                let reached = ReachedHop(Some(tunnel));
                let mut https = HttpsConnector::from((reached, self.tls.config()));
                within(limit, https.call(to)).await
            }
        }
    }

    async fn connect_directly(&self, to: Uri) -> Result<HostStream, BoxError> {
        let mut http = tcp(match self.route {
            Route::Fixed(address) => Resolver::Fixed(address),
            Route::Direct | Route::DirectOrProxy | Route::Proxy => Resolver::system(),
        });
        let stream = if to.scheme() == Some(&Scheme::HTTPS) {
            HttpsConnector::from((http, self.tls.config()))
                .call(to)
                .await?
        } else {
            MaybeHttpsStream::Http(http.call(to).await?)
        };
        Ok(MaybeHttpsStream::Http(stream))
    }

    /// The proxy that leads to the host, if one does.
    async fn proxy_for(
        &self,
        to: &Uri,
        settings: &ClientSettings,
    ) -> Result<Option<Proxy>, ProxyError> {
        let proxy = match self.route {
            Route::Direct | Route::Fixed(_) => return Ok(None),
            Route::DirectOrProxy | Route::Proxy => settings.proxies.proxy_for(to),
        };
        match (proxy, self.route) {
            // The address that was judged is the proxy's to find, so no other way is taken.
            (None, Route::Proxy) => Err(ProxyError {
                proxy: "of the configuration".to_owned(),
                message: "it is no longer used for this host".to_owned(),
            }),
            (None, _) => Ok(None),
            (Some(proxy), Route::Proxy) => proxy.map(Some),
            (Some(proxy), _) => {
                if destination::is_private(to, settings.limits.connect).await {
                    return Ok(None);
                }
                proxy.map(Some)
            }
        }
    }
}

/// What this becomes within the limit.
async fn within<T>(
    limit: Duration,
    connecting: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    tokio::time::timeout(limit, connecting)
        .await
        .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
}

impl Service<Uri> for Connector {
    type Response = TokioIo<BoundedStream<TokioIo<HostStream>>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = self.clone().connect(to);
        async move {
            let stream = connecting.await?;
            Ok(TokioIo::new(BoundedStream::new(TokioIo::new(stream))))
        }
        .boxed()
    }
}
