//! Which addresses are requested because a server named them.
//!
//! What a server names is not what the operator named. Only https is used, and only public
//! addresses, so that no server can make the daemon look into a private network (the security
//! practices of MCP, "server-side request forgery"). The host of the scenario itself and the hosts
//! of `login.hosts` are named by the operator; a scenario on loopback may name loopback. The
//! address that was checked is the one that is connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use url::{Host, Url};

use crate::model::redacted_url;
use crate::transports::http::{Client, Upstream};

/// How long the lookup of a host name may take.
const LOOKUP: Duration = Duration::from_secs(10);

/// Checks the addresses that the servers around one scenario name.
pub(super) struct AddressGuard<'a> {
    pub(super) http: &'a Arc<Client>,
    /// The address of the scenario.
    pub(super) scenario: &'a Url,
    /// `login.hosts`
    pub(super) hosts: &'a [String],
}

impl AddressGuard<'_> {
    /// What sends requests to this address. Fails with the reason why none may be sent.
    pub(super) async fn upstream(&self, url: &Url) -> Result<Upstream, String> {
        self.check_scheme(url)?;
        let upstream = self.http.upstream(url.clone()).map_err(|error| error.to_string())?;
        if self.is_named(url) || self.is_near(url) {
            return Ok(upstream);
        }
        let addresses = resolve(url).await?;
        if let Some(address) = addresses.iter().find(|address| !self.is_allowed(address.ip())) {
            let (shown, ip) = (redacted_url(url), address.ip());
            return Err(format!(
                "{shown} is at {ip}, which is not a public address; add its host to `login.hosts` if it is yours"
            ));
        }
        // A host with addresses of both kinds is reached over the older one more often.
        let dial = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first());
        Ok(upstream.with_dial(dial.copied()))
    }

    /// Whether the scheme and the form of an address may be used, for a browser too.
    pub(super) fn check_scheme(&self, url: &Url) -> Result<(), String> {
        let shown = redacted_url(url);
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!("{shown} has a name or password in it"));
        }
        match url.scheme() {
            "https" => Ok(()),
            "http" if self.is_named(url) || self.is_near(url) => Ok(()),
            "http" => Err(format!("{shown} is not https; add its host to `login.hosts` if it is yours")),
            _ => Err(format!("{shown} is not https")),
        }
    }

    /// Whether the operator named the host. That of the scenario counts only where another server
    /// cannot answer under its name: at its own origin, over https, where a certificate proves the
    /// name, and at an address without a name that is used without https anyway. Otherwise its
    /// owner could let the name lead into a private network for a moment (DNS rebinding), or tokens
    /// go out unencrypted.
    fn is_named(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let is_plain_address = match url.host() {
            Some(Host::Domain(_)) | None => false,
            Some(Host::Ipv4(_) | Host::Ipv6(_)) => self.scenario.scheme() == "http",
        };
        let is_proved = url.scheme() == "https" || url.origin() == self.scenario.origin() || is_plain_address;
        let is_scenario = is_proved && self.scenario.host_str() == Some(host);
        is_scenario || self.hosts.iter().any(|named| named.eq_ignore_ascii_case(host))
    }

    /// Whether both are on this machine.
    fn is_near(&self, url: &Url) -> bool {
        is_loopback(url) && is_loopback(self.scenario)
    }

    fn is_allowed(&self, ip: IpAddr) -> bool {
        is_public(ip) || (ip.to_canonical().is_loopback() && is_loopback(self.scenario))
    }
}

/// Whether an address names this machine without a lookup (RFC 6761 section 6.3).
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip).to_canonical().is_loopback(),
        None => false,
    }
}

async fn resolve(url: &Url) -> Result<Vec<SocketAddr>, String> {
    let (shown, port) = (redacted_url(url), url.port_or_known_default().unwrap_or(443));
    let name = match url.host() {
        Some(Host::Ipv4(ip)) => return Ok(vec![(ip, port).into()]),
        Some(Host::Ipv6(ip)) => return Ok(vec![(ip, port).into()]),
        Some(Host::Domain(name)) => name.to_owned(),
        None => return Err(format!("{shown} has no host")),
    };
    let unresolved = || format!("the host of {shown} cannot be resolved");
    let found = tokio::time::timeout(LOOKUP, tokio::net::lookup_host((name, port))).await;
    let found: Vec<SocketAddr> = found.map_err(|_| unresolved())?.map_err(|_| unresolved())?.collect();
    if found.is_empty() { Err(unresolved()) } else { Ok(found) }
}

/// Whether an address is one of the public internet (the registries of RFC 6890).
fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let is_special = ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_documentation()
        || matches!((a, b, c), (0 | 224.., ..) | (100, 64..=127, _) | (192, 0, 0) | (198, 18 | 19, _));
    !is_special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let parts = ip.segments();
    let [first, second, third, ..] = parts;
    let inside = |high: u16, low: u16| is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match (first, second) {
        // Translated (RFC 6052) and tunnelled (RFC 3056) addresses hold one of the older kind.
        (0x64, 0xff9b) => parts[2..6] == [0; 4] && inside(parts[6], parts[7]),
        (0x2002, _) => inside(second, third),
        (0x2001, 0xdb8 | 0) => false,
        // All public addresses begin so (RFC 4291 section 2.4).
        _ => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{Clock, Tasks};
    use crate::transports::http::ClientLimits;

    #[test]
    fn the_host_of_a_scenario_counts_as_named_where_no_other_can_answer_for_it() {
        let http = Client::new(
            ClientLimits { connect: LOOKUP, whole: LOOKUP, max_body: 1, max_redirects: 0 },
            1,
            LOOKUP,
            Clock::system(),
            Tasks::new(),
        );
        let hosts = ["login.lan".to_owned()];
        for (scenario, url, expected) in [
            ("https://h.example/mcp", "https://h.example/as", true),
            ("https://h.example/mcp", "https://h.example:8443/as", true),
            ("https://h.example/mcp", "http://h.example/as", false),
            ("http://h.example:9000/mcp", "http://h.example:9000/as", true),
            ("http://h.example:9000/mcp", "http://h.example:22/as", false),
            ("http://h.example:9000/mcp", "https://h.example/as", true),
            ("http://10.0.0.5:9000/mcp", "http://10.0.0.5:9001/as", true),
            ("https://10.0.0.5/mcp", "http://10.0.0.5/as", false),
            ("http://10.0.0.5/mcp", "http://10.0.0.6/as", false),
            ("https://h.example/mcp", "http://LOGIN.lan/as", true),
            ("https://h.example/mcp", "https://other.example/as", false),
        ] {
            let (scenario, url) = (scenario.parse().unwrap(), url.parse().unwrap());
            let guard = AddressGuard { http: &http, scenario: &scenario, hosts: &hosts };
            assert_eq!(guard.is_named(&url), expected, "{url} for {scenario}");
        }
    }

    #[test]
    fn only_public_addresses_are_public() {
        for text in ["1.1.1.1", "8.8.8.8", "192.0.1.1", "2606:4700::1", "64:ff9b::808:808", "::ffff:8.8.8.8"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.8",
            "192.168.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::10.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::808:808",
            "2002:a00:1::",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }
}
