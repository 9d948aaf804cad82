//! The destination of a request to an address that a server named: its host is looked up once, and
//! the address that passes the rules is the one that is connected to. Where a proxy leads to public
//! hosts, what is looked up here is judged all the same, and the proxy looks it up again.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::Uri;
use url::{Host, Url};

use super::proxy::ProxyRules;
use crate::model::{HostRule, is_public_address, redacted_url};
use crate::transports::TransportError;

/// How long the lookup of a host name may take where no other limit is shorter.
pub(super) const LOOKUP: Duration = Duration::from_secs(10);
/// The same where a proxy looks the host up as well: a resolver here that does not answer must not
/// use up the time of the request.
const LOOKUP_BESIDE_PROXY: Duration = Duration::from_secs(2);

/// Why there is no address to connect to.
#[derive(Debug, thiserror::Error)]
pub enum NoDestination {
    /// No rule names the host.
    #[error("requests to `{0}` are not allowed")]
    NotListed(String),
    /// No rule admits an address that the host has.
    #[error("`{0}` is at {1}, which is neither a public address nor a listed one")]
    NotAdmitted(String, IpAddr),
    /// The name has no address now.
    #[error(transparent)]
    Unresolved(TransportError),
}

/// How a host that was judged is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// At this address.
    Address(SocketAddr),
    /// Through the proxy, which looks it up.
    Proxy,
}

/// How a host that the rules admit is reached, looked up within `limit`. One address that is not
/// admitted makes the name a suspicious one.
pub async fn find(
    url: &Url,
    rules: &[HostRule],
    limit: Duration,
    proxies: &ProxyRules,
) -> Result<Destination, NoDestination> {
    let host = url.host().filter(|host| HostRule::admits_host(rules, host));
    let host = host.ok_or_else(|| NoDestination::NotListed(url.origin().ascii_serialization()))?;
    let admits = |address| HostRule::admits_address(rules, &host, address);
    judged(url, admits, limit, proxies).await
}

/// How the host of a URL is reached, if all addresses that it has here are admitted.
///
/// A host with public addresses goes through the proxy, if there is one for it, and so does a name
/// that has no address here: behind many proxies public names cannot be looked up.
pub(super) async fn judged(
    url: &Url,
    admits: impl Fn(IpAddr) -> bool,
    limit: Duration,
    proxies: &ProxyRules,
) -> Result<Destination, NoDestination> {
    let takes_proxy = proxies.covers(url);
    let limit = if takes_proxy {
        limit.min(LOOKUP_BESIDE_PROXY)
    } else {
        limit
    };
    let found = addresses(url, limit).await;
    chosen(url, found, admits, takes_proxy)
}

/// How the host of a URL is reached, for which these addresses were found.
fn chosen(
    url: &Url,
    found: Result<Vec<SocketAddr>, TransportError>,
    admits: impl Fn(IpAddr) -> bool,
    takes_proxy: bool,
) -> Result<Destination, NoDestination> {
    let found = match found {
        Ok(found) => found,
        Err(_) if takes_proxy => return Ok(Destination::Proxy),
        Err(error) => return Err(NoDestination::Unresolved(error)),
    };
    let origin = || url.origin().ascii_serialization();
    if let Some(refused) = not_admitted(&found, admits) {
        return Err(NoDestination::NotAdmitted(origin(), refused));
    }
    if takes_proxy && are_public(&found) {
        return Ok(Destination::Proxy);
    }
    found
        .first()
        .map(|address| Destination::Address(*address))
        .ok_or_else(|| NoDestination::Unresolved(TransportError::Unresolved(origin())))
}

/// Whether none of these addresses is a private one.
fn are_public(found: &[SocketAddr]) -> bool {
    found.iter().all(|address| is_public_address(address.ip()))
}

/// The first of these addresses of a host that is not admitted.
fn not_admitted(found: &[SocketAddr], admits: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    found
        .iter()
        .map(SocketAddr::ip)
        .find(|address| !admits(*address))
}

