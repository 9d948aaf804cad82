//! A daemon whose network the test plays: a source of the test stands for mDNS, everything else is
//! real (the engine, the store, the HTTP server).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use callsheet::bundles::{BundleStore, Functions};
use callsheet::calls::Calls;
use callsheet::catalog::{CatalogReader, Snapshot};
use callsheet::config::Config;
use callsheet::discovery::static_list;
use callsheet::discovery::{Endpoint, EndpointId, EndpointSet, SourceTrust};
use callsheet::engine::{self, EngineHandle, Setup, Started};
use callsheet::events::Hub;
use callsheet::model::{Health, ScenarioState, SourceId};
use callsheet::protocols::Protocols;
use callsheet::runtime::{Clock, Readiness, StopTrigger, Tasks};
use callsheet::server;
use callsheet::state::sqlite;
use callsheet::transports::http::credentials::oauth::OAuthTokens;
use callsheet::transports::http::{Client, ClientLimits};
use callsheet::transports::stdio::Children;
use callsheet::views::ViewCache;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use url::Url;

use super::in_process::{self, PATIENCE};
use super::serving::{Answer, ask};
use super::sources::ChannelSource;

/// What outlives one run, and what the next one is configured with.
pub(crate) struct Home {
    folder: TempDir,
    pub(crate) config: Config,
}

/// A running daemon.
pub(crate) struct Found {
    pub(crate) engine: EngineHandle,
    pub(crate) address: SocketAddr,
    reader: CatalogReader,
    network: watch::Sender<EndpointSet>,
    stop: StopTrigger,
    tasks: Tasks,
}

/// One announcement: its name, where, and its identity.
pub(crate) fn announced(name: &str, url: &Url, identity: Option<&str>) -> Endpoint {
    Endpoint {
        name: Some(name.parse().unwrap()),
        identity: identity.map(Into::into),
        ..Endpoint::at(url.clone(), SourceTrust::Untrusted)
    }
}

impl Home {
    /// Polls trusted scenarios often, and pending ones once an hour.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::for_state(folder.path().join("state.db"));
        config.refresh.min_interval = Duration::from_millis(60);
        config.refresh.max_interval = Duration::from_secs(3600);
        config.refresh.default_lifetime = Duration::from_secs(3600);
        config.refresh.forced_gap = Duration::from_millis(1);
        config.refresh.backoff_base = Duration::from_millis(20);
        config.refresh.backoff_max = Duration::from_millis(60);
        Self { folder, config }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state.db")
    }

    pub(crate) fn list(&mut self, name: &str, url: &Url) {
        self.config
            .scenarios
            .push(in_process::entry(name, url.clone()));
    }

    /// Starts a daemon that hears these announcements first.
    pub(crate) async fn start(&self, endpoints: impl IntoIterator<Item = Endpoint>) -> Found {
        let config = Arc::new(self.config.clone());
        let clock = Clock::system();
        let tasks = Tasks::new();
        let readiness = Readiness::new();
        let (trigger, stop) = StopTrigger::new();
        let store = sqlite::open(&config.state.path, clock).unwrap();
        let restored = store.load().await.unwrap();
        let refresh = &config.refresh;
        let limits = ClientLimits {
            connect: refresh.connect_timeout,
            whole: refresh.timeout,
            max_body: refresh.max_body,
            max_redirects: refresh.max_redirects,
        };
        let client = Client::new(
            limits,
            refresh.concurrency,
            refresh.default_lifetime,
            clock,
            tasks.clone(),
        );
        let network = watch::Sender::new(set(endpoints));
        let mut sources: Vec<Box<dyn callsheet::discovery::Source>> =
            vec![Box::new(ChannelSource(SourceId::MDNS, network.subscribe()))];
        sources.extend((static_list::FACTORY.make)(&config, clock));
        let logins = Arc::new(OAuthTokens::new(&client));
        let definitions =
            callsheet::protocols::definitions::DefinitionRegistry::new(Vec::new(), &[]);
        let setup = Setup {
            config: Arc::clone(&config),
            store,
            restored,
            additions: callsheet::engine::AdditionBoard::new(
                callsheet::config::Additions::default(),
                definitions.clone(),
            ),
            children: Children::new(clock),
            client,
            protocols: Protocols::built_in(),
            clock,
            tasks: tasks.clone(),
            readiness: readiness.clone(),
            sources,
        };
        let Started { engine, reader, .. } = engine::start(setup, &stop);
        let (listener, address) = listener().await;
        let events = Hub::start(reader.clone(), config.events.clone(), clock, &tasks, &stop);
        let held = callsheet::runtime::ByteBudget::new(config.server.held_bytes);
        let parts = server::ServerParts {
            reader: reader.clone(),
            events,
            logins,
            definitions,
            bundles: BundleStore::new(
                config.bundles.clone(),
                Functions::default(),
                clock,
                tasks.clone(),
            ),
            views: ViewCache::new(1 << 20, tasks.clone()),
            calls: Calls::new(
                config.calls.clone(),
                engine.clone(),
                reader.clone(),
                held,
                clock,
                tasks.clone(),
            ),
            engine: engine.clone(),
            readiness,
            config: watch::Sender::new(Arc::clone(&config)).subscribe(),
            settings: tokio::sync::watch::Sender::default().subscribe(),
            load_options: None,
            key: None,
            command_socket: None,
            connections: server::OpenConnections::default(),
            clock,
            tasks: tasks.clone(),
        };
        tasks.spawn(async move {
            let _ = server::run(listener, parts, stop).await;
        });
        Found {
            engine,
            address,
            reader,
            network,
            stop: trigger,
            tasks,
        }
    }
}

