//! Reconcile: merges the endpoint sets of all sources into one endpoint per scenario.
//!
//! Pure, and independent of the order in which the sets came. It never polls, judges health or
//! changes a scenario. The order of precedence, the rules about names and an example are in
//! `docs/design/reconcile.md`.

use std::collections::BTreeMap;
use std::sync::Arc;

use url::Url;
use xxhash_rust::xxh3::xxh3_128;

use crate::discovery::{Endpoint, EndpointSet, SourceTrust};
use crate::engine::assignment::{Assignment, address_key, redacted_address};
use crate::engine::scenario::trust;
use crate::model::{
    Finding, FindingCode, PeerIdentity, SCENARIO_NAME_MAX, ScenarioName, SourceId, Target,
};

pub(in crate::engine) mod reconciler;

/// The merged endpoint sets of all sources.
#[derive(Debug, Default)]
pub(in crate::engine) struct MergedEndpoints {
    /// One assignment per scenario.
    pub(in crate::engine) assignments: BTreeMap<ScenarioName, Assignment>,
    /// The findings of the sources, and those about endpoints that were left out.
    pub(in crate::engine) findings: Vec<Finding>,
}

/// The peer that is known by a name, whether or not a source names it now.
#[derive(Debug, Clone)]
pub(in crate::engine) struct NameHolder {
    /// The peer.
    pub(in crate::engine) party: PeerIdentity,
    /// Whether the peer may still answer where it was: a source that stopped naming it is a hint,
    /// not proof.
    pub(in crate::engine) lives: bool,
    /// Another peer that has the name meanwhile and waits for its own approval.
    pub(in crate::engine) pending_claimant: Option<PeerIdentity>,
}

/// Which peer is known by which name.
pub(in crate::engine) type NameHolders = BTreeMap<ScenarioName, NameHolder>;

/// Merges the sets. When several endpoints claim a scenario, an address or an identity, the first
/// in this order wins:
///
/// 1. endpoints that a source vouches for, in the order of sources, so that an endpoint found on
///    the network cannot displace them;
/// 2. peers that already have a name, at the endpoint where they are known to be;
/// 3. all others.
///
/// An identity is one scenario, whatever name it announces, and it keeps the name it is known by. A
/// name that another peer holds is not given to a new peer, whether the holder is named now or not.
/// The new peer gets a name made from the announced one and its identity (or address), so that the
/// result does not depend on the order of arrival.
pub(in crate::engine) fn merge(
    sets: &BTreeMap<SourceId, EndpointSet>,
    known: &NameHolders,
    max_scenarios: usize,
) -> MergedEndpoints {
    let mut merge = Merge::new(known, max_scenarios);
    let mut candidates = Vec::new();
    for (source, set) in sets {
        merge.roster.findings.extend(set.findings.iter().cloned());
        candidates.extend(
            set.endpoints
                .values()
                .map(|endpoint| EndpointCandidate::new(*source, endpoint)),
        );
    }
    // The sort is stable, so equal candidates stay in the order of sources and their endpoints.
    candidates.sort_by_cached_key(|candidate| merge.rank(candidate));
    for candidate in candidates {
        merge.take(candidate);
    }
    merge.finish()
}

/// An endpoint that is being assigned.
struct EndpointCandidate {
    source: SourceId,
    endpoint: Endpoint,
    party: PeerIdentity,
    source_trusted: bool,
    /// Whether the name that its source gives it is its own: an operator's file has it.
    is_named: bool,
}

impl EndpointCandidate {
    fn new(source: SourceId, endpoint: &Endpoint) -> Self {
        let mut endpoint = endpoint.clone();
        if trust::merely_found(source, endpoint.trust) {
            endpoint.target = endpoint.target.map(trust::bare);
        }
        let source_trusted = endpoint.trust == SourceTrust::Trusted;
        let is_named = source_trusted || endpoint.trust == SourceTrust::Proposed;
        Self {
            source,
            party: trust::party(&endpoint),
            source_trusted,
            is_named,
            endpoint,
        }
    }
}

/// A merge under way.
struct Merge<'a> {
    known: &'a NameHolders,
    identities: BTreeMap<&'a str, &'a ScenarioName>,
    origins: BTreeMap<&'a str, &'a ScenarioName>,
    roster: MergedEndpoints,
    taken_addresses: BTreeMap<String, ScenarioName>,
    taken_identities: BTreeMap<Arc<str>, ScenarioName>,
    max_scenarios: usize,
    untaken: usize,
}

