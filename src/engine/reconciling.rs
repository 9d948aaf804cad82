//! Applies what sources and operators say, in order: first the assignment of endpoints
//! (`reconcile/`), then the changes of the scenarios (`fleet.rs`).

use super::effects::{ChangeKind, Effects};
use super::error::EngineError;
use super::message::Forgotten;
use super::now::Now;
use super::run::Core;
use super::scenario::Scenario;
use super::scenario::handle::ScenarioInput;
use crate::model::ScenarioName;
use crate::state::{Decision, TrustDecision};

impl Core {
    /// The sources' sets changed: scenarios come, move and go.
    pub(super) fn reconcile(&mut self, now: Now) {
        if self.reconcile_once(now) {
            // A scenario that was removed at once may have held a name that another one waited for.
            self.reconcile_once(now);
        }
    }

    /// Merges once. Returns whether a scenario was removed at once.
    fn reconcile_once(&mut self, now: Now) -> bool {
        let Self {
            reconciler,
            fleet,
            parts,
            ..
        } = self;
        let max = parts.config.refresh.max_scenarios;
        let (news, effects) =
            reconciler.reassign(fleet.holders(), |name| fleet.get(name).is_some(), max, now);
        self.apply(effects, now);
        for (name, assignment) in news {
            let Self {
                fleet, parts, pins, ..
            } = self;
            if fleet
                .get(&name)
                .is_some_and(|record| record.has_other_entry(&assignment))
            {
                pins.await_new_tools(&name);
            }
            let effects = fleet.assign(
                &name,
                &assignment,
                &parts.transports,
                &parts.protocols,
                &parts.config,
                now,
            );
            self.apply(effects, now);
        }
        let leaving = self.leaving();
        let effects = self.fleet.silence(&leaving, &self.parts.config, now);
        self.apply(effects, now);
        let mut went = false;
        for name in leaving {
            let Some(record) = self.fleet.get(&name) else {
                continue;
            };
            let was_absent = record.is_absent();
            let dismissed = self.reconciler.dismisses(record.source().0);
            self.give(&name, ScenarioInput::Left { dismissed }, now);
            if !was_absent && self.fleet.get(&name).is_some_and(Scenario::is_absent) {
                went = true;
                let effects = self
                    .fleet
                    .drop_double(&name, self.reconciler.assigned(), now);
                self.apply(effects, now);
            }
        }
        let effects = self.fleet.forget_many(&self.parts.config, now);
        self.apply(effects, now);
        went
    }

    /// Scenarios that no source names any more, as far as their sources are believed.
    fn leaving(&self) -> Vec<ScenarioName> {
        let assigned = self.reconciler.assigned();
        let unnamed = self
            .fleet
            .scenarios()
            .values()
            .filter(|record| !assigned.contains_key(&record.name));
        let leaving = unnamed.filter(|record| {
            let (source, was_named) = record.source();
            self.reconciler.may_leave(source, was_named)
        });
        leaving.map(|record| record.name.clone()).collect()
    }

    /// Gives an input to a scenario, and applies the effects.
    pub(super) fn give(&mut self, name: &ScenarioName, input: ScenarioInput<'_>, now: Now) {
        let effects = self.fleet.handle(name, input, &self.parts.config, now);
        self.apply(effects, now);
    }

    /// An operator decided about a name.
    pub(super) fn decided(&mut self, name: &ScenarioName, ruling: Option<TrustDecision>, now: Now) {
        let is_trusted = ruling
            .as_ref()
            .is_some_and(|ruling| ruling.decision == Decision::Trusted);
        let effects = self.fleet.rule(name, ruling, &self.parts.config, now);
        self.apply(effects, now);
        if is_trusted {
            // What it listed while it waited is accepted by now, and may not be all.
            self.pins.await_new_tools(name);
        }
        // Approved peers hold names.
        self.reconcile(now);
        self.apply(Effects::scenario(name, ChangeKind::Changed), now);
    }

    /// Forgets a scenario on an operator's request.
    pub(super) fn end(&mut self, name: &ScenarioName, now: Now) -> Result<Forgotten, EngineError> {
        let named_by = self
            .reconciler
            .assigned()
            .get(name)
            .map(|place| place.source);
        let (forgotten, effects) = self.fleet.forget_by_operator(name, named_by, now)?;
        self.latches.remove(name);
        drop(self.first_lists.take(name));
        self.apply(effects, now);
        if let Some(save) = self.pins.forget(name) {
            // If there is no room, the operator accepts or forgets again.
            let _ = self.parts.saves.try_send(save);
        }
        // A scenario that is still named becomes known again here.
        self.reconcile(now);
        Ok(forgotten)
    }
}
