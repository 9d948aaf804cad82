//! `[discovery.mdns]`: settings of the local network, and which of its announcements are trusted.

use std::net::IpAddr;

use super::Config;
use super::units::ValueError;
use super::value_reader::ValueReader;
use crate::model::Subnet;

/// Bytes of an instance name at most (RFC 6763 section 4.1.1: one DNS label).
const NAME_MAX: usize = 63;
/// Characters of an id at most.
const ID_MAX: usize = 100;

/// Announcements on the local network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MdnsConfig {
    /// `enabled`
    pub enabled: bool,
    /// `trust`: the announcements that need no approval by an operator.
    pub trust: MdnsTrust,
    /// `types`: service types browsed beside `_agent-tools._tcp`, without domain.
    pub types: Vec<String>,
    /// `max_instances`: announcements kept at most.
    pub max_instances: usize,
    /// `port`: the UDP port; both sides must use the same.
    pub port: u16,
    /// `interfaces`: the names of those used, `loopback` for that of IPv4; empty for all.
    pub interfaces: Vec<String>,
    /// `announce`: whether the daemon announces its own list.
    pub announce: bool,
    /// `name`: the instance name of that announcement.
    pub name: String,
    /// `id`: identifies this daemon on every host; kept beside the database when absent.
    pub id: Option<String>,
}

/// The announcements that are trusted. All others are
/// [untrusted](crate::discovery::SourceTrust::Untrusted).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MdnsTrust {
    /// None.
    None,
    /// Those with an address of this machine.
    Local,
    /// All.
    All,
    /// Those with an address of this machine, and those that match one of these.
    Listed(Vec<TrustPattern>),
}

/// One element of a list of the trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustPattern {
    /// By address.
    Network(Subnet),
    /// By name, where `*` stands for any characters. A name proves no identity: any host can choose
    /// any name.
    Name(String),
}

impl Default for MdnsConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            trust: MdnsTrust::Local,
            types: Vec::new(),
            max_instances: 512,
            port: 5353,
            interfaces: Vec::new(),
            announce: false,
            name: "callsheet".to_owned(),
            id: None,
        }
    }
}

impl TrustPattern {
    /// Whether an announcement of this name at this address is meant.
    pub fn matches(&self, name: &str, address: IpAddr) -> bool {
        match self {
            Self::Network(network) => network.contains(address),
            Self::Name(pattern) => glob(pattern, name),
        }
    }
}

/// Whether `text` is `pattern`, where each `*` stands for any characters, letter case aside. It
/// never looks twice at what a `*` passed over for good, so that no pattern makes it slow.
fn glob(pattern: &str, text: &str) -> bool {
    let pattern = pattern.to_lowercase();
    let text = text.to_lowercase();
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Reads `trust`: one word or a list.
pub(super) fn read_trust(written: &mut ValueReader<'_>, config: &mut Config) {
    let field = &mut config.discovery.mdns.trust;
    if written.value.is_some_and(toml::Value::is_array) {
        let mut patterns = Vec::new();
        written.texts(&mut patterns, pattern);
        *field = MdnsTrust::Listed(patterns);
    } else {
        written.text(field, trust);
    }
}

/// Reads `trust` where it is one word.
fn trust(text: &str) -> Result<MdnsTrust, ValueError> {
    match text {
        "none" => Ok(MdnsTrust::None),
        "local" => Ok(MdnsTrust::Local),
        "all" => Ok(MdnsTrust::All),
        _ => Err(ValueError::new(
            format!("{text:?} is not a rule of trust"),
            "write \"none\", \"local\" or \"all\", or a list such as [\"10.0.0.0/8\", \"name:lab-*\"]",
        )),
    }
}

/// Reads one element of `trust` where it is a list.
fn pattern(text: &str) -> Result<TrustPattern, ValueError> {
    if let Some(name) = text.strip_prefix("name:") {
        return if name.is_empty() {
            Err(ValueError::new(
                "this pattern has no name",
                "write a name after `name:`, such as \"name:lab-*\"",
            ))
        } else {
            Ok(TrustPattern::Name(name.to_owned()))
        };
    }
    text.parse().map(TrustPattern::Network).map_err(|_| {
        ValueError::new(
            format!("{text:?} is neither a network nor a name"),
            "write a network such as \"10.0.0.0/8\" or \"fd00::/8\", or a name such as \"name:lab-*\"",
        )
    })
}

/// Reads a service type (RFC 6763 section 7): at most 15 letters, digits and hyphens, over TCP. The
/// domain may be written.
pub(super) fn service_type(text: &str) -> Result<String, ValueError> {
    let bare = text.trim_end_matches('.').trim_end_matches(".local");
    let name = bare
        .strip_suffix("._tcp")
        .and_then(|name| name.strip_prefix('_'))
        .unwrap_or_default();
    let fits = (1..=15).contains(&name.len())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
        && name.bytes().any(|c| c.is_ascii_alphabetic())
        && !name.starts_with('-')
        && !name.ends_with('-');
    if fits {
        return Ok(bare.to_owned());
    }
    Err(ValueError::new(
        format!("{text:?} is not a service type"),
        "write an underscore, 1 to 15 letters, digits or hyphens, and `._tcp`, such as \"_vrooli-tools._tcp\"",
    ))
}

/// Reads the name of a network interface.
pub(super) fn interface(text: &str) -> Result<String, ValueError> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(ValueError::new(
            format!("{text:?} is not a name of a network interface"),
            "write a name as the system shows it, such as \"eth0\", or \"loopback\"",
        ));
    }
    Ok(text.to_owned())
}

/// Reads the name of an announcement.
pub(super) fn instance_name(text: &str) -> Result<String, ValueError> {
    if text.trim().is_empty() || text.len() > NAME_MAX || text.contains(char::is_control) {
        return Err(ValueError::new(
            format!("{text:?} cannot be the name of an announcement"),
            format!("use 1 to {NAME_MAX} bytes without control characters"),
        ));
    }
    Ok(text.to_owned())
}

/// Reads the daemon's id.
pub(super) fn id(text: &str) -> Result<String, ValueError> {
    if is_id(text) {
        return Ok(text.to_owned());
    }
    Err(ValueError::new(
        format!("{text:?} cannot be an id"),
        format!(
            "use 1 to {ID_MAX} letters, digits, `.`, `_` or `-`, such as a UUID; without this key one is made"
        ),
    ))
}

/// Whether a text may be the id of a daemon.
pub(crate) fn is_id(text: &str) -> bool {
    (1..=ID_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses_and_no_others() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.200.3.4", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.4", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("fd00::/8", "fdab::1", true),
            ("::/0", "2001:db8::1", true),
            ("192.168.1.128/25", "192.168.1.127", false),
        ] {
            let found = pattern(network)
                .unwrap()
                .matches("any", address.parse().unwrap());
            assert_eq!(found, expected, "{address} in {network}");
        }
    }

    #[test]
    fn names_match_with_stars_and_without_letter_case() {
        for (text, name, expected) in [
            ("lab-*", "lab-7", true),
            ("lab-*", "LAB-", true),
            ("lab-*", "a-lab-7", false),
            ("*-lab-*-x", "my-lab-7-x", true),
            ("*-lab-*-x", "my-lab-x", false),
            ("exact", "exact", true),
            ("exact", "exactly", false),
            ("*", "", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(glob(text, name), expected, "{name} for {text}");
        }
    }
}