impl<'a> Merge<'a> {
    fn new(known: &'a NameHolders, max_scenarios: usize) -> Self {
        let identities = known
            .iter()
            .filter_map(|(name, holder)| Some((&**holder.party.identity.as_ref()?, name)));
        let origins = known
            .iter()
            .filter_map(|(name, holder)| Some((&**holder.party.origin.as_ref()?, name)));
        Self {
            known,
            identities: identities.collect(),
            origins: origins.collect(),
            roster: MergedEndpoints::default(),
            taken_addresses: BTreeMap::new(),
            taken_identities: BTreeMap::new(),
            max_scenarios,
            untaken: 0,
        }
    }

    /// The name that the candidate's peer is known by.
    fn home(&self, candidate: &EndpointCandidate) -> Option<(&'a ScenarioName, &'a NameHolder)> {
        let party = &candidate.party;
        let by_identity = party
            .identity
            .as_deref()
            .and_then(|identity| self.identities.get(identity));
        let own = candidate
            .endpoint
            .name
            .as_ref()
            .and_then(|name| self.known.get_key_value(name));
        let own = own
            .filter(|(_, holder)| holder.party.same_origin(party))
            .map(|(name, _)| name);
        let by_origin = || {
            party
                .origin
                .as_deref()
                .and_then(|origin| self.origins.get(origin))
                .copied()
        };
        let name = by_identity.copied().or(own).or_else(by_origin)?;
        Some((name, self.known.get(name)?))
    }

    fn rank(&self, candidate: &EndpointCandidate) -> u8 {
        if candidate.source_trusted && candidate.endpoint.ended.is_some() {
            // What runs goes before what has ended, whichever source names it.
            return 2;
        }
        if candidate.source_trusted {
            // A known identity at its known address goes before copies of it.
            let known = self.home(candidate).map(|(_, holder)| &holder.party);
            let moved = |known: &PeerIdentity| {
                known.same_identity(&candidate.party) && !known.same_origin(&candidate.party)
            };
            return u8::from(known.is_some_and(moved));
        }
        let same = |party: &PeerIdentity| trust::same(party, &candidate.party);
        match self.home(candidate).map(|(_, holder)| holder) {
            Some(holder) if same(&holder.party) && holder.party.same_origin(&candidate.party) => 3,
            Some(holder) if same(&holder.party) => 4,
            Some(holder) if holder.pending_claimant.as_ref().is_some_and(same) => 5,
            _ => 6,
        }
    }

    fn take(&mut self, candidate: EndpointCandidate) {
        let target = candidate.endpoint.target.as_ref();
        let Some(claimed) = candidate
            .endpoint
            .name
            .clone()
            .or_else(|| name_from_address(target?.url()))
        else {
            return;
        };
        if candidate.endpoint.ended.is_some() {
            self.take_ended(claimed, candidate);
            return;
        }
        let (Some(target), Some(key)) = (target, address_key(&candidate.endpoint)) else {
            self.roster
                .findings
                .push(unplaced(&claimed, candidate.source));
            return;
        };
        if let Some(owner) = self.taken_addresses.get(&key) {
            if let Some(identity) = &candidate.party.identity {
                // Other endpoints of this identity are the same scenario.
                self.taken_identities
                    .entry(Arc::clone(identity))
                    .or_insert_with(|| owner.clone());
            }
            if *owner != claimed {
                let finding = shadowed_address(owner, &claimed, candidate.source, target);
                self.roster.findings.push(finding);
                if self
                    .roster
                    .assignments
                    .get(owner)
                    .is_some_and(|winner| winner.source == candidate.source)
                {
                    // Two entries of one source cannot both be right.
                    self.roster.findings.push(same_address(
                        &claimed,
                        owner,
                        candidate.source,
                        target,
                    ));
                }
            }
            return;
        }
        if let Some(owner) = candidate
            .party
            .identity
            .as_ref()
            .and_then(|identity| self.taken_identities.get(identity))
        {
            self.roster
                .findings
                .push(shadowed_identity(owner, &candidate));
            return;
        }
        if let Some(name) = self.lives_elsewhere(&candidate) {
            self.roster
                .findings
                .push(shadowed_identity(name, &candidate));
            return;
        }
        let Some(name) = self.named(&candidate, &claimed) else {
            let finding = match self.roster.assignments.get(&claimed) {
                Some(winner) => shadowed_name(&claimed, winner, candidate.source, target),
                None => nameless(&claimed, &candidate),
            };
            self.roster.findings.push(finding);
            return;
        };
        if self.roster.assignments.len() >= self.max_scenarios {
            self.untaken += 1;
            return;
        }
        if name != claimed {
            self.roster
                .findings
                .extend(self.renamed(&name, &claimed, &candidate));
        }
        self.taken_addresses.insert(key, name.clone());
        if let Some(identity) = &candidate.party.identity {
            self.taken_identities
                .insert(Arc::clone(identity), name.clone());
        }
        self.roster.assignments.insert(
            name,
            Assignment {
                source: candidate.source,
                endpoint: Arc::new(candidate.endpoint),
            },
        );
    }

