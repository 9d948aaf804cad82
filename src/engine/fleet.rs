//! The known scenarios, the operators' decisions about them, and when each has to be evaluated.
//! Changes of one scenario are made in `scenario/`.
//!
//! This module publishes, stores and polls nothing itself: it returns what follows from an input as
//! [`Effects`]. It does not know what sources currently name.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::assignment::{Assignment, address_key};
use super::effects::{ChangeKind, Dirty, Effects};
use super::error::EngineError;
use super::message::Forgotten;
use super::now::Now;
use super::partition::{self, Census};
use super::persist::manifest_writer::SaveRequest;
use super::persist::restore;
use super::reconcile::{NameHolder, NameHolders};
use super::scenario::handle::{AssignContext, ScenarioInput};
use super::scenario::{Scenario, ScenarioMap, trust};
use crate::config::Config;
use crate::discovery::{KnownSources, SourceTrust};
use crate::model::{ScenarioName, ScenarioState, SourceId};
use crate::protocols::Protocols;
use crate::state::{Decision, TrustDecision};
use crate::transports::Transports;

/// All scenarios.
pub(super) struct Fleet {
    scenarios: ScenarioMap,
    /// Operators' decisions, also about scenarios that are not known now.
    decisions: BTreeMap<ScenarioName, TrustDecision>,
    sources: KnownSources,
    /// When each scenario has to be evaluated; at most one entry for each.
    wakes: BTreeSet<(Instant, ScenarioName)>,
    /// The number of scenarios that began since the start, so that generations are unique.
    begun: u64,
}

impl Fleet {
    /// Starts with the restored scenarios, and with those that are known only by an operator's
    /// decision.
    pub(super) fn new(
        mut scenarios: ScenarioMap,
        decisions: BTreeMap<ScenarioName, TrustDecision>,
        sources: KnownSources,
        now: Now,
    ) -> Self {
        restore::decided(&decisions, &mut scenarios, &sources, 0, now);
        Self {
            scenarios,
            decisions,
            sources,
            wakes: BTreeSet::new(),
            begun: 0,
        }
    }

    /// All scenarios.
    pub(super) fn scenarios(&self) -> &ScenarioMap {
        &self.scenarios
    }

    /// All scenarios, to be given inputs.
    pub(super) fn scenarios_mut(&mut self) -> impl Iterator<Item = &mut Scenario> {
        self.scenarios.values_mut().map(|scenario| &mut **scenario)
    }

    /// One scenario.
    pub(super) fn get(&self, name: &ScenarioName) -> Option<&Scenario> {
        self.scenarios.get(name).map(|scenario| &**scenario)
    }

    /// One scenario, to be given inputs.
    pub(super) fn get_mut(&mut self, name: &ScenarioName) -> Option<&mut Scenario> {
        self.scenarios.get_mut(name).map(|scenario| &mut **scenario)
    }

    /// Whether an operator blocked this name.
    pub(super) fn is_blocked(&self, name: &ScenarioName) -> bool {
        self.decisions
            .get(name)
            .is_some_and(|ruling| ruling.decision == Decision::Blocked)
    }

    /// Gives an input to a scenario, if it is known.
    pub(super) fn handle(
        &mut self,
        name: &ScenarioName,
        input: ScenarioInput<'_>,
        config: &Config,
        now: Now,
    ) -> Effects {
        self.get_mut(name)
            .map_or_else(Effects::default, |scenario| {
                scenario.handle(input, config, now)
            })
    }

    /// A scenario is new, or its endpoint changed.
    pub(super) fn assign(
        &mut self,
        name: &ScenarioName,
        assignment: &Assignment,
        transports: &Transports,
        protocols: &Protocols,
        config: &Config,
        now: Now,
    ) -> Effects {
        let source_trusted = assignment.endpoint.trust == SourceTrust::Trusted;
        let generation = self.generation();
        let new = || {
            Box::new(Scenario::new(
                name.clone(),
                assignment.source,
                source_trusted,
                generation,
                now,
            ))
        };
        let scenario = self.scenarios.entry(name.clone()).or_insert_with(new);
        let world = AssignContext {
            transports,
            protocols,
            decisions: &self.decisions,
            generation,
        };
        scenario.handle(ScenarioInput::Assigned(assignment, world), config, now)
    }

    /// The first generation of a new scenario. No earlier scenario of its name can have reached it.
    fn generation(&mut self) -> u64 {
        self.begun += 1;
        self.begun << 32
    }

