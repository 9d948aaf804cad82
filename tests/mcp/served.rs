//! The daemon as an MCP server: both eras at one address, its list from memory, its calls, and
//! changes as they happen.

use std::net::SocketAddr;

use callsheet::model::{ApprovalPolicy, SettingsPatch};
use serde_json::{Value, json};

use crate::support::house::House;
use crate::support::mcp_client::{META, McpClient, rpc};
use crate::support::mcp_server::{McpServer, legacy, modern, tool};
use crate::support::serving::ask;

/// Sends a message and gives the status and the answer.
pub(crate) async fn post(
    address: SocketAddr,
    target: &str,
    headers: &[(&str, &str)],
    message: &Value,
) -> (u16, Value) {
    let headers: Vec<_> = headers
        .iter()
        .copied()
        .chain([("content-type", "application/json")])
        .collect();
    let answer = ask(address, "POST", target, &headers, &message.to_string()).await;
    (
        answer.status,
        serde_json::from_slice(&answer.body).unwrap_or_default(),
    )
}

/// The answer to a request of a legacy client.
pub(crate) async fn old(address: SocketAddr, method: &str, params: Value) -> Value {
    McpClient::legacy(address, "2025-06-18", json!({}))
        .await
        .request(method, params)
        .await
        .1
}

/// The status and the answer of a request of a modern client.
pub(crate) async fn new(address: SocketAddr, method: &str, params: Value) -> (u16, Value) {
    McpClient::modern(address, json!({}))
        .request(method, params)
        .await
}

pub(crate) async fn served(server: &McpServer) -> (House, SocketAddr) {
    let house = House::of(&[("files", server.url())]).await;
    let address = house.serve().await;
    (house, address)
}

