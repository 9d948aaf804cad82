//! Tools over JSON-RPC: `POST /rpc`, against a scenario that runs them.

use axum::response::Response;
use callsheet::model::{Profile, Secret};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::callee::{Callee, Ran, answer, done, manifest, tool, tool_with};
use crate::support::daemon::{Daemon, Home, NEVER, configured};
use crate::support::serving::{Answer, ask};

/// A daemon in front of one scenario with four tools.
pub(super) async fn serving() -> (Home, Daemon, Callee) {
    let path =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tools = [
        tool("agent_list"),
        tool_with("read_file", &path, &json!({"enabled_by_default": true})),
        tool_with(
            "delete_file",
            &path,
            &json!({"enabled_by_default": true, "requires_approval": true}),
        ),
        tool("fails"),
    ];
    let callee = Callee::start(manifest("files", &tools), run).await;
    let (home, daemon) = before(&callee).await;
    (home, daemon, callee)
}

/// A daemon in front of a scenario, with a profile that sees it and one that does not.
async fn before(callee: &Callee) -> (Home, Daemon) {
    let home = Home::new();
    let mut config = home.config(&[]);
    for (profile, scenario) in [("files-only", "files"), ("narrow", "others")] {
        let scenarios = Some([scenario.parse().unwrap()].into());
        config.profiles.insert(
            profile.into(),
            Profile {
                scenarios,
                ..Profile::default()
            },
        );
    }
    config.refresh.min_interval = NEVER;
    config.refresh.max_interval = NEVER;
    config.scenarios = vec![configured("files", ([127, 0, 0, 1], callee.port()).into())];
    let daemon = Daemon::ready(config).await;
    (home, daemon)
}

async fn run(ran: Ran) -> Response {
    match &*ran.tool {
        "fails" => answer(
            200,
            &json!({"success": false, "error": "the disk is full", "code": "no_space"}),
        ),
        _ => done(&ran.arguments),
    }
}

pub(super) async fn post(daemon: &Daemon, target: &str, body: &str) -> Answer {
    ask(
        daemon.address,
        "POST",
        target,
        &[("content-type", "application/json")],
        body,
    )
    .await
}

/// The answer to a body, as text.
pub(super) async fn text(daemon: &Daemon, body: &str) -> String {
    let answer = post(daemon, "/rpc", body).await;
    assert_eq!(answer.status, 200, "{body}");
    assert_eq!(answer.header("content-type"), "application/json", "{body}");
    String::from_utf8(answer.body).unwrap()
}

async fn json(daemon: &Daemon, method: &str, params: &Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    serde_json::from_str(&text(daemon, &body.to_string()).await).unwrap()
}

#[tokio::test]
async fn the_list_has_names_descriptions_and_schemas_whatever_the_parameters_are() {
    let (_home, daemon, _callee) = serving().await;
    let listed = json(&daemon, "tools/list", &json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 4);
    assert_eq!(tools[0]["name"], "agent_list");
    assert_eq!(
        tools[0]["inputSchema"],
        json!({"type": "object", "properties": {}, "additionalProperties": false})
    );
    let read = tools
        .iter()
        .find(|tool| tool["name"] == "read_file")
        .unwrap();
    assert_eq!(read["inputSchema"]["required"], json!(["path"]));
    let members: Vec<&String> = read.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        ["name", "description", "inputSchema", "definition_version"]
    );
    for params in [
        r#""params":{"x":1},"#,
        r#""params":[7],"#,
        r#""params":null,"#,
        "",
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0",{params}"id":1,"method":"tools/list"}}"#);
        assert_eq!(
            serde_json::from_str::<Value>(&text(&daemon, &body).await).unwrap(),
            listed,
            "{params}"
        );
    }
    let narrowed = post(
        &daemon,
        "/rpc?q=list+agents&max_tools=1",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    );
    assert_eq!(
        narrowed.await.json()["result"]["tools"][0]["name"],
        "agent_list"
    );
    let unknown = post(&daemon, "/rpc?profil=a", "{}").await;
    assert_eq!(unknown.status, 400);
    daemon.stop().await;
}