    /// Applies an operator's decision about a name; it may concern scenarios of several names.
    pub(super) fn rule(
        &mut self,
        name: &ScenarioName,
        ruling: Option<TrustDecision>,
        config: &Config,
        now: Now,
    ) -> Effects {
        match ruling {
            Some(ruling) => self.decisions.insert(name.clone(), ruling),
            None => self.decisions.remove(name),
        };
        let Self {
            scenarios,
            decisions,
            ..
        } = self;
        let ruled = scenarios.values_mut().map(|scenario| {
            scenario.handle(ScenarioInput::DecisionsChanged(decisions), config, now)
        });
        ruled.fold(Effects::default(), Effects::and)
    }

    /// Which peer has which name: approved peers, and those of known scenarios.
    pub(super) fn holders(&self) -> NameHolders {
        let mut known = NameHolders::new();
        for (name, record) in &self.scenarios {
            let Some(party) = record.party().cloned() else {
                continue;
            };
            let lives = record.target().is_some() && !record.is_absent();
            known.insert(
                name.clone(),
                NameHolder {
                    party,
                    lives,
                    pending_claimant: None,
                },
            );
        }
        for (name, ruling) in &self.decisions {
            let record = self.scenarios.get(name);
            // An approved peer keeps its name while another peer uses it in its absence, unless a
            // source vouches for that other peer.
            let held = record.is_some_and(|record| {
                record.is_source_trusted()
                    || record
                        .party()
                        .is_some_and(|party| trust::same(&ruling.party, party))
            });
            if ruling.decision == Decision::Trusted && ruling.party.origin.is_some() && !held {
                let stands_in = record.and_then(|record| record.party().cloned());
                known.insert(
                    name.clone(),
                    NameHolder {
                        party: ruling.party.clone(),
                        lives: false,
                        pending_claimant: stands_in,
                    },
                );
            }
        }
        known
    }

    /// The state of all scenarios, as [`Partition`](super::partition::Partition) needs it.
    pub(super) fn census(&self) -> Census {
        let mut census = Census::default();
        for record in self.scenarios.values() {
            if record.is_well() && record.may_be_polled() && !record.is_asleep() {
                census
                    .answering
                    .push((record.last_poll(), record.name.clone()));
            }
            if record.failures() > 0 {
                census.failing.push(record.name.clone());
                if record.may_be_polled() && record.is_trusted() {
                    census.lost.insert(record.name.clone());
                }
            }
        }
        census
    }

    /// Marks leaving scenarios as silent, not gone, when too many on the local network leave at
    /// once.
    pub(super) fn silence(
        &mut self,
        leaving: &[ScenarioName],
        config: &Config,
        now: Now,
    ) -> Effects {
        let announced = |record: &Scenario| {
            let (source, is_named) = record.source();
            source.spec().is_announced && record.is_trusted() && is_named
        };
        let of = self
            .scenarios
            .values()
            .filter(|record| announced(record))
            .count();
        let leaving = leaving
            .iter()
            .filter(|name| self.get(name).is_some_and(announced));
        let leaving: Vec<_> = leaving.cloned().collect();
        if !partition::is_silence(leaving.len(), of, &config.health) {
            return Effects::default();
        }
        let until = now.mono + config.health.grace;
        let silenced = leaving
            .iter()
            .map(|name| self.handle(name, ScenarioInput::Silenced(until), config, now));
        silenced.fold(Effects::default(), Effects::and)
    }

    /// Forgets a scenario that waited under one name and is now known under another, such as a name
    /// of the static list, which was read later.
    pub(super) fn drop_double(
        &mut self,
        name: &ScenarioName,
        assigned: &BTreeMap<ScenarioName, Assignment>,
        now: Now,
    ) -> Effects {
        let Some(record) = self.get(name) else {
            return Effects::default();
        };
        let party = record
            .party()
            .filter(|_| !self.decisions.contains_key(name));
        let Some(party) = party else {
            return Effects::default();
        };
        let dismissed = record.assignment().filter(|_| record.is_dismissed());
        let address = dismissed.and_then(|place| address_key(&place.endpoint));
        let now_known = assigned.values().any(|place| {
            let placed = trust::party(&place.endpoint);
            match &address {
                // Several entries of the configuration may share one origin.
                Some(_) => address == address_key(&place.endpoint),
                None => {
                    !record.is_trusted()
                        && (placed.same_identity(party) || placed.same_origin(party))
                }
            }
        });
        if !now_known {
            return Effects::default();
        }
        let gone = Dirty::Gone(record.forgotten("it is known under another name", now));
        self.remove(name).and(Effects {
            publish: vec![gone],
            ..Effects::default()
        })
    }

