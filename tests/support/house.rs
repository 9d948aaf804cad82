//! A whole callsheet without a server, whose scenarios are where the test says.
//! Include `callee.rs` beside it.

use std::net::SocketAddr;
use std::sync::Arc;

use callsheet::Callsheet;
use callsheet::app::Builder;
use callsheet::calls::{CallResponse, ExecuteError, Request};
use callsheet::catalog::{Snapshot, ViewQuery};
use callsheet::config::Config;
use callsheet::discovery::{Endpoint, EndpointId, EndpointSet, Source, SourceError, SourceTrust};
use callsheet::engine::CallRoute;
use callsheet::model::{JsonText, PublishedName, ScenarioName, SettingsPatch, SourceId};
use callsheet::protocols::Protocol;
use callsheet::runtime::{Stop, Tasks};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use url::Url;

use super::callee::PATIENCE;

pub(crate) struct House {
    pub(crate) app: Arc<Callsheet>,
    places: watch::Sender<EndpointSet>,
    folder: TempDir,
}

/// Tells what the test says.
struct Told(watch::Receiver<EndpointSet>);

impl House {
    /// With these scenarios, all of them vouched for.
    pub(crate) async fn of(scenarios: &[(&str, Url)]) -> Self {
        Self::with(scenarios, |_| ()).await
    }

    /// The same with another configuration.
    pub(crate) async fn with(scenarios: &[(&str, Url)], change: impl FnOnce(&mut Config)) -> Self {
        let house = Self::built(change, |builder| builder).await;
        for (name, url) in scenarios {
            house.place(name, url.clone(), SourceTrust::Trusted);
        }
        for (name, _) in scenarios {
            let name = scenario(name);
            house.until("answered", |snapshot| snapshot.catalog.entry(&name).is_some()).await;
        }
        house
    }

    /// Without scenarios yet, and with a protocol of the test's own.
    pub(crate) async fn speaking(protocol: impl Protocol + 'static, change: impl FnOnce(&mut Config)) -> Self {
        Self::built(change, |builder| builder.protocol(protocol)).await
    }

    async fn built(change: impl FnOnce(&mut Config), add: impl FnOnce(Builder) -> Builder) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::for_state(folder.path().join("state.db"));
        change(&mut config);
        let (places, told) = watch::channel(EndpointSet { initial_scan_done: true, ..EndpointSet::default() });
        let builder = add(Callsheet::builder(config).source(Told(told)));
        Self { app: Arc::new(builder.start().await.unwrap()), places, folder }
    }

    /// A scenario is there no more.
    pub(crate) fn remove(&self, name: &str) {
        self.places.send_modify(|set| _ = set.endpoints.remove(&EndpointId(name.into())));
    }

    /// A scenario is there now.
    pub(crate) fn place(&self, name: &str, url: Url, trust: SourceTrust) {
        let endpoint = Endpoint { name: name.parse().ok(), ..Endpoint::at(url, trust) };
        self.places.send_modify(|set| _ = set.endpoints.insert(EndpointId(name.into()), endpoint));
    }

    /// The same for any endpoint.
    pub(crate) fn place_endpoint(&self, name: &str, endpoint: Endpoint) {
        let endpoint = Endpoint { name: name.parse().ok(), ..endpoint };
        self.places.send_modify(|set| _ = set.endpoints.insert(EndpointId(name.into()), endpoint));
    }

    /// Waits for a snapshot in which something holds.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        let mut reader = self.app.reader();
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let snapshot = reader.snapshot();
                if holds(&snapshot) {
                    return snapshot;
                }
                reader.changed().await.unwrap();
            }
        });
        let found = found.await;
        assert!(found.is_ok(), "never came: {what}; health {:#?}", self.app.snapshot().health);
        found.unwrap()
    }

    /// The names in the plain list.
    pub(crate) fn names(&self) -> Vec<String> {
        self.app.view(&ViewQuery::default()).tools().map(|tool| tool.name.to_string()).collect()
    }

    /// The way to a scenario.
    pub(crate) fn route(&self, name: &str) -> Option<Arc<CallRoute>> {
        self.app.engine().route(&scenario(name))
    }

    /// Serves HTTP on a free port until the house is finished.
    pub(crate) async fn serve(&self) -> SocketAddr {
        self.serve_at("127.0.0.1:0".parse().unwrap()).await
    }

    /// The same at this address.
    pub(crate) async fn serve_at(&self, address: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind(address).await.unwrap();
        let (address, app) = (listener.local_addr().unwrap(), Arc::clone(&self.app));
        Tasks::new().spawn(async move { app.serve(listener).await });
        address
    }

    /// Calls a tool by name in the global scope.
    pub(crate) async fn call(&self, name: &str, arguments: &Value) -> Result<CallResponse, ExecuteError> {
        self.request(request(name, arguments)).await
    }

    pub(crate) async fn request(&self, request: Request) -> Result<CallResponse, ExecuteError> {
        tokio::time::timeout(PATIENCE, self.app.call(request)).await.unwrap()
    }

    /// The word under which a call is refused.
    pub(crate) async fn refusal(&self, request: Request) -> &'static str {
        self.request(request).await.map_or_else(|refused| refused.kind(), |_| "not refused")
    }

    /// Sets preferences.
    pub(crate) async fn prefer(&self, scope: &str, target: &str, patch: SettingsPatch) {
        self.app.engine().prefer(scope.parse().unwrap(), target.parse().unwrap(), patch).await.unwrap();
    }

    /// The revision of the list in a scope.
    pub(crate) fn revision(&self, scope: &ViewQuery) -> String {
        self.app.snapshot().catalog.revision_for(scope).to_string()
    }

    pub(crate) async fn refresh(&self, name: &str) {
        self.app.engine().refresh(vec![scenario(name)]).await.unwrap();
    }

    pub(crate) async fn finish(self) {
        self.app.stop();
        if let Some(app) = Arc::into_inner(self.app) {
            app.finish().await;
        }
    }
}

/// A call of a tool in the global scope.
pub(crate) fn request(name: &str, arguments: &Value) -> Request {
    Request::new(name, JsonText::parse(&arguments.to_string()).unwrap())
}

/// Switches something on or off.
pub(crate) fn switched(on: bool) -> SettingsPatch {
    SettingsPatch { enabled: Some(Some(on)), ..SettingsPatch::default() }
}

/// Gives something another name.
pub(crate) fn called(alias: &str) -> SettingsPatch {
    SettingsPatch { alias: Some(Some(PublishedName::alias(alias).unwrap())), ..SettingsPatch::default() }
}

pub(crate) fn scenario(name: &str) -> ScenarioName {
    name.parse().unwrap()
}

impl Source for Told {
    fn id(&self) -> SourceId {
        SourceId::Embedded
    }

    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        let mut said = self.0;
        Box::pin(async move {
            loop {
                let set = said.borrow_and_update().clone();
                out.send_replace(set);
                tokio::select! {
                    () = stop.wait() => return Ok(()),
                    changed = said.changed() => if changed.is_err() {
                        stop.wait().await;
                        return Ok(());
                    }
                }
            }
        })
    }
}
