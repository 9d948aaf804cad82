//! Wiring only: builds the parts from a configuration, starts them, and stops them in order.
//!
//! [`Callsheet`] is what a program embeds. The smallest one finds what is configured and reads the
//! list:
//!
//! ```
//! use callsheet::{Callsheet, catalog::ViewQuery, config::Config};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let app = Callsheet::builder(Config::for_state(folder.path().join("state.db"))).start().await?;
//! for tool in app.view(&ViewQuery::default()).tools() {
//!     println!("{} of {}", tool.name, tool.id.scenario);
//! }
//! app.finish().await;
//! # Ok(())
//! # }
//! ```
//!
//! What is kept true here:
//!
//! - No decision is made here: a part gets what it needs when it is made, and later only another
//!   configuration.
//! - When [`Callsheet::start`] returns, the content of the store is published.
//! - One trigger stops all parts. [`Callsheet::finish`] waits for them, for a limited time.
//!
//! Read in this order: `app/builder.rs` (the parts, in the order of their start), this file (what
//! an embedding program can do), `app/reload.rs`, `app/stopping.rs`, `app/unused.rs`,
//! `app/service.rs`, `app/logins.rs`.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::bundles::BundleStore;
use crate::calls::{self, CallResponse, Calls};
use crate::catalog::{CatalogReader, Snapshot, View, ViewQuery};
use crate::config::{Config, EffectiveValue, LoadOptions};
use crate::discovery::mdns::announce;
use crate::engine::EngineHandle;
use crate::events::{Hub, SubscribeError, SubscribeRequest, Subscription};
use crate::model::{ScenarioName, Secret, ToolId};
use crate::native::{NativeError, NativeTools};
use crate::protocols::definitions::DefinitionRegistry;
use crate::runtime::memory;
use crate::runtime::service::ServiceManager;
use crate::runtime::signal::{self};
use crate::runtime::tasks::Finish;
use crate::runtime::{Clock, Readiness, Stop, StopTrigger, Tasks};
use crate::server;
use crate::state::StateError;
use crate::transports::http::Client;
use crate::transports::http::credentials::oauth::OAuthTokens;
use crate::transports::stdio::Children;
use crate::views::ViewCache;

mod builder;
mod logins;
mod reload;
mod service;
mod stopping;
mod unused;

pub use builder::Builder;
pub use stopping::StopProgress;

/// How long the engine's own tasks may take to end; they only have to finish saves.
const FINISH: Duration = Duration::from_secs(5);

/// A running callsheet: discovers, polls, merges and publishes until it is stopped. Serving over
/// HTTP is optional.
#[derive(Debug)]
pub struct Callsheet {
    /// The active configuration; a reload replaces it.
    config: watch::Sender<Arc<Config>>,
    /// Every active value with its origin, if it was loaded from files; for display.
    settings: watch::Sender<Vec<EffectiveValue>>,
    /// How the configuration was loaded, once its file is followed.
    load_options: OnceLock<Arc<LoadOptions>>,
    /// The identity of this daemon on the network.
    id: Arc<str>,
    client: Arc<Client>,
    logins: Arc<OAuthTokens>,
    bundles: BundleStore,
    children: Arc<Children>,
    reader: CatalogReader,
    engine: EngineHandle,
    calls: Calls,
    events: Hub,
    views: ViewCache,
    readiness: Readiness,
    connections: server::OpenConnections,
    native: Arc<BTreeMap<ScenarioName, NativeTools>>,
    definitions: DefinitionRegistry,
    /// The key of the HTTP server, as the store keeps it.
    server_key: Option<Secret>,
    clock: Clock,
    tasks: Tasks,
    trigger: StopTrigger,
    stop: Stop,
}

/// Why the daemon did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
}

impl Callsheet {
    /// The parts that an embedding program may bring, to be started together.
    pub fn builder(config: Config) -> Builder {
        Builder::new(config)
    }

