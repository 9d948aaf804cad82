//! A whole callsheet under test, in its own folder, with short times. What it publishes is waited for, never slept for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use callsheet::Callsheet;
use callsheet::catalog::{CatalogReader, Snapshot};
use callsheet::config::{Config, StaticScenario};
use callsheet::model::{Finding, FindingCode, Health, ScenarioName, ScenarioState};
use callsheet::runtime::Clock;
use callsheet::runtime::tasks::Finish;
use callsheet::state::{Restored, sqlite};
use tempfile::TempDir;
use url::Url;

use super::scripted::{PATIENCE, Scripted};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// A running callsheet.
pub(crate) struct Watched {
    pub(crate) callsheet: Callsheet,
    reader: CatalogReader,
    place: Place,
}

/// Where it keeps its state.
pub(crate) struct Place {
    _folder: TempDir,
    path: PathBuf,
}

/// A configuration in the making: these scenarios, nothing else, and everything soon.
pub(crate) struct Setting {
    pub(crate) config: Config,
    place: Place,
}

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) fn name(text: &str) -> ScenarioName {
    text.parse().unwrap()
}

/// Scenarios by name and address.
pub(crate) fn setting<'a>(scenarios: impl IntoIterator<Item = (&'a str, Url)>) -> Setting {
    let folder = tempfile::tempdir().unwrap();
    let place = Place { path: folder.path().join("state.db"), _folder: folder };
    place.setting(scenarios)
}

/// One scenario, asked every 60 to 120 ms.
pub(crate) fn one(scenario: &str, server: &Scripted) -> Setting {
    setting([(scenario, server.url())])
}

impl Place {
    /// The same folder for another run.
    pub(crate) fn setting<'a>(self, scenarios: impl IntoIterator<Item = (&'a str, Url)>) -> Setting {
        let mut config = Config::for_state(self.path.clone());
        let entry = |(scenario, url)| StaticScenario {
            name: name(scenario),
            target: callsheet::model::Target::at(url),
            protocol: None,
        };
        config.scenarios = scenarios.into_iter().map(entry).collect();
        config.discovery.environment.enabled = false;
        config.discovery.mdns.enabled = false;
        config.discovery.vrooli.enabled = false;
        config.refresh.min_interval = ms(60);
        config.refresh.max_interval = ms(120);
        config.refresh.forced_gap = ms(1);
        config.refresh.timeout = PATIENCE;
        config.refresh.connect_timeout = PATIENCE;
        config.refresh.backoff_base = ms(20);
        config.refresh.backoff_max = ms(60);
        Setting { config, place: self }
    }

    /// What is stored.
    pub(crate) async fn stored(&self) -> Restored {
        sqlite::open(&self.path, Clock::system()).unwrap().load().await.unwrap()
    }
}

impl Setting {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Asks on schedule only once an hour, so that every further request has another reason.
    pub(crate) fn seldom(self) -> Self {
        self.with(|config| (config.refresh.min_interval, config.refresh.max_interval) = (HOUR, HOUR))
    }

    pub(crate) async fn start(self) -> Watched {
        self.start_at(Clock::system()).await
    }

    pub(crate) async fn start_at(self, clock: Clock) -> Watched {
        let callsheet = Callsheet::start(self.config, clock).await.unwrap();
        Watched { reader: callsheet.reader(), callsheet, place: self.place }
    }
}

impl Watched {
    /// The first snapshot for which `condition` holds, now or later.
    pub(crate) async fn until(&mut self, what: &str, mut condition: impl FnMut(&Snapshot) -> bool) -> Arc<Snapshot> {
        let waiting = async {
            let mut snapshot = self.reader.snapshot();
            while !condition(&snapshot) {
                snapshot = self.reader.changed().await.unwrap();
            }
            snapshot
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| {
            let now = self.reader.snapshot();
            panic!("never came: {what}; now {:#?} {:#?} {:?}", now.health, now.findings, listed(&now))
        })
    }

    /// Waits until the health of a scenario is as the condition says.
    pub(crate) async fn until_health(
        &mut self,
        scenario: &str,
        what: &str,
        mut condition: impl FnMut(&Health) -> bool,
    ) -> Arc<Snapshot> {
        let key = name(scenario);
        self.until(&format!("{scenario} {what}"), |now| now.health.get(&key).is_some_and(|health| condition(health)))
            .await
    }

    pub(crate) async fn until_state(&mut self, scenario: &str, state: ScenarioState) -> Arc<Snapshot> {
        self.until_health(scenario, state.as_str(), |health| health.state == state).await
    }

    /// Waits until the list has exactly these tools.
    pub(crate) async fn until_listed(&mut self, tools: &[&str]) -> Arc<Snapshot> {
        self.until(&format!("{tools:?}"), |now| listed(now) == tools).await
    }

    pub(crate) fn now(&self) -> Arc<Snapshot> {
        self.reader.snapshot()
    }

    pub(crate) fn health(&self, scenario: &str) -> Arc<Health> {
        health(&self.now(), scenario)
    }

    /// Asks a scenario now; its health after that.
    pub(crate) async fn refresh(&self, scenario: &str) -> Arc<Health> {
        let asked = self.callsheet.engine().refresh(vec![name(scenario)]);
        tokio::time::timeout(PATIENCE, asked).await.unwrap().unwrap().remove(0)
    }

    /// Stops it; how that went, and where it kept its state.
    pub(crate) async fn stop(self) -> (Finish, Place) {
        (self.callsheet.finish().await, self.place)
    }
}

pub(crate) fn health(snapshot: &Snapshot, scenario: &str) -> Arc<Health> {
    Arc::clone(snapshot.health.get(&name(scenario)).unwrap_or_else(|| panic!("no health of {scenario}")))
}

/// The published names in the list, in order.
pub(crate) fn listed(snapshot: &Snapshot) -> Vec<String> {
    let published = snapshot.catalog.entries().filter(|entry| entry.is_published());
    published.flat_map(|entry| entry.listed.iter()).map(|tool| tool.name.to_string()).collect()
}

/// Every finding of this kind, of manifests, sources and the merge.
pub(crate) fn findings(snapshot: &Snapshot, code: FindingCode) -> Vec<Finding> {
    let merged = snapshot.catalog.findings();
    snapshot.findings.iter().chain(&merged).filter(|finding| finding.code == code).cloned().collect()
}
