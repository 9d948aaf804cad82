//! Sessions of legacy clients: signed ids, their end, batches, and limits.

#![allow(
    clippy::disallowed_methods,
    reason = "the answers of this test's own daemon are small"
)]

use std::net::SocketAddr;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::relayed::offering;
use crate::support::house::House;
use crate::support::mcp_client::{McpClient, rpc};
use crate::support::mcp_server::{Answer, McpServer, legacy, modern, tool};
use crate::support::serving::ask;

/// As many sessions as are remembered.
const MOST_SESSIONS: usize = 4_096;

/// A client that keeps its connections: of thousands of requests.
fn http_client() -> reqwest::Client {
    // Fails when another test of this program installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Begins a session and sends one request in it.
async fn used_session(http: &reqwest::Client, address: SocketAddr) {
    let post = |message: &Value| {
        let request = http
            .post(format!("http://{address}/mcp"))
            .header("content-type", "application/json");
        request
            .header("accept", "application/json, text/event-stream")
            .body(message.to_string())
    };
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let begun = post(&rpc("initialize", &params)).send().await.unwrap();
    let session = begun.headers()["mcp-session-id"].clone();
    begun.bytes().await.unwrap();
    let ping = post(&rpc("ping", &json!({}))).header("mcp-session-id", session);
    let answered = ping
        .header("mcp-protocol-version", "2025-11-25")
        .send()
        .await
        .unwrap();
    assert_eq!(answered.status(), 200);
    answered.bytes().await.unwrap();
}

#[tokio::test]
async fn a_session_survives_a_restart_and_no_other_key_knows_it() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let house = House::of(&[("files", server.url())]).await;
    let client = McpClient::legacy(house.serve().await, "2025-11-25", json!({})).await;
    client.result("tools/list", json!({})).await;

    let house = house.restart().await;
    let again = client.of_daemon(house.serve().await);
    again.result("ping", json!({})).await;

    let stranger = House::of(&[]).await;
    let (status, answer) = client
        .of_daemon(stranger.serve().await)
        .request("ping", json!({}))
        .await;
    assert_eq!(status, 404);
    assert_eq!(answer["error"]["code"], -31_004, "{answer}");
    stranger.finish().await;
    house.finish().await;
}

#[tokio::test]
async fn a_session_that_its_client_ended_is_not_known_and_its_stream_ends() {
    let house = House::of(&[]).await;
    let client = McpClient::legacy(house.serve().await, "2025-06-18", json!({})).await;
    let mut stream = client.listen().await;
    assert_eq!(client.end().await, 204);
    assert_eq!(stream.next().await, None);
    assert_eq!(client.end().await, 404);
    assert_eq!(client.request("ping", json!({})).await.0, 404);
    assert_eq!(client.listen().await.status, 404);
    house.finish().await;
}

#[tokio::test]
async fn get_and_delete_are_for_sessions_only() {
    let house = House::of(&[]).await;
    let address = house.serve().await;
    let client = McpClient::legacy(address, "2025-06-18", json!({})).await;
    for method in ["GET", "DELETE"] {
        assert_eq!(
            ask(address, method, "/mcp", &[], "").await.status,
            405,
            "{method}"
        );
        let modern = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-session-id", client.session()),
        ];
        assert_eq!(
            ask(address, method, "/mcp", &modern, "").await.status,
            405,
            "{method}"
        );
    }
    house.finish().await;
}

#[tokio::test]
async fn only_one_revision_has_batches() {
    let house = House::of(&[]).await;
    let address = house.serve().await;
    let batch = json!([rpc("ping", &json!({})), {"jsonrpc": "2.0", "method": "notifications/x"}, rpc("none", &json!({}))]);
    let client = McpClient::legacy(address, "2025-03-26", json!({})).await;
    let answers = client.open(&batch).await.next().await.unwrap();
    assert_eq!(answers[0]["result"], json!({}));
    assert_eq!(answers[1]["error"]["code"], -32_601);
    assert_eq!(client.open(&json!([])).await.status, 400);
    for revision in ["2025-06-18", "2025-11-25"] {
        let client = McpClient::legacy(address, revision, json!({})).await;
        assert_eq!(client.open(&batch).await.status, 400, "{revision}");
    }
    house.finish().await;
}

#[tokio::test]
async fn levels_of_log_messages_are_those_of_the_protocol() {
    let house = House::of(&[]).await;
    let client = McpClient::legacy(house.serve().await, "2025-11-25", json!({})).await;
    assert_eq!(
        client
            .result("logging/setLevel", json!({"level": "warning"}))
            .await,
        json!({})
    );
    let (_, answer) = client
        .request("logging/setLevel", json!({"level": "loud"}))
        .await;
    assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    let modern = McpClient::modern(house.serve().await, json!({}));
    assert_eq!(
        modern
            .request("logging/setLevel", json!({"level": "warning"}))
            .await
            .0,
        404
    );
    house.finish().await;
}

/// A second session under the same key would not get what the request of the first one has begun.
#[tokio::test]
async fn a_session_is_the_same_after_its_request_although_many_others_came_meanwhile() {
    let capabilities = json!({"resources": {"subscribe": true}});
    let mut own = offering(
        legacy("2025-11-25", &json!([])),
        capabilities,
        &["test://a"],
    );
    let (open, gate) = watch::channel(false);
    let server = McpServer::start(move |came| match came.method() {
        "resources/subscribe" => Answer::After(gate.clone(), Box::new(came.result(&json!({})))),
        _ => own(came),
    })
    .await;
    let house = House::of(&[("docs", server.url())]).await;
    let address = house.serve().await;
    server.until("GET", 1).await;
    let client = McpClient::legacy(address, "2025-11-25", json!({})).await;
    let subscribing = client.result("resources/subscribe", json!({"uri": "test://a"}));
    let meanwhile = async {
        server.until("resources/subscribe", 1).await;
        let http = http_client();
        let others =
            futures_util::stream::iter(0..MOST_SESSIONS).map(|_| used_session(&http, address));
        others.buffer_unordered(16).collect::<()>().await;
        open.send(true).unwrap();
    };
    let (subscribed, ()) = tokio::join!(subscribing, meanwhile);
    assert_eq!(subscribed, json!({}));
    let mut listening = client.listen().await;
    let updated = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "test://a"}});
    server.push(updated.clone());
    assert_eq!(listening.next().await.unwrap(), updated);
    house.finish().await;
}

#[tokio::test]
async fn a_client_has_a_limited_number_of_streams_and_a_closed_one_makes_room() {
    let house = House::with(&[], |config| config.mcp_face.max_streams = 2).await;
    let address = house.serve().await;
    let client = McpClient::legacy(address, "2025-11-25", json!({})).await;
    let first = client.listen().await;
    let _second = client.listen().await;
    let mut refused = client.listen().await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.next().await.unwrap()["error"]["code"], -31_003);
    let other = McpClient::legacy(address, "2025-11-25", json!({})).await;
    assert_eq!(other.listen().await.status, 200);
    drop(first);
    // The daemon learns of the closed connection a moment later.
    for _ in 0..1_000 {
        if client.listen().await.status == 200 {
            return house.finish().await;
        }
        tokio::task::yield_now().await;
    }
    panic!("a closed stream makes room");
}
