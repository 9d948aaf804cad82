//! The loop and what it owns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::effects::{ChangeKind, Effects};
use super::error::EngineError;
use super::first_lists::FirstLists;
use super::fleet::Fleet;
use super::message::{EngineCommand, EngineEvent};
use super::now::Now;
use super::partition::{self, Partition};
use super::parts::EngineParts;
use super::persist::manifest_writer::SaveRequest;
use super::persist::restore;
use super::pins::Pins;
use super::poll_task::PollResult;
use super::poller::Poller;
use super::publish::{SnapshotPublisher, StoredParts};
use super::reconcile::reconciler::{self, Reconciler};
use super::scenario::Scenario;
use super::scenario::handle::ScenarioInput;
use super::scenario::poll_result::{program_end, reached};
use super::scenario::schedule::PollGrid;
use super::sessions::Sessions;
use crate::catalog::CatalogReader;
use crate::config::{Additions, Config};
use crate::discovery::KnownSources;
use crate::model::{PinMode, ScenarioName, SourceId};
use crate::runtime::{Latch, Readiness, Stop};
use crate::state::{Decision, Restored};

/// The largest number of events that are handled before their changes are published.
const BATCH: usize = 256;
/// How often the times of the last answers are stored, besides the stop: a crash loses no more than
/// that of them.
const ANSWER_TIMES_INTERVAL: Duration = Duration::from_secs(300);

/// The loop's state.
pub(super) struct Core {
    pub(super) parts: EngineParts,
    pub(super) fleet: Fleet,
    pub(super) sessions: Sessions,
    pub(super) reconciler: Reconciler,
    /// Whether a scenario was found to be gone since the last merge of the endpoints.
    vacated: bool,
    pub(super) poller: Poller,
    /// Held until a static scenario was polled once, or the ready deadline passed.
    pub(super) latches: BTreeMap<ScenarioName, Latch>,
    /// The configured scenarios without a list, while the lists of the MCP server wait for them.
    pub(super) first_lists: FirstLists,
    pub(super) ready_deadline: Instant,
    pub(super) publisher: SnapshotPublisher,
    /// What was accepted of each scenario.
    pub(super) pins: Pins,
    pub(super) partition: Partition,
    /// When polls start that probably bring no change.
    pub(super) rounds: PollGrid,
    /// The program that slept and was started last to see whether its list changed.
    pub(super) relisted: Option<ScenarioName>,
    /// When the times of the last answers are stored.
    answer_times_due: Instant,
}

impl Core {
    /// The state at the start, with the restored data published.
    pub(super) fn new(
        parts: EngineParts,
        poller: Poller,
        events: &mpsc::Sender<EngineEvent>,
        restored: Restored,
        additions: Arc<Additions>,
        sources: BTreeSet<SourceId>,
        readiness: &Readiness,
    ) -> (Self, CatalogReader) {
        let now = Now {
            mono: parts.clock.now(),
            wall: parts.clock.wall(),
        };
        // The stored calls are handled elsewhere.
        let Restored {
            manifests,
            preferences,
            decisions,
            claims,
            revision,
            pins,
            mut findings,
            ..
        } = restored;
        let decisions: BTreeMap<_, _> = decisions.into_iter().collect();
        let known = KnownSources::with(sources.iter().copied());
        let (records, unusable) = restore::records(
            manifests,
            &decisions,
            &known,
            &parts.config,
            &parts.protocols,
            now,
        );
        findings.extend(unusable);
        let mut pins = Pins::restored(pins, &mut findings);
        let latches = parts
            .config
            .static_scenarios()
            .iter()
            // A blocked scenario is never polled, so readiness does not wait for it.
            .filter(|scenario| {
                decisions
                    .get(&scenario.name)
                    .is_none_or(|ruling| ruling.decision != Decision::Blocked)
            })
            .map(|scenario| {
                (
                    scenario.name.clone(),
                    readiness.latch(format!("scenario {}", scenario.name)),
                )
            })
            .collect();
        let fleet = Fleet::new(records, decisions, known, now);
        let (publisher, reader) = SnapshotPublisher::new(
            &parts,
            fleet.scenarios(),
            &mut pins,
            StoredParts {
                preferences: Arc::new(preferences),
                additions,
                revision,
                findings,
            },
            now,
        );
        let claims_until = now.mono + parts.config.refresh.max_interval;
        let rounds = PollGrid::new(now.mono, &parts.config.refresh);
        let mut core = Self {
            ready_deadline: now.mono + parts.config.server.ready_timeout,
            sessions: Sessions::new(parts.transports.clone(), events.clone()),
            poller,
            reconciler: Reconciler::new(sources, claims.into_iter().collect(), claims_until, now),
            first_lists: FirstLists::new(parts.first_lists.clone()),
            parts,
            fleet,
            vacated: false,
            latches,
            publisher,
            pins,
            partition: Partition::new(now),
            rounds,
            relisted: None,
            answer_times_due: now.mono + ANSWER_TIMES_INTERVAL,
        };
        core.await_first_lists(None, now);
        for scenario in core.fleet.scenarios_mut() {
            scenario.announce_restored(&core.parts.config, now);
        }
        for name in core.fleet.scenarios().keys().cloned().collect::<Vec<_>>() {
            core.reevaluate(&name, now, ChangeKind::Changed);
        }
        core.publisher.publish(core.fleet.scenarios(), now);
        (core, reader)
    }