fn set(endpoints: impl IntoIterator<Item = Endpoint>) -> EndpointSet {
    let entry = |(at, endpoint)| (EndpointId(format!("{at}").into()), endpoint);
    EndpointSet {
        initial_scan_done: true,
        endpoints: endpoints.into_iter().enumerate().map(entry).collect(),
        findings: Vec::new(),
    }
}

impl Found {
    /// From now on this is announced, and nothing else.
    pub(crate) fn hears(&self, endpoints: impl IntoIterator<Item = Endpoint>) {
        self.network.send_replace(set(endpoints));
    }

    /// The first snapshot for which `condition` holds, now or later.
    pub(crate) async fn until(
        &self,
        what: &str,
        condition: impl FnMut(&Snapshot) -> bool,
    ) -> Arc<Snapshot> {
        in_process::until(&self.reader, what, condition).await
    }

    pub(crate) async fn until_health(
        &self,
        name: &str,
        what: &str,
        condition: impl Fn(&Health) -> bool,
    ) -> Arc<Health> {
        let key = in_process::name(name);
        let snapshot = self
            .until(&format!("{name} {what}"), |now| {
                now.health.get(&key).is_some_and(|health| condition(health))
            })
            .await;
        Arc::clone(&snapshot.health[&key])
    }

    /// Waits until it is pending and its manifest is known.
    pub(crate) async fn until_pending(&self, name: &str) -> Arc<Health> {
        self.until_health(name, "is pending", |health| {
            health.state == ScenarioState::Pending && health.last_success.is_some()
        })
        .await
    }

    pub(crate) async fn until_state(&self, name: &str, state: ScenarioState) -> Arc<Health> {
        self.until_health(name, state.as_str(), |health| health.state == state)
            .await
    }

    pub(crate) async fn until_listed(&self, tools: &[&str]) -> Arc<Snapshot> {
        self.until(&format!("{tools:?}"), |now| {
            in_process::listed(now) == tools
        })
        .await
    }

    pub(crate) fn now(&self) -> Arc<Snapshot> {
        self.reader.snapshot()
    }

    /// What is known of one now.
    pub(crate) fn health(&self, name: &str) -> Arc<Health> {
        in_process::health(&self.now(), name)
    }

    /// The names of the known scenarios.
    pub(crate) fn names(&self) -> Vec<String> {
        self.now().health.keys().map(ToString::to_string).collect()
    }

    pub(crate) async fn send(&self, method: &str, target: &str) -> Answer {
        ask(self.address, method, target, &[], "").await
    }

    /// What an operator decides by HTTP: the scenario's health after it.
    pub(crate) async fn decide(&self, method: &str, name: &str, action: &str) -> Value {
        let answer = self
            .send(method, &format!("/api/v1/scenarios/{name}/{action}"))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    pub(crate) async fn stop(self) {
        self.stop.stop();
        drop(self.engine);
        self.tasks.finish(PATIENCE).await;
    }
}

/// A listener on loopback, and its address.
async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}