#[tokio::test]
async fn the_identity_stays_as_long_as_names_and_descriptions_do() {
    let (_home, daemon, callee) = serving().await;
    let identity = json(&daemon, "server/identity", &json!({})).await["result"].clone();
    assert_eq!(identity["tools_count"], 4);
    assert_eq!(identity["protocol_version"], "1.0");
    assert_eq!(identity["server_id"].as_str().unwrap().len(), 36);
    assert_eq!(
        json(&daemon, "server/identity", &json!([])).await["result"],
        identity
    );

    let wider = json!({"type": "object", "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}}});
    let other = |description: &str| {
        let mut read = tool_with("read_file", &wider, &json!({"enabled_by_default": true}));
        read["description"] = description.into();
        let path = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        manifest(
            "files",
            &[
                tool("agent_list"),
                read,
                tool_with(
                    "delete_file",
                    &path,
                    &json!({"enabled_by_default": true, "requires_approval": true}),
                ),
                tool("fails"),
            ],
        )
    };
    let known = tool("read_file")["description"]
        .as_str()
        .unwrap()
        .to_owned();
    callee.lists(other(&known));
    daemon.send("POST", "/api/v1/scenarios/files/refresh").await;
    let changed = json(&daemon, "server/identity", &json!({})).await["result"].clone();
    assert_eq!(
        changed["server_id"], identity["server_id"],
        "only a schema changed"
    );
    assert_ne!(changed["schema_id"], identity["schema_id"]);

    callee.lists(other("Reads it another way"));
    daemon.send("POST", "/api/v1/scenarios/files/refresh").await;
    let changed = json(&daemon, "server/identity", &json!({})).await["result"].clone();
    assert_ne!(
        changed["server_id"], identity["server_id"],
        "a description changed"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_call_gives_what_the_tool_gave_back_in_the_order_of_the_protocol() {
    let (_home, daemon, callee) = serving().await;
    let call = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"read_file","arguments":{"path":"/tmp/a"}},"id":"x"}"#;
    assert_eq!(
        text(&daemon, call).await,
        r#"{"jsonrpc":"2.0","result":{"path":"/tmp/a"},"id":"x"}"#
    );
    for left_out in ["", r#","arguments":null"#, r#","arguments":{}"#] {
        let call = format!(
            r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"agent_list"{left_out}}},"id":2}}"#
        );
        assert_eq!(
            text(&daemon, &call).await,
            r#"{"jsonrpc":"2.0","result":{},"id":2}"#
        );
    }
    let failed = json(&daemon, "tools/call", &json!({"name": "fails"})).await["error"].clone();
    assert_eq!(
        failed,
        json!({"code": -32600, "message": "the disk is full", "data": {"code": "no_space"}})
    );
    let unknown = json(&daemon, "tools/call", &json!({"name": "nobody"})).await["error"].clone();
    assert_eq!(
        unknown,
        json!({"code": -32600, "message": "no tool is called `nobody`"})
    );
    assert_eq!(callee.ran().len(), 5);
    daemon.stop().await;
}

