//! Turns that do not need all of their calls: the first that succeeds, or the first that ends.

use std::net::SocketAddr;

use callsheet::runtime::{Clock, Tasks};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::callee::{Callee, PATIENCE, Ran, answer, done, manifest, tool, tool_with};
use crate::support::house::House;
use crate::support::mcp_server::{self, McpServer, legacy, modern};
use crate::support::serving::{Answer, ask};

const JSON: (&str, &str) = ("content-type", "application/json");

/// Idempotent tools that answer at once, fail, want a text, and wait for a person or until they are
/// released; and one that is not idempotent.
struct Stage {
    callee: Callee,
    house: House,
    address: SocketAddr,
    /// Releases `slow`.
    open: watch::Sender<bool>,
    /// Releases `hold`, once it is approved.
    approved: watch::Sender<bool>,
}

async fn stage() -> Stage {
    let any = json!({"type": "object", "properties": {}});
    let safe = json!({"enabled_by_default": true, "idempotent": true});
    let risky = json!({"enabled_by_default": true, "idempotent": true, "requires_approval": true});
    let mut tools: Vec<Value> = ["fast", "slow", "fail"]
        .iter()
        .map(|name| tool_with(name, &any, &safe))
        .collect();
    let text =
        json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}});
    tools.extend([
        tool_with("careful", &any, &risky),
        tool_with("hold", &any, &risky),
        tool("send"),
    ]);
    tools.push(tool_with("strict", &text, &safe));
    let open = watch::Sender::new(false);
    let approved = watch::Sender::new(false);
    let gates = (open.clone(), approved.clone());
    let callee = Callee::start(manifest("files", &tools), move |ran: Ran| {
        let mut open = gates.0.subscribe();
        let mut approved = gates.1.subscribe();
        async move {
            match ran.tool.as_str() {
                "fail" => {
                    return answer(200, &json!({"success": false, "error": "it did not work"}));
                }
                "slow" => {
                    let _ = open.wait_for(|open| *open).await;
                }
                "hold" => {
                    let _ = approved.wait_for(|open| *open).await;
                }
                _ => {}
            }
            done(&json!(ran.tool))
        }
    })
    .await;
    let house = House::of(&[("files", callee.url())]).await;
    let address = house.serve().await;
    Stage {
        callee,
        house,
        address,
        open,
        approved,
    }
}

impl Stage {
    async fn turn(&self, mode: &str, names: &[&str], options: Value) -> Answer {
        turn(self.address, mode, names, options).await
    }

    fn ran(&self) -> Vec<String> {
        self.callee.ran().into_iter().map(|ran| ran.tool).collect()
    }

    async fn get(&self, target: &str) -> Value {
        ask(self.address, "GET", target, &[], "").await.json()
    }

    /// The approval that a call waits for, once there is one.
    async fn waiting_approval(&self) -> String {
        let list = until(
            || self.get("/api/v1/approvals"),
            |list| list["waiting"] == 1,
        )
        .await;
        let waiting = list["approvals"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["state"] == "waiting");
        waiting.unwrap()["id"].as_str().unwrap().to_owned()
    }
}

/// Asks until the answer is like that.
async fn until<F: Future<Output = Value>>(
    get: impl Fn() -> F,
    holds: impl Fn(&Value) -> bool,
) -> Value {
    let deadline = Clock::system().now() + PATIENCE;
    loop {
        let now = get().await;
        if holds(&now) {
            return now;
        }
        assert!(Clock::system().now() < deadline, "it stays so: {now}");
    }
}

async fn turn(address: SocketAddr, mode: &str, names: &[&str], options: Value) -> Answer {
    turn_in_chat(address, 0, (mode, names), options).await
}

async fn turn_in_chat(
    address: SocketAddr,
    chat: usize,
    (mode, names): (&str, &[&str]),
    options: Value,
) -> Answer {
    let calls: Vec<Value> = names.iter().map(|name| json!({"_tool": name})).collect();
    let mut body = json!({"response": {"calls": calls}, "mode": mode});
    body.as_object_mut()
        .unwrap()
        .extend(options.as_object().unwrap().clone());
    let target = format!("/api/v1/turns?format=calls&chat_id={chat}");
    ask(address, "POST", &target, &[JSON], &body.to_string()).await
}

