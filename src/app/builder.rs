//! Puts the parts of a daemon together.

use std::collections::BTreeMap;
use std::future::Future;
use std::mem::take;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

use super::logins::StoredLogins;
use super::{Callsheet, StartError};
use crate::bundles::{
    BundleStore, CallContext, ContextFunction, Functions, context_function, without_context,
};
use crate::calls::{self, Calls};
use crate::catalog::CatalogReader;
use crate::config::{Additions, Config};
use crate::discovery::bundles::BundleSource;
use crate::discovery::embedded::ProgramSource;
use crate::discovery::mdns::identity;
use crate::discovery::registered::RegisteredSource;
use crate::discovery::static_list::StaticList;
use crate::discovery::{SOURCES, Source};
use crate::engine;
use crate::events::Hub;
use crate::model::{ScenarioName, Secret};
use crate::native::{Native, NativeTools};
use crate::protocols::bundle::BundleProtocol;
use crate::protocols::definitions::{Definition, DefinitionRegistry};
use crate::protocols::{Protocol, Protocols};
use crate::runtime::{ByteBudget, Clock, Readiness, Stop, StopTrigger, Tasks};
use crate::server::{self, OpenConnections};
use crate::state::{Restored, StateStore, Write, sqlite};
use crate::transports::http::Client;
use crate::transports::http::credentials::TokenSources;
use crate::transports::http::credentials::oauth::OAuthTokens;
use crate::transports::stdio::Children;
use crate::transports::stdio::watchdog::WatchdogCommand;
use crate::views::ViewCache;

/// A [`Callsheet`] in the making: its configuration, and what the embedding program brings.
///
/// ```
/// use std::convert::Infallible;
///
/// use callsheet::{Callsheet, catalog::ViewQuery, config::Config, native::NativeTools, provide::ToolDefinition, runtime::Clock};
/// use serde_json::{Value, json};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let dice = NativeTools::new("dice", "Throws dice", Clock::system())?
///     .tool(ToolDefinition::new("throw", "Throws one die")?, |_: Value| async { Ok::<_, Infallible>(json!(4)) });
/// let folder = tempfile::tempdir()?;
/// let app = Callsheet::builder(Config::for_state(folder.path().join("state.db"))).native(dice).start().await?;
/// // Listed within milliseconds, like every other scenario that answers.
/// let mut published = app.reader();
/// while app.view(&ViewQuery::default()).is_empty() {
///     published.changed().await.ok_or("it ended")?;
/// }
/// let view = app.view(&ViewQuery::default());
/// let tool = view.tools().next().ok_or("not listed")?;
/// assert_eq!(app.run_native(&tool.id, json!({})).await?, 4);
/// app.finish().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing runs before `start`"]
pub struct Builder {
    config: Config,
    clock: Clock,
    sources: ProgramSources,
    protocols: ProgramProtocols,
    native: BTreeMap<ScenarioName, NativeTools>,
    definitions: Vec<Definition>,
    functions: ProgramFunctions,
    watchdog: Option<WatchdogCommand>,
}

/// Functions of the embedding program that stored tools name.
#[derive(Default)]
struct ProgramFunctions(BTreeMap<String, ContextFunction>);

/// Sources of the embedding program.
#[derive(Default)]
struct ProgramSources(Vec<Box<dyn Source>>);

/// Protocols of the embedding program.
#[derive(Default)]
struct ProgramProtocols(Vec<Arc<dyn Protocol>>);

