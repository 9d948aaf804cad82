//! Proxies: which requests take one, and the way through it.
//!
//! ```text
//! ProxyRules (configuration, environment) --> none: connect directly
//!                                         `-> a proxy: reach it, then a tunnel to the host
//! ```
//!
//! What is kept true here:
//!
//! - Only https goes through a proxy, so that the proxy sees names and no requests.
//! - This machine and private addresses are never reached through one.
//! - A proxy that cannot be used fails the request. The request does not go around it.
//! - The name and password of a proxy go to the proxy only, and are never shown.
//!
//! The proxy looks up the host. Addresses are judged in [`destination`](super::destination).

use std::error::Error;
use std::fmt;
use std::future::{Ready, ready};
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;
use url::{Host, Url};

use super::connect_error::ProxyError;
use super::failure;
use super::resolver::TcpConnector;
use super::tls::Tls;
use crate::model::{is_public_address, redacted_url};

/// The port of a SOCKS proxy that names none (RFC 1928 section 3).
const SOCKS_PORT: u16 = 1080;
/// The most bytes of a name or a password for a SOCKS proxy (RFC 1929 section 2).
const SOCKS_CREDENTIAL_MAX: usize = 255;
/// Stands for a proxy that cannot be used where only the exceptions count.
const UNUSABLE: &str = "http://unusable.invalid";

/// A connection to a host or a proxy, over TLS or not.
pub(super) type HopStream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// How hyper-util reports that SOCKS failed.
type SocksError = <SocksV5<ReachedHop> as Service<Uri>>::Error;
/// How hyper-util reports that a tunnel was not made.
type TunnelError = <Tunnel<ReachedHop> as Service<Uri>>::Error;

/// The address of a proxy with its name and password, which are never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAddress(Url);

/// A text that is not the address of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProxy {
    /// It has no host.
    #[error("it is not an address")]
    NoAddress,
    /// A kind of proxy that is not supported.
    #[error("a proxy with the scheme `{0}` is not supported")]
    Scheme(String),
    /// SOCKS has a length for each in one byte.
    #[error("the name or the password is longer than {SOCKS_CREDENTIAL_MAX} bytes")]
    LongCredentials,
}

impl FromStr for ProxyAddress {
    type Err = InvalidProxy;

    /// Reads an address. One without a scheme is that of an HTTP proxy, as other programs read it.
    fn from_str(text: &str) -> Result<Self, InvalidProxy> {
        let whole = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let mut url = Url::parse(&whole).map_err(|_| InvalidProxy::NoAddress)?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(InvalidProxy::NoAddress);
        }
        match url.scheme() {
            "http" | "https" => {}
            "socks5" | "socks5h" => {
                let lengths = [url.username().len(), url.password().map_or(0, str::len)];
                if lengths.iter().any(|length| *length > SOCKS_CREDENTIAL_MAX) {
                    return Err(InvalidProxy::LongCredentials);
                }
                // It has a host, so neither fails.
                let port = url.port().unwrap_or(SOCKS_PORT);
                let _ = url.set_port(Some(port));
            }
            other => return Err(InvalidProxy::Scheme(other.to_owned())),
        }
        url.set_path("");
        url.set_query(None);
        url.set_fragment(None);
        Ok(Self(url))
    }
}

impl ProxyAddress {
    /// Its address as one that requests may be sent to, for a look at its port.
    pub fn host_and_port(&self) -> Option<(&str, u16)> {
        let host = self.0.host_str()?.trim_matches(['[', ']']);
        Some((host, self.0.port_or_known_default()?))
    }
}

/// The address without the name and password.
impl fmt::Display for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(redacted_url(&self.0).trim_end_matches('/'))
    }
}

impl fmt::Debug for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyAddress({self})")
    }
}

/// Which requests take a proxy. Without one, none does. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ProxyRules(Option<Arc<ProxyRule>>);

#[derive(Debug)]
struct ProxyRule {
    /// What the proxy is called in messages.
    shown: String,
    /// Why it cannot be used.
    unusable: Option<String>,
    matcher: Matcher,
}

/// A proxy that leads to a host.
#[derive(Debug, Clone)]
pub(super) struct Proxy {
    shown: String,
    intercept: Intercept,
}

impl ProxyRules {
    /// This proxy for all https hosts but those that `exceptions` name, in the notation of
    /// `NO_PROXY`: names with all names below them, addresses, networks, or `*`.
    pub fn new(proxy: &ProxyAddress, exceptions: &[String]) -> Self {
        Self::of(proxy.0.as_str(), proxy.to_string(), None, exceptions)
    }

