//! Reads one announcement and checks it. Pure: no network, no clock.
//!
//! Any program on the network can send an announcement, so it is only a claim. Its values are
//! limited and checked here; whether it is trusted is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::sync::Arc;

use url::Url;

use crate::config::MCP;
use crate::model::ScenarioName;

/// The path of the protocol's list below a base address; announcements give the whole path.
const LIST_PATH: &str = "/api/v1/tools";
/// The service type of MCP servers, in a full name.
const MCP_TYPE: &str = "._mcp._tcp.";
/// The path of an MCP server whose announcement names none.
const MCP_PATH: &str = "/mcp";
/// The most bytes of an `id` or `boot`; a longer one counts as absent.
const WORD_MAX: usize = 128;
/// The most bytes of a scenario's name.
const NAME_MAX: usize = 100;
/// The most characters of another program's text in a finding.
const SHOWN_MAX: usize = 80;

/// An address with the interface on which it was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReceivedAddress {
    /// The address.
    pub ip: IpAddr,
    /// The index of the interface; 0 if it is not known. Connections need it for link-local IPv6,
    /// and trust for every address.
    pub scope: u32,
}

/// One announcement, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedAnnouncement {
    /// The full name, which a removal names.
    pub fullname: String,
    /// The instance name alone, for display.
    pub instance: String,
    /// The host, without the final dot.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The addresses of the host.
    pub addresses: BTreeSet<ReceivedAddress>,
    /// The TXT record; keys in lower case (RFC 6763 section 6.4: case does not matter). A key
    /// without a value has the empty text.
    pub txt: BTreeMap<String, String>,
}

/// The scenario that an announcement describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedScenario {
    /// The TXT `id`.
    pub id: Option<Arc<str>>,
    /// The TXT `boot`.
    pub boot: Option<Arc<str>>,
    /// The instance name as a scenario's name, if any legal characters are left of it.
    pub name: Option<ScenarioName>,
    /// The instance name without the suffix that a conflict added.
    pub label: String,
    /// The base address.
    pub url: Url,
    /// The protocol that its service type stands for.
    pub protocol: Option<&'static str>,
    /// The address to connect to, for addresses that a URL cannot express.
    pub dial: Option<SocketAddr>,
    /// The address at which the scenario is polled.
    pub address: IpAddr,
}

impl ReceivedAnnouncement {
    /// The announced scenario, or the reason why the announcement is left out.
    pub fn claim(&self) -> Result<AnnouncedScenario, String> {
        match self.word("txtvers").as_deref() {
            None | Some("1") => {}
            Some(other) => {
                return Err(format!(
                    "its record has version {}, and only 1 is known",
                    printable(other)
                ));
            }
        }
        if self.port == 0 {
            return Err("it names port 0".to_owned());
        }
        let is_mcp = self.fullname.to_ascii_lowercase().contains(MCP_TYPE);
        let prefix = if is_mcp {
            self.mcp_path()?
        } else {
            self.prefix()?
        };
        let Some(at) = self.best_address() else {
            return Err("it has no usable address".to_owned());
        };
        let (host, dial) = match at.ip {
            IpAddr::V4(ip) => (ip.to_string(), None),
            IpAddr::V6(ip) if ip.is_unicast_link_local() => (
                self.host.clone(),
                Some(SocketAddr::V6(SocketAddrV6::new(
                    ip, self.port, 0, at.scope,
                ))),
            ),
            IpAddr::V6(ip) => (format!("[{ip}]"), None),
        };
        let scheme = if self.txt.get("tls").is_some_and(|tls| tls == "1") {
            "https"
        } else {
            "http"
        };
        let mut url = Url::parse(&format!("{scheme}://host.invalid:{}/", self.port))
            .map_err(|error| format!("no address can be made of it: {error}"))?;
        if url.set_host(Some(&host)).is_err() {
            return Err(format!(
                "its host {} is not a host name",
                printable(&self.host)
            ));
        }
        url.set_path(prefix);
        let label = without_conflict(&self.instance).to_owned();
        let name = legal_name(&label);
        let id = self.word("id");
        let boot = self.word("boot");
        let protocol = is_mcp.then_some(MCP);
        Ok(AnnouncedScenario {
            id,
            boot,
            name,
            label,
            url,
            protocol,
            dial,
            address: at.ip,
        })
    }

    /// A short text of the record without control characters; an unusable one counts as absent.
    fn word(&self, key: &str) -> Option<Arc<str>> {
        let text = self.txt.get(key).map(|text| text.trim())?;
        let usable = !text.is_empty() && text.len() <= WORD_MAX && !text.contains(char::is_control);
        usable.then(|| text.into())
    }

