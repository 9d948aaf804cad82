//! The scenarios as a whole: which come, move, leave and are forgotten. What that makes of one scenario is its own matter (`scenario/`);
//! what it makes of the rest is applied by the loop (`apply.rs`).

use std::collections::BTreeMap;

use super::assignment::{Assignment, address_key};
use super::effects::{Dirty, Effects, Settled};
use super::error::EngineError;
use super::message::Forgotten;
use super::now::Now;
use super::partition;
use super::persist::archive::Save;
use super::persist::restore;
use super::reconcile::{Holder, Known};
use super::run::Core;
use super::scenario::handle::{Input, World};
use super::scenario::{Scenario, trust};
use crate::discovery::Trust;
use crate::model::{ScenarioName, ScenarioState, SourceId};
use crate::state::{Decision, Ruling};

impl Core {
    /// The sources changed their minds: scenarios come, move and go.
    pub(super) fn reconcile(&mut self, now: Now) {
        if self.reconcile_once(now) {
            // What went at once may have held what another one waited for.
            self.reconcile_once(now);
        }
    }

    /// Whether a scenario went at once.
    fn reconcile_once(&mut self, now: Now) -> bool {
        let holders = self.holders();
        let Self { reconciler, records, parts, .. } = self;
        let max = parts.config.refresh.max_scenarios;
        let (news, effects) = reconciler.reassign(holders, |name| records.contains_key(name), max, now);
        self.apply(effects, now);
        for (name, assignment) in news {
            self.assign(&name, &assignment, now);
        }
        let unnamed = self.records.values().filter(|record| !self.reconciler.assigned().contains_key(&record.name));
        let leaving = unnamed.filter(|record| {
            let (source, was_named) = record.source();
            self.reconciler.lets_go(source, was_named)
        });
        let leaving: Vec<_> = leaving.map(|record| record.name.clone()).collect();
        self.silence(&leaving, now);
        let mut went = false;
        for name in leaving {
            let Some(record) = self.records.get(&name) else { continue };
            let (was_absent, dismissed) = (record.is_absent(), self.reconciler.dismisses(record.source().0));
            self.give(&name, Input::Left { dismissed }, now);
            if !was_absent && self.records.get(&name).is_some_and(|record| record.is_absent()) {
                went = true;
                self.drop_double(&name, now);
            }
        }
        self.forget_many(now);
        went
    }

    /// A scenario is new, or its endpoint changed.
    fn assign(&mut self, name: &ScenarioName, assignment: &Assignment, now: Now) {
        let vouched = assignment.endpoint.trust == Trust::Trusted;
        let generation = self.generation();
        let new = || Box::new(Scenario::new(name.clone(), assignment.source, vouched, generation, now));
        let Self { records, parts, decisions, .. } = self;
        let record = records.entry(name.clone()).or_insert_with(new);
        let world = World { transports: &parts.transports, protocols: &parts.protocols, decisions, generation };
        let effects = record.handle(Input::Assigned(assignment, world), &parts.config, now);
        self.apply(effects, now);
    }

    /// Gives an input to a scenario, and does what it wants done.
    pub(super) fn give(&mut self, name: &ScenarioName, input: Input<'_>, now: Now) {
        let Some(record) = self.records.get_mut(name) else { return };
        let effects = record.handle(input, &self.parts.config, now);
        self.apply(effects, now);
    }

    /// Which party has which name: those that an operator approved, and those that are known.
    fn holders(&self) -> Known {
        let mut known = Known::new();
        for (name, record) in &self.records {
            let Some(party) = record.party().cloned() else { continue };
            let lives = record.target().is_some() && !record.is_absent();
            known.insert(name.clone(), Holder { party, lives, stands_in: None });
        }
        for (name, ruling) in &self.decisions {
            let record = self.records.get(name);
            // An approved party keeps the name while another one has it in its absence, unless a source vouches for that one.
            let held = record.is_some_and(|record| {
                record.is_vouched() || record.party().is_some_and(|party| trust::same(&ruling.party, party))
            });
            if ruling.decision == Decision::Trusted && ruling.party.origin.is_some() && !held {
                let stands_in = record.and_then(|record| record.party().cloned());
                known.insert(name.clone(), Holder { party: ruling.party.clone(), lives: false, stands_in });
            }
        }
        known
    }

    /// Marks those that leave as silent, not gone, when too many of the local network leave at once.
    fn silence(&mut self, leaving: &[ScenarioName], now: Now) {
        let rules = &self.parts.config.health;
        let announced =
            |record: &Scenario| record.source().0 == SourceId::Mdns && record.is_trusted() && record.is_named();
        let of = self.records.values().filter(|record| announced(record)).count();
        let leaving = leaving.iter().filter(|name| self.records.get(*name).is_some_and(|record| announced(record)));
        let leaving: Vec<_> = leaving.cloned().collect();
        if partition::is_silence(leaving.len(), of, rules) {
            let until = now.mono + rules.grace;
            for name in leaving {
                self.give(&name, Input::Silenced(until), now);
            }
        }
    }

    /// An operator decided about a name: that may concern scenarios of several names.
    pub(super) fn decided(&mut self, name: &ScenarioName, ruling: Option<Ruling>, now: Now) {
        match ruling {
            Some(ruling) => self.decisions.insert(name.clone(), ruling),
            None => self.decisions.remove(name),
        };
        for name in self.records.keys().cloned().collect::<Vec<_>>() {
            let Self { records, parts, decisions, .. } = self;
            let Some(record) = records.get_mut(&name) else { continue };
            let effects = record.handle(Input::Ruled(decisions), &parts.config, now);
            self.apply(effects, now);
        }
        // Names are held by those that were approved.
        self.reconcile(now);
        self.apply(Effects::scenario(name, Settled::Changed), now);
    }

