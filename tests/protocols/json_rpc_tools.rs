//! Scenarios that speak plain JSON-RPC, against scripted servers and another daemon.

use std::net::SocketAddr;
use std::time::Duration;

use callsheet::config::Config;
use callsheet::model::Bounds;
use callsheet::protocols::json_rpc_tools::decode;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::support::assert_empty;
use crate::support::daemon::{Daemon, Home, NEVER, Scenario, configured};
use crate::support::rpc_server::{RpcServer, listed, offer};
use crate::support::scripted::{Reply, Scripted};
use crate::support::serving::Answer;
use crate::support::upstream_server::{MIB, UpstreamServer};

/// An answer that fits `server/identity` and `tools/list`.
fn both(identity: &str, tools: &[&str]) -> Reply {
    let tool = |name: &&str| json!({"name": name, "description": "Does it", "inputSchema": {"type": "object"}});
    let tools: Vec<Value> = tools.iter().map(tool).collect();
    Reply::json(
        &json!({"jsonrpc": "2.0", "result": {"server_id": identity, "tools": tools}, "id": 1}),
    )
}

#[test]
fn a_hyphen_in_a_name_and_a_server_without_a_name_are_no_mistakes() {
    let of = |name: &str| {
        let tool = json!({"name": name, "description": "Adds", "inputSchema": {"type": "object", "properties": {}}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}}).to_string();
        let sent = decode(body.as_bytes(), Bounds::NONE)
            .unwrap()
            .manifest
            .sent_findings;
        sent.get()
            .unwrap()
            .iter()
            .map(|finding| finding.code.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("get-sum"), [""; 0]);
    assert_eq!(of("get sum"), ["tool-name"]);
}

/// A daemon with one scenario at this server, which is polled once.
async fn daemon_with(server: &Scripted, protocol: Option<&str>) -> (Home, Daemon) {
    daemon_at(server.address(), protocol).await
}

async fn daemon_at(address: SocketAddr, protocol: Option<&str>) -> (Home, Daemon) {
    let home = Home::new();
    let mut config = home.config(&[]);
    config.refresh.min_interval = NEVER;
    config.refresh.max_interval = NEVER;
    config.scenarios = vec![configured("plain", address)];
    config.scenarios[0].protocol = protocol.map(str::to_owned);
    (home, Daemon::ready(config).await)
}

/// A configuration with one scenario that speaks JSON-RPC and is polled often.
fn polling_often(home: &Home, address: SocketAddr) -> Config {
    let mut config = home.config(&[]);
    let often = Duration::from_millis(20);
    (config.refresh.min_interval, config.refresh.default_lifetime) = (often, often);
    config.refresh.max_interval = NEVER;
    config.scenarios = vec![configured("plain", address)];
    config.scenarios[0].protocol = Some("json-rpc".into());
    config
}

