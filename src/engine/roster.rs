//! Which scenario is asked where: the sets of all sources, merged by name and by address. Pure.

use std::collections::BTreeMap;

use url::{Host, Url};

use crate::discovery::{Endpoint, EndpointSet};
use crate::model::{Finding, FindingCode, ScenarioName, SourceId};

/// Where a scenario is asked, and who said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The source that won.
    pub(super) source: SourceId,
    /// Its endpoint.
    pub(super) endpoint: Endpoint,
}

/// All sources' sets as one.
#[derive(Debug, Default)]
pub(super) struct Roster {
    /// One place per scenario.
    pub(super) places: BTreeMap<ScenarioName, Place>,
    /// What the sources said of themselves, and what was left out in merging.
    pub(super) findings: Vec<Finding>,
    /// Whether every source has looked everywhere at least once.
    pub(super) settled: bool,
}

/// Merges the sets. Sources come in the order of precedence: the first that names a scenario, or has an address, wins.
pub(super) fn merge(sets: &BTreeMap<SourceId, EndpointSet>, max_scenarios: usize) -> Roster {
    let mut roster = Roster { settled: sets.values().all(|set| set.settled), ..Roster::default() };
    let mut addresses: BTreeMap<String, ScenarioName> = BTreeMap::new();
    let mut untaken = 0_usize;
    for (source, set) in sets {
        roster.findings.extend(set.findings.iter().cloned());
        for endpoint in set.endpoints.values() {
            let Some(name) = endpoint.name.clone().or_else(|| name_from_address(&endpoint.url)) else { continue };
            if let Some(winner) = roster.places.get(&name) {
                if address_key(&winner.endpoint.url) != address_key(&endpoint.url) {
                    roster.findings.push(shadowed_name(&name, winner, *source, &endpoint.url));
                }
                continue;
            }
            if let Some(owner) = addresses.get(&address_key(&endpoint.url)) {
                roster.findings.push(shadowed_address(owner, &name, *source, &endpoint.url));
                continue;
            }
            if roster.places.len() >= max_scenarios {
                untaken += 1;
                continue;
            }
            addresses.insert(address_key(&endpoint.url), name.clone());
            roster.places.insert(name, Place { source: *source, endpoint: endpoint.clone() });
        }
    }
    if untaken > 0 {
        let message = format!("{untaken} scenarios beyond the first {max_scenarios} were not taken");
        let hint = "raise `refresh.max_scenarios`, or look at what announces so many";
        roster.findings.push(Finding::new(FindingCode::EntryIgnored, message).hint(hint));
    }
    roster
}

fn shadowed_name(name: &ScenarioName, winner: &Place, source: SourceId, url: &Url) -> Finding {
    let message = format!(
        "{source} has it at {}, but {} has it at {} and wins",
        shown(url),
        winner.source,
        shown(&winner.endpoint.url)
    );
    Finding::new(FindingCode::SourceShadowed, message).of_scenario(name)
}

fn shadowed_address(owner: &ScenarioName, name: &ScenarioName, source: SourceId, url: &Url) -> Finding {
    let message = format!("{source} calls {} `{name}`, but it is known as `{owner}`", shown(url));
    Finding::new(FindingCode::SourceShadowed, message).of_scenario(owner)
}

/// One key for all spellings of the same address: the names of this host are one host.
fn address_key(url: &Url) -> String {
    let loopback = match url.host() {
        Some(Host::Domain(domain)) => domain.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let host = if loopback { "localhost" } else { url.host_str().unwrap_or_default() };
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}://{host}:{port}{}", url.scheme(), url.path().trim_end_matches('/'))
}

/// Whether a scenario that was at `before` and is at `after` is another process: it is at another address, or its source saw it start
/// anew. That two sources tell starts apart in their own ways, or one cannot, says nothing.
pub(super) fn restarted(before: &Place, after: &Place) -> bool {
    let (old, new) = (&before.endpoint, &after.endpoint);
    let booted = before.source == after.source && old.boot.is_some() && new.boot.is_some() && old.boot != new.boot;
    booted || address_key(&old.url) != address_key(&new.url)
}

