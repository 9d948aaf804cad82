//! The daemon as an MCP server: both eras at one address, its list from memory, its calls, and changes as they happen.

use std::net::SocketAddr;

use callsheet::model::{ApprovalPolicy, SettingsPatch};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::support::callee::PATIENCE;
use crate::support::house::House;
use crate::support::mcp_server::{McpServer, legacy, modern, tool};
use crate::support::serving::ask;

pub(crate) const META: &str = "io.modelcontextprotocol/";

/// Sends a message and gives the status and the answer.
pub(crate) async fn post(address: SocketAddr, target: &str, headers: &[(&str, &str)], message: &Value) -> (u16, Value) {
    let headers: Vec<_> = headers.iter().copied().chain([("content-type", "application/json")]).collect();
    let answer = ask(address, "POST", target, &headers, &message.to_string()).await;
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
}

/// A request of the older era.
pub(crate) async fn old(address: SocketAddr, method: &str, params: Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    post(address, "/mcp", &[("mcp-protocol-version", "2025-06-18")], &message).await.1
}

/// A request of the modern era, with this name in its header if it has one.
pub(crate) async fn new(address: SocketAddr, method: &str, mut params: Value) -> (u16, Value) {
    params["_meta"] = json!({format!("{META}protocolVersion"): "2026-07-28", format!("{META}clientCapabilities"): {}});
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    if !name.is_empty() {
        headers.push(("mcp-name", &name));
    }
    post(address, "/mcp", &headers, &json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params})).await
}

pub(crate) async fn served(server: &McpServer) -> (House, SocketAddr) {
    let house = House::of(&[("files", server.url())]).await;
    let address = house.serve().await;
    (house, address)
}

#[tokio::test]
async fn both_eras_get_the_same_list_at_one_address() {
    let server = McpServer::start(legacy("2025-11-25", &json!([tool("read"), tool("write")]))).await;
    let (house, address) = served(&server).await;

    let greeting = old(address, "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}})).await;
    assert_eq!(greeting["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(greeting["result"]["serverInfo"]["name"], "callsheet");
    let listed = old(address, "tools/list", json!({})).await;
    assert_eq!(listed["id"], 7, "{listed}");
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(2), "{listed}");

    let (status, discovered) = new(address, "server/discover", json!({})).await;
    assert_eq!(status, 200, "{discovered}");
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]), "{discovered}");
    let (_, again) = new(address, "tools/list", json!({})).await;
    assert_eq!(again["id"], "a");
    assert_eq!(again["result"], listed["result"]);
    assert_eq!(again["result"]["resultType"], "complete");
    assert_eq!(old(address, "ping", json!({})).await["result"], json!({}));
    house.finish().await;
}

#[tokio::test]
async fn a_call_takes_the_way_of_every_call_and_its_failures_can_be_read_by_a_model() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = served(&server).await;
    let (_, called) = new(address, "tools/call", json!({"name": "read", "arguments": {"a": 1}})).await;
    assert_eq!(called["result"]["structuredContent"], json!({"arguments": {"a": 1}}), "{called}");
    assert_eq!(called["result"]["content"][0]["text"], "done");

    let called = old(address, "tools/call", json!({"name": "nothing"})).await;
    assert_eq!(called["error"]["code"], -32_602, "{called}");
    let mut own = modern(&json!([tool("read")]));
    server.script(
        move |came| if came.method() == "tools/call" { came.error(200, -32_000, "disk full") } else { own(came) },
    );
    let called = old(address, "tools/call", json!({"name": "read"})).await;
    assert_eq!(called["result"]["isError"], true);
    assert_eq!(called["result"]["content"][0]["text"], "disk full (-32000)");

    house
        .prefer(
            "global",
            "tool:files/read",
            SettingsPatch { approval: Some(Some(ApprovalPolicy::Require)), ..SettingsPatch::default() },
        )
        .await;
    let called = old(address, "tools/call", json!({"name": "read"})).await;
    let text = called["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(called["result"]["isError"] == true && text.contains("waits for the approval"), "{called}");
    house.finish().await;
}