impl Builder {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            clock: Clock::system(),
            sources: ProgramSources::default(),
            protocols: ProgramProtocols::default(),
            native: BTreeMap::new(),
            definitions: Vec::new(),
            functions: ProgramFunctions::default(),
            watchdog: None,
        }
    }

    /// Uses this clock instead of the system's.
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Adds a source of the embedding program. Its [`id`](Source::id) says how it is called, and
    /// which source wins when several name a scenario: no other source takes over what one with
    /// [`SourceId::EMBEDDED`](crate::model::SourceId::EMBEDDED) names. Sources with the same id
    /// count as one, and one with the id of a source of callsheet counts as embedded.
    pub fn source(mut self, source: impl Source + 'static) -> Self {
        self.sources.0.push(Box::new(source));
        self
    }

    /// Adds a protocol of the embedding program. It is probed before the built-in ones, and
    /// replaces the one with the same id.
    pub fn protocol(mut self, protocol: impl Protocol + 'static) -> Self {
        self.protocols.0.push(Arc::new(protocol));
        self
    }

    /// Runs this beside the first child process. It ends all children when this process is killed;
    /// a program without one leaves children behind then that ignore the end of their input.
    pub fn watchdog(self, command: Option<WatchdogCommand>) -> Self {
        Self {
            watchdog: command,
            ..self
        }
    }

    /// Adds a scenario inside this process. A later one of the same name replaces it.
    pub fn native(mut self, tools: NativeTools) -> Self {
        self.native.insert(tools.name().clone(), tools);
        self
    }

    /// Adds a tool that is defined by its schema. The tool with its name, of any scenario, runs it;
    /// without one it is latent. A later one of the same name replaces it, and so does one of the
    /// configuration.
    pub fn definition(mut self, definition: Definition) -> Self {
        self.definitions.push(definition);
        self
    }

    /// Adds a function for stored tools of the type `go` that name it, by its qualified name such
    /// as `github.com/acme/agent/tools.Weather`. It gets the arguments after they were checked
    /// against the tool's `argSchema`. A later one of the same name replaces it.
    pub fn function<F, A, E>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(Value) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, E>> + Send + 'static,
        E: std::fmt::Display,
    {
        self.functions.0.insert(
            name.into(),
            without_context(callsheet_provide::function(function)),
        );
        self
    }

    /// The same for a function that also learns of its caller, until when its answer is waited for,
    /// and that the caller cancelled the call.
    pub fn function_with_context<F, A, E>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(Value, CallContext) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, E>> + Send + 'static,
        E: std::fmt::Display,
    {
        self.functions
            .0
            .insert(name.into(), context_function(function));
        self
    }

    /// Starts everything but the HTTP server. When it returns, the content of the store is
    /// published.
    pub async fn start(self) -> Result<Callsheet, StartError> {
        self.starting().await
    }

    /// The same as a boxed future, for the reason of [`Callsheet::serve`].
    fn starting(self) -> BoxFuture<'static, Result<Callsheet, StartError>> {
        Box::pin(self.start_parts())
    }

    async fn start_parts(self) -> Result<Callsheet, StartError> {
        let mut config = self.config;
        let clock = self.clock;
        let tasks = Tasks::new();
        let definitions = DefinitionRegistry::new(self.definitions, &config.definitions);
        let OpenedState {
            store,
            id,
            mut restored,
            server_key,
        } = Box::pin(restore(&mut config, clock, &tasks)).await?;
        let stored = take(&mut restored.additions);
        let rows = stored
            .iter()
            .map(|row| (row.kind, row.name.as_str(), &*row.document));
        let (additions, unusable) = Additions::restored(rows, &config);
        restored.findings.extend(unusable);
        let config = Arc::new(config);
        let (trigger, stop) = StopTrigger::new();
        let readiness = Readiness::new();
        let (client, logins) =
            http_client(&config, clock, &tasks, &store, take(&mut restored.logins));
        let mut of_calls = take_stored_calls(&mut restored);
        let bundles = Box::pin(bundles(&config, self.functions, clock, &tasks, &stop)).await;
        let children = Children::watched(clock, self.watchdog);
        if let Some(key) = &server_key {
            children.set_key(key.clone());
        }
        let inside = InsideProcess {
            native: &self.native,
            definitions: &definitions,
            bundles: &bundles,
        };
        let setup = engine::Setup {
            config: Arc::clone(&config),
            store: Arc::clone(&store),
            restored,
            additions: engine::AdditionBoard::new(additions, definitions.clone()),
            client: Arc::clone(&client),
            children: Arc::clone(&children),
            protocols: inside.protocols(self.protocols),
            clock,
            tasks: tasks.clone(),
            readiness: readiness.clone(),
            sources: inside.sources(self.sources.0, &config, clock),
        };
        let ending = stop.clone();
        let engine::Started {
            engine,
            reader,
            first,
        } = Box::pin(tasks.blocking(move || engine::start(setup, &ending))).await;
        let events = Hub::start(reader.clone(), config.events.clone(), clock, &tasks, &stop);
        let views = ViewCache::new(config.views.max_bytes, tasks.clone()).identified(&id);
        let held = ByteBudget::new(config.server.held_bytes);
        let rules = config
            .calls
            .within_connections(config.server.max_connections);
        let calls = Calls::new(
            rules,
            engine.clone(),
            reader.clone(),
            held,
            clock,
            tasks.clone(),
        );
        of_calls.catalog = first.catalog.clone();
        calls.attach(
            of_calls,
            call_dependencies(store, &events, &reader, clock, &tasks, &stop),
        );
        Box::pin(calls.resume()).await;
        Ok(Callsheet {
            config: watch::Sender::new(config),
            settings: watch::Sender::default(),
            load_options: OnceLock::new(),
            id: id.into(),
            client,
            logins,
            bundles,
            children,
            reader,
            engine,
            calls,
            events,
            views,
            readiness,
            connections: OpenConnections::default(),
            native: Arc::new(self.native),
            definitions,
            server_key,
            clock,
            tasks,
            trigger,
            stop,
        })
    }
}

