//! Keeps the sets of all sources and which scenario has which endpoint by them. Pure: it says which
//! came and moved.

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
use crate::model::{Finding, FindingCode, PeerIdentity, ScenarioName, SourceId};

/// How long after the start a source that has not looked everywhere yet may hold back the others.
const SETTLING: Duration = Duration::from_secs(30);

/// What a source says.
pub(in crate::engine) enum ReconcilerInput {
    /// Its whole set.
    Set(SourceId, EndpointSet),
    /// It is not wanted any more, and what it said is void.
    Off(SourceId),
    /// It ended before it was told to; its last set stays in force.
    Ended(SourceError),
}

/// Which scenario is assigned which endpoint.
pub(in crate::engine) struct Reconciler {
    sets: BTreeMap<SourceId, EndpointSet>,
    assigned: BTreeMap<ScenarioName, Assignment>,
    /// Until then every source is waited for before anything that was restored is given up;
    /// afterwards only the one it came from.
    settling: Option<Instant>,
    /// Which party waited for approval under which name when the daemon last ran, and was not found
    /// again yet.
    claims: BTreeMap<ScenarioName, PeerIdentity>,
    /// When those are given up.
    claims_until: Instant,
}

impl Reconciler {
    /// Nothing is assigned yet.
    pub(in crate::engine) fn new(
        sources: BTreeSet<SourceId>,
        claims: BTreeMap<ScenarioName, PeerIdentity>,
        claims_until: Instant,
        now: Now,
    ) -> Self {
        Self {
            sets: sources.into_iter().map(|id| (id, EndpointSet::default())).collect(),
            assigned: BTreeMap::new(),
            settling: Some(now.mono + SETTLING),
            claims,
            claims_until,
        }
    }

    /// Takes in what a source says. [`Self::reassign`] says what follows.
    pub(in crate::engine) fn handle(&mut self, input: ReconcilerInput) {
        match input {
            ReconcilerInput::Set(source, set) => drop(self.sets.insert(source, set)),
            ReconcilerInput::Off(source) => drop(self.sets.remove(&source)),
            ReconcilerInput::Ended(error) => {
                let finding = Finding::new(FindingCode::SourceFailed, error.to_string())
                    .hint("its last endpoints stay active; restart the daemon to start it again");
                // If it had not looked everywhere, it has not said that what it does not name is
                // gone.
                self.sets.entry(error.id).or_default().findings.push(finding);
            }
        }
    }

    /// When it has to look again by time alone.
    pub(in crate::engine) fn due(&self) -> Option<Instant> {
        self.settling
    }

    /// Whether that time has come.
    pub(in crate::engine) fn is_due(&mut self, now: Now) -> bool {
        self.settling.take_if(|until| now.mono >= *until).is_some()
    }

    /// Merges the sets again. `holders` says which party has which name, `is_known` whether a
    /// scenario is known. Gives the scenarios that are new or whose endpoint changed.
    pub(in crate::engine) fn reassign(
        &mut self,
        holders: NameHolders,
        is_known: impl Fn(&ScenarioName) -> bool,
        max_scenarios: usize,
        now: Now,
    ) -> (Vec<(ScenarioName, Assignment)>, Effects) {
        let gone = |party: &PeerIdentity| NameHolder { party: party.clone(), lives: false, pending_claimant: None };
        let mut known: NameHolders = self.claims.iter().map(|(name, party)| (name.clone(), gone(party))).collect();
        known.extend(holders);
        let mut merged = merge(&self.sets, &known, max_scenarios);
        for (name, place) in &mut merged.assignments {
            // What is as it was stays shared with its scenario.
            if let Some(known) = self.assigned.get(name).filter(|known| *known == place) {
                place.endpoint = Arc::clone(&known.endpoint);
            }
        }
        let mut effects = Effects::default();
        if now.mono >= self.claims_until {
            // One that is not stored only means that the next start gives it up again.
            effects.store.extend(std::mem::take(&mut self.claims).into_keys().map(SaveRequest::Forget));
        }
        let news = merged
            .assignments
            .iter()
            .filter(|(name, place)| self.assigned.get(*name) != Some(place) || !is_known(name));
        let news: Vec<_> = news.map(|(name, place)| (name.clone(), place.clone())).collect();
        for (name, _) in &news {
            self.claims.remove(name);
        }
        let before = std::mem::replace(&mut self.assigned, merged.assignments);
        for (name, place) in before {
            // A source that has not looked everywhere yet cannot take anything back.
            if !self.has_settled(place.source) {
                self.assigned.entry(name).or_insert(place);
            }
        }
        effects.publish.push(Dirty::Sources(merged.findings));
        (news, effects)
    }

    /// Which scenario has which endpoint now.
    pub(in crate::engine) fn assigned(&self) -> &BTreeMap<ScenarioName, Assignment> {
        &self.assigned
    }

    /// Whether a scenario of this source may be given up when no source names it: only its own
    /// source can keep it. At the start, what was restored and was not named yet (`was_named`) also
    /// waits for the others, for one of them may be about to name it.
    pub(in crate::engine) fn may_leave(&self, source: SourceId, was_named: bool) -> bool {
        let others = was_named || self.settling.is_none() || self.sets.values().all(|set| set.initial_scan_done);
        others && self.has_settled(source)
    }

    /// Whether the configuration decided that what this source named is not wanted any more. A
    /// source that sees nothing any more gives a hint; an operator who takes an entry out of the
    /// list, or switches a source off, has decided.
    pub(in crate::engine) fn dismisses(&self, source: SourceId) -> bool {
        match source {
            SourceId::Static => true,
            SourceId::Embedded => false,
            source => !self.sets.contains_key(&source),
        }
    }

    /// Whether a source has looked everywhere at least once. One that does not run has nothing to
    /// look for.
    fn has_settled(&self, source: SourceId) -> bool {
        self.sets.get(&source).is_none_or(|set| set.initial_scan_done)
    }
}
