//! Bodies that are refused: what a client reads about a member that is unknown, missing or has a
//! wrong value.

use serde_json::{Value, json};

use crate::support::api::described;
use crate::support::daemon::Daemon;

const PREFERENCES: &str = "/api/v1/preferences";

async fn refusal(daemon: &Daemon, method: &str, target: &str, body: &Value) -> Value {
    let refused = daemon.send_json(method, target, body).await;
    assert_eq!(refused.status, 400, "{method} {target} {body}: {refused:?}");
    refused.json()
}

/// Holds each request (method, target, body) to the text of its refusal.
async fn assert_refused(daemon: &Daemon, cases: &[(&str, &str, Value, &str)]) {
    for (method, target, body, expected) in cases {
        let problem = refusal(daemon, method, target, body).await;
        assert_eq!(problem["detail"], *expected, "{method} {target} {body}");
        assert_eq!(problem["error"], *expected, "{method} {target} {body}");
    }
}

#[tokio::test]
async fn a_refused_decision_names_the_member_and_what_is_allowed() {
    let (_home, daemon, _files, _notes) = described().await;
    let cases = [
        (
            "PUT",
            PREFERENCES,
            json!({"scope": "global", "target": "tag:x", "enabled": "yes"}),
            "`enabled` cannot be `\"yes\"`: allowed is true, false or null",
        ),
        (
            "PUT",
            PREFERENCES,
            json!({"scope": "global", "target": "tag:x", "approval": 1}),
            "`approval` cannot be `1`: allowed is \"require\", \"skip\" or null",
        ),
        (
            "PUT",
            PREFERENCES,
            json!({"scope": "global", "target": "tag:x", "priority": 1.5}),
            "`priority` cannot be `1.5`: allowed is a whole number from -2147483648 to 2147483647 or null",
        ),
        (
            "PUT",
            PREFERENCES,
            json!({"scope": "global"}),
            "`target` is missing from the body: write a text",
        ),
        (
            "POST",
            "/api/v1/scenarios",
            json!({"name": "x"}),
            "`url` is missing from the body: write a text",
        ),
        (
            "POST",
            "/api/v1/approvals/1/approve",
            json!({"by": 7}),
            "`by` cannot be `7`: allowed is a text of at most 200 characters or null",
        ),
        (
            "POST",
            "/api/v1/approvals/1/reject",
            json!({"by": "ada", "why": "no"}),
            "unknown member `why` in the body: known are by, reason",
        ),
        (
            "POST",
            "/api/v1/interactions/1",
            json!({"action": 7}),
            "`action` cannot be `7`: allowed is a text",
        ),
        (
            "POST",
            "/api/v1/scenarios/files/login",
            json!({}),
            "`redirect_uri` is missing from the body: write a text",
        ),
    ];
    assert_refused(&daemon, &cases).await;
    let unknown = refusal(
        &daemon,
        "POST",
        "/api/v1/approvals/1/approve",
        &json!({"who": 1}),
    )
    .await;
    assert_eq!(unknown["known"], json!(["by", "digest"]));
    daemon.stop().await;
}

#[tokio::test]
async fn a_refused_call_names_the_member_and_what_is_allowed() {
    let (_home, daemon, _files, _notes) = described().await;
    let cases = [
        (
            "POST",
            "/api/v1/tools/execute",
            json!({"tool_name": 7}),
            "`tool_name` cannot be `7`: allowed is a text that is not empty; \
             a call is {\"tool_name\": ..., \"arguments\": {...}}",
        ),
        (
            "POST",
            "/api/v1/turns?format=openai",
            json!({"response": {}, "wait": -1}),
            "`wait` cannot be `-1`: allowed is a whole number from 0 to 600 or null",
        ),
        (
            "PATCH",
            "/tools/bundles/018faf50-b7b6-7a01-9a05-a22a6e0af101",
            json!({"isEnabled": "yes"}),
            "`isEnabled` cannot be `\"yes\"`: allowed is true or false",
        ),
        (
            "POST",
            "/api/v1/tools/config",
            json!({"scenario": "files", "tool_name": "read_text", "enabled": 1}),
            "`enabled` cannot be `1`: allowed is true or false",
        ),
        (
            "POST",
            "/api/v1/tools/config/approval",
            json!({"scenario": "files", "tool_name": "read_text"}),
            "`approval_override` is missing from the body: write \"require\", \"skip\" or \"\"",
        ),
    ];
    assert_refused(&daemon, &cases).await;
    let turn = json!({"response": {}, "wiat": 3});
    let unknown = refusal(&daemon, "POST", "/api/v1/turns?format=openai", &turn).await;
    assert!(
        unknown["detail"]
            .as_str()
            .unwrap()
            .starts_with("unknown member `wiat` in the body"),
        "{unknown}"
    );
    assert_eq!(unknown["known"][1], "revision");
    daemon.stop().await;
}