/// A name for an endpoint whose source knows only the address.
fn name_from_address(url: &Url) -> Option<ScenarioName> {
    let host: String = url.host_str()?.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{}-{}", host.trim_matches('-'), url.port_or_known_default()?).parse().ok()
}

/// The address without credentials.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::{EndpointId, Trust};

    fn set(entries: &[(&str, &str)]) -> EndpointSet {
        let endpoints = entries
            .iter()
            .map(|(name, url)| {
                let endpoint = Endpoint {
                    name: (!name.is_empty()).then(|| name.parse().unwrap()),
                    ..Endpoint::at(url.parse().unwrap(), Trust::Trusted)
                };
                (EndpointId(format!("{name}{url}").into()), endpoint)
            })
            .collect();
        EndpointSet { settled: true, endpoints, findings: Vec::new() }
    }

    fn merged(sets: &[(SourceId, EndpointSet)]) -> Roster {
        merge(&sets.iter().cloned().collect(), 100)
    }

    #[test]
    fn the_static_list_wins_and_says_so() {
        let roster = merged(&[
            (SourceId::Vrooli, set(&[("files", "http://127.0.0.1:2")])),
            (SourceId::Static, set(&[("files", "http://127.0.0.1:1")])),
        ]);
        assert_eq!(roster.places.len(), 1);
        assert_eq!(roster.places.values().next().unwrap().source, SourceId::Static);
        assert_eq!(roster.findings[0].code, FindingCode::SourceShadowed);
    }

    #[test]
    fn one_address_is_one_scenario_whatever_it_is_called() {
        let roster = merged(&[
            (SourceId::Static, set(&[("mine", "http://localhost:1/")])),
            (SourceId::Vrooli, set(&[("files", "http://127.0.0.1:1")])),
        ]);
        assert_eq!(roster.places.keys().map(ToString::to_string).collect::<Vec<_>>(), ["mine"]);
        assert!(roster.findings[0].message.contains("known as `mine`"), "{:?}", roster.findings);
    }

    #[test]
    fn agreeing_sources_need_no_finding() {
        let both = set(&[("files", "http://127.0.0.1:1")]);
        let roster = merged(&[(SourceId::Static, both.clone()), (SourceId::Vrooli, both)]);
        assert_eq!((roster.places.len(), roster.findings.len()), (1, 0));
    }

    #[test]
    fn a_nameless_endpoint_is_named_after_its_address() {
        let roster = merged(&[(SourceId::Mdns, set(&[("", "http://[::1]:7/"), ("", "http://10.0.0.3:8/")]))]);
        let names: Vec<_> = roster.places.keys().map(ToString::to_string).collect();
        assert_eq!(names, ["1-7", "10-0-0-3-8"]);
    }

    #[test]
    fn a_restart_is_another_address_or_another_boot_of_one_source() {
        let place = |source, url: &str, boot: Option<&str>| {
            let endpoint = set(&[("files", url)]).endpoints.into_values().next().unwrap();
            Place { source, endpoint: Endpoint { boot: boot.map(Into::into), ..endpoint } }
        };
        let here = "http://127.0.0.1:1";
        let before = place(SourceId::Vrooli, here, Some("41"));
        for (after, expected) in [
            (before.clone(), false),
            (place(SourceId::Vrooli, here, Some("42")), true),
            (place(SourceId::Vrooli, here, None), false),
            (place(SourceId::Mdns, here, Some("x")), false),
            (place(SourceId::Static, "http://localhost:1/", None), false),
            (place(SourceId::Vrooli, "http://127.0.0.1:2", Some("41")), true),
            (place(SourceId::Static, "http://127.0.0.1:2", None), true),
        ] {
            assert_eq!(restarted(&before, &after), expected, "{after:?}");
        }
    }

    #[test]
    fn too_many_are_counted_not_lost_silently() {
        let sets = BTreeMap::from([(SourceId::Static, set(&[("a", "http://h:1"), ("b", "http://h:2")]))]);
        let roster = merge(&sets, 1);
        assert_eq!(roster.places.len(), 1);
        assert!(roster.findings[0].message.starts_with("1 scenarios beyond"));
    }
}
