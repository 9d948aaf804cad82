//! Nothing of a caller's request head goes out to a scenario.

use std::collections::BTreeMap;

use http::HeaderMap;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::json;

use crate::support::callee::{Callee, manifest, tool};
use crate::support::house::House;
use crate::support::mcp_client::META;
use crate::support::mcp_server::{self, McpServer, modern};
use crate::support::serving::ask;

/// What every value has in it.
const MARKER: &str = "leak";
/// Rounds of both kinds of call, and headers of one request: 4,096 in all.
const ROUNDS: usize = 64;
const HEADERS: usize = 32;

/// Headers that proxies and programs pass on elsewhere.
const KNOWN: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "x-forwarded-for",
    "x-forwarded-host",
    "forwarded",
    "via",
    "traceparent",
    "tracestate",
    "baggage",
    "x-request-id",
    "x-user",
    "user-agent",
    "referer",
    "idempotency-key",
    "accept-language",
    "if-none-match",
    "if-modified-since",
    "last-event-id",
    "mcp-param-region",
    "x-callsheet-identity",
];

/// Headers with distinct names.
fn headers() -> impl Strategy<Value = BTreeMap<String, String>> {
    let name = prop_oneof![1 => select(KNOWN.to_vec()).prop_map(str::to_owned), 3 => "x-[a-z][a-z0-9-]{0,20}z"];
    let value = "[ -~]{0,40}".prop_map(|text| format!("{MARKER}{text}{MARKER}"));
    proptest::collection::btree_map(name, value, HEADERS)
}

fn assert_sealed(sent: &BTreeMap<String, String>, reached: &HeaderMap) {
    for (name, value) in reached {
        assert!(
            !value
                .as_bytes()
                .windows(MARKER.len())
                .any(|part| part == MARKER.as_bytes()),
            "{name}: {value:?}"
        );
        assert!(
            !sent.contains_key(name.as_str()) || KNOWN.contains(&name.as_str()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn no_header_of_a_caller_reaches_a_scenario() {
    let files = Callee::echo(manifest("files", &[tool("say")])).await;
    let docs = McpServer::start(modern(&json!([mcp_server::tool("find")]))).await;
    let house = House::of(&[("files", files.url()), ("docs", docs.url())]).await;
    let address = house.serve().await;
    let mut runner = TestRunner::deterministic();
    for round in 1..=ROUNDS {
        let sent = headers().new_tree(&mut runner).unwrap().current();
        let mut lines: Vec<(&str, &str)> = sent
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        lines.push(("content-type", "application/json"));

        let body = json!({"tool_name": "say", "arguments": {"n": round}}).to_string();
        let answer = ask(address, "POST", "/api/v1/tools/execute", &lines, &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");

        let meta = json!({
            format!("{META}protocolVersion"): "2026-07-28",
            format!("{META}clientCapabilities"): {},
            format!("{META}clientInfo"): {"name": "tester", "version": "1"},
        });
        let params = json!({"name": "find", "arguments": {}, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": round, "method": "tools/call", "params": params})
            .to_string();
        lines.extend([
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "find"),
        ]);
        let answer = ask(address, "POST", "/mcp", &lines, &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");

        assert_sealed(&sent, &files.ran().pop().unwrap().headers);
        assert_sealed(&sent, &docs.of("tools/call").pop().unwrap().headers);
    }
    assert_eq!(files.ran().len(), ROUNDS);
    assert_eq!(docs.of("tools/call").len(), ROUNDS);
    house.finish().await;
}
