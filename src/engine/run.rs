//! The loop and what it owns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use super::ask::Answered;
use super::assignment::Assignment;
use super::effects::Settled;
use super::error::EngineError;
use super::message::{Command, Event};
use super::now::Now;
use super::partition::Partition;
use super::parts::Parts;
use super::persist::restore;
use super::publish::Press;
use super::scenario::answers::{self, reached};
use super::scenario::schedule::{Rounds, untrusted_permits};
use super::scenario::{Scenario, Scenarios, health};
use super::sessions::Sessions;
use crate::catalog::{CatalogReader, Offer};
use crate::discovery::EndpointSet;
use crate::model::{Digest, Finding, FindingCode, Party, ScenarioName, SourceId};
use crate::runtime::{Latch, Readiness, Stop};
use crate::state::{Decision, Restored, Ruling};

/// Events taken in before what they changed is published.
const BATCH: usize = 256;

/// How long after the start a source that has not looked everywhere yet may hold back the others.
const SETTLING: std::time::Duration = std::time::Duration::from_secs(30);

/// The loop's state.
pub(super) struct Core {
    pub(super) parts: Parts,
    pub(super) records: Scenarios,
    pub(super) sessions: Sessions,
    /// Which record has to be looked at when; at most one entry per record.
    pub(super) wakes: BTreeSet<(Instant, ScenarioName)>,
    pub(super) sets: BTreeMap<SourceId, EndpointSet>,
    pub(super) places: BTreeMap<ScenarioName, Assignment>,
    /// Until then every source is waited for before anything that was restored is given up; afterwards only the one it came from.
    pub(super) settling: Option<Instant>,
    /// Operators' decisions, also on scenarios that are not known now.
    pub(super) decisions: BTreeMap<ScenarioName, Ruling>,
    /// Who waited for a yes under which name when the daemon last ran, and was not found again yet.
    pub(super) claims: BTreeMap<ScenarioName, Party>,
    /// When those are given up.
    pub(super) claims_until: Instant,
    /// Whether a scenario was found to be gone since the places were last made.
    vacated: bool,
    /// Places for asks of scenarios that wait for a yes: however many are found, the others are not held up by them.
    pub(super) strangers: Arc<Semaphore>,
    /// Held until a static scenario was asked once, or the ready deadline passed.
    pub(super) latches: BTreeMap<ScenarioName, Latch>,
    pub(super) ready_deadline: Instant,
    pub(super) press: Press,
    pub(super) isolation: Partition,
    /// When the loop last looked at the clocks.
    pub(super) looked: Now,
    /// When scenarios are asked of which nothing new is expected.
    pub(super) rounds: Rounds,
}

/// What a good answer that says nothing new leaves as it was; nothing of a scenario that is not well.
fn steady(record: &Scenario) -> Option<(Digest, usize, u64, u32)> {
    let held = record.offer.as_ref().filter(|_| record.is_steady())?;
    Some((held.manifest.digest, held.quarantined, record.generation, record.restarts))
}

impl Core {
    /// The state at the start, with what was restored published.
    pub(super) fn new(
        parts: Parts,
        restored: Restored,
        sources: BTreeSet<SourceId>,
        readiness: &Readiness,
    ) -> (Self, CatalogReader) {
        let now = Now { mono: parts.clock.now(), wall: parts.clock.wall() };
        // What becomes of calls is not the loop's business.
        let Restored { manifests, preferences, decisions, claims, revision, mut findings, .. } = restored;
        let decisions: BTreeMap<_, _> = decisions.into_iter().collect();
        let (mut records, unusable) = restore::records(manifests, &decisions, &parts.config, &parts.protocols, now);
        findings.extend(unusable);
        restore::decided(&decisions, &mut records, now);
        let latches = parts
            .config
            .at_known_addresses()
            .iter()
            // A blocked scenario is never asked, so nothing waits for it.
            .filter(|scenario| decisions.get(&scenario.name).is_none_or(|ruling| ruling.decision != Decision::Blocked))
            .map(|scenario| (scenario.name.clone(), readiness.latch(format!("scenario {}", scenario.name))))
            .collect();
        let (press, reader) = Press::new(&parts, &records, Arc::new(preferences), revision, findings, now);
        let strangers = untrusted_permits(&parts.config.refresh);
        let claims_until = now.mono + parts.config.refresh.max_interval;
        let rounds = Rounds::new(now.mono, &parts.config.refresh);
        let mut core = Self {
            ready_deadline: now.mono + parts.config.server.ready_timeout,
            sets: sources.into_iter().map(|id| (id, EndpointSet::default())).collect(),
            sessions: Sessions::new(parts.transports.clone(), parts.events.clone()),
            parts,
            records,
            wakes: BTreeSet::new(),
            places: BTreeMap::new(),
            settling: Some(now.mono + SETTLING),
            decisions,
            claims: claims.into_iter().collect(),
            claims_until,
            vacated: false,
            strangers,
            latches,
            press,
            isolation: Partition::default(),
            looked: now,
            rounds,
        };
        for name in core.records.keys().cloned().collect::<Vec<_>>() {
            core.touch(&name, now, Settled::Changed);
        }
        core.press.publish(&core.records, now);
        (core, reader)
    }

