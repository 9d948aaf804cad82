//! Programs that sleep while no client needs them: when they fall asleep, and what a call finds
//! that wakes one. What else wakes them is in `sleeping_requests.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callsheet::config::Config;
use callsheet::discovery::{Endpoint, SourceTrust};
use callsheet::model::{Finding, FindingCode, ScenarioState, StdioTarget, Target};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::callee::PATIENCE;
use crate::support::house::{House, scenario};

/// A program that notes each of its starts, and offers the tools of a file.
pub(crate) struct Program(TempDir);

impl Program {
    pub(crate) fn offering(tools: &str) -> Self {
        let program = Self(tempfile::tempdir().unwrap());
        fs::write(program.path("names"), tools).unwrap();
        fs::write(program.path("starts"), "").unwrap();
        program
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn target(&self) -> StdioTarget {
        self.behaving("legacy")
    }

    /// The program with another behaviour of its server. Files in its folder say how it starts: it
    /// may end, end at its greeting, greet a person first, or not begin as long as the file is
    /// there.
    pub(crate) fn behaving(&self, behaviour: &str) -> StdioTarget {
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mcp_server.py");
        let script = format!(
            "echo $$ >> starts\n\
             if [ -e broken ]; then echo no key >&2; exit 3; fi\n\
             if [ -e mortal ]; then read greeting; echo fell over >&2; exit 4; fi\n\
             if [ -e banner ]; then echo 'Welcome to the server!'; fi\n\
             while [ -e late ]; do sleep 0.02; done\n\
             exec python3 {} {behaviour} names",
            server.display()
        );
        StdioTarget::new("sh")
            .with_args(["-c", &script])
            .with_cwd(Some(self.0.path().to_owned()))
    }

    /// The processes that were started so far.
    pub(crate) fn starts(&self) -> Vec<String> {
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
pub(crate) fn sleepy(config: &mut Config) {
    config.mcp.sleep_after = Some(Duration::from_millis(50));
    config.refresh.forced_gap = Duration::from_millis(1);
}

pub(crate) fn place(house: &House, name: &str, target: StdioTarget) {
    let endpoint = Endpoint::at("http://127.0.0.1:1/".parse().unwrap(), SourceTrust::Trusted);
    house.place_endpoint(
        name,
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
    place(&house, "child", program.target());
    until_state(&house, ScenarioState::Asleep).await;
    house
}

async fn until_state(house: &House, state: ScenarioState) {
    house.until_state("child", state).await;
}

/// Waits until no process of the program runs.
pub(crate) async fn until_ended(program: &Program) {
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
    let health = house.health("child");
    assert!(health.reason.starts_with("asleep since "), "{health:?}");
    assert!(health.reason.contains("its list is of "), "{health:?}");
    let first = pid(&house).await;
    until_state(&house, ScenarioState::Asleep).await;
    let second = pid(&house).await;
    assert_ne!(first, second);
    let health = house.health("child");
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
    let text = refused.to_string();
    assert!(
        text.contains("`child/read` was listed when the call came, and that tool is gone"),
        "{text}"
    );
    assert_eq!(refused.kind(), "tool_gone");
    assert_eq!(house.names(), ["pid"]);
    house.finish().await;
}

/// Each listing of a program that sleeps is the first one of a process, which may be half of one.
#[tokio::test]
async fn a_tool_that_is_gone_after_waking_is_reported_as_removed() {
    let program = Program::offering("pid read");
    let house = house(&program, |_| ()).await;
    until_ended(&program).await;
    fs::write(program.path("names"), "pid").unwrap();
    pid(&house).await;
    let is_reported = |finding: &Finding| {
        finding.code == FindingCode::DefinitionsChanged
            && finding.message.contains("removed: `read`")
    };
    house
        .until("the removed tool is reported", |now| {
            now.findings.iter().any(is_reported)
        })
        .await;
    let starts = program.starts().len();
    until_state(&house, ScenarioState::Asleep).await;
    pid(&house).await;
    until_state(&house, ScenarioState::Asleep).await;
    let now = house.now();
    assert!(now.findings.iter().any(is_reported), "{:?}", now.findings);
    assert_eq!(program.starts().len(), starts + 1);
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
async fn a_program_that_dies_at_its_greeting_says_why_and_wakes_when_it_can() {
    let program = Program::offering("pid");
    let house = house(&program, |_| ()).await;
    until_ended(&program).await;
    fs::write(program.path("mortal"), "").unwrap();
    let refused = house.call("pid", &json!({})).await.unwrap_err().to_string();
    assert!(
        refused.contains("exit code 4") && refused.contains("fell over"),
        "{refused}"
    );
    let health = house.health("child");
    assert!(health.failures_in_a_row > 0, "{health:?}");
    assert_eq!(house.names(), ["pid"]);
    fs::remove_file(program.path("mortal")).unwrap();
    fs::write(program.path("banner"), "").unwrap();
    until_state(&house, ScenarioState::Asleep).await;
    pid(&house).await;
    house.until_state("child", ScenarioState::Asleep).await;
    until_ended(&program).await;
    house.finish().await;
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_waited_for_as_long_as_configured() {
    let program = Program::offering("pid");
    let house = house(&program, |config| {
        config.calls.wake_timeout = Duration::from_millis(300);
        config.calls.reroute_wait = Duration::from_millis(100);
    })
    .await;
    until_ended(&program).await;
    let before = program.starts().len();
    fs::write(program.path("late"), "").unwrap();
    let refused = house.call("pid", &json!({})).await.unwrap_err();
    assert_eq!(refused.kind(), "unavailable", "{refused}");
    assert!(refused.to_string().contains("300ms"), "{refused}");
    fs::remove_file(program.path("late")).unwrap();
    // The start that was begun goes on, and serves a later call.
    let answered = async { while house.call("pid", &json!({})).await.is_err() {} };
    tokio::time::timeout(PATIENCE, answered).await.unwrap();
    assert_eq!(program.starts().len(), before + 1);
    house.finish().await;
}

#[tokio::test]
async fn the_end_of_the_daemon_leaves_no_program_that_is_waking() {
    let program = Program::offering("pid");
    let house = house(&program, |config| {
        config.calls.wake_timeout = Duration::from_millis(50);
        config.calls.reroute_wait = Duration::from_millis(50);
    })
    .await;
    until_ended(&program).await;
    fs::write(program.path("late"), "").unwrap();
    house.call("pid", &json!({})).await.unwrap_err();
    house.finish().await;
    until_ended(&program).await;
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

/// How often a program is put to sleep and woken; `CALLSHEET_SLEEPS` sets another number.
const SLEEPS: usize = 20;

/// How many children of this process were started with this argument.
fn children(argument: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let ids = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    let is_meant = |id: &&str| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|part| part == argument.as_bytes())
    };
    ids.map(|ids| ids.split_whitespace().filter(is_meant).count())
        .sum()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_sleeps_and_wakes_again_and_again() {
    const SERVER: &str = "demo-server";
    let sleeps = std::env::var("CALLSHEET_SLEEPS").map_or(SLEEPS, |text| text.parse().unwrap());
    let house = House::with(&[], |config| {
        sleepy(config);
        config.mcp.sleep_after = Some(Duration::from_millis(10));
    })
    .await;
    let target = StdioTarget::new(env!("CARGO_BIN_EXE_callsheet")).with_args([SERVER]);
    place(&house, "child", target);
    let arguments = json!({"value": 1, "from": "metre", "to": "foot"});
    for _ in 0..sleeps {
        until_state(&house, ScenarioState::Asleep).await;
        let answered = house.call("convert_length", &arguments).await.unwrap();
        assert!(answered.outcome.success, "{:?}", answered.outcome);
        assert!(children(SERVER) <= 1);
    }
    until_state(&house, ScenarioState::Asleep).await;
    let health = house.health("child");
    assert_eq!(health.restarts, 0, "{health:?}");
    assert_eq!(health.failures_in_a_row, 0, "{health:?}");
    house.finish().await;
    let ended = async {
        while children(SERVER) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
}
