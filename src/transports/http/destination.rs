//! The destination of a request to an address that a server named: its host is looked up once, and
//! the address that passes the rules is the one that is connected to.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use url::{Host, Url};

use crate::model::{HostRule, redacted_url};
use crate::transports::TransportError;

/// How long the lookup of a host name may take where no other limit is shorter.
pub(super) const LOOKUP: Duration = Duration::from_secs(10);

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

/// The address for a host that the rules admit, looked up within `limit`. One address that is not
/// admitted makes the name a suspicious one.
pub async fn find(
    url: &Url,
    rules: &[HostRule],
    limit: Duration,
) -> Result<SocketAddr, NoDestination> {
    let origin = || url.origin().ascii_serialization();
    let host = url.host().filter(|host| HostRule::admits_host(rules, host));
    let host = host.ok_or_else(|| NoDestination::NotListed(origin()))?;
    let found = addresses(url, limit)
        .await
        .map_err(NoDestination::Unresolved)?;
    if let Some(refused) = not_admitted(&found, rules, &host) {
        return Err(NoDestination::NotAdmitted(origin(), refused));
    }
    found
        .first()
        .copied()
        .ok_or_else(|| NoDestination::Unresolved(TransportError::Unresolved(origin())))
}

/// The first of these addresses of a host that the rules do not admit.
fn not_admitted(found: &[SocketAddr], rules: &[HostRule], host: &Host<&str>) -> Option<IpAddr> {
    found
        .iter()
        .map(SocketAddr::ip)
        .find(|address| !HostRule::admits_address(rules, host, *address))
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
            let refused = not_admitted(&found, &rules, &Host::Domain("api.example.com"));
            assert_eq!(
                refused,
                expected.map(|address| address.parse().unwrap()),
                "{found:?}"
            );
        }
    }
}