/// The store with what it held.
struct OpenedState {
    store: Arc<dyn StateStore>,
    id: String,
    restored: Restored,
    server_key: Option<Secret>,
}

/// Opens the store. The daemon's own id is stored beside it, in the folder that opening it makes.
async fn restore(
    config: &mut Config,
    clock: Clock,
    tasks: &Tasks,
) -> Result<OpenedState, StartError> {
    let path = config.state.path.clone();
    let store = tasks.blocking(move || sqlite::open(&path, clock)).await?;
    let id = config
        .discovery
        .mdns
        .id
        .take()
        .unwrap_or_else(|| identity::load_or_create(&config.state.path));
    config.discovery.mdns.id = Some(id.clone());
    let mut restored = store.load().await?;
    let server_key = server_key(&*store, restored.server_key.take()).await;
    Ok(OpenedState {
        store,
        id,
        restored,
        server_key,
    })
}

/// What calls need besides the catalog.
fn call_dependencies(
    store: Arc<dyn StateStore>,
    events: &Hub,
    reader: &CatalogReader,
    clock: Clock,
    tasks: &Tasks,
    stop: &Stop,
) -> calls::CallDependencies {
    let hub = events.clone();
    let reader = reader.clone();
    let tasks = tasks.clone();
    let stop = stop.clone();
    calls::CallDependencies {
        store,
        hub,
        reader,
        clock,
        tasks,
        stop,
    }
}

/// The stored data about calls.
fn take_stored_calls(restored: &mut Restored) -> calls::Stored {
    let approvals = take(&mut restored.approvals);
    let operations = take(&mut restored.operations);
    let turns = take(&mut restored.turns);
    let usage = take(&mut restored.usage);
    let histories = take(&mut restored.histories);
    let log = take(&mut restored.log);
    let earlier_log = restored.earlier_log.take();
    calls::Stored {
        approvals,
        operations,
        turns,
        usage,
        histories,
        log,
        earlier_log,
        loss: restored.loss.take(),
        ..calls::Stored::default()
    }
}