#[tokio::test]
async fn both_eras_get_the_same_list_at_one_address() {
    let server =
        McpServer::start(legacy("2025-11-25", &json!([tool("read"), tool("write")]))).await;
    let (house, address) = served(&server).await;

    let greeting = rpc(
        "initialize",
        &json!({"protocolVersion": "2025-06-18", "capabilities": {}}),
    );
    let (_, greeting) = post(address, "/mcp", &[], &greeting).await;
    assert_eq!(greeting["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(greeting["result"]["serverInfo"]["name"], "callsheet");
    let old = McpClient::legacy(address, "2025-06-18", json!({})).await;
    let listed = old.result("tools/list", json!({})).await;
    assert_eq!(
        listed["tools"].as_array().map(Vec::len),
        Some(2),
        "{listed}"
    );

    let new = McpClient::modern(address, json!({}));
    let discovered = new.result("server/discover", json!({})).await;
    assert_eq!(
        discovered["supportedVersions"],
        json!(["2026-07-28"]),
        "{discovered}"
    );
    assert_eq!(new.result("tools/list", json!({})).await, listed);
    assert_eq!(listed["resultType"], "complete");
    assert_eq!(old.result("ping", json!({})).await, json!({}));
    house.finish().await;
}

#[tokio::test]
async fn a_call_takes_the_way_of_every_call_and_its_failures_can_be_read_by_a_model() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = served(&server).await;
    let old = McpClient::legacy(address, "2025-11-25", json!({})).await;
    let new = McpClient::modern(address, json!({}));
    let called = new
        .result(
            "tools/call",
            json!({"name": "files__read", "arguments": {"a": 1}}),
        )
        .await;
    assert_eq!(
        called["structuredContent"],
        json!({"arguments": {"a": 1}}),
        "{called}"
    );
    assert_eq!(called["content"][0]["text"], "done");

    let (_, called) = old.request("tools/call", json!({"name": "nothing"})).await;
    assert_eq!(called["error"]["code"], -32_602, "{called}");
    let mut own = modern(&json!([tool("read")]));
    server.script(move |came| {
        if came.method() == "tools/call" {
            came.error(200, -32_000, "disk full")
        } else {
            own(came)
        }
    });
    let (_, called) = old
        .request("tools/call", json!({"name": "files__read"}))
        .await;
    assert_eq!(
        called["error"],
        json!({"code": -32_000, "message": "disk full"}),
        "{called}"
    );

    house
        .prefer(
            "global",
            "tool:files/read",
            SettingsPatch {
                approval: Some(Some(ApprovalPolicy::Require)),
                ..SettingsPatch::default()
            },
        )
        .await;
    let called = old
        .result("tools/call", json!({"name": "files__read"}))
        .await;
    let text = called["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        called["isError"] == true && text.contains("waits for the approval"),
        "{called}"
    );
    house.finish().await;
}

/// The headers of a request for the list of tools.
const MODERN: [(&str, &str); 2] = [
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/list"),
];

/// The same with a version that does not exist.
const ODD: [(&str, &str); 2] = [
    ("mcp-protocol-version", "v999.0.0"),
    ("mcp-method", "tools/list"),
];

/// The parameters of a request that says this version in its body.
fn meta(version: &str) -> Value {
    json!({"_meta": {format!("{META}protocolVersion"): version, format!("{META}clientCapabilities"): {}}})
}

/// Unknown methods, broken messages and headers are refused, each in its own way.
async fn assert_single_refusals(address: SocketAddr) {
    let (status, answer) = McpClient::modern(address, json!({}))
        .request("prompts/nothing", json!({}))
        .await;
    assert_eq!(status, 404);
    assert_eq!(answer["error"]["code"], -32_601);
    let (_, answer) = post(address, "/mcp", &ODD, &rpc("tools/list", &meta("v999.0.0"))).await;
    assert_eq!(
        answer["error"]["data"],
        json!({"supported": ["2026-07-28"], "requested": "v999.0.0"})
    );
    let broken = ask(
        address,
        "POST",
        "/mcp",
        &[("content-type", "application/json")],
        "{",
    )
    .await;
    assert_eq!(broken.status, 400);
    assert_eq!(broken.json()["error"]["code"], -32_700);
    let foreign = ask(
        address,
        "POST",
        "/mcp",
        &[("origin", "http://evil.example.com")],
        "{}",
    )
    .await;
    assert_eq!(foreign.status, 403);
    let twice = [MODERN[0], MODERN[1], MODERN[1]];
    let (status, answer) = post(
        address,
        "/mcp",
        &twice,
        &rpc("tools/list", &meta("2026-07-28")),
    )
    .await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(answer["error"]["code"], -32_020, "{answer}");
}

#[tokio::test]
async fn a_request_that_contradicts_itself_gets_the_code_of_the_protocol() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = served(&server).await;
    let old = McpClient::legacy(address, "2025-11-25", json!({})).await;
    let session = [("mcp-session-id", old.session())];
    for (headers, sent, status, code) in [
        (
            &MODERN[..0],
            rpc("tools/list", &meta("2026-07-28")),
            400,
            -32_020,
        ),
        (&MODERN[..], rpc("tools/list", &json!({})), 400, -32_602),
        (
            &MODERN[..],
            rpc("tools/list", &meta("v999.0.0")),
            400,
            -32_020,
        ),
        (&ODD[..], rpc("tools/list", &meta("v999.0.0")), 400, -32_022),
        (
            &session[..],
            rpc("prompts/nothing", &json!({})),
            200,
            -32_601,
        ),
        (
            &session[..],
            rpc("tools/list", &json!({"cursor": "x"})),
            200,
            -32_602,
        ),
        (&session[..], json!([rpc("ping", &json!({}))]), 400, -32_600),
        (
            &session[..],
            json!({"jsonrpc": "2.0", "id": null, "method": "ping"}),
            400,
            -32_600,
        ),
        (
            &session[..],
            json!({"jsonrpc": "2.0", "id": {}, "method": "ping"}),
            400,
            -32_600,
        ),
        (&[][..], rpc("tools/list", &json!({})), 400, -32_600),
        (
            &[("mcp-session-id", "made-up")][..],
            rpc("tools/list", &json!({})),
            404,
            -31_004,
        ),
        (&[][..], json!({"jsonrpc": "2.0"}), 400, -32_600),
        (&[][..], json!("text"), 400, -32_600),
    ] {
        let (got, answer) = post(address, "/mcp", headers, &sent).await;
        assert_eq!(got, status, "{sent}: {answer}");
        assert_eq!(answer["error"]["code"], code, "{sent}: {answer}");
    }
    assert_single_refusals(address).await;
    let large = rpc("tools/list", &json!({"pad": "x".repeat(2 << 20)}));
    let (status, answer) = post(address, "/mcp", &session, &large).await;
    assert_eq!(status, 413, "{answer}");
    house.finish().await;
}