#[tokio::test]
async fn a_request_that_contradicts_itself_gets_the_code_of_the_protocol() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = served(&server).await;
    let message = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let meta = |version: &str| json!({"_meta": {format!("{META}protocolVersion"): version, format!("{META}clientCapabilities"): {}}});
    let modern = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    let odd = [("mcp-protocol-version", "v999.0.0"), ("mcp-method", "tools/list")];
    for (headers, sent, status, code) in [
        (&modern[..0], message("tools/list", meta("2026-07-28")), 400, -32_020),
        (&modern[..], message("tools/list", json!({})), 400, -32_602),
        (&modern[..], message("tools/list", meta("v999.0.0")), 400, -32_020),
        (&odd[..], message("tools/list", meta("v999.0.0")), 400, -32_022),
        (&[][..], message("prompts/list", json!({})), 200, -32_601),
        (&[][..], message("tools/list", json!({"cursor": "x"})), 200, -32_602),
        (&[][..], json!({"jsonrpc": "2.0"}), 400, -32_700),
        (&[][..], json!("text"), 400, -32_700),
    ] {
        let (got, answer) = post(address, "/mcp", headers, &sent).await;
        assert_eq!(got, status, "{sent}: {answer}");
        assert_eq!(answer["error"]["code"].as_i64(), Some(code), "{sent}: {answer}");
    }
    let (status, answer) = new(address, "prompts/list", json!({})).await;
    assert_eq!(status, 404);
    assert_eq!(answer["error"]["code"], -32_601);
    let (_, answer) = post(address, "/mcp", &odd, &message("tools/list", meta("v999.0.0"))).await;
    assert_eq!(answer["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "v999.0.0"}));
    let (status, _) =
        post(address, "/mcp", &[], &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    assert_eq!(status, 202);
    let batch = json!([message("ping", json!({})), {"jsonrpc": "2.0", "method": "x"}, message("none", json!({}))]);
    let (_, answers) = post(address, "/mcp", &[], &batch).await;
    assert_eq!(answers[0]["result"], json!({}));
    assert_eq!(answers[1]["error"]["code"], -32_601);
    let foreign = ask(address, "POST", "/mcp", &[("origin", "http://evil.example.com")], "{}").await;
    assert_eq!(foreign.status, 403);
    house.finish().await;
}

#[tokio::test]
async fn the_query_and_the_profile_of_the_address_narrow_the_list() {
    let server = McpServer::start(modern(&json!([tool("read"), tool("write")]))).await;
    let (house, address) = served(&server).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let (_, all) = post(address, "/mcp?max_tools=1", &[], &list).await;
    assert_eq!(all["result"]["tools"].as_array().map(Vec::len), Some(1));
    let (status, problem) = post(address, "/mcp?nonsense=1", &[], &list).await;
    assert!(status == 400 && problem["detail"].as_str().is_some_and(|detail| detail.contains("nonsense")), "{problem}");
    house.finish().await;
}

/// Opens a stream and gives the data of its events.
pub(crate) async fn events(address: SocketAddr, request: String) -> impl AsyncFnMut() -> Value {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    async move || {
        let next = async {
            loop {
                let line = lines.next_line().await.unwrap().expect("the stream goes on");
                if let Some(data) = line.strip_prefix("data: ") {
                    return serde_json::from_str(data).unwrap();
                }
            }
        };
        tokio::time::timeout(PATIENCE, next).await.expect("an event")
    }
}

#[tokio::test]
async fn a_client_of_either_era_hears_that_the_list_changed() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = served(&server).await;
    let params = json!({"notifications": {"toolsListChanged": true},
        "_meta": {format!("{META}protocolVersion"): "2026-07-28", format!("{META}clientCapabilities"): {}}});
    let body = json!({"jsonrpc": "2.0", "id": "L1", "method": "subscriptions/listen", "params": params}).to_string();
    let mut listening = events(address, format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )).await;
    let mut older =
        events(address, format!("GET /mcp HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n")).await;
    let acknowledged = listening().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    assert_eq!(acknowledged["params"]["_meta"][format!("{META}subscriptionId")], "L1");

    server.until("subscriptions/listen", 1).await;
    server.script(modern(&json!([tool("read"), tool("write")])));
    server.push(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));

    assert_eq!(listening().await["method"], "notifications/tools/list_changed");
    assert_eq!(older().await, json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    house.finish().await;
}
