//! Which hosts a request may go to, by name and by address.
//!
//! A name alone is not enough: the address that it has at that moment is checked as well, and is
//! the one that is connected to. So a name that suddenly means a machine inside leads nowhere.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::Host;

use super::Subnet;
use super::public_address::is_public_address;

/// One element of a list of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRule {
    /// The host of this name, lower-case: `api.example.com`. It may have public addresses, and
    /// those that another rule names; `localhost` may have those of loopback.
    Name(String),
    /// All hosts below this name, but not itself: `*.example.com`.
    Below(String),
    /// These addresses, whether the host is written as an address or by name.
    Network(Subnet),
}

/// A text that is not a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is neither a host, nor `*.` and a host, nor a range of addresses")]
pub struct InvalidHostRule;

impl HostRule {
    /// Whether a request to this host may be made at all, as it is written.
    pub fn admits_host(rules: &[Self], host: &Host<&str>) -> bool {
        match host {
            Host::Domain(name) => rules.iter().any(|rule| rule.names(name)),
            Host::Ipv4(address) => Self::lists_address(rules, (*address).into()),
            Host::Ipv6(address) => Self::lists_address(rules, (*address).into()),
        }
    }

    /// Whether a connection for this host may go to this address.
    pub fn admits_address(rules: &[Self], host: &Host<&str>, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let local = matches!(host, Host::Domain("localhost")) && address.is_loopback();
        Self::admits_host(rules, host)
            && (Self::lists_address(rules, address)
                || matches!(host, Host::Domain(_)) && (local || is_public_address(address)))
    }

    /// Whether this rule names the host by its name.
    fn names(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        match self {
            Self::Name(name) => name == host,
            Self::Below(parent) => host
                .strip_suffix(parent.as_str())
                .is_some_and(|rest| rest.ends_with('.')),
            Self::Network(_) => false,
        }
    }

    fn lists_address(rules: &[Self], address: IpAddr) -> bool {
        let address = address.to_canonical();
        rules
            .iter()
            .any(|rule| matches!(rule, Self::Network(network) if network.contains(address)))
    }
}

impl FromStr for HostRule {
    type Err = InvalidHostRule;

    fn from_str(text: &str) -> Result<Self, InvalidHostRule> {
        let bare = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'))
            .unwrap_or(text);
        if let Ok(network) = bare.parse() {
            return Ok(Self::Network(network));
        }
        let (below, name) = text
            .strip_prefix("*.")
            .map_or((false, text), |name| (true, name));
        match Host::parse(name) {
            Ok(Host::Domain(name)) if !name.contains('*') && !name.is_empty() => {
                let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
                Ok(if below {
                    Self::Below(name)
                } else {
                    Self::Name(name)
                })
            }
            _ => Err(InvalidHostRule),
        }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Network(network) => network.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Vec<HostRule> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn admits(rules: &[HostRule], host: &str, address: &str) -> bool {
        let host: Host<String> = Host::parse(host).unwrap();
        let host = match &host {
            Host::Domain(name) => Host::Domain(name.as_str()),
            Host::Ipv4(address) => Host::Ipv4(*address),
            Host::Ipv6(address) => Host::Ipv6(*address),
        };
        HostRule::admits_address(rules, &host, address.parse().unwrap())
    }

    #[test]
    fn no_rule_admits_no_host() {
        assert!(!admits(&[], "example.com", "93.184.215.14"));
        assert!(!admits(&[], "127.0.0.1", "127.0.0.1"));
    }

    #[test]
    fn a_name_does_not_lead_inside() {
        let rules = rules(&["api.example.com", "*.example.org", "localhost"]);
        for (host, address, expected) in [
            ("api.example.com", "93.184.215.14", true),
            ("API.EXAMPLE.COM.", "93.184.215.14", true),
            ("api.example.com", "127.0.0.1", false),
            ("api.example.com", "::ffff:127.0.0.1", false),
            ("api.example.com", "169.254.169.254", false),
            ("api.example.com", "10.1.2.3", false),
            ("api.example.com", "100.64.0.1", false),
            ("api.example.com", "fd00::1", false),
            ("api.example.com", "fe80::1", false),
            ("api.example.com", "2002:7f00:1::", false),
            ("api.example.com", "64:ff9b::7f00:1", false),
            ("api.example.com", "2606:2800:21f::1", true),
            ("x.api.example.com", "93.184.215.14", false),
            ("example.com", "93.184.215.14", false),
            ("a.b.example.org", "93.184.215.14", true),
            ("example.org", "93.184.215.14", false),
            ("badexample.org", "93.184.215.14", false),
            ("localhost", "127.0.0.1", true),
            ("localhost", "10.0.0.1", false),
            ("127.0.0.1", "127.0.0.1", false),
        ] {
            assert_eq!(
                admits(&rules, host, address),
                expected,
                "{host} at {address}"
            );
        }
    }

    #[test]
    fn networks_admit_what_is_inside_on_purpose() {
        let rules = rules(&["10.0.0.0/8", "::1", "nas.example"]);
        for (host, address, expected) in [
            ("10.1.2.3", "10.1.2.3", true),
            ("11.1.2.3", "11.1.2.3", false),
            ("[::1]", "::1", true),
            ("nas.example", "10.1.2.3", true),
            ("nas.example", "192.168.1.1", false),
        ] {
            assert_eq!(
                admits(&rules, host, address),
                expected,
                "{host} at {address}"
            );
        }
        for bad in ["", "*", "*.", "a b", "http://x", "10.0.0.0/33", "x/8"] {
            assert!(bad.parse::<HostRule>().is_err(), "{bad}");
        }
    }
}
