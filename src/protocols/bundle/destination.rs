//! Where a request goes: its host is looked up once, and the address that passes the rules is the
//! one that is connected to.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use url::{Host, Url};

use crate::bundles::HostRule;
use crate::transports::TransportError;

/// Why there is no address to connect to.
#[derive(Debug)]
pub(super) enum NoDestination {
    /// The host may not be reached, as a sentence.
    Refused(String),
    /// The name has no address now.
    Unresolved(TransportError),
}

/// The address for a host, looked up within `limit`.
pub(super) async fn find(url: &Url, rules: &[HostRule], limit: Duration) -> Result<SocketAddr, NoDestination> {
    let origin = url.origin().ascii_serialization();
    let refused = |why: &str| NoDestination::Refused(format!("`{origin}` {why}"));
    let host = url.host().filter(|host| HostRule::admits_host(rules, host));
    let host = host.ok_or_else(|| refused("is not in `bundles.allowed_hosts`"))?;
    let port = url.port_or_known_default().unwrap_or(80);
    let addresses: Vec<IpAddr> = match host {
        Host::Ipv4(address) => vec![address.into()],
        Host::Ipv6(address) => vec![address.into()],
        Host::Domain(name) => {
            let found = tokio::time::timeout(limit, tokio::net::lookup_host((name, port))).await;
            let unresolved = || NoDestination::Unresolved(TransportError::Unresolved(origin.clone()));
            found.map_err(|_| unresolved())?.map_err(|_| unresolved())?.map(|found| found.ip()).collect()
        }
    };
    // One address that is not admitted makes the name a suspicious one.
    let admitted = addresses.iter().all(|address| HostRule::admits_address(rules, &host, *address));
    let first = addresses.first().filter(|_| admitted);
    let first =
        first.ok_or_else(|| refused("has an address that is not public; list it in `bundles.allowed_hosts`"))?;
    Ok(SocketAddr::new(*first, port))
}