#[tokio::test]
async fn parameters_that_are_no_call_are_refused_and_nothing_is_called() {
    let (_home, daemon, callee) = serving().await;
    let missing = json!({"code": -32602, "message": "Missing 'name'"});
    for params in [
        json!({"arguments": {}}),
        json!({"name": 7}),
        json!({"name": null}),
        json!([]),
        json!(["read_file"]),
    ] {
        assert_eq!(
            json(&daemon, "tools/call", &params).await["error"],
            missing,
            "{params}"
        );
    }
    let none = text(&daemon, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#).await;
    assert!(none.contains("Missing 'name'"), "{none}");
    for arguments in [json!([]), json!("{}"), json!(1)] {
        let error = json(
            &daemon,
            "tools/call",
            &json!({"name": "read_file", "arguments": arguments}),
        )
        .await;
        assert_eq!(error["error"]["code"], -32602);
        assert_eq!(error["error"]["message"], "Invalid parameters");
    }
    let unfit = json(
        &daemon,
        "tools/call",
        &json!({"name": "read_file", "arguments": {"path": 7}}),
    )
    .await;
    assert_eq!(unfit["error"]["code"], -32602);
    assert_eq!(unfit["error"]["data"]["violations"][0]["pointer"], "/path");
    let method = json(&daemon, "tools/run", &json!({})).await;
    assert_eq!(
        method["error"],
        json!({"code": -32601, "message": "Method not found"})
    );
    assert_eq!(callee.ran().len(), 0);
    daemon.stop().await;
}

#[tokio::test]
async fn a_batch_is_answered_in_its_order_and_notifications_are_not_run() {
    let (_home, daemon, callee) = serving().await;
    let batch = r#"[{"jsonrpc":"2.0","method":"tools/call","params":{"name":"agent_list"}},
        {"jsonrpc":"2.0","method":"tools/call","params":{"name":"agent_list"},"id":1},
        {"foo":"boo"},
        {"jsonrpc":"2.0","method":"nothing","id":"2"}]"#;
    assert_eq!(
        text(&daemon, batch).await,
        concat!(
            r#"[{"jsonrpc":"2.0","result":{},"id":1},"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request"},"id":null},"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":"2"}]"#
        )
    );
    assert_eq!(callee.ran().len(), 1, "the notification was not run");
    let silent = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"agent_list"}}"#;
    for body in [silent.to_owned(), format!("[{silent},{silent}]")] {
        let answer = post(&daemon, "/rpc", &body).await;
        assert_eq!(answer.status, 204, "{body}");
        assert_eq!(answer.body.len(), 0, "{body}");
    }
    let call = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"agent_list"},"id":1}"#;
    let long = format!("[{}]", vec![call; 10_000].join(","));
    let refused = text(&daemon, &long).await;
    assert!(
        refused.starts_with(r#"{"jsonrpc":"2.0","error":{"code":-32600,"#),
        "{refused}"
    );
    assert_eq!(callee.ran().len(), 1, "nothing of it was run");
    let too_large = post(&daemon, "/rpc", &" ".repeat(2 << 20)).await;
    assert_eq!(too_large.status, 413);
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}}"#,
        "[".repeat(100_000)
    );
    assert_eq!(
        text(&daemon, &deep).await,
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}"#
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_call_that_waits_for_approval_is_an_error_of_its_own_and_then_gives_its_outcome_once() {
    let (_home, daemon, callee) = serving().await;
    let call = json!({"name": "delete_file", "arguments": {"path": "/tmp/a"}});
    let waits = json(&daemon, "tools/call", &call).await["error"].clone();
    assert_eq!(waits["code"], 1001);
    let id = waits["data"]["approval_id"].as_str().unwrap().to_owned();
    assert_eq!(
        json(&daemon, "tools/call", &call).await["error"]["data"]["approval_id"],
        *id,
        "the same call"
    );
    assert_eq!(callee.ran().len(), 0);
    let approve = format!("/api/v1/approvals/{id}/approve");
    let approved = daemon.send_json("POST", &approve, &json!({})).await;
    assert!(approved.status < 300, "{}", approved.status);
    assert_eq!(
        json(&daemon, "tools/call", &call).await["result"],
        json!({"path": "/tmp/a"})
    );
    assert_eq!(callee.ran().len(), 1);
    assert_ne!(
        json(&daemon, "tools/call", &call).await["error"]["data"]["approval_id"],
        *id,
        "a new call"
    );

    let other = json!({"name": "delete_file", "arguments": {"path": "/tmp/b"}});
    let id = json(&daemon, "tools/call", &other).await["error"]["data"]["approval_id"]
        .as_str()
        .unwrap()
        .to_owned();
    daemon
        .send_json(
            "POST",
            &format!("/api/v1/approvals/{id}/reject"),
            &json!({"reason": "no"}),
        )
        .await;
    let rejected = json(&daemon, "tools/call", &other).await["error"].clone();
    assert_eq!(rejected["code"], -32000);
    assert!(
        rejected["message"]
            .as_str()
            .unwrap()
            .contains("rejected: no"),
        "{rejected}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn an_approved_call_whose_tool_goes_on_is_answered_with_its_operation() {
    let start = json!({"enabled_by_default": true, "requires_approval": true, "long_running": true, "async_behavior": {
        "status_polling": {"status_tool": "get_run", "operation_id_field": "run_id", "status_tool_id_param": "run_id",
            "poll_interval_seconds": 60},
        "completion_conditions": {"status_field": "status", "success_values": ["done"], "failure_values": ["failed"]}}});
    let none = json!({"type": "object", "properties": {}});
    let by_run = json!({"type": "object", "properties": {"run_id": {"type": "string"}}});
    let tools = [
        tool_with("start", &none, &start),
        tool_with("get_run", &by_run, &json!({"enabled_by_default": true})),
    ];
    let callee = Callee::start(manifest("runs", &tools), |ran: Ran| async move {
        match &*ran.tool {
            "start" => answer(
                202,
                &json!({"success": true, "is_async": true, "run_id": "r-1", "status": "running"}),
            ),
            _ => done(&json!({"run_id": "r-1", "status": "running"})),
        }
    })
    .await;
    let (_home, daemon) = before(&callee).await;
    let call = json!({"name": "start", "arguments": {}});
    let waits = json(&daemon, "tools/call", &call).await;
    let id = waits["error"]["data"]["approval_id"].as_str().unwrap();
    let approved = daemon
        .send_json(
            "POST",
            &format!("/api/v1/approvals/{id}/approve"),
            &json!({}),
        )
        .await;
    assert!(approved.status < 300, "{approved:?}");
    let result = json(&daemon, "tools/call", &call).await["result"].clone();
    assert_eq!(result["status"], "running", "{result}");
    let operation = daemon
        .get(&format!(
            "/api/v1/operations/{}",
            result["operation_id"].as_str().unwrap()
        ))
        .await;
    assert_eq!(operation.json()["state"], "running", "{operation:?}");
    daemon.stop().await;
}

/// A bystander without the token must not take the outcome of an operator's call.
#[tokio::test]
async fn an_outcome_is_handed_out_to_the_access_of_its_call_only() {
    const TOKEN: &str = "0123456789abcdef-topsecret";
    let path = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let delete = tool_with(
        "delete_file",
        &path,
        &json!({"enabled_by_default": true, "requires_approval": true}),
    );
    let callee = Callee::start(manifest("files", &[delete]), run).await;
    let home = Home::new();
    let mut config = home.config(&[]);
    config.server.operator_token = Some(Secret::new(TOKEN));
    config.scenarios = vec![configured("files", ([127, 0, 0, 1], callee.port()).into())];
    let daemon = Daemon::ready(config).await;
    let bearer = format!("Bearer {TOKEN}");
    let send = async |target: &str, is_operator: bool, body: &Value| {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(is_operator.then_some(("authorization", &*bearer)));
        ask(daemon.address, "POST", target, &headers, &body.to_string())
            .await
            .json()
    };
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "delete_file", "arguments": {"path": "/tmp/a"}}});
    let execute = json!({"tool_name": "delete_file", "arguments": {"path": "/tmp/a"}});
    let id = async |is_operator: bool| {
        send("/rpc", is_operator, &call).await["error"]["data"]["approval_id"].take()
    };
    let of_operator = id(true).await;
    let of_other = id(false).await;
    assert!(
        of_operator.is_string() && of_other.is_string() && of_operator != of_other,
        "{of_operator} {of_other}"
    );
    assert_eq!(
        send("/api/v1/tools/execute", true, &execute).await["approval_id"],
        of_operator
    );
    assert_eq!(
        send("/api/v1/tools/execute", false, &execute).await["approval_id"],
        of_other
    );
    let approve = format!(
        "/api/v1/approvals/{}/approve",
        of_operator.as_str().unwrap()
    );
    assert_eq!(send(&approve, true, &json!({})).await["state"], "answered");
    assert_eq!(id(false).await, of_other, "its own call waits");
    let shown = format!("/api/v1/approvals/{}", of_operator.as_str().unwrap());
    let read = async |headers: &[(&str, &str)]| {
        ask(daemon.address, "GET", &shown, headers, "").await.json()
    };
    assert_eq!(
        read(&[]).await["answer"],
        Value::Null,
        "its outcome is no business of others"
    );
    assert_eq!(
        read(&[("authorization", &*bearer)]).await["answer"]["result"],
        json!({"path": "/tmp/a"})
    );
    let page = format!("/dashboard/calls/{}", of_operator.as_str().unwrap());
    let page = ask(daemon.address, "GET", &page, &[], "").await;
    let page = String::from_utf8(page.body).unwrap();
    assert!(
        page.contains("shown with that token only") && !page.contains(">Result "),
        "{page}"
    );
    assert_eq!(
        send("/rpc", true, &call).await["result"],
        json!({"path": "/tmp/a"})
    );
    assert_eq!(callee.ran().len(), 1);
    daemon.stop().await;
}

