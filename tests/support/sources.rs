//! A source that runs under test, and a real processes folder for it to look at.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use callsheet::config::VrooliConfig;
use callsheet::discovery::vrooli::VrooliFiles;
use callsheet::discovery::{Endpoint, EndpointSet, Source, SourceError};
use callsheet::model::{Finding, SourceId};
use callsheet::runtime::{Clock, Stop, StopTrigger, Tasks};
use futures_util::future::BoxFuture;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// No condition of these tests takes this long unless it never comes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// So often that a rescan is soon, for what no watch can tell.
pub(crate) const OFTEN: Duration = Duration::from_millis(100);
/// So seldom that only a watch can tell.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// A source under test.
pub(crate) struct Running {
    pub(crate) sets: watch::Receiver<EndpointSet>,
    stop: StopTrigger,
    ended: JoinHandle<Result<(), SourceError>>,
}

impl Running {
    pub(crate) fn start(source: Box<dyn Source>) -> Self {
        let (out, sets) = watch::channel(EndpointSet::default());
        let (trigger, stop) = StopTrigger::new();
        let ended = Tasks::new().spawn(source.run(out, stop));
        Self {
            sets,
            stop: trigger,
            ended,
        }
    }

    /// The first set for which `condition` holds, now or later.
    pub(crate) async fn until(
        &mut self,
        what: &str,
        condition: impl FnMut(&EndpointSet) -> bool,
    ) -> EndpointSet {
        let waited = tokio::time::timeout(PATIENCE, self.sets.wait_for(condition))
            .await
            .map(|set| set.unwrap().clone());
        waited
            .unwrap_or_else(|_| panic!("never came: {what}; in force: {:#?}", *self.sets.borrow()))
    }

    /// Waits until exactly these scenarios are found at these ports.
    pub(crate) async fn until_ports(&mut self, expected: &[(&str, u16)]) -> EndpointSet {
        self.until(&format!("{expected:?}"), |set| {
            set.initial_scan_done && ports(set) == expected
        })
        .await
    }

    pub(crate) async fn end(self) {
        self.stop.stop();
        tokio::time::timeout(PATIENCE, self.ended)
            .await
            .expect("ends on stop")
            .unwrap()
            .unwrap();
    }
}

/// A source that tells what the test says.
pub(crate) struct ChannelSource(pub(crate) SourceId, pub(crate) watch::Receiver<EndpointSet>);

impl Source for ChannelSource {
    fn id(&self) -> SourceId {
        self.0
    }

    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        let mut said = self.1;
        Box::pin(async move {
            loop {
                let set = said.borrow_and_update().clone();
                out.send_replace(set);
                tokio::select! {
                    () = stop.wait() => return Ok(()),
                    changed = said.changed() => {
                        if changed.is_err() {
                            stop.wait().await;
                            return Ok(());
                        }
                    }
                }
            }
        })
    }
}

pub(crate) fn ports(set: &EndpointSet) -> Vec<(&str, u16)> {
    let port = |endpoint: &Endpoint| endpoint.target.as_ref()?.url().port_or_known_default();
    set.endpoints
        .iter()
        .filter_map(|(id, endpoint)| Some((&*id.0, port(endpoint)?)))
        .collect()
}

pub(crate) fn the_finding(set: &EndpointSet) -> &Finding {
    let [finding] = set.findings.as_slice() else {
        panic!("one finding expected: {set:#?}")
    };
    finding
}

/// Vrooli's processes folder, in a home of its own.
pub(crate) struct Processes {
    _home: TempDir,
    pub(crate) path: PathBuf,
}

impl Processes {
    pub(crate) fn new() -> Self {
        let processes = Self::absent();
        fs::create_dir_all(&processes.path).unwrap();
        processes
    }

    /// In a home where Vrooli never ran.
    pub(crate) fn absent() -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".vrooli/processes/scenarios");
        Self { _home: home, path }
    }

    pub(crate) fn source(&self, rescan_interval: Duration) -> VrooliFiles {
        self.limited(rescan_interval, 1000)
    }

    pub(crate) fn limited(&self, rescan_interval: Duration, max_scenarios: usize) -> VrooliFiles {
        let section = VrooliConfig {
            enabled: true,
            path: Some(self.path.clone()),
            max_scenarios,
            rescan_interval,
        };
        VrooliFiles::new(section, Clock::system())
    }

    pub(crate) fn start(&self, rescan_interval: Duration) -> Running {
        Running::start(Box::new(self.source(rescan_interval)))
    }

    pub(crate) fn write(&self, scenario: &str, file: &str, text: &str) {
        let folder = self.path.join(scenario);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(file), text).unwrap();
    }

    /// The usual file of a scenario whose process is this test's own, which lives.
    pub(crate) fn write_live(&self, scenario: &str, port: u16) {
        self.write(
            scenario,
            "start-api.json",
            &process_file(std::process::id(), scenario, port),
        );
    }
}

pub(crate) fn process_file(pid: u32, scenario: &str, port: u16) -> String {
    format!(
        r#"{{"pid": {pid}, "pgid": {pid}, "process_id": "develop.{scenario}.start-api", "phase": "develop", "scenario": "{scenario}",
            "step": "start-api", "command": "./api", "working_dir": "/srv/{scenario}", "log_file": "/srv/{scenario}.log",
            "port": {port}, "started_at": "2126-01-05T10:00:00Z", "status": "running"}}"#
    )
}
