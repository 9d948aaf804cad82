//! Announcements on the local network: mDNS (RFC 6762) with DNS-SD (RFC 6763).
//!
//! Scenarios announce `_agent-tools._tcp` with a TXT record
//! `txtvers=1 path=/api/v1/tools proto=1.0 id=<uuid> boot=<random>`. `tls=1` means https; unknown
//! keys are ignored.
//!
//! ```text
//! mdns-sd -> browser -> received (one announcement, checked) -> table (all) -> EndpointSet
//! this daemon: identity -> announce -> the local network
//! ```
//!
//! What is kept true here:
//!
//! - An announcement is a claim. It is trusted by its address (`discovery.mdns.trust`); all others
//!   wait for an operator's approval.
//! - The `id` identifies a scenario, or else its address, but never the name of its announcement:
//!   that is free text, changes on a conflict, and may differ from interface to interface.
//! - The source never sends a request to an address, never decides that a scenario is gone (it only
//!   stops listing it), and never lists this daemon itself.
//! - Only `browser.rs` receives from mdns-sd. `received.rs` and `table.rs` are pure.
//!
//! Read in this order: `received.rs`, `table.rs`, `browser.rs`, this file (the source); then
//! `own_addresses.rs`, `identity.rs`, `announce.rs`, `reach.rs` (where listening works).
//!
//! When the engine's connection is refused, the announcement is not verified (RFC 6762 section
//! 10.4): sources get no reports from the engine, and the engine's own polls say more than another
//! round of multicast would.

use std::cmp;
use std::sync::Arc;
use std::time::Duration;

use callsheet_provide::mdns::{MdnsDaemon, interface_kinds};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use self::browser::{BrowseEvent, Browser};
use self::own_addresses::OwnAddresses;
use self::table::{AnnouncementRules, AnnouncementTable};
use super::{EndpointSet, Source, SourceError, SourceFactory};
use crate::config::{self, Config};
use crate::model::{Finding, FindingCode, SourceAbsence, SourceId, SourceSpec};
use crate::runtime::{Clock, Stop};

pub use callsheet_provide::SERVICE_TYPE;

pub mod announce;
mod browser;
pub mod identity;
mod own_addresses;
pub mod reach;
pub mod received;
pub mod table;

/// How often the browse is renewed. Otherwise the time between queries grows up to one hour, and
/// after an unnoticed network failure no announcement would arrive for that time.
const RENEW: Duration = Duration::from_secs(60);
/// After this time every program that is there has answered the first two queries.
const SETTLE: Duration = Duration::from_secs(3);
/// The first wait after events broke off or mDNS could not be opened. It doubles up to [`RENEW`].
const BACKOFF: Duration = Duration::from_millis(250);

/// The most records that are kept for each of the announcements that are taken: four describe it,
/// and there may be several interfaces with addresses of both families.
const RECORDS: u64 = 64;

/// Why listening ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListenEnd {
    /// It was to stop.
    Stopped,
    /// Others announced more than may be kept.
    Overfull,
}

/// The source of announcements on the local network.
#[derive(Debug, Clone)]
pub struct MdnsSource {
    section: config::MdnsConfig,
    clock: Clock,
}

impl SourceId {
    /// mDNS on the local network.
    pub const MDNS: Self = Self::new(&SourceSpec {
        name: "mdns",
        rank: 60,
        found: "on the local network",
        absence: SourceAbsence::Hint,
        is_announced: true,
        has_entries: false,
    });
}

/// How the source is made.
pub const FACTORY: SourceFactory = SourceFactory {
    id: SourceId::MDNS,
    make,
    same_settings,
};

/// The source, if it is enabled.
fn make(config: &Config, clock: Clock) -> Option<Box<dyn Source>> {
    let section = &config.discovery.mdns;
    section
        .enabled
        .then(|| Box::new(MdnsSource::new(section.clone(), clock)) as Box<dyn Source>)
}

/// What this daemon announces is no matter of the source.
fn same_settings(one: &Config, other: &Config) -> bool {
    let listening = |config: &Config| config::MdnsConfig {
        announce: false,
        name: String::new(),
        ..config.discovery.mdns.clone()
    };
    listening(one) == listening(other)
}