/// Whether the host of an address has a private address here. `false` if it has none at all.
pub(super) async fn is_private(to: &Uri, limit: Duration) -> bool {
    let Ok(url) = Url::parse(&to.to_string()) else {
        return false;
    };
    let found = addresses(&url, limit.min(LOOKUP_BESIDE_PROXY)).await;
    found.is_ok_and(|found| !are_public(&found))
}

/// The addresses that the host of a URL has, at least one, looked up within `limit`. Those of IPv4
/// come first: a host with both kinds is reached over them more often.
pub(super) async fn addresses(
    url: &Url,
    limit: Duration,
) -> Result<Vec<SocketAddr>, TransportError> {
    let port = url.port_or_known_default().unwrap_or(80);
    let unresolved = || TransportError::Unresolved(redacted_url(url));
    let name = match url.host() {
        Some(Host::Ipv4(address)) => return Ok(vec![(address, port).into()]),
        Some(Host::Ipv6(address)) => return Ok(vec![(address, port).into()]),
        Some(Host::Domain(name)) => name.to_owned(),
        None => return Err(unresolved()),
    };
    let found = tokio::time::timeout(limit, tokio::net::lookup_host((name, port))).await;
    let mut found: Vec<SocketAddr> = found
        .map_err(|_| unresolved())?
        .map_err(|_| unresolved())?
        .collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    if found.is_empty() {
        Err(unresolved())
    } else {
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No name with several addresses resolves on every machine, so the lookup is left out.
    #[test]
    fn one_address_that_is_not_admitted_refuses_the_name() {
        let rules = [
            "api.example.com".parse().unwrap(),
            "10.0.0.0/8".parse().unwrap(),
        ];
        for (found, expected) in [
            (&["93.184.215.14:443", "10.1.2.3:443"][..], None),
            (&["93.184.215.14:443", "127.0.0.1:443"], Some("127.0.0.1")),
            (&["127.0.0.1:443", "93.184.215.14:443"], Some("127.0.0.1")),
            (
                &[
                    "93.184.215.14:443",
                    "[2606:2800:21f::1]:443",
                    "[fd00::1]:443",
                ],
                Some("fd00::1"),
            ),
        ] {
            let found: Vec<SocketAddr> = found
                .iter()
                .map(|address| address.parse().unwrap())
                .collect();
            let host = Host::Domain("api.example.com");
            let admits = |address| HostRule::admits_address(&rules, &host, address);
            let refused = not_admitted(&found, admits);
            assert_eq!(
                refused,
                expected.map(|address| address.parse().unwrap()),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_host_goes_through_the_proxy_only_if_all_its_addresses_are_public_and_admitted() {
        let url = Url::parse("https://api.example.com/").unwrap();
        let rules = [
            "api.example.com".parse().unwrap(),
            "10.0.0.0/8".parse().unwrap(),
        ];
        let host = Host::Domain("api.example.com");
        let of = |found: &[&str], takes_proxy| {
            let found: Vec<SocketAddr> = found
                .iter()
                .map(|address| address.parse().unwrap())
                .collect();
            let found = if found.is_empty() {
                Err(TransportError::Unresolved(url.to_string()))
            } else {
                Ok(found)
            };
            let admits = |address| HostRule::admits_address(&rules, &host, address);
            chosen(&url, found, admits, takes_proxy)
        };
        let public = "93.184.216.34:443";
        let listed = "10.1.2.3:443";
        let private = "192.168.1.1:443";
        let at = |address: &str| Destination::Address(address.parse().unwrap());
        assert_eq!(of(&[public], true).unwrap(), Destination::Proxy);
        assert_eq!(of(&[public], false).unwrap(), at(public));
        assert_eq!(of(&[listed], true).unwrap(), at(listed));
        assert_eq!(of(&[public, listed], true).unwrap(), at(public));
        assert_eq!(of(&[], true).unwrap(), Destination::Proxy);
        for found in [&[private][..], &[public, private]] {
            for takes_proxy in [true, false] {
                let refused = of(found, takes_proxy).unwrap_err();
                assert!(
                    matches!(refused, NoDestination::NotAdmitted(..)),
                    "{refused}"
                );
            }
        }
        let unresolved = of(&[], false).unwrap_err();
        assert!(
            matches!(unresolved, NoDestination::Unresolved(_)),
            "{unresolved}"
        );
    }
}