    /// Awaits the first lists of the configured scenarios that have none and were not configured
    /// `before`. A blocked scenario is never polled, so it is not awaited.
    pub(super) fn await_first_lists(&mut self, before: Option<&Config>, now: Now) {
        let known: BTreeSet<ScenarioName> = before.map(configured_names).unwrap_or_default();
        for name in configured_names(&self.parts.config) {
            let record = self.fleet.scenarios().get(&name);
            let has_list = record.is_some_and(|record| record.held().is_some());
            if !known.contains(&name) && !has_list && !self.fleet.is_blocked(&name) {
                self.first_lists.add(name, now.mono);
            }
        }
    }

    /// Runs until `stop`.
    pub(super) async fn run(
        mut self: Box<Self>,
        mut events: mpsc::Receiver<EngineEvent>,
        mut commands: mpsc::Receiver<EngineCommand>,
        stop: Stop,
    ) {
        loop {
            let clock = self.parts.clock;
            let wake = self.next_wake();
            tokio::select! {
                biased;
                () = stop.wait() => {
                    self.store_answer_times();
                    return;
                }
                Some(event) = events.recv() => {
                    self.event(event);
                    // Events that arrived together are published together.
                    for _ in 1..BATCH {
                        let Ok(event) = events.try_recv() else { break };
                        self.event(event);
                    }
                }
                Some(command) = commands.recv() => self.command(command),
                () = clock.sleep_until(wake) => {}
            }
            let now = self.now();
            self.time_passed(now);
            if self.publisher.due().is_some_and(|due| due <= now.mono) && self.publisher.is_large()
            {
                // On another thread, as this one also serves requests.
                let tasks = self.parts.transports.tasks().clone();
                self = tasks
                    .blocking(move || {
                        self.publish_when_due(now);
                        self
                    })
                    .await;
            } else {
                self.publish_when_due(now);
            }
        }
    }

    fn publish_when_due(&mut self, now: Now) {
        self.publisher
            .publish_when_due(self.fleet.scenarios(), !self.latches.is_empty(), now);
    }

    fn now(&self) -> Now {
        Now {
            mono: self.parts.clock.now(),
            wall: self.parts.clock.wall(),
        }
    }

    fn next_wake(&self) -> Instant {
        let ready = (!self.latches.is_empty()).then_some(self.ready_deadline);
        let others = [
            self.fleet.due(),
            ready,
            self.first_lists.due(),
            self.publisher.due(),
            self.reconciler.due(),
        ];
        others.into_iter().flatten().fold(
            self.partition.due().min(self.answer_times_due),
            Instant::min,
        )
    }

    /// Everything that time alone makes due.
    fn tick(&mut self, now: Now) {
        if std::mem::take(&mut self.vacated) {
            self.reconcile(now);
        }
        if self.reconciler.is_due(now) {
            self.reconcile(now);
        }
        if now.mono >= self.ready_deadline {
            self.latches.clear();
        }
        if now.mono >= self.answer_times_due {
            self.answer_times_due = now.mono + ANSWER_TIMES_INTERVAL;
            self.store_answer_times();
        }
        self.first_lists.expire(now.mono);
        while let Some(name) = self.fleet.take_due(now) {
            if let Some(effects) = self.fleet.forget(&name, &self.parts.config, now) {
                self.apply(effects, now);
                continue;
            }
            self.poll_if_due(&name, now);
            self.sleep_if_due(&name, now);
            self.reevaluate(&name, now, ChangeKind::Same);
        }
    }

