//! Examples of turns, for the description of the API. A test holds these to the described shapes.

use serde_json::{Value, json};

const TURN: &str = "b85d1f37-0e6c-4a92-97f4-d8c7b6a59483";

/// A response with one call of a tool.
pub(in crate::server) fn request() -> Value {
    json!({
        "response": {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "add_note", "input": {"text": "two lemons"}}],
        },
        "turn_id": TURN,
    })
}

fn call(status: &str) -> Value {
    json!({
        "id": "toolu_1",
        "name": "add_note",
        "status": status,
        "call_id": format!("{TURN}.0"),
        "scenario": "notes",
        "tool_name": "add_note",
        "is_cut": false,
    })
}

/// A turn whose calls are over.
pub(in crate::server) fn complete() -> Value {
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "{\"id\":7}"});
    let mut call = call("result");
    call["execution_time_ms"] = 3.into();
    json!({
        "turn_id": TURN,
        "status": "complete",
        "messages": [{"role": "user", "content": [result]}],
        "calls": [call],
        "is_revision_forgotten": false,
    })
}

/// A turn with a call that waits for approval.
pub(in crate::server) fn waiting() -> Value {
    let mut call = call("waiting_for_approval");
    call["code"] = "approval_required".into();
    call["approval_id"] = "8d3f5a0e-4c1b-4f7e-9a26-c5d7e8f90a1b".into();
    json!({"turn_id": TURN, "status": "waiting", "messages": null, "calls": [call], "is_revision_forgotten": false})
}

/// The whole result of a call.
pub(in crate::server) fn result() -> Value {
    json!({
        "call_id": format!("{TURN}.0"),
        "turn_id": TURN,
        "name": "add_note",
        "status": "result",
        "result": {"id": 7},
        "content": null,
        "error": null,
        "code": null,
    })
}
