//! The ways to scenarios, for calls: where each one is now and what it speaks.
//!
//! The loop writes them just before the snapshot that shows the same; readers never wait. Only scenarios that may be called have one.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use imbl::OrdMap;

use super::scenario::{Scenario, ScenarioMap};
use super::sessions::link::SessionSpec;
use crate::model::{PeerIdentity, ScenarioName, ScenarioState};
use crate::protocols::{ProtocolId, Session};

/// The way to one scenario. Cheap to clone.
#[derive(Clone)]
pub struct CallRoute {
    /// The session with it.
    pub session: Arc<dyn Session>,
    /// Whether that has ended, so that nothing can be sent until there is another one.
    pub ended: bool,
    /// What it speaks.
    pub protocol: ProtocolId,
    /// Its address, without credentials.
    pub address: Arc<str>,
    /// Who is there.
    pub party: PeerIdentity,
    /// How it stands.
    pub state: ScenarioState,
    /// Grows whenever what was known of its process became doubtful: it moved, restarted, or may have.
    pub generation: u64,
}

/// What a call taught about its scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallReport {
    /// It answered: a sign of life.
    Answered,
    /// Nobody listens at its address.
    Refused,
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub(super) struct CallRoutes(Arc<ArcSwap<OrdMap<ScenarioName, Arc<CallRoute>>>>);

impl CallRoutes {
    /// The way to a scenario, if it may be called.
    pub(super) fn to(&self, name: &ScenarioName) -> Option<Arc<CallRoute>> {
        self.0.load().get(name).cloned()
    }

    /// Brings the ways to these scenarios in line with their records, all at once. Most that were asked are where they were.
    pub(super) fn change<'a>(&self, records: &ScenarioMap, names: impl Iterator<Item = &'a ScenarioName>) {
        let before = self.0.load();
        let mut routes = None;
        for name in names {
            let (record, known) = (records.get(name), before.get(name));
            let is_right = match (record, known) {
                (Some(record), Some(known)) => known.is_of(record),
                (Some(record), None) => !record.has_route(),
                (None, known) => known.is_none(),
            };
            if is_right {
                continue;
            }
            let routes = routes.get_or_insert_with(|| OrdMap::clone(&before));
            match record.and_then(|record| record.route()) {
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
    /// Whether this is the way to it still.
    fn is_of(&self, record: &Scenario) -> bool {
        record.has_route()
            && record
                .session()
                .is_some_and(|link| link.ended == self.ended && Arc::ptr_eq(&link.session, &self.session))
            && record.generation() == self.generation
            && record.state() == self.state
            && record.party().map_or(self.party == PeerIdentity::default(), |party| *party == self.party)
    }
}

impl Scenario {
    /// What a session with it is made of, if there may be one: where it is, and what it speaks.
    pub(super) fn session_spec(&self) -> Option<SessionSpec<'_>> {
        let (target, protocol) = (self.target()?, self.protocol()?);
        self.may_be_polled().then_some(SessionSpec { target, protocol, followed: self.is_trusted() })
    }

    /// Whether there is a way to it: an operator or a source vouches for it, nobody said no, and there is a session with it.
    fn has_route(&self) -> bool {
        let may_be_called = self.is_trusted() && !self.is_blocked() && !self.is_dismissed();
        may_be_called && self.session().is_some()
    }

    /// That way.
    fn route(&self) -> Option<CallRoute> {
        let (link, protocol, target) = (self.session().cloned()?, self.protocol()?, self.target()?);
        self.has_route().then(|| CallRoute {
            session: link.session,
            ended: link.ended,
            protocol: protocol.id(),
            address: target.to_string().into(),
            party: self.party().cloned().unwrap_or_default(),
            state: self.state(),
            generation: self.generation(),
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
