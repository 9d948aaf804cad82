//! The owner of all state: one loop that receives endpoints, polls when it is time, and publishes.
//!
//! ```text
//! sources  --EngineEvent-->  +---------------------+ --polls--> poller --> sessions of scenarios
//! polls, sessions, saves ->  | run.rs: one batch   | --saves--> persist/ --> store
//! EngineHandle --Command-->  | parts give Effects  | --routes-> calls
//!                            +---------------------+ --Snapshot--> every reader
//!                            apply.rs applies them
//! ```
//!
//! What is kept true here:
//!
//! - Every change comes to the loop as one [`EngineEvent`](message::EngineEvent) or
//!   [`EngineCommand`]; no other code writes the state.
//! - The loop never waits for the network or the disk: polls, saves and operators' changes run
//!   beside it and come back as events. Their queues are bounded.
//! - The parts only return `Effects`. `apply.rs` alone applies them, in one order: close, store,
//!   notify, poll, publish.
//! - A late answer is dropped: it carries the generation of the scenario that it was requested for.
//! - A preference or a decision is durable before it is applied, and published before it is
//!   answered. A manifest is applied first and stored afterwards.
//!
//! Read in this order:
//!
//! 1. `message.rs` and `call_report.rs` (all that reaches the loop), `run.rs` (the loop),
//!    `effects.rs` and `apply.rs`.
//! 2. `sources.rs`, `reconcile/`, `reconciling.rs`, `assignment.rs`: from endpoints to scenarios.
//! 3. `fleet.rs` and `scenario/`: all scenarios, and one; `partition.rs`: is the daemon cut off?
//! 4. `poller.rs`, `poll_task.rs`, `polling.rs`, `sessions/`: listing a scenario.
//! 5. `publish/`, `routes.rs`, `first_lists.rs`: what readers, calls and first lists get.
//! 6. `persist/` (the store), `configure.rs` (a reload), `forget.rs`.
//!
//! Never done here: decoding, rendering, the merge of tools (`catalog`).

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use crate::catalog::pins::{AcceptedPin, Baseline};
use crate::catalog::{CatalogReader, Snapshot};
use crate::config::{AdditionChange, Additions, Config};
use crate::discovery::Source;
use crate::metrics::{ConfigLoads, Fetches, Listings};
use crate::model::{
    ConfigState, Health, PreferenceAuthor, PreferenceTarget, ScenarioName, ScenarioState, Scope,
    ScopePattern, Settings, SettingsPatch,
};
use crate::protocols::Protocols;
use crate::protocols::definitions::DefinitionRegistry;
use crate::runtime::{Clock, Readiness, Stop, Tasks};
use crate::state::{Decision, Restored, StateStore, TrustDecision};
use crate::transports::http::{Client, HttpResponse};
use crate::transports::stdio::Children;
use crate::transports::{TransportError, Transports};

mod apply;
mod assignment;
pub mod awake;
mod call_report;
mod configure;
mod effects;
mod error;
mod first_lists;
mod fleet;
mod forget;
mod message;
mod now;
mod partition;
mod parts;
mod persist;
mod pins;
mod poll_task;
mod poller;
mod polling;
mod publish;
mod reconcile;
mod reconciling;
mod routes;
mod run;
mod scenario;
mod sessions;
mod sources;

use message::{EngineCommand, ReplySender};
use parts::EngineParts;
use persist::kept_preferences::{GaveWay, KeptPreferences};
use persist::manifest_writer::ManifestWriter;
use persist::mutations::{Mutation, MutationWriter};
use pins::PinBoard;
use poller::Poller;
use routes::CallRoutes;
use sources::SourceRunner;

pub use call_report::CallReport;
pub use error::EngineError;
pub(crate) use first_lists::FIRST_LIST_TIMEOUT;
pub use message::Forgotten;
pub use persist::mutations::AdditionBoard;
pub use pins::PinReport;
pub use routes::CallRoute;

/// The largest number of events that wait for the loop; senders wait when the queue is full.
const EVENTS: usize = 1024;
/// The largest number of commands and operators' changes that wait.
const COMMANDS: usize = 64;
/// The largest number of manifests that wait to be saved; further ones are saved after the
/// scenario's next good answer.
const WRITES: usize = 4096;

/// The parts that the engine is made of.
pub struct Setup {
    /// The active configuration.
    pub config: Arc<Config>,
    /// The store for what outlives the process.
    pub store: Arc<dyn StateStore>,
    /// What the store remembered at the start.
    pub restored: Restored,
    /// What operators added besides the configuration.
    pub additions: AdditionBoard,
    /// Sends the requests to scenarios.
    pub client: Arc<Client>,
    /// The child processes; the caller waits for their end.
    pub children: Arc<Children>,
    /// The protocols that scenarios may speak.
    pub protocols: Protocols,
    /// Reads time.
    pub clock: Clock,
    /// Starts tasks.
    pub tasks: Tasks,
    /// Gets a latch for each static scenario.
    pub readiness: Readiness,
    /// The sources of endpoints.
    pub sources: Vec<Box<dyn Source>>,
}

