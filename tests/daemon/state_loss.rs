//! After damage to the stored state no tool is called until an operator accepts the loss; what can
//! be read is kept, and preferences of the configuration hold all the same.

use std::fs;
use std::path::Path;

use callsheet::config::Config;
use callsheet::model::{ApprovalPolicy, PinMode, PreferenceSet, Scope, Secret, Settings};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::callee::{Callee, manifest, tool};
use crate::support::daemon::{Daemon, Home, configured};
use crate::support::serving::{Answer, ask};

const TOKEN: &str = "0123456789abcdef-topsecret";

fn config(home: &Home, callee: &Callee) -> Config {
    let mut config = home.config(&[]);
    config.pins = PinMode::Warn;
    config.scenarios = vec![configured("disks", ([127, 0, 0, 1], callee.port()).into())];
    config
}

async fn call(daemon: &Daemon, tool: &str) -> Answer {
    daemon
        .send_json(
            "POST",
            "/api/v1/tools/execute",
            &json!({"tool_name": tool, "arguments": {}}),
        )
        .await
}

/// What a call came to: its status and the word for it.
async fn came(daemon: &Daemon, tool: &str) -> (u16, Value) {
    let answer = call(daemon, tool).await;
    (answer.status, answer.json()["code"].clone())
}

/// A daemon with preferences, a decision and damage: `page` says which page of its file is
/// overwritten.
async fn damaged(home: &Home, callee: &Callee, page: impl FnOnce(&Path) -> usize) -> Daemon {
    let daemon = Daemon::ready(config(home, callee)).await;
    for (target, settings) in [
        ("tool:disks/wipe", json!({"approval": "require"})),
        ("tool:disks/look", json!({"enabled": false})),
    ] {
        let mut body = settings;
        (body["scope"], body["target"]) = (json!("global"), json!(target));
        assert_eq!(
            daemon
                .send_json("PUT", "/api/v1/preferences", &body)
                .await
                .status,
            200
        );
    }
    assert_eq!(came(&daemon, "wipe").await.0, 202);
    assert_eq!(came(&daemon, "look").await.0, 403);
    daemon.stop().await;
    let page = page(&home.state());
    let mut bytes = fs::read(home.state()).unwrap();
    bytes[page * 4096..(page + 1) * 4096].fill(0xa5);
    fs::write(home.state(), bytes).unwrap();
    Daemon::ready(config(home, callee)).await
}

/// The first page of a table, counted from 0.
fn page_of(state: &Path, table: &str) -> usize {
    let connection = Connection::open(state).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let page: i64 = connection
        .query_row(sql, [table], |row| row.get(0))
        .unwrap();
    usize::try_from(page).unwrap() - 1
}

fn disks() -> Value {
    manifest("disks", &[tool("look"), tool("wipe")])
}

#[tokio::test]
async fn after_damage_calls_are_refused_over_restarts_until_an_operator_accepts_the_loss() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = damaged(&home, &callee, |_| 0).await;
    let lost = (503, json!("state_lost"));
    assert_eq!(
        came(&daemon, "wipe").await,
        lost,
        "its approval is lost, so it must not run"
    );
    daemon.stop().await;
    let mut config = config(&home, &callee);
    config.server.operator_token = Some(Secret::new(TOKEN));
    let daemon = Daemon::ready(config).await;
    assert_eq!(
        came(&daemon, "wipe").await,
        lost,
        "a restart accepts nothing"
    );
    let listed = daemon.json("/api/v1/tools").await;
    assert_eq!(
        listed["tools"].as_array().map(Vec::len),
        Some(2),
        "the list is served: {listed}"
    );
    let findings = daemon.findings("state-repaired").await;
    assert!(
        findings
            .iter()
            .any(|finding| finding["hint"].to_string().contains("accept-loss")),
        "{findings:?}"
    );
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": "wipe", "arguments": {}, "_meta": meta});
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let headers = [
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "wipe"),
    ];
    let answer = ask(daemon.address, "POST", "/mcp", &headers, &message)
        .await
        .json();
    assert_eq!(answer["result"]["isError"], true, "MCP: {answer}");

    let accept = "/api/v1/state/accept-loss";
    assert_eq!(
        daemon.send("POST", accept).await.status,
        401,
        "that takes the operator's token"
    );
    assert_eq!(came(&daemon, "wipe").await, lost);
    let headers = [("authorization", &*format!("Bearer {TOKEN}"))];
    let accepted = ask(daemon.address, "POST", accept, &headers, "").await;
    assert_eq!(accepted.status, 200, "{accepted:?}");
    assert_eq!(accepted.json()["accepted"], true, "{accepted:?}");
    assert_eq!(came(&daemon, "wipe").await, (200, Value::Null));
    let again = ask(daemon.address, "POST", accept, &headers, "").await;
    assert_eq!(again.status, 200, "{again:?}");
    assert_eq!(again.json()["accepted"], false, "{again:?}");
    assert_eq!(callee.ran().len(), 1, "{:?}", callee.ran());
    daemon.stop().await;
}

