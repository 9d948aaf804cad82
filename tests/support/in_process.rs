//! callsheet in this process: the one way in which tests start it, and how they wait for what it
//! publishes.
//!
//! `daemon.rs` adds HTTP and providers that end and return, `watched.rs` adds scenarios that are
//! polled often, and `house.rs` scenarios that the test adds and removes. Only `found.rs` joins an
//! engine and a server by hand, because its source has to count as mDNS. The binary is started by
//! `command.rs`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::Callsheet;
use callsheet::app::Builder;
use callsheet::catalog::{CatalogReader, Snapshot};
use callsheet::config::StaticScenario;
use callsheet::model::{Finding, FindingCode, Health, ScenarioName, ScenarioState, Target};
use callsheet::runtime::Tasks;
use callsheet::runtime::tasks::Finish;
use callsheet::server::ServeError;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use url::Url;

/// No condition of these tests takes this long unless it never comes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running callsheet.
pub(crate) struct InProcess {
    pub(crate) app: Arc<Callsheet>,
    reader: CatalogReader,
    serving: Mutex<Vec<JoinHandle<Result<(), ServeError>>>>,
}

impl InProcess {
    pub(crate) async fn start(builder: Builder) -> Self {
        let app = Arc::new(Box::pin(builder.start()).await.unwrap());
        Self {
            reader: app.reader(),
            app,
            serving: Mutex::default(),
        }
    }

    /// Serves HTTP at a free port until it is finished.
    pub(crate) async fn serve(&self) -> SocketAddr {
        self.serve_at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Serves HTTP at this address until it is finished; with port 0 at a free one, which is
    /// returned.
    pub(crate) async fn serve_at(&self, address: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Arc::clone(&self.app);
        self.serving
            .lock()
            .unwrap()
            .push(Tasks::new().spawn(async move { app.serve(listener).await }));
        address
    }

    /// The first snapshot for which `condition` holds, now or later.
    pub(crate) async fn until(
        &self,
        what: &str,
        condition: impl FnMut(&Snapshot) -> bool,
    ) -> Arc<Snapshot> {
        until(&self.reader, what, condition).await
    }

    /// Waits until the health of a scenario is as the condition says.
    pub(crate) async fn until_health(
        &self,
        scenario: &str,
        what: &str,
        mut condition: impl FnMut(&Health) -> bool,
    ) -> Arc<Snapshot> {
        let key = name(scenario);
        self.until(&format!("{scenario} {what}"), |now| {
            now.health.get(&key).is_some_and(|health| condition(health))
        })
        .await
    }

    pub(crate) async fn until_state(&self, scenario: &str, state: ScenarioState) -> Arc<Snapshot> {
        self.until_health(scenario, state.as_str(), |health| health.state == state)
            .await
    }

    /// Waits until the list has exactly these tools.
    pub(crate) async fn until_listed(&self, tools: &[&str]) -> Arc<Snapshot> {
        self.until(&format!("{tools:?}"), |now| listed(now) == tools)
            .await
    }

    /// Waits until every configured scenario was polled.
    pub(crate) async fn until_ready(&self) {
        let ready = tokio::time::timeout(PATIENCE, self.app.readiness().wait()).await;
        ready.unwrap_or_else(|_| panic!("never ready: {:?}", self.app.readiness().awaited()));
    }

    pub(crate) fn now(&self) -> Arc<Snapshot> {
        self.reader.snapshot()
    }

    pub(crate) fn reader(&self) -> CatalogReader {
        self.reader.clone()
    }

    pub(crate) fn health(&self, scenario: &str) -> Arc<Health> {
        health(&self.now(), scenario)
    }

    /// Polls a scenario now; its health after that.
    pub(crate) async fn refresh(&self, scenario: &str) -> Arc<Health> {
        let polled = self.app.engine().refresh(vec![name(scenario)]);
        tokio::time::timeout(PATIENCE, polled)
            .await
            .unwrap()
            .unwrap()
            .remove(0)
    }

    /// Stops everything, in this order: whether each answer was finished, and how the tasks ended.
    pub(crate) async fn finish(self) -> (bool, Finish) {
        self.app.stop();
        let mut served = true;
        for serving in self.serving.into_inner().unwrap() {
            served &= serving.await.unwrap().is_ok();
        }
        drop(self.reader);
        let app = Arc::into_inner(self.app).expect("only the test and the ended servers held it");
        (served, app.finish().await)
    }
}

/// The first snapshot for which `condition` holds, now or later.
pub(crate) async fn until(
    reader: &CatalogReader,
    what: &str,
    mut condition: impl FnMut(&Snapshot) -> bool,
) -> Arc<Snapshot> {
    let mut changes = reader.clone();
    let waiting = async {
        let mut snapshot = changes.snapshot();
        while !condition(&snapshot) {
            snapshot = changes
                .changed()
                .await
                .expect("the daemon publishes while it runs");
        }
        snapshot
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| {
        let now = reader.snapshot();
        panic!(
            "never came: {what}; now {:#?} {:#?} {:?}",
            now.health,
            now.findings,
            listed(&now)
        )
    })
}

pub(crate) fn name(text: &str) -> ScenarioName {
    text.parse().unwrap()
}

/// One `[[scenarios]]` entry.
pub(crate) fn entry(scenario: &str, url: Url) -> StaticScenario {
    StaticScenario {
        name: name(scenario),
        target: Target::at(url),
        protocol: None,
        sleep_after: None,
    }
}

pub(crate) fn health(snapshot: &Snapshot, scenario: &str) -> Arc<Health> {
    Arc::clone(
        snapshot
            .health
            .get(&name(scenario))
            .unwrap_or_else(|| panic!("no health of {scenario}")),
    )
}

/// The published names in the list, in order.
pub(crate) fn listed(snapshot: &Snapshot) -> Vec<String> {
    let published = snapshot
        .catalog
        .entries()
        .filter(|entry| entry.is_published());
    published
        .flat_map(|entry| entry.listed.iter())
        .map(|tool| tool.name.to_string())
        .collect()
}

/// Every finding of this kind, of manifests, sources and the merge.
pub(crate) fn findings(snapshot: &Snapshot, code: FindingCode) -> Vec<Finding> {
    let merged = snapshot.catalog.findings();
    snapshot
        .findings
        .iter()
        .chain(&merged)
        .filter(|finding| finding.code == code)
        .cloned()
        .collect()
}
