//! The ways to scenarios, for calls: where each one is now and what it speaks.
//!
//! The loop writes them just before the snapshot that shows the same; readers never wait. Only scenarios that may be called have one.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use imbl::OrdMap;

use super::record::{Record, Records};
use crate::model::{Party, ScenarioName, ScenarioState};
use crate::protocols::Protocol;
use crate::state::Decision;
use crate::transports::http::Upstream;

/// The way to one scenario. Cheap to clone.
#[derive(Clone)]
pub struct Route {
    /// Its address.
    pub upstream: Upstream,
    /// What it speaks.
    pub protocol: Arc<dyn Protocol>,
    /// Who is there.
    pub party: Party,
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
pub(super) struct Routes(Arc<ArcSwap<OrdMap<ScenarioName, Arc<Route>>>>);

impl Routes {
    /// The way to a scenario, if it may be called.
    pub(super) fn to(&self, name: &ScenarioName) -> Option<Arc<Route>> {
        self.0.load().get(name).cloned()
    }

    /// Brings the ways to these scenarios in line with their records, all at once. Most that were asked are where they were.
    pub(super) fn change<'a>(&self, records: &Records, names: impl Iterator<Item = &'a ScenarioName>) {
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

impl Route {
    /// Whether this is the way to it still.
    fn is_of(&self, record: &Record) -> bool {
        record.has_route()
            && record.upstream.as_ref().is_some_and(|upstream| upstream.is_clone_of(&self.upstream))
            && record.generation == self.generation
            && record.state == self.state
            && record.protocol.as_ref().is_some_and(|protocol| Arc::ptr_eq(protocol, &self.protocol))
            && record.party.as_ref().map_or(self.party == Party::default(), |party| *party == self.party)
    }
}

impl Record {
    /// Whether there is a way to it: an operator or a source vouches for it, nobody said no, and it is known what it speaks.
    fn has_route(&self) -> bool {
        let may_be_called = self.is_trusted() && self.decision != Some(Decision::Blocked) && !self.dismissed;
        may_be_called && self.upstream.is_some() && self.protocol.is_some()
    }

    /// That way.
    fn route(&self) -> Option<Route> {
        let (upstream, protocol) = (self.upstream.clone()?, self.protocol.clone()?);
        self.has_route().then(|| Route {
            upstream,
            protocol,
            party: self.party.clone().unwrap_or_default(),
            state: self.state,
            generation: self.generation,
        })
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("upstream", &self.upstream)
            .field("protocol", &self.protocol.id())
            .field("state", &self.state)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}
