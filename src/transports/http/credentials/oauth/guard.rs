//! Which addresses are requested because a server named them.
//!
//! What a server names is not what the operator named. Only https is used, and only public
//! addresses, so that no server can make the daemon look into a private network (the security
//! practices of MCP, "server-side request forgery"). The host of the scenario itself and the hosts
//! of `login.hosts` are named by the operator; a scenario on loopback may name loopback. The
//! address that was checked is the one that is connected to, or else a proxy looks the host up.

use std::net::IpAddr;
use std::sync::Arc;

use url::{Host, Url};

use crate::model::{is_public_address, redacted_url};
use crate::transports::http::destination::{self, NoDestination};
use crate::transports::http::{Client, Upstream};

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
        let upstream = self
            .http
            .upstream(url.clone())
            .map_err(|error| error.to_string())?;
        if self.is_named(url) || self.is_near(url) {
            return Ok(upstream.named());
        }
        let is_allowed = |ip| self.is_allowed(ip);
        let proxies = self.http.proxies();
        let found = destination::judged(url, is_allowed, destination::LOOKUP, &proxies).await;
        let shown = redacted_url(url);
        let destination = found.map_err(|none| match none {
            NoDestination::NotAdmitted(_, ip) => format!(
                "{shown} is at {ip}, which is not a public address; add its host to `login.hosts` if it is yours"
            ),
            NoDestination::NotListed(_) | NoDestination::Unresolved(_) => {
                format!("the host of {shown} cannot be resolved")
            }
        })?;
        Ok(upstream.with_destination(destination))
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
            "http" => Err(format!(
                "{shown} is not https; add its host to `login.hosts` if it is yours"
            )),
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
        let is_proved =
            url.scheme() == "https" || url.origin() == self.scenario.origin() || is_plain_address;
        let is_scenario = is_proved && self.scenario.host_str() == Some(host);
        is_scenario
            || self
                .hosts
                .iter()
                .any(|named| named.eq_ignore_ascii_case(host))
    }

    /// Whether both are on this machine.
    fn is_near(&self, url: &Url) -> bool {
        is_loopback(url) && is_loopback(self.scenario)
    }

    fn is_allowed(&self, ip: IpAddr) -> bool {
        is_public_address(ip) || (ip.to_canonical().is_loopback() && is_loopback(self.scenario))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{Clock, Tasks};
    use crate::transports::http::ClientLimits;
    use crate::transports::http::destination::LOOKUP;

    fn client() -> Arc<Client> {
        let limits = ClientLimits {
            connect: LOOKUP,
            whole: LOOKUP,
            max_body: 1,
            max_redirects: 0,
        };
        Client::new(limits, 1, LOOKUP, Clock::system(), Tasks::new())
    }

    #[test]
    fn only_a_scenario_of_this_machine_may_name_this_machine() {
        let http = client();
        for (scenario, expected) in [
            ("https://public.example/mcp", false),
            ("http://10.0.0.5:9000/mcp", false),
            ("http://127.0.0.1:9000/mcp", true),
            ("http://localhost:9000/mcp", true),
        ] {
            let scenario = scenario.parse().unwrap();
            let guard = AddressGuard {
                http: &http,
                scenario: &scenario,
                hosts: &[],
            };
            for url in [
                "http://127.0.0.1:22/as",
                "http://localhost:22/as",
                "http://[::1]:22/as",
            ] {
                assert_eq!(
                    guard.check_scheme(&url.parse().unwrap()).is_ok(),
                    expected,
                    "{url} for {scenario}"
                );
            }
        }
    }

    #[test]
    fn the_host_of_a_scenario_counts_as_named_where_no_other_can_answer_for_it() {
        let http = client();
        let hosts = ["login.lan".to_owned()];
        for (scenario, url, expected) in [
            ("https://h.example/mcp", "https://h.example/as", true),
            ("https://h.example/mcp", "https://h.example:8443/as", true),
            ("https://h.example/mcp", "http://h.example/as", false),
            (
                "http://h.example:9000/mcp",
                "http://h.example:9000/as",
                true,
            ),
            ("http://h.example:9000/mcp", "http://h.example:22/as", false),
            ("http://h.example:9000/mcp", "https://h.example/as", true),
            ("http://10.0.0.5:9000/mcp", "http://10.0.0.5:9001/as", true),
            ("https://10.0.0.5/mcp", "http://10.0.0.5/as", false),
            ("http://10.0.0.5/mcp", "http://10.0.0.6/as", false),
            ("https://h.example/mcp", "http://LOGIN.lan/as", true),
            ("https://h.example/mcp", "https://other.example/as", false),
        ] {
            let scenario = scenario.parse().unwrap();
            let url = url.parse().unwrap();
            let guard = AddressGuard {
                http: &http,
                scenario: &scenario,
                hosts: &hosts,
            };
            assert_eq!(guard.is_named(&url), expected, "{url} for {scenario}");
        }
    }
}
