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

#[tokio::test]
async fn a_refused_body_names_the_member_and_what_is_allowed() {
    let (_home, daemon, _files, _notes) = described().await;
    for (method, target, body, expected) in [
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
        ("PUT", PREFERENCES, json!({"scope": "global"}), "`target` is missing from the body: write a text"),
        ("POST", "/api/v1/scenarios", json!({"name": "x"}), "`url` is missing from the body: write a text"),
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
        ("POST", "/api/v1/interactions/1", json!({"action": 7}), "`action` cannot be `7`: allowed is a text"),
        ("POST", "/api/v1/scenarios/files/login", json!({}), "`redirect_uri` is missing from the body: write a text"),
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
    ] {
        let problem = refusal(&daemon, method, target, &body).await;
        assert_eq!(problem["detail"], expected, "{method} {target} {body}");
        assert_eq!(problem["error"], expected, "{method} {target} {body}");
    }
    let unknown = refusal(&daemon, "POST", "/api/v1/approvals/1/approve", &json!({"who": 1})).await;
    assert_eq!(unknown["known"], json!(["by", "digest"]));
    daemon.stop().await;
}
