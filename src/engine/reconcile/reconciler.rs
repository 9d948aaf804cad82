//! Holds the sets of all sources and the assignment of endpoints to scenarios. Pure: it returns
//! which scenarios are new or moved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::discovery::{EndpointSet, SourceError};
use crate::engine::assignment::Assignment;
use crate::engine::effects::{Dirty, Effects};
use crate::engine::now::Now;
use crate::engine::persist::manifest_writer::SaveRequest;
use crate::engine::reconcile::{NameHolder, NameHolders, merge};
use crate::model::{Finding, FindingCode, PeerIdentity, ScenarioName, SourceAbsence, SourceId};

/// How long after the start a source that has not finished its first search may delay decisions
/// about scenarios that no source names.
const SETTLING: Duration = Duration::from_secs(30);

/// An input from a source.
pub(in crate::engine) enum ReconcilerInput {
    /// Its whole set.
    Set(SourceId, EndpointSet),
    /// The source was switched off, and its set no longer counts.
    Off(SourceId),
    /// The source ended before it was stopped; its last set stays active.
    Ended(SourceError),
}

/// Which scenario is assigned which endpoint.
pub(in crate::engine) struct Reconciler {
    sets: BTreeMap<SourceId, EndpointSet>,
    assigned: BTreeMap<ScenarioName, Assignment>,
    /// Until this time a restored scenario is given up only when every source has finished its
    /// first search; afterwards only its own source matters.
    settling: Option<Instant>,
    /// The peers that waited for approval, by name, when the daemon last ran, and that were not
    /// found again yet.
    claims: BTreeMap<ScenarioName, PeerIdentity>,
    /// When these claims are given up.
    claims_until: Instant,
}

impl Reconciler {
    /// Starts without assignments.
    pub(in crate::engine) fn new(
        sources: BTreeSet<SourceId>,
        claims: BTreeMap<ScenarioName, PeerIdentity>,
        claims_until: Instant,
        now: Now,
    ) -> Self {
        Self {
            sets: sources
                .into_iter()
                .map(|id| (id, EndpointSet::default()))
                .collect(),
            assigned: BTreeMap::new(),
            settling: Some(now.mono + SETTLING),
            claims,
            claims_until,
        }
    }

    /// Handles an input from a source. [`Self::reassign`] returns the effects.
    pub(in crate::engine) fn handle(&mut self, input: ReconcilerInput) {
        match input {
            ReconcilerInput::Set(source, set) => drop(self.sets.insert(source, set)),
            ReconcilerInput::Off(source) => drop(self.sets.remove(&source)),
            ReconcilerInput::Ended(error) => {
                let finding = Finding::new(FindingCode::SourceFailed, error.to_string())
                    .hint("its last endpoints stay active; restart the daemon to start it again");
                // A source that ended before it finished its first search has not shown that
                // unnamed scenarios are gone.
                self.sets
                    .entry(error.id)
                    .or_default()
                    .findings
                    .push(finding);
            }
        }
    }

    /// When it has to be evaluated again by time alone.
    pub(in crate::engine) fn due(&self) -> Option<Instant> {
        self.settling
    }

    /// Whether that time has come.
    pub(in crate::engine) fn is_due(&mut self, now: Now) -> bool {
        self.settling.take_if(|until| now.mono >= *until).is_some()
    }

    /// Merges the sets again. `holders` says which peer has which name, `is_known` whether a
    /// scenario is known. Returns the scenarios that are new or whose endpoint changed.
    pub(in crate::engine) fn reassign(
        &mut self,
        holders: NameHolders,
        is_known: impl Fn(&ScenarioName) -> bool,
        max_scenarios: usize,
        now: Now,
    ) -> (Vec<(ScenarioName, Assignment)>, Effects) {
        let gone = |party: &PeerIdentity| NameHolder {
            party: party.clone(),
            lives: false,
            pending_claimant: None,
        };
        let mut known: NameHolders = self
            .claims
            .iter()
            .map(|(name, party)| (name.clone(), gone(party)))
            .collect();
        known.extend(holders);
        let mut merged = merge(&self.sets, &known, max_scenarios);
        for (name, place) in &mut merged.assignments {
            // An unchanged assignment stays shared with its scenario.
            if let Some(known) = self.assigned.get(name).filter(|known| *known == place) {
                place.endpoint = Arc::clone(&known.endpoint);
            }
        }
        let mut effects = Effects::default();
        if now.mono >= self.claims_until {
            // If this is not stored, the next start gives the claims up again.
            effects.store.extend(
                std::mem::take(&mut self.claims)
                    .into_keys()
                    .map(SaveRequest::Forget),
            );
        }
        let news = merged
            .assignments
            .iter()
            .filter(|(name, place)| self.assigned.get(*name) != Some(place) || !is_known(name));
        let news: Vec<_> = news
            .map(|(name, place)| (name.clone(), place.clone()))
            .collect();
        for (name, _) in &news {
            self.claims.remove(name);
        }
        let before = std::mem::replace(&mut self.assigned, merged.assignments);
        for (name, place) in before {
            // A source that has not finished its first search cannot remove an assignment.
            if !self.has_settled(place.source) {
                self.assigned.entry(name).or_insert(place);
            }
        }
        effects.publish.push(Dirty::Sources(merged.findings));
        (news, effects)
    }

    /// The current assignment of endpoints.
    pub(in crate::engine) fn assigned(&self) -> &BTreeMap<ScenarioName, Assignment> {
        &self.assigned
    }

    /// Whether a scenario of this source may be given up when no source names it: only its own
    /// source can keep it. At the start, what was restored and was not named yet (`was_named`) also
    /// waits for the others, for one of them may be about to name it.
    pub(in crate::engine) fn may_leave(&self, source: SourceId, was_named: bool) -> bool {
        let others = was_named
            || self.settling.is_none()
            || self.sets.values().all(|set| set.initial_scan_done);
        others && self.has_settled(source)
    }

    /// Whether the configuration removed the endpoints of this source. A source that no longer sees
    /// a scenario is only a hint; an operator who removes an entry from the list, or switches a
    /// source off, has decided.
    pub(in crate::engine) fn dismisses(&self, source: SourceId) -> bool {
        match source.spec().absence {
            SourceAbsence::Decision(_) => true,
            SourceAbsence::Hint => !self.sets.contains_key(&source),
            SourceAbsence::HintAlways => false,
        }
    }

    /// Whether a source has finished its first search. A source that does not run counts as
    /// finished.
    fn has_settled(&self, source: SourceId) -> bool {
        self.sets
            .get(&source)
            .is_none_or(|set| set.initial_scan_done)
    }
}