    /// The name of the scenario with the candidate's identity, if it may still answer elsewhere:
    /// the identity may appear at another place only once the known endpoint is really gone.
    fn lives_elsewhere(&self, candidate: &EndpointCandidate) -> Option<&'a ScenarioName> {
        let (name, holder) = self.home(candidate)?;
        let same =
            candidate.party.identity.is_some() && holder.party.same_identity(&candidate.party);
        // A scenario that waits for approval is listed nowhere, so a new port of its host may be
        // polled at once.
        let elsewhere = if candidate.source_trusted {
            !holder.party.same_origin(&candidate.party)
        } else {
            !holder.party.same_host(&candidate.party)
        };
        (holder.lives && same && elsewhere).then_some(name)
    }

    /// Takes an endpoint whose process has ended, unless the scenario runs elsewhere. It has no
    /// claim to its address, which another program may have by now.
    fn take_ended(&mut self, claimed: ScenarioName, candidate: EndpointCandidate) {
        if self.roster.assignments.contains_key(&claimed) {
            return;
        }
        if self.roster.assignments.len() >= self.max_scenarios {
            self.untaken += 1;
            return;
        }
        let place = Assignment {
            source: candidate.source,
            endpoint: Arc::new(candidate.endpoint),
        };
        self.roster.assignments.insert(claimed, place);
    }

    /// The name that a candidate gets; `None` when it is a scenario that already has an assignment.
    fn named(&self, candidate: &EndpointCandidate, claimed: &ScenarioName) -> Option<ScenarioName> {
        let free = |name: &ScenarioName| !self.roster.assignments.contains_key(name);
        // An endpoint that a source vouches for and that has no identity gets the name that the
        // source gives it.
        if (!candidate.is_named || candidate.party.identity.is_some())
            && let Some((home, _)) = self.home(candidate)
            && free(home)
        {
            return Some(home.clone());
        }
        if let Some(winner) = self.roster.assignments.get(claimed) {
            let two = winner.endpoint.identity.is_some() && candidate.party.identity.is_some();
            return if candidate.is_named && !two {
                None
            } else {
                self.own_name(candidate, claimed)
            };
        }
        let Some(holder) = self.known.get(claimed) else {
            return Some(claimed.clone());
        };
        let identities = [&holder.party.identity, &candidate.party.identity];
        let is_taken = if candidate.is_named {
            holder.lives && identities.iter().all(|identity| identity.is_some())
        } else {
            // Without identities, the host is the best sign that a scenario was restarted.
            let kin = identities.iter().all(|identity| identity.is_none())
                && holder.party.same_host(&candidate.party);
            holder.lives || !kin
        };
        if is_taken {
            self.own_name(candidate, claimed)
        } else {
            Some(claimed.clone())
        }
    }

    /// A name that only the same identity (or address) can have: the announced name with a short
    /// hash of it.
    fn own_name(
        &self,
        candidate: &EndpointCandidate,
        claimed: &ScenarioName,
    ) -> Option<ScenarioName> {
        let identity = candidate.party.identity.as_deref().map(str::to_owned);
        let seed = identity.or_else(|| address_key(&candidate.endpoint))?;
        let hash = format!("{:032x}", xxh3_128(seed.as_bytes()));
        // The longer hash is for a peer that found another seed with the same short hash.
        [&hash[..8], &hash[..]].into_iter().find_map(|hash| {
            let room = SCENARIO_NAME_MAX.saturating_sub(hash.len() + 1);
            let name: ScenarioName = format!(
                "{}-{hash}",
                &claimed.as_str()[..claimed.as_str().len().min(room)]
            )
            .parse()
            .ok()?;
            let others = self.known.get(&name).is_some_and(|holder| {
                !holder.party.same_identity(&candidate.party)
                    && !holder.party.same_origin(&candidate.party)
            });
            (!others && !self.roster.assignments.contains_key(&name)).then_some(name)
        })
    }

    /// Reports that a scenario does not get its announced name because of another scenario.
    fn renamed(
        &self,
        name: &ScenarioName,
        claimed: &ScenarioName,
        candidate: &EndpointCandidate,
    ) -> Option<Finding> {
        let placed = self
            .roster
            .assignments
            .get(claimed)
            .map(|place| trust::party(&place.endpoint));
        let party = placed.or_else(|| Some(self.known.get(claimed)?.party.clone()))?;
        if party.same_identity(&candidate.party) {
            return None;
        }
        let message = format!(
            "it announces itself as `{claimed}`, but that name belongs to the scenario {party}; this is the scenario {}",
            candidate.party
        );
        let hint = format!(
            "it is known as `{name}` here; give one of them another name where it is announced"
        );
        Some(
            Finding::new(FindingCode::NameTaken, message)
                .of_scenario(name)
                .hint(hint),
        )
    }

    fn finish(mut self) -> MergedEndpoints {
        if self.untaken > 0 {
            let message = format!(
                "{} scenarios beyond the first {} were not taken",
                self.untaken, self.max_scenarios
            );
            let hint = "raise `refresh.max_scenarios`, or find out which program announces so many";
            self.roster
                .findings
                .push(Finding::new(FindingCode::EntryIgnored, message).hint(hint));
        }
        self.roster
    }
}

