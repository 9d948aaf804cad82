//! The active announcements, and the endpoints made of them. Pure: time is an argument, and the
//! table sends nothing on the network.
//!
//! A resolved announcement is added or replaces the known one. Its addresses arrive in parts, one
//! family or interface after the other, so a change counts only [`DEBOUNCE`] after its first part.
//! A removed announcement is dropped at once. The source only reports that; this module does not
//! decide what happens to the scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::received::{AnnouncedScenario, ReceivedAddress, ReceivedAnnouncement, printable};
use crate::config::MdnsTrust;
use crate::discovery::{Endpoint, EndpointId, SourceTrust};
use crate::model::{Finding, FindingCode, HttpTarget};

/// How long the parts of one change are collected.
pub const DEBOUNCE: Duration = Duration::from_millis(400);
/// How long removals are collected: when an interface goes down, all its announcements go at once.
const GATHER: Duration = Duration::from_millis(20);
/// How long announcements beyond the limit are counted before the count is reported, so that a
/// flood of them costs the rest little.
const COUNT: Duration = Duration::from_secs(1);
/// How many announcements beyond the limit are counted; after that the count says "at least".
const COUNTED: usize = 65_536;
/// How many left out announcements get a finding of their own.
const REPORTED_MAX: usize = 20;

/// The settings of the table.
#[derive(Debug, Clone)]
pub struct AnnouncementRules {
    /// The id of this daemon: its own announcement is never listed.
    pub own_id: Option<Arc<str>>,
    /// Which announcements are trusted.
    pub trust: MdnsTrust,
    /// The most announcements kept.
    pub max_instances: usize,
}

/// The announcements; see the module documentation.
#[derive(Debug)]
pub struct AnnouncementTable {
    rules: AnnouncementRules,
    instances: BTreeMap<String, AnnouncedInstance>,
    /// Hashes of the names of the announcements that were not taken.
    untaken: BTreeSet<u64>,
    /// The untrusted announcements of the last report, by arrival.
    strangers: BTreeMap<u64, String>,
    arrivals: u64,
    round: u64,
    /// When a change other than a pending announcement must be reported.
    gathered: Option<Instant>,
}

#[derive(Debug)]
struct AnnouncedInstance {
    arrival: u64,
    /// The round in which it was last confirmed.
    round: u64,
    in_force: Option<ReceivedAnnouncement>,
    pending: Option<(ReceivedAnnouncement, Instant)>,
    /// The address that it announced last.
    address: Option<IpAddr>,
}

/// An announcement whose scenario can be polled.
struct ListedAnnouncement<'a> {
    arrival: u64,
    announcement: &'a ReceivedAnnouncement,
    claim: AnnouncedScenario,
    trust: SourceTrust,
}

impl AnnouncementTable {
    /// An empty table.
    pub fn new(rules: AnnouncementRules) -> Self {
        Self {
            rules,
            instances: BTreeMap::new(),
            untaken: BTreeSet::new(),
            strangers: BTreeMap::new(),
            arrivals: 0,
            round: 0,
            gathered: None,
        }
    }

    /// Makes room for a new announcement when the table is full. For a trusted one the latest
    /// untrusted one is dropped, so that many untrusted announcements cannot keep it out; else the
    /// latest one of the address that is announced most. `is_own` says whether an address is of
    /// this machine.
    pub fn make_room(
        &mut self,
        announcement: &ReceivedAnnouncement,
        is_own: impl Fn(&ReceivedAddress) -> bool,
    ) {
        let full = self.instances.len() >= self.rules.max_instances;
        if !full || self.instances.contains_key(&announcement.fullname) {
            return;
        }
        let Ok(claim) = announcement.claim() else {
            return;
        };
        if trust(&self.rules.trust, announcement, &claim, is_own) == SourceTrust::Untrusted {
            self.drop_from_crowd(claim.address, true);
            return;
        }
        // Untrusted announcements that left since the last report have made room already.
        while let Some((_, fullname)) = self.strangers.pop_last() {
            if self.instances.remove(&fullname).is_some() {
                self.leave_out(&fullname);
                return;
            }
        }
        self.drop_from_crowd(claim.address, false);
    }