/// Sends commands to the engine. Cheap to clone; every method waits until the result of its request
/// is published, unless it says otherwise.
#[derive(Debug, Clone)]
pub struct EngineHandle {
    commands: mpsc::Sender<EngineCommand>,
    operations: mpsc::Sender<Mutation>,
    reader: CatalogReader,
    routes: CallRoutes,
    counts: EngineCounters,
    first_lists: Readiness,
    tasks: Tasks,
    pins: PinBoard,
    added: AdditionBoard,
}

/// Counters of the engine's work. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct EngineCounters {
    /// Requests to scenarios.
    pub fetches: Arc<Fetches>,
    /// The results of these requests.
    pub listings: Arc<Listings>,
    /// Loads of the configuration; code that activates another configuration counts it here.
    pub loads: Arc<ConfigLoads>,
}

/// What [`start`] returns.
#[derive(Debug)]
pub struct Started {
    /// Sends it commands.
    pub engine: EngineHandle,
    /// Reads what it publishes.
    pub reader: CatalogReader,
    /// What it published first: the content of the store, before any answer of a scenario.
    pub first: Arc<Snapshot>,
}

/// Starts the engine. When it returns, the content of the store is published.
pub fn start(setup: Setup, stop: &Stop) -> Started {
    let (events, received) = mpsc::channel(EVENTS);
    let (command, commands) = mpsc::channel(COMMANDS);
    let (operation, operations) = mpsc::channel(COMMANDS);
    let (save, saves) = mpsc::channel(WRITES);
    let Setup {
        config,
        store,
        restored,
        additions,
        client,
        children,
        protocols,
        clock,
        tasks,
        readiness,
        sources,
    } = setup;
    let keeper = MutationWriter {
        store: Arc::clone(&store),
        preferences: KeptPreferences::restored(&restored),
        gave_way: GaveWay::default(),
        additions: additions.clone(),
        clock,
        tasks: tasks.clone(),
        operations,
        events: events.clone(),
    };
    tasks.spawn(keeper.run(stop.clone()));
    let archive = ManifestWriter {
        store,
        saves,
        events: events.clone(),
        clock,
        tasks: tasks.clone(),
    };
    tasks.spawn(archive.run(stop.clone()));
    let ids = sources.iter().map(|source| source.id()).collect();
    let (configured, follow) = watch::channel(Arc::clone(&config));
    let mut run = SourceRunner {
        running: BTreeMap::new(),
        config: Arc::clone(&config),
        events: events.clone(),
        tasks: tasks.clone(),
        clock,
        stop: stop.clone(),
    };
    let routes = CallRoutes::default();
    let counts = EngineCounters {
        fetches: Arc::clone(client.fetches()),
        ..EngineCounters::default()
    };
    counts.loads.started(clock.wall());
    let transports = Transports::new(client).with_children(children);
    let poller = Poller::new(
        transports.clone(),
        protocols.clone(),
        Arc::clone(&counts.listings),
        &config.refresh,
        tasks.clone(),
        events.clone(),
        stop.clone(),
    );
    let first_lists = Readiness::new();
    let parts = EngineParts {
        config,
        transports,
        protocols,
        clock,
        saves: save,
        configured,
        routes: routes.clone(),
        first_lists: first_lists.clone(),
    };
    let added = additions.current();
    let (core, reader) = run::Core::new(parts, poller, &events, restored, added, ids, &readiness);
    let first = reader.snapshot();
    let pins = core.pins.board();
    for source in sources {
        run.start(source);
    }
    tasks.spawn(run.follow(follow));
    tasks.spawn(Box::new(core).run(received, commands, stop.clone()));
    let commands = command;
    let operations = operation;
    let engine = EngineHandle {
        commands,
        operations,
        reader: reader.clone(),
        routes,
        counts,
        first_lists,
        tasks,
        pins,
        added: additions,
    };
    Started {
        engine,
        reader,
        first,
    }
}

impl EngineHandle {
    /// A handle whose engine has ended: every request fails with [`EngineError::Stopping`]. For
    /// serving a catalog that does not change.
    pub fn ended(reader: CatalogReader) -> Self {
        let commands = mpsc::channel(1).0;
        let operations = mpsc::channel(1).0;
        let routes = CallRoutes::default();
        let counts = EngineCounters::default();
        let tasks = Tasks::new();
        Self {
            commands,
            operations,
            reader,
            routes,
            counts,
            first_lists: Readiness::new(),
            tasks,
            pins: PinBoard::default(),
            added: AdditionBoard::new(
                Additions::default(),
                DefinitionRegistry::new(Vec::new(), &[]),
            ),
        }
    }

