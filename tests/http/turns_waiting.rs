//! Turns that take a while: calls side by side, approvals, operations, repeated requests, restarts,
//! and whose turn it is.

use std::sync::Arc;
use std::time::Duration;

use callsheet::config::Config;
use callsheet::discovery::SourceTrust;
use callsheet::model::{JsonText, Secret, StoredTurn};
use callsheet::runtime::Clock;
use callsheet::state::{Write, sqlite};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::support::callee::{Callee, Ran, answer, done, manifest, tool, tool_with};
use crate::support::daemon::{Daemon, Home, PATIENCE, configured};
use crate::support::house::House;
use crate::support::listener::Listener;
use crate::support::scripted_session::Script;
use crate::support::serving::{Answer, ask};

/// Tools that answer at once, when the test says so, and after a person's approval.
struct Stage {
    callee: Callee,
    open: watch::Sender<bool>,
}

async fn stage() -> Stage {
    let any = json!({"type": "object", "properties": {}});
    let risky = json!({"enabled_by_default": true, "requires_approval": true});
    let tools = [tool("look"), tool("hold"), tool_with("wipe", &any, &risky)];
    let open = watch::Sender::new(false);
    let gate = open.clone();
    let callee = Callee::start(manifest("disks", &tools), move |ran: Ran| {
        let mut gate = gate.subscribe();
        async move {
            if ran.tool == "hold" {
                let _ = gate.wait_for(|open| *open).await;
            }
            done(&ran.arguments)
        }
    })
    .await;
    Stage { callee, open }
}

impl Stage {
    fn config(&self, home: &Home) -> Config {
        let mut config = home.config(&[]);
        config.scenarios = vec![configured(
            "disks",
            ([127, 0, 0, 1], self.callee.port()).into(),
        )];
        config
    }

    async fn daemon(&self, home: &Home) -> Daemon {
        Daemon::ready(self.config(home)).await
    }
}

fn calls(names: &[&str]) -> Value {
    let calls = names.iter().enumerate().map(|(number, name)| {
        json!({"id": format!("c{number}"), "type": "function", "function": {"name": name, "arguments": format!("{{\"n\":{number}}}")}})
    });
    json!({"role": "assistant", "content": null, "tool_calls": calls.collect::<Vec<_>>()})
}

async fn post(daemon: &Daemon, body: &Value) -> Answer {
    daemon
        .send_json("POST", "/api/v1/turns?format=openai", body)
        .await
}