    /// Stores when scenarios last answered, which a start shows until they answer again. An answer
    /// that changes no tool is not stored by itself.
    fn store_answer_times(&mut self) {
        let times: Vec<_> = self
            .fleet
            .scenarios_mut()
            .filter_map(Scenario::take_answer_time)
            .collect();
        if !times.is_empty() {
            // If there is no room, the next answers bring later times.
            let _ = self.parts.saves.try_send(SaveRequest::AnswerTimes(times));
        }
    }

    fn event(&mut self, event: EngineEvent) {
        let now = self.now();
        match event {
            EngineEvent::Endpoints(source, set) => {
                self.reconciler
                    .handle(reconciler::ReconcilerInput::Set(source, set));
                self.reconcile(now);
            }
            EngineEvent::SourceOff(source) => {
                self.reconciler
                    .handle(reconciler::ReconcilerInput::Off(source));
                self.reconcile(now);
            }
            EngineEvent::SourceEnded(error) => {
                self.reconciler
                    .handle(reconciler::ReconcilerInput::Ended(error));
                self.reconcile(now);
            }
            EngineEvent::Polled(answered) => self.poll_ended(answered, now),
            EngineEvent::Waits {
                name,
                generation,
                awaited,
            } => {
                self.give(
                    &name,
                    ScenarioInput::Waits {
                        generation,
                        awaited,
                    },
                    now,
                );
            }
            EngineEvent::Session(news) => self.spoke(news, now),
            EngineEvent::PreferencesChanged {
                preferences,
                gave_way,
                settings,
                reply,
            } => {
                self.publisher.prefer(preferences, &self.parts.config);
                self.publisher.preferences_gave_way(gave_way);
                self.publisher.mark_all_dirty(self.fleet.scenarios().keys());
                self.repin(now);
                self.publisher.after_publish(move |_| {
                    let _ = reply.send(Ok(settings));
                });
            }
            EngineEvent::AdditionsChanged {
                additions,
                was_there,
                reply,
            } => {
                self.publisher.add(additions, &self.parts.config);
                self.publisher
                    .after_publish(move |_| _ = reply.send(Ok(was_there)));
            }
            EngineEvent::Decided(name, ruling, reply) => {
                self.decided(&name, ruling, now);
                self.publisher.after_publish(move |snapshot| {
                    let health = snapshot.health.get(&name).cloned();
                    let _ = reply.send(health.ok_or(EngineError::UnknownScenario(name)));
                });
            }
            EngineEvent::PinsAccepted(name, accepted, reply) => {
                self.pins.accept(&name, &accepted, now);
                self.reevaluate(&name, now, ChangeKind::Changed);
                self.publisher
                    .after_publish(move |_| _ = reply.send(Ok(())));
            }
            EngineEvent::Saved(result, scenarios) => {
                if result.is_err() {
                    // They are saved again after their next good answers.
                    for name in &scenarios.manifests {
                        self.give(name, ScenarioInput::NotStored, now);
                    }
                    for name in &scenarios.baselines {
                        self.pins.not_saved(name);
                    }
                }
                self.publisher.record_save_result(result.err());
            }
        }
    }

    fn command(&mut self, command: EngineCommand) {
        let now = self.now();
        let (names, reply) = match command {
            EngineCommand::Refresh(names, reply) => (names, reply),
            EngineCommand::Locate(name, reply) => {
                let _ = reply.send(self.document(&name));
                return;
            }
            EngineCommand::Configure(config, state, reply) => {
                self.configure(config, state, now);
                return self
                    .publisher
                    .after_publish(move |_| _ = reply.send(Ok(())));
            }
            EngineCommand::Forget(name, reply) => {
                match self.end(&name, now) {
                    Ok(forgotten) => self
                        .publisher
                        .after_publish(move |_| _ = reply.send(Ok(forgotten))),
                    Err(error) => drop(reply.send(Err(error))),
                }
                return;
            }
            EngineCommand::Unforget(name) => {
                let effects = self.fleet.unforget(&name, now);
                return self.apply(effects, now);
            }
            // The client may have gone.
            EngineCommand::Ping(reply) => return drop(reply.send(Ok(()))),
            EngineCommand::AwaitNewTools(name) => return self.pins.await_new_tools(&name),
            EngineCommand::Called(name, generation, report) => {
                return self.called(&name, generation, report, now);
            }
        };
        let names = if names.is_empty() {
            // A scenario that waits for approval is polled only when its name is given.
            let polled = self
                .fleet
                .scenarios()
                .values()
                .filter(|record| record.may_be_polled() && record.is_trusted())
                // Naming one wakes it; all of them are not started for that.
                .filter(|record| !record.is_asleep());
            polled.map(|record| record.name.clone()).collect()
        } else {
            names
        };
        let waiting = names
            .iter()
            .map(|name| self.force(name, now))
            .collect::<Result<Vec<_>, _>>();
        let _ = reply.send(waiting);
    }

