//! Where an operator's token is configured, what came of a call belongs to the access that made it,
//! on every face and over restarts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

use std::sync::atomic::{AtomicUsize, Ordering};

use callsheet::config::Config;
use callsheet::model::Secret;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::operations::{behaviour, config, runs, started, telling};
use crate::support::callee::{Callee, answer, done, manifest, tool};
use crate::support::daemon::{Daemon, Home, PATIENCE};
use crate::support::listener::{self, Listener};
use crate::support::mcp_client::McpClient;
use crate::support::serving::{Answer, ask};

const TOKEN: &str = "0123456789abcdef-topsecret";
const BEARER: &str = "Bearer 0123456789abcdef-topsecret";

/// Who sends a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sender {
    /// A client with the token.
    Operator,
    /// A client without it.
    Client,
    /// A client with a wrong one.
    WrongToken,
}

impl Sender {
    fn headers(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Operator => vec![("authorization", BEARER)],
            Self::Client => Vec::new(),
            Self::WrongToken => vec![("authorization", "Bearer 0123456789abcdef-hash")],
        }
    }
}

fn guarded(home: &Home, callee: &Callee) -> Config {
    let mut config = config(home, &[("builds", callee)]);
    config.server.operator_token = Some(Secret::new(TOKEN));
    config
}

async fn send(daemon: &Daemon, sender: Sender, method: &str, target: &str, body: &Value) -> Answer {
    let mut headers = sender.headers();
    headers.push(("content-type", "application/json"));
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    ask(daemon.address, method, target, &headers, &body).await
}

async fn get(daemon: &Daemon, sender: Sender, target: &str) -> Answer {
    send(daemon, sender, "GET", target, &Value::Null).await
}

/// Starts an operation; its id.
async fn begin(daemon: &Daemon, sender: Sender) -> String {
    let body = json!({"tool_name": "start", "arguments": {}});
    let answer = send(daemon, sender, "POST", "/api/v1/tools/execute", &body).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["operation_id"].as_str().unwrap().to_owned()
}

