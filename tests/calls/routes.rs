//! The ways to scenarios: who may be called, and where; and what a call teaches the engine.

use callsheet::Callsheet;
use callsheet::calls::{ExecuteError, WaitLimits};
use callsheet::catalog::Snapshot;
use callsheet::config::Config;
use callsheet::discovery::SourceTrust;
use callsheet::engine::CallReport;
use callsheet::model::{ApprovalState, ScenarioState};
use callsheet::native::NativeTools;
use callsheet::protocols::{Call, NoCaller};
use callsheet::provide::ToolDefinition;
use callsheet::runtime::Clock;
use callsheet::state::Decision;
use serde_json::{Value, json};

use crate::support::assert_empty;
use crate::support::call_of::call_of;
use crate::support::callee::{Callee, PATIENCE, manifest, tool, tool_with};
use crate::support::house::{House, request, scenario};
use crate::support::scripted_session::Script;

#[tokio::test]
async fn a_listed_scenario_can_be_called_where_it_is() {
    let mut files = Callee::echo(manifest("files", &[tool("read")])).await;
    let house = House::of(&[("files", files.url())]).await;
    let route = house.route("files").unwrap();
    assert_eq!(route.state, ScenarioState::Live);
    assert_eq!(route.protocol, "tool-discovery");
    let outcome = route
        .session
        .call(&call_of("read", &json!({"a": 1})), &NoCaller)
        .await
        .unwrap();
    assert_eq!(outcome.result.unwrap().get(), "{\"a\":1}");
    assert!(house.route("nobody").is_none());

    let _old = files.move_on().await;
    house.place("files", files.url(), SourceTrust::Trusted);
    let shown = files.url().to_string();
    let files_name = scenario("files");
    house
        .until("moved", |snapshot| {
            snapshot
                .health
                .get(&files_name)
                .is_some_and(|h| h.url.as_ref() == Some(&shown))
        })
        .await;
    let moved = house.route("files").unwrap();
    assert!(
        moved.generation > route.generation && *moved.address == *shown,
        "{moved:?}"
    );
    house.finish().await;
}

#[tokio::test]
async fn who_waits_for_a_yes_or_got_a_no_cannot_be_called() {
    let files = Callee::echo(manifest("files", &[tool("read")])).await;
    let house = House::of(&[]).await;
    house.place("files", files.url(), SourceTrust::Untrusted);
    let name = scenario("files");
    house
        .until("pending", |snapshot| {
            snapshot.catalog.entry(&name).is_some()
        })
        .await;
    assert!(house.route("files").is_none());
    house
        .app
        .engine()
        .decide(name.clone(), Some(Decision::Trusted))
        .await
        .unwrap();
    assert!(
        house.route("files").is_some(),
        "there when the decision is acknowledged"
    );
    house
        .app
        .engine()
        .decide(name.clone(), Some(Decision::Blocked))
        .await
        .unwrap();
    assert!(house.route("files").is_none());
    assert_empty!(files.ran());
    house.finish().await;
}

#[tokio::test]
async fn a_refused_call_has_the_scenario_asked_at_once() {
    let mut files = Callee::echo(manifest("files", &[tool("read")])).await;
    // Nobody asks by schedule here.
    let house = House::of(&[("files", files.url())]).await;
    let route = house.route("files").unwrap();
    files.kill().await;
    let error = route
        .session
        .call(&call_of("read", &json!({})), &NoCaller)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "refused");
    assert!(!error.was_sent());
    let name = scenario("files");
    house
        .app
        .engine()
        .report_call(&name, &route, CallReport::Refused);
    let failed = |snapshot: &callsheet::catalog::Snapshot| {
        snapshot.health.get(&name).unwrap().failures_in_a_row > 0
    };
    house.until("asked at once", failed).await;
    assert!(
        !house.names().is_empty(),
        "one refused ask takes nothing away"
    );
    files.revive();
    house
        .until("back, as a restart", |snapshot| {
            let health = snapshot.health.get(&name).unwrap();
            health.state == ScenarioState::Live && health.restarts == 1
        })
        .await;
    house.finish().await;
}

