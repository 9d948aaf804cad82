//! The whole daemon in this process, with real scenarios on loopback around it, spoken to over HTTP
//! alone.
//!
//! Waits follow what the daemon publishes and are bounded; nothing here sleeps for time.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use callsheet::Callsheet;
use callsheet::catalog::Snapshot;
use callsheet::config::{Config, StaticScenario};
use callsheet::model::PinMode;
use callsheet::provide::{
    self, CategoryDefinition, Registry, RegistryConfig, StaticProvider, ToolDefinition,
};
use callsheet::runtime::tasks::Finish;
use callsheet::runtime::{Clock, StopTrigger, Tasks};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) use crate::support::in_process::PATIENCE;
use crate::support::in_process::{self, InProcess};
use crate::support::serving::{Answer, ask};

/// Longer than any test: what is due only then is never due.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// What outlives one run of a daemon: its folder with the state and the Vrooli process files.
pub(crate) struct Home {
    folder: TempDir,
}

/// A daemon that serves on a free port.
pub(crate) struct Daemon {
    running: InProcess,
    pub(crate) address: SocketAddr,
}

/// A scenario made with [`callsheet::provide`], which can go and come back.
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    registry: Registry,
    running: Option<(StopTrigger, JoinHandle<std::io::Result<()>>)>,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state.db")
    }

    /// A configuration that touches nothing outside this folder, asks often and gives up soon; what
    /// may fail is waited for patiently.
    pub(crate) fn config(&self, scenarios: &[&Scenario]) -> Config {
        let mut config = Config::for_state(self.state());
        config.server.ready_timeout = PATIENCE;
        config.server.stop_timeout = Duration::from_secs(5);
        config.discovery.environment.enabled = false;
        config.discovery.mdns.enabled = false;
        config.discovery.vrooli.path = Some(self.processes());
        config.discovery.vrooli.rescan_interval = Duration::from_millis(100);
        config.refresh.min_interval = Duration::from_millis(100);
        config.refresh.max_interval = Duration::from_millis(300);
        config.refresh.forced_gap = Duration::from_millis(1);
        config.refresh.backoff_base = Duration::from_millis(20);
        config.refresh.backoff_max = Duration::from_millis(200);
        // The tests of pins set their mode; for all others a change is a change of the list alone.
        config.pins = PinMode::Off;
        config.scenarios = scenarios
            .iter()
            .map(|scenario| scenario.configured())
            .collect();
        config
    }

    fn processes(&self) -> PathBuf {
        self.folder.path().join("processes")
    }

    /// Writes the process file of a scenario whose process is this test's own, which lives.
    pub(crate) fn write_process(&self, scenario: &str, port: u16) {
        self.write_process_of(std::process::id(), scenario, port);
    }

    pub(crate) fn write_process_of(&self, pid: u32, scenario: &str, port: u16) {
        let file = json!({
            "pid": pid, "phase": "develop", "scenario": scenario, "step": "start-api", "port": port,
            "status": "running",
        });
        self.write_process_file(scenario, &file);
    }

    pub(crate) fn write_process_file(&self, scenario: &str, file: &Value) {
        let folder = self.processes().join(scenario);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("start-api.json"), file.to_string()).unwrap();
    }

    pub(crate) fn remove_process(&self, scenario: &str) {
        std::fs::remove_dir_all(self.processes().join(scenario)).unwrap();
    }

    /// Starts a daemon with [`config`](Self::config).
    pub(crate) async fn start(&self, scenarios: &[&Scenario]) -> Daemon {
        Box::pin(Daemon::start(self.config(scenarios))).await
    }
}

/// One `[[scenarios]]` entry.
pub(crate) fn configured(name: &str, address: SocketAddr) -> StaticScenario {
    in_process::entry(name, format!("http://{address}").parse().unwrap())
}

impl Daemon {
    /// Starts and serves at once: what is published now may be no more than what the store
    /// remembered.
    pub(crate) async fn start(config: Config) -> Self {
        // A configuration is large, and each step of a future would hold one.
        Box::pin(Self::at(config, Clock::system())).await
    }

    /// The same with a clock of the test's own.
    pub(crate) async fn at(config: Config, clock: Clock) -> Self {
        // Boxed, because the start of a daemon is a large future.
        let running = Box::pin(InProcess::start(Callsheet::builder(config).clock(clock))).await;
        let address = running.serve().await;
        Self { running, address }
    }

    /// The same, once every configured scenario was polled.
    pub(crate) async fn ready(config: Config) -> Self {
        let daemon = Box::pin(Self::start(config)).await;
        daemon.until_ready().await;
        daemon
    }

    pub(crate) async fn until_ready(&self) {
        self.running.until_ready().await;
    }

    /// Waits until `condition` holds of what is published.
    pub(crate) async fn wait_until(&self, what: &str, condition: impl Fn(&Snapshot) -> bool) {
        self.running.until(what, condition).await;
    }

    /// Sends a request after each change of what is published until `condition` holds of the
    /// answer, which is returned.
    pub(crate) async fn until(&self, target: &str, condition: impl Fn(&Answer) -> bool) -> Answer {
        let mut reader = self.running.reader();
        let deadline = Clock::system().now() + PATIENCE;
        loop {
            let answer = self.get(target).await;
            if condition(&answer) {
                return answer;
            }
            let changed = tokio::time::timeout_at(deadline, reader.changed()).await;
            assert!(
                changed.is_ok(),
                "never came at {target}; last: {}",
                String::from_utf8_lossy(&answer.body)
            );
        }
    }

