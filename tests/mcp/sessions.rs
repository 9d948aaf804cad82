//! Sessions of legacy clients: signed ids, their end, batches, and limits.

use serde_json::json;

use crate::support::house::House;
use crate::support::mcp_client::{McpClient, rpc};
use crate::support::mcp_server::{McpServer, modern, tool};
use crate::support::serving::ask;

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
    let (status, answer) = client.of_daemon(stranger.serve().await).request("ping", json!({})).await;
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
        assert_eq!(ask(address, method, "/mcp", &[], "").await.status, 405, "{method}");
        let modern = [("mcp-protocol-version", "2026-07-28"), ("mcp-session-id", client.session())];
        assert_eq!(ask(address, method, "/mcp", &modern, "").await.status, 405, "{method}");
    }
    house.finish().await;
}

#[tokio::test]
async fn only_one_revision_has_batches() {
    let house = House::of(&[]).await;
    let address = house.serve().await;
    let batch =
        json!([rpc("ping", &json!({})), {"jsonrpc": "2.0", "method": "notifications/x"}, rpc("none", &json!({}))]);
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
    assert_eq!(client.result("logging/setLevel", json!({"level": "warning"})).await, json!({}));
    let (_, answer) = client.request("logging/setLevel", json!({"level": "loud"})).await;
    assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    let modern = McpClient::modern(house.serve().await, json!({}));
    assert_eq!(modern.request("logging/setLevel", json!({"level": "warning"})).await.0, 404);
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