    /// Drops the latest announcement of the address that has the most of them, so that many
    /// announcements of one address cannot keep those of another one out. Only `strangers` may
    /// have to go, if the newcomer is one.
    fn drop_from_crowd(&mut self, newcomer: IpAddr, strangers: bool) {
        let mut crowds: BTreeMap<IpAddr, (usize, u64, &String)> = BTreeMap::new();
        for (fullname, instance) in &self.instances {
            let Some(address) = instance.address else {
                continue;
            };
            if strangers && address != newcomer && !self.strangers.contains_key(&instance.arrival) {
                continue;
            }
            let (count, latest, last) =
                crowds
                    .entry(address)
                    .or_insert((0, instance.arrival, fullname));
            *count += 1;
            if instance.arrival > *latest {
                (*latest, *last) = (instance.arrival, fullname);
            }
        }
        let own = crowds.get(&newcomer).map_or(0, |(count, ..)| *count);
        let largest = crowds.values().max().filter(|(count, ..)| *count > own + 1);
        if let Some(fullname) = largest.map(|(_, _, fullname)| (*fullname).clone()) {
            self.instances.remove(&fullname);
            self.leave_out(&fullname);
        }
    }

    /// Counts an announcement that had to go.
    fn leave_out(&mut self, fullname: &str) {
        if self.untaken.len() < COUNTED {
            self.untaken.insert(hash(fullname));
        }
    }

    /// An announcement was resolved, for the first time or again.
    pub fn resolved(&mut self, announcement: ReceivedAnnouncement, now: Instant) {
        if !self.instances.contains_key(&announcement.fullname) {
            if self.instances.len() >= self.rules.max_instances {
                if self.untaken.len() < COUNTED && self.untaken.insert(hash(&announcement.fullname))
                {
                    self.tell_by(now + COUNT);
                }
                return;
            }
            self.untaken.remove(&hash(&announcement.fullname));
            self.arrivals += 1;
        }
        let fresh = AnnouncedInstance {
            arrival: self.arrivals,
            round: self.round,
            in_force: None,
            pending: None,
            address: None,
        };
        let instance = self
            .instances
            .entry(announcement.fullname.clone())
            .or_insert(fresh);
        instance.round = self.round;
        instance.address = announcement.best_address().map(|at| at.ip);
        match &mut instance.pending {
            Some((pending, _)) => {
                let mut announcement = announcement;
                if (&announcement.host, announcement.port) == (&pending.host, pending.port) {
                    announcement.addresses.extend(&pending.addresses);
                }
                *pending = announcement;
            }
            None if instance.in_force.as_ref() == Some(&announcement) => {}
            pending => *pending = Some((announcement, now + DEBOUNCE)),
        }
    }

    /// An announcement was withdrawn, or its time ran out.
    pub fn removed(&mut self, fullname: &str, now: Instant) {
        if self.instances.remove(fullname).is_some() {
            self.tell_by(now + GATHER);
        } else if self.untaken.remove(&hash(fullname)) {
            self.tell_by(now + COUNT);
        }
    }

    /// The browse was renewed, and the announcements that still exist will be reported again. An
    /// announcement that was not confirmed in a whole round is gone, although no withdrawal
    /// arrived. `whole` says whether everything of the last round was received; if not, no
    /// announcement is dropped.
    pub fn renewed(&mut self, whole: bool, now: Instant) {
        let round = self.round;
        let before = self.instances.len();
        if whole {
            self.instances.retain(|_, instance| instance.round >= round);
        } else {
            self.instances
                .values_mut()
                .for_each(|instance| instance.round = round);
        }
        if self.instances.len() != before {
            self.tell_by(now + GATHER);
        }
        self.round += 1;
    }

    /// Requests a report at `at` or earlier.
    fn tell_by(&mut self, at: Instant) {
        self.gathered = Some(self.gathered.map_or(at, |earlier| earlier.min(at)));
    }