#[tokio::test]
async fn what_can_still_be_read_of_preferences_is_kept() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = damaged(&home, &callee, |state| page_of(state, "approvals")).await;
    assert_eq!(
        came(&daemon, "wipe").await,
        (503, json!("state_lost")),
        "what else was lost is not known"
    );
    let kept = daemon.json("/api/v1/preferences").await;
    assert_eq!(
        kept["preferences"].as_array().map(Vec::len),
        Some(2),
        "{kept}"
    );
    let accepted = daemon
        .send("POST", "/api/v1/state/accept-loss")
        .await
        .json();
    assert!(
        accepted["lost"].to_string().contains(
            "2 preferences, 0 decisions about scenarios, what was accepted of 1 scenarios"
        ),
        "{accepted}"
    );
    assert_eq!(came(&daemon, "wipe").await.0, 202);
    assert_eq!(came(&daemon, "look").await.0, 403);
    daemon.stop().await;
}

#[tokio::test]
async fn preferences_of_the_configuration_survive_the_loss_of_all_others() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    damaged(&home, &callee, |_| 0).await.stop().await;
    let mut config = config(&home, &callee);
    let mut preferences = PreferenceSet::default();
    let required = Settings {
        approval: Some(ApprovalPolicy::Require),
        ..Settings::default()
    };
    preferences.set(Scope::Global, "scenario:disks".parse().unwrap(), required);
    config.preferences = preferences;
    let daemon = Daemon::ready(config).await;
    assert_eq!(
        daemon
            .send("POST", "/api/v1/state/accept-loss")
            .await
            .status,
        200
    );
    assert_eq!(
        came(&daemon, "wipe").await.0,
        202,
        "the configuration requires approval"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_preference_that_cannot_be_read_counts_as_a_loss() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = Daemon::ready(config(&home, &callee)).await;
    let require = json!({"scope": "global", "target": "tool:disks/wipe", "approval": "require"});
    assert_eq!(
        daemon
            .send_json("PUT", "/api/v1/preferences", &require)
            .await
            .status,
        200
    );
    daemon.stop().await;
    Connection::open(home.state())
        .unwrap()
        .execute("UPDATE preferences SET enabled = 7", [])
        .unwrap();
    let lost = (503, json!("state_lost"));
    for start in ["the first start", "the second start"] {
        let daemon = Daemon::ready(config(&home, &callee)).await;
        assert_eq!(
            came(&daemon, "wipe").await,
            lost,
            "{start}: it needed an approval"
        );
        daemon.stop().await;
    }
    let daemon = Daemon::ready(config(&home, &callee)).await;
    let accepted = daemon
        .send("POST", "/api/v1/state/accept-loss")
        .await
        .json();
    assert!(
        accepted["lost"]
            .to_string()
            .contains("of table `preferences`"),
        "{accepted}"
    );
    assert_eq!(came(&daemon, "wipe").await.0, 200);
    daemon.stop().await;
    let daemon = Daemon::ready(config(&home, &callee)).await;
    assert_eq!(came(&daemon, "wipe").await.0, 200, "it stays accepted");
    daemon.stop().await;
    assert_eq!(callee.ran().len(), 2);
}
