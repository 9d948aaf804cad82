//! Examples of answers about calls whose tools wait for input, for the description of the API.
//!
//! The daemon of the other examples has no such tool. A test holds these to the described shapes.

use serde_json::{Value, json};

const CALL: &str = "5a1c9f3e-8b7d-4c60-a2e4-f6071829304b";

fn interaction() -> Value {
    json!({
        "id": "f3b9d2c4-60a1-4e7b-9c58-1d2e3f4a5b6c",
        "message": "Which branch?",
        "schema": {"type": "object", "properties": {"branch": {"type": "string"}}, "required": ["branch"]},
        "expires_at": "2026-03-01T09:30:00Z",
    })
}

/// Input that is given.
pub(in crate::server) fn input() -> Value {
    json!({"action": "accept", "content": {"branch": "main"}})
}

/// A call that waits for input.
pub(in crate::server) fn under_way() -> Value {
    json!({"call_id": CALL, "tool_name": "build", "status": "waiting_for_input", "interaction": interaction()})
}

/// A call that is being cancelled.
pub(in crate::server) fn cancelling() -> Value {
    json!({"call_id": CALL, "tool_name": "build", "status": "cancelling", "interaction": null})
}

/// The answer of a call whose tool needs input.
pub(in crate::server) fn needs_input() -> Value {
    json!({
        "success": false,
        "result": null,
        "error": "the tool needs input: Which branch?",
        "code": "input_required",
        "status": "waiting_for_input",
        "tool_name": "build",
        "call_id": CALL,
        "interaction": interaction(),
    })
}

/// The answer of a call that is over.
pub(in crate::server) fn answered() -> Value {
    json!({
        "success": true,
        "result": {"branch": "main"},
        "status": "completed",
        "execution_time_ms": 3,
        "scenario": "builds",
        "tool_name": "build",
        "name": "build",
        "url": "http://127.0.0.1:9003/",
        "attempts": 1,
        "call_id": CALL,
    })
}

/// The answer of a call that began an operation.
pub(in crate::server) fn goes_on() -> Value {
    let mut answer = answered();
    answer["status"] = "queued".into();
    answer["is_async"] = true.into();
    answer["run_id"] = "r-1".into();
    answer["operation_id"] = "64c0e8a2-9d5f-4b17-83e6-0a1b2c3d4e5f".into();
    answer
}