fn statuses(turn: &Value) -> Vec<&str> {
    turn["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["status"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn the_first_success_is_enough_and_the_answer_says_what_was_not_needed() {
    let stage = stage().await;
    let answer = stage
        .turn("any", &["slow", "fail", "fast"], json!({}))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let reply = answer.json();
    assert_eq!(statuses(&reply)[0], "not_needed", "{reply}");
    assert_eq!(statuses(&reply)[2], "result", "{reply}");
    assert_eq!(reply["calls"][0]["code"], "not_needed");
    let expected = "Another call of this message was enough, so this one was cancelled. Its tool may have done its work.";
    assert_eq!(reply["calls"][0]["error"], expected);
    assert_eq!(
        reply["messages"].as_array().unwrap().len(),
        3,
        "each call has an answer"
    );

    // One after the other, what comes behind the first success is not made.
    let reply = stage
        .turn("any", &["fail", "fast", "fast"], json!({"parallel": 1}))
        .await
        .json();
    assert_eq!(
        statuses(&reply),
        ["failed", "result", "not_needed"],
        "{reply}"
    );
    assert!(
        reply["calls"][2]["error"]
            .as_str()
            .unwrap()
            .ends_with("so this one was not made."),
        "{reply}"
    );
    // Without a success, all of them were needed.
    assert_eq!(
        statuses(&stage.turn("any", &["fail", "fail"], json!({})).await.json()),
        ["failed", "failed"]
    );
    // The first end is enough for a race, whatever it is. What is not sent does not end.
    let reply = stage
        .turn("race", &["fail", "fast"], json!({"parallel": 1}))
        .await
        .json();
    assert_eq!(statuses(&reply), ["failed", "not_needed"]);
    let reply = stage
        .turn("race", &["strict", "fail", "fast"], json!({"parallel": 1}))
        .await
        .json();
    assert_eq!(statuses(&reply), ["refused", "failed", "not_needed"]);
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
        assert!(
            answer.problem().contains("call them with `mode=all`"),
            "{answer:?}"
        );
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
    let reply = stage
        .turn("any", &["fast", "fast"], id.clone())
        .await
        .json();
    assert_eq!(statuses(&reply), ["result", "not_needed"]);
    assert_eq!(
        stage
            .turn("any", &["fast", "fast"], id.clone())
            .await
            .json(),
        reply
    );
    assert_eq!(stage.ran(), ["fast"]);
    assert_eq!(
        stage.turn("all", &["fast", "fast"], id).await.status,
        409,
        "another mode is another turn"
    );
    stage.house.finish().await;
}

#[tokio::test]
async fn an_approval_that_is_not_needed_any_more_is_rejected() {
    let stage = stage().await;
    let waiting = async {
        stage.callee.until_ran(1).await;
        let approval = stage.waiting_approval().await;
        stage.open.send_replace(true);
        approval
    };
    let (answer, approval) =
        tokio::join!(stage.turn("any", &["careful", "slow"], json!({})), waiting);
    assert_eq!(
        statuses(&answer.json()),
        ["not_needed", "result"],
        "{answer:?}"
    );
    let rejected = stage.get(&format!("/api/v1/approvals/{approval}")).await;
    assert_eq!(rejected["state"], "rejected", "{rejected}");
    assert_eq!(stage.get("/api/v1/approvals").await["waiting"], 0);

    // A failure does not keep the caller waiting for a person.
    let answer = stage.turn("any", &["careful", "fail"], json!({})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(statuses(&answer.json()), ["waiting_for_approval", "failed"]);
    // A call that waits for a person holds what is behind it.
    let answer = stage
        .turn("any", &["careful", "fast"], json!({"parallel": 1}))
        .await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(statuses(&answer.json()), ["waiting_for_approval", "queued"]);
    let approval = answer.json()["calls"][0]["approval_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let target = format!("/api/v1/approvals/{approval}/reject");
    assert_eq!(
        ask(stage.address, "POST", &target, &[JSON], "{}")
            .await
            .status,
        200
    );
    let target = format!(
        "/api/v1/turns/{}?wait=30",
        answer.json()["turn_id"].as_str().unwrap()
    );
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
    stage.house.place(
        "web",
        server.url(),
        callsheet::discovery::SourceTrust::Trusted,
    );
    stage
        .house
        .until("web", |snapshot| snapshot.catalog.entries().count() == 2)
        .await;
    let begun = async {
        server.until("tools/call", 1).await;
        stage.open.send_replace(true);
    };
    let (answer, ()) = tokio::join!(stage.turn("race", &["search", "slow"], json!({})), begun);
    assert_eq!(
        statuses(&answer.json()),
        ["not_needed", "result"],
        "{answer:?}"
    );
    server.until("notifications/cancelled", 1).await;
    stage.house.finish().await;
}

#[tokio::test]
async fn with_tell_a_call_that_waits_for_approval_takes_no_further_part() {
    let stage = stage().await;
    let tell = |parallel: u32| json!({"approvals": "tell", "parallel": parallel});
    // Turns of one chat would share the approval of an equal call.
    let mut chat = 0;
    for (mode, names, expected) in [
        // It gives its place to the next one, and is rejected once that decides.
        ("any", ["careful", "fast"], ["not_needed", "result"]),
        (
            "any",
            ["careful", "fail"],
            ["waiting_for_approval", "failed"],
        ),
        ("race", ["careful", "fast"], ["not_needed", "result"]),
        ("race", ["careful", "fail"], ["not_needed", "failed"]),
        (
            "race",
            ["careful", "strict"],
            ["waiting_for_approval", "refused"],
        ),
        (
            "all",
            ["careful", "fast"],
            ["waiting_for_approval", "result"],
        ),
    ] {
        for parallel in [1, 8] {
            let about = format!("{mode} {names:?}, {parallel} at once");
            chat += 1;
            let answer = turn_in_chat(stage.address, chat, (mode, &names), tell(parallel)).await;
            assert_eq!(answer.status, 200, "{about}: {answer:?}");
            let answered = answer.json();
            assert_eq!(statuses(&answered), expected, "{about}: {answered}");
            assert_eq!(answered["messages"].as_array().unwrap().len(), 2, "{about}");
            let waits = expected[0] == "waiting_for_approval";
            let said = answered["messages"][0].to_string();
            assert_eq!(
                said.contains("waits for the approval of a person"),
                waits,
                "{about}: {said}"
            );
            // Side by side, it may have been cancelled before it waited.
            let is_sure = waits || parallel > 1 || said.contains("so this one was not made");
            assert!(is_sure, "{about}: {said}");
            // A call that asked for its approval only then is rejected beside the answer.
            until(
                || stage.get("/api/v1/approvals"),
                |list| list["waiting"] == u32::from(waits),
            )
            .await;
            if waits {
                let target = format!(
                    "/api/v1/approvals/{}/reject",
                    stage.waiting_approval().await
                );
                assert_eq!(
                    ask(stage.address, "POST", &target, &[JSON], "{}")
                        .await
                        .status,
                    200
                );
            }
        }
    }
    assert!(!stage.ran().contains(&"careful".to_owned()));
    stage.house.finish().await;
}

#[tokio::test]
async fn a_race_with_a_call_that_waits_for_a_person_ends_with_the_first_other_end() {
    let stage = stage().await;
    for parallel in [2, 8] {
        // Turns of one chat would share the approval of an equal call.
        let calls = ("race", &["careful", "fail"][..]);
        let answer = turn_in_chat(
            stage.address,
            parallel,
            calls,
            json!({"parallel": parallel}),
        )
        .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(
            statuses(&answer.json()),
            ["not_needed", "failed"],
            "{answer:?}"
        );
        // A call that asked for its approval only then is rejected beside the answer.
        until(
            || stage.get("/api/v1/approvals"),
            |list| list["waiting"] == 0,
        )
        .await;
    }
    stage.house.finish().await;
}

#[tokio::test]
async fn a_call_that_was_approved_just_before_may_have_run() {
    let stage = stage().await;
    #[expect(
        clippy::async_yields_async,
        reason = "the approval is answered after the turn only"
    )]
    let approving = async {
        let approval = stage.waiting_approval().await;
        let address = stage.address;
        let target = format!("/api/v1/approvals/{approval}/approve");
        let approving =
            Tasks::new().spawn(async move { ask(address, "POST", &target, &[JSON], "{}").await });
        stage.callee.until_ran(2).await;
        stage.open.send_replace(true);
        approving
    };
    let (answer, approving) =
        tokio::join!(stage.turn("any", &["hold", "slow"], json!({})), approving);
    let answered = answer.json();
    assert_eq!(statuses(&answered), ["not_needed", "result"], "{answered}");
    let said = answered["calls"][0]["error"].as_str().unwrap();
    assert!(said.ends_with("Its tool may have done its work."), "{said}");
    stage.approved.send_replace(true);
    assert_eq!(approving.await.unwrap().json()["state"], "answered");
    let id = answered["turn_id"].as_str().unwrap();
    assert_eq!(
        stage.get(&format!("/api/v1/turns/{id}")).await,
        answered,
        "what was handed out does not change"
    );
    stage.house.finish().await;
}

/// Adds an MCP server whose tool asks for a city and gives it back.
async fn with_guide(stage: &Stage) -> McpServer {
    let mut guide = mcp_server::tool("guide");
    guide["annotations"] = json!({"readOnlyHint": true});
    let mut own = modern(&json!([guide]));
    let server = McpServer::start(move |came| match (came.method(), came.message["params"].get("inputResponses")) {
        ("tools/call", None) => {
            let form = json!({"message": "Which city?", "requestedSchema": {"type": "object", "properties": {}}});
            let requests = json!({"city": {"method": "elicitation/create", "params": form}});
            came.result(&json!({"resultType": "input_required", "inputRequests": requests}))
        }
        ("tools/call", Some(given)) => {
            came.result(&json!({"resultType": "complete", "content": [], "structuredContent": given}))
        }
        _ => own(came),
    })
    .await;
    stage.house.place(
        "guides",
        server.url(),
        callsheet::discovery::SourceTrust::Trusted,
    );
    stage
        .house
        .until("guides", |snapshot| snapshot.catalog.entries().count() == 2)
        .await;
    server
}

#[tokio::test]
async fn a_question_that_is_not_needed_any_more_is_taken_back() {
    let stage = stage().await;
    let server = with_guide(&stage).await;
    for (number, (mode, approvals)) in [("any", "wait"), ("race", "tell")].into_iter().enumerate() {
        stage.open.send_replace(false);
        let id = format!("turn-with-a-question-{number}");
        let asked = async {
            let call = format!("/api/v1/calls/{id}.0");
            let waiting = until(
                || stage.get(&call),
                |call| call["status"] == "waiting_for_input",
            )
            .await;
            stage.callee.until_ran(number + 1).await;
            stage.open.send_replace(true);
            waiting["interaction"]["id"].as_str().unwrap().to_owned()
        };
        let options = json!({"turn_id": id, "approvals": approvals});
        let (answer, question) = tokio::join!(stage.turn(mode, &["guide", "slow"], options), asked);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(
            statuses(&answer.json()),
            ["not_needed", "result"],
            "{answer:?}"
        );
        // The call ends without its answer, and is not sent again.
        let over = until(
            || async {
                json!(
                    ask(
                        stage.address,
                        "GET",
                        &format!("/api/v1/calls/{id}.0"),
                        &[],
                        ""
                    )
                    .await
                    .status
                )
            },
            |status| *status == 502,
        );
        over.await;
        let give = format!("/api/v1/interactions/{question}");
        let given = ask(
            stage.address,
            "POST",
            &give,
            &[JSON],
            r#"{"action":"accept","content":{"city":"Oslo"}}"#,
        )
        .await;
        assert_eq!(given.status, 404, "{given:?}");
        assert_eq!(server.of("tools/call").len(), number + 1);
    }
    stage.house.finish().await;
}

#[tokio::test]
async fn a_question_holds_its_place_in_either_way_of_approvals_and_its_answer_decides() {
    let stage = stage().await;
    let _server = with_guide(&stage).await;
    for approvals in ["wait", "tell"] {
        let options = json!({"approvals": approvals, "parallel": 1});
        let answer = stage.turn("any", &["guide", "fast"], options).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let answered = answer.json();
        assert_eq!(
            statuses(&answered),
            ["waiting_for_input", "queued"],
            "{answered}"
        );
        assert_eq!(
            answered["calls"][0]["interaction"]["message"],
            "Which city?"
        );
        let give = format!(
            "/api/v1/interactions/{}",
            answered["calls"][0]["interaction"]["id"].as_str().unwrap()
        );
        let given = ask(
            stage.address,
            "POST",
            &give,
            &[JSON],
            r#"{"action":"accept","content":{"city":"Oslo"}}"#,
        )
        .await;
        assert_eq!(given.status, 200, "{given:?}");
        let turn = format!(
            "/api/v1/turns/{}?wait=30",
            answered["turn_id"].as_str().unwrap()
        );
        let answered = stage.get(&turn).await;
        assert_eq!(statuses(&answered), ["result", "not_needed"], "{answered}");
        assert!(
            answered["messages"][0].to_string().contains("Oslo"),
            "{answered}"
        );
    }
    assert_eq!(stage.ran().len(), 0);
    stage.house.finish().await;
}
