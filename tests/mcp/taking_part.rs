//! Calls in which the client takes part: log messages, input with a sealed state, approvals, and
//! what goes on.

use std::sync::{Arc, Mutex};

use callsheet::calls::WaitLimits;
use callsheet::model::{ApprovalPolicy, ApprovalState, SettingsPatch};
use serde_json::{Value, json};

use crate::served::served;
use crate::support::house::House;
use crate::support::in_process::PATIENCE;
use crate::support::mcp_client::{META, McpClient};
use crate::support::mcp_server::{Answer, McpServer, legacy, modern, tool};

/// The text of a result.
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn log_messages_come_by_the_level_that_the_client_wants() {
    let mut own = legacy("2025-11-25", &json!([tool("read")]));
    let server = McpServer::start(move |came| {
        if came.method() != "tools/call" {
            return own(came);
        }
        let line = |level: &str| json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": {"of": level}}});
        let answer = json!({"jsonrpc": "2.0", "id": came.message["id"], "result": {"content": []}});
        Answer::Events(vec![line("debug"), line("info"), line("error"), answer])
    })
    .await;
    let (house, address) = served(&server).await;
    let old = McpClient::legacy(address, "2025-11-25", json!({})).await;
    let new = McpClient::modern(address, json!({}));
    let levels = async |client: &McpClient, meta: Value| {
        let params = json!({"name": "files__read", "_meta": meta});
        let mut came = client.follow(&json!(1), "tools/call", params).await;
        let mut levels = Vec::new();
        while let Some(message) = came.next().await {
            levels.extend(message["params"]["level"].as_str().map(str::to_owned));
        }
        levels.join(" ")
    };
    assert_eq!(levels(&old, json!({})).await, "info error");
    old.result("logging/setLevel", json!({"level": "warning"}))
        .await;
    assert_eq!(levels(&old, json!({})).await, "error");
    assert_eq!(levels(&new, json!({})).await, "");
    assert_eq!(
        levels(&new, json!({format!("{META}logLevel"): "debug"})).await,
        "debug info error"
    );
    house.finish().await;
}

#[tokio::test]
async fn a_state_is_sealed_and_good_for_its_call_alone() {
    let mut own = modern(&json!([tool("read")]));
    let server = McpServer::start(move |came| {
        let params = &came.message["params"];
        if came.method() != "tools/call" || params.get("inputResponses").is_some() {
            return own(came);
        }
        let form = json!({"method": "elicitation/create", "params": {"message": "Name?", "requestedSchema": {"type": "object"}}});
        came.result(&json!({"resultType": "input_required", "requestState": "inner", "inputRequests": {"who": form}}))
    })
    .await;
    let (house, address) = served(&server).await;
    let client = McpClient::modern(address, json!({"elicitation": {}}));
    let call = |arguments: Value, state: &Value| {
        json!({"name": "files__read", "arguments": arguments, "requestState": state,
            "inputResponses": {"who": {"action": "decline"}}})
    };
    let needed = client
        .result(
            "tools/call",
            json!({"name": "files__read", "arguments": {"a": 1}}),
        )
        .await;
    assert_eq!(needed["resultType"], "input_required", "{needed}");
    let state = needed["requestState"].clone();
    assert!(!state.to_string().contains("inner"), "{state}");
    for (arguments, state) in [
        (json!({"a": 2}), state.clone()),
        (json!({"a": 1}), json!("made up")),
    ] {
        let (_, refused) = client.request("tools/call", call(arguments, &state)).await;
        assert_eq!(refused["error"]["code"], -32_602, "{refused}");
    }
    let done = client
        .result("tools/call", call(json!({"a": 1}), &state))
        .await;
    assert_eq!(text(&done), "done", "{done}");
    let sent = server.of("tools/call").pop().unwrap().message["params"].clone();
    assert_eq!(sent["requestState"], "inner");
    assert_eq!(
        sent["inputResponses"],
        json!({"who": {"action": "decline"}})
    );
    house.finish().await;
}