    /// Runs until `stop`.
    pub(super) async fn run(
        mut self,
        mut events: mpsc::Receiver<Event>,
        mut commands: mpsc::Receiver<Command>,
        stop: Stop,
    ) {
        loop {
            let clock = self.parts.clock;
            let wake = self.next_wake();
            tokio::select! {
                biased;
                () = stop.wait() => return,
                Some(event) = events.recv() => {
                    self.event(event);
                    // What came together is published together.
                    for _ in 1..BATCH {
                        let Ok(event) = events.try_recv() else { break };
                        self.event(event);
                    }
                }
                Some(command) = commands.recv() => self.command(command),
                () = clock.sleep_until(wake) => {}
            }
            let now = self.now();
            self.look(now);
            self.tick(now);
            self.weigh(now);
            self.press.publish_when_due(&self.records, !self.latches.is_empty(), now);
        }
    }

    fn now(&self) -> Now {
        Now { mono: self.parts.clock.now(), wall: self.parts.clock.wall() }
    }

    fn next_wake(&self) -> Instant {
        let record = self.wakes.first().map(|(at, _)| *at);
        let ready = (!self.latches.is_empty()).then_some(self.ready_deadline);
        let others = [record, ready, self.press.due(), self.settling];
        others.into_iter().flatten().fold(self.next_look(), Instant::min)
    }

    /// Everything that time alone makes due.
    fn tick(&mut self, now: Now) {
        if std::mem::take(&mut self.vacated) {
            self.places(now);
        }
        if self.settling.take_if(|until| now.mono >= *until).is_some() {
            self.places(now);
        }
        if now.mono >= self.ready_deadline {
            self.latches.clear();
        }
        while let Some((at, name)) = self.wakes.first().cloned() {
            if at > now.mono {
                break;
            }
            self.wakes.pop_first();
            if let Some(record) = self.records.get_mut(&name) {
                record.wake = None;
            }
            if self.forget(&name, now) {
                continue;
            }
            self.ask_if_due(&name, now);
            self.touch(&name, now, Settled::Same);
        }
    }