    /// The same with a proxy that was named in a way that cannot be used: `shown` says where, and
    /// `why` what is wrong. What would have gone through it fails.
    pub fn unusable(shown: &str, why: String, exceptions: &[String]) -> Self {
        Self::of(UNUSABLE, shown.to_owned(), Some(why), exceptions)
    }

    fn of(proxy: &str, shown: String, unusable: Option<String>, exceptions: &[String]) -> Self {
        let matcher = Matcher::builder()
            .https(proxy)
            .no(exceptions.join(","))
            .build();
        Self(Some(Arc::new(ProxyRule {
            shown,
            unusable,
            matcher,
        })))
    }

    /// The proxy that requests to this address take if its host has no private address. `None` if
    /// they go directly in any case.
    pub(super) fn proxy_for(&self, to: &Uri) -> Option<Result<Proxy, ProxyError>> {
        let rule = self.0.as_ref()?;
        if !to.host().is_some_and(is_elsewhere) {
            return None;
        }
        let intercept = rule.matcher.intercept(to)?;
        let shown = rule.shown.clone();
        Some(match &rule.unusable {
            None => Ok(Proxy { shown, intercept }),
            Some(why) => Err(ProxyError {
                proxy: shown,
                message: why.clone(),
            }),
        })
    }

    /// Whether requests to this address take a proxy if its host has no private address.
    pub(super) fn covers(&self, to: &Url) -> bool {
        let to = to.as_str().parse();
        to.is_ok_and(|to: Uri| self.proxy_for(&to).is_some())
    }
}

/// Whether a host may be on another network than this machine's, as far as its name or address
/// says.
fn is_elsewhere(host: &str) -> bool {
    match Host::parse(host) {
        Ok(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name != "localhost" && !name.ends_with(".localhost")
        }
        Ok(Host::Ipv4(address)) => is_public_address(address.into()),
        Ok(Host::Ipv6(address)) => is_public_address(address.into()),
        Err(_) => false,
    }
}

impl Proxy {
    /// Connects to the host of `to` through the proxy, which is reached by `http`, within `limit`.
    pub(super) async fn connect(
        self,
        to: Uri,
        http: TcpConnector,
        tls: &Tls,
        limit: Duration,
    ) -> Result<HopStream, ProxyError> {
        let connecting = async {
            let hop = self.reach(http, tls).await?;
            self.open(to, hop).await
        };
        let connected = tokio::time::timeout(limit, connecting)
            .await
            .unwrap_or_else(|_| Err(format!("it gave no answer within {limit:?}")));
        connected.map_err(|message| ProxyError {
            proxy: self.shown.clone(),
            message,
        })
    }

    /// Connects to the proxy itself.
    async fn reach(&self, mut http: TcpConnector, tls: &Tls) -> Result<HopStream, String> {
        let proxy = self.intercept.uri().clone();
        if proxy.scheme_str() == Some("https") {
            let mut https = HttpsConnector::from((http, tls.config_for_proxies()));
            let connected = https.call(proxy).await;
            return connected.map_err(|error| not_reached(&*error));
        }
        let connected = http.call(proxy).await;
        connected
            .map(MaybeHttpsStream::Http)
            .map_err(|error| not_reached(&error))
    }

    /// Requests a connection to the host of `to` of the proxy that was reached.
    async fn open(&self, to: Uri, hop: HopStream) -> Result<HopStream, String> {
        let proxy = self.intercept.uri().clone();
        let reached = ReachedHop(Some(hop));
        if matches!(proxy.scheme_str(), Some("socks5" | "socks5h")) {
            let mut socks = SocksV5::new(proxy, reached);
            if let Some((name, password)) = self.intercept.raw_auth() {
                socks = socks.with_auth(name.to_owned(), password.to_owned());
            }
            return socks.call(to).await.map_err(|error| self.no_socks(&error));
        }
        let mut tunnel = Tunnel::new(proxy, reached);
        if let Some(header) = self.intercept.basic_auth() {
            tunnel = tunnel.with_auth(header.clone());
        }
        tunnel.call(to).await.map_err(|error| no_tunnel(&error))
    }

    /// Why a SOCKS proxy made no connection.
    fn no_socks(&self, error: &SocksError) -> String {
        match self.intercept.raw_auth() {
            Some(_) => error.to_string(),
            None => format!("{error}; no name and password are configured for it"),
        }
    }
}