    /// Starts everything but the HTTP server. When it returns, the content of the store is
    /// published.
    pub async fn start(config: Config, clock: Clock) -> Result<Self, StartError> {
        Self::builder(config).clock(clock).start().await
    }

    /// Serves HTTP on a bound listener until [`stop`](Self::stop) is called, and announces that on
    /// the local network when `discovery.mdns.announce` is on. On Unix it also serves a socket
    /// beside the state, for the command line of this user.
    pub async fn serve(&self, listener: TcpListener) -> Result<(), server::ServeError> {
        self.serving(listener).await
    }

    /// The same as a boxed future, which is compiled with this library. What is awaited as it is,
    /// is compiled with each program that does, with all that it awaits itself.
    fn serving(&self, listener: TcpListener) -> BoxFuture<'_, Result<(), server::ServeError>> {
        Box::pin(self.serve_and_announce(listener))
    }

    async fn serve_and_announce(&self, listener: TcpListener) -> Result<(), server::ServeError> {
        let listen = listener.local_addr().map_err(server::ServeError::Address)?;
        let parts = server::ServerParts {
            reader: self.reader.clone(),
            views: self.views.clone(),
            engine: self.engine.clone(),
            calls: self.calls.clone(),
            logins: Arc::clone(&self.logins),
            bundles: self.bundles.clone(),
            definitions: self.definitions.clone(),
            events: self.events.clone(),
            readiness: self.readiness.clone(),
            config: self.config.subscribe(),
            settings: self.settings.subscribe(),
            load_options: self.load_options.get().cloned(),
            key: self.server_key.clone(),
            command_socket: Some(self.config.borrow().state.command_socket()),
            connections: self.connections.clone(),
            clock: self.clock,
            tasks: self.tasks.clone(),
        };
        let (ended, end) = self.stop.child();
        let announcing = self.announce(listen, end);
        let serving = async {
            let served = server::run(listener, parts, self.stop.clone()).await;
            ended.stop();
            served
        };
        // At a stop both end at once: the goodbye on the local network does not wait for answers
        // under way.
        tokio::join!(serving, announcing).0
    }

    /// Announces the listening address, as the active configuration says, until `end`.
    async fn announce(&self, listen: SocketAddr, end: Stop) {
        let mut config = self.config.subscribe();
        while !end.is_stopped() {
            let section = config.borrow_and_update().discovery.mdns.clone();
            let mut other = self.config.subscribe();
            let over = async {
                tokio::select! {
                    () = end.wait() => {}
                    // The sender is a field of `self`.
                    _ = other.wait_for(|config| config.discovery.mdns != section) => {}
                }
            };
            announce::own(&section, listen, over).await;
            // It ends at once if there is nothing to announce.
            tokio::select! {
                () = end.wait() => {}
                _ = config.wait_for(|config| config.discovery.mdns != section) => {}
            }
        }
    }

    /// The current snapshot: catalog, health and findings of one moment.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.reader.snapshot()
    }

    /// The tools that a client may see: within a scope, with filters.
    pub fn view(&self, query: &ViewQuery) -> View {
        View::select(&self.reader.snapshot().catalog, query)
    }

    /// Subscribes to changes of lists, states and findings. The first message is the current state.
    pub async fn subscribe(
        &self,
        request: SubscribeRequest,
    ) -> Result<Subscription, SubscribeError> {
        self.events.subscribe(request).await
    }

    /// Calls a tool of any scenario, in the scope and with every check that apply to clients over
    /// HTTP.
    ///
    /// A call that is under way continues to its end when this future is dropped.
    pub async fn call(&self, request: calls::Request) -> Result<CallResponse, calls::ExecuteError> {
        self.calls.execute(request).await
    }

    /// The calls of tools, for programs that need more than [`call`](Self::call).
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Runs a native tool by its identity, without any check. Tools of other scenarios are not run
    /// here.
    pub async fn run_native(&self, id: &ToolId, arguments: Value) -> Result<Value, NativeError> {
        let tools = self
            .native
            .get(&id.scenario)
            .ok_or_else(|| NativeError::UnknownScenario(id.scenario.clone()))?;
        tools.run(&id.tool, arguments).await
    }

    /// Reads the published snapshot, and waits for the next one.
    pub fn reader(&self) -> CatalogReader {
        self.reader.clone()
    }

    /// The handle for requests to the engine.
    pub fn engine(&self) -> &EngineHandle {
        &self.engine
    }

    /// The events about changes.
    pub fn events(&self) -> &Hub {
        &self.events
    }

    /// Prepared answers.
    pub fn views(&self) -> &ViewCache {
        &self.views
    }

    /// The steps that are still awaited before the daemon is ready.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Returns memory to the system that the allocator keeps, for as long as the daemon runs
    /// ([`memory`]). For a process that runs only this daemon.
    pub fn return_memory(&self) {
        self.tasks.spawn(memory::watch(
            self.clock,
            self.tasks.clone(),
            self.stop.clone(),
        ));
    }

    /// Notifies the service manager that started this process, if it wants notifications
    /// (`sd_notify(3)`): that the daemon is ready, a line of status, that it is alive while the
    /// engine runs, and that it ends. To be called when the listener is bound.
    pub fn notify_service_manager(&self) {
        if let Some(manager) = ServiceManager::from_environment(self.tasks.clone(), self.clock) {
            let engine = self.engine.clone();
            let reader = self.reader.clone();
            let stop = self.stop.clone();
            self.tasks
                .spawn(service::notify(manager, engine, reader, self.clock, stop));
        }
    }

    /// Stops on the signals with which operators and service managers end a process (SIGTERM and
    /// Ctrl-C; elsewhere Ctrl-C alone).
    pub fn stop_on_signal(&self) -> std::io::Result<()> {
        let signal = signal::stop_signal()?;
        let trigger = self.trigger.clone();
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                name = signal => {
                    tracing::info!(signal = name, "stop requested");
                    trigger.stop();
                }
                () = stop.wait() => {}
            }
        });
        Ok(())
    }

    /// Stops when no client has had a connection for `mcp.linger`. For a daemon that was started
    /// for its clients only.
    pub fn stop_when_unused(&self) {
        let unused = unused::wait(
            self.connections.subscribe(),
            self.config.subscribe(),
            self.clock,
        );
        let trigger = self.trigger.clone();
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = unused => {
                    tracing::info!("stop: no client is left");
                    trigger.stop();
                }
                () = stop.wait() => {}
            }
        });
    }

    /// Completes its waits when stopping was requested.
    pub fn stopping(&self) -> Stop {
        self.stop.clone()
    }

    /// Says what a stop waits for, also while [`finish`](Self::finish) does.
    pub fn stop_progress(&self) -> StopProgress {
        StopProgress {
            reader: self.reader.clone(),
            calls: self.calls.clone(),
            children: Arc::clone(&self.children),
            connections: self.connections.subscribe(),
        }
    }

    /// Stops all parts; [`finish`](Self::finish) waits for them.
    pub fn stop(&self) {
        self.trigger.stop();
    }

    /// Runs until `until` completes or [`stop`](Self::stop) is called, then stops everything and
    /// waits a limited time for saves under way.
    pub async fn run_until(self, until: impl Future<Output = ()>) -> Finish {
        tokio::select! {
            () = until => {}
            () = self.stop.wait() => {}
        }
        self.finish().await
    }

    /// Stops, and waits a limited time for saves under way.
    pub async fn finish(self) -> Finish {
        self.trigger.stop();
        self.calls.close_audit();
        // What reads the output of children ends with them.
        let children = self.children.close().await;
        let finish = children.and(self.tasks.finish(FINISH).await);
        // Calls under way needed their connections until now.
        self.client.close().await;
        self.calls.save_usage_at_last().await;
        finish
    }
}
