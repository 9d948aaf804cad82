//! Two daemons in a row follow and cancel what one does, whatever the names of the tools are in the
//! first one's list.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::calls::track::FollowUp;
use callsheet::config::Config;
use callsheet::model::{Operation, OperationState};
use callsheet::runtime::Clock;
use serde_json::{Value, json};
use url::Url;

use crate::support::callee::{Callee, PATIENCE, answer, manifest, tool_with};
use crate::support::house::{House, called};
use crate::support::serving::ask;

/// A scenario whose operations have this status. What matters stands beside the result.
async fn builds(name: &str, status: &Arc<Mutex<&'static str>>) -> Callee {
    let behaviour = json!({
        "status_polling": {"status_tool": "get_run", "operation_id_field": "job.id", "status_tool_id_param": "run_id",
            "poll_interval_seconds": 0.02},
        "completion_conditions": {"status_field": "status", "success_values": ["done"], "failure_values": ["stopped"],
            "pending_values": ["at work"], "result_field": "output"},
        "cancellation": {"cancel_tool": "stop_run", "cancel_tool_id_param": "run_id"},
    });
    let on = json!({"enabled_by_default": true});
    let none = json!({"type": "object", "properties": {}});
    let takes = json!({"type": "object", "properties": {"run_id": {"type": "string"}}, "required": ["run_id"]});
    let start = json!({"enabled_by_default": true, "async_behavior": behaviour});
    let tools = [
        tool_with("start", &none, &start),
        tool_with("get_run", &takes, &on),
        tool_with("stop_run", &takes, &on),
    ];
    let status = Arc::clone(status);
    Callee::start(manifest(name, &tools), move |ran| {
        let status = *status.lock().unwrap();
        std::future::ready(match ran.tool.as_str() {
            "start" => answer(
                202,
                &json!({"success": true, "result": {"queued": true}, "job": {"id": "r-1"}}),
            ),
            "get_run" => answer(
                200,
                &json!({"success": true, "result": null, "status": status, "output": {"files": 3}}),
            ),
            _ => answer(200, &json!({"success": true, "result": {"stopped": true}})),
        })
    })
    .await
}

fn eager(config: &mut Config) {
    config.calls.poll_min = Duration::from_millis(5);
}

fn url(address: SocketAddr) -> Url {
    format!("http://{address}/").parse().unwrap()
}

/// The first daemon of two scenarios with tools of the same names, and the second one that lists
/// the first.
async fn two_in_a_row(one: &Callee, two: &Callee) -> (House, House, SocketAddr) {
    let first = House::with(&[("one", one.url()), ("two", two.url())], eager).await;
    first
        .prefer("global", "tool:one/get_run", called("look"))
        .await;
    let address = first.serve().await;
    let second = House::with(&[("first", url(address))], eager).await;
    (first, second, address)
}

async fn begin(house: &House, name: &str) -> Arc<Operation> {
    let answered = house.call(name, &json!({})).await.unwrap();
    match answered.going {
        FollowUp::Followed(operation) => operation,
        other => panic!("it is not followed: {other:?}"),
    }
}

