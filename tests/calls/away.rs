//! Scenarios that were away: their tools are listed before they run a call.

use callsheet::calls::{ExecuteError, Request};
use callsheet::catalog::Snapshot;
use callsheet::model::NamedVersion;
use serde_json::{Value, json};

use crate::support::callee::{Callee, PATIENCE, manifest, tool_with};
use crate::support::house::{House, request, scenario};

/// The one tool of the bank, with this description.
fn bank(description: &str) -> Value {
    let mut pay = tool_with(
        "pay",
        &json!({"type": "object"}),
        &json!({"enabled_by_default": true}),
    );
    pay["description"] = description.into();
    manifest("bank", &[pay])
}

/// A call of the tool as it is listed now.
fn call_of_present(house: &House) -> Request {
    let snapshot = house.app.reader().snapshot();
    let entry = snapshot.catalog.entry(&scenario("bank")).unwrap();
    let version = entry.manifest.tools[0].version();
    Request {
        definition_version: Some(NamedVersion::from(version)),
        ..request("pay", &json!({}))
    }
}

async fn is_stale(house: &House, call: Request) {
    let refused = house.request(call).await;
    assert!(
        matches!(refused, Err(ExecuteError::StaleDefinition { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_restarted_scenario_is_listed_before_it_runs_a_call() {
    let mut owner = Callee::echo(bank("Pays an amount.")).await;
    let house = House::with(&[("bank", owner.url())], |config| {
        config.calls.reroute_wait = PATIENCE;
    })
    .await;
    let call = call_of_present(&house);
    house.request(call.clone()).await.unwrap();
    owner.kill().await;
    house
        .app
        .engine()
        .refresh(vec![scenario("bank")])
        .await
        .unwrap();
    let has_failed = |snapshot: &Snapshot| {
        snapshot
            .health
            .get(&scenario("bank"))
            .unwrap()
            .failures_in_a_row
            > 0
    };
    house.until("it is known to be away", has_failed).await;
    owner.lists(bank("Pays an amount twice."));
    owner.revive();
    is_stale(&house, call).await;
    assert_eq!(owner.ran().len(), 1, "the refused call was not sent");
    house.request(call_of_present(&house)).await.unwrap();
    assert_eq!(owner.ran().len(), 2);
    house.finish().await;
}

#[tokio::test]
async fn after_a_restart_of_the_daemon_a_stored_list_is_compared_first() {
    let owner = Callee::echo(bank("Pays an amount.")).await;
    let patient = |config: &mut callsheet::config::Config| config.calls.reroute_wait = PATIENCE;
    let house = House::with(&[("bank", owner.url())], patient).await;
    let call = call_of_present(&house);
    owner.lists(bank("Pays an amount twice."));
    let house = house.restart_with(patient).await;
    is_stale(&house, call).await;
    assert_eq!(owner.ran().len(), 0);
    house.request(call_of_present(&house)).await.unwrap();
    house.finish().await;
}

#[tokio::test]
async fn a_scenario_whose_list_cannot_be_read_since_it_was_away_runs_no_call() {
    let mut owner = Callee::echo(bank("Pays an amount.")).await;
    let brief = |config: &mut callsheet::config::Config| {
        config.calls.reroute_wait = std::time::Duration::from_millis(50);
    };
    let house = House::with(&[("bank", owner.url())], brief).await;
    owner.kill().await;
    house
        .app
        .engine()
        .refresh(vec![scenario("bank")])
        .await
        .unwrap();
    owner.lists(json!({"tools": "none"}));
    owner.revive();
    let refused = house.request(request("pay", &json!({}))).await;
    let Err(ExecuteError::Unavailable { reason, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert!(
        reason.starts_with("its scenario was away, and its tools have not been listed since: "),
        "{reason}"
    );
    assert_eq!(owner.ran().len(), 0);
    house.finish().await;
}
