//! A daemon whose network the test plays: a source of the test's own tells what it found, everything else is real (the engine, the
//! store, the HTTP face). Include `scripted.rs`, `sources.rs`, `serving.rs` and `upstream_server.rs` beside it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use callsheet::calls::Calls;
use callsheet::catalog::{CatalogReader, Snapshot};
use callsheet::config::{Config, StaticScenario};
use callsheet::discovery::static_list;
use callsheet::discovery::{Endpoint, EndpointId, EndpointSet, SourceTrust};
use callsheet::engine::{self, EngineHandle, Setup};
use callsheet::events::Hub;
use callsheet::model::{Finding, FindingCode, Health, ScenarioName, ScenarioState, SourceId};
use callsheet::protocols::Protocols;
use callsheet::runtime::{Clock, Readiness, StopTrigger, Tasks};
use callsheet::server;
use callsheet::state::sqlite;
use callsheet::transports::http::{Client, ClientLimits};
use callsheet::transports::stdio::Children;
use callsheet::views::ViewCache;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use url::Url;

use super::scripted::PATIENCE;
use super::serving::{Answer, ask};
use super::sources::Told;

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
    /// Asks who is trusted often, and who waits for a yes once an hour.
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
        self.config.scenarios.push(StaticScenario {
            name: name.parse().unwrap(),
            target: callsheet::model::Target::at(url.clone()),
            protocol: None,
        });
    }

    /// Starts a daemon that hears these announcements first.
    pub(crate) async fn start(&self, endpoints: impl IntoIterator<Item = Endpoint>) -> Found {
        let config = Arc::new(self.config.clone());
        let (clock, tasks, readiness) = (Clock::system(), Tasks::new(), Readiness::new());
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
        let client = Client::new(limits, refresh.concurrency, refresh.default_lifetime, clock, tasks.clone());
        let network = watch::Sender::new(set(endpoints));
        let mut sources: Vec<Box<dyn callsheet::discovery::Source>> =
            vec![Box::new(Told(SourceId::Mdns, network.subscribe()))];
        sources.extend(static_list::make(&config, clock));
        let setup = Setup {
            config: Arc::clone(&config),
            store,
            restored,
            children: Children::new(clock),
            client,
            protocols: Protocols::built_in(),
            clock,
            tasks: tasks.clone(),
            readiness: readiness.clone(),
            sources,
        };
        let (engine, reader) = engine::start(setup, &stop);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let events = Hub::start(reader.clone(), config.events.clone(), clock, &tasks, &stop);
        let parts = server::ServerParts {
            reader: reader.clone(),
            events,
            views: ViewCache::new(1 << 20, tasks.clone()),
            calls: Calls::new(config.calls.clone(), engine.clone(), reader.clone(), clock, tasks.clone()),
            engine: engine.clone(),
            readiness,
            config: watch::Sender::new(Arc::clone(&config)).subscribe(),
            settings: tokio::sync::watch::Sender::default().subscribe(),
            clock,
            tasks: tasks.clone(),
        };
        tasks.spawn(async move {
            let _ = server::run(listener, parts, stop).await;
        });
        Found { engine, address, reader, network, stop: trigger, tasks }
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
    pub(crate) async fn until(&self, what: &str, mut condition: impl FnMut(&Snapshot) -> bool) -> Arc<Snapshot> {
        let mut reader = self.reader.clone();
        let waiting = async {
            let mut snapshot = reader.snapshot();
            while !condition(&snapshot) {
                snapshot = reader.changed().await.unwrap();
            }
            snapshot
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| {
            let now = self.reader.snapshot();
            panic!("never came: {what}; now {:#?} {:#?} {:?}", now.health, now.findings, listed(&now))
        })
    }

    pub(crate) async fn until_health(
        &self,
        name: &str,
        what: &str,
        condition: impl Fn(&Health) -> bool,
    ) -> Arc<Health> {
        let key: ScenarioName = name.parse().unwrap();
        let snapshot = self
            .until(&format!("{name} {what}"), |now| now.health.get(&key).is_some_and(|health| condition(health)))
            .await;
        Arc::clone(&snapshot.health[&key])
    }

    /// Waits until it waits for a yes and its manifest is known.
    pub(crate) async fn until_pending(&self, name: &str) -> Arc<Health> {
        self.until_health(name, "is pending", |health| {
            health.state == ScenarioState::Pending && health.last_success.is_some()
        })
        .await
    }

    pub(crate) async fn until_state(&self, name: &str, state: ScenarioState) -> Arc<Health> {
        self.until_health(name, state.as_str(), |health| health.state == state).await
    }

    pub(crate) async fn until_listed(&self, tools: &[&str]) -> Arc<Snapshot> {
        self.until(&format!("{tools:?}"), |now| listed(now) == tools).await
    }

    pub(crate) fn now(&self) -> Arc<Snapshot> {
        self.reader.snapshot()
    }

    /// What is known of one now.
    pub(crate) fn health(&self, name: &str) -> Arc<Health> {
        let key: ScenarioName = name.parse().unwrap();
        Arc::clone(&self.now().health[&key])
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
        let answer = self.send(method, &format!("/api/v1/scenarios/{name}/{action}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    pub(crate) async fn stop(self) {
        self.stop.stop();
        drop(self.engine);
        self.tasks.finish(PATIENCE).await;
    }
}

/// The published names in the list, in order.
pub(crate) fn listed(snapshot: &Snapshot) -> Vec<String> {
    let published = snapshot.catalog.entries().filter(|entry| entry.is_published());
    published.flat_map(|entry| entry.listed.iter()).map(|tool| tool.name.to_string()).collect()
}

/// Every finding of this kind.
pub(crate) fn findings(snapshot: &Snapshot, code: FindingCode) -> Vec<Finding> {
    let merged = snapshot.catalog.findings();
    snapshot.findings.iter().chain(&merged).filter(|finding| finding.code == code).cloned().collect()
}
