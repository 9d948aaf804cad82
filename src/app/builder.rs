//! Putting the parts together.

use std::collections::BTreeMap;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::{Callsheet, StartError};
use crate::calls::{self, Calls};
use crate::catalog::Snapshot;
use crate::config::{Config, ShownValues};
use crate::discovery::embedded::Embedded;
use crate::discovery::mdns::identity;
use crate::discovery::{SOURCES, Source};
use crate::engine;
use crate::events::Hub;
use crate::model::ScenarioName;
use crate::native::{Native, NativeTools};
use crate::protocols::{Protocol, Protocols};
use crate::runtime::{Clock, Readiness, Stop, StopTrigger, Tasks};
use crate::server::{self, Kept, Opening};
use crate::state::lists::{self, Lists, Stamp};
use crate::state::sqlite::{self, Claimed};
use crate::state::{Restored, StateError, StateStore, Trouble};
use crate::transports::http::Client;
use crate::views::Views;

/// Bytes of kept lists that are read on the thread that starts: it is done in half a millisecond, while another thread may take several to
/// begin on a machine that has other work.
const READ_AT_ONCE: u64 = 4 << 20;

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
    sources: Sources,
    protocols: Own,
    native: BTreeMap<ScenarioName, NativeTools>,
}

/// Sources of the program.
#[derive(Default)]
struct Sources(Vec<Box<dyn Source>>);

/// Protocols of the program.
#[derive(Default)]
struct Own(Vec<Arc<dyn Protocol>>);

impl Builder {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            clock: Clock::system(),
            sources: Sources::default(),
            protocols: Own::default(),
            native: BTreeMap::new(),
        }
    }

    /// Reads time from here instead of from the system.
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// A source of the program's own. It comes before all others: what it names, no other source takes over. Its
    /// [`id`](Source::id) is not looked at.
    pub fn source(mut self, source: impl Source + 'static) -> Self {
        self.sources.0.push(Box::new(source));
        self
    }

    /// A protocol of the program's own. It is probed before the built-in ones, and takes the place of one with its id.
    pub fn protocol(mut self, protocol: impl Protocol + 'static) -> Self {
        self.protocols.0.push(Arc::new(protocol));
        self
    }

    /// A scenario inside this process. A later one of the same name takes its place.
    pub fn native(mut self, tools: NativeTools) -> Self {
        self.native.insert(tools.name().clone(), tools);
        self
    }

    /// Starts everything but the HTTP server. When it returns, what the store remembered is published.
    pub async fn start(self) -> Result<Callsheet, StartError> {
        self.claim()?.start().await
    }

    /// Begins to answer on a listener, before anything is started: the lists that were kept of the run before are given out at once if they are
    /// just those that the start will publish, and everything else waits until [`Opened::start`] has returned and
    /// [`Callsheet::serve_opened`] was called.
    pub async fn open(self, listener: TcpListener) -> Result<Opened, StartError> {
        let Opened { builder, begun, .. } = self.claim()?;
        let Self { ref config, clock, .. } = builder;
        let stamp = begun.claimed.as_ref().and_then(Claimed::content);
        let stamp = stamp.map(|content| Stamp { content, made_with: config.imprint() });
        let (database, wanted) = (config.state.path.clone(), stamp.clone());
        let is_short = lists::bytes(&database) <= READ_AT_ONCE;
        let open = move || wanted.and_then(|stamp| Lists::open(&database, &stamp));
        let lists = if is_short { open() } else { begun.tasks.blocking(open).await };
        let promised = stamp.filter(|_| lists.is_some()).and_then(|stamp| stamp.content.revision);
        let kept = lists.map(Kept::of);
        let opening = server::open(listener, &config.server, kept, clock, &begun.tasks, &begun.stop)?;
        Ok(Opened { builder, begun, opening: Some(opening), promised })
    }

    /// Takes the lock of the store, and makes what everything else hangs on.
    fn claim(mut self) -> Result<Opened, StartError> {
        let path = &self.config.state.path;
        let claimed = match sqlite::claim(path) {
            Ok(claimed) => Some(claimed),
            // Where nothing can be written there is no lock either.
            Err(error) if error.trouble != Trouble::Other => None,
            Err(error) => return Err(error.into()),
        };
        // Only now: the store has made the folder.
        let id = self.config.discovery.mdns.id.take().unwrap_or_else(|| identity::of(path));
        self.config.discovery.mdns.id = Some(id);
        let (trigger, stop) = StopTrigger::new();
        let begun = Begun { claimed, tasks: Tasks::new(), trigger, stop };
        Ok(Opened { builder: self, begun, opening: None, promised: None })
    }
}

/// A [`Callsheet`] whose listener is answered on already, as far as that can be done without it.
#[derive(Debug)]
#[must_use = "most of what is asked is answered after `start`"]
pub struct Opened {
    builder: Builder,
    begun: Begun,
    opening: Option<Opening>,
    /// The revision of the lists that are given out until it is started, and since when it stands.
    promised: Option<(String, Timestamp)>,
}