    /// When [`settle`](Self::settle) must run next.
    pub fn due(&self) -> Option<Instant> {
        let pending = self
            .instances
            .values()
            .filter_map(|instance| instance.pending.as_ref().map(|(_, due)| *due));
        pending.chain(self.gathered).min()
    }

    /// Makes the announcements active whose time has come. Returns whether the endpoints may have
    /// changed.
    pub fn settle(&mut self, now: Instant) -> bool {
        let mut changed = self.gathered.take_if(|due| *due <= now).is_some();
        for instance in self.instances.values_mut() {
            if let Some((announcement, _)) = instance.pending.take_if(|(_, due)| *due <= now) {
                instance.in_force = Some(announcement);
                changed = true;
            }
        }
        changed
    }

    /// The endpoints, and the findings about the other announcements. `is_own` says whether an
    /// address is of this machine.
    ///
    /// Every announcement of an identity or a name is listed, each with its address: which one is
    /// trusted is decided where the operator's decisions are known. The same service received over
    /// several interfaces is one endpoint.
    pub fn endpoints(
        &mut self,
        is_own: impl Fn(&ReceivedAddress) -> bool,
    ) -> (BTreeMap<EndpointId, Endpoint>, Vec<Finding>) {
        let mut findings = Vec::new();
        let candidates = candidates(&self.instances, &self.rules, is_own, &mut findings);
        let strangers = candidates
            .iter()
            .filter(|candidate| candidate.trust == SourceTrust::Untrusted);
        self.strangers = strangers
            .map(|stranger| (stranger.arrival, stranger.announcement.fullname.clone()))
            .collect();
        let mut endpoints = BTreeMap::new();
        let mut services = BTreeSet::new();
        for ListedAnnouncement {
            announcement,
            claim,
            trust,
            ..
        } in candidates
        {
            let AnnouncedScenario {
                id,
                boot,
                name,
                url,
                protocol,
                dial,
                ..
            } = claim;
            let origin = url.origin().ascii_serialization();
            if id.is_some() && !services.insert((id.clone(), &announcement.host, announcement.port))
            {
                continue;
            }
            let endpoint_id = id
                .as_ref()
                .map_or_else(|| origin.clone(), |id| format!("{id} {origin}"));
            let target = HttpTarget {
                dial,
                ..HttpTarget::at(url)
            };
            let protocol = protocol.map(str::to_owned);
            let endpoint = Endpoint {
                name,
                boot,
                protocol,
                identity: id,
                ..Endpoint::new(target.into(), trust)
            };
            endpoints
                .entry(EndpointId(endpoint_id.into()))
                .or_insert(endpoint);
        }
        findings.extend(self.too_many());
        (endpoints, findings)
    }

    fn too_many(&self) -> Option<Finding> {
        let count = self.untaken.len();
        let least = if count < COUNTED { "" } else { "at least " };
        let most = self.rules.max_instances;
        let message = format!(
            "{least}{count} announcements on the local network beyond the first {most} were not taken"
        );
        let hint =
            "raise `discovery.mdns.max_instances`, or find out which program announces so many";
        (count > 0).then(|| Finding::new(FindingCode::EntryIgnored, message).hint(hint))
    }
}

/// The announcements that can be polled: trusted ones first, then in the order of arrival.
fn candidates<'a>(
    instances: &'a BTreeMap<String, AnnouncedInstance>,
    rules: &AnnouncementRules,
    is_own: impl Fn(&ReceivedAddress) -> bool,
    findings: &mut Vec<Finding>,
) -> Vec<ListedAnnouncement<'a>> {
    let mut in_force: Vec<_> = instances
        .values()
        .filter_map(|instance| Some((instance.arrival, instance.in_force.as_ref()?)))
        .collect();
    in_force.sort_by_key(|(arrival, _)| *arrival);
    let mut candidates = Vec::new();
    let mut ignored = 0_usize;
    for (arrival, announcement) in in_force {
        match announcement.claim() {
            Ok(claim) if claim.id.is_some() && claim.id == rules.own_id => {}
            Ok(claim) => {
                let trust = trust(&rules.trust, announcement, &claim, &is_own);
                candidates.push(ListedAnnouncement {
                    arrival,
                    announcement,
                    claim,
                    trust,
                });
            }
            Err(why) => {
                ignored += 1;
                if ignored <= REPORTED_MAX {
                    let message = format!(
                        "the announcement {} is left out: {why}",
                        printable(&announcement.instance)
                    );
                    findings.push(Finding::new(FindingCode::EntryIgnored, message));
                }
            }
        }
    }
    if ignored > REPORTED_MAX {
        let message = format!("{} more announcements are left out", ignored - REPORTED_MAX);
        findings.push(Finding::new(FindingCode::EntryIgnored, message));
    }
    candidates.sort_by_key(|candidate| candidate.trust);
    candidates
}