    fn poll_ended(&mut self, mut answered: Box<PollResult>, now: Now) {
        let name = answered.name.clone();
        let Self {
            fleet,
            sessions,
            partition,
            parts,
            ..
        } = self;
        let Some(record) = fleet.get_mut(&name) else {
            return;
        };
        if answered.generation != record.generation() {
            return;
        }
        if let Some(connected) = answered.connected.take() {
            sessions.connected(&name, connected, now.mono);
        }
        let program = program_end(&answered.result);
        answered.followed = sessions.is_followed(&name);
        let was_well = record.is_well();
        let reached = reached(&answered.result);
        let digest = record.digest();
        let good = answered.result.is_ok();
        let absence_is_believed =
            partition.believes(record.source().0, &name, record.silenced(), now);
        let rules = &parts.config.health;
        let refresh = &parts.config.refresh;
        let effects = record.handle(
            ScenarioInput::Polled {
                answered,
                absence_is_believed,
                random: fastrand::f64(),
            },
            &parts.config,
            now,
        );
        if good {
            self.pins.listed(&name);
        }
        let is_absent = record.is_absent();
        let fails = record.failures() > 0;
        let others = match (reached, was_well && fails && !is_absent) {
            (true, _) => partition.handle(
                partition::PartitionInput::Reached(&name),
                rules,
                refresh,
                now,
            ),
            (false, true) => {
                partition.handle(partition::PartitionInput::Lost(&name), rules, refresh, now)
            }
            (false, false) => Effects::default(),
        };
        if let Some(program) = program {
            self.program_ended(&name, program, now);
        }
        self.listed(&name, digest, good, now);
        self.apply(others, now);
        self.apply(effects, now);
        // Another endpoint that announces the same identity may have waited for this.
        self.vacated |= is_absent;
    }

    /// Judges the scenarios again whose pins have another mode by now.
    fn repin(&mut self, now: Now) {
        let config = &self.parts.config;
        let reports = self.pins.board().all();
        let judged: BTreeMap<ScenarioName, PinMode> = reports
            .iter()
            .map(|report| (report.scenario.clone(), report.mode))
            .collect();
        let names = self.fleet.scenarios().keys();
        let differs = |name: &&ScenarioName| {
            let mode = judged.get(*name).copied().unwrap_or(PinMode::Off);
            self.publisher.pin_mode(name, config) != mode
        };
        let names: Vec<ScenarioName> = names.filter(differs).cloned().collect();
        for name in names {
            self.reevaluate(&name, now, ChangeKind::Changed);
        }
    }

    /// Compares the clocks, does what is due, and evaluates whether the daemon is cut off, if
    /// anything relevant changed.
    fn time_passed(&mut self, now: Now) {
        let Self {
            partition, parts, ..
        } = self;
        let rules = &parts.config.health;
        let refresh = &parts.config.refresh;
        let effects = partition.handle(partition::PartitionInput::Clocks, rules, refresh, now);
        self.apply(effects, now);
        self.tick(now);
        if self.partition.needs_evaluation(now.mono) {
            let census = self.fleet.census();
            let Self {
                partition, parts, ..
            } = self;
            let rules = &parts.config.health;
            let refresh = &parts.config.refresh;
            let effects = partition.handle(
                partition::PartitionInput::Weighed(census),
                rules,
                refresh,
                now,
            );
            self.apply(effects, now);
        }
    }
}

/// The names of the scenarios that the configuration names itself.
fn configured_names(config: &Config) -> BTreeSet<ScenarioName> {
    let scenarios = config
        .static_scenarios()
        .into_iter()
        .map(|scenario| scenario.name);
    let servers = config
        .mcp
        .servers
        .iter()
        .filter_map(|server| server.name.parse().ok());
    scenarios.chain(servers).collect()
}