/// Why no connection to a proxy was made.
fn not_reached(error: &(dyn Error + 'static)) -> String {
    format!("it cannot be reached: {}", failure::innermost(error))
}

/// Why an HTTP proxy made no tunnel.
fn no_tunnel(error: &TunnelError) -> String {
    match error {
        TunnelError::ProxyAuthRequired => {
            "it requires a name and password, or other ones (407)".to_owned()
        }
        TunnelError::TunnelUnsuccessful => {
            "it refused the connection, or is no HTTP proxy".to_owned()
        }
        TunnelError::TunnelUnexpectedEof => "it closed the connection".to_owned(),
        other => failure::innermost(other).to_string(),
    }
}

/// A connection that stands already, for a connector that would make one.
#[derive(Debug)]
pub(super) struct ReachedHop(pub(super) Option<HopStream>);

impl Service<Uri> for ReachedHop {
    type Response = HopStream;
    type Error = io::Error;
    type Future = Ready<io::Result<HopStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let hop = self.0.take();
        ready(hop.ok_or_else(|| io::Error::other("the connection is in use")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(proxy: &str, exceptions: &[&str]) -> ProxyRules {
        let exceptions: Vec<String> = exceptions.iter().map(|text| (*text).to_owned()).collect();
        ProxyRules::new(&proxy.parse().unwrap(), &exceptions)
    }

    #[test]
    fn only_public_https_hosts_that_are_no_exception_take_a_proxy() {
        let exceptions = ["corp.example", "8.8.0.0/16", " 9.9.9.9"];
        let rules = rules("proxy.example:3128", &exceptions);
        for (url, expected) in [
            ("https://api.example/", true),
            ("https://api.example:8443/mcp", true),
            ("https://1.1.1.1/", true),
            ("https://[2606:4700::1]/", true),
            ("https://notcorp.example/", true),
            ("http://api.example/", false),
            ("https://corp.example/", false),
            ("https://tools.CORP.example/", false),
            ("https://8.8.4.4/", false),
            ("https://9.9.9.9/", false),
            ("https://localhost/", false),
            ("https://localhost.:1/", false),
            ("https://a.localhost/", false),
            ("https://127.0.0.1/", false),
            ("https://[::1]/", false),
            ("https://[::ffff:10.0.0.1]/", false),
            ("https://10.1.2.3/", false),
            ("https://192.168.1.1/", false),
            ("https://169.254.169.254/", false),
            ("https://100.64.0.1/", false),
            ("https://[fe80::1]/", false),
        ] {
            assert_eq!(rules.covers(&url.parse().unwrap()), expected, "{url}");
        }
        assert!(!ProxyRules::default().covers(&"https://api.example/".parse().unwrap()));
    }

    #[test]
    fn an_asterisk_exempts_every_host() {
        let rules = rules("http://proxy.example", &["*"]);
        assert!(!rules.covers(&"https://api.example/".parse().unwrap()));
    }

    #[test]
    fn an_address_of_a_proxy_is_read_as_other_programs_read_it_and_shown_without_credentials() {
        for (text, shown) in [
            ("proxy.example:3128", "http://proxy.example:3128"),
            ("user:secret@proxy.example:1", "http://proxy.example:1"),
            (
                "http://user:secret@proxy.example/x?y#z",
                "http://proxy.example",
            ),
            ("https://proxy.example:8443", "https://proxy.example:8443"),
            ("socks5://proxy.example", "socks5://proxy.example:1080"),
            ("socks5h://user:secret@[::1]:9", "socks5h://[::1]:9"),
        ] {
            let address: ProxyAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), shown, "{text}");
            assert!(!format!("{address:?}").contains("secret"), "{address:?}");
        }
    }

    #[test]
    fn what_is_no_supported_proxy_is_refused() {
        let long = format!("socks5://{}@proxy.example", "x".repeat(256));
        for (text, expected) in [
            (
                "socks4://proxy.example",
                InvalidProxy::Scheme("socks4".to_owned()),
            ),
            (
                "ftp://proxy.example",
                InvalidProxy::Scheme("ftp".to_owned()),
            ),
            ("http://", InvalidProxy::NoAddress),
            ("", InvalidProxy::NoAddress),
            ("two words", InvalidProxy::NoAddress),
            (&long, InvalidProxy::LongCredentials),
        ] {
            assert_eq!(text.parse::<ProxyAddress>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn a_proxy_that_cannot_be_used_still_has_exceptions() {
        let exceptions = ["corp.example".to_owned()];
        let rules = ProxyRules::unusable(
            "of HTTPS_PROXY",
            "it is not an address".to_owned(),
            &exceptions,
        );
        let error = rules.proxy_for(&Uri::from_static("https://api.example/"));
        let error = error.unwrap().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the proxy of HTTPS_PROXY: it is not an address"
        );
        assert!(
            rules
                .proxy_for(&Uri::from_static("https://corp.example/"))
                .is_none()
        );
    }
}