    /// Forgets a scenario that has been gone for long; `None` if it has not.
    pub(super) fn forget(
        &mut self,
        name: &ScenarioName,
        config: &Config,
        now: Now,
    ) -> Option<Effects> {
        let Some(record) = self.get(name) else {
            return Some(Effects::default());
        };
        let long = record.forgotten_at(config).is_some_and(|at| now.mono >= at);
        long.then(|| self.drop_record(name, now))
    }

    /// Forgets the scenarios that have been gone for longest, when more of them are remembered than
    /// scenarios may be known at once. Named scenarios have their own limit; without this one, an
    /// announcer that invents new names could fill the memory.
    pub(super) fn forget_many(&mut self, config: &Config, now: Now) -> Effects {
        let undecided = self
            .scenarios
            .values()
            .filter(|record| !self.decisions.contains_key(&record.name));
        let gone =
            undecided.filter_map(|record| Some((record.absent_since()?, record.name.clone())));
        let mut gone: Vec<_> = gone.collect();
        let more = gone.len().saturating_sub(config.refresh.max_scenarios);
        gone.sort_unstable();
        let dropped = gone
            .into_iter()
            .take(more)
            .map(|(_, name)| self.drop_record(&name, now));
        dropped.fold(Effects::default(), Effects::and)
    }

    /// Forgets a scenario. If an operator decided about its name, only the decision stays visible;
    /// an unapproved scenario that waited under the name leaves no trace.
    fn drop_record(&mut self, name: &ScenarioName, now: Now) -> Effects {
        let Some(record) = self.get(name) else {
            return Effects::default();
        };
        let decided = self.decisions.get(name).cloned();
        let is_another = decided.as_ref().is_some_and(|ruling| {
            !record.is_trusted()
                && record
                    .party()
                    .is_none_or(|party| !trust::same(&ruling.party, party))
        });
        if decided.is_some() && !is_another {
            return Effects::default();
        }
        let gone = Dirty::Gone(record.forgotten(
            "no source has named it for long, and it did not answer",
            now,
        ));
        let mut effects = self.remove(name);
        if let Some(ruling) = decided {
            self.show_decided(name, ruling, now);
        }
        let next = if self.scenarios.contains_key(name) {
            Dirty::Scenario(name.clone(), ChangeKind::Changed)
        } else {
            gone
        };
        effects.publish.push(next);
        effects
    }

    /// Forgets a scenario on an operator's request, in the states in which none of its tools is
    /// listed. `named_by` is the source that still names it.
    pub(super) fn forget_by_operator(
        &mut self,
        name: &ScenarioName,
        named_by: Option<SourceId>,
        now: Now,
    ) -> Result<(Forgotten, Effects), EngineError> {
        let unknown = || EngineError::UnknownScenario(name.clone());
        let record = self.get_mut(name).ok_or_else(unknown)?;
        let was = record.state();
        if !matches!(was, ScenarioState::Removed | ScenarioState::Down) {
            return Err(EngineError::NotForgettable(name.clone(), was));
        }
        for waiter in record.take_waiters() {
            // A client that went away needs no answer.
            let _ = waiter.send(Err(unknown()));
        }
        let gone = Dirty::Gone(record.forgotten("an operator had it forgotten", now));
        // The name of a removed scenario becomes free, so the approval under it ends once that is
        // durable. A scenario that is still named keeps its approval.
        let approval_ended = was == ScenarioState::Removed && self.decisions.contains_key(name);
        let effects = self.remove(name).and(Effects {
            publish: vec![gone],
            ..Effects::default()
        });
        Ok((
            Forgotten {
                name: name.clone(),
                was,
                named_by,
                approval_ended,
            },
            effects,
        ))
    }

    /// The approval of a forgotten scenario is still stored: it is shown again, so that an operator
    /// can remove it.
    pub(super) fn unforget(&mut self, name: &ScenarioName, now: Now) -> Effects {
        let Some(ruling) = self.decisions.get(name).cloned() else {
            return Effects::default();
        };
        self.show_decided(name, ruling, now);
        Effects::scenario(name, ChangeKind::Changed)
    }

    /// Shows a decision about a name that no scenario has.
    fn show_decided(&mut self, name: &ScenarioName, ruling: TrustDecision, now: Now) {
        let generation = self.generation();
        let decided = BTreeMap::from([(name.clone(), ruling)]);
        restore::decided(
            &decided,
            &mut self.scenarios,
            &self.sources,
            generation,
            now,
        );
    }

