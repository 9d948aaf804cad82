//! Wiring only: builds the parts from a configuration, starts them, and stops them in order.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::catalog::CatalogReader;
use crate::config::Config;
use crate::discovery::SOURCES;
use crate::discovery::mdns::{announce, identity};
use crate::engine::{self, EngineHandle};
use crate::events::Hub;
use crate::runtime::tasks::Finish;
use crate::runtime::{Clock, Readiness, Stop, StopTrigger, Tasks, signal};
use crate::server;
use crate::state::{StateError, sqlite};
use crate::upstream::{AskError, Client, Limits};
use crate::views::Views;

/// How long the engine's own tasks may take to end; they only have saves to finish.
const FINISH: Duration = Duration::from_secs(5);

/// A running callsheet: finds, asks, merges and publishes until it is stopped. Serving over HTTP is optional.
#[derive(Debug)]
pub struct Callsheet {
    config: Arc<Config>,
    reader: CatalogReader,
    engine: EngineHandle,
    events: Hub,
    views: Views,
    readiness: Readiness,
    clock: Clock,
    tasks: Tasks,
    trigger: StopTrigger,
    stop: Stop,
}

/// Why it did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be built")]
    Client(#[from] AskError),
}

impl Callsheet {
    /// Starts everything but the HTTP server. When it returns, what the store remembered is published.
    pub async fn start(mut config: Config, clock: Clock) -> Result<Self, StartError> {
        let tasks = Tasks::new();
        let (trigger, stop) = StopTrigger::new();
        let readiness = Readiness::new();
        let store = sqlite::open(&config.state.path, clock)?;
        // Only now: the store has made the folder.
        let id = config.discovery.mdns.id.take().unwrap_or_else(|| identity::of(&config.state.path));
        config.discovery.mdns.id = Some(id.clone());
        let config = Arc::new(config);
        let restored = store.load().await?;
        let refresh = &config.refresh;
        let client = Client::new(limits(&config), refresh.concurrency, refresh.default_lifetime, clock, tasks.clone())?;
        client.identify(&id);
        let sources = SOURCES.iter().filter_map(|(_, make)| make(&config, clock)).collect();
        let setup = engine::Setup {
            config: Arc::clone(&config),
            store,
            restored,
            client,
            clock,
            tasks: tasks.clone(),
            readiness: readiness.clone(),
            sources,
        };
        let (engine, reader) = engine::start(setup, &stop);
        let events = Hub::start(reader.clone(), config.events.clone(), clock, &tasks, &stop);
        let views = Views::new(config.views.max_bytes, tasks.clone()).identified(&id);
        Ok(Self { config, reader, engine, events, views, readiness, clock, tasks, trigger, stop })
    }

    /// Serves HTTP on a bound listener until [`stop`](Self::stop) is called, and announces that on the local network when
    /// `discovery.mdns.announce` is on.
    pub async fn serve(&self, listener: TcpListener) -> Result<(), server::ServeError> {
        let parts = server::Parts {
            reader: self.reader.clone(),
            views: self.views.clone(),
            engine: self.engine.clone(),
            events: self.events.clone(),
            readiness: self.readiness.clone(),
            config: self.config.server.clone(),
            clock: self.clock,
            tasks: self.tasks.clone(),
        };
        let (ended, end) = StopTrigger::new();
        let announcing = announce::own(&self.config.discovery.mdns, listener.local_addr(), self.clock, async {
            tokio::select! {
                () = self.stop.wait() => {}
                () = end.wait() => {}
            }
        });
        let serving = async {
            let served = server::run(listener, parts, self.stop.clone()).await;
            ended.stop();
            served
        };
        // At a stop both end at once: the goodbye does not wait for answers under way.
        tokio::join!(serving, announcing).0
    }

    /// Reads what is published.
    pub fn reader(&self) -> CatalogReader {
        self.reader.clone()
    }

    /// Asks the engine for something.
    pub fn engine(&self) -> &EngineHandle {
        &self.engine
    }

    /// Tells what changes.
    pub fn events(&self) -> &Hub {
        &self.events
    }

    /// Prepared answers.
    pub fn views(&self) -> &Views {
        &self.views
    }

    /// What is still awaited.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Stops on the signals with which operators and service managers end a process (SIGTERM and Ctrl-C; elsewhere Ctrl-C alone).
    pub fn stop_on_signal(&self) -> std::io::Result<()> {
        let signal = signal::asked_to_stop()?;
        let (trigger, stop) = (self.trigger.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                name = signal => {
                    tracing::info!(signal = name, "asked to stop");
                    trigger.stop();
                }
                () = stop.wait() => {}
            }
        });
        Ok(())
    }

    /// Completes waits when stopping was asked for.
    pub fn stopping(&self) -> Stop {
        self.stop.clone()
    }

    /// Tells everything to stop; [`finish`](Self::finish) waits for it.
    pub fn stop(&self) {
        self.trigger.stop();
    }

    /// Stops, and waits a limited time for saves under way.
    pub async fn finish(self) -> Finish {
        self.trigger.stop();
        self.tasks.finish(FINISH).await
    }
}

fn limits(config: &Config) -> Limits {
    Limits {
        connect: config.refresh.connect_timeout,
        whole: config.refresh.timeout,
        max_body: config.refresh.max_body,
        max_redirects: config.refresh.max_redirects,
    }
}