async fn until(house: &House, id: &str, state: OperationState) -> Arc<Operation> {
    let deadline = Clock::system().now() + PATIENCE;
    loop {
        let operation = house.app.calls().operations().unwrap().get(id).unwrap();
        if operation.state == state {
            return operation;
        }
        assert!(
            Clock::system().now() < deadline,
            "never {state:?}: {operation:?}"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_list_names_companions_as_it_publishes_them() {
    let status = Arc::new(Mutex::new("at work"));
    let one = builds("one", &status).await;
    let two = builds("two", &status).await;
    let (first, second, address) = two_in_a_row(&one, &two).await;
    first
        .prefer("chat:7", "tool:two/stop_run", called("halt"))
        .await;
    // Once one of two equal names is another one, the other is plain.
    for (query, one_stops, two_stops) in [
        ("", "one__stop_run", "two__stop_run"),
        ("?chat_id=7", "stop_run", "halt"),
    ] {
        let body = ask(address, "GET", &format!("/api/v1/tools{query}"), &[], "")
            .await
            .body;
        let list: Value = serde_json::from_slice(&body).unwrap();
        let tools = list["tools"].as_array().unwrap();
        let companions = |name: &str| {
            let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
            let behaviour = &tool["metadata"]["async_behavior"];
            (
                behaviour["status_polling"]["status_tool"].clone(),
                behaviour["cancellation"]["cancel_tool"].clone(),
            )
        };
        assert_eq!(companions("one__start"), (json!("look"), json!(one_stops)));
        assert_eq!(
            companions("two__start"),
            (json!("get_run"), json!(two_stops))
        );
        let one_tool = ask(address, "GET", "/api/v1/tools/one__start", &[], "")
            .await
            .body;
        let one_tool: Value = serde_json::from_slice(&one_tool).unwrap();
        assert_eq!(
            one_tool["metadata"]["async_behavior"]["status_polling"]["status_tool"], "look",
            "{one_tool}"
        );
    }
    // The routes of the first consumer name every tool as its scenario does.
    let inbox: Value =
        serde_json::from_slice(&ask(address, "GET", "/api/v1/tools/set", &[], "").await.body)
            .unwrap();
    assert!(
        inbox.to_string().contains(r#""status_tool":"get_run""#),
        "{inbox}"
    );

    // Another tool gets another name for everybody, and the name that both had becomes plain again.
    first
        .prefer("global", "tool:two/stop_run", called("end"))
        .await;
    second
        .until("a plain name", |_| {
            second.names().contains(&"stop_run".to_owned())
        })
        .await;
    let body = ask(address, "GET", "/api/v1/tools/one__start", &[], "")
        .await
        .body;
    let tool: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        tool["metadata"]["async_behavior"]["cancellation"]["cancel_tool"], "stop_run",
        "{tool}"
    );
    second.finish().await;
    first.finish().await;
}

#[tokio::test]
async fn two_daemons_in_a_row_follow_an_operation_to_its_end() {
    let status = Arc::new(Mutex::new("at work"));
    let one = builds("one", &status).await;
    let two = builds("two", &status).await;
    let (first, second, _) = two_in_a_row(&one, &two).await;
    let operation = begin(&second, "one__start").await;
    let id = Arc::clone(&operation.id);
    let polled = async {
        while second
            .app
            .calls()
            .operations()
            .unwrap()
            .get(&id)
            .unwrap()
            .status
            .as_deref()
            != Some("at work")
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, polled)
        .await
        .expect("the scenario's own word for the status is seen");
    *status.lock().unwrap() = "done";
    let over = until(&second, &id, OperationState::Succeeded).await;
    assert_eq!(over.result.as_ref().unwrap().get(), r#"{"files":3}"#);
    assert!(
        two.ran().is_empty(),
        "only the scenario that started it is called"
    );
    second.finish().await;
    first.finish().await;
}

#[tokio::test]
async fn two_daemons_in_a_row_cancel_an_operation() {
    let status = Arc::new(Mutex::new("at work"));
    let one = builds("one", &status).await;
    let two = builds("two", &status).await;
    let (first, second, _) = two_in_a_row(&one, &two).await;
    let operation = begin(&second, "two__start").await;
    second.app.calls().cancel(&operation.id).await.unwrap();
    until(&second, &operation.id, OperationState::Cancelled).await;
    let stopped: Vec<_> = two
        .ran()
        .into_iter()
        .filter(|ran| ran.tool == "stop_run")
        .map(|ran| ran.arguments)
        .collect();
    assert_eq!(stopped, [json!({"run_id": "r-1"})]);
    assert!(
        one.ran().is_empty(),
        "only the scenario that started it is called"
    );
    second.finish().await;
    first.finish().await;
}