    /// The path before the protocol's own. One that does not begin with a slash is ignored.
    fn prefix(&self) -> Result<&str, String> {
        let Some(path) = self.txt.get("path").filter(|path| path.starts_with('/')) else {
            return Ok("");
        };
        let prefix = path.trim_end_matches('/').strip_suffix(LIST_PATH);
        prefix
            .filter(|prefix| is_harmless(prefix))
            .ok_or_else(|| format!("its path {} does not end in {LIST_PATH}", printable(path)))
    }

    /// The path of an MCP server.
    fn mcp_path(&self) -> Result<&str, String> {
        let Some(path) = self.txt.get("path").filter(|path| path.starts_with('/')) else {
            return Ok(MCP_PATH);
        };
        let message = || {
            format!(
                "its path {} has characters that no path of a server needs",
                printable(path)
            )
        };
        Some(path.as_str())
            .filter(|path| is_harmless(path))
            .ok_or_else(message)
    }

    /// The address to use: loopback first, since it surely is this machine, then IPv4, global IPv6,
    /// and link-local ones last; the smallest of equals, so that the order of arrival does not
    /// matter.
    pub(super) fn best_address(&self) -> Option<ReceivedAddress> {
        let rank = |at: &ReceivedAddress| match at.ip {
            ip if ip.is_unspecified() || ip.is_multicast() => None,
            ip if ip.is_loopback() => Some(0),
            IpAddr::V4(ip) if ip.is_broadcast() => None,
            IpAddr::V4(ip) if ip.is_link_local() => Some(3),
            IpAddr::V4(_) => Some(1),
            IpAddr::V6(ip) if ip.is_unicast_link_local() => (at.scope != 0).then_some(4),
            IpAddr::V6(_) => Some(2),
        };
        self.addresses
            .iter()
            .filter_map(|at| rank(at).map(|rank| (rank, *at)))
            .min()
            .map(|(_, at)| at)
    }
}

/// Whether neither dot segments nor a second host hide in a path.
fn is_harmless(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
    path.chars().all(plain) && !path.contains("//") && !path.contains("/.")
}

/// The instance name without the ` (2)` that a responder adds when another host has the name (RFC
/// 6762 section 9).
fn without_conflict(instance: &str) -> &str {
    let Some((name, number)) = instance
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once(" ("))
    else {
        return instance;
    };
    if !name.is_empty() && number.parse::<u32>().is_ok_and(|number| number >= 2) {
        name
    } else {
        instance
    }
}

/// A scenario's name made of free text: what is not allowed becomes a hyphen.
fn legal_name(text: &str) -> Option<ScenarioName> {
    let mut name = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        };
        if !(c == '-' && name.ends_with('-')) {
            name.push(c);
        }
    }
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    // All of it is ASCII by now.
    name[..name.len().min(NAME_MAX)].parse().ok()
}