/// Waits until an operation succeeded, as an operator sees it.
async fn until_succeeded(daemon: &Daemon, id: &str) {
    let target = format!("/api/v1/operations/{id}");
    let waiting = async {
        while get(daemon, Sender::Operator, &target).await.json()["state"] != "succeeded" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .expect("the operation ends");
}

async fn follow_operations(daemon: &Daemon, sender: Sender) -> Listener {
    let response = listener::ask(daemon.address, "?kind=operation", &sender.headers()).await;
    let mut events = Listener::of(response);
    assert_eq!(events.next().await.event, "snapshot");
    events
}

/// What `get_operation` of MCP gives: whether it is an error, and all of it.
async fn by_mcp(daemon: &Daemon, sender: Sender, id: &str) -> (bool, String) {
    let client = McpClient::modern(daemon.address, json!({}));
    let client = if sender == Sender::Operator {
        client.with_token(TOKEN)
    } else {
        client
    };
    let shown = client
        .result(
            "tools/call",
            json!({"name": "get_operation", "arguments": {"operation_id": id}}),
        )
        .await;
    (shown["isError"] == true, shown.to_string())
}

/// Whether each face shows this operation to this sender; all of them have to agree.
async fn is_shown(daemon: &Daemon, sender: Sender, id: &str) -> bool {
    let list = get(daemon, sender, "/api/v1/operations").await;
    assert_eq!(list.status, 200, "{list:?}");
    let list = list.json();
    let shown = list["operations"]
        .as_array()
        .unwrap()
        .iter()
        .any(|operation| operation["id"] == id);

    let one = get(daemon, sender, &format!("/api/v1/operations/{id}")).await;
    assert_eq!(one.status, if shown { 200 } else { 404 }, "{one:?}");
    let one = one.json();
    let part = if shown {
        ("result", json!({"key": "secret-result"}))
    } else {
        ("code", json!("unknown_operation"))
    };
    assert_eq!(one[part.0], part.1, "{one}");

    let by_mcp = by_mcp(daemon, sender, id).await;
    assert_eq!(by_mcp.0, !shown, "{}", by_mcp.1);
    assert_eq!(by_mcp.1.contains("secret-result"), shown, "{}", by_mcp.1);

    let page = get(daemon, sender, "/dashboard/calls/now").await;
    assert_eq!(
        String::from_utf8(page.body).unwrap().contains(id),
        shown,
        "{sender:?}"
    );
    shown
}

#[tokio::test]
async fn an_operation_belongs_to_the_access_of_its_call_on_every_face_and_over_restarts() {
    let home = Home::new();
    let statuses = vec![
        json!({"status": "running", "percent": 40, "said": "secret-message"}),
        json!({"status": "done", "output": {"key": "secret-result"}}),
    ];
    let callee = Callee::start(
        runs("builds", &behaviour(), "string"),
        telling(json!("r-1"), statuses),
    )
    .await;
    let daemon = Daemon::ready(guarded(&home, &callee)).await;
    let mut seen_by_client = follow_operations(&daemon, Sender::Client).await;
    let mut seen_by_operator = follow_operations(&daemon, Sender::Operator).await;
    let of_operator = begin(&daemon, Sender::Operator).await;
    until_succeeded(&daemon, &of_operator).await;
    let of_client = begin(&daemon, Sender::Client).await;
    until_succeeded(&daemon, &of_client).await;
    assert_eq!(seen_by_operator.next().await.data["id"], json!(of_operator));
    assert_eq!(
        seen_by_client.next().await.data["id"],
        json!(of_client),
        "no event of the operator's comes first"
    );

    let target = format!("/api/v1/operations/{of_operator}");
    assert_eq!(
        send(&daemon, Sender::Client, "DELETE", &target, &Value::Null)
            .await
            .status,
        401
    );
    drop((seen_by_client, seen_by_operator));
    let assert_hidden = async |daemon: &Daemon| {
        for sender in [Sender::Client, Sender::WrongToken] {
            assert!(!is_shown(daemon, sender, &of_operator).await, "{sender:?}");
            assert!(is_shown(daemon, sender, &of_client).await, "{sender:?}");
        }
        for id in [&of_operator, &of_client] {
            assert!(
                is_shown(daemon, Sender::Operator, id).await,
                "an operator sees all"
            );
        }
    };
    assert_hidden(&daemon).await;
    daemon.stop().await;
    let daemon = Daemon::ready(guarded(&home, &callee)).await;
    assert_hidden(&daemon).await;
    daemon.stop().await;

    // One that an earlier version stored does not say to whom it belongs.
    let state = rusqlite::Connection::open(home.state()).unwrap();
    state
        .execute(
            "UPDATE operations SET access = NULL WHERE id = ?1",
            [&of_operator],
        )
        .unwrap();
    drop(state);
    let daemon = Daemon::ready(guarded(&home, &callee)).await;
    assert!(is_shown(&daemon, Sender::Client, &of_operator).await);
    daemon.stop().await;

    // Without a token every client has every right.
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let of_all = begin(&daemon, Sender::Client).await;
    until_succeeded(&daemon, &of_all).await;
    assert!(is_shown(&daemon, Sender::Client, &of_all).await);
    daemon.stop().await;
}

/// A tool that fails, and quotes its arguments in its error.
async fn quoting() -> Callee {
    Callee::start(manifest("builds", &[tool("read")]), |ran| async move {
        let error = format!("no entry {}", ran.arguments["key"]);
        answer(
            200,
            &json!({"success": false, "error": error, "code": "no_entry"}),
        )
    })
    .await
}

/// Calls `read` with this key, in a conversation and with an id of the same name.
async fn read(daemon: &Daemon, sender: Sender, key: &str) -> Answer {
    let body = json!({"tool_name": "read", "arguments": {"key": key}, "call_id": format!("call-{key}"),
        "chat_id": format!("chat-{key}"), "user_id": format!("user-{key}")});
    send(daemon, sender, "POST", "/api/v1/tools/execute", &body).await
}

/// Where the latest calls are shown.
const LOGS: [&str; 5] = [
    "/api/v1/calls",
    "/api/v1/log?kind=call",
    "/dashboard/calls",
    "/dashboard/calls/latest",
    "/dashboard/tool/calls?id=builds%2Fread",
];

/// Every log shows to this sender the calls with the keys of `shown`, and of those of `hidden` not
/// what is theirs alone.
async fn assert_logged(daemon: &Daemon, sender: Sender, shown: &[&str], hidden: &[&str]) {
    for target in LOGS {
        let answer = get(daemon, sender, target).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = String::from_utf8(answer.body).unwrap();
        for key in shown {
            assert!(
                text.contains(key),
                "{sender:?}, {target}: no `{key}` in {text}"
            );
        }
        for key in hidden {
            assert!(
                !text.contains(key),
                "{sender:?}, {target}: `{key}` in {text}"
            );
        }
    }
}

/// Of the latest two calls a client is shown its own, and of the other neither error nor caller.
async fn assert_latest_is_withheld(daemon: &Daemon) {
    let calls = get(daemon, Sender::Client, "/api/v1/calls").await.json();
    let withheld = &calls["calls"][0];
    assert_eq!(
        [&withheld["id"], &withheld["outcome"]],
        [&json!("builds/read"), &json!("failed")],
        "{calls}"
    );
    assert!(
        withheld["at"].is_string() && withheld["execution_time_ms"].is_u64(),
        "{calls}"
    );
    for member in [
        "error",
        "code",
        "status",
        "client",
        "chat_id",
        "profile",
        "user_id",
        "call_id",
        "approval_id",
    ] {
        assert_eq!(withheld[member], Value::Null, "{calls}");
    }
    assert_eq!(
        [&withheld["withheld"], &calls["calls"][1]["withheld"]],
        [&json!(true), &json!(false)],
        "{calls}"
    );
}

#[tokio::test]
async fn the_log_gives_the_error_and_the_caller_of_a_call_to_its_own_access_only() {
    let home = Home::new();
    let callee = quoting().await;
    let daemon = Daemon::ready(guarded(&home, &callee)).await;
    assert_eq!(
        read(&daemon, Sender::Operator, "of-operator").await.json()["code"],
        "no_entry"
    );
    assert_eq!(
        read(&daemon, Sender::Client, "of-client").await.json()["code"],
        "no_entry"
    );
    let by_mcp = json!({"name": "builds__read", "arguments": {"key": "by-mcp"}});
    let operator = McpClient::modern(daemon.address, json!({})).with_token(TOKEN);
    assert_eq!(operator.result("tools/call", by_mcp).await["isError"], true);
    assert_logged(
        &daemon,
        Sender::Operator,
        &["of-operator", "by-mcp", "of-client"],
        &[],
    )
    .await;
    for sender in [Sender::Client, Sender::WrongToken] {
        assert_logged(&daemon, sender, &["of-client"], &["of-operator", "by-mcp"]).await;
    }
    assert_latest_is_withheld(&daemon).await;

    // A filter finds no more than is shown.
    let target = "/api/v1/calls?chat_id=chat-of-operator";
    assert_eq!(
        get(&daemon, Sender::Client, target).await.json()["calls"],
        json!([])
    );
    assert_eq!(
        get(&daemon, Sender::Operator, target).await.json()["calls"][0]["chat_id"],
        "chat-of-operator"
    );
    daemon.stop().await;

    let daemon = Daemon::ready(guarded(&home, &callee)).await;
    assert_logged(
        &daemon,
        Sender::Client,
        &["of-client"],
        &["of-operator", "by-mcp"],
    )
    .await;
    daemon.stop().await;

    // Lines that an earlier version stored do not say who called.
    let state = rusqlite::Connection::open(home.state()).unwrap();
    let remove = "UPDATE log SET document = json_remove(document, '$.access') WHERE kind = 'call'";
    assert_eq!(state.execute(remove, []).unwrap(), 3);
    drop(state);
    let daemon = Daemon::ready(guarded(&home, &callee)).await;
    assert_logged(
        &daemon,
        Sender::Client,
        &["failed"],
        &["of-client", "of-operator", "by-mcp"],
    )
    .await;
    assert_logged(
        &daemon,
        Sender::Operator,
        &["of-client", "of-operator", "by-mcp"],
        &[],
    )
    .await;
    daemon.stop().await;

    // Without a token every client has every right.
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    assert_logged(
        &daemon,
        Sender::Client,
        &["of-client", "of-operator", "by-mcp"],
        &[],
    )
    .await;
    daemon.stop().await;
}

/// The ids that the latest calls have for this sender, on a path with a list of them.
async fn listed_ids(daemon: &Daemon, sender: Sender, target: &str) -> Vec<[Value; 2]> {
    let answer = get(daemon, sender, target).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    let ids = |call: &Value| {
        assert_eq!(
            call["withheld"],
            json!(false),
            "the rest of its own calls is shown: {call}"
        );
        [call["call_id"].clone(), call["approval_id"].clone()]
    };
    match answer["lines"].as_array() {
        Some(lines) => lines.iter().map(|line| ids(&line["call"])).collect(),
        None => answer["calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(ids)
            .collect(),
    }
}

#[tokio::test]
async fn lists_of_calls_give_ids_by_which_answers_are_read_to_operators_only() {
    let home = Home::new();
    let callee = quoting().await;
    let daemon = Daemon::ready(guarded(&home, &callee)).await;
    assert_eq!(
        read(&daemon, Sender::Client, "of-victim").await.json()["code"],
        "no_entry"
    );
    let used = json!({"type": "tool_use", "id": "t1", "name": "read", "input": {"key": "by-turn"}});
    let turn =
        json!({"response": {"role": "assistant", "content": [used]}, "turn_id": "turn-of-victim"});
    let begun = send(
        &daemon,
        Sender::Client,
        "POST",
        "/api/v1/turns?format=anthropic",
        &turn,
    )
    .await;
    assert_eq!(begun.status, 200, "{begun:?}");
    let require = json!({"scope": "global", "target": "tool:builds/read", "approval": "require"});
    assert_eq!(
        send(
            &daemon,
            Sender::Client,
            "PUT",
            "/api/v1/preferences",
            &require
        )
        .await
        .status,
        200
    );
    let waiting = read(&daemon, Sender::Client, "of-approval").await;
    assert_eq!(waiting.status, 202, "{waiting:?}");
    let approval = waiting.json()["approval_id"].clone();

    let given = [
        [json!("call-of-victim"), Value::Null],
        [json!("turn-of-victim.0"), Value::Null],
        [json!("call-of-approval"), approval],
    ];
    for target in ["/api/v1/calls", "/api/v1/log?kind=call"] {
        assert_eq!(
            listed_ids(&daemon, Sender::Operator, target).await,
            given,
            "{target}"
        );
        for sender in [Sender::Client, Sender::WrongToken] {
            let hidden = vec![[Value::Null, Value::Null]; 3];
            assert_eq!(
                listed_ids(&daemon, sender, target).await,
                hidden,
                "{sender:?}, {target}"
            );
        }
    }
    for sender in [Sender::Client, Sender::WrongToken] {
        assert_logged(
            &daemon,
            sender,
            &["chat-of-victim"],
            &["call-of-victim", "turn-of-victim"],
        )
        .await;
    }
    // Its own client, which knows the id, reads the answer.
    for target in [
        "/api/v1/turns/turn-of-victim",
        "/api/v1/results/turn-of-victim.0",
    ] {
        assert_eq!(
            get(&daemon, Sender::Client, target).await.status,
            200,
            "{target}"
        );
    }
    daemon.stop().await;

    // Without a token every client has every right.
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    assert_eq!(
        listed_ids(&daemon, Sender::Client, "/api/v1/calls").await,
        given
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_refusal_names_pins_and_the_acceptance_of_definitions() {
    let home = Home::new();
    let callee = quoting().await;
    let daemon = Daemon::ready(guarded(&home, &callee)).await;
    let preferences = "/api/v1/preferences";
    let target = "scenario:builds";
    let pins = json!({"scope": "global", "target": target, "pins": "warn"});
    let reset = json!({"scope": "global", "target": target, "pins": null});
    let acceptance = json!({"tools": [{"name": "read", "version": null}]});
    let accept = "/api/v1/pins/builds/accept";
    for (method, path, body, named) in [
        ("PUT", preferences, &pins, "changing the pins of a scenario"),
        (
            "PUT",
            preferences,
            &reset,
            "changing the pins of a scenario",
        ),
        ("POST", accept, &acceptance, "accepting its definitions"),
    ] {
        let refused = send(&daemon, Sender::Client, method, path, body).await;
        assert_eq!(refused.status, 401, "{refused:?}");
        let detail = refused.json()["detail"].to_string();
        assert!(detail.contains(named), "{detail}");
    }
    let pinned = json!({"scope": "global", "target": target, "pinned": true});
    let open = send(&daemon, Sender::Client, "PUT", preferences, &pinned).await;
    assert_eq!(open.status, 200, "{open:?}");
    daemon.stop().await;
}

#[tokio::test]
async fn the_page_gives_the_error_of_an_approved_call_to_its_own_access_only() {
    let home = Home::new();
    let callee = quoting().await;
    let daemon = Daemon::ready(guarded(&home, &callee)).await;
    let approval = json!({"scope": "global", "target": "tool:builds/read", "approval": "require"});
    assert_eq!(
        send(
            &daemon,
            Sender::Client,
            "PUT",
            "/api/v1/preferences",
            &approval
        )
        .await
        .status,
        200
    );
    for (sender, key) in [
        (Sender::Operator, "of-operator"),
        (Sender::Client, "of-client"),
    ] {
        let waiting = read(&daemon, sender, key).await;
        assert_eq!(waiting.status, 202, "{waiting:?}");
        let target = format!(
            "/api/v1/approvals/{}/approve",
            waiting.json()["approval_id"].as_str().unwrap()
        );
        let approved = send(
            &daemon,
            Sender::Operator,
            "POST",
            &target,
            &json!({"by": "kim"}),
        )
        .await;
        assert_eq!(approved.json()["state"], "answered", "{approved:?}");
    }
    assert_logged(&daemon, Sender::Client, &["of-client"], &["of-operator"]).await;
    assert_logged(
        &daemon,
        Sender::Operator,
        &["of-client", "of-operator"],
        &[],
    )
    .await;
    let decided = async |sender: Sender| {
        let page = get(&daemon, sender, "/dashboard/calls/now").await;
        let page = String::from_utf8(page.body).unwrap();
        assert!(page.contains("of-client"), "{page}");
        page.contains("of-operator")
    };
    assert!(decided(Sender::Operator).await && !decided(Sender::Client).await);
    daemon.stop().await;
}

/// Operations whose polls are answered only once the gate is open.
async fn polled_late() -> (Callee, watch::Sender<bool>) {
    let (gate, open) = watch::channel(false);
    let begun = AtomicUsize::new(0);
    let callee = Callee::start(runs("builds", &behaviour(), "string"), move |ran| {
        let mut open = open.clone();
        let id = format!("r-{}", begun.fetch_add(1, Ordering::SeqCst));
        async move {
            match ran.tool.as_str() {
                "start" => started(&json!(id)),
                "get_run" => {
                    open.wait_for(|open| *open).await.unwrap();
                    done(&json!({"status": "done"}))
                }
                _ => done(&json!({"stopping": true})),
            }
        }
    })
    .await;
    (callee, gate)
}

#[tokio::test]
async fn polls_of_clients_operations_leave_permits_to_operators_who_cancel_them() {
    let home = Home::new();
    let (callee, gate) = polled_late().await;
    let mut config = guarded(&home, &callee);
    config.calls.concurrency = 3;
    config.calls.queue = 0;
    let daemon = Daemon::ready(config).await;
    let first = begin(&daemon, Sender::Client).await;
    callee.until_ran(2).await;
    begin(&daemon, Sender::Client).await;
    callee.until_ran(4).await;
    let body = json!({"tool_name": "start", "arguments": {}});
    let refused = send(
        &daemon,
        Sender::Client,
        "POST",
        "/api/v1/tools/execute",
        &body,
    )
    .await;
    assert_eq!(
        [json!(refused.status), refused.json()["code"].clone()],
        [json!(429), json!("busy")]
    );
    let target = format!("/api/v1/operations/{first}");
    let cancelling = send(&daemon, Sender::Operator, "DELETE", &target, &Value::Null).await;
    assert_eq!(cancelling.status, 202, "{cancelling:?}");
    assert_eq!(callee.ran().last().unwrap().tool, "stop_run");
    gate.send_replace(true);
    daemon.stop().await;
}
