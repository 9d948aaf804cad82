//! callsheet in this process with scenarios that the test adds and removes, called through the
//! library.

use std::ops::Deref;
use std::sync::Arc;

use callsheet::Callsheet;
use callsheet::app::Builder;
use callsheet::calls::{
    CallDependencies, CallResponse, Calls, ExecuteError, Request, Requester, Stored,
};
use callsheet::catalog::ViewQuery;
use callsheet::config::{CallsConfig, Config};
use callsheet::discovery::{Endpoint, EndpointId, EndpointSet, SourceTrust};
use callsheet::engine::CallRoute;
use callsheet::model::{JsonText, PublishedName, ScenarioName, SettingsPatch, SourceId};
use callsheet::protocols::Protocol;
use callsheet::runtime::{ByteBudget, Clock, Tasks};
use callsheet::state::StateStore;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use url::Url;

use super::in_process::{InProcess, PATIENCE};
use super::sources::ChannelSource;

pub(crate) struct House {
    running: InProcess,
    places: watch::Sender<EndpointSet>,
    folder: TempDir,
}

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
            house
                .until("answered", |snapshot| {
                    snapshot.catalog.entry(&name).is_some()
                })
                .await;
        }
        house
    }

    /// Without scenarios yet, and with a protocol of the test's own.
    pub(crate) async fn speaking(
        protocol: impl Protocol + 'static,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        Self::built(change, |builder| builder.protocol(protocol)).await
    }

    /// The same with this clock.
    pub(crate) async fn speaking_at(
        clock: Clock,
        protocol: impl Protocol + 'static,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        Self::built(change, |builder| builder.protocol(protocol).clock(clock)).await
    }

    async fn built(change: impl FnOnce(&mut Config), add: impl FnOnce(Builder) -> Builder) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::for_state(folder.path().join("state.db"));
        change(&mut config);
        let (places, received) = watch::channel(EndpointSet {
            initial_scan_done: true,
            ..EndpointSet::default()
        });
        let builder =
            add(Callsheet::builder(config).source(ChannelSource(SourceId::EMBEDDED, received)));
        Self {
            running: InProcess::start(builder).await,
            places,
            folder,
        }
    }

    /// The same house after a restart of the daemon, with the same state.
    pub(crate) async fn restart(self) -> Self {
        self.restart_with(|_| ()).await
    }

    /// Calls beside those of the program, which are kept in another store.
    pub(crate) fn calls_with(&self, config: CallsConfig, store: Arc<dyn StateStore>) -> Calls {
        let engine = self.app.engine().clone();
        let tasks = Tasks::new();
        let budget = ByteBudget::new(1 << 20);
        let calls = Calls::new(
            config,
            engine,
            self.app.reader(),
            budget,
            Clock::system(),
            tasks.clone(),
        );
        let parts = CallDependencies {
            store,
            hub: self.app.events().clone(),
            reader: self.app.reader(),
            clock: Clock::system(),
            tasks,
            stop: self.app.stopping(),
        };
        calls.attach(Stored::default(), parts);
        calls
    }

    /// The same with another configuration.
    pub(crate) async fn restart_with(self, change: impl FnOnce(&mut Config)) -> Self {
        let Self {
            running,
            places,
            folder,
        } = self;
        running.finish().await;
        let mut config = Config::for_state(folder.path().join("state.db"));
        change(&mut config);
        let builder = Callsheet::builder(config)
            .source(ChannelSource(SourceId::EMBEDDED, places.subscribe()));
        Self {
            running: InProcess::start(builder).await,
            places,
            folder,
        }
    }

    /// A scenario is there no more.
    pub(crate) fn remove(&self, name: &str) {
        self.places
            .send_modify(|set| _ = set.endpoints.remove(&EndpointId(name.into())));
    }

    /// A scenario is there now.
    pub(crate) fn place(&self, name: &str, url: Url, trust: SourceTrust) {
        let endpoint = Endpoint {
            name: name.parse().ok(),
            ..Endpoint::at(url, trust)
        };
        self.places
            .send_modify(|set| _ = set.endpoints.insert(EndpointId(name.into()), endpoint));
    }

    /// The same for any endpoint.
    pub(crate) fn place_endpoint(&self, name: &str, endpoint: Endpoint) {
        let endpoint = Endpoint {
            name: name.parse().ok(),
            ..endpoint
        };
        self.places
            .send_modify(|set| _ = set.endpoints.insert(EndpointId(name.into()), endpoint));
    }

    /// The names in the plain list.
    pub(crate) fn names(&self) -> Vec<String> {
        self.app
            .view(&ViewQuery::default())
            .tools()
            .map(|tool| tool.name.to_string())
            .collect()
    }

    /// The way to a scenario.
    pub(crate) fn route(&self, name: &str) -> Option<Arc<CallRoute>> {
        self.app.engine().route(&scenario(name))
    }

    /// Calls a tool by name in the global scope.
    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: &Value,
    ) -> Result<CallResponse, ExecuteError> {
        self.request(request(name, arguments)).await
    }

    pub(crate) async fn request(&self, request: Request) -> Result<CallResponse, ExecuteError> {
        tokio::time::timeout(PATIENCE, self.app.call(request))
            .await
            .unwrap()
    }

    /// The word under which a call is refused.
    pub(crate) async fn refusal(&self, request: Request) -> &'static str {
        self.request(request)
            .await
            .map_or_else(|refused| refused.kind(), |_| "not refused")
    }

    /// Sets preferences.
    pub(crate) async fn prefer(&self, scope: &str, target: &str, patch: SettingsPatch) {
        self.app
            .engine()
            .prefer(scope.parse().unwrap(), target.parse().unwrap(), patch)
            .await
            .unwrap();
    }

    /// The revision of the list in a scope.
    pub(crate) fn revision(&self, scope: &ViewQuery) -> String {
        self.app.snapshot().catalog.revision_for(scope).to_string()
    }

    /// The folder of its state.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Stops, and keeps the folder.
    pub(crate) async fn close(self) -> TempDir {
        self.running.finish().await;
        self.folder
    }

    pub(crate) async fn finish(self) {
        self.running.finish().await;
    }
}

/// A call of a tool in the global scope, by the program that embeds the library.
pub(crate) fn request(name: &str, arguments: &Value) -> Request {
    Request::new(
        name,
        JsonText::parse(&arguments.to_string()).unwrap(),
        Requester::full_access(),
    )
}

/// Switches something on or off.
pub(crate) fn switched(on: bool) -> SettingsPatch {
    SettingsPatch {
        enabled: Some(Some(on)),
        ..SettingsPatch::default()
    }
}

/// Gives something another name.
pub(crate) fn called(alias: &str) -> SettingsPatch {
    SettingsPatch {
        alias: Some(Some(PublishedName::alias(alias).unwrap())),
        ..SettingsPatch::default()
    }
}

pub(crate) fn scenario(name: &str) -> ScenarioName {
    name.parse().unwrap()
}

impl Deref for House {
    type Target = InProcess;

    fn deref(&self) -> &InProcess {
        &self.running
    }
}
