//! The original agent-inbox's routes on a running daemon: same keys, lists that are never `null`,
//! settings that stay apart.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::callee::{self, Callee, manifest};
use crate::support::daemon::{Daemon, Home, NEVER, Scenario, configured, tool};

const CONFIG: &str = "/api/v1/tools/config";

async fn daemon() -> (Home, Scenario, Daemon) {
    let home = Home::new();
    let files = Scenario::start(
        "files",
        [
            tool("read").category("disk"),
            tool("wipe").requires_approval(true),
        ],
    )
    .await;
    let daemon = Daemon::ready(home.config(&[&files])).await;
    (home, files, daemon)
}

/// The settings of `files/<tool>` in the set: `enabled`, `source`, `requires_approval`,
/// `approval_source`, `approval_override`.
async fn settings(daemon: &Daemon, tool: &str, chat: &str) -> (bool, String, bool, String, String) {
    let set = daemon
        .json(&format!("/api/v1/tools/set?chat_id={chat}"))
        .await;
    let found = set["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|each| each["tool"]["name"] == tool)
        .unwrap()
        .clone();
    assert_eq!(found["scenario"], "files");
    // Empty ones are left out, as in the original.
    let text = |member: &str| {
        found
            .get(member)
            .map_or("", |text| text.as_str().unwrap())
            .to_owned()
    };
    let flag = |member: &str| found[member].as_bool().unwrap();
    (
        flag("enabled"),
        text("source"),
        flag("requires_approval"),
        text("approval_source"),
        text("approval_override"),
    )
}

fn all(
    enabled: bool,
    source: &str,
    approval: bool,
    by: &str,
    override_: &str,
) -> (bool, String, bool, String, String) {
    (
        enabled,
        source.into(),
        approval,
        by.into(),
        override_.into(),
    )
}

async fn post(daemon: &Daemon, target: &str, body: Value) -> Value {
    let answer = daemon.send_json("POST", target, &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn switching_a_tool_and_its_approval_are_two_things() {
    let (_home, _files, daemon) = daemon().await;
    assert_eq!(
        settings(&daemon, "read", "").await,
        all(true, "", false, "", "")
    );
    let done = post(
        &daemon,
        "/api/v1/tools/config/approval",
        json!({"scenario": "files", "tool_name": "read", "approval_override": "require"}),
    )
    .await;
    let expected = json!({"success": true, "chat_id": "", "scenario": "files", "tool_name": "read", "approval_override": "require"});
    assert_eq!(done, expected);
    let done = post(
        &daemon,
        CONFIG,
        json!({"scenario": "files", "tool_name": "read", "enabled": false}),
    )
    .await;
    assert_eq!(
        done,
        json!({"success": true, "chat_id": "", "scenario": "files", "tool_name": "read", "enabled": false})
    );
    assert_eq!(
        settings(&daemon, "read", "").await,
        all(false, "global", true, "global", "require")
    );
    // And the other way round.
    post(
        &daemon,
        "/api/v1/tools/config/approval",
        json!({"scenario": "files", "tool_name": "read", "approval_override": ""}),
    )
    .await;
    assert_eq!(
        settings(&daemon, "read", "").await,
        all(false, "global", false, "", "")
    );
    assert_eq!(daemon.tools("").await, ["wipe"]);
    let reset = daemon
        .send("DELETE", &format!("{CONFIG}?scenario=files&tool_name=read"))
        .await;
    assert_eq!(reset.status, 200);
    assert_eq!(reset.json()["success"].as_bool(), Some(true));
    assert_eq!(
        settings(&daemon, "read", "").await,
        all(true, "", false, "", "")
    );
    assert_eq!(
        daemon.json("/api/v1/preferences").await["preferences"],
        json!([])
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_reset_takes_both_and_leaves_what_the_original_does_not_know() {
    let (_home, _files, daemon) = daemon().await;
    let alias = json!({"scope": "global", "target": "tool:files/wipe", "alias": "erase"});
    assert_eq!(
        daemon
            .send_json("PUT", "/api/v1/preferences", &alias)
            .await
            .status,
        200
    );
    post(
        &daemon,
        CONFIG,
        json!({"scenario": "files", "tool_name": "wipe", "enabled": false}),
    )
    .await;
    post(
        &daemon,
        "/api/v1/tools/config/approval",
        json!({"scenario": "files", "tool_name": "wipe", "approval_override": "skip"}),
    )
    .await;
    assert_eq!(
        settings(&daemon, "wipe", "").await,
        all(false, "global", false, "global", "skip")
    );
    assert_eq!(
        daemon
            .send("DELETE", &format!("{CONFIG}?scenario=files&tool_name=wipe"))
            .await
            .status,
        200
    );
    assert_eq!(
        settings(&daemon, "wipe", "").await,
        all(true, "", true, "", "")
    );
    assert_eq!(daemon.tools("").await, ["read", "erase"]);
    daemon.stop().await;
}

#[tokio::test]
async fn chats_do_not_touch_each_other() {
    let (_home, _files, daemon) = daemon().await;
    post(
        &daemon,
        CONFIG,
        json!({"chat_id": "a", "scenario": "files", "tool_name": "read", "enabled": false}),
    )
    .await;
    post(
        &daemon,
        CONFIG,
        json!({"chat_id": "b", "scenario": "files", "tool_name": "wipe", "enabled": false}),
    )
    .await;
    post(
        &daemon,
        CONFIG,
        json!({"chat_id": "", "scenario": "files", "tool_name": "wipe", "enabled": true}),
    )
    .await;
    assert_eq!(
        settings(&daemon, "read", "a").await,
        all(false, "chat", false, "", "")
    );
    assert_eq!(
        settings(&daemon, "read", "b").await,
        all(true, "", false, "", "")
    );
    assert_eq!(
        settings(&daemon, "wipe", "a").await,
        all(true, "global", true, "", "")
    );
    assert_eq!(
        settings(&daemon, "wipe", "b").await,
        all(false, "chat", true, "", "")
    );
    assert_eq!(daemon.tools("").await, ["read", "wipe"]);
    assert_eq!(daemon.tools("?chat_id=a").await, ["wipe"]);
    assert_eq!(
        daemon
            .send(
                "DELETE",
                &format!("{CONFIG}?scenario=files&tool_name=read&chat_id=a")
            )
            .await
            .status,
        200
    );
    assert_eq!(daemon.tools("?chat_id=a").await, ["read", "wipe"]);
    assert_eq!(daemon.tools("?chat_id=b").await, ["read"]);
    daemon.stop().await;
}

#[tokio::test]
async fn an_empty_daemon_answers_empty_lists() {
    let home = Home::new();
    let daemon = home.start(&[]).await;
    let set = daemon.json("/api/v1/tools/set").await;
    let generated_at: Timestamp = set["generated_at"].as_str().unwrap().parse().unwrap();
    assert!(generated_at > Timestamp::UNIX_EPOCH);
    for list in ["scenarios", "tools", "categories"] {
        assert_eq!(set[list], json!([]), "{list}");
    }
    assert_eq!(daemon.json("/api/v1/tools/scenarios").await, json!([]));
    assert_eq!(daemon.json("/api/v1/tools?format=openai").await, json!([]));
    assert_eq!(daemon.json("/api/v1/tools").await["tools"], json!([]));
    assert_eq!(
        daemon.json("/api/v1/scenarios").await,
        json!({"scenarios": []})
    );
    assert_eq!(
        daemon.json("/api/v1/preferences").await,
        json!({"preferences": []})
    );
    assert_eq!(
        daemon.json("/api/v1/findings").await,
        json!({"findings": []})
    );
    let synced = post(&daemon, "/api/v1/tools/sync", json!({})).await;
    let nothing = json!({"scenarios_with_tools": 0, "new_scenarios": [], "removed_scenarios": [], "total_tools": 0});
    assert_eq!(synced, nothing);
    daemon.stop().await;
}

#[tokio::test]
async fn the_set_shows_scenarios_tools_and_categories() {
    let (_home, _files, daemon) = daemon().await;
    let set = daemon.json("/api/v1/tools/set").await;
    assert_eq!(
        set["scenarios"],
        json!([{"name": "files", "version": "0.1.0", "description": ""}])
    );
    assert_eq!(set["categories"][0]["id"], "disk");
    assert_eq!(set["tools"].as_array().unwrap().len(), 2);
    assert_eq!(
        set["tools"][0]["tool"]["parameters"],
        json!({"type": "object", "properties": {}})
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_sync_asks_everyone_and_tells_who_is_new_and_who_is_gone() {
    let home = Home::new();
    let stays = Scenario::of("stays", &["brew"]).await;
    let mut leaves = Scenario::of("leaves", &["stir", "pour"]).await;
    let mut comes = Scenario::of("comes", &["list"]).await;
    comes.stop().await;
    let mut config = home.config(&[&stays, &leaves, &comes]);
    // Only the sync asks, and one failure is enough.
    config.refresh.min_interval = NEVER;
    config.refresh.max_interval = NEVER;
    config.refresh.backoff_base = NEVER;
    config.refresh.backoff_max = NEVER;
    config.health.failures = 1;
    config.health.grace = Duration::ZERO;
    let daemon = Daemon::ready(config).await;
    assert_eq!(daemon.tools("").await, ["pour", "stir", "brew"]);
    leaves.stop().await;
    comes.run().await;
    let synced = post(&daemon, "/api/v1/tools/sync", json!({})).await;
    let expected = json!({
        "scenarios_with_tools": 2, "new_scenarios": ["comes"], "removed_scenarios": ["leaves"], "total_tools": 2,
    });
    assert_eq!(synced, expected);
    assert_eq!(daemon.tools("").await, ["list", "brew"]);
    let synced = post(&daemon, "/api/v1/tools/sync", json!({})).await;
    let same = json!({"scenarios_with_tools": 2, "new_scenarios": [], "removed_scenarios": [], "total_tools": 2});
    assert_eq!(synced, same);
    daemon.stop().await;
}

#[tokio::test]
async fn a_dead_scenario_is_shown_with_when_it_was_really_checked() {
    let home = Home::new();
    let files = Scenario::of("files", &["read"]).await;
    let mut dead = Scenario::of("gone", &["lost"]).await;
    dead.stop().await;
    let before = callsheet::runtime::Clock::system().wall();
    let mut config = home.config(&[&files, &dead]);
    config.refresh.min_interval = NEVER;
    config.refresh.max_interval = NEVER;
    config.refresh.backoff_base = NEVER;
    config.refresh.backoff_max = NEVER;
    let daemon = Daemon::ready(config).await;
    let after = callsheet::runtime::Clock::system().wall();
    let statuses = daemon.json("/api/v1/tools/scenarios").await;
    let [alive, gone] = &statuses.as_array().unwrap()[..] else {
        panic!("{statuses}")
    };
    assert_eq!(alive["scenario"], "files");
    assert_eq!(alive["available"], true);
    assert_eq!(alive["tool_count"], 1);
    assert!(alive.get("error").is_none(), "{alive}");
    assert_eq!(gone["scenario"], "gone");
    assert_eq!(gone["available"], false);
    assert_eq!(gone["tool_count"], 0);
    assert!(
        gone["error"].as_str().unwrap().contains("refused"),
        "{gone}"
    );
    for status in [alive, gone] {
        let checked: Timestamp = status["last_checked"].as_str().unwrap().parse().unwrap();
        assert!(
            before <= checked && checked <= after,
            "{before} {checked} {after}"
        );
    }
    // Nobody was asked since, so the time stands however often it is looked at.
    assert_eq!(daemon.json("/api/v1/tools/scenarios").await, statuses);
    daemon.stop().await;
}

#[tokio::test]
async fn a_body_that_cannot_be_is_refused() {
    let (_home, _files, daemon) = daemon().await;
    for (target, body, named) in [
        (
            CONFIG,
            json!({"tool_name": "read", "enabled": true}),
            "`scenario`",
        ),
        (
            CONFIG,
            json!({"scenario": "files", "enabled": true}),
            "`tool_name`",
        ),
        (
            CONFIG,
            json!({"scenario": "files", "tool_name": "read"}),
            "`enabled`",
        ),
        (
            CONFIG,
            json!({"scenario": "files", "tool_name": "read", "enabled": "yes"}),
            "`enabled`",
        ),
        (
            "/api/v1/tools/config/approval",
            json!({"scenario": "files", "tool_name": "read", "approval_override": "no"}),
            "`no`",
        ),
    ] {
        let answer = daemon.send_json("POST", target, &body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.problem().contains(named), "{}", answer.problem());
    }
    assert_eq!(
        daemon.json("/api/v1/preferences").await["preferences"],
        json!([])
    );
    daemon.stop().await;
}

#[tokio::test]
async fn credentials_in_the_address_that_a_scenario_gives_itself_are_not_shown() {
    let mut list = manifest("files", &[callee::tool("read")]);
    list["scenario"]["base_url"] = json!("http://kim:hunter2@127.0.0.1:9/base");
    let home = Home::new();
    let files = Callee::echo(list).await;
    let mut config = home.config(&[]);
    config.scenarios = vec![configured("files", ([127, 0, 0, 1], files.port()).into())];
    let daemon = Daemon::ready(config).await;
    let set = daemon.json("/api/v1/tools/set").await;
    assert_eq!(
        set["scenarios"][0]["base_url"], "http://127.0.0.1:9/base",
        "{set}"
    );
    for target in [
        "/api/v1/tools/set",
        "/api/v1/tools",
        "/api/v1/scenarios/files",
        "/api/v1/findings",
        "/dashboard/scenarios/files",
    ] {
        let shown = String::from_utf8(daemon.get(target).await.body).unwrap();
        assert!(!shown.contains("hunter2"), "{target}: {shown}");
    }
    daemon.stop().await;
}