impl MdnsSource {
    /// The source for this section; `section.id` is this daemon's own id. Does not check whether it
    /// is enabled.
    pub fn new(section: config::MdnsConfig, clock: Clock) -> Self {
        Self { section, clock }
    }

    async fn follow(self, out: watch::Sender<EndpointSet>, stop: &Stop) {
        let rules = AnnouncementRules {
            own_id: self.section.id.as_deref().map(Into::into),
            trust: self.section.trust.clone(),
            max_instances: self.section.max_instances,
        };
        let mut publisher = SetPublisher {
            table: AnnouncementTable::new(rules),
            out,
            settled: false,
            problem: None,
        };
        let mut wait = BACKOFF;
        loop {
            let kinds = interface_kinds(&self.section.interfaces);
            let broken = match MdnsDaemon::open(self.section.port, kinds).await {
                Ok(daemon) => match self.listen(&daemon, &mut publisher, &mut wait, stop).await {
                    Ok(ListenEnd::Stopped) => return daemon.close().await,
                    Ok(ListenEnd::Overfull) => {
                        tracing::warn!(
                            "the records of announcements take too much memory; mDNS is opened anew"
                        );
                        daemon.close().await;
                        continue;
                    }
                    Err(error) => error,
                },
                Err(error) => error,
            };
            // The received announcements stay. The source counts as settled, because no more
            // announcements will arrive.
            publisher.settled = true;
            publisher.problem = Some(BrowseProblem::Unusable {
                why: broken.to_string(),
                wait,
            });
            publisher.publish();
            tokio::select! {
                () = stop.wait() => return,
                () = self.clock.sleep(wait) => wait = cmp::min(wait * 2, RENEW),
            }
        }
    }

    /// Listens until `stop`, until mDNS can no longer be used, or until its cache is too large.
    async fn listen(
        &self,
        daemon: &MdnsDaemon,
        publisher: &mut SetPublisher,
        wait: &mut Duration,
        stop: &Stop,
    ) -> Result<ListenEnd, mdns_sd::Error> {
        let types = self.types();
        let mut ear = Browser::new();
        for service_type in &types {
            ear.browse(daemon, service_type).await?;
        }
        let start = self.clock.now();
        let mut session = BrowseSession {
            renew: start + RENEW,
            settle: Some(start + SETTLE),
            reopen: None,
            whole: true,
        };
        loop {
            let due = session.due(&publisher.table);
            tokio::select! {
                () = stop.wait() => return Ok(ListenEnd::Stopped),
                event = ear.next() => session.take(event, publisher, wait, self.clock.now()),
                () = self.clock.sleep_until(due) => {}
            }
            let now = self.clock.now();
            if let Some((_, service_type)) = session.reopen.take_if(|(at, _)| *at <= now) {
                ear.browse(daemon, &service_type).await?;
            }
            if session.renew <= now {
                if daemon.cached().await? > self.most_cached() {
                    return Ok(ListenEnd::Overfull);
                }
                for service_type in &types {
                    ear.browse(daemon, service_type).await?;
                }
                session.renewed(publisher, wait, now);
            }
            let settled = session.settle.take_if(|at| *at <= now).is_some();
            publisher.settled |= settled;
            if publisher.table.settle(now) || settled {
                publisher.publish();
            }
        }
    }

    /// The most records that mdns-sd may keep. It keeps what is announced for as long as the
    /// announcer says, which may be years, while the table keeps `max_instances`.
    fn most_cached(&self) -> u64 {
        RECORDS.saturating_mul(self.section.max_instances as u64)
    }

    fn types(&self) -> Vec<Arc<str>> {
        let mut types: Vec<Arc<str>> = vec![SERVICE_TYPE.into()];
        for more in &self.section.types {
            if !types.iter().any(|known| known.eq_ignore_ascii_case(more)) {
                types.push(more.as_str().into());
            }
        }
        types
    }
}