/// What there is before everything else.
#[derive(Debug)]
struct Begun {
    claimed: Option<Claimed>,
    tasks: Tasks,
    trigger: StopTrigger,
    stop: Stop,
}

impl Opened {
    /// Whether lists are given out already.
    pub fn answers(&self) -> bool {
        self.promised.is_some()
    }

    /// Starts the rest; see [`Builder::start`].
    pub async fn start(self) -> Result<Callsheet, StartError> {
        let Self { builder, begun, opening, promised } = self;
        let Builder { config, clock, sources: Sources(own), protocols: Own(mut protocols), native } = builder;
        let Begun { claimed, tasks, trigger, stop } = begun;
        let readiness = Readiness::new();
        let store = store(claimed, config.state.path.clone(), clock, &tasks).await?;
        let id = config.discovery.mdns.id.clone().unwrap_or_default();
        let config = Arc::new(config);
        let mut restored = store.load().await?;
        let client = Client::new(config.limits(), config.refresh.concurrency, config.caching(), clock, tasks.clone());
        let of_calls = of_calls(&mut restored);
        client.identify(&id);
        client.bound(config.bounds());
        let sources = sources(own, &native, &config, clock);
        protocols.extend((!native.is_empty()).then(|| Arc::new(Native(native.clone())) as Arc<dyn Protocol>));
        let setup = engine::Setup {
            config: Arc::clone(&config),
            store: Arc::clone(&store),
            restored,
            client: Arc::clone(&client),
            protocols: Protocols::with(protocols),
            clock,
            tasks: tasks.clone(),
            readiness: readiness.clone(),
            sources,
        };
        let ending = stop.clone();
        let (engine, reader) = tasks.blocking(move || engine::start(setup, &ending)).await;
        check(promised, &reader.snapshot(), &config.state.path);
        let events = Hub::start(reader.clone(), config.events.clone(), clock, &tasks, &stop);
        let views = Views::new(config.views.max_bytes, tasks.clone()).identified(&id);
        let calls = Calls::new(config.calls.clone(), engine.clone(), reader.clone(), clock, tasks.clone());
        let (hub, known, running, end) = (events.clone(), reader.clone(), tasks.clone(), stop.clone());
        let parts = calls::Parts { store, hub, reader: known, clock, tasks: running, stop: end };
        calls.attach(of_calls, parts);
        calls.resume().await;
        super::warm::start(reader.clone(), clock, &tasks, stop.clone());
        let (native, config, id) = (Arc::new(native), watch::Sender::new(config), id.into());
        Ok(Callsheet {
            config,
            settings: watch::Sender::new(ShownValues::default()),
            id,
            client,
            reader,
            engine,
            calls,
            events,
            views,
            readiness,
            native,
            clock,
            tasks,
            trigger,
            stop,
            opening: Mutex::new(opening),
        })
    }
}

/// What is stored of calls.
fn of_calls(restored: &mut Restored) -> calls::Stored {
    let (approvals, operations) = (take(&mut restored.approvals), take(&mut restored.operations));
    calls::Stored { approvals, operations, usage: take(&mut restored.usage) }
}

/// Opens the store beside the async threads, which answer meanwhile.
async fn store(
    claimed: Option<Claimed>,
    path: PathBuf,
    clock: Clock,
    tasks: &Tasks,
) -> Result<Arc<dyn StateStore>, StateError> {
    let opened = tasks.blocking(move || match claimed {
        Some(claimed) => claimed.open(clock),
        None => sqlite::open(&path, clock),
    });
    opened.await
}

/// The lists that were given out must be those that are given out now. Were they not, that would be a slip of ours, and is not to happen twice.
fn check(promised: Option<(String, Timestamp)>, snapshot: &Snapshot, database: &Path) {
    let Some((revision, since)) = promised else { return };
    let now = snapshot.catalog.revision().to_string();
    if (&now, snapshot.generated_at) != (&revision, since) {
        tracing::error!(
            "the lists that were kept are of {revision}, and what is stored makes {now}; they are thrown away"
        );
        lists::forget(database);
    }
}

/// Every source; those inside this process come first.
fn sources(
    own: Vec<Box<dyn Source>>,
    native: &BTreeMap<ScenarioName, NativeTools>,
    config: &Config,
    clock: Clock,
) -> Vec<Box<dyn Source>> {
    let embedded = Embedded::of(own, native.keys().cloned().collect());
    let embedded = embedded.map(|embedded| Box::new(embedded) as Box<dyn Source>);
    embedded.into_iter().chain(SOURCES.iter().filter_map(|(_, make)| make(config, clock))).collect()
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|source| source.id())).finish()
    }
}

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|protocol| protocol.id())).finish()
    }
}
