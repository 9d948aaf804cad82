//! The ways to scenarios, for calls: where each one is now and what it speaks.
//!
//! The loop writes them just before the snapshot that shows the same; readers never wait. Only scenarios that may be called have one.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use imbl::OrdMap;

use super::record::Record;
use crate::model::{Party, ScenarioName, ScenarioState};
use crate::protocols::Protocol;
use crate::state::Decision;
use crate::upstream::Upstream;

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

    /// Puts what changed in force, all at once.
    pub(super) fn change(&self, changes: impl IntoIterator<Item = (ScenarioName, Option<Route>)>) {
        let mut routes = OrdMap::clone(&self.0.load());
        for (name, route) in changes {
            match route {
                Some(route) => routes.insert(name, Arc::new(route)),
                None => routes.remove(&name),
            };
        }
        self.0.store(Arc::new(routes));
    }
}

impl Record {
    /// The way to it: an operator or a source vouches for it, nobody said no, and it is known what it speaks.
    pub(super) fn route(&self) -> Option<Route> {
        let may_be_called = self.is_trusted() && self.decision != Some(Decision::Blocked) && !self.dismissed;
        let (upstream, protocol) = (self.upstream.clone()?, self.protocol.clone()?);
        may_be_called.then(|| Route {
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
