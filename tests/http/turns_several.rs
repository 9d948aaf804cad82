//! Turns that do not need all of their calls: the first that succeeds, or the first that ends.

use std::net::SocketAddr;

use callsheet::runtime::Clock;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::callee::{Callee, PATIENCE, Ran, answer, done, manifest, tool, tool_with};
use crate::support::house::House;
use crate::support::mcp_server::{self, McpServer, legacy};
use crate::support::serving::{Answer, ask};

const JSON: (&str, &str) = ("content-type", "application/json");

/// Idempotent tools that answer at once, fail, and wait for a person or until they are released;
/// and one that is not idempotent.
struct Stage {
    callee: Callee,
    house: House,
    address: SocketAddr,
    open: watch::Sender<bool>,
}

async fn stage() -> Stage {
    let any = json!({"type": "object", "properties": {}});
    let safe = json!({"enabled_by_default": true, "idempotent": true});
    let risky = json!({"enabled_by_default": true, "idempotent": true, "requires_approval": true});
    let mut tools: Vec<Value> = ["fast", "slow", "fail"].iter().map(|name| tool_with(name, &any, &safe)).collect();
    tools.extend([tool_with("careful", &any, &risky), tool("send")]);
    let open = watch::Sender::new(false);
    let gate = open.clone();
    let callee = Callee::start(manifest("files", &tools), move |ran: Ran| {
        let mut gate = gate.subscribe();
        async move {
            match ran.tool.as_str() {
                "fail" => return answer(200, &json!({"success": false, "error": "it did not work"})),
                "slow" => {
                    let _ = gate.wait_for(|open| *open).await;
                }
                _ => {}
            }
            done(&json!(ran.tool))
        }
    })
    .await;
    let house = House::of(&[("files", callee.url())]).await;
    let address = house.serve().await;
    Stage { callee, house, address, open }
}

impl Stage {
    async fn turn(&self, mode: &str, names: &[&str], options: Value) -> Answer {
        turn(self.address, mode, names, options).await
    }

    fn ran(&self) -> Vec<String> {
        self.callee.ran().into_iter().map(|ran| ran.tool).collect()
    }
}

async fn turn(address: SocketAddr, mode: &str, names: &[&str], options: Value) -> Answer {
    let calls: Vec<Value> = names.iter().map(|name| json!({"_tool": name})).collect();
    let mut body = json!({"response": {"calls": calls}, "mode": mode});
    body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    ask(address, "POST", "/api/v1/turns?format=calls", &[JSON], &body.to_string()).await
}

