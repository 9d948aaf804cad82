//! The routes to scenarios, for calls: where each one is now and which protocol it speaks.
//!
//! The loop writes them just before the snapshot that shows the same, and at once where a session
//! ended; readers never wait. Only scenarios that may be called have a route.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use imbl::OrdMap;

use super::awake::AwakeHolds;
use super::scenario::{Scenario, ScenarioMap};
use super::sessions::link::SessionSpec;
use crate::model::{PeerIdentity, ScenarioName, ScenarioState};
use crate::protocols::{ProtocolId, Session};

/// The route to one scenario. Cheap to clone.
#[derive(Clone)]
pub struct CallRoute {
    /// The session with it.
    pub session: Arc<dyn Session>,
    /// Whether the session has ended, so that no request can be sent until there is another one.
    pub ended: bool,
    /// Whether its tools were listed since its process may be another one. Before that, no call is
    /// sent: its tools may have changed.
    pub is_listed: bool,
    /// Its protocol.
    pub protocol: ProtocolId,
    /// Its address, without credentials.
    pub address: Arc<str>,
    /// The peer that is there.
    pub party: PeerIdentity,
    /// Its state.
    pub state: ScenarioState,
    /// The use of its program, which sleeps while it is not used where that is configured.
    pub awake: Arc<AwakeHolds>,
    /// Grows whenever its process may be another one: it moved, restarted, or may have restarted.
    pub generation: u64,
    /// The sequence of the first snapshot after its process was listed. Definitions of an older one
    /// may be those of a former process.
    pub since: u64,
}

/// All routes.
#[derive(Debug, Clone, Default)]
pub(super) struct CallRoutes(Arc<ArcSwap<OrdMap<ScenarioName, Arc<CallRoute>>>>);

impl CallRoutes {
    /// The route to a scenario, if it may be called.
    pub(super) fn to(&self, name: &ScenarioName) -> Option<Arc<CallRoute>> {
        self.0.load().get(name).cloned()
    }

    /// Updates the routes to these scenarios, all at once, for the snapshot that is published next.
    /// Most of the scenarios that were polled have not moved.
    pub(super) fn change<'a>(
        &self,
        records: &ScenarioMap,
        names: impl Iterator<Item = &'a ScenarioName>,
        sequence: u64,
    ) {
        let before = self.0.load();
        let mut routes = None;
        for name in names {
            let record = records.get(name);
            let known = before.get(name);
            let is_right = match (record, known) {
                (Some(record), Some(known)) => known.is_of(record),
                (Some(record), None) => !record.has_route(),
                (None, known) => known.is_none(),
            };
            if is_right {
                continue;
            }
            let routes = routes.get_or_insert_with(|| OrdMap::clone(&before));
            let route = record.and_then(|record| {
                // Of a process that was listed before, the definitions are published already.
                let same = known.filter(|known| known.is_of_same_listing(record));
                record.route(same.map_or(sequence, |known| known.since))
            });
            match route {
                Some(route) => routes.insert(name.clone(), Arc::new(route)),
                None => routes.remove(name),
            };
        }
        if let Some(routes) = routes {
            self.0.store(Arc::new(routes));
        }
    }
}

impl CallRoute {
    /// Whether a call can be sent by it once its definitions are published.
    pub(super) fn is_callable(&self) -> bool {
        !self.ended && self.is_listed
    }

    /// Whether the scenario's process is still the one of this route, and was listed no more since.
    fn is_of_same_listing(&self, record: &Scenario) -> bool {
        record.generation() == self.generation && record.is_listed() == self.is_listed
    }

    /// Whether this is still the route to the scenario.
    fn is_of(&self, record: &Scenario) -> bool {
        record.has_route()
            && record.session().is_some_and(|link| {
                link.ended == self.ended && Arc::ptr_eq(&link.session, &self.session)
            })
            && self.is_of_same_listing(record)
            && record.state() == self.state
            && Arc::ptr_eq(record.awake(), &self.awake)
            && record
                .party()
                .map_or(self.party == PeerIdentity::default(), |party| {
                    *party == self.party
                })
    }
}

impl Scenario {
    /// The target and protocol of its session, if it may have one.
    pub(super) fn session_spec(&self) -> Option<SessionSpec<'_>> {
        let target = self.target()?;
        let protocol = self.protocol()?;
        let version = self.held().map(|held| &*held.manifest.protocol_version);
        self.may_be_polled().then_some(SessionSpec {
            target,
            protocol,
            version,
            followed: self.is_trusted(),
            asleep: self.is_asleep(),
        })
    }

    /// Whether calls can be sent to it once its definitions are published.
    pub(super) fn is_callable(&self) -> bool {
        let lives = self.session().is_some_and(|link| !link.ended);
        lives && self.is_listed() && self.has_route()
    }

    /// Whether it has a route: it is trusted, not blocked, and has a session.
    fn has_route(&self) -> bool {
        let may_be_called = self.is_trusted() && !self.is_blocked() && !self.is_dismissed();
        may_be_called && self.session().is_some()
    }

    /// Its route, for the snapshot with this sequence.
    fn route(&self, since: u64) -> Option<CallRoute> {
        let link = self.session().cloned()?;
        let protocol = self.protocol()?;
        let target = self.target()?;
        self.has_route().then(|| CallRoute {
            session: link.session,
            ended: link.ended,
            is_listed: self.is_listed(),
            protocol: protocol.id(),
            address: target.to_string().into(),
            party: self.party().cloned().unwrap_or_default(),
            state: self.state(),
            awake: Arc::clone(self.awake()),
            generation: self.generation(),
            since,
        })
    }
}

impl fmt::Debug for CallRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("address", &self.address)
            .field("protocol", &self.protocol)
            .field("state", &self.state)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}
