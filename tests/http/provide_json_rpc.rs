//! A Rust program that is called over JSON-RPC, and one that is still starting.

use callsheet::provide::{
    self, Parameter, Registry, RegistryConfig, StaticProvider, ToolDefinition,
};
use callsheet::runtime::{StopTrigger, Tasks};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::net::TcpListener;

use crate::support::daemon::{Daemon, Home, configured};
use crate::support::serving::{Answer, ask};

fn registry() -> Registry {
    let config = RegistryConfig {
        scenario_name: "workshop".to_owned(),
        ..RegistryConfig::default()
    };
    let registry = Registry::new(config).unwrap();
    let tool = |name: &str| ToolDefinition::new(name, format!("Does {name}")).unwrap();
    let saws = StaticProvider::new("saws")
        .runs(
            tool("cut").parameter("length", Parameter::integer("In millimetres").required()),
            |given: Value| async move {
                match given["length"].as_i64() {
                    Some(length) => Ok(json!({"cut": length})),
                    None => Err("the length is missing"),
                }
            },
        )
        .tool(tool("glue"));
    registry.register(saws);
    registry
}

/// The registry at a free port, until the returned trigger is used or dropped.
async fn serving(registry: &Registry) -> (SocketAddr, StopTrigger) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (trigger, stop) = StopTrigger::new();
    Tasks::new().spawn(provide::serve(listener, registry.clone(), async move {
        stop.wait().await;
    }));
    (address, trigger)
}

async fn post(address: SocketAddr, body: &str) -> Answer {
    ask(
        address,
        "POST",
        "/rpc",
        &[("content-type", "application/json")],
        body,
    )
    .await
}

async fn request(address: SocketAddr, method: &str, params: &Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    post(address, &body.to_string()).await.json()
}

#[tokio::test]
async fn one_handler_answers_all_methods() {
    let registry = registry();
    let (address, trigger) = serving(&registry).await;
    let listed = request(address, "tools/list", &json!([7])).await["result"]["tools"].clone();
    let glue = json!({
        "name": "glue",
        "description": "Does glue",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": false},
    });
    assert_eq!(listed[1], glue);
    assert_eq!(listed[0]["inputSchema"]["required"], json!(["length"]));
    let called = post(
        address,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"cut","arguments":{"length":8}},"id":"x"}"#,
    );
    assert_eq!(
        called.await.body,
        br#"{"jsonrpc":"2.0","result":{"cut":8},"id":"x"}"#
    );
    for (params, code, message) in [
        (json!({"name": "cut"}), -32600, "the length is missing"),
        (
            json!({"name": "nobody"}),
            -32600,
            "no tool is called `nobody`",
        ),
        (
            json!({"name": "glue"}),
            -32000,
            "glue is listed here, but this program does not run it",
        ),
        (json!({"name": 7}), -32602, "Missing 'name'"),
        (json!([]), -32602, "Missing 'name'"),
        (
            json!({"name": "cut", "arguments": [8]}),
            -32602,
            "Invalid parameters",
        ),
    ] {
        let error = request(address, "tools/call", &params).await["error"].clone();
        assert_eq!(error["code"], code, "{params}");
        assert_eq!(error["message"], message, "{params}");
    }
    let described =
        request(address, "tools/describe", &json!({"name": "glue"})).await["result"].clone();
    assert_eq!(described["inputSchema"], glue["inputSchema"]);
    assert_eq!(described["details"]["metadata"]["enabled_by_default"], true);
    let batch = format!(
        "[{},{},{},1]",
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"cut"}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/run","id":1}"#,
        r#"{"jsonrpc":"2.0","method":"server/identity","id":2}"#,
    );
    let answers = post(address, &batch).await.json();
    let codes: Vec<&Value> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| &answer["error"]["code"])
        .collect();
    assert_eq!(codes, [&json!(-32601), &Value::Null, &json!(-32600)]);
    assert_eq!(post(address, "[").await.json()["error"]["code"], -32700);
    assert_eq!(
        post(address, r#"{"jsonrpc":"2.0","method":"tools/list"}"#)
            .await
            .status,
        204
    );
    assert_eq!(ask(address, "GET", "/rpc", &[], "").await.status, 405);
    assert_eq!(post(address, &" ".repeat(3 << 20)).await.status, 413);
    let of_a_page = [
        ("origin", "http://127.0.0.1:80"),
        ("content-type", "text/plain"),
    ];
    let called = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"cut","arguments":{"length":8}},"id":1}"#;
    assert_eq!(
        ask(address, "POST", "/rpc", &of_a_page, called)
            .await
            .status,
        403
    );
    let called = r#"{"tool_name":"cut","arguments":{"length":8}}"#;
    assert_eq!(
        ask(address, "POST", "/api/v1/tools/execute", &of_a_page, called)
            .await
            .status,
        403
    );
    trigger.stop();
}

#[tokio::test]
async fn a_daemon_lists_it_over_json_rpc_and_publishes_the_same_identity() {
    let registry = registry();
    let (address, trigger) = serving(&registry).await;
    let home = Home::new();
    let mut config = home.config(&[]);
    config.scenarios = vec![configured("workshop", address)];
    config.scenarios[0].protocol = Some("json-rpc".into());
    let daemon = Daemon::ready(config).await;
    daemon.until_tools(&["cut", "glue"]).await;
    let call = json!({"tool_name": "cut", "arguments": {"length": 5}});
    let answer = daemon
        .send_json("POST", "/api/v1/tools/execute", &call)
        .await
        .json();
    assert_eq!(answer["result"], json!({"cut": 5}), "{answer}");
    let own = request(address, "server/identity", &json!({})).await["result"].clone();
    let published = request(daemon.address, "server/identity", &json!({})).await["result"].clone();
    assert_eq!(own["tools_count"], 2);
    assert_eq!(published["server_id"], own["server_id"]);
    registry.unregister("saws");
    assert_ne!(
        request(address, "server/identity", &json!({})).await["result"]["server_id"],
        own["server_id"]
    );
    daemon.stop().await;
    trigger.stop();
}

#[tokio::test]
async fn while_it_starts_every_route_answers_503_and_nobody_takes_a_part_for_the_whole() {
    let registry = registry();
    let first = registry.starting();
    let second = registry.starting();
    let (address, trigger) = serving(&registry).await;
    for (method, target) in [
        ("GET", "/api/v1/tools"),
        ("GET", "/api/v1/tools/cut"),
        ("POST", "/api/v1/tools/execute"),
        ("POST", "/rpc"),
        ("GET", "/health"),
    ] {
        let answer = ask(address, method, target, &[], "{}").await;
        assert_eq!(answer.status, 503, "{method} {target}");
        assert_eq!(answer.header("retry-after"), "1", "{method} {target}");
        assert_eq!(
            answer.json()["message"],
            "workshop is still starting: try again soon"
        );
    }
    let home = Home::new();
    let mut config = home.config(&[]);
    config.scenarios = vec![configured("workshop", address)];
    let daemon = Daemon::ready(config).await;
    let health = daemon.json("/api/v1/scenarios/workshop").await;
    assert!(
        health["last_error"]["message"]
            .as_str()
            .unwrap()
            .contains("503"),
        "{health}"
    );
    drop(first);
    assert!(registry.is_starting(), "another part still starts");
    drop(second);
    assert_eq!(ask(address, "GET", "/health", &[], "").await.status, 200);
    daemon.until_tools(&["cut", "glue"]).await;
    daemon.stop().await;
    trigger.stop();
}