#[tokio::test]
async fn a_capability_that_a_server_misses_is_an_error_of_the_protocol() {
    let mut own = modern(&json!([tool("read")]));
    let server = McpServer::start(move |came| {
        if came.method() != "tools/call" {
            return own(came);
        }
        let data = json!({"requiredCapabilities": {"sampling": {}}});
        let error = json!({"code": -32_021, "message": "no sampling", "data": data});
        Answer::Json(
            400,
            json!({"jsonrpc": "2.0", "id": came.message["id"], "error": error}),
        )
    })
    .await;
    let (house, address) = served(&server).await;
    let (status, answer) = McpClient::modern(address, json!({}))
        .request("tools/call", json!({"name": "files__read"}))
        .await;
    assert_eq!(status, 400);
    assert_eq!(answer["error"]["code"], -32_021);
    assert_eq!(
        answer["error"]["data"],
        json!({"requiredCapabilities": {"sampling": {}}})
    );
    house.finish().await;
}

/// A house whose only tool needs approval.
async fn guarded(server: &McpServer) -> (House, std::net::SocketAddr) {
    let (house, address) = served(server).await;
    let needed = SettingsPatch {
        approval: Some(Some(ApprovalPolicy::Require)),
        ..SettingsPatch::default()
    };
    house.prefer("global", "tool:files/read", needed).await;
    (house, address)
}

#[tokio::test]
async fn a_person_approves_in_a_form_of_either_era_and_the_call_runs_once() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = guarded(&server).await;
    let call = json!({"name": "files__read", "arguments": {"a": 1}});
    let approved = json!({"action": "accept", "content": {"approve": true}});

    let new = McpClient::modern(address, json!({"elicitation": {}}));
    let needed = new.result("tools/call", call.clone()).await;
    assert_eq!(
        needed["inputRequests"]["input"]["method"], "elicitation/create",
        "{needed}"
    );
    let mut again = call.clone();
    again["requestState"] = needed["requestState"].clone();
    // Without an answer it is requested again.
    let needed = new.result("tools/call", again.clone()).await;
    again["requestState"] = needed["requestState"].clone();
    again["inputResponses"] = json!({"input": approved});
    let done = new.result("tools/call", again.clone()).await;
    assert_eq!(
        done["structuredContent"],
        json!({"arguments": {"a": 1}}),
        "{done}"
    );
    assert_eq!(
        new.request("tools/call", again).await.1["error"]["code"],
        -32_602,
        "a state is good once"
    );

    let old = McpClient::legacy(address, "2025-11-25", json!({"elicitation": {}})).await;
    for (reply, ran) in [(approved, 2), (json!({"action": "decline"}), 2)] {
        let mut came = old.follow(&json!(1), "tools/call", call.clone()).await;
        let asked = came.next().await.unwrap();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        assert!(
            asked["params"]["message"]
                .as_str()
                .is_some_and(|message| message.contains("\"a\": 1")),
            "{asked}"
        );
        old.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": reply}))
            .await;
        let answer = came.next().await.unwrap();
        assert_eq!(
            answer["result"]["isError"] == true,
            reply["action"] == "decline",
            "{answer}"
        );
        assert_eq!(server.of("tools/call").len(), ran);
    }
    house.finish().await;
}