    /// Waits until the scenario is in this state and returns its health.
    pub(crate) async fn until_state(&self, scenario: &str, state: &str) -> Value {
        let target = format!("/api/v1/scenarios/{scenario}");
        self.until(&target, |answer| {
            answer.status == 200 && answer.json()["state"] == state
        })
        .await
        .json()
    }

    /// Waits until exactly these tools are in the list, by published name.
    pub(crate) async fn until_tools(&self, names: &[&str]) {
        self.until("/api/v1/tools", |answer| names_of(&answer.json()) == names)
            .await;
    }

    pub(crate) async fn get(&self, target: &str) -> Answer {
        ask(self.address, "GET", target, &[], "").await
    }

    /// The JSON of a 200.
    pub(crate) async fn json(&self, target: &str) -> Value {
        let answer = self.get(target).await;
        assert_eq!(answer.status, 200, "{target}: {answer:?}");
        answer.json()
    }

    /// Any method without a body.
    pub(crate) async fn send(&self, method: &str, target: &str) -> Answer {
        ask(self.address, method, target, &[], "").await
    }

    /// Any method with a JSON body.
    pub(crate) async fn send_json(&self, method: &str, target: &str, body: &Value) -> Answer {
        ask(
            self.address,
            method,
            target,
            &[("content-type", "application/json")],
            &body.to_string(),
        )
        .await
    }

    /// The published names in the list that a query asks for (beginning with `?`, or empty).
    pub(crate) async fn tools(&self, query: &str) -> Vec<String> {
        names_of(&self.json(&format!("/api/v1/tools{query}")).await)
    }

    /// The open findings of a kind.
    pub(crate) async fn findings(&self, code: &str) -> Vec<Value> {
        let answer = self.json(&format!("/api/v1/findings?code={code}")).await;
        answer["findings"].as_array().unwrap().clone()
    }

    /// Stops, and waits until everything has ended.
    pub(crate) async fn stop(self) {
        assert_eq!(self.stop_as_it_may().await, (true, Finish::Clean));
    }

    /// The same, with whether every answer was finished and how the tasks ended.
    pub(crate) async fn stop_as_it_may(self) -> (bool, Finish) {
        self.running.finish().await
    }
}

/// The published names of a list in any format.
pub(crate) fn names_of(list: &Value) -> Vec<String> {
    let tools = list.get("tools").unwrap_or(list).as_array().unwrap();
    let name = |tool: &Value| {
        tool.get("function").unwrap_or(tool)["name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    tools.iter().map(name).collect()
}

/// A tool that takes nothing.
pub(crate) fn tool(name: &str) -> ToolDefinition {
    ToolDefinition::new(name, format!("What {name} does")).unwrap()
}

impl Scenario {
    /// Starts one on a free port.
    pub(crate) async fn start(name: &str, tools: impl IntoIterator<Item = ToolDefinition>) -> Self {
        let config = RegistryConfig {
            scenario_name: name.to_owned(),
            ..RegistryConfig::default()
        };
        let registry = Registry::new(config).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut scenario = Self {
            name: name.to_owned(),
            address,
            registry,
            running: None,
        };
        scenario.offer(tools);
        scenario.run().await;
        scenario
    }

    /// Starts one with tools of these names that take nothing.
    pub(crate) async fn of(name: &str, tools: &[&str]) -> Self {
        Self::start(name, tools.iter().map(|name| tool(name))).await
    }

    /// Offers these tools from now on, with one category for each that they name.
    pub(crate) fn offer(&self, tools: impl IntoIterator<Item = ToolDefinition>) {
        let mut provider = StaticProvider::new("all");
        for tool in tools {
            if let Some(id) = tool.to_json().get("category").and_then(Value::as_str) {
                provider = provider.category(CategoryDefinition::new(id, id).unwrap());
            }
            provider = provider.tool(tool);
        }
        self.registry.register(provider);
    }

    /// As it stands in the configuration.
    pub(crate) fn configured(&self) -> StaticScenario {
        configured(&self.name, self.address)
    }

    /// Ends; afterwards its port is refused.
    pub(crate) async fn stop(&mut self) {
        let (trigger, ended) = self.running.take().expect("it runs");
        trigger.stop();
        ended.await.unwrap().unwrap();
    }

    /// Answers again at its address.
    pub(crate) async fn run(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let (trigger, stop) = StopTrigger::new();
        let serving = Tasks::new().spawn(provide::serve(
            listener,
            self.registry.clone(),
            async move { stop.wait().await },
        ));
        self.running = Some((trigger, serving));
    }

    /// Answers again at another port than before, where nothing answers any more.
    pub(crate) async fn run_elsewhere(&mut self) {
        let before = self.address;
        // Held while the new one is bound, or the system may give the same port again.
        let _held = TcpListener::bind(before).await.unwrap();
        self.address.set_port(0);
        self.run().await;
        assert_ne!(self.address, before);
    }

    /// Lets connections to its address wait for ever while the returned listener lives. It must
    /// have been stopped.
    pub(crate) async fn hang(&self) -> TcpListener {
        TcpListener::bind(self.address).await.unwrap()
    }
}