/// The set that was sent last, and its parts.
struct SetPublisher {
    table: AnnouncementTable,
    out: watch::Sender<EndpointSet>,
    settled: bool,
    /// The problem that keeps announcements from arriving.
    problem: Option<BrowseProblem>,
}

/// A problem that keeps announcements from arriving.
#[derive(Debug, Clone, PartialEq, Eq)]
enum BrowseProblem {
    /// mDNS could not be opened, or ended.
    Unusable { why: String, wait: Duration },
    /// None of the configured network interfaces exists.
    NoInterface,
    /// Events broke off because too many came at once.
    TooMuch,
}

impl BrowseProblem {
    fn finding(&self) -> Finding {
        let (message, hint) = match self {
            Self::Unusable { why, wait } => (
                format!("mDNS cannot be used: {why}; it is tried again in {wait:?}"),
                "without a local network, disable it with `discovery.mdns.enabled = false`",
            ),
            Self::NoInterface => (
                "mDNS has no network interface to listen on".to_owned(),
                "look at `discovery.mdns.interfaces`, or switch it off with `discovery.mdns.enabled = false`",
            ),
            Self::TooMuch => (
                "more announcements came at once than could be taken in, so some may be missing"
                    .to_owned(),
                "find out which program announces so many; listening starts again",
            ),
        };
        Finding::new(FindingCode::SourceFailed, message).hint(hint)
    }
}

impl SetPublisher {
    fn publish(&mut self) {
        let own = OwnAddresses::now();
        let (endpoints, mut findings) = self.table.endpoints(|at| own.has(at));
        findings.extend(self.problem.as_ref().map(BrowseProblem::finding));
        super::announce(
            &self.out,
            EndpointSet {
                initial_scan_done: self.settled,
                endpoints,
                findings,
            },
        );
    }
}

/// One session with mDNS open.
struct BrowseSession {
    /// When the browse is renewed.
    renew: Instant,
    /// When the first search is complete; `None` after that.
    settle: Option<Instant>,
    /// Which service type must be browsed again, and when.
    reopen: Option<(Instant, Arc<str>)>,
    /// Whether everything since the last renewal was received.
    whole: bool,
}

impl BrowseSession {
    fn due(&self, table: &AnnouncementTable) -> Instant {
        let others = [
            self.settle,
            self.reopen.as_ref().map(|(at, _)| *at),
            table.due(),
        ];
        others.into_iter().flatten().fold(self.renew, cmp::min)
    }

    fn take(
        &mut self,
        event: BrowseEvent,
        publisher: &mut SetPublisher,
        wait: &mut Duration,
        now: Instant,
    ) {
        match event {
            BrowseEvent::Resolved(received) => {
                publisher
                    .table
                    .make_room(&received, |at| OwnAddresses::now().has(at));
                publisher.table.resolved(received, now);
            }
            BrowseEvent::Removed(fullname) => publisher.table.removed(&fullname, now),
            BrowseEvent::Asking { reachable } => {
                let problem = (!reachable).then_some(BrowseProblem::NoInterface);
                if self.whole && publisher.problem != problem {
                    publisher.problem = problem;
                    publisher.publish();
                }
            }
            BrowseEvent::Closed(service_type) => {
                self.whole = false;
                // A second type that breaks off meanwhile is heard again at the renewal.
                self.reopen.get_or_insert((now + *wait, service_type));
                *wait = cmp::min(*wait * 2, RENEW);
                publisher.problem = Some(BrowseProblem::TooMuch);
                publisher.publish();
            }
        }
    }

    fn renewed(&mut self, publisher: &mut SetPublisher, wait: &mut Duration, now: Instant) {
        publisher.table.renewed(self.whole, now);
        if self.whole {
            *wait = BACKOFF;
            if publisher.problem.take().is_some() {
                publisher.publish();
            }
        }
        (self.whole, self.reopen, self.renew) = (true, None, now + RENEW);
    }
}

impl Source for MdnsSource {
    fn id(&self) -> SourceId {
        SourceId::MDNS
    }

    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        async move {
            self.follow(out, &stop).await;
            Ok(())
        }
        .boxed()
    }
}