/// A stranger's text for a finding: quoted, short, without control characters.
pub(super) fn printable(text: &str) -> String {
    let shown: String = text
        .chars()
        .take(SHOWN_MAX)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("`{shown}{more}`")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::discovery::mdns) fn announcement(
        instance: &str,
        addresses: &[&str],
        txt: &[(&str, &str)],
    ) -> ReceivedAnnouncement {
        let address = |text: &&str| {
            let (ip, scope) = text.split_once('%').unwrap_or((text, "0"));
            ReceivedAddress {
                ip: ip.parse().unwrap(),
                scope: scope.parse().unwrap(),
            }
        };
        ReceivedAnnouncement {
            fullname: format!("{instance}._agent-tools._tcp.local."),
            instance: instance.to_owned(),
            host: "host-a.local".to_owned(),
            port: 15000,
            addresses: addresses.iter().map(address).collect(),
            txt: txt
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn an_announced_mcp_server_is_at_its_path() {
        for (txt, path) in [
            (&[][..], Some("/mcp")),
            (&[("path", "/tools/mcp")], Some("/tools/mcp")),
            (&[("path", "//other.example/")], None),
            (&[("path", "/../x")], None),
        ] {
            let mut announced = announcement("a", &["10.0.0.5"], txt);
            announced.fullname = "a._mcp._tcp.local.".to_owned();
            let claim = announced.claim();
            let found = claim
                .as_ref()
                .ok()
                .map(|claim| (claim.url.path(), claim.protocol));
            assert_eq!(found, path.map(|path| (path, Some("mcp"))), "{claim:?}");
        }
        assert_eq!(
            announcement("a", &["10.0.0.5"], &[])
                .claim()
                .unwrap()
                .protocol,
            None
        );
    }

    #[test]
    fn addresses_are_taken_in_the_order_of_their_use() {
        for (addresses, url) in [
            (
                &["10.0.0.5", "2001:db8::1", "fe80::1%2"][..],
                "http://10.0.0.5:15000/",
            ),
            (&["10.0.0.5", "127.0.0.1"], "http://127.0.0.1:15000/"),
            (&["10.0.0.6", "10.0.0.5"], "http://10.0.0.5:15000/"),
            (&["2001:db8::1", "fe80::1%2"], "http://[2001:db8::1]:15000/"),
            (&["10.0.0.5%3", "10.0.0.5%2"], "http://10.0.0.5:15000/"),
            (
                &["169.254.1.1", "2001:db8::1"],
                "http://[2001:db8::1]:15000/",
            ),
        ] {
            let claim = announcement("a", addresses, &[]).claim().unwrap();
            assert_eq!(claim.url.as_str(), url, "{addresses:?}");
            assert_eq!(claim.dial, None, "{addresses:?}");
        }
    }

    #[test]
    fn a_link_local_address_keeps_its_scope_beside_the_host_name() {
        let claim = announcement("a", &["fe80::1%7"], &[]).claim().unwrap();
        assert_eq!(claim.url.as_str(), "http://host-a.local:15000/");
        assert_eq!(claim.dial.unwrap().to_string(), "[fe80::1%7]:15000");
        // Without a scope it is unknown which of many neighbours is meant.
        assert!(announcement("a", &["fe80::1"], &[]).claim().is_err());
    }

    #[test]
    fn paths_lead_to_the_base_address_or_nowhere() {
        for (path, expected) in [
            ("/api/v1/tools", Some("/")),
            ("/api/v1/tools/", Some("/")),
            ("/behind/a-proxy/api/v1/tools", Some("/behind/a-proxy")),
            ("", Some("/")),
            ("api/v1/tools", Some("/")),
            ("http://evil/api/v1/tools", Some("/")),
            ("/", None),
            ("/other", None),
            ("//evil/api/v1/tools", None),
            ("/x/../api/v1/tools", None),
            ("/x?y=/api/v1/tools", None),
            ("/x\n/api/v1/tools", None),
        ] {
            let claim = announcement("a", &["10.0.0.5"], &[("path", path)]).claim();
            assert_eq!(
                claim.as_ref().ok().map(|claim| claim.url.path()),
                expected,
                "{path}: {claim:?}"
            );
        }
    }

    #[test]
    fn txt_records_are_read_and_unknown_keys_are_ignored() {
        let txt = [
            ("txtvers", "1"),
            ("id", " abc "),
            ("boot", "7"),
            ("tls", "1"),
            ("proto", "9"),
            ("zzz", ""),
        ];
        let claim = announcement("a", &["10.0.0.5"], &txt).claim().unwrap();
        assert_eq!(claim.id.as_deref(), Some("abc"));
        assert_eq!(claim.boot.as_deref(), Some("7"));
        assert_eq!(claim.url.as_str(), "https://10.0.0.5:15000/");
        let long = "x".repeat(WORD_MAX + 1);
        assert_eq!(
            announcement("a", &["10.0.0.5"], &[("id", &long)])
                .claim()
                .unwrap()
                .id,
            None
        );
        let refused = announcement("a", &["10.0.0.5"], &[("txtvers", "2")])
            .claim()
            .unwrap_err();
        assert!(refused.contains("version `2`"), "{refused}");
    }

    #[test]
    fn names_lose_what_a_conflict_added_and_what_is_not_allowed() {
        for (instance, expected) in [
            ("agent-manager", Some("agent-manager")),
            ("agent-manager (2)", Some("agent-manager")),
            ("agent-manager (17)", Some("agent-manager")),
            ("tools (1)", Some("tools-1")),
            ("(2)", Some("2")),
            ("Ana's tools  \u{2014} v1.2", Some("Ana-s-tools-v1.2")),
            ("\u{540d}\u{524d}", None),
        ] {
            let claim = announcement(instance, &["10.0.0.5"], &[]).claim().unwrap();
            assert_eq!(
                claim.name.as_ref().map(ScenarioName::as_str),
                expected,
                "{instance}"
            );
        }
        let long = announcement(&"x".repeat(200), &["10.0.0.5"], &[])
            .claim()
            .unwrap()
            .name
            .unwrap();
        assert_eq!(long.as_str().len(), NAME_MAX);
    }

    #[test]
    fn what_cannot_be_asked_is_refused() {
        assert!(announcement("a", &[], &[]).claim().is_err());
        assert!(
            announcement("a", &["0.0.0.0", "224.0.0.1", "ff02::1"], &[])
                .claim()
                .is_err()
        );
        assert!(
            ReceivedAnnouncement {
                port: 0,
                ..announcement("a", &["10.0.0.5"], &[])
            }
            .claim()
            .is_err()
        );
        assert!(
            ReceivedAnnouncement {
                host: "a b/c".into(),
                ..announcement("a", &["fe80::1%2"], &[])
            }
            .claim()
            .is_err()
        );
    }
}