/// The same holds for a call that comes while the approved one is under way.
#[tokio::test]
async fn the_outcome_that_a_call_waited_for_is_given_once() {
    let any = json!({"type": "object", "properties": {}});
    let open = watch::Sender::new(false);
    let wipe = tool_with(
        "wipe",
        &any,
        &json!({"enabled_by_default": true, "requires_approval": true}),
    );
    let gate = open.clone();
    let callee = Callee::start(manifest("files", &[wipe]), move |ran: Ran| {
        let mut gate = gate.subscribe();
        async move {
            let _ = gate.wait_for(|open| *open).await;
            done(&ran.arguments)
        }
    })
    .await;
    let (_home, daemon) = before(&callee).await;
    let call = json!({"name": "wipe"});
    let id = json(&daemon, "tools/call", &call).await["error"]["data"]["approval_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let again = async {
        callee.until_ran(1).await;
        let release = async {
            // What is answered meanwhile gives the call time to arrive.
            for _ in 0..3 {
                daemon.get("/api/v1/approvals").await;
            }
            open.send_replace(true);
        };
        tokio::join!(json(&daemon, "tools/call", &call), release).0
    };
    let approve = format!("/api/v1/approvals/{id}/approve");
    let none = json!({});
    let (approved, again) = tokio::join!(daemon.send_json("POST", &approve, &none), again);
    assert!(approved.status < 300, "{approved:?}");
    assert_eq!(again["result"], json!({}), "{again}");
    let new = json(&daemon, "tools/call", &call).await["error"].clone();
    assert_eq!(new["code"], 1001, "{new}");
    assert_ne!(new["data"]["approval_id"], *id);
    assert_eq!(callee.ran().len(), 1);
    daemon.stop().await;
}