    /// Removes a scenario from the known ones.
    fn remove(&mut self, name: &ScenarioName) -> Effects {
        if let Some(wake) = self.scenarios.remove(name).and_then(|record| record.wake()) {
            self.wakes.remove(&(wake, name.clone()));
        }
        // If this is not stored, the next start forgets the scenario again.
        let store = vec![SaveRequest::Forget(name.clone())];
        Effects {
            close: vec![name.clone()],
            publish: vec![Dirty::Cleared(name.clone())],
            store,
            ..Effects::default()
        }
    }

    /// When the first scenario has to be evaluated.
    pub(super) fn due(&self) -> Option<Instant> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// The next scenario that is due for evaluation; its entry is removed.
    pub(super) fn take_due(&mut self, now: Now) -> Option<ScenarioName> {
        if self.due()? > now.mono {
            return None;
        }
        let (_, name) = self.wakes.pop_first()?;
        if let Some(scenario) = self.scenarios.get_mut(&name) {
            scenario.set_wake(None);
        }
        Some(name)
    }

    /// Sets when a scenario is evaluated.
    pub(super) fn wake(&mut self, name: &ScenarioName, at: Option<Instant>) {
        let Some(scenario) = self
            .scenarios
            .get_mut(name)
            .filter(|scenario| scenario.wake() != at)
        else {
            return;
        };
        if let Some(old) = scenario.set_wake(at) {
            self.wakes.remove(&(old, name.clone()));
        }
        self.wakes.extend(at.map(|at| (at, name.clone())));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::runtime::Clock;

    fn now() -> Now {
        let clock = Clock::following(jiff::Timestamp::UNIX_EPOCH);
        Now {
            mono: clock.now(),
            wall: clock.wall(),
        }
    }

    /// Scenarios of the configuration with these names.
    fn fleet(names: &[&str], now: Now) -> Fleet {
        let scenario = |name: &&str| {
            let name: ScenarioName = name.parse().unwrap();
            (
                name.clone(),
                Box::new(Scenario::new(name, SourceId::STATIC, true, 0, now)),
            )
        };
        Fleet::new(
            names.iter().map(scenario).collect(),
            BTreeMap::new(),
            KnownSources::with([]),
            now,
        )
    }

    #[test]
    fn each_scenario_is_looked_at_once_at_its_latest_time() {
        let start = now();
        let one = "one".parse().unwrap();
        let two = "two".parse().unwrap();
        let mut fleet = fleet(&["one", "two"], start);
        let at = |seconds| Some(start.mono + Duration::from_secs(seconds));
        fleet.wake(&one, at(1));
        fleet.wake(&one, at(3));
        fleet.wake(&two, at(2));
        assert_eq!(fleet.due(), at(2));
        let later = |seconds| Now {
            mono: start.mono + Duration::from_secs(seconds),
            ..start
        };
        assert_eq!(fleet.take_due(later(1)), None);
        assert_eq!(fleet.take_due(later(2)), Some(two));
        assert_eq!(fleet.take_due(later(2)), None);
        assert_eq!(fleet.take_due(later(3)), Some(one));
        assert_eq!(fleet.due(), None);
    }

    #[test]
    fn of_too_many_that_are_gone_those_gone_longest_are_forgotten() {
        let start = now();
        let mut config = Config::for_state("state.db");
        config.refresh.max_scenarios = 1;
        let mut fleet = fleet(&["first", "kept", "second"], start);
        for (name, after) in [("first", 0), ("second", 1)] {
            let name = name.parse().unwrap();
            let now = Now {
                mono: start.mono + Duration::from_secs(after),
                ..start
            };
            fleet.wake(&name, Some(start.mono));
            fleet.handle(&name, ScenarioInput::Left { dismissed: true }, &config, now);
        }
        let effects = fleet.forget_many(&config, start);
        let names = |fleet: &Fleet| {
            fleet
                .scenarios()
                .keys()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&fleet), ["kept", "second"]);
        assert_eq!(
            effects
                .close
                .iter()
                .map(ScenarioName::as_str)
                .collect::<Vec<_>>(),
            ["first"]
        );
        assert!(matches!(
            effects.publish.as_slice(),
            [Dirty::Cleared(_), Dirty::Gone(_)]
        ));
        // Its wake time is removed too.
        assert_eq!(
            fleet.take_due(start).as_ref().map(ScenarioName::as_str),
            Some("second")
        );
        assert_eq!(fleet.take_due(start), None);
    }
}