    /// The route to a scenario for calls, as of the latest snapshot or the one about to be
    /// published; `None` when it may not be called (it waits for an operator's approval, is blocked
    /// or unknown) or has never answered. Never waits.
    pub fn route(&self, name: &ScenarioName) -> Option<Arc<CallRoute>> {
        self.routes.to(name)
    }

    /// Reports what a call showed about its scenario, or that it waits for its tools to be listed.
    /// After a refused connection, for a call that waits, or after a good answer of a scenario that
    /// is not live, the loop polls it at once, as often as a poll may be forced.
    /// Never waits: when the queue is full, the loop learns the same from its own polls.
    pub fn report_call(&self, name: &ScenarioName, route: &CallRoute, report: CallReport) {
        if report == CallReport::Answered && route.state == ScenarioState::Live {
            return;
        }
        let _ = self.commands.try_send(EngineCommand::Called(
            name.clone(),
            route.generation,
            report,
        ));
    }

    /// The configured scenarios without a stored list whose first answer is awaited: each for at
    /// most [`FIRST_LIST_TIMEOUT`] after it appeared.
    pub(crate) fn first_lists(&self) -> &Readiness {
        &self.first_lists
    }

    /// What was counted so far.
    pub fn counts(&self) -> &EngineCounters {
        &self.counts
    }

    /// Polls scenarios at once, outside the usual schedule (all that may be polled when `names` is
    /// empty), and waits for their answers. Returns their health afterwards, in the order of the
    /// names.
    pub async fn refresh(&self, names: Vec<ScenarioName>) -> Result<Vec<Arc<Health>>, EngineError> {
        let all = names.is_empty();
        let (reply, answer) = oneshot::channel();
        self.commands
            .send(EngineCommand::Refresh(names, reply))
            .await
            .map_err(|_| EngineError::Stopping)?;
        let waiting = answer.await.map_err(|_| EngineError::Stopping)??;
        let mut healths = Vec::with_capacity(waiting.len());
        for health in waiting {
            match health.await.map_err(|_| EngineError::Stopping)? {
                Ok(health) => healths.push(health),
                // Scenarios that were blocked or left meanwhile may no longer be polled; a poll of
                // all of them ignores that.
                Err(_) if all => {}
                Err(error) => return Err(error),
            }
        }
        Ok(healths)
    }