#[tokio::test]
async fn the_same_call_hands_out_the_outcome_once() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = guarded(&server).await;
    let client = McpClient::modern(address, json!({}));
    let call = json!({"name": "files__read", "arguments": {"a": 1}});
    let waits = async || {
        let waiting = client.result("tools/call", call.clone()).await;
        assert_eq!(waiting["isError"], true, "{waiting}");
        assert!(
            text(&waiting).contains("waits for the approval"),
            "{waiting}"
        );
        let approvals = house.app.calls().approvals().unwrap().all();
        approvals
            .into_iter()
            .find(|approval| approval.state == ApprovalState::Waiting)
            .unwrap()
            .id
            .clone()
    };
    let first = waits().await;
    assert_eq!(waits().await, first);
    let blocks = json!([{"type": "image", "data": "aGk=", "mimeType": "image/png"}, {"type": "text", "text": "done"}]);
    let mut own = modern(&json!([tool("read")]));
    let given = blocks.clone();
    server.script(move |came| match came.method() {
        "tools/call" => came.result(
            &json!({"resultType": "complete", "content": given, "structuredContent": {"n": 1}}),
        ),
        _ => own(came),
    });
    house
        .app
        .calls()
        .approve(&first, "an operator", WaitLimits::within(PATIENCE))
        .await
        .unwrap();
    let done = client.result("tools/call", call.clone()).await;
    assert_eq!(done["content"], blocks, "every block comes through");
    assert_eq!(done["structuredContent"], json!({"n": 1}));
    let second = waits().await;
    assert_ne!(second, first);
    house
        .app
        .calls()
        .reject(&second, "an operator", Some("not today"))
        .await
        .unwrap();
    let rejected = client.result("tools/call", call.clone()).await;
    assert!(
        text(&rejected).contains("rejected by an operator: not today"),
        "{rejected}"
    );
    assert_eq!(server.of("tools/call").len(), 1);
    house.finish().await;
}

#[tokio::test]
async fn no_form_is_shown_where_it_is_switched_off_or_a_token_is_needed() {
    let changes: [fn(&mut callsheet::config::Config); 2] = [
        |config| config.mcp_face.approve_by_elicitation = false,
        |config| {
            config.server.operator_token =
                Some(callsheet::model::Secret::new("0123456789abcdef-topsecret"));
        },
    ];
    for change in changes {
        let server = McpServer::start(modern(&json!([tool("read")]))).await;
        let house = House::with(&[("files", server.url())], change).await;
        let address = house.serve().await;
        let needed = SettingsPatch {
            approval: Some(Some(ApprovalPolicy::Require)),
            ..SettingsPatch::default()
        };
        house.prefer("global", "tool:files/read", needed).await;
        let client = McpClient::modern(address, json!({"elicitation": {}}));
        let waiting = client
            .result("tools/call", json!({"name": "files__read"}))
            .await;
        assert!(
            text(&waiting).contains("waits for the approval"),
            "{waiting}"
        );
        house.finish().await;
    }
}

#[tokio::test]
async fn a_call_of_a_legacy_client_goes_on_without_its_connection_and_asks_on_the_stream_of_a_get()
{
    let replies = Arc::new(Mutex::new(Vec::new()));
    let mut own = legacy("2025-11-25", &json!([tool("read")]));
    let kept = Arc::clone(&replies);
    let server = McpServer::start(move |came| {
        if came.message.get("result").is_some() {
            kept.lock().unwrap().push(came.message["result"].clone());
        }
        match came.method() {
            "tools/call" => Answer::Stream(Vec::new()),
            _ => own(came),
        }
    })
    .await;
    let (house, address) = served(&server).await;
    let client = McpClient::legacy(address, "2025-11-25", json!({"elicitation": {}})).await;
    let mut stream = client.listen().await;
    let begun = client
        .begin(&json!("c"), "tools/call", json!({"name": "files__read"}))
        .await;
    server.until("tools/call", 1).await;
    drop(begun);
    let form = json!({"message": "Name?", "requestedSchema": {"type": "object"}});
    let asked = loop {
        server.push(
            json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": form}),
        );
        // The first may go to the closed connection.
        let next = tokio::time::timeout(std::time::Duration::from_secs(2), stream.next()).await;
        if let Ok(message) = next {
            break message.unwrap();
        }
    };
    assert_eq!(asked["params"], form, "{asked}");
    let reply = json!({"action": "accept", "content": {"name": "Ada"}});
    client
        .send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": reply}))
        .await;
    let came = tokio::time::timeout(PATIENCE, async {
        while replies.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    });
    came.await.expect("the answer reaches the server");
    assert_eq!(replies.lock().unwrap()[0], reply);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}})).await;
    server.until("notifications/cancelled", 1).await;
    house.finish().await;
}