#[tokio::test]
async fn the_list_is_requested_again_only_when_the_identity_changes() {
    let server = Scripted::saying(both("a", &["one"]));
    let home = Home::new();
    let daemon = Daemon::ready(polling_often(&home, server.address())).await;
    daemon.until_tools(&["one"]).await;
    // A list could not be read any more.
    server.say(Reply::json(
        &json!({"jsonrpc": "2.0", "result": {"server_id": "a"}, "id": 1}),
    ));
    server.until_asked(server.count() + 10).await;
    let health = daemon.json("/api/v1/scenarios/plain").await;
    assert_eq!(health["last_error"], Value::Null, "{health}");
    server.say(both("b", &["one", "two"]));
    daemon.until_tools(&["one", "two"]).await;
    // A person who wants the list now gets the whole of it, whatever the identity is.
    server.say(both("b", &["three"]));
    daemon.send("POST", "/api/v1/scenarios/plain/refresh").await;
    daemon.until_tools(&["three"]).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_restart_requests_the_list_again_only_when_the_identity_changed() {
    let server = RpcServer::offering("a", &[listed("one")]).await;
    let home = Home::new();
    let config = || polling_often(&home, server.address);
    let daemon = Daemon::ready(config()).await;
    daemon.until_tools(&["one"]).await;
    daemon.stop().await;
    assert_eq!(server.count("tools/list"), 1);

    let known = server.count("server/identity");
    let daemon = Daemon::ready(config()).await;
    daemon.until_state("plain", "live").await;
    server.until("server/identity", known + 3).await;
    assert_eq!(daemon.tools("").await, ["one"]);
    daemon.stop().await;
    assert_eq!(server.count("tools/list"), 1, "the stored list stands");

    server.script(offer("b", &[listed("one"), listed("two")]));
    let daemon = Daemon::ready(config()).await;
    daemon.until_tools(&["one", "two"]).await;
    daemon.stop().await;
    assert_eq!(server.count("tools/list"), 2);

    // Other limits read another part of the same list.
    let mut narrow = config();
    narrow.refresh.max_tools = 1;
    let daemon = Daemon::ready(narrow).await;
    daemon.until_tools(&["one"]).await;
    daemon.stop().await;
    assert_eq!(server.count("tools/list"), 3);
}

#[tokio::test]
async fn another_server_and_a_list_with_findings_are_listed_after_a_restart() {
    let server = RpcServer::offering("a", &[listed("one"), json!({"name": ""})]).await;
    let home = Home::new();
    for times in 1..=2 {
        let daemon = Daemon::ready(polling_often(&home, server.address)).await;
        daemon.until_tools(&["one"]).await;
        let findings = daemon.findings("tool-quarantined").await;
        assert_eq!(findings.len(), 1, "start {times}: {findings:?}");
        daemon.stop().await;
        assert_eq!(server.count("tools/list"), times);
    }

    server.script(offer("a", &[listed("one")]));
    let home = Home::new();
    let daemon = Daemon::ready(polling_often(&home, server.address)).await;
    daemon.until_tools(&["one"]).await;
    daemon.stop().await;
    let other = RpcServer::offering("a", &[listed("three")]).await;
    let daemon = Daemon::ready(polling_often(&home, other.address)).await;
    daemon.until_tools(&["three"]).await;
    daemon.stop().await;
}

#[tokio::test]
async fn schemas_that_changed_under_one_identity_are_found_by_a_whole_list_each_longest_interval() {
    let server = RpcServer::offering("a", &[listed("one")]).await;
    let home = Home::new();
    let mut config = polling_often(&home, server.address);
    config.refresh.max_interval = Duration::from_secs(1);
    let daemon = Daemon::ready(config).await;
    daemon.until_tools(&["one"]).await;
    let mut wider = listed("one");
    wider["inputSchema"]["properties"]["lines"] =
        json!({"type": "integer", "description": "How many"});
    server.script(offer("a", &[wider]));
    let has_lines = |answer: &Answer| !answer.json()["parameters"]["properties"]["lines"].is_null();
    daemon.until("/api/v1/tools/one", has_lines).await;
    let findings = daemon.findings("server-identity").await;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        findings[0]["message"]
            .as_str()
            .unwrap()
            .contains("stayed the same"),
        "{findings:?}"
    );
    assert!(
        server.count("tools/list") < server.count("server/identity"),
        "most polls request the identity only"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_without_an_identity_is_listed_at_each_poll() {
    for status in [200, 404, 400, 500] {
        let mut offered = offer("a", &[listed("one")]);
        let server = RpcServer::start(move |method, params| match method {
            "server/identity" => Err(json!({"code": -32601, "message": "Method not found"})),
            _ => offered(method, params),
        })
        .await;
        server.send_errors_with(status);
        let home = Home::new();
        let daemon = Daemon::ready(polling_often(&home, server.address)).await;
        daemon.until_tools(&["one"]).await;
        server.until("tools/list", 4).await;
        assert_empty!(daemon.findings("server-identity").await);
        daemon.stop().await;
    }
}

/// The list changes while it is requested: it must never count under the identity of the other one.
#[tokio::test]
async fn a_list_that_changes_while_it_is_requested_is_requested_again() {
    let mut before = offer("a", &[listed("one")]);
    let mut after = offer("b", &[listed("one"), listed("two")]);
    let mut count = 0;
    let server = RpcServer::start(move |method, params| {
        count += 1;
        if count <= 2 {
            before(method, params)
        } else {
            after(method, params)
        }
    })
    .await;
    let (_home, daemon) = daemon_at(server.address, Some("json-rpc")).await;
    assert_eq!(daemon.tools("").await, ["one", "two"]);
    assert_eq!(server.count("tools/list"), 2);
    assert_eq!(server.count("server/identity"), 3);
    assert_empty!(daemon.findings("server-identity").await);
    daemon.stop().await;
}

#[tokio::test]
async fn tools_of_a_server_are_called_with_its_own_results_and_errors() {
    let server = RpcServer::offering("a", &[listed("one"), listed("fails")]).await;
    let home = Home::new();
    let daemon = Daemon::ready(polling_often(&home, server.address)).await;
    daemon.until_tools(&["fails", "one"]).await;
    let call = |tool: &str| json!({"tool_name": tool, "arguments": {"path": "/tmp/a"}});
    let answer = daemon
        .send_json("POST", "/api/v1/tools/execute", &call("one"))
        .await
        .json();
    assert_eq!(
        answer["result"],
        json!({"called": "one", "with": {"path": "/tmp/a"}}),
        "{answer}"
    );
    let failed = daemon
        .send_json("POST", "/api/v1/tools/execute", &call("fails"))
        .await
        .json();
    assert_eq!(failed["success"], false, "{failed}");
    assert_eq!(failed["error"], "the disk is full", "{failed}");
    assert_eq!(failed["code"], "-32600", "{failed}");
    server.script(|_, _| Err(json!({"code": -1})));
    let failed = daemon
        .send_json("POST", "/api/v1/tools/execute", &call("one"))
        .await
        .json();
    assert_eq!(
        failed["error"], "the server gives no reason (error -1)",
        "{failed}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_server_that_nobody_named_is_found_after_all_other_protocols() {
    let answer = both("a", &["one"]);
    let server = Scripted::start(move |request| {
        if request.target() == "/rpc" {
            answer.clone()
        } else {
            Reply::status("404 Not Found")
        }
    });
    let (_home, daemon) = daemon_with(&server, None).await;
    daemon.until_tools(&["one"]).await;
    let health = daemon.json("/api/v1/scenarios/plain").await;
    assert_eq!(health["protocol"], "json-rpc", "{health}");
    daemon.stop().await;
}

#[tokio::test]
async fn an_identity_that_changes_with_each_answer_is_a_finding_and_the_tools_are_listed() {
    let mut count = 0;
    let server = Scripted::start(move |_| {
        count += 1;
        both(&count.to_string(), &["one"])
    });
    let (_home, daemon) = daemon_with(&server, Some("json-rpc")).await;
    daemon.until_tools(&["one"]).await;
    let findings = daemon.findings("server-identity").await;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        server.count() <= 6,
        "it gives up after some: {}",
        server.count()
    );
    daemon.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_none_costs_that_scenario_only() {
    let files = Scenario::of("files", &["read"]).await;
    let answer = |result: Value| json!({"jsonrpc": "2.0", "result": result, "id": 1});
    for (body, part) in [
        (
            json!({"jsonrpc": "2.0", "result": {"server_id": "a"}, "id": 7}),
            "another request",
        ),
        (
            json!({"jsonrpc": "2.0", "result": {"server_id": "a"}, "id": "1"}),
            "which was never sent",
        ),
        (
            json!({"jsonrpc": "2.0", "result": {"server_id": "a"}, "id": true}),
            "which was never sent",
        ),
        (
            json!({"jsonrpc": "2.0", "result": {"server_id": "a"}}),
            "another request",
        ),
        (
            json!({"jsonrpc": "2.0", "result": 1, "error": {"code": 1}, "id": 1}),
            "neither a request nor an answer",
        ),
        (
            json!({"jsonrpc": "2.0", "method": "ping", "id": 1}),
            "one JSON-RPC response",
        ),
        (json!([]), "one JSON-RPC response"),
        (
            json!([
                answer(json!({"server_id": "a"})),
                answer(json!({"server_id": "a"}))
            ]),
            "one JSON-RPC response",
        ),
        (answer(json!({"server_id": 7})), "server/identity"),
        (answer(json!([])), "server/identity"),
        (
            answer(json!({"server_id": "a"})),
            "`tools/list` cannot be read",
        ),
        (
            answer(json!({"server_id": "a", "tools": {}})),
            "in its list is an object, not a list",
        ),
        (
            answer(json!({"server_id": "a", "tools": "read"})),
            "in its list is a",
        ),
        (
            json!({"jsonrpc": "2.0", "error": {"code": -32601, "message": "no"}, "id": 1}),
            "refuses `tools/list`",
        ),
        (
            json!({"jsonrpc": "2.0", "error": {"code": "no"}, "id": 1}),
            "not a JSON-RPC message",
        ),
        (json!("text"), "JSON-RPC"),
    ] {
        let server = Scripted::saying(Reply::json(&body));
        let home = Home::new();
        let mut config = home.config(&[&files]);
        let mut plain = configured("plain", server.address());
        plain.protocol = Some("json-rpc".into());
        config.scenarios.push(plain);
        let daemon = Daemon::ready(config).await;
        daemon.until_tools(&["read"]).await;
        let health = daemon.json("/api/v1/scenarios/plain").await;
        let reason = health["last_error"].to_string();
        assert!(reason.contains(part), "{body}: {health}");
        let findings = daemon.findings("manifest-refused").await;
        assert!(
            matches!(&findings[..], [one] if one["scenario"] == "plain"),
            "{body}: {findings:?}"
        );
        daemon.stop().await;
    }
}

#[tokio::test]
async fn an_answer_without_end_costs_that_scenario_only() {
    let files = Scenario::of("files", &["read"]).await;
    let server = UpstreamServer::serving(|_, mut stream| {
        Box::pin(async move {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
            let list = r#"{"jsonrpc":"2.0","id":1,"result":{"server_id":"a","tools":["#;
            let mut sent = stream.write_all(format!("{head}{list}").as_bytes()).await;
            while sent.is_ok() {
                sent = stream
                    .write_all(br#"{"name":"a","description":"a"},"#)
                    .await;
            }
        })
    })
    .await;
    let home = Home::new();
    let mut config = home.config(&[&files]);
    config.refresh.max_body = MIB;
    let mut plain = configured(
        "plain",
        ([127, 0, 0, 1], server.url().port().unwrap()).into(),
    );
    plain.protocol = Some("json-rpc".into());
    config.scenarios.push(plain);
    let daemon = Daemon::ready(config).await;
    daemon.until_tools(&["read"]).await;
    let health = daemon.json("/api/v1/scenarios/plain").await;
    assert_eq!(health["last_error"]["kind"], "too-large", "{health}");
    let findings = daemon.findings("manifest-refused").await;
    assert!(
        matches!(&findings[..], [one] if one["scenario"] == "plain"),
        "{findings:?}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_malformed_tool_costs_that_tool_and_a_further_page_is_a_finding() {
    let bad = json!([7, null, {"name": 1}, {"name": "a", "description": {}}, {"name": "b", "inputSchema": "x"},
        {"name": "c", "inputSchema": {"type": "string"}}, []]);
    let tools = [bad.as_array().unwrap().as_slice(), &[listed("good")]].concat();
    let mut offered = offer("a", &tools);
    let server = RpcServer::start(move |method, params| {
        let mut result = offered(method, params)?;
        result["nextCursor"] = json!("2");
        Ok(result)
    })
    .await;
    let (_home, daemon) = daemon_at(server.address, Some("json-rpc")).await;
    daemon.until_tools(&["good"]).await;
    assert_eq!(daemon.findings("tool-quarantined").await.len(), 7);
    let findings = daemon.findings("paging").await;
    assert!(
        findings[0]["message"]
            .as_str()
            .unwrap()
            .contains("tools are missing"),
        "{findings:?}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn another_daemon_is_listed_and_called_over_json_rpc() {
    let files = Scenario::of("files", &["read"]).await;
    let home = Home::new();
    let own_home = Home::new();
    let other = home.start(&[&files]).await;
    other.until_tools(&["read"]).await;
    let mut config = own_home.config(&[]);
    let mut plain = configured("plain", other.address);
    plain.protocol = Some("json-rpc".into());
    config.scenarios = vec![plain];
    let daemon = Daemon::ready(config).await;
    daemon.until_tools(&["read"]).await;
    let call = json!({"tool_name": "read", "arguments": {}});
    let answer = daemon
        .send_json("POST", "/api/v1/tools/execute", &call)
        .await
        .json();
    let direct = other
        .send_json("POST", "/api/v1/tools/execute", &call)
        .await
        .json();
    assert_eq!(answer["result"], direct["result"], "{answer} and {direct}");
    assert_eq!(answer["success"], direct["success"]);
    daemon.stop().await;
    other.stop().await;
}