fn unplaced(claimed: &ScenarioName, source: SourceId) -> Finding {
    let message =
        format!("{source} names it without an address, and not as one whose process has ended");
    let hint = "the program that brings this source has to give one of the two";
    Finding::new(FindingCode::EntryIgnored, message)
        .of_scenario(claimed)
        .hint(hint)
}

fn nameless(claimed: &ScenarioName, candidate: &EndpointCandidate) -> Finding {
    let message = format!(
        "the scenario {} cannot be distinguished from others that announce this name",
        candidate.party
    );
    Finding::new(FindingCode::EntryIgnored, message)
        .of_scenario(claimed)
        .hint("give it another name where it is announced")
}

fn shadowed_identity(owner: &ScenarioName, candidate: &EndpointCandidate) -> Finding {
    let message = format!(
        "{} also found its identity at {}; the known address is polled as long as it answers",
        candidate.source,
        candidate.party.origin.as_deref().unwrap_or_default()
    );
    Finding::new(FindingCode::SourceShadowed, message).of_scenario(owner)
}

fn shadowed_name(
    name: &ScenarioName,
    winner: &Assignment,
    source: SourceId,
    target: &Target,
) -> Finding {
    let there = winner
        .endpoint
        .target
        .as_ref()
        .map(redacted_address)
        .unwrap_or_default();
    let message = format!(
        "{source} has it at {}, but {} has it at {there} and wins",
        redacted_address(target),
        winner.source
    );
    Finding::new(FindingCode::SourceShadowed, message).of_scenario(name)
}

fn shadowed_address(
    owner: &ScenarioName,
    name: &ScenarioName,
    source: SourceId,
    target: &Target,
) -> Finding {
    let message = format!(
        "{source} calls {} `{name}`, but it is known as `{owner}`",
        redacted_address(target)
    );
    Finding::new(FindingCode::SourceShadowed, message).of_scenario(owner)
}

fn same_address(
    name: &ScenarioName,
    owner: &ScenarioName,
    source: SourceId,
    target: &Target,
) -> Finding {
    let address = redacted_address(target);
    let message =
        format!("{source} names {address} for it and for `{owner}`, which is listed there");
    let hint = "start one of the two on another port, or remove the entry that is out of date";
    Finding::new(FindingCode::SourceShadowed, message)
        .of_scenario(name)
        .hint(hint)
}