/// Whether an announcement is trusted, by the address at which its scenario would be polled.
fn trust(
    rule: &MdnsTrust,
    announcement: &ReceivedAnnouncement,
    claim: &AnnouncedScenario,
    is_own: impl Fn(&ReceivedAddress) -> bool,
) -> SourceTrust {
    // The same address may have been received over several interfaces; a link-local one is another
    // address over each.
    let polled = |at: &&ReceivedAddress| {
        at.ip == claim.address
            && !matches!(claim.dial, Some(SocketAddr::V6(dial)) if dial.scope_id() != at.scope)
    };
    let is_own = || announcement.addresses.iter().filter(polled).any(is_own);
    let trusted = match rule {
        MdnsTrust::None => false,
        MdnsTrust::All => true,
        MdnsTrust::Local => is_own(),
        MdnsTrust::Listed(patterns) => {
            is_own()
                || patterns
                    .iter()
                    .any(|pattern| pattern.matches(&claim.label, claim.address))
        }
    };
    if trusted {
        SourceTrust::Trusted
    } else {
        SourceTrust::Untrusted
    }
}

fn hash(name: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::mdns::received::tests::announcement;
    use crate::runtime::Clock;

    const ID: (&str, &str) = ("id", "one");

    fn table(trust: MdnsTrust, max_instances: usize) -> (AnnouncementTable, Instant) {
        (
            AnnouncementTable::new(AnnouncementRules {
                own_id: Some("me".into()),
                trust,
                max_instances,
            }),
            Clock::system().now(),
        )
    }

    fn urls(table: &mut AnnouncementTable) -> Vec<(String, String)> {
        let (endpoints, _) = table.endpoints(|at| at.ip.is_loopback());
        endpoints
            .into_values()
            .map(|end| {
                (
                    end.name.unwrap().to_string(),
                    end.target.unwrap().url().to_string(),
                )
            })
            .collect()
    }

    fn findings(table: &mut AnnouncementTable) -> Vec<String> {
        table
            .endpoints(|at| at.ip.is_loopback())
            .1
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    fn pair(name: &str, url: &str) -> (String, String) {
        (name.to_owned(), url.to_owned())
    }

    #[test]
    fn the_parts_of_a_change_are_gathered_and_families_merged() {
        let (mut table, start) = table(MdnsTrust::All, 9);
        table.resolved(announcement("a", &["fe80::1%2"], &[ID]), start);
        assert_eq!(table.due(), Some(start + DEBOUNCE));
        table.resolved(
            announcement("a", &["10.0.0.5"], &[ID]),
            start + DEBOUNCE / 2,
        );
        // What comes in between does not put it off.
        assert_eq!(table.due(), Some(start + DEBOUNCE));
        assert!(!table.settle(start + DEBOUNCE - Duration::from_millis(1)));
        assert_eq!(urls(&mut table), []);
        assert!(table.settle(start + DEBOUNCE));
        assert_eq!(urls(&mut table), [pair("a", "http://10.0.0.5:15000/")]);
        assert_eq!(table.due(), None);
        let both = announcement("a", &["10.0.0.5", "fe80::1%2"], &[ID]);
        table.resolved(both, start + DEBOUNCE);
        assert_eq!(table.due(), None, "nothing new was heard");
    }

    #[test]
    fn an_address_that_left_is_forgotten() {
        let (mut table, start) = table(MdnsTrust::All, 9);
        table.resolved(announcement("a", &["10.0.0.5"], &[ID]), start);
        table.settle(start + DEBOUNCE);
        table.resolved(
            announcement("a", &["10.0.0.6"], &[ID]),
            start + DEBOUNCE * 2,
        );
        table.settle(start + DEBOUNCE * 3);
        assert_eq!(urls(&mut table), [pair("a", "http://10.0.0.6:15000/")]);
    }

    #[test]
    fn a_link_local_address_alone_is_dialled() {
        let (mut table, start) = table(MdnsTrust::All, 9);
        table.resolved(announcement("a", &["fe80::1%2"], &[ID]), start);
        table.settle(start + DEBOUNCE);
        let (endpoints, _) = table.endpoints(|_| false);
        let endpoint = endpoints.values().next().unwrap();
        let target = endpoint.target.as_ref().unwrap();
        assert_eq!(target.url().as_str(), "http://host-a.local:15000/");
        assert_eq!(
            target.http().unwrap().dial.unwrap().to_string(),
            "[fe80::1%2]:15000"
        );
    }

    #[test]
    fn the_same_id_under_two_names_is_one_scenario() {
        let (mut table, start) = table(MdnsTrust::Local, 9);
        table.resolved(announcement("a (2)", &["10.0.0.5"], &[ID]), start);
        table.resolved(announcement("a", &["127.0.0.1"], &[ID]), start);
        table.settle(start + DEBOUNCE);
        // The trusted one wins, though it came later.
        assert_eq!(urls(&mut table), [pair("a", "http://127.0.0.1:15000/")]);
        assert_eq!(findings(&mut table), [""; 0]);
        let copied = ReceivedAnnouncement {
            host: "host-b.local".into(),
            ..announcement("b", &["10.0.0.9"], &[ID])
        };
        table.resolved(copied, start + DEBOUNCE);
        table.settle(start + DEBOUNCE * 2);
        let both = [
            pair("a", "http://127.0.0.1:15000/"),
            pair("b", "http://10.0.0.9:15000/"),
        ];
        assert_eq!(
            urls(&mut table).into_iter().collect::<BTreeSet<_>>(),
            both.into(),
            "who is meant is decided elsewhere"
        );
    }

    #[test]
    fn without_an_id_the_address_is_the_identity() {
        let (mut table, start) = table(MdnsTrust::All, 9);
        table.resolved(announcement("a", &["10.0.0.5"], &[]), start);
        table.resolved(announcement("a (2)", &["10.0.0.5"], &[]), start);
        table.settle(start + DEBOUNCE);
        let (endpoints, _) = table.endpoints(|_| false);
        let ids: Vec<_> = endpoints.keys().map(ToString::to_string).collect();
        assert_eq!(ids, ["http://10.0.0.5:15000"]);
        assert_eq!(endpoints.values().next().unwrap().identity, None);
    }

    #[test]
    fn trust_follows_the_address_that_is_asked() {
        let pattern = |name: &str| crate::config::TrustPattern::Name(name.to_owned());
        for (rule, name, address, expected) in [
            (MdnsTrust::Local, "a", "127.0.0.1", SourceTrust::Trusted),
            (MdnsTrust::Local, "a", "10.0.0.5", SourceTrust::Untrusted),
            (MdnsTrust::None, "a", "127.0.0.1", SourceTrust::Untrusted),
            (MdnsTrust::All, "a", "10.0.0.5", SourceTrust::Trusted),
            (
                MdnsTrust::Listed(vec![pattern("lab-*")]),
                "lab-1 (2)",
                "10.0.0.5",
                SourceTrust::Trusted,
            ),
            (
                MdnsTrust::Listed(vec![pattern("lab-*")]),
                "home",
                "10.0.0.5",
                SourceTrust::Untrusted,
            ),
            (
                MdnsTrust::Listed(vec![pattern("lab-*")]),
                "home",
                "127.0.0.1",
                SourceTrust::Trusted,
            ),
        ] {
            let (mut table, start) = table(rule.clone(), 9);
            table.resolved(announcement(name, &[address], &[ID]), start);
            table.settle(start + DEBOUNCE);
            let (endpoints, _) = table.endpoints(|at| at.ip.is_loopback());
            assert_eq!(
                endpoints.values().next().unwrap().trust,
                expected,
                "{name} at {address} by {rule:?}"
            );
        }
    }

    #[test]
    fn what_is_beyond_the_most_is_counted_once_each_and_taken_when_there_is_room() {
        let (mut table, start) = table(MdnsTrust::All, 2);
        for (index, name) in ["a", "b", "c", "d", "c"].into_iter().enumerate() {
            table.resolved(
                announcement(name, &["10.0.0.5"], &[("id", name)]),
                start + DEBOUNCE * u32::try_from(index).unwrap(),
            );
        }
        table.settle(start + DEBOUNCE * 9);
        assert_eq!(urls(&mut table).len(), 2);
        let [finding] = findings(&mut table).try_into().unwrap();
        assert!(
            finding.starts_with("2 announcements on the local network beyond the first 2"),
            "{finding}"
        );
        table.removed("a._agent-tools._tcp.local.", start + DEBOUNCE * 9);
        table.resolved(
            announcement("c", &["10.0.0.5"], &[("id", "c")]),
            start + DEBOUNCE * 9,
        );
        table.settle(start + DEBOUNCE * 10);
        assert_eq!(
            urls(&mut table)
                .iter()
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>(),
            ["b", "c"]
        );
        assert!(findings(&mut table)[0].starts_with("1 announcements"));
    }

    #[test]
    fn untrusted_announcements_give_way_to_trusted_ones_only() {
        let (mut table, start) = table(MdnsTrust::Local, 2);
        let announce = |table: &mut AnnouncementTable, name: &str, address: &str| {
            let announced = announcement(name, &[address], &[("id", name)]);
            table.make_room(&announced, |at| at.ip.is_loopback());
            table.resolved(announced, start);
            table.settle(start + DEBOUNCE);
            urls(table)
                .into_iter()
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
        };
        announce(&mut table, "a", "10.0.0.5");
        assert_eq!(announce(&mut table, "b", "10.0.0.6"), ["a", "b"]);
        assert_eq!(
            announce(&mut table, "c", "10.0.0.7"),
            ["a", "b"],
            "strangers wait for each other"
        );
        assert_eq!(
            announce(&mut table, "x", "127.0.0.1"),
            ["a", "x"],
            "the latest of them goes"
        );
        assert_eq!(announce(&mut table, "x", "127.0.0.1"), ["a", "x"]);
        assert!(
            findings(&mut table)[0].starts_with("2 announcements"),
            "{:?}",
            findings(&mut table)
        );
        assert_eq!(announce(&mut table, "y", "127.0.0.1"), ["x", "y"]);
        assert_eq!(
            announce(&mut table, "z", "127.0.0.1"),
            ["x", "y"],
            "of the trusted the first stay"
        );
        assert!(findings(&mut table)[0].starts_with("4 announcements"));
    }

    #[test]
    fn a_link_local_address_is_own_on_its_own_link_only() {
        let (mut table, start) = table(MdnsTrust::Local, 9);
        for (name, address) in [
            ("mine", "fe80::1%2"),
            ("theirs", "fe80::1%7"),
            ("wired", "10.0.0.5%2"),
            ("spoof", "10.0.0.5%7"),
        ] {
            table.resolved(announcement(name, &[address], &[("id", name)]), start);
        }
        table.settle(start + DEBOUNCE);
        let (endpoints, _) = table.endpoints(|at| at.scope == 2);
        let trusted = endpoints
            .values()
            .filter(|endpoint| endpoint.trust == SourceTrust::Trusted);
        assert_eq!(
            trusted
                .map(|endpoint| endpoint.name.as_ref().unwrap().as_str())
                .collect::<Vec<_>>(),
            ["mine", "wired"]
        );
    }

    #[test]
    fn many_announcements_of_one_address_do_not_keep_others_out() {
        for rule in [MdnsTrust::Local, MdnsTrust::None] {
            let (mut table, start) = table(rule, 8);
            let own = |at: &ReceivedAddress| at.ip.to_string().starts_with("10.");
            let announce = |table: &mut AnnouncementTable, name: &str, address: &str| {
                let announced = announcement(name, &[address], &[("id", name)]);
                table.make_room(&announced, own);
                table.resolved(announced, start);
                table.settle(start + DEBOUNCE);
                let endpoints = table.endpoints(own).0.into_values();
                endpoints
                    .map(|endpoint| endpoint.name.unwrap().to_string())
                    .collect::<BTreeSet<_>>()
            };
            for index in 0..20 {
                announce(&mut table, &format!("fake-{index}"), "10.0.0.5");
            }
            announce(&mut table, "real-1", "10.0.0.6");
            announce(&mut table, "real-2", "10.0.0.6");
            let listed = announce(&mut table, "real-3", "10.0.0.7");
            let expected = [
                "fake-0", "fake-1", "fake-2", "fake-3", "fake-4", "real-1", "real-2", "real-3",
            ];
            assert_eq!(
                listed.iter().map(String::as_str).collect::<Vec<_>>(),
                expected,
                "{:?}",
                table.rules.trust
            );
        }
    }

    #[test]
    fn what_a_whole_round_did_not_confirm_is_gone() {
        let (mut table, start) = table(MdnsTrust::All, 9);
        for name in ["a", "b"] {
            table.resolved(announcement(name, &["10.0.0.5"], &[("id", name)]), start);
        }
        table.settle(start + DEBOUNCE);
        table.renewed(true, start);
        table.resolved(announcement("a", &["10.0.0.5"], &[("id", "a")]), start);
        // Not everything was heard: nothing can be concluded from silence.
        table.renewed(false, start);
        assert_eq!(urls(&mut table).len(), 2);
        table.resolved(announcement("a", &["10.0.0.5"], &[("id", "a")]), start);
        table.renewed(true, start);
        assert_eq!(table.due(), Some(start + GATHER));
        assert_eq!(urls(&mut table), [pair("a", "http://10.0.0.5:15000/")]);
    }

    #[test]
    fn malformed_announcements_are_reported_up_to_a_limit() {
        let (mut table, start) = table(MdnsTrust::All, 99);
        for index in 0..30 {
            table.resolved(
                announcement(&format!("bad\n{index}"), &["10.0.0.5"], &[("path", "/x")]),
                start,
            );
        }
        table.resolved(announcement("me", &["10.0.0.5"], &[("id", "me")]), start);
        table.settle(start + DEBOUNCE);
        assert_eq!(
            urls(&mut table),
            [],
            "this daemon's own announcement is not listed"
        );
        let findings = findings(&mut table);
        assert_eq!(findings.len(), REPORTED_MAX + 1);
        assert_eq!(findings[REPORTED_MAX], "10 more announcements are left out");
        assert!(
            findings.iter().all(|finding| !finding.contains('\n')),
            "{findings:#?}"
        );
    }

    /// When an interface goes down, all its announcements go at once.
    #[test]
    fn removals_that_come_together_take_effect_together() {
        let (mut table, start) = table(MdnsTrust::All, 9);
        for (name, address) in [("a", "10.0.0.5"), ("b", "10.0.0.6")] {
            table.resolved(announcement(name, &[address], &[]), start);
        }
        table.settle(start + DEBOUNCE);
        let down = start + 2 * DEBOUNCE;
        table.removed(&announcement("a", &["10.0.0.5"], &[]).fullname, down);
        table.removed(
            &announcement("b", &["10.0.0.6"], &[]).fullname,
            down + GATHER / 2,
        );
        assert_eq!(table.due(), Some(down + GATHER));
        assert!(!table.settle(down + GATHER / 2));
        assert!(table.settle(down + GATHER));
        assert_eq!(urls(&mut table), []);
    }
}
