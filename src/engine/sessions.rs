//! The sessions with scenarios: one for each, as long as it is the same process or connection.
//!
//! Made when there is none, kept while the scenario is where it was and speaks what it spoke, and dropped, which closes it, when the
//! scenario moves, restarts, is blocked or removed. It plans no listing and judges no health.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::model::{ScenarioName, Target};
use crate::protocols::{Protocol, Session};
use crate::transports::Transports;

/// What a session is made of.
#[derive(Clone, Copy)]
pub(super) struct Partner<'a> {
    pub(super) target: &'a Target,
    pub(super) protocol: &'a Arc<dyn Protocol>,
}

/// A session that was made beside the loop.
pub(super) struct Connected {
    pub(super) target: Target,
    pub(super) protocol: Arc<dyn Protocol>,
    pub(super) session: Arc<dyn Session>,
}

/// Keeps them.
pub(super) struct Sessions {
    transports: Transports,
    kept: BTreeMap<ScenarioName, Connected>,
}

impl Sessions {
    /// None yet.
    pub(super) fn new(transports: Transports) -> Self {
        Self { transports, kept: BTreeMap::new() }
    }

    /// A listing made a session; it takes the place of any other one.
    pub(super) fn connected(&mut self, name: &ScenarioName, connected: Connected) {
        self.kept.insert(name.clone(), connected);
    }

    /// Brings the session of a scenario in line with what is known of it now: `partner` is absent when there is to be none. The session, if
    /// there is one.
    pub(super) fn settle(&mut self, name: &ScenarioName, partner: Option<Partner<'_>>) -> Option<Arc<dyn Session>> {
        let Some(partner) = partner else {
            self.close(name);
            return None;
        };
        if let Some(kept) = self.kept.get(name) {
            if kept.target == *partner.target && Arc::ptr_eq(&kept.protocol, partner.protocol) {
                return Some(Arc::clone(&kept.session));
            }
            self.close(name);
        }
        let session = self.make(partner)?;
        let (target, protocol) = (partner.target.clone(), Arc::clone(partner.protocol));
        self.kept.insert(name.clone(), Connected { target, protocol, session: Arc::clone(&session) });
        Some(session)
    }

    /// The scenario is another process now, or not known any more.
    pub(super) fn close(&mut self, name: &ScenarioName) {
        self.kept.remove(name);
    }

    /// A session that can be made without waiting; any other one is made by the next listing.
    fn make(&self, partner: Partner<'_>) -> Option<Arc<dyn Session>> {
        if !partner.protocol.is_connectionless() {
            return None;
        }
        partner.protocol.connect(partner.target, &self.transports).now_or_never()?.ok()
    }
}