/// The key of the HTTP server: the stored one, or else a new one, which is stored. One that cannot
/// be stored lives as long as this process.
async fn server_key(store: &dyn StateStore, stored: Option<Secret>) -> Option<Secret> {
    if stored.is_some() {
        return stored;
    }
    let key = server::new_key()?;
    if let Err(error) = store.save(vec![Write::ServerKey(key.clone())]).await {
        tracing::warn!(error = %error, "the key of the server could not be stored; MCP clients begin anew after a restart");
    }
    Some(key)
}

/// The bundles, read and followed.
async fn bundles(
    config: &Config,
    ProgramFunctions(functions): ProgramFunctions,
    clock: Clock,
    tasks: &Tasks,
    stop: &Stop,
) -> BundleStore {
    let store = BundleStore::new(
        config.bundles.clone(),
        Functions::new(functions),
        clock,
        tasks.clone(),
    );
    let reading = store.clone();
    tasks.blocking(move || reading.read_now()).await;
    tasks.spawn(store.clone().follow(stop.clone()));
    store
}

/// The scenarios inside this process.
struct InsideProcess<'a> {
    native: &'a BTreeMap<ScenarioName, NativeTools>,
    definitions: &'a DefinitionRegistry,
    bundles: &'a BundleStore,
}

impl InsideProcess<'_> {
    /// All protocols: those of the program, those of scenarios inside this process, then the
    /// others.
    fn protocols(&self, own: ProgramProtocols) -> Protocols {
        let mut protocols = own.0;
        protocols.push(Arc::new(self.definitions.clone()));
        protocols.push(Arc::new(BundleProtocol(self.bundles.clone())));
        protocols.extend(
            (!self.native.is_empty())
                .then(|| Arc::new(Native(self.native.clone())) as Arc<dyn Protocol>),
        );
        Protocols::with(protocols)
    }

    /// All sources.
    fn sources(
        &self,
        mut own: Vec<Box<dyn Source>>,
        config: &Config,
        clock: Clock,
    ) -> Vec<Box<dyn Source>> {
        if self.definitions.has_own() {
            own.push(Box::new(StaticList::new(Vec::new()).with_definitions()));
        }
        let own = ProgramSource::by_id(own, self.native.keys().cloned().collect());
        let own = own.map(|source| Box::new(source) as Box<dyn Source>);
        let bundles =
            BundleSource::new(self.bundles).map(|bundles| Box::new(bundles) as Box<dyn Source>);
        let configured = SOURCES
            .iter()
            .filter_map(|factory| (factory.make)(config, clock));
        let registered = RegisteredSource::new(self.definitions.has_registered());
        let registered = Box::new(registered) as Box<dyn Source>;
        own.chain(bundles)
            .chain([registered])
            .chain(configured)
            .collect()
    }
}

impl std::fmt::Debug for ProgramFunctions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl std::fmt::Debug for ProgramSources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|source| source.id()))
            .finish()
    }
}

impl std::fmt::Debug for ProgramProtocols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|protocol| protocol.id()))
            .finish()
    }
}

/// The client for all scenarios, with the tokens that it gets by itself.
fn http_client(
    config: &Config,
    clock: Clock,
    tasks: &Tasks,
    store: &Arc<dyn StateStore>,
    logins: Vec<(ScenarioName, Secret)>,
) -> (Arc<Client>, Arc<OAuthTokens>) {
    let client = Client::new(
        config.http_limits(),
        config.refresh.concurrency,
        config.cache_rules(),
        clock,
        tasks.clone(),
    );
    client.use_proxies(&config.network.proxy_rules());
    let tokens = Arc::new(OAuthTokens::new(&client));
    tokens.keep_in(Arc::new(StoredLogins(Arc::downgrade(store))), logins);
    tokens.adjust(config.login.clone());
    if let Some(id) = &config.discovery.mdns.id {
        client.identify(id);
    }
    client.set_token_sources(Arc::clone(&tokens) as Arc<dyn TokenSources>);
    (client, tokens)
}
