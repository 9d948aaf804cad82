//! Servers that are started as child processes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use callsheet::discovery::{Endpoint, SourceTrust};
use callsheet::model::{ScenarioState, StdioTarget, Target};
use callsheet::protocols::mcp::{Mcp, Patience};
use serde_json::{Value, json};

use crate::support::callee::PATIENCE;
use crate::support::house::{House, request, scenario};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mcp_server.py")
}

/// The command of a server that behaves so.
fn program(behaviour: &str, names: Option<&Path>) -> StdioTarget {
    let mut args = vec![script().display().to_string(), behaviour.to_owned()];
    args.extend(names.map(|names| names.display().to_string()));
    StdioTarget::new("python3").with_args(args)
}

fn place(house: &House, name: &str, program: StdioTarget) {
    let endpoint = Endpoint::at("http://127.0.0.1:1/".parse().unwrap(), SourceTrust::Trusted);
    house.place_endpoint(
        name,
        Endpoint {
            target: Some(Target::from(program)),
            ..endpoint
        },
    );
}

/// A house with this one server, which is listed.
async fn house(program: StdioTarget) -> House {
    let house = House::with(&[], |config| {
        config.refresh.backoff_base = Duration::from_millis(100);
        config.refresh.backoff_max = Duration::from_millis(200);
        config.calls.reroute_wait = PATIENCE;
    })
    .await;
    place(&house, "child", program);
    house
        .until("listed", |snapshot| {
            snapshot.catalog.entry(&scenario("child")).is_some()
        })
        .await;
    house
}

async fn result(house: &House, tool: &str, arguments: Value) -> Value {
    let called = house.call(tool, &arguments).await;
    let outcome = called
        .unwrap_or_else(|error| panic!("{error}; {:?}", house.app.snapshot().health))
        .outcome;
    assert!(outcome.success, "{outcome:?}");
    serde_json::from_str(outcome.result.unwrap().get()).unwrap()
}

#[tokio::test]
async fn a_program_of_either_era_is_started_listed_and_called() {
    for behaviour in ["modern", "legacy", "strict"] {
        let house = house(program(behaviour, None)).await;
        assert_eq!(house.names(), ["read", "write"], "{behaviour}");
        assert_eq!(
            result(&house, "read", json!({"a": 1})).await,
            json!({"a": 1}),
            "{behaviour}"
        );
        house.finish().await;
    }
}

#[tokio::test]
async fn a_program_that_never_answers_the_modern_greeting_is_greeted_in_the_old_way() {
    let patience = Patience {
        first: Duration::from_millis(200),
        ..Patience::default()
    };
    let house = House::speaking(Mcp::with_patience(patience), |_| ()).await;
    place(&house, "child", program("silent", None));
    house
        .until("listed", |snapshot| {
            snapshot.catalog.entry(&scenario("child")).is_some()
        })
        .await;
    assert_eq!(house.names(), ["read", "write"]);
    house.finish().await;
}

#[tokio::test]
async fn a_change_is_heard_on_the_output() {
    for behaviour in ["modern", "legacy"] {
        let folder = tempfile::tempdir().unwrap();
        let names = folder.path().join("names");
        std::fs::write(&names, "read").unwrap();
        let house = house(program(behaviour, Some(&names))).await;
        let other = folder.path().join("other");
        std::fs::write(&other, "read write").unwrap();
        std::fs::rename(&other, &names).unwrap();
        house
            .until("the new list", |_| house.names() == ["read", "write"])
            .await;
        house.finish().await;
    }
}

/// The next process has to list what it offers, as any other one.
#[tokio::test]
async fn a_program_that_ended_is_started_anew_and_its_call_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let names = folder.path().join("names");
    std::fs::write(&names, "die pid").unwrap();
    let house = house(program("legacy", Some(&names))).await;
    let before = result(&house, "pid", json!({})).await;
    let refused = house.call("die", &json!({})).await.unwrap_err();
    assert!(
        refused.to_string().contains("exit code 3") && refused.to_string().contains("it hurts"),
        "{refused}"
    );
    // The call waits for the next process.
    assert_ne!(result(&house, "pid", json!({})).await, before);
    let health = house.app.snapshot().health[&scenario("child")].clone();
    assert_eq!(health.state, ScenarioState::Live, "{health:?}");
    house.finish().await;
}

#[tokio::test]
async fn a_program_that_cannot_run_says_why_in_health() {
    for (program, part) in [
        (program("exits", None), "no configuration file"),
        (
            StdioTarget::new("no-such-command-anywhere"),
            "was not found",
        ),
        (StdioTarget::new("true"), "exit code 0"),
        (
            StdioTarget::new("python3").with_args(["-c", "print('hello')"]),
            "exit code 0",
        ),
    ] {
        let house = House::with(&[], |_| ()).await;
        place(&house, "child", program);
        let failed = |snapshot: &callsheet::catalog::Snapshot| {
            snapshot
                .health
                .get(&scenario("child"))
                .is_some_and(|health| health.last_error.is_some())
        };
        let snapshot = house.until("the reason", failed).await;
        let error = format!("{:?}", snapshot.health[&scenario("child")].last_error);
        assert!(error.contains(part), "{part}: {error}");
        house.finish().await;
    }
}

#[tokio::test]
async fn a_program_that_never_answers_says_so_in_health() {
    let short = Duration::from_millis(100);
    let house = House::speaking(
        Mcp::with_patience(Patience {
            first: short,
            start: short,
        }),
        |_| (),
    )
    .await;
    place(
        &house,
        "child",
        StdioTarget::new("sleep").with_args(["1000"]),
    );
    house
        .until_health("child", "says why", |health| {
            let error = health.last_error.as_ref();
            error.is_some_and(|error| {
                error.kind == "timeout" && error.message.contains("no answer within")
            })
        })
        .await;
    house.finish().await;
}

#[tokio::test]
async fn noise_on_the_output_is_skipped_with_a_finding() {
    let house = house(program("noisy", None)).await;
    assert_eq!(house.names(), ["read", "write"]);
    let snapshot = house.app.snapshot();
    let finding = snapshot
        .findings
        .iter()
        .find(|finding| finding.code.as_str() == "output-noise");
    let finding = finding.unwrap_or_else(|| panic!("{:?}", snapshot.findings));
    assert!(finding.message.contains("Starting up..."), "{finding:?}");
    house.finish().await;
}

#[tokio::test]
async fn an_answer_that_is_too_long_costs_that_call_and_not_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let names = folder.path().join("names");
    std::fs::write(&names, "large pid").unwrap();
    let house = house(program("legacy", Some(&names))).await;
    let before = result(&house, "pid", json!({})).await;
    assert_eq!(
        house.refusal(request("large", &json!({}))).await,
        "too_large"
    );
    assert_eq!(result(&house, "pid", json!({})).await, before);
    house.finish().await;
}

#[tokio::test]
async fn a_program_gets_its_own_environment_and_few_other_variables() {
    let folder = tempfile::tempdir().unwrap();
    let names = folder.path().join("names");
    std::fs::write(&names, "environment").unwrap();
    let secret = callsheet::model::Secret::new("topsecret");
    let house = house(program("legacy", Some(&names)).with_env([("API_KEY", secret)])).await;
    let environment = result(&house, "environment", json!({})).await;
    assert_eq!(environment["API_KEY"], "topsecret");
    assert!(
        environment.get("PATH").is_some() && environment.get("CARGO_MANIFEST_DIR").is_none(),
        "{environment}"
    );
    house.finish().await;
}