#[tokio::test]
async fn arguments_in_headers_are_compared_with_the_listed_schema() {
    let schema = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let server = McpServer::start(modern(&json!([{"name": "read", "inputSchema": schema}]))).await;
    let (house, address) = served(&server).await;
    let params = json!({"name": "files__read", "arguments": {"region": "eu"},
        "_meta": {format!("{META}protocolVersion"): "2026-07-28", format!("{META}clientCapabilities"): {}}});
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "files__read"),
    ];
    for (region, status) in [(None, 400), (Some("us"), 400), (Some(" eu "), 200)] {
        let headers: Vec<_> = headers
            .iter()
            .copied()
            .chain(region.map(|region| ("mcp-param-region", region)))
            .collect();
        let (got, answer) = post(address, "/mcp", &headers, &rpc("tools/call", &params)).await;
        assert_eq!(got, status, "{answer}");
        assert!(
            status == 200 || answer["error"]["code"] == -32_020,
            "{answer}"
        );
    }
    house.finish().await;
}

#[tokio::test]
async fn the_query_and_the_profile_of_the_address_narrow_the_list() {
    let server = McpServer::start(modern(&json!([tool("read"), tool("write")]))).await;
    let (house, address) = served(&server).await;
    let client = McpClient::modern(address, json!({}));
    let listed = client
        .at("/mcp?max_tools=1")
        .result("tools/list", json!({}))
        .await;
    assert_eq!(listed["tools"].as_array().map(Vec::len), Some(1));
    let (status, problem) = post(
        address,
        "/mcp?nonsense=1",
        &[],
        &rpc("tools/list", &json!({})),
    )
    .await;
    assert!(
        status == 400
            && problem["detail"]
                .as_str()
                .is_some_and(|detail| detail.contains("nonsense")),
        "{problem}"
    );
    house.finish().await;
}

#[tokio::test]
async fn a_client_of_either_era_hears_that_the_list_changed() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = served(&server).await;
    let new = McpClient::modern(address, json!({}));
    let old = McpClient::legacy(address, "2025-06-18", json!({})).await;
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = new
        .follow(&json!("L1"), "subscriptions/listen", params)
        .await;
    let mut older = old.listen().await;
    let acknowledged = listening.next().await.unwrap();
    assert_eq!(
        acknowledged["method"], "notifications/subscriptions/acknowledged",
        "{acknowledged}"
    );
    assert_eq!(
        acknowledged["params"]["_meta"][format!("{META}subscriptionId")],
        "L1"
    );

    server.until("subscriptions/listen", 1).await;
    server.script(modern(&json!([tool("read"), tool("write")])));
    server.push(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));

    assert_eq!(
        listening.next().await.unwrap()["method"],
        "notifications/tools/list_changed"
    );
    assert_eq!(
        older.next().await.unwrap(),
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    );
    house.finish().await;
}

#[tokio::test]
async fn a_client_hears_of_a_change_that_is_larger_than_what_is_remembered() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let house = House::with(&[("files", server.url())], |config| config.events.ring = 2).await;
    let address = house.serve().await;
    let client = McpClient::modern(address, json!({}));
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = client
        .follow(&json!("L1"), "subscriptions/listen", params)
        .await;
    listening.next().await.unwrap();
    server.until("subscriptions/listen", 1).await;
    let many: Vec<_> = (0..100)
        .map(|number| tool(&format!("write_{number}")))
        .collect();
    server.script(modern(&json!(many)));
    server.push(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    assert_eq!(
        listening.next().await.unwrap()["method"],
        "notifications/tools/list_changed"
    );
    house.finish().await;
}