fn statuses(turn: &Value) -> Vec<&str> {
    turn["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["status"].as_str().unwrap())
        .collect()
}

/// Asks until the turn is over.
async fn complete(daemon: &Daemon, id: &str) -> Value {
    let deadline = Clock::system().now() + PATIENCE;
    loop {
        let answer = daemon.get(&format!("/api/v1/turns/{id}?wait=5")).await;
        if answer.status == 200 {
            return answer.json();
        }
        assert_eq!(answer.status, 202, "{answer:?}");
        assert!(
            Clock::system().now() < deadline,
            "never complete: {answer:?}"
        );
    }
}

async fn approve(daemon: &Daemon, turn: &Value, number: usize) {
    let id = turn["calls"][number]["approval_id"].as_str().unwrap();
    let answer = daemon
        .send_json(
            "POST",
            &format!("/api/v1/approvals/{id}/approve"),
            &json!({}),
        )
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn calls_run_side_by_side_and_results_keep_the_models_order() {
    let home = Home::new();
    let stage = stage().await;
    let daemon = stage.daemon(&home).await;
    let begun = async {
        // The second one is answered while the first and the third are held.
        stage.callee.until_ran(3).await;
        stage.open.send_replace(true);
    };
    let body = json!({"response": calls(&["hold", "look", "hold"])});
    let (answer, ()) = tokio::join!(post(&daemon, &body), begun);
    assert_eq!(answer.status, 200, "{answer:?}");
    let results: Vec<Value> = answer.json()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["content"].clone())
        .collect();
    assert_eq!(results, ["{\"n\":0}", "{\"n\":1}", "{\"n\":2}"]);
    daemon.stop().await;
}

#[tokio::test]
async fn one_at_a_time_runs_in_the_models_order() {
    let home = Home::new();
    let stage = stage().await;
    stage.open.send_replace(true);
    let daemon = stage.daemon(&home).await;
    let names = ["hold", "look", "hold", "look", "look"];
    let answer = post(&daemon, &json!({"response": calls(&names), "parallel": 1})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let ran: Vec<u64> = stage
        .callee
        .ran()
        .iter()
        .map(|ran| ran.arguments["n"].as_u64().unwrap())
        .collect();
    assert_eq!(ran, [0, 1, 2, 3, 4]);
    daemon.stop().await;
}

#[tokio::test]
async fn a_turn_waits_for_approval_and_is_completed_later() {
    let home = Home::new();
    let stage = stage().await;
    let daemon = stage.daemon(&home).await;
    let answer = post(&daemon, &calls(&["look", "wipe", "wipe"])).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let turn = answer.json();
    assert_eq!(
        statuses(&turn),
        ["result", "waiting_for_approval", "waiting_for_approval"]
    );
    assert_eq!(turn["messages"], Value::Null);
    assert_eq!(turn["status"], "waiting");
    let id = turn["turn_id"].as_str().unwrap();
    approve(&daemon, &turn, 1).await;
    let rejected = turn["calls"][2]["approval_id"].as_str().unwrap();
    let answer = daemon
        .send_json(
            "POST",
            &format!("/api/v1/approvals/{rejected}/reject"),
            &json!({"reason": "not today"}),
        )
        .await;
    assert_eq!(answer.status, 200);
    let turn = complete(&daemon, id).await;
    assert_eq!(statuses(&turn), ["result", "result", "refused"]);
    assert_eq!(turn["messages"][1]["content"], "{\"n\":1}");
    let expected = "Error: A person rejected the call of `wipe`: not today. The tool did not run.";
    assert_eq!(turn["messages"][2]["content"], expected);
    assert_eq!(
        complete(&daemon, id).await["messages"],
        turn["messages"],
        "it stays as it is"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn the_model_may_be_told_that_a_call_waits() {
    let home = Home::new();
    let stage = stage().await;
    let daemon = stage.daemon(&home).await;
    let answer = post(
        &daemon,
        &json!({"response": calls(&["wipe"]), "approvals": "tell"}),
    )
    .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let turn = answer.json();
    assert_eq!(statuses(&turn), ["waiting_for_approval"]);
    let text = turn["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(
        text.starts_with("The call of `wipe` waits for the approval of a person"),
        "{text}"
    );
    approve(&daemon, &turn, 0).await;
    let later = complete(&daemon, turn["turn_id"].as_str().unwrap()).await;
    assert_eq!(
        later["messages"][0]["content"], text,
        "what was handed out does not change"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn the_same_turn_sent_again_runs_no_call_twice() {
    let home = Home::new();
    let stage = stage().await;
    let daemon = stage.daemon(&home).await;
    let body = json!({"response": calls(&["look", "hold"]), "turn_id": "turn-one-of-the-test"});
    let begun = async {
        stage.callee.until_ran(2).await;
        let again = post(&daemon, &body);
        let open = async { stage.open.send_replace(true) };
        tokio::join!(again, open).0
    };
    let (first, again) = tokio::join!(post(&daemon, &body), begun);
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(
        again.body, first.body,
        "the one that came meanwhile waits for the same answer"
    );
    assert_eq!(post(&daemon, &body).await.body, first.body);
    assert_eq!(stage.callee.ran().len(), 2);

    for other in [
        json!({"response": calls(&["look"]), "turn_id": "turn-one-of-the-test"}),
        json!({"response": calls(&["look", "hold"]), "turn_id": "turn-one-of-the-test", "approvals": "tell"}),
    ] {
        let answer = post(&daemon, &other).await;
        assert_eq!(answer.status, 409, "{answer:?}");
        assert_eq!(answer.json()["code"], "turn_id_taken");
    }
    for scope in ["profile=other", "chat_id=other"] {
        let answer = daemon
            .send_json(
                "POST",
                &format!("/api/v1/turns?format=openai&{scope}"),
                &body,
            )
            .await;
        assert_eq!(answer.status, 409, "{scope}: {answer:?}");
    }
    // Waiting longer is the same turn.
    let patient =
        json!({"response": calls(&["look", "hold"]), "turn_id": "turn-one-of-the-test", "wait": 1});
    assert_eq!(post(&daemon, &patient).await.status, 200);
    assert_eq!(stage.callee.ran().len(), 2);
    daemon.stop().await;

    let daemon = stage.daemon(&home).await;
    let again = post(&daemon, &body).await;
    assert_eq!(again.status, 200, "{again:?}");
    assert_eq!(
        again.json()["messages"],
        first.json()["messages"],
        "also after a restart"
    );
    assert_eq!(stage.callee.ran().len(), 2);
    daemon.stop().await;
}

/// Each call can be followed and cancelled by its id.
#[tokio::test]
async fn the_ids_of_a_turns_calls_and_those_of_other_calls_never_meet() {
    let home = Home::new();
    let stage = stage().await;
    let daemon = stage.daemon(&home).await;
    let call = json!({"tool_name": "hold", "arguments": {}, "call_id": "turn-two-of-the-test.1"});
    let turn = json!({"response": calls(&["look", "look"]), "turn_id": "turn-two-of-the-test"});
    let execute = || daemon.send_json("POST", "/api/v1/tools/execute", &call);
    let refused = async {
        stage.callee.until_ran(1).await;
        let refused = post(&daemon, &turn).await;
        stage.open.send_replace(true);
        refused
    };
    let (held, refused) = tokio::join!(execute(), refused);
    assert_eq!(held.status, 200, "{held:?}");
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(refused.json()["code"], "turn_id_taken");
    let text = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        text.contains("another call has the id \"turn-two-of-the-test.1\""),
        "{text}"
    );
    assert_eq!(stage.callee.ran().len(), 1, "no call of the turn was sent");

    let begun = post(&daemon, &turn).await;
    assert_eq!(
        statuses(&begun.json()),
        ["result", "result"],
        "no other call has its ids any more"
    );
    let taken = execute().await;
    assert_eq!(taken.status, 409, "{taken:?}");
    assert_eq!(stage.callee.ran().len(), 3);
    let other = json!({"tool_name": "look", "arguments": {}, "call_id": "turn-two-of-the-test.2"});
    assert_eq!(
        daemon
            .send_json("POST", "/api/v1/tools/execute", &other)
            .await
            .status,
        200,
        "it has no third call"
    );
    daemon.stop().await;
}

/// An equal call of another client is a new call, which a person decides about.
#[tokio::test]
async fn the_outcome_of_an_approved_call_is_given_to_its_turn_only() {
    let home = Home::new();
    let stage = stage().await;
    let daemon = stage.daemon(&home).await;
    let turn = post(&daemon, &calls(&["wipe"])).await.json();
    approve(&daemon, &turn, 0).await;
    assert_eq!(
        statuses(&complete(&daemon, turn["turn_id"].as_str().unwrap()).await),
        ["result"]
    );
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "wipe", "arguments": {"n": 0}}});
    let answer = daemon.send_json("POST", "/rpc", &call).await.json();
    assert_eq!(answer["error"]["code"], 1001, "{answer}");
    assert_ne!(
        answer["error"]["data"]["approval_id"],
        turn["calls"][0]["approval_id"]
    );
    assert_eq!(stage.callee.ran().len(), 1);
    daemon.stop().await;
}

#[tokio::test]
async fn a_turn_that_waits_for_approval_outlives_the_daemon() {
    let home = Home::new();
    let stage = stage().await;
    let daemon = stage.daemon(&home).await;
    let turn = post(&daemon, &calls(&["look", "wipe"])).await.json();
    daemon.stop().await;
    let daemon = stage.daemon(&home).await;
    let id = turn["turn_id"].as_str().unwrap();
    let answer = daemon.get(&format!("/api/v1/turns/{id}")).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    approve(&daemon, &turn, 1).await;
    let turn = complete(&daemon, id).await;
    assert_eq!(statuses(&turn), ["result", "result"]);
    assert_eq!(turn["messages"][1]["content"], "{\"n\":1}");
    daemon.stop().await;
}

#[tokio::test]
async fn what_had_begun_when_the_daemon_was_killed_is_not_sent_again() {
    let home = Home::new();
    let stage = stage().await;
    let body = json!({"response": calls(&["look", "hold"]), "turn_id": "turn-that-was-cut-off"});
    let daemon = stage.daemon(&home).await;
    let first = tokio::select! {
        answer = post(&daemon, &body) => panic!("answered: {answer:?}"),
        () = async {
            stage.callee.until_ran(2).await;
            // The first call is over and stored, the second is under way.
            until_stored(&home, |stored| stored.contains("\"status\":\"result\"")).await;
        } => stored(&home),
    };
    stage.open.send_replace(true);
    daemon.stop().await;
    // As a daemon that was killed then left it.
    write(&home, first).await;

    let daemon = stage.daemon(&home).await;
    let answer = post(&daemon, &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let turn = answer.json();
    assert_eq!(statuses(&turn), ["result", "unknown-outcome"]);
    assert_eq!(turn["messages"][0]["content"], "{\"n\":0}");
    let said = turn["messages"][1]["content"].as_str().unwrap();
    assert!(
        said.starts_with("Error: Whether the call ran to its end is not known"),
        "{said}"
    );
    assert_eq!(stage.callee.ran().len(), 2);
    daemon.stop().await;
}

/// The stored turn, read beside the daemon.
fn stored(home: &Home) -> StoredTurn {
    let connection = rusqlite::Connection::open(home.state()).unwrap();
    let read = |row: &rusqlite::Row<'_>| {
        let text = |name: &str| row.get::<_, String>(name);
        Ok(StoredTurn {
            id: text("id")?.into(),
            owner: text("owner")?.into(),
            digest: text("digest")?.into(),
            format: text("format")?.into(),
            begun_at: text("begun_at")?.parse().unwrap(),
            document: JsonText::parse(&text("document")?).unwrap(),
        })
    };
    connection
        .query_row("SELECT * FROM turns", [], read)
        .unwrap()
}

async fn until_stored(home: &Home, holds: impl Fn(&str) -> bool) {
    let deadline = Clock::system().now() + PATIENCE;
    while !holds(stored(home).document.get()) {
        assert!(Clock::system().now() < deadline, "never stored so");
        tokio::task::yield_now().await;
    }
}

async fn write(home: &Home, turn: StoredTurn) {
    let store = sqlite::open(&home.state(), Clock::system()).unwrap();
    store.save(vec![Write::Turn(Arc::new(turn))]).await.unwrap();
}

#[tokio::test]
async fn a_turn_belongs_to_the_identity_that_made_it() {
    const TOKEN: &str = "a-token-of-sixteen-letters";
    let home = Home::new();
    let stage = stage().await;
    let mut config = stage.config(&home);
    config.server.operator_token = Some(Secret::new(TOKEN));
    let daemon = Daemon::ready(config).await;
    let bearer = format!("Bearer {TOKEN}");
    let headers = [
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
    ];
    let body = json!({"response": calls(&["look"]), "turn_id": "turn-of-the-operator"}).to_string();
    let send = |headers| {
        ask(
            daemon.address,
            "POST",
            "/api/v1/turns?format=openai",
            headers,
            &body,
        )
    };
    assert_eq!(send(&headers).await.status, 200);
    let answer = send(&headers[..1]).await;
    assert_eq!(answer.status, 409, "its id is taken: {answer:?}");
    for target in [
        "/api/v1/turns/turn-of-the-operator",
        "/api/v1/results/turn-of-the-operator.0",
    ] {
        assert_eq!(daemon.get(target).await.status, 404, "{target}");
        assert_eq!(
            ask(daemon.address, "GET", target, &headers, "")
                .await
                .status,
            200,
            "{target}"
        );
    }
    daemon.stop().await;
}

#[tokio::test]
async fn only_so_many_turns_and_calls_are_kept_and_run() {
    let home = Home::new();
    let stage = stage().await;
    let mut config = stage.config(&home);
    (config.calls.turns.max, config.calls.turns.max_calls) = (2, 2);
    let daemon = Daemon::ready(config).await;
    let turn = post(&daemon, &calls(&["look", "look", "look"]))
        .await
        .json();
    assert_eq!(statuses(&turn), ["result", "result", "refused"]);
    assert_eq!(turn["calls"][2]["code"], "too_many_calls");
    let waits = post(&daemon, &calls(&["wipe"])).await;
    assert_eq!(waits.status, 202);
    // The one that is over makes room, and one that waits does not.
    let other = post(&daemon, &json!({"response": calls(&["look", "wipe"])})).await;
    assert_eq!(other.status, 202, "{other:?}");
    let first = turn["turn_id"].as_str().unwrap();
    assert_eq!(
        daemon.get(&format!("/api/v1/turns/{first}")).await.status,
        404
    );
    let answer = post(&daemon, &calls(&["look"])).await;
    assert_eq!(answer.status, 429, "{answer:?}");
    assert_eq!(answer.json()["code"], "busy");
    daemon.stop().await;
}

#[tokio::test]
async fn turns_that_gave_way_to_others_leave_the_store_too() {
    let home = Home::new();
    let stage = stage().await;
    let mut config = stage.config(&home);
    config.calls.turns.max = 1;
    let daemon = Daemon::ready(config).await;
    for id in ["turn-of-the-test-1", "turn-of-the-test-2"] {
        let answer = post(
            &daemon,
            &json!({"response": calls(&["look"]), "turn_id": id}),
        )
        .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    daemon.stop().await;
    let daemon = stage.daemon(&home).await;
    assert_eq!(
        daemon.get("/api/v1/turns/turn-of-the-test-1").await.status,
        404
    );
    assert_eq!(
        daemon.get("/api/v1/turns/turn-of-the-test-2").await.status,
        200
    );
    daemon.stop().await;
}

/// A result of the Tool Protocol repeats its call, which the model would not know otherwise.
#[tokio::test]
async fn results_of_the_tool_protocol_are_the_same_after_a_restart() {
    let home = Home::new();
    let stage = stage().await;
    let body = json!({"response": {"calls": [{"_tool": "look", "n": 1}]}, "turn_id": "turn-one-of-the-test"});
    let mut messages = Vec::new();
    for _ in 0..2 {
        let daemon = stage.daemon(&home).await;
        let answer = daemon
            .send_json("POST", "/api/v1/turns?format=calls", &body)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        messages.push(answer.json()["messages"].to_string());
        daemon.stop().await;
    }
    assert!(messages[0].contains("look"), "{}", messages[0]);
    assert_eq!(messages[0], messages[1]);
    assert_eq!(stage.callee.ran().len(), 1);
}

#[tokio::test]
async fn stored_turns_that_are_not_kept_after_a_restart_are_a_finding() {
    let home = Home::new();
    let stage = stage().await;
    let daemon = stage.daemon(&home).await;
    for id in [
        "turn-of-the-test-1",
        "turn-of-the-test-2",
        "turn-of-the-test-3",
    ] {
        let body = json!({"response": calls(&["wipe"]), "turn_id": id});
        assert_eq!(post(&daemon, &body).await.status, 202);
    }
    assert!(daemon.findings("turns-left-out").await.is_empty());
    daemon.stop().await;
    let store = rusqlite::Connection::open(home.state()).unwrap();
    store
        .execute(
            "UPDATE turns SET document = '{}' WHERE id = 'turn-of-the-test-1'",
            [],
        )
        .unwrap();
    drop(store);

    let mut config = stage.config(&home);
    config.calls.turns.max = 1;
    let daemon = Daemon::ready(config).await;
    let findings = daemon.findings("turns-left-out").await;
    let about = |index: usize| {
        (
            findings[index]["message"].as_str().unwrap(),
            findings[index]["hint"].as_str().unwrap(),
        )
    };
    assert_eq!(findings.len(), 2, "{findings:?}");
    let limits = findings
        .iter()
        .position(|finding| finding["message"].as_str().unwrap().contains("`turns.max`"));
    let limits = limits.unwrap();
    assert!(
        about(limits)
            .0
            .contains("1 of the stored turns are not kept"),
        "{findings:?}"
    );
    assert!(
        about(limits).0.contains("`turn-of-the-test-3`"),
        "{findings:?}"
    );
    assert!(
        about(limits).1.contains("restart the daemon"),
        "{findings:?}"
    );
    assert!(
        about(1 - limits)
            .0
            .contains("cannot be read: `turn-of-the-test-1`"),
        "{findings:?}"
    );
    daemon.stop().await;

    let daemon = stage.daemon(&home).await;
    let kept = daemon.get("/api/v1/turns/turn-of-the-test-3").await;
    assert_eq!(kept.status, 202, "it stays in the store: {kept:?}");
    assert_eq!(
        daemon.findings("turns-left-out").await.len(),
        1,
        "one cannot be read"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn stored_turns_without_room_are_deleted_some_time_after_their_end() {
    let home = Home::new();
    let stage = stage().await;
    let daemon = stage.daemon(&home).await;
    let first = json!({"response": calls(&["wipe"]), "turn_id": "turn-of-the-test-1"});
    assert_eq!(post(&daemon, &first).await.status, 202);
    // With other arguments, since equal calls wait for one approval.
    let second = json!({"response": calls(&["look", "wipe"]), "turn_id": "turn-of-the-test-2"});
    let second = post(&daemon, &second).await.json();
    let approval = second["calls"][1]["approval_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{second:#}"));
    daemon.stop().await;

    let mut config = stage.config(&home);
    config.calls.turns.max = 1;
    config.calls.turns.keep = Duration::ZERO;
    let daemon = Daemon::ready(config).await;
    assert_eq!(daemon.findings("turns-left-out").await.len(), 1);
    assert_eq!(
        stored_turns(&home),
        ["turn-of-the-test-1", "turn-of-the-test-2"],
        "one of its calls waits"
    );
    let target = format!("/api/v1/approvals/{approval}/reject");
    assert_eq!(
        daemon.send_json("POST", &target, &json!({})).await.status,
        200
    );
    let findings = "/api/v1/findings?code=turns-left-out";
    daemon
        .until(findings, |answer| {
            answer.json()["findings"]
                .as_array()
                .is_some_and(Vec::is_empty)
        })
        .await;
    daemon.stop().await;
    assert_eq!(stored_turns(&home), ["turn-of-the-test-1"]);
}

#[tokio::test]
async fn a_turn_that_was_left_out_and_is_begun_anew_is_stored_as_the_new_one() {
    let home = Home::new();
    let stage = stage().await;
    let daemon = stage.daemon(&home).await;
    let first = json!({"response": calls(&["wipe"]), "turn_id": "turn-of-the-test-1"});
    let first = post(&daemon, &first).await.json();
    let second = json!({"response": calls(&["look", "wipe"]), "turn_id": "turn-of-the-test-2"});
    assert_eq!(post(&daemon, &second).await.status, 202);
    daemon.stop().await;

    let mut config = stage.config(&home);
    config.calls.turns.max = 1;
    let daemon = Daemon::ready(config).await;
    let approval = first["calls"][0]["approval_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{first:#}"));
    let target = format!("/api/v1/approvals/{approval}/reject");
    assert_eq!(
        daemon.send_json("POST", &target, &json!({})).await.status,
        200
    );
    daemon
        .until("/api/v1/turns/turn-of-the-test-1", |answer| {
            answer.status == 200
        })
        .await;
    let anew = json!({"response": calls(&["look"]), "turn_id": "turn-of-the-test-2"});
    assert_eq!(
        post(&daemon, &anew).await.status,
        200,
        "the one that is over makes room"
    );
    assert!(
        daemon.findings("turns-left-out").await.is_empty(),
        "it is kept again"
    );
    daemon.stop().await;

    let daemon = stage.daemon(&home).await;
    let ran = stage.callee.ran().len();
    let again = post(&daemon, &anew).await;
    assert_eq!(again.status, 200, "{again:?}");
    assert_eq!(
        stage.callee.ran().len(),
        ran,
        "the same turn runs no call again"
    );
    daemon.stop().await;
}

/// The ids of the stored turns.
fn stored_turns(home: &Home) -> Vec<String> {
    let connection = rusqlite::Connection::open(home.state()).unwrap();
    let mut query = connection
        .prepare("SELECT id FROM turns ORDER BY id")
        .unwrap();
    query
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// A house with one scenario that a script plays.
async fn played(script: &Script) -> House {
    let house = House::speaking(script.protocol(), |_| ()).await;
    house.place(
        "actor",
        "local:actor".parse().unwrap(),
        SourceTrust::Trusted,
    );
    house
        .until("listed", |snapshot| snapshot.catalog.entries().count() == 1)
        .await;
    house
}

#[tokio::test]
async fn a_turn_goes_on_with_the_input_that_a_tool_asks_for() {
    let script = Script::of(&["input", "other"]);
    let house = played(&script).await;
    let address = house.serve().await;
    let body = json!({"response": calls(&["input", "other"]), "parallel": 1}).to_string();
    let headers = [("content-type", "application/json")];
    let answer = ask(
        address,
        "POST",
        "/api/v1/turns?format=openai",
        &headers,
        &body,
    )
    .await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let turn = answer.json();
    assert_eq!(
        statuses(&turn),
        ["waiting_for_input", "result"],
        "a person keeps no other call waiting"
    );
    let interaction = &turn["calls"][0]["interaction"];
    assert_eq!(interaction["message"], "Which city?");
    let give = format!(
        "/api/v1/interactions/{}",
        interaction["id"].as_str().unwrap()
    );
    let input = json!({"action": "accept", "content": {"city": "Oslo"}}).to_string();
    assert_eq!(
        ask(address, "POST", &give, &headers, &input).await.status,
        200
    );
    let target = format!(
        "/api/v1/turns/{}?wait=30",
        turn["turn_id"].as_str().unwrap()
    );
    let answer = ask(address, "GET", &target, &[], "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let said = answer.json()["messages"][0]["content"].take();
    assert!(said.as_str().unwrap().contains("Oslo"), "{said}");
    house.finish().await;
}

#[tokio::test]
async fn the_calls_of_a_turn_are_followed_and_cancelled_like_all_calls() {
    let script = Script::of(&["progress", "wait"]);
    let house = played(&script).await;
    let address = house.serve().await;
    let body =
        json!({"response": calls(&["progress", "wait"]), "turn_id": "turn-that-is-followed"})
            .to_string();
    let headers = [("content-type", "application/json")];
    let (mut events, _) =
        Listener::begin(address, "?kind=call&call_id=turn-that-is-followed.0").await;
    let cancel = async {
        let event = events.next().await;
        assert_eq!(event.data["what"], "progress");
        assert_eq!(event.data["call_id"], "turn-that-is-followed.0");
        script.until("waiting", 1).await;
        let target = "/api/v1/calls/turn-that-is-followed.1";
        assert_eq!(ask(address, "DELETE", target, &[], "").await.status, 202);
    };
    let turn = ask(
        address,
        "POST",
        "/api/v1/turns?format=openai",
        &headers,
        &body,
    );
    let (answer, ()) = tokio::join!(turn, cancel);
    let turn = answer.json();
    assert_eq!(statuses(&turn), ["result", "failed"]);
    assert_eq!(turn["messages"][1]["content"], "Error: it was cancelled");
    house.finish().await;
}

/// A tool that goes on, and is over when the test says so.
async fn long_running(open: &watch::Sender<bool>) -> Callee {
    let behaviour = json!({
        "status_polling": {"status_tool": "get_run", "operation_id_field": "run.id", "status_tool_id_param": "run_id",
            "poll_interval_seconds": 0.02},
        "completion_conditions": {"status_field": "status", "success_values": ["done"], "failure_values": ["failed"],
            "result_field": "output"},
    });
    let on = json!({"enabled_by_default": true});
    let takes = json!({"type": "object", "properties": {"run_id": {"type": "string"}}, "required": ["run_id"]});
    let start =
        json!({"enabled_by_default": true, "long_running": true, "async_behavior": behaviour});
    let nothing = json!({"type": "object", "properties": {}});
    let tools = [
        tool_with("start", &nothing, &start),
        tool_with("get_run", &takes, &on),
    ];
    let open = open.clone();
    Callee::start(manifest("disks", &tools), move |ran: Ran| {
        let is_over = *open.borrow();
        async move {
            if ran.tool == "start" {
                return answer(
                    202,
                    &json!({"success": true, "is_async": true, "result": {"run": {"id": "r1"}}}),
                );
            }
            done(&json!({"status": if is_over { "done" } else { "running" }, "output": "built"}))
        }
    })
    .await
}

#[tokio::test]
async fn an_operation_is_waited_for_or_said_to_go_on() {
    let home = Home::new();
    let open = watch::Sender::new(false);
    let callee = long_running(&open).await;
    let mut config = home.config(&[]);
    config.calls.poll_min = std::time::Duration::from_millis(5);
    config.scenarios = vec![configured("disks", ([127, 0, 0, 1], callee.port()).into())];
    let daemon = Daemon::ready(config).await;
    let answer = post(&daemon, &calls(&["start"])).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let turn = answer.json();
    assert_eq!(statuses(&turn), ["operation"]);
    let operation = turn["calls"][0]["operation_id"].as_str().unwrap();
    let said = turn["messages"][0]["content"].as_str().unwrap();
    assert!(
        said.ends_with(&format!(
            "as operation {operation}; its outcome is not known yet."
        )),
        "{said}"
    );
    open.send_replace(true);
    let later = complete(&daemon, turn["turn_id"].as_str().unwrap()).await;
    assert_eq!(
        later["messages"], turn["messages"],
        "what was handed out does not change"
    );

    let waited = post(&daemon, &json!({"response": calls(&["start"]), "wait": 60}))
        .await
        .json();
    assert_eq!(statuses(&waited), ["result"]);
    assert_eq!(waited["messages"][0]["content"], "built");
    daemon.stop().await;
}

#[tokio::test]
async fn a_turn_goes_on_when_its_caller_goes_away() {
    let home = Home::new();
    let stage = stage().await;
    let daemon = stage.daemon(&home).await;
    let body = json!({"response": calls(&["hold", "look", "look"]), "parallel": 1, "turn_id": "turn-left-alone"});
    tokio::select! {
        answer = post(&daemon, &body) => panic!("answered: {answer:?}"),
        () = stage.callee.until_ran(1) => {}
    }
    stage.open.send_replace(true);
    let turn = complete(&daemon, "turn-left-alone").await;
    assert_eq!(statuses(&turn), ["result", "result", "result"]);
    assert_eq!(stage.callee.ran().len(), 3);
    daemon.stop().await;
}

#[tokio::test]
async fn a_turn_that_cannot_be_stored_runs_no_call() {
    let home = Home::new();
    let stage = stage().await;
    let daemon = stage.daemon(&home).await;
    let refuse = "CREATE TRIGGER no_turns BEFORE INSERT ON turns BEGIN SELECT RAISE(ABORT, 'there is no room'); END";
    let allow = "DROP TRIGGER no_turns";
    let store = rusqlite::Connection::open(home.state()).unwrap();
    store.execute_batch(refuse).unwrap();
    let body = json!({"response": calls(&["look"]), "turn_id": "turn-without-room"});
    let answer = post(&daemon, &body).await;
    assert_eq!(answer.status, 500, "{answer:?}");
    assert!(
        answer.problem().contains("could not be stored"),
        "{answer:?}"
    );
    assert_eq!(stage.callee.ran().len(), 0);
    assert_eq!(
        post(&daemon, &calls(&["look"])).await.status,
        200,
        "one without an id is not stored"
    );
    store.execute_batch(allow).unwrap();
    assert_eq!(post(&daemon, &body).await.status, 200, "its id is free");
    assert_eq!(stage.callee.ran().len(), 2);
    daemon.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let home = Home::new();
    let stage = stage().await;
    let mut config = stage.config(&home);
    config.server.max_body = 1_000;
    let daemon = Daemon::ready(config).await;
    assert_eq!(post(&daemon, &calls(&["look"; 20])).await.status, 413);
    assert_eq!(post(&daemon, &calls(&["look"])).await.status, 200);
    assert_eq!(stage.callee.ran().len(), 1);
    daemon.stop().await;
}

/// A stream of events whose answer has begun: the daemon works on it.
async fn events(daemon: &Daemon) -> TcpStream {
    let mut stream = TcpStream::connect(daemon.address).await.unwrap();
    stream
        .write_all(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn a_request_that_only_waits_for_a_turn_gives_way_and_is_answered() {
    let home = Home::new();
    let stage = stage().await;
    let mut config = stage.config(&home);
    config.server.max_connections = 3;
    let daemon = Daemon::ready(config).await;
    let waiting =
        async { post(&daemon, &json!({"response": calls(&["wipe"]), "wait": 600})).await };
    let others = async {
        // Each takes a connection for a moment.
        let waits = |answer: &Answer| answer.json()["waiting"] == 1;
        while !waits(&daemon.get("/api/v1/approvals").await) {}
        let streams = [events(&daemon).await, events(&daemon).await];
        let health = daemon.get("/healthz").await;
        drop(streams);
        health
    };
    let both = async { tokio::join!(waiting, others) };
    let (answer, health) = tokio::time::timeout(PATIENCE, both)
        .await
        .expect("both are answered");
    assert_eq!(health.status, 200, "{health:?}");
    assert_eq!(answer.status, 202, "{answer:?}");
    let turn = answer.json();
    assert_eq!(statuses(&turn), ["waiting_for_approval"]);
    approve(&daemon, &turn, 0).await;
    let later = complete(&daemon, turn["turn_id"].as_str().unwrap()).await;
    assert_eq!(statuses(&later), ["result"], "the turn went on");
    daemon.stop().await;
}
