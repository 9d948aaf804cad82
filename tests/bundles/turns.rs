//! Turns whose calls go to stored tools, MCP servers and scenarios of the Tool Discovery Protocol
//! side by side.

use serde_json::{Value, json};

use crate::calls::Api;
use crate::support::callee::{self, Callee};
use crate::support::daemon::{Daemon, Home};
use crate::support::in_process::entry;
use crate::support::mcp_server::{self, McpServer, modern};
use crate::support::upstream_server::answer;
use crate::{config, http_tool, with_tools};

/// An MCP server with the tool `draw`, which gives a text and an image.
async fn drawing() -> McpServer {
    let mut draw = mcp_server::tool("draw");
    draw["annotations"] = json!({"readOnlyHint": true});
    let mut own = modern(&json!([draw]));
    let image = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
    McpServer::start(move |came| match came.method() {
        "tools/call" => came.result(&json!({"resultType": "complete", "content": [
            {"type": "text", "text": "a drawing"}, image]})),
        _ => own(came),
    })
    .await
}

async fn turn(daemon: &Daemon, format: &str, body: &Value) -> Value {
    let answer = daemon
        .send_json("POST", &format!("/api/v1/turns?format={format}"), body)
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn of_calls<'a>(turn: &'a Value, member: &str) -> Vec<&'a str> {
    turn["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call[member].as_str().unwrap_or_default())
        .collect()
}

/// The same calls in the Tool Protocol.
async fn in_the_tool_protocol(daemon: &Daemon) {
    // One after the other.
    let calls = json!([{"_tool": "read_text", "path": "b"}, {"_tool": "weather_v1", "city": "Oslo"}, {"_tool": "draw"}]);
    let answered = turn(
        daemon,
        "calls",
        &json!({"response": {"calls": calls}, "parallel": 1}),
    )
    .await;
    assert_eq!(
        of_calls(&answered, "status"),
        ["result", "result", "result"],
        "{answered}"
    );
    let outputs: Vec<&Value> = answered["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["_output"])
        .collect();
    assert_eq!(outputs[..2], [&json!({"path": "b"}), &json!(21)]);
    assert!(
        outputs[2]
            .as_str()
            .unwrap()
            .starts_with("a drawing\n[file of type image/png"),
        "{answered}"
    );

    // Only what declares that it may run twice competes, whatever its provider.
    let body = json!({"response": {"calls": calls}, "mode": "any"});
    let refused = daemon
        .send_json("POST", "/api/v1/turns?format=calls", &body)
        .await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert_eq!(refused.json()["code"], "cannot_compete");
    assert_eq!(refused.json()["tools"][0], "files/read_text", "{refused:?}");
    let draw = json!({"response": {"calls": [calls[2], calls[2]]}, "mode": "any", "parallel": 1});
    assert_eq!(
        of_calls(&turn(daemon, "calls", &draw).await, "status"),
        ["result", "not_needed"]
    );
}

#[tokio::test]
async fn calls_of_every_kind_of_provider_stand_side_by_side_in_one_turn() {
    let api = Api::answering(|target, _| match target {
        "/weather?q=Oslo" => answer(
            "200 OK",
            &["Content-Type: application/json"],
            b"{\"temp\": 21}",
        ),
        _ => answer("404 Not Found", &[], b"no such city"),
    });
    let api = api.await;
    let files = Callee::echo(callee::manifest("files", &[callee::tool("read_text")])).await;
    let server = drawing().await;
    let home = Home::new();
    let mut config = config(&home);
    config.scenarios = vec![entry("files", files.url()), entry("draws", server.url())];
    let mut weather = http_tool(
        &json!({"method": "GET", "urlTemplate": api.at("/weather?q=${city}"), "extractExpr": "$.temp"}),
    );
    weather["argSchema"] =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let daemon = with_tools(config, &[("weather", weather)]).await;
    daemon
        .until_tools(&["draw", "read_text", "weather_v1"])
        .await;

    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let content = json!([
        call("a", "weather_v1", json!({"city": "Oslo"})),
        call("b", "draw", json!({})),
        call("c", "read_text", json!({"path": "a.txt"})),
        call("d", "weather_v1", json!({"city": "Atlantis"})),
        call("e", "weather_v1", json!({})),
        call("f", "look_up", json!({})),
    ]);
    let answered = turn(
        &daemon,
        "anthropic",
        &json!({"role": "assistant", "content": content}),
    )
    .await;
    assert_eq!(
        of_calls(&answered, "status"),
        [
            "result", "result", "result", "failed", "refused", "not_ours"
        ],
        "{answered}"
    );
    assert_eq!(
        of_calls(&answered, "scenario")[1..3],
        ["draws", "files"],
        "{answered}"
    );
    let results = answered["messages"][0]["content"].as_array().unwrap();
    assert_eq!(
        results
            .iter()
            .map(|result| &result["tool_use_id"])
            .collect::<Vec<_>>(),
        ["a", "b", "c", "d", "e"]
    );
    assert_eq!(results[0]["content"], "21");
    assert_eq!(results[1]["content"][0]["text"], "a drawing");
    assert_eq!(
        results[1]["content"][1]["source"]["media_type"],
        "image/png"
    );
    assert_eq!(results[2]["content"], "{\"path\":\"a.txt\"}");
    assert!(
        results[3]["content"]
            .as_str()
            .unwrap()
            .contains("404 Not Found"),
        "{answered}"
    );
    assert!(
        results[4]["content"]
            .as_str()
            .unwrap()
            .contains("\"city\" is a required property"),
        "{answered}"
    );
    assert_eq!(results[3]["is_error"], true);

    in_the_tool_protocol(&daemon).await;
    assert_eq!(files.ran().len(), 2);
    daemon.stop().await;
}
