//! Clients that name no profile where profiles are configured.

use std::net::SocketAddr;

use callsheet::calls::ExecuteError;
use callsheet::catalog::ViewQuery;
use callsheet::model::{FindingCode, Profile};
use serde_json::{Value, json};

use crate::support::callee::{Callee, manifest, tool};
use crate::support::house::House;
use crate::support::mcp_client::McpClient;
use crate::support::serving::ask;

/// Two scenarios, and a profile that sees the first.
async fn bounded(is_default: bool) -> ([Callee; 2], House, SocketAddr) {
    let open = Callee::echo(manifest("open", &[tool("look")])).await;
    let shut = Callee::echo(manifest("shut", &[tool("look")])).await;
    let scenarios = [("open", open.url()), ("shut", shut.url())];
    let house = House::with(&scenarios, |config| {
        let only = ["open".parse().unwrap()].into();
        let narrow = Profile {
            scenarios: Some(only),
            ..Profile::default()
        };
        config.default_profile = is_default.then(|| "narrow".to_owned());
        config.profiles.insert("narrow".into(), narrow);
        config.profiles.insert("wide".into(), Profile::default());
    })
    .await;
    let address = house.serve().await;
    ([open, shut], house, address)
}

async fn get(address: SocketAddr, target: &str) -> Value {
    serde_json::from_slice(&ask(address, "GET", target, &[], "").await.body).unwrap()
}

async fn post(address: SocketAddr, target: &str, body: &Value) -> (u16, Value) {
    let answer = ask(
        address,
        "POST",
        target,
        &[("content-type", "application/json")],
        &body.to_string(),
    )
    .await;
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn the_default_profile_holds_on_every_way_in() {
    let ([_open, shut], house, address) = bounded(true).await;
    assert_eq!(
        names(&get(address, "/api/v1/tools").await["tools"]),
        ["open__look"]
    );
    assert_eq!(
        names(&get(address, "/api/v1/tools?chat_id=7").await["tools"]),
        ["open__look"]
    );
    assert_eq!(
        names(&get(address, "/api/v1/tools?profile=wide").await["tools"]),
        ["open__look", "shut__look"]
    );
    assert_eq!(
        names(&get(address, "/api/v1/tools/search?q=look").await["results"]),
        ["open__look"]
    );
    let explained = get(address, "/api/v1/tools/shut__look/explain").await;
    assert_eq!(
        explained["verdict"], "not in the list: the profile may not see scenario shut",
        "{explained}"
    );
    assert_eq!(house.app.view(&ViewQuery::default()).len(), 1);

    let call = json!({"tool_name": "shut__look", "arguments": {}});
    let (status, refused) = post(address, "/api/v1/tools/execute", &call).await;
    assert_eq!(status, 403, "{refused}");
    assert_eq!(refused["code"], "not_allowed", "{refused}");
    let refused = house.call("shut__look", &json!({})).await.unwrap_err();
    assert!(
        matches!(refused, ExecuteError::OutOfBounds { .. }),
        "{refused}"
    );
    let client = McpClient::legacy(address, "2025-06-18", json!({})).await;
    let refused = client
        .result("tools/call", json!({"name": "shut__look"}))
        .await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(shut.ran().is_empty());
    let (status, _) = post(
        address,
        "/api/v1/tools/execute",
        &json!({"tool_name": "open__look"}),
    )
    .await;
    assert_eq!(status, 200);
    let (status, _) = post(
        address,
        "/api/v1/tools/execute",
        &json!({"tool_name": "shut__look", "profile": "wide"}),
    )
    .await;
    assert_eq!(status, 200);

    let codes: Vec<_> = house
        .app
        .snapshot()
        .catalog
        .findings()
        .iter()
        .map(|finding| finding.code)
        .collect();
    assert!(!codes.contains(&FindingCode::ProfileOptional), "{codes:?}");
    house.finish().await;
}

#[tokio::test]
async fn without_one_everything_is_seen_and_a_finding_says_so() {
    let (_callees, house, address) = bounded(false).await;
    assert_eq!(
        names(&get(address, "/api/v1/tools").await["tools"]),
        ["open__look", "shut__look"]
    );
    let findings = get(address, "/api/v1/findings").await;
    let found = findings["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["code"] == "profile-optional");
    assert!(
        found.is_some_and(|found| found["hint"].as_str().unwrap().contains("default_profile")),
        "{findings}"
    );
    house.finish().await;
}

/// An empty text usually comes from a variable that was not set, and would lift the bounds that
/// were meant.
#[tokio::test]
async fn an_empty_profile_is_refused() {
    let ([_open, shut], house, address) = bounded(true).await;
    let (status, refused) = post(
        address,
        "/api/v1/tools/execute",
        &json!({"tool_name": "open__look", "profile": ""}),
    )
    .await;
    assert_eq!(status, 400, "{refused}");
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("`profile` is empty"),
        "{refused}"
    );
    assert_eq!(
        ask(address, "GET", "/api/v1/tools?profile=", &[], "")
            .await
            .status,
        400
    );
    assert!(shut.ran().is_empty());
    house.finish().await;
}