    /// Fetches a scenario's list at once and returns the answer as it comes, whatever its status.
    /// The answer is not used: neither health nor manifest changes, and it is not stored. Waits for
    /// a poll of the same scenario that is under way.
    pub async fn fetch_raw_list(
        &self,
        name: ScenarioName,
    ) -> Result<Result<HttpResponse, TransportError>, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.commands
            .send(EngineCommand::Locate(name, reply))
            .await
            .map_err(|_| EngineError::Stopping)?;
        match answer.await.map_err(|_| EngineError::Stopping)?? {
            Ok((upstream, path)) => Ok(upstream.get_any_status(path, None).await),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Activates another configuration, as far as the engine and the sources follow it (`None` when
    /// it is the same), and records the state of the configuration. The limits of polls are the
    /// client's ([`Client::adjust`]).
    pub async fn configure(
        &self,
        config: Option<Arc<Config>>,
        state: Arc<ConfigState>,
    ) -> Result<(), EngineError> {
        let (reply, answer) = oneshot::channel();
        let command = EngineCommand::Configure(config, state, reply);
        self.commands
            .send(command)
            .await
            .map_err(|_| EngineError::Stopping)?;
        answer.await.map_err(|_| EngineError::Stopping)?
    }

    /// Completes when the loop has handled it, which shows that the loop runs.
    pub async fn ping(&self) -> Result<(), EngineError> {
        let (reply, answer) = oneshot::channel();
        self.commands
            .send(EngineCommand::Ping(reply))
            .await
            .map_err(|_| EngineError::Stopping)?;
        answer.await.map_err(|_| EngineError::Stopping)?
    }

    /// Records an operator's decision, or removes it with `None`. Acknowledged when durable and
    /// published.
    ///
    /// The decision is made for the peer that the latest snapshot shows under the name. Trust for a
    /// scenario without an address is refused ([`EngineError::NoAddress`]).
    pub async fn decide(
        &self,
        name: ScenarioName,
        decision: Option<Decision>,
    ) -> Result<Arc<Health>, EngineError> {
        let shown = self.reader.snapshot().health.get(&name).cloned();
        let Some(shown) = shown else {
            return Err(EngineError::UnknownScenario(name));
        };
        let party = shown.party.clone();
        if decision == Some(Decision::Trusted) && party.origin.is_none() {
            return Err(EngineError::NoAddress(name));
        }
        let ruling = decision.map(|decision| TrustDecision {
            decision,
            party,
            source: Some(shown.source.as_str().into()),
        });
        self.operate(|reply| Mutation::Decide(name, ruling, reply))
            .await
    }

    /// How the scenarios whose definitions are compared differ from what was accepted, in order of
    /// their names.
    pub fn pins(&self) -> Vec<Arc<PinReport>> {
        self.pins.all()
    }

    /// The same of one scenario.
    pub fn pins_of(&self, name: &ScenarioName) -> Option<Arc<PinReport>> {
        self.pins.of(name)
    }

    /// Accepts definitions of a scenario in the versions that an operator was shown. Acknowledged
    /// when durable and published. Returns what still differs.
    ///
    /// # Errors
    ///
    /// [`EngineError::PinsChanged`] if the scenario offers another version by now,
    /// [`EngineError::NotPinned`] if its definitions are not compared.
    pub async fn accept_pins(
        &self,
        name: ScenarioName,
        shown: &[AcceptedPin],
    ) -> Result<Arc<PinReport>, EngineError> {
        let report = self.pins.of(&name).ok_or_else(|| {
            if self.reader.snapshot().health.contains_key(&name) {
                EngineError::NotPinned(name.clone())
            } else {
                EngineError::UnknownScenario(name.clone())
            }
        })?;
        let accepted = Baseline::acceptance(&report.manifest, shown)
            .map_err(|changed| EngineError::PinsChanged(name.clone(), changed))?;
        self.operate(|reply| Mutation::AcceptPins {
            name: name.clone(),
            baseline: Arc::clone(&report.baseline),
            accepted,
            reply,
        })
        .await?;
        self.pins.of(&name).ok_or(EngineError::NotPinned(name))
    }

    /// Has the new tools of the next listing of a scenario count as accepted: an operator logged in
    /// there.
    pub async fn await_new_tools(&self, name: ScenarioName) {
        // Fails only when the loop is gone.
        let _ = self.commands.send(EngineCommand::AwaitNewTools(name)).await;
    }

    /// Changes settings; settings that the patch does not contain stay. Acknowledged when durable
    /// and published. Returns the settings after the change.
    pub async fn prefer(
        &self,
        scope: Scope,
        target: PreferenceTarget,
        patch: SettingsPatch,
    ) -> Result<Settings, EngineError> {
        let settings = self.prefer_all(vec![(scope, target, patch)]).await?;
        Ok(settings.into_iter().next().unwrap_or_default())
    }

    /// Makes several changes of an operator as one: all of them become durable and are published
    /// together, or none is made. Returns the settings after them, in the order of the changes.
    pub async fn prefer_all(
        &self,
        changes: Vec<(Scope, PreferenceTarget, SettingsPatch)>,
    ) -> Result<Vec<Settings>, EngineError> {
        self.prefer_all_as(PreferenceAuthor::Operator, changes)
            .await
    }

    /// The same for changes of this author: those of clients have a limit of their own.
    pub async fn prefer_all_as(
        &self,
        author: PreferenceAuthor,
        changes: Vec<(Scope, PreferenceTarget, SettingsPatch)>,
    ) -> Result<Vec<Settings>, EngineError> {
        self.operate(|reply| Mutation::Prefer {
            author,
            changes,
            reply,
        })
        .await
    }

    /// Has all settings of the stored preferences of these scopes inherit again, as one change of
    /// an operator, or with `preview` only counts them. Returns how many there were.
    pub(crate) async fn reset_preferences(
        &self,
        scopes: ScopePattern,
        preview: bool,
    ) -> Result<usize, EngineError> {
        let reset = self
            .operate(|reply| Mutation::Reset {
                scopes,
                preview,
                reply,
            })
            .await?;
        Ok(reset.len())
    }

    /// What operators added besides the configuration, as far as it is durable.
    pub fn additions(&self) -> Arc<Additions> {
        self.added.current()
    }

    /// Adds a profile or a definition, or takes one away. Acknowledged when durable and published,
    /// a definition when the next listing shows it. Returns whether there was one of its name.
    ///
    /// # Errors
    ///
    /// [`EngineError::TooManyAdditions`] if as many of its kind are kept as may be.
    pub async fn add(&self, change: AdditionChange) -> Result<bool, EngineError> {
        self.operate(|reply| Mutation::Add(change, reply)).await
    }

    async fn operate<T>(
        &self,
        make: impl FnOnce(ReplySender<T>) -> Mutation,
    ) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.operations
            .send(make(reply))
            .await
            .map_err(|_| EngineError::Stopping)?;
        answer.await.map_err(|_| EngineError::Stopping)?
    }
}