    /// Forgets one that waited under a name and is known under another one now, such as that of the static list, which was read later.
    fn drop_double(&mut self, name: &ScenarioName, now: Now) {
        let Some(record) = self.records.get(name) else { return };
        let Some(party) = record.party().filter(|_| !self.decisions.contains_key(name)) else { return };
        let address = record.assignment().filter(|_| record.is_dismissed()).map(|place| address_key(&place.endpoint));
        let now_known = self.reconciler.assigned().values().any(|place| {
            let placed = trust::party(&place.endpoint);
            match &address {
                // Several entries of the configuration may be behind one origin.
                Some(address) => *address == address_key(&place.endpoint),
                None => !record.is_trusted() && (placed.same_identity(party) || placed.same_origin(party)),
            }
        });
        if now_known {
            let gone = Dirty::Gone(record.forgotten("it is known under another name", now));
            let effects = self.remove(name).and(Effects { publish: vec![gone], ..Effects::default() });
            self.apply(effects, now);
        }
    }

    /// Forgets a scenario that has been gone for long. Whether it did.
    pub(super) fn forget(&mut self, name: &ScenarioName, now: Now) -> bool {
        let Some(record) = self.records.get(name) else { return true };
        let long = record.forgotten_at(&self.parts.config).is_some_and(|at| now.mono >= at);
        if long {
            self.drop_record(name, now);
        }
        long
    }

    /// Forgets those that have been gone for longest, when more of them are remembered than scenarios may be known at once: those that are named
    /// have their own limit, and what announces ever new names must not fill the memory with old ones.
    fn forget_many(&mut self, now: Now) {
        let undecided = self.records.values().filter(|record| !self.decisions.contains_key(&record.name));
        let gone = undecided.filter_map(|record| Some((record.absent_since()?, record.name.clone())));
        let mut gone: Vec<_> = gone.collect();
        let Some(more) = gone.len().checked_sub(self.parts.config.refresh.max_scenarios) else { return };
        gone.sort_unstable();
        for (_, name) in gone.into_iter().take(more) {
            self.drop_record(&name, now);
        }
    }

    /// Forgets a scenario. Where an operator decided about its name, the decision is what is left to be seen: of a stranger that waited under
    /// it nothing stays.
    fn drop_record(&mut self, name: &ScenarioName, now: Now) {
        let Some(record) = self.records.get(name) else { return };
        let decided = self.decisions.get(name).cloned();
        let stranger = decided.as_ref().is_some_and(|ruling| {
            !record.is_trusted() && record.party().is_none_or(|party| !trust::same(&ruling.party, party))
        });
        if decided.is_some() && !stranger {
            return;
        }
        let gone = Dirty::Gone(record.forgotten("no source has named it for long, and it did not answer", now));
        let mut effects = self.remove(name);
        if let Some(ruling) = decided {
            let generation = self.generation();
            restore::decided(&BTreeMap::from([(name.clone(), ruling)]), &mut self.records, generation, now);
        }
        let next = if self.records.contains_key(name) { Dirty::Scenario(name.clone(), Settled::Changed) } else { gone };
        effects.publish.push(next);
        self.apply(effects, now);
    }

    /// Forgets a scenario because an operator wants it, in the states in which it has no tools in the list.
    pub(super) fn end(&mut self, name: &ScenarioName, now: Now) -> Result<Forgotten, EngineError> {
        let unknown = || EngineError::UnknownScenario(name.clone());
        let record = self.records.get_mut(name).ok_or_else(unknown)?;
        let was = record.state();
        if !matches!(was, ScenarioState::Removed | ScenarioState::Down) {
            return Err(EngineError::NotForgettable(name.clone(), was));
        }
        for waiter in record.take_waiters() {
            // A client that went away needs no answer.
            let _ = waiter.send(Err(unknown()));
        }
        let gone = Dirty::Gone(record.forgotten("an operator had it forgotten", now));
        // The name of a removed one is free then, so the approval under it is to end, once that is durable; one that is still named goes on
        // with its approval.
        let approval_ended = was == ScenarioState::Removed && self.decisions.contains_key(name);
        let named_by = self.reconciler.assigned().get(name).map(|place| place.source);
        self.latches.remove(name);
        let effects = self.remove(name).and(Effects { publish: vec![gone], ..Effects::default() });
        self.apply(effects, now);
        // One that is still named is known anew by this.
        self.reconcile(now);
        Ok(Forgotten { name: name.clone(), was, named_by, approval_ended })
    }

    /// The approval that was to end with a forgotten scenario is still stored: it is to be seen, so that it can be taken back.
    pub(super) fn unforget(&mut self, name: &ScenarioName, now: Now) {
        let Some(ruling) = self.decisions.get(name).cloned() else { return };
        let generation = self.generation();
        restore::decided(&BTreeMap::from([(name.clone(), ruling)]), &mut self.records, generation, now);
        self.apply(Effects::scenario(name, Settled::Changed), now);
    }

    /// Takes a scenario out of those that are known.
    fn remove(&mut self, name: &ScenarioName) -> Effects {
        if let Some(wake) = self.records.remove(name).and_then(|record| record.wake()) {
            self.wakes.remove(&(wake, name.clone()));
        }
        // One that is not stored only means that the next start forgets it again.
        let store = vec![Save::Forget(name.clone())];
        Effects { close: vec![name.clone()], publish: vec![Dirty::Void(name.clone())], store, ..Effects::default() }
    }
}