#[tokio::test]
async fn what_a_profile_may_not_see_is_not_described() {
    let (_home, daemon, _callee) = serving().await;
    let describe = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/describe", "params": {"name": "read_file"}});
    for (query, is_described) in [
        ("", true),
        ("?profile=files-only", true),
        ("?profile=narrow", false),
    ] {
        let answer = post(&daemon, &format!("/rpc{query}"), &describe.to_string())
            .await
            .json();
        assert_eq!(
            answer["result"].is_object(),
            is_described,
            "{query}: {answer}"
        );
        if !is_described {
            assert_eq!(
                answer["error"]["message"], "no tool is called `read_file`",
                "{answer}"
            );
        }
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_tool_is_described_as_it_is_listed_with_all_that_is_known_of_it() {
    let (_home, daemon, _callee) = serving().await;
    let listed = json(&daemon, "tools/list", &json!({})).await["result"]["tools"].clone();
    let described =
        json(&daemon, "tools/describe", &json!({"name": "read_file"})).await["result"].clone();
    let same = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "read_file")
        .unwrap();
    for member in ["name", "description", "inputSchema"] {
        assert_eq!(described[member], same[member]);
    }
    let native = daemon.json("/api/v1/tools/read_file").await;
    assert_eq!(described["details"], native);
    let off = json!({"scope": "global", "target": "tool:files/fails", "enabled": false});
    assert_eq!(
        daemon
            .send_json("PUT", "/api/v1/preferences", &off)
            .await
            .status,
        200
    );
    for name in ["nobody", "fails"] {
        let unknown = json(&daemon, "tools/describe", &json!({"name": name})).await;
        assert_eq!(
            unknown["error"],
            json!({"code": -32600, "message": format!("no tool is called `{name}`")})
        );
    }
    daemon.stop().await;
}

#[tokio::test]
async fn the_capabilities_name_methods_versions_and_limits() {
    let (_home, daemon, _callee) = serving().await;
    let capabilities = json(&daemon, "server/capabilities", &json!({})).await["result"].clone();
    assert_eq!(capabilities["protocol_version"], "1.0");
    assert_eq!(capabilities["capabilities"]["definition_versions"], true);
    assert_eq!(capabilities["limits"]["batch_messages"], 1000);
    for method in capabilities["methods"].as_array().unwrap() {
        let method = method.as_str().unwrap();
        let answer = json(&daemon, method, &json!({"name": "agent_list"})).await;
        assert!(answer["error"].is_null(), "{method}: {answer}");
    }
    // The first of the client's versions that is spoken here.
    let wanted = json!({"protocol_versions": ["2.0", "1.0"]});
    let common = json(&daemon, "server/capabilities", &wanted).await;
    assert_eq!(common["result"]["protocol_version"], "1.0");
    let wanted = json!({"protocol_versions": ["2.0"]});
    let none = json(&daemon, "server/capabilities", &wanted).await;
    assert_eq!(
        none["error"],
        json!({"code": -32602, "message": "no common protocol version", "data": {"protocol_versions": ["1.0"]}})
    );
    let wrong = json(
        &daemon,
        "server/capabilities",
        &json!({"protocol_versions": "1.0"}),
    )
    .await;
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    daemon.stop().await;
}
