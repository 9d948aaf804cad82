//! Long-running tools as MCP clients see them: `get_operation` is listed for them, and gives the
//! state.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

use std::time::Duration;

use serde_json::{Value, json};

use super::operations::{begin, behaviour, config, runs, telling, until_state};
use crate::support::callee::{Callee, done, manifest, tool_with};
use crate::support::daemon::{Daemon, Home};
use crate::support::in_process::PATIENCE;
use crate::support::mcp_client::McpClient;

/// A request of an MCP client.
async fn mcp(daemon: &Daemon, target: &str, method: &str, params: Value) -> Value {
    McpClient::modern(daemon.address, json!({}))
        .at(target)
        .result(method, params)
        .await
}

async fn names(daemon: &Daemon, target: &str) -> Vec<String> {
    let listed = mcp(daemon, target, "tools/list", json!({})).await;
    listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_state_of_an_operation_is_a_tool_wherever_one_may_begin() {
    let home = Home::new();
    let statuses = vec![json!({"status": "done", "output": {"files": 3}})];
    let builds = Callee::start(
        runs("builds", &behaviour(), "string"),
        telling(json!("r-1"), statuses),
    )
    .await;
    let on = json!({"enabled_by_default": true});
    let brief = manifest(
        "notes",
        &[tool_with(
            "add",
            &json!({"type": "object", "properties": {}}),
            &on,
        )],
    );
    let notes = Callee::start(brief, |_| std::future::ready(done(&json!({})))).await;
    let daemon = Daemon::ready(config(&home, &[("builds", &builds), ("notes", &notes)])).await;

    // Before any operation was begun, and not where no tool can begin one.
    assert_eq!(
        names(&daemon, "/mcp").await,
        [
            "get_operation",
            "builds__get_run",
            "builds__start",
            "builds__stop_run",
            "notes__add"
        ]
    );
    assert_eq!(names(&daemon, "/mcp?scenario=notes").await, ["notes__add"]);

    let id = begin(&daemon, "start").await;
    until_state(&daemon, &id, "succeeded").await;
    let request = json!({"name": "get_operation", "arguments": {"operation_id": id}});
    let shown = mcp(&daemon, "/mcp", "tools/call", request.clone()).await;
    let state = &shown["structuredContent"];
    assert_eq!(state["state"], "succeeded", "{shown}");
    assert_eq!(state["result"], json!({"files": 3}), "{shown}");
    let text: Value = serde_json::from_str(shown["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, *state);

    // It belongs to the conversation that began it.
    assert_eq!(
        mcp(&daemon, "/mcp?chat_id=8", "tools/call", request.clone()).await["isError"],
        true
    );
    assert_eq!(
        mcp(&daemon, "/mcp?chat_id=7", "tools/call", request).await["isError"],
        Value::Null
    );
    for arguments in [json!({}), json!({"operation_id": "none"})] {
        let refused = mcp(
            &daemon,
            "/mcp",
            "tools/call",
            json!({"name": "get_operation", "arguments": arguments}),
        )
        .await;
        assert_eq!(refused["isError"], true, "{refused}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_tool_that_goes_on_answers_when_it_is_done_or_names_its_operation() {
    let home = Home::new();
    for (wait, is_done) in [(PATIENCE, true), (Duration::ZERO, false)] {
        let statuses = vec![json!({"status": "done", "output": {"files": 3}})];
        let builds = Callee::start(
            runs("builds", &behaviour(), "string"),
            telling(json!("r-1"), statuses),
        )
        .await;
        let mut config = config(&home, &[("builds", &builds)]);
        config.mcp_face.wait = wait;
        let daemon = Daemon::ready(config).await;
        let called = mcp(
            &daemon,
            "/mcp",
            "tools/call",
            json!({"name": "builds__start"}),
        )
        .await;
        assert_eq!(
            called["structuredContent"] == json!({"files": 3}),
            is_done,
            "{called}"
        );
        assert_eq!(
            called.to_string().contains("get_operation"),
            !is_done,
            "{called}"
        );
        daemon.stop().await;
    }
}