fn statuses(turn: &Value) -> Vec<&str> {
    turn["calls"].as_array().unwrap().iter().map(|call| call["status"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_first_success_is_enough_and_the_answer_says_what_was_not_needed() {
    let stage = stage().await;
    let answer = stage.turn("any", &["slow", "fail", "fast"], json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let reply = answer.json();
    assert_eq!(statuses(&reply)[0], "not_needed", "{reply}");
    assert_eq!(statuses(&reply)[2], "result", "{reply}");
    assert_eq!(reply["calls"][0]["code"], "not_needed");
    let expected =
        "Another call of this message was enough, so this one was cancelled. Its tool may have done its work.";
    assert_eq!(reply["calls"][0]["error"], expected);
    assert_eq!(reply["messages"].as_array().unwrap().len(), 3, "each call has an answer");

    // One after the other, what comes behind the first success is not made.
    let reply = stage.turn("any", &["fail", "fast", "fast"], json!({"parallel": 1})).await.json();
    assert_eq!(statuses(&reply), ["failed", "result", "not_needed"], "{reply}");
    assert!(reply["calls"][2]["error"].as_str().unwrap().ends_with("so this one was not made."), "{reply}");
    // Without a success, all of them were needed.
    assert_eq!(statuses(&stage.turn("any", &["fail", "fail"], json!({})).await.json()), ["failed", "failed"]);
    // The first end is enough for a race, whatever it is.
    let reply = stage.turn("race", &["fail", "fast"], json!({"parallel": 1})).await.json();
    assert_eq!(statuses(&reply), ["failed", "not_needed"]);
    stage.open.send_replace(true);
    stage.house.finish().await;
}

#[tokio::test]
async fn tools_that_are_not_idempotent_do_not_compete() {
    let stage = stage().await;
    for mode in ["any", "race"] {
        let answer = stage.turn(mode, &["fast", "send"], json!({})).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!(answer.json()["code"], "cannot_compete");
        assert_eq!(answer.json()["tools"], json!(["files/send"]));
        assert!(answer.problem().contains("call them with `mode=all`"), "{answer:?}");
    }
    assert_eq!(stage.turn("first", &["fast"], json!({})).await.status, 400);
    assert_eq!(stage.ran().len(), 0);
    let reply = stage.turn("all", &["fast", "send"], json!({})).await.json();
    assert_eq!(statuses(&reply), ["result", "result"]);
    stage.house.finish().await;
}

#[tokio::test]
async fn a_turn_that_was_decided_stays_so_under_its_id() {
    let stage = stage().await;
    let id = json!({"turn_id": "decided-1", "parallel": 1});
    let reply = stage.turn("any", &["fast", "fast"], id.clone()).await.json();
    assert_eq!(statuses(&reply), ["result", "not_needed"]);
    assert_eq!(stage.turn("any", &["fast", "fast"], id.clone()).await.json(), reply);
    assert_eq!(stage.ran(), ["fast"]);
    assert_eq!(stage.turn("all", &["fast", "fast"], id).await.status, 409, "another mode is another turn");
    stage.house.finish().await;
}

#[tokio::test]
async fn an_approval_that_is_not_needed_any_more_is_rejected() {
    let stage = stage().await;
    let approvals = || async { ask(stage.address, "GET", "/api/v1/approvals", &[], "").await.json() };
    let waiting = async {
        stage.callee.until_ran(1).await;
        let deadline = Clock::system().now() + PATIENCE;
        let list = loop {
            let list = approvals().await;
            if list["waiting"] == 1 {
                break list;
            }
            assert!(Clock::system().now() < deadline, "no call waits for approval: {list}");
        };
        stage.open.send_replace(true);
        list["approvals"][0]["id"].as_str().unwrap().to_owned()
    };
    let (answer, approval) = tokio::join!(stage.turn("any", &["careful", "slow"], json!({})), waiting);
    assert_eq!(statuses(&answer.json()), ["not_needed", "result"], "{answer:?}");
    let rejected = ask(stage.address, "GET", &format!("/api/v1/approvals/{approval}"), &[], "").await.json();
    assert_eq!(rejected["state"], "rejected", "{rejected}");
    assert_eq!(approvals().await["waiting"], 0);

    // A failure does not keep the caller waiting for a person.
    let answer = stage.turn("any", &["careful", "fail"], json!({})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(statuses(&answer.json()), ["waiting_for_approval", "failed"]);
    // A call that waits for a person holds what is behind it.
    let answer = stage.turn("any", &["careful", "fast"], json!({"parallel": 1})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(statuses(&answer.json()), ["waiting_for_approval", "queued"]);
    let approval = answer.json()["calls"][0]["approval_id"].as_str().unwrap().to_owned();
    let target = format!("/api/v1/approvals/{approval}/reject");
    assert_eq!(ask(stage.address, "POST", &target, &[JSON], "{}").await.status, 200);
    let target = format!("/api/v1/turns/{}?wait=30", answer.json()["turn_id"].as_str().unwrap());
    let reply = ask(stage.address, "GET", &target, &[], "").await.json();
    assert_eq!(statuses(&reply), ["refused", "result"], "{reply}");
    stage.house.finish().await;
}

#[tokio::test]
async fn what_is_not_needed_is_cancelled_where_its_scenario_can() {
    let mut search = mcp_server::tool("search");
    search["annotations"] = json!({"readOnlyHint": true});
    let mut own = legacy("2025-11-25", &json!([search]));
    let server = McpServer::start(move |came| match came.method() {
        // It never answers.
        "tools/call" => mcp_server::Answer::Stream(Vec::new()),
        _ => own(came),
    })
    .await;
    let stage = stage().await;
    stage.house.place("web", server.url(), callsheet::discovery::SourceTrust::Trusted);
    stage.house.until("web", |snapshot| snapshot.catalog.entries().count() == 2).await;
    let begun = async {
        server.until("tools/call", 1).await;
        stage.open.send_replace(true);
    };
    let (answer, ()) = tokio::join!(stage.turn("race", &["search", "slow"], json!({})), begun);
    assert_eq!(statuses(&answer.json()), ["not_needed", "result"], "{answer:?}");
    server.until("notifications/cancelled", 1).await;
    stage.house.finish().await;
}
