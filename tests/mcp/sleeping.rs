//! Programs that sleep while no client needs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callsheet::config::Config;
use callsheet::discovery::{Endpoint, SourceTrust};
use callsheet::model::{ScenarioState, StdioTarget, Target};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::callee::PATIENCE;
use crate::support::house::{House, scenario};

/// A program that notes each of its starts, and offers the tools of a file.
struct Program(TempDir);

impl Program {
    fn offering(tools: &str) -> Self {
        let program = Self(tempfile::tempdir().unwrap());
        fs::write(program.path("names"), tools).unwrap();
        fs::write(program.path("starts"), "").unwrap();
        program
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn target(&self) -> StdioTarget {
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mcp_server.py");
        let script = format!(
            "echo $$ >> starts; if [ -e broken ]; then echo no key >&2; exit 3; fi; exec python3 {} legacy names",
            server.display()
        );
        StdioTarget::new("sh")
            .with_args(["-c", &script])
            .with_cwd(Some(self.0.path().to_owned()))
    }

    /// The processes that were started so far.
    fn starts(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("starts")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Those of them that run.
    fn running(&self) -> Vec<String> {
        let is_running = |id: &String| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            stat.rsplit_once(')')
                .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
        };
        self.starts().into_iter().filter(is_running).collect()
    }
}

/// Sleeps soon.
fn sleepy(config: &mut Config) {
    config.mcp.sleep_after = Some(Duration::from_millis(50));
    config.refresh.forced_gap = Duration::from_millis(1);
}

fn place(house: &House, target: StdioTarget) {
    let endpoint = Endpoint::at("http://127.0.0.1:1/".parse().unwrap(), SourceTrust::Trusted);
    house.place_endpoint(
        "child",
        Endpoint {
            target: Some(Target::from(target)),
            ..endpoint
        },
    );
}

async fn house(program: &Program, change: impl FnOnce(&mut Config)) -> House {
    let house = House::with(&[], |config| {
        sleepy(config);
        change(config);
    })
    .await;
    place(&house, program.target());
    until_state(&house, ScenarioState::Asleep).await;
    house
}

async fn until_state(house: &House, state: ScenarioState) {
    let name = scenario("child");
    house
        .until(state.as_str(), |snapshot| {
            let health = snapshot.health.get(&name);
            health.is_some_and(|health| health.state == state)
        })
        .await;
}

/// Waits until no process of the program runs.
async fn until_ended(program: &Program) {
    let ended = async {
        while !program.running().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
}

async fn pid(house: &House) -> Value {
    let called = house.call("pid", &json!({})).await;
    let outcome = called
        .unwrap_or_else(|error| panic!("{error}; {:?}", house.app.snapshot().health))
        .outcome;
    serde_json::from_str(outcome.result.unwrap().get()).unwrap()
}

#[tokio::test]
async fn a_program_that_is_not_used_sleeps_and_wakes_for_a_call() {
    let program = Program::offering("pid read");
    let house = house(&program, |_| ()).await;
    until_ended(&program).await;
    assert_eq!(house.names(), ["pid", "read"], "listed as ever");
    let health = house.app.snapshot().health[&scenario("child")].clone();
    assert!(health.reason.starts_with("asleep since "), "{health:?}");
    assert!(health.reason.contains("its list is of "), "{health:?}");
    let first = pid(&house).await;
    until_state(&house, ScenarioState::Asleep).await;
    let second = pid(&house).await;
    assert_ne!(first, second);
    let health = house.app.snapshot().health[&scenario("child")].clone();
    assert_eq!(health.restarts, 0, "{health:?}");
    assert_eq!(health.failures_in_a_row, 0, "{health:?}");
    house.finish().await;
}

#[tokio::test]
async fn a_hundred_first_calls_start_one_process() {
    let program = Program::offering("pid");
    let house = house(&program, |config| {
        config.mcp.sleep_after = Some(Duration::from_secs(1));
    })
    .await;
    let before = program.starts().len();
    let pids = join_all((0..100).map(|_| pid(&house))).await;
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    assert_eq!(program.starts().len(), before + 1);
    house.finish().await;
}

#[tokio::test]
async fn a_tool_that_is_gone_after_waking_is_not_called() {
    let program = Program::offering("pid read");
    let house = house(&program, |_| ()).await;
    until_ended(&program).await;
    fs::write(program.path("names"), "pid").unwrap();
    let refused = house.call("read", &json!({})).await.unwrap_err();
    house
        .until("the new list", |_| house.names() == ["pid"])
        .await;
    assert!(!refused.to_string().is_empty(), "{refused}");
    house.finish().await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_any_more_says_why_and_keeps_its_tools_for_grace() {
    let program = Program::offering("pid");
    let house = house(&program, |_| ()).await;
    until_ended(&program).await;
    fs::write(program.path("broken"), "").unwrap();
    let refused = house.call("pid", &json!({})).await.unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("exit code 3") && text.contains("no key"),
        "{text}"
    );
    assert_eq!(house.names(), ["pid"], "its grace began now");
    fs::remove_file(program.path("broken")).unwrap();
    until_state(&house, ScenarioState::Asleep).await;
    pid(&house).await;
    house.finish().await;
}

#[tokio::test]
async fn a_program_with_a_young_list_is_not_started_with_the_daemon() {
    let program = Program::offering("pid");
    let house = house(&program, |_| ()).await;
    let before = program.starts().len();
    let house = house.restart_with(sleepy).await;
    until_state(&house, ScenarioState::Asleep).await;
    assert_eq!(house.names(), ["pid"]);
    assert_eq!(program.starts().len(), before);
    pid(&house).await;
    assert_eq!(program.starts().len(), before + 1);
    house.finish().await;
}

#[tokio::test]
async fn the_list_of_a_program_that_sleeps_is_looked_at_again() {
    let program = Program::offering("pid");
    let house = house(&program, |config| {
        config.mcp.relist_after = Duration::from_millis(300);
    })
    .await;
    fs::write(program.path("names"), "pid read").unwrap();
    house
        .until("the new list", |_| house.names() == ["pid", "read"])
        .await;
    until_state(&house, ScenarioState::Asleep).await;
    house.finish().await;
}

#[tokio::test]
async fn a_refresh_by_name_wakes_and_one_of_all_does_not() {
    let program = Program::offering("pid");
    let house = house(&program, |_| ()).await;
    let before = program.starts().len();
    house.app.engine().refresh(Vec::new()).await.unwrap();
    assert_eq!(program.starts().len(), before);
    let named = house.app.engine().refresh(vec![scenario("child")]).await;
    assert_eq!(named.unwrap().len(), 1);
    assert_eq!(program.starts().len(), before + 1);
    house.finish().await;
}
