//! A whole callsheet under test, in its own folder, with short times. What it publishes is waited
//! for, never slept for.

use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use callsheet::Callsheet;
use callsheet::config::Config;
use callsheet::runtime::Clock;
use callsheet::runtime::tasks::Finish;
use callsheet::state::{Restored, sqlite};
use tempfile::TempDir;
use url::Url;

use super::in_process::{InProcess, PATIENCE, entry};
use super::scripted::Scripted;

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// A running callsheet.
pub(crate) struct Watched {
    running: InProcess,
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

/// Scenarios by name and address.
pub(crate) fn setting<'a>(scenarios: impl IntoIterator<Item = (&'a str, Url)>) -> Setting {
    let folder = tempfile::tempdir().unwrap();
    let place = Place {
        path: folder.path().join("state.db"),
        _folder: folder,
    };
    place.setting(scenarios)
}

/// One scenario, asked every 60 to 120 ms.
pub(crate) fn one(scenario: &str, server: &Scripted) -> Setting {
    setting([(scenario, server.url())])
}

impl Place {
    /// The same folder for another run.
    pub(crate) fn setting<'a>(
        self,
        scenarios: impl IntoIterator<Item = (&'a str, Url)>,
    ) -> Setting {
        let mut config = Config::for_state(self.path.clone());
        config.scenarios = scenarios
            .into_iter()
            .map(|(scenario, url)| entry(scenario, url))
            .collect();
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
        Setting {
            config,
            place: self,
        }
    }

    /// What is stored.
    pub(crate) async fn stored(&self) -> Restored {
        sqlite::open(&self.path, Clock::system())
            .unwrap()
            .load()
            .await
            .unwrap()
    }
}

impl Setting {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Asks on schedule only once an hour, so that every further request has another reason.
    pub(crate) fn seldom(self) -> Self {
        self.with(|config| {
            (config.refresh.min_interval, config.refresh.max_interval) = (HOUR, HOUR);
        })
    }

    pub(crate) async fn start(self) -> Watched {
        self.start_at(Clock::system()).await
    }

    pub(crate) async fn start_at(self, clock: Clock) -> Watched {
        let running = InProcess::start(Callsheet::builder(self.config).clock(clock)).await;
        Watched {
            running,
            place: self.place,
        }
    }
}

impl Watched {
    /// Stops it; how that went, and where it kept its state.
    pub(crate) async fn stop(self) -> (Finish, Place) {
        (self.running.finish().await.1, self.place)
    }
}

impl Deref for Watched {
    type Target = InProcess;

    fn deref(&self) -> &InProcess {
        &self.running
    }
}