    fn event(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Endpoints(source, set) => {
                self.sets.insert(source, set);
                self.places(now);
            }
            Event::SourceOff(source) => {
                self.sets.remove(&source);
                self.places(now);
            }
            Event::SourceEnded(error) => {
                let finding = Finding::new(FindingCode::SourceFailed, error.to_string())
                    .hint("its last endpoints stay in force; restart the daemon to start it again");
                // If it had not looked everywhere, it has not said that what it does not name is gone.
                self.sets.entry(error.id).or_default().findings.push(finding);
                self.places(now);
            }
            Event::Answered(answered) => self.answered(*answered, now),
            Event::Session(news) => self.spoke(news, now),
            Event::Preferred(preferences, settings, reply) => {
                self.press.prefer(preferences);
                self.press.touch_all(self.records.keys());
                self.press.after_publish(move |_| {
                    let _ = reply.send(Ok(settings));
                });
            }
            Event::Decided(name, ruling, reply) => {
                self.decided(&name, ruling, now);
                self.press.after_publish(move |snapshot| {
                    let health = snapshot.health.get(&name).cloned();
                    let _ = reply.send(health.ok_or(EngineError::UnknownScenario(name)));
                });
            }
            Event::Archived(result, scenarios) => {
                if result.is_err() {
                    // Saved again after their next good answers.
                    for name in &scenarios {
                        self.records.get_mut(name).into_iter().for_each(|record| record.kept = None);
                    }
                }
                self.press.archived(result.err());
            }
        }
    }

    fn decided(&mut self, name: &ScenarioName, ruling: Option<Ruling>, now: Now) {
        match ruling {
            Some(ruling) => self.decisions.insert(name.clone(), ruling),
            None => self.decisions.remove(name),
        };
        self.rule_all(now);
        self.touch(name, now, Settled::Changed);
    }

    /// Whoever waited for the next answer of a scenario waits no more: it came, or will not come. They get the health after that.
    pub(super) fn asked(&mut self, name: &ScenarioName, now: Now) {
        if let Some(latch) = self.latches.remove(name) {
            // Whoever sees that nothing is awaited any more must find what was awaited in the list.
            self.press.after_publish(move |_| drop(latch));
            if self.latches.is_empty() {
                self.press.hurry(now);
            }
        }
        let Some(record) = self.records.get_mut(name) else { return };
        let waiters = std::mem::take(&mut record.waiters);
        if waiters.is_empty() {
            return;
        }
        let name = name.clone();
        self.press.after_publish(move |snapshot| {
            for waiter in waiters {
                let health = snapshot.health.get(&name).cloned();
                let _ = waiter.send(health.ok_or_else(|| EngineError::UnknownScenario(name.clone())));
            }
        });
    }

    fn command(&mut self, command: Command) {
        let now = self.now();
        let (names, reply) = match command {
            Command::Refresh(names, reply) => (names, reply),
            Command::Locate(name, reply) => {
                let _ = reply.send(self.place_of(&name));
                return;
            }
            Command::Configure(config, state, reply) => {
                self.configure(config, state, now);
                return self.press.after_publish(move |_| _ = reply.send(Ok(())));
            }
            Command::Forget(name, reply) => {
                match self.end(&name, now) {
                    Ok(forgotten) => self.press.after_publish(move |_| _ = reply.send(Ok(forgotten))),
                    Err(error) => drop(reply.send(Err(error))),
                }
                return;
            }
            // Whoever asked may have gone.
            Command::Turn(reply) => return drop(reply.send(Ok(()))),
            Command::Called(name, generation, report) => return self.called(&name, generation, report, now),
        };
        let names = if names.is_empty() {
            // Who waits for a yes is asked by name only.
            let asked = self.records.values().filter(|record| record.may_be_asked() && record.is_trusted());
            asked.map(|record| record.name.clone()).collect()
        } else {
            names
        };
        let waiting = names.iter().map(|name| self.force(name, now)).collect::<Result<Vec<_>, _>>();
        let _ = reply.send(waiting);
    }

    fn answered(&mut self, mut answered: Answered, now: Now) {
        let name = answered.name.clone();
        let Some(record) = self.records.get_mut(&name) else { return };
        if answered.generation != record.generation {
            return;
        }
        if let Some(connected) = answered.connected.take() {
            self.sessions.connected(&name, connected, now.mono);
        }
        let (before, reached) =
            (record.answered && record.failures == 0 && record.is_trusted(), reached(&answered.result));
        let goodbye = self.records.get(&name).is_some_and(|record| self.goodbye_counts(record, now));
        let Some(record) = self.records.get_mut(&name) else { return };
        let (sign, digest, good) = (steady(record), record.digest(), answered.result.is_ok());
        answered.followed = self.sessions.is_followed(&name);
        answers::apply(record, answered, &self.parts.config, goodbye, now, fastrand::f64());
        let gone = record.is_absent();
        let settled = if sign.is_some() && sign == steady(record) { Settled::Confirmed } else { Settled::Changed };
        self.listed(&name, digest, good, now);
        self.count_loss(&name, before, reached, now);
        self.keep(&name);
        self.asked(&name, now);
        self.touch(&name, now, settled);
        if gone {
            // Whoever announces its identity elsewhere has waited for this.
            self.vacated = true;
        }
    }

    /// After any change of a record: judges it, tells the catalog what changed for it, and plans its next wake.
    pub(super) fn touch(&mut self, name: &ScenarioName, now: Now, settled: Settled) {
        let rules = &self.parts.config;
        let Some(record) = self.records.get_mut(name) else { return };
        record.session = self.sessions.settle(name, record.session_spec(), now.mono);
        record.dismiss_waiters();
        let judged = health::judge(record, now.mono, &rules.health, self.isolation.shown().is_some());
        let turned = record.state() != judged.state.shown();
        record.lifecycle = judged.state;
        if turned {
            record.since = now.wall;
        }
        let reworded = record.reason != judged.reason;
        record.reason = judged.reason;
        if let Some(turn) = record.turn(now) {
            self.press.turned(turn);
        }
        if let Some(held) = &record.offer {
            let standing = health::standing(record, now.mono, rules);
            self.press.offer(name, &Offer { manifest: Arc::clone(&held.manifest), standing });
        }
        if turned || settled != Settled::Same {
            self.press.scenario_findings(record);
        }
        if turned || reworded || settled == Settled::Changed {
            self.press.touch(name);
        } else if settled == Settled::Confirmed {
            self.press.stir(name, now);
        }
        let ask = record.next_ask.filter(|_| record.asking.is_none() && record.may_be_asked()).map(|(at, _)| at);
        let quiet = record.is_steady() && !self.sessions.is_hinted(name);
        let ask = if quiet { ask.map(|at| self.rounds.after(at)) } else { ask };
        let forget = record.forgotten_at(rules);
        let standing = health::standing_until(record, now.mono, rules);
        let wake = [ask, forget, standing, judged.until].into_iter().flatten().min();
        if record.wake != wake {
            if let Some(old) = record.wake {
                self.wakes.remove(&(old, name.clone()));
            }
            record.wake = wake;
            self.wakes.extend(wake.map(|at| (at, name.clone())));
        }
    }
}
