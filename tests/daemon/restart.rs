//! A daemon that starts again on what it stored, and one that stops.

use callsheet::runtime::tasks::Finish;
use serde_json::{Value, json};

use crate::support::assert_empty;
use crate::support::daemon::{Daemon, Home, NEVER, PATIENCE, Scenario, configured, tool};
use crate::support::upstream_server::{UpstreamServer, hang};

const LISTS: [&str; 4] = [
    "/api/v1/tools",
    "/api/v1/tools?format=openai",
    "/api/v1/tools?include_disabled=true&include_internal=true",
    "/api/v1/tools?chat_id=7",
];

async fn lists(daemon: &Daemon) -> Vec<(String, String, String)> {
    let mut lists = Vec::new();
    for target in LISTS {
        let answer = daemon.get(target).await;
        assert_eq!(answer.status, 200);
        let headers = ["etag", "callsheet-revision"].map(|name| answer.header(name).to_owned());
        let [etag, revision] = headers;
        lists.push((String::from_utf8(answer.body).unwrap(), etag, revision));
    }
    lists
}

async fn prefer(daemon: &Daemon, preference: Value) {
    let answer = daemon
        .send_json("PUT", "/api/v1/preferences", &preference)
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn what_was_published_is_published_again_before_anyone_is_asked() {
    let home = Home::new();
    let mut kitchen = Scenario::start(
        "kitchen",
        [
            tool("brew").category("drinks").tags(["hot"]),
            tool("stir").metadata("internal_only", true),
            tool("list"),
        ],
    )
    .await;
    let mut found = Scenario::of("pantry", &["list", "stock"]).await;
    home.write_process("pantry", found.address.port());
    let daemon = home.start(&[&kitchen]).await;
    daemon.until_state("pantry", "live").await;
    daemon.until_state("kitchen", "live").await;
    prefer(
        &daemon,
        json!({"scope": "global", "target": "tool:pantry/stock", "enabled": false}),
    )
    .await;
    prefer(
        &daemon,
        json!({"scope": "chat:7", "target": "tool:kitchen/brew", "alias": "tea"}),
    )
    .await;
    let preferences = daemon.json("/api/v1/preferences").await;
    let before = lists(&daemon).await;
    daemon.stop().await;

    // Nobody answers now: what is published can only be what was stored.
    kitchen.stop().await;
    found.stop().await;
    let _hanging = (kitchen.hang().await, found.hang().await);
    let mut config = home.config(&[&kitchen]);
    config.refresh.timeout = NEVER;
    let daemon = Daemon::start(config).await;
    assert_eq!(lists(&daemon).await, before);
    for scenario in ["kitchen", "pantry"] {
        let health = daemon.json(&format!("/api/v1/scenarios/{scenario}")).await;
        assert_eq!(health["state"], "connecting", "{health}");
        assert!(
            health["reason"]
                .as_str()
                .unwrap()
                .contains("last good answer"),
            "{health}"
        );
        assert!(
            !health["last_success"].is_null() && !health["freshness"].is_null(),
            "{health}"
        );
    }
    assert_eq!(daemon.json("/api/v1/preferences").await, preferences);
    // Also once the sources have told where the scenarios are, and both are being asked.
    daemon
        .wait_until("both are asked", |all| {
            all.health
                .values()
                .all(|health| health.last_attempt.is_some())
        })
        .await;
    assert_eq!(lists(&daemon).await, before);
    let known = [("if-none-match", before[0].1.as_str())];
    let answer = crate::support::serving::ask(daemon.address, "GET", LISTS[0], &known, "").await;
    assert_eq!(answer.status, 304);
    assert_empty!(answer.body);
    daemon.stop().await;
}

/// The time of the latest answer, which changed no tool, so that it was not stored with the tools.
#[tokio::test]
async fn the_time_of_the_last_answer_outlives_a_restart() {
    let home = Home::new();
    let mut kitchen = Scenario::of("kitchen", &["brew"]).await;
    let daemon = Daemon::ready(home.config(&[&kitchen])).await;
    let first = daemon.until_state("kitchen", "live").await["last_success"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        daemon
            .send("POST", "/api/v1/scenarios/kitchen/refresh")
            .await
            .status,
        200
    );
    let latest = daemon.json("/api/v1/scenarios/kitchen").await["last_success"]
        .as_str()
        .unwrap()
        .to_owned();
    let time = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
    assert!(time(&latest) > time(&first), "{latest} after {first}");
    daemon.stop().await;

    kitchen.stop().await;
    let _hanging = kitchen.hang().await;
    let mut config = home.config(&[&kitchen]);
    config.refresh.timeout = NEVER;
    let daemon = Daemon::start(config).await;
    let shown = daemon.json("/api/v1/scenarios/kitchen").await;
    assert_eq!(shown["state"], "connecting", "{shown}");
    assert!(
        time(shown["last_success"].as_str().unwrap()) > time(&first),
        "{shown}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_start_is_no_change_of_a_scenario_that_was_known() {
    let home = Home::new();
    let kitchen = Scenario::of("kitchen", &["brew"]).await;
    let daemon = Daemon::ready(home.config(&[&kitchen])).await;
    daemon.until_state("kitchen", "live").await;
    daemon.stop().await;
    let daemon = Daemon::ready(home.config(&[&kitchen])).await;
    daemon.until_state("kitchen", "live").await;
    let log = daemon.json("/api/v1/log").await;
    let lines = log["lines"].as_array().unwrap();
    let start = lines
        .iter()
        .rposition(|line| line["kind"] == "start")
        .unwrap();
    let changes: Vec<_> = lines[start..]
        .iter()
        .filter(|line| line["kind"] == "state")
        .collect();
    assert!(
        changes
            .iter()
            .all(|line| line["state"]["from"] == "connecting"),
        "{changes:#?}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_stored_document_that_was_changed_by_hand_is_what_is_published() {
    let home = Home::new();
    let mut kitchen = Scenario::start(
        "kitchen",
        [tool("brew").category("drinks").tags(["hot"]), tool("stir")],
    )
    .await;
    let daemon = home.start(&[&kitchen]).await;
    daemon.until_state("kitchen", "live").await;
    daemon.stop().await;
    kitchen.stop().await;
    let database = rusqlite::Connection::open(home.state()).unwrap();
    let change = "UPDATE manifests SET document = replace(document, '\"brew\"', '\"steep\"')";
    assert_eq!(database.execute(change, []).unwrap(), 1);
    drop(database);
    let daemon = Daemon::start(home.config(&[&kitchen])).await;
    assert_eq!(daemon.tools("").await, ["steep", "stir"]);
    // Its next good answer takes the place of the changed one.
    kitchen.run().await;
    daemon.until_tools(&["brew", "stir"]).await;
    daemon.stop().await;
    kitchen.stop().await;
    let daemon = Daemon::start(home.config(&[&kitchen])).await;
    assert_eq!(daemon.tools("").await, ["brew", "stir"]);
    daemon.stop().await;
}

#[tokio::test]
async fn of_a_stored_manifest_no_more_tools_are_taken_than_are_allowed_now() {
    let home = Home::new();
    let mut kitchen = Scenario::of("kitchen", &["brew", "stir", "toast"]).await;
    let daemon = home.start(&[&kitchen]).await;
    daemon.until_state("kitchen", "live").await;
    daemon.stop().await;
    kitchen.stop().await;
    let mut config = home.config(&[&kitchen]);
    config.refresh.max_tools = 2;
    let daemon = Daemon::start(config.clone()).await;
    assert_eq!(daemon.tools("").await, ["brew", "stir"]);
    assert_eq!(daemon.findings("tools-beyond-limit").await.len(), 1);
    assert_eq!(
        daemon.json("/api/v1/scenarios/kitchen").await["tools"]["quarantined"],
        1
    );
    daemon.stop().await;

    // The next good answer is stored, although it says what is in force already.
    let left_out = || -> i64 {
        let database = rusqlite::Connection::open(home.state()).unwrap();
        let query = "SELECT count(*) FROM manifests WHERE document LIKE '%toast%'";
        database.query_row(query, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(left_out(), 1);
    kitchen.run().await;
    let daemon = Daemon::ready(config).await;
    daemon.until_state("kitchen", "live").await;
    daemon.stop().await;
    assert_eq!(left_out(), 0);
}

#[tokio::test]
async fn a_confirmed_manifest_changes_no_byte() {
    let home = Home::new();
    let kitchen = Scenario::start("kitchen", [tool("brew").category("drinks"), tool("stir")]).await;
    let daemon = Daemon::ready(home.config(&[&kitchen])).await;
    let before = lists(&daemon).await;
    daemon.stop().await;
    let daemon = Daemon::ready(home.config(&[&kitchen])).await;
    daemon.until_state("kitchen", "live").await;
    assert_eq!(lists(&daemon).await, before);
    daemon.stop().await;
}

#[tokio::test]
async fn what_no_source_names_any_more_is_withdrawn_after_a_restart() {
    let home = Home::new();
    let kitchen = Scenario::of("kitchen", &["brew"]).await;
    let found = Scenario::of("pantry", &["stock"]).await;
    home.write_process("pantry", found.address.port());
    let daemon = home.start(&[&kitchen]).await;
    daemon.until_tools(&["brew", "stock"]).await;
    daemon.stop().await;
    home.remove_process("pantry");
    let daemon = home.start(&[&kitchen]).await;
    daemon.until_state("pantry", "removed").await;
    assert_eq!(daemon.tools("").await, ["brew"]);
    assert_eq!(daemon.findings("withdrawn").await[0]["scenario"], "pantry");
    home.write_process("pantry", found.address.port());
    daemon.until_tools(&["brew", "stock"]).await;
    daemon.stop().await;
}

#[tokio::test]
async fn decisions_outlive_the_daemon() {
    let home = Home::new();
    let kitchen = Scenario::of("kitchen", &["brew"]).await;
    let pantry = Scenario::of("pantry", &["stock"]).await;
    let daemon = Daemon::ready(home.config(&[&kitchen, &pantry])).await;
    assert_eq!(
        daemon
            .send("POST", "/api/v1/scenarios/pantry/block")
            .await
            .status,
        200
    );
    daemon.stop().await;
    let daemon = Daemon::start(home.config(&[&kitchen, &pantry])).await;
    // It is hidden from the first moment on, and nobody waits for it.
    assert_eq!(daemon.tools("").await, ["brew"]);
    daemon.until_ready().await;
    let health = daemon.json("/api/v1/scenarios/pantry").await;
    assert_eq!(health["state"], "blocked");
    assert!(health["last_attempt"].is_null(), "{health}");
    assert_eq!(
        daemon
            .send("DELETE", "/api/v1/scenarios/pantry/block")
            .await
            .status,
        200
    );
    daemon.until_state("pantry", "live").await;
    assert_eq!(daemon.tools("").await, ["brew", "stock"]);
    daemon.stop().await;
}

#[tokio::test]
async fn a_damaged_state_file_is_moved_aside_and_reported() {
    let home = Home::new();
    std::fs::write(
        home.state(),
        b"this was a database once, until a disk failed",
    )
    .unwrap();
    let kitchen = Scenario::of("kitchen", &["brew"]).await;
    let daemon = Daemon::ready(home.config(&[&kitchen])).await;
    let findings = daemon.findings("state-repaired").await;
    assert_eq!(
        findings.len(),
        2,
        "what was moved, and that no tool is called: {findings:?}"
    );
    assert_eq!(findings[0]["severity"], "error");
    let folder = home.state().parent().unwrap().to_owned();
    let names = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let aside: Vec<_> = names
        .filter(|name| name.starts_with("state.db.damaged-"))
        .collect();
    assert_eq!(aside.len(), 1, "{aside:?}");
    assert!(findings[0]["message"].as_str().unwrap().contains(&aside[0]));
    assert_eq!(daemon.tools("").await, ["brew"]);
    prefer(
        &daemon,
        json!({"scope": "global", "target": "tool:kitchen/brew", "alias": "tea"}),
    )
    .await;
    assert_eq!(
        daemon
            .send("POST", "/api/v1/state/accept-loss")
            .await
            .status,
        200
    );
    daemon.stop().await;
    let daemon = Daemon::ready(home.config(&[&kitchen])).await;
    assert_eq!(daemon.tools("").await, ["tea"]);
    assert_eq!(
        daemon.findings("state-repaired").await,
        [] as [serde_json::Value; 0]
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_second_daemon_on_the_same_state_is_refused() {
    let home = Home::new();
    let daemon = home.start(&[]).await;
    let second =
        callsheet::Callsheet::start(home.config(&[]), callsheet::runtime::Clock::system()).await;
    let error = second.expect_err("the file is in use").to_string();
    assert!(error.contains("state.db"), "{error}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_slow_scenario() {
    let home = Home::new();
    let kitchen = Scenario::of("kitchen", &["brew"]).await;
    let slow = UpstreamServer::serving(|_, stream| hang(stream)).await;
    let mut config = home.config(&[&kitchen]);
    config.scenarios.push(configured("slow", slow.address()));
    config.refresh.timeout = NEVER;
    config.server.ready_timeout = std::time::Duration::ZERO;
    config.server.stop_timeout = PATIENCE;
    let daemon = Daemon::start(config).await;
    daemon.until_tools(&["brew"]).await;
    prefer(
        &daemon,
        json!({"scope": "global", "target": "tool:kitchen/brew", "priority": 5}),
    )
    .await;
    // Someone waits for an answer that never comes: a stop tells them so, and does not need to cut
    // them off.
    let address = daemon.address;
    let target = "/api/v1/scenarios/slow/refresh";
    let asked = crate::support::serving::ask(address, "POST", target, &[], "");
    let stopped = async {
        daemon
            .wait_until("it is asked", |all| {
                all.health
                    .values()
                    .any(|health| health.name.as_str() == "slow" && health.last_attempt.is_some())
            })
            .await;
        // The request came in before this one was answered.
        daemon.json("/healthz").await;
        daemon.stop_as_it_may().await
    };
    let (asked, (served, finish)) =
        tokio::time::timeout(PATIENCE / 2, async { tokio::join!(asked, stopped) })
            .await
            .expect("a stop within its time");
    assert_eq!(asked.status, 503, "{asked:?}");
    assert_eq!(asked.header("retry-after"), "1");
    assert!(served, "an answer was cut off");
    assert_eq!(finish, Finish::Clean);

    let daemon = home.start(&[&kitchen]).await;
    assert_eq!(daemon.tools("").await, ["brew"]);
    let preferences = daemon.json("/api/v1/preferences").await;
    assert_eq!(preferences["preferences"][0]["priority"], 5);
    assert!(daemon.findings("state-repaired").await.is_empty());
    daemon.stop().await;
}

#[tokio::test]
async fn what_was_answered_just_before_a_stop_is_stored() {
    let home = Home::new();
    let kitchen = Scenario::of("kitchen", &["brew"]).await;
    let daemon = Daemon::ready(home.config(&[&kitchen])).await;
    for round in 0..5 {
        let name = format!("brew_{round}");
        kitchen.offer([tool(&name)]);
        daemon.until_tools(&[&name]).await;
    }
    daemon.stop().await;
    let mut kitchen = kitchen;
    kitchen.stop().await;
    let daemon = home.start(&[&kitchen]).await;
    assert_eq!(daemon.tools("").await, ["brew_4"]);
    daemon.stop().await;
}