/// A name for an endpoint whose source knows only the address.
fn name_from_address(url: &Url) -> Option<ScenarioName> {
    let host: String = url
        .host_str()?
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    format!(
        "{}-{}",
        host.trim_matches('-'),
        url.port_or_known_default()?
    )
    .parse()
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::EndpointId;

    fn set(entries: &[(&str, &str)]) -> EndpointSet {
        let endpoints = entries
            .iter()
            .map(|(name, url)| {
                let endpoint = Endpoint {
                    name: (!name.is_empty()).then(|| name.parse().unwrap()),
                    ..Endpoint::at(url.parse().unwrap(), SourceTrust::Trusted)
                };
                (EndpointId(format!("{name}{url}").into()), endpoint)
            })
            .collect();
        EndpointSet {
            initial_scan_done: true,
            endpoints,
            findings: Vec::new(),
        }
    }

    fn merged(sets: &[(SourceId, EndpointSet)]) -> MergedEndpoints {
        merge(&sets.iter().cloned().collect(), &NameHolders::new(), 100)
    }

    #[test]
    fn the_static_list_wins_and_says_so() {
        let roster = merged(&[
            (SourceId::VROOLI, set(&[("files", "http://127.0.0.1:2")])),
            (SourceId::STATIC, set(&[("files", "http://127.0.0.1:1")])),
        ]);
        assert_eq!(roster.assignments.len(), 1);
        assert_eq!(
            roster.assignments.values().next().unwrap().source,
            SourceId::STATIC
        );
        assert_eq!(roster.findings[0].code, FindingCode::SourceShadowed);
    }

    #[test]
    fn one_address_is_one_scenario_whatever_it_is_called() {
        let roster = merged(&[
            (SourceId::STATIC, set(&[("mine", "http://localhost:1/")])),
            (SourceId::VROOLI, set(&[("files", "http://127.0.0.1:1")])),
        ]);
        assert_eq!(
            roster
                .assignments
                .keys()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
            ["mine"]
        );
        assert!(
            roster.findings[0].message.contains("known as `mine`"),
            "{:?}",
            roster.findings
        );
    }

    #[test]
    fn agreeing_sources_need_no_finding() {
        let both = set(&[("files", "http://127.0.0.1:1")]);
        let roster = merged(&[(SourceId::STATIC, both.clone()), (SourceId::VROOLI, both)]);
        assert_eq!(roster.assignments.len(), 1);
        assert_eq!(roster.findings.len(), 0, "there is nothing in it");
    }

    #[test]
    fn a_nameless_endpoint_is_named_after_its_address() {
        let roster = merged(&[(
            SourceId::MDNS,
            set(&[("", "http://[::1]:7/"), ("", "http://10.0.0.3:8/")]),
        )]);
        let names: Vec<_> = roster.assignments.keys().map(ToString::to_string).collect();
        assert_eq!(names, ["1-7", "10-0-0-3-8"]);
    }

    /// An announcement: its name, where, and its identity, if any.
    fn announced(entries: &[(&str, &str, &str)]) -> BTreeMap<SourceId, EndpointSet> {
        let entry = |(at, (name, url, identity)): (usize, &(&str, &str, &str))| {
            let endpoint = Endpoint {
                name: Some(name.parse().unwrap()),
                identity: (!identity.is_empty()).then(|| (*identity).into()),
                ..Endpoint::at(url.parse().unwrap(), SourceTrust::Untrusted)
            };
            (EndpointId(format!("{at}").into()), endpoint)
        };
        let endpoints = entries.iter().enumerate().map(entry).collect();
        BTreeMap::from([(
            SourceId::MDNS,
            EndpointSet {
                initial_scan_done: true,
                endpoints,
                findings: Vec::new(),
            },
        )])
    }

    fn known(name: &str, identity: &str, origin: &str, lives: bool) -> NameHolders {
        let identity = (!identity.is_empty()).then(|| identity.into());
        let party = PeerIdentity {
            identity,
            origin: Some(origin.into()),
        };
        NameHolders::from([(
            name.parse().unwrap(),
            NameHolder {
                party,
                lives,
                pending_claimant: None,
            },
        )])
    }

    /// Name and host of each assignment.
    fn placed(roster: &MergedEndpoints) -> Vec<(String, String)> {
        let host = |place: &Assignment| {
            place
                .endpoint
                .target
                .as_ref()
                .unwrap()
                .url()
                .host_str()
                .unwrap()
                .to_owned()
        };
        roster
            .assignments
            .iter()
            .map(|(name, place)| (name.to_string(), host(place)))
            .collect()
    }

    #[test]
    fn a_stranger_gets_the_same_name_in_every_order() {
        let known = known("files", "id-1", "http://10.0.0.1:80", false);
        let mut entries = [
            ("files", "http://10.0.0.3/", "id-3"),
            ("files", "http://10.0.0.2/", "id-2"),
            ("files", "http://10.0.0.1/", "id-1"),
        ];
        let before = placed(&merge(&announced(&entries), &known, 100));
        entries.reverse();
        let after = merge(&announced(&entries), &known, 100);
        assert_eq!(before, placed(&after));
        assert_eq!(before.len(), 3);
        assert_eq!(before[0], ("files".into(), "10.0.0.1".into()));
        assert_eq!(
            after
                .findings
                .iter()
                .filter(|finding| finding.code == FindingCode::NameTaken)
                .count(),
            2
        );
        // Also when the holder of the name is not announced.
        let alone = placed(&merge(&announced(&entries[..1]), &NameHolders::new(), 100));
        assert_eq!(alone, [("files".to_owned(), "10.0.0.1".to_owned())]);
        let stranger = merge(
            &announced(&[("files", "http://10.0.0.2/", "id-2")]),
            &known,
            100,
        );
        assert!(before.contains(&placed(&stranger)[0]));
    }

    #[test]
    fn only_kin_of_one_that_is_gone_gets_its_name() {
        for (identity, lives, heard_identity, url, takes) in [
            ("id-1", false, "id-1", "http://10.0.0.2/", Some(true)),
            // It is one scenario, and it still answers where it was.
            ("id-1", true, "id-1", "http://10.0.0.2/", None),
            ("id-1", true, "id-1", "http://10.0.0.1:81/", Some(true)),
            ("id-1", false, "id-2", "http://10.0.0.2/", Some(false)),
            ("id-1", false, "", "http://10.0.0.1:81/", Some(false)),
            // At the same address it cannot be another peer.
            ("id-1", true, "id-2", "http://10.0.0.1/", Some(true)),
            ("", false, "", "http://10.0.0.1:81/", Some(true)),
            ("", true, "", "http://10.0.0.1:81/", Some(false)),
            ("", false, "", "http://10.0.0.2/", Some(false)),
        ] {
            let known = known("files", identity, "http://10.0.0.1:80", lives);
            let roster = merge(&announced(&[("files", url, heard_identity)]), &known, 100);
            let got = roster
                .assignments
                .keys()
                .next()
                .map(|name| name.as_str() == "files");
            assert_eq!(
                got, takes,
                "{identity} {lives} {heard_identity} {url}: {:?}",
                roster.findings
            );
        }
    }

    #[test]
    fn a_flood_of_strangers_pushes_nobody_out() {
        let strangers: Vec<_> = (0..50)
            .map(|n| (format!("s{n}"), format!("http://10.0.1.{n}/")))
            .collect();
        let mut entries: Vec<_> = strangers
            .iter()
            .map(|(name, url)| (name.as_str(), url.as_str(), ""))
            .collect();
        entries.push(("files", "http://10.0.0.1/", "id-1"));
        let mut sets = announced(&entries);
        sets.insert(SourceId::VROOLI, set(&[("desk", "http://127.0.0.1:1")]));
        let roster = merge(
            &sets,
            &known("files", "id-1", "http://10.0.0.1:80", true),
            3,
        );
        let names: Vec<_> = roster.assignments.keys().map(ToString::to_string).collect();
        assert_eq!(names, ["desk", "files", "s0"]);
        assert!(
            roster
                .findings
                .iter()
                .any(|finding| finding.message.starts_with("49 scenarios beyond"))
        );
    }

    #[test]
    fn too_many_are_counted_not_lost_silently() {
        let sets = BTreeMap::from([(
            SourceId::STATIC,
            set(&[("a", "http://h:1"), ("b", "http://h:2")]),
        )]);
        let roster = merge(&sets, &NameHolders::new(), 1);
        assert_eq!(roster.assignments.len(), 1);
        assert!(roster.findings[0].message.starts_with("1 scenarios beyond"));
    }
}