#[tokio::test]
async fn tools_inside_the_program_are_called_in_the_same_way() {
    let folder = tempfile::tempdir().unwrap();
    let throw = ToolDefinition::new("throw", "Throws one die").unwrap();
    let wait = ToolDefinition::new("wait", "Waits for ever").unwrap();
    let dice = NativeTools::new("dice", "Throws dice", Clock::system())
        .unwrap()
        .tool(throw, |given: Value| async move {
            given["sides"]
                .as_u64()
                .map(Value::from)
                .ok_or("`sides` is not a number")
        })
        .tool(wait, |_: Value| {
            std::future::pending::<Result<Value, String>>()
        });
    let app = Callsheet::builder(Config::for_state(folder.path().join("state.db")))
        .native(dice)
        .start()
        .await
        .unwrap();
    let mut reader = app.reader();
    let route = loop {
        match app.engine().route(&scenario("dice")) {
            Some(route) => break route,
            None => {
                _ = tokio::time::timeout(PATIENCE, reader.changed())
                    .await
                    .unwrap();
            }
        }
    };
    let call = async |call: Call| route.session.call(&call, &NoCaller).await;
    let outcome = call(call_of("throw", &json!({"sides": 6}))).await.unwrap();
    assert!(outcome.success);
    assert_eq!(outcome.result.unwrap().get(), "6");
    let outcome = call(call_of("throw", &json!({}))).await.unwrap();
    assert!(!outcome.success);
    assert_eq!(outcome.error.as_deref(), Some("`sides` is not a number"));
    let outcome = call(call_of("roll", &json!({}))).await.unwrap();
    assert!(!outcome.success);
    assert_eq!(outcome.code.as_deref(), Some("unknown_tool"));
    let brief = Call {
        timeout: Some(std::time::Duration::from_millis(20)),
        ..call_of("wait", &json!({}))
    };
    let error = call(brief).await.unwrap_err();
    assert_eq!(error.kind(), "timeout");
    assert!(error.was_sent());
    app.finish().await;
}

#[tokio::test]
async fn an_approved_call_is_not_taken_to_another_owner_on_the_way() {
    let needs = json!({"enabled_by_default": true, "requires_approval": true});
    let wipe = || {
        manifest(
            "disks",
            &[tool_with("wipe", &json!({"type": "object"}), &needs)],
        )
    };
    let mut owner = Callee::echo(wipe()).await;
    let other = Callee::echo(wipe()).await;
    let house = House::with(&[("disks", owner.url())], |config| {
        config.calls.reroute_wait = PATIENCE;
    })
    .await;
    let called = house.call("wipe", &json!({})).await;
    let Err(ExecuteError::ApprovalRequired {
        waiting: Some(waiting),
        ..
    }) = called
    else {
        panic!("{called:?}")
    };
    owner.kill().await;
    let (approved, ()) = tokio::join!(
        house
            .app
            .calls()
            .approve(&waiting.id, "kim", WaitLimits::within(PATIENCE)),
        async {
            let failed = |snapshot: &Snapshot| {
                snapshot
                    .health
                    .get(&scenario("disks"))
                    .unwrap()
                    .failures_in_a_row
                    > 0
            };
            house.until("the refused call had it polled", failed).await;
            // Another program has the name now, while the call waits for a way.
            house.place("disks", other.url(), SourceTrust::Trusted);
        }
    );
    let approved = approved.unwrap();
    assert_eq!(approved.state, ApprovalState::Failed, "{approved:?}");
    assert_eq!(
        owner.ran().len(),
        0,
        "it was approved for the one that is gone"
    );
    assert_eq!(
        other.ran().len(),
        0,
        "it was approved for the one that is gone"
    );
    house.finish().await;
}

#[tokio::test]
async fn what_cannot_be_called_at_all_is_no_failure_of_its_scenario() {
    let script = Script::of(&["inert"]);
    let house = House::speaking(script.protocol(), |config| {
        config.calls.breaker_failures = 2;
    })
    .await;
    house.place(
        "script",
        "local:script".parse().unwrap(),
        SourceTrust::Trusted,
    );
    house
        .until("listed", |snapshot| {
            snapshot.catalog.entry(&scenario("script")).is_some()
        })
        .await;
    for turn in 0..5 {
        let refused = house.refusal(request("inert", &json!({}))).await;
        assert_eq!(
            refused, "not_callable",
            "turn {turn}: nothing is wrong with the scenario"
        );
    }
    house.finish().await;
}
