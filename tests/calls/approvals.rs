//! Calls that need a human's yes: what waits, who may decide it, and that a yes runs exactly that,
//! once.

use std::sync::Arc;
use std::time::Duration;

use callsheet::config::Config;
use callsheet::model::{
    ApprovalDecision, ApprovalRequest, ApprovalState, CallerInfo, JsonText, PeerIdentity,
};
use callsheet::runtime::Clock;
use callsheet::state::{Write, sqlite};
use serde_json::{Value, json};

use crate::support::assert_empty;
use crate::support::callee::{Callee, answer, done, manifest, tool, tool_with};
use crate::support::daemon::{Daemon, Home, PATIENCE, configured};
use crate::support::listener::Listener;
use crate::support::serving::{Answer, ask as ask_at};

/// A disk that is wiped only with a human's yes, and looked at without.
fn disks() -> Value {
    let parameters =
        json!({"type": "object", "properties": {"disk": {"type": "string"}}, "required": ["disk"]});
    let wipe = json!({"enabled_by_default": true, "requires_approval": true});
    manifest(
        "disks",
        &[tool("look"), tool_with("wipe", &parameters, &wipe)],
    )
}

fn config(home: &Home, callee: &Callee) -> Config {
    let mut config = home.config(&[]);
    config.scenarios = vec![configured("disks", ([127, 0, 0, 1], callee.port()).into())];
    config
}

async fn office(home: &Home, callee: &Callee) -> Daemon {
    Daemon::ready(config(home, callee)).await
}

async fn call(daemon: &Daemon, body: &Value) -> Answer {
    daemon
        .send_json("POST", "/api/v1/tools/execute", body)
        .await
}

/// Asks for the disk to be wiped; the id of what waits.
async fn ask(daemon: &Daemon, disk: &str) -> String {
    let answer = call(
        daemon,
        &json!({"tool_name": "wipe", "arguments": {"disk": disk}, "chat_id": "7"}),
    )
    .await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let answer = answer.json();
    assert_eq!(answer["status"], "waiting_for_approval");
    answer["approval_id"].as_str().unwrap().to_owned()
}

async fn decide(daemon: &Daemon, id: &str, action: &str, body: &Value) -> Answer {
    daemon
        .send_json("POST", &format!("/api/v1/approvals/{id}/{action}"), body)
        .await
}

async fn shown(daemon: &Daemon, id: &str) -> Value {
    daemon.json(&format!("/api/v1/approvals/{id}")).await
}

/// Waits until it is in this state.
async fn until(daemon: &Daemon, id: &str, state: &str) -> Value {
    let deadline = Clock::system().now() + PATIENCE;
    loop {
        let now = shown(daemon, id).await;
        if now["state"] == state {
            return now;
        }
        assert!(Clock::system().now() < deadline, "never {state}: {now:#}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_yes_runs_exactly_what_was_asked_for_once() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    assert_eq!(
        call(&daemon, &json!({"tool_name": "look", "arguments": {}}))
            .await
            .status,
        200
    );
    let id = ask(&daemon, "sda1").await;
    let waits = daemon
        .json("/api/v1/approvals?state=waiting&chat_id=7&scenario=disks")
        .await;
    assert_eq!(waits["waiting"], 1);
    assert_eq!(waits["approvals"][0]["id"], json!(id));
    let one = shown(&daemon, &id).await;
    assert_eq!(one["arguments"], json!({"disk": "sda1"}));
    assert_eq!(one["tool"], "wipe");
    assert_eq!(one["answer"], Value::Null);
    assert_eq!(
        daemon.json("/api/v1/approvals?chat_id=8").await["approvals"],
        json!([])
    );
    assert_eq!(callee.ran().len(), 1, "only the look");

    let approved = decide(
        &daemon,
        &id,
        "approve",
        &json!({"by": "kim", "digest": one["digest"]}),
    )
    .await;
    assert_eq!(approved.status, 200, "{approved:?}");
    let approved = approved.json();
    assert_eq!(approved["state"], "answered");
    assert_eq!(approved["decided_by"], "kim");
    assert_eq!(approved["answer"]["success"], true);
    assert_eq!(approved["answer"]["result"], json!({"disk": "sda1"}));
    let ran = callee.ran();
    assert_eq!(ran.len(), 2);
    assert_eq!(ran[1].tool.as_str(), "wipe");
    assert_eq!(ran[1].arguments, json!({"disk": "sda1"}));

    for action in ["approve", "reject"] {
        let again = decide(&daemon, &id, action, &json!({})).await;
        assert_eq!(again.status, 409);
        assert_eq!(again.json()["code"], "already_decided");
    }
    assert_eq!(callee.ran().len(), 2);
    assert_eq!(
        shown(&daemon, &id).await,
        approved,
        "whoever asked reads the answer here"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_no_is_for_good_and_says_why() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    let id = ask(&daemon, "sda1").await;
    let rejected = decide(
        &daemon,
        &id,
        "reject",
        &json!({"by": "kim", "reason": "not today"}),
    )
    .await;
    assert_eq!(rejected.status, 200);
    assert_eq!(rejected.json()["state"], "rejected");
    let approve = decide(&daemon, &id, "approve", &json!({})).await;
    assert_eq!(approve.status, 409);
    assert_eq!(approve.json()["state"], "rejected");
    let kept = shown(&daemon, &id).await;
    assert_eq!(kept["reason"], "not today");
    assert_eq!(kept["decided_by"], "kim");
    assert_empty!(callee.ran());
    let unknown = decide(&daemon, "0123", "approve", &json!({})).await;
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.json()["code"], "unknown_approval");
    assert_eq!(
        decide(&daemon, &id, "approve", &json!({"by": 7}))
            .await
            .status,
        400
    );
    daemon.stop().await;
}

/// What deciding takes in the next test.
const TOKEN: &str = "0123456789abcdef-topsecret";

/// A request with these lines of `Authorization`.
async fn showing(
    daemon: &Daemon,
    method: &str,
    target: &str,
    shown: &[&str],
    body: &Value,
) -> Answer {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(shown.iter().map(|line| ("authorization", *line)));
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    crate::support::serving::ask(daemon.address, method, target, &headers, &body).await
}

#[tokio::test]
async fn with_a_token_whoever_calls_may_not_decide() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let mut config = config(&home, &callee);
    // The old name of `server.operator_token`.
    config.calls.approval_token = Some(callsheet::model::Secret::new(TOKEN));
    let daemon = Daemon::ready(config).await;
    let id = ask(&daemon, "sda1").await;
    assert_eq!(
        daemon.json("/api/v1/approvals").await["token_needed"],
        json!(true)
    );
    let place = |action: &str| format!("/api/v1/approvals/{id}/{action}");
    let wrong = [
        &[][..],
        &["Bearer 0123456789abcdef-topsecre"],
        &["Bearer 0123456789abcdef-topsecret!"],
        &["Bearer "],
        &["Basic 0123456789abcdef-topsecret"],
        &[TOKEN],
        &[
            "Bearer 0123456789abcdef-topsecret",
            "Bearer 0123456789abcdef-topsecret",
        ],
    ];
    for shown in wrong {
        for (action, body) in [
            ("approve", json!({"by": "kim"})),
            ("reject", json!({"reason": "no"})),
        ] {
            let refused = showing(&daemon, "POST", &place(action), shown, &body).await;
            assert_eq!(refused.status, 401, "{action} {shown:?}: {refused:?}");
            assert!(
                refused
                    .header("www-authenticate")
                    .starts_with("Bearer realm="),
                "{refused:?}"
            );
            let problem = refused.json();
            assert_eq!(problem["code"], "token_needed");
            let detail = problem["detail"].as_str().unwrap();
            assert!(
                detail.contains("`server.operator_token`") && !detail.contains("topsecret"),
                "{detail}"
            );
        }
    }
    // Nobody learns by this whether an id is known.
    assert_eq!(
        showing(
            &daemon,
            "POST",
            "/api/v1/approvals/0123/approve",
            &[],
            &json!({})
        )
        .await
        .status,
        401
    );
    assert_eq!(shown(&daemon, &id).await["state"], "waiting");
    assert_empty!(callee.ran());

    let right = [&*format!("Bearer {TOKEN}")];
    let approved = showing(
        &daemon,
        "POST",
        &place("approve"),
        &right,
        &json!({"by": "kim"}),
    )
    .await;
    assert_eq!(approved.status, 200);
    assert_eq!(approved.json()["state"], "answered");
    assert_eq!(callee.ran().len(), 1);
    let second = ask(&daemon, "sda2").await;
    let rejecting = format!("/api/v1/approvals/{second}/reject");
    let rejected = showing(&daemon, "POST", &rejecting, &right, &json!({})).await;
    assert_eq!(
        rejected.json()["decided_by"],
        "operator",
        "whose token it is"
    );
    daemon.stop().await;
}

/// Every change of preferences that a caller may only make with the token, on every route that
/// changes them.
fn loosening(target: &str) -> Vec<Change> {
    let reset = format!("/api/v1/preferences?scope=global&target={target}");
    let of_inbox = "/api/v1/tools/config?scenario=disks&tool_name=wipe";
    vec![
        prefer(target, "global", &json!({"approval": "skip"})),
        prefer(
            target,
            "chat:7",
            &json!({"approval": "skip", "enabled": false}),
        ),
        prefer(target, "profile:p", &json!({"approval": null})),
        prefer(target, "global", &json!({"enabled": true, "priority": 3})),
        prefer(target, "chat:7", &json!({"enabled": null})),
        prefer(target, "global", &json!({"alias": "tidy"})),
        prefer(target, "global", &json!({"alias": null})),
        (
            "DELETE",
            format!("{reset}&setting=priority,alias"),
            Value::Null,
        ),
        ("DELETE", reset.clone(), Value::Null),
        (
            "DELETE",
            format!("{reset}&setting=approval,priority"),
            Value::Null,
        ),
        ("DELETE", format!("{reset}&setting=enabled"), Value::Null),
        inbox_approval("skip"),
        inbox_approval(""),
        inbox_enabled(true),
        ("DELETE", of_inbox.to_owned(), Value::Null),
        row(target, &json!({"approval": "skip"})),
        row(target, &json!({"enabled": true})),
        row(target, &json!({"enabled": null})),
        bulk("enable"),
        bulk("no-approval"),
        bulk("reset"),
    ]
}

/// Every kind of change that needs no token.
fn tightening(target: &str) -> Vec<Change> {
    let reset = format!("/api/v1/preferences?scope=global&target={target}");
    vec![
        prefer(target, "global", &json!({"approval": "require"})),
        prefer(
            target,
            "global",
            &json!({"enabled": false, "priority": 3, "pinned": true}),
        ),
        (
            "DELETE",
            format!("{reset}&setting=priority,pinned"),
            Value::Null,
        ),
        inbox_approval("require"),
        inbox_enabled(false),
        row(target, &json!({"enabled": false})),
        row(target, &json!({"approval": "require"})),
        bulk("ask-first"),
        bulk("disable"),
    ]
}

/// A request that changes preferences: its method, target and body.
type Change = (&'static str, String, Value);

fn prefer(target: &str, scope: &str, settings: &Value) -> Change {
    let mut body = json!({"scope": scope, "target": target});
    body.as_object_mut()
        .unwrap()
        .extend(settings.as_object().unwrap().clone());
    ("PUT", "/api/v1/preferences".to_owned(), body)
}

fn row(target: &str, settings: &Value) -> Change {
    let (method, _, body) = prefer(target, "global", settings);
    (method, "/dashboard/tools/preference".to_owned(), body)
}

fn bulk(change: &str) -> Change {
    let body = json!({"scope": "global", "change": change, "tools": ["disks/wipe"]});
    ("POST", "/dashboard/tools/preferences".to_owned(), body)
}

fn inbox_approval(way: &str) -> Change {
    let body = json!({"scenario": "disks", "tool_name": "wipe", "approval_override": way});
    ("POST", "/api/v1/tools/config/approval".to_owned(), body)
}

fn inbox_enabled(enabled: bool) -> Change {
    let body = json!({"scenario": "disks", "tool_name": "wipe", "enabled": enabled});
    ("POST", "/api/v1/tools/config".to_owned(), body)
}

/// An approval that callers could make needless would be none.
#[tokio::test]
async fn with_a_token_preferences_that_loosen_need_it_and_others_do_not() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let mut config = config(&home, &callee);
    config.server.operator_token = Some(callsheet::model::Secret::new(TOKEN));
    let daemon = Daemon::ready(config).await;
    let target = "tool:disks/wipe";
    let twice = [&*format!("Bearer {TOKEN}"), &format!("Bearer {TOKEN}")];
    for (method, place, body) in &loosening(target) {
        for shown in [&[][..], &["Bearer 0123456789abcdef-hash"], &twice] {
            let refused = showing(&daemon, method, place, shown, body).await;
            let refusal = (refused.status, &refused.json()["code"]);
            assert_eq!(
                refusal,
                (401, &json!("token_needed")),
                "{method} {place} {body}"
            );
        }
    }
    assert_eq!(
        daemon.json("/api/v1/preferences").await["preferences"],
        json!([])
    );
    ask(&daemon, "sda1").await;

    for (method, place, body) in &tightening(target) {
        assert_eq!(
            showing(&daemon, method, place, &[], body).await.status,
            200,
            "{method} {place} {body}"
        );
    }
    let right = [&*format!("bearer {TOKEN}")];
    for (method, place, body) in &loosening(target) {
        assert_eq!(
            showing(&daemon, method, place, &right, body).await.status,
            200,
            "{method} {place} {body}"
        );
    }
    daemon.stop().await;
}

#[tokio::test]
async fn without_a_token_every_caller_changes_every_preference() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    let target = "tool:disks/wipe";
    for (method, place, body) in tightening(target).iter().chain(&loosening(target)) {
        assert_eq!(
            showing(&daemon, method, place, &[], body).await.status,
            200,
            "{method} {place} {body}"
        );
    }
    daemon.stop().await;
}

#[tokio::test]
async fn what_nobody_decides_in_time_is_never_run() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let mut config = config(&home, &callee);
    config.calls.approval_expiry = Duration::from_millis(50);
    let daemon = Daemon::ready(config).await;
    let id = ask(&daemon, "sda1").await;
    let expired = until(&daemon, &id, "expired").await;
    assert_eq!(expired["decided_by"], Value::Null);
    assert_eq!(
        decide(&daemon, &id, "approve", &json!({})).await.status,
        409
    );
    assert_empty!(callee.ran());
    daemon.stop().await;
}

/// Requests the disk to be wiped as this client; the id of what waits.
async fn ask_as(daemon: &Daemon, client: &str, disk: &str) -> String {
    let body =
        json!({"tool_name": "wipe", "arguments": {"disk": disk}, "chat_id": "7"}).to_string();
    let headers = [("content-type", "application/json"), ("user-agent", client)];
    let answer = ask_at(
        daemon.address,
        "POST",
        "/api/v1/tools/execute",
        &headers,
        &body,
    )
    .await;
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["approval_id"].as_str().unwrap().to_owned()
}

/// The latest line of the log about a call with this approval.
async fn logged(daemon: &Daemon, approval: &str) -> Value {
    let log = daemon.json("/api/v1/log?kind=call").await;
    let calls = log["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| &line["call"]);
    calls
        .rev()
        .find(|call| call["approval_id"] == approval)
        .unwrap()
        .clone()
}

#[tokio::test]
async fn people_are_shown_a_short_name_of_a_client() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    let id = ask_as(&daemon, &"shop/2.1 ".repeat(100), "sda1").await;
    assert_eq!(
        shown(&daemon, &id).await["client"].as_str().unwrap().len(),
        200
    );
    daemon.stop().await;
}

#[tokio::test]
async fn the_client_of_a_call_that_waits_is_shown_also_after_a_restart() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    let id = ask_as(&daemon, "shop/2.1", "sda1").await;
    daemon.stop().await;
    let daemon = office(&home, &callee).await;
    let listed = daemon.json("/api/v1/approvals").await;
    assert_eq!(listed["approvals"][0]["client"], "shop/2.1", "{listed}");
    assert_eq!(shown(&daemon, &id).await["client"], "shop/2.1");
    for target in [
        "/dashboard/calls".to_owned(),
        format!("/dashboard/calls/{id}"),
    ] {
        let page = String::from_utf8(daemon.get(&target).await.body).unwrap();
        assert!(page.contains("shop/2.1"), "{target}: {page}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn what_becomes_of_a_call_after_its_decision_is_in_the_log_with_its_client() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    let approved = ask_as(&daemon, "shop/2.1", "sda1").await;
    decide(&daemon, &approved, "approve", &json!({"by": "kim"})).await;
    let line = logged(&daemon, &approved).await;
    assert_eq!(
        [&line["outcome"], &line["client"], &line["chat_id"]],
        ["ok", "shop/2.1", "7"],
        "{line}"
    );
    let rejected = ask_as(&daemon, "shop/2.2", "sda2").await;
    decide(
        &daemon,
        &rejected,
        "reject",
        &json!({"by": "kim", "reason": "not now"}),
    )
    .await;
    let line = logged(&daemon, &rejected).await;
    assert_eq!(
        [&line["outcome"], &line["code"], &line["client"]],
        ["rejected", "rejected", "shop/2.2"],
        "{line}"
    );
    assert_eq!(
        [&line["id"], &line["error"]],
        ["disks/wipe", "rejected by kim: not now"],
        "{line}"
    );
    daemon.stop().await;

    let mut config = config(&home, &callee);
    config.calls.approval_expiry = Duration::from_millis(50);
    let daemon = Daemon::ready(config).await;
    assert_eq!(
        logged(&daemon, &rejected).await["outcome"],
        "rejected",
        "also after a restart"
    );
    let expired = ask_as(&daemon, "shop/2.3", "sda3").await;
    until(&daemon, &expired, "expired").await;
    let line = logged(&daemon, &expired).await;
    assert_eq!(
        [&line["outcome"], &line["client"]],
        ["approval_expired", "shop/2.3"],
        "{line}"
    );
    assert_eq!(line["error"], "no operator decided about it in time");
    assert_eq!(callee.ran().len(), 1);
    daemon.stop().await;
}

#[tokio::test]
async fn of_many_decisions_one_counts() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    let id = ask(&daemon, "sda1").await;
    let body = json!({});
    let decisions = (0..16).map(|at| {
        decide(
            &daemon,
            &id,
            if at % 4 == 3 { "reject" } else { "approve" },
            &body,
        )
    });
    let answers = futures_util::future::join_all(decisions).await;
    let counted: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 200)
        .collect();
    assert_eq!(counted.len(), 1);
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer.status, 200 | 409))
    );
    let approved = counted[0].json()["state"] == "answered";
    assert_eq!(callee.ran().len(), usize::from(approved));
    daemon.stop().await;
}

#[tokio::test]
async fn the_same_call_waits_once_and_another_one_beside_it() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    let first = ask(&daemon, "sda1").await;
    assert_eq!(
        ask(&daemon, "sda1").await,
        first,
        "a client that tries again does not ask twice"
    );
    let other = ask(&daemon, "sda2").await;
    let elsewhere = call(
        &daemon,
        &json!({"tool_name": "wipe", "arguments": {"disk": "sda1"}, "chat_id": "8"}),
    )
    .await
    .json();
    assert!(other != first && elsewhere["approval_id"] != json!(first));
    let as_looked_at = shown(&daemon, &other).await["digest"].clone();
    let mixed_up = decide(&daemon, &first, "approve", &json!({"digest": as_looked_at})).await;
    assert_eq!(mixed_up.status, 409);
    assert_eq!(mixed_up.json()["code"], "changed");
    assert_empty!(callee.ran());
    // Once it was answered, the same call is another one.
    assert_eq!(
        decide(&daemon, &first, "approve", &json!({})).await.status,
        200
    );
    assert_ne!(ask(&daemon, "sda1").await, first);
    daemon.stop().await;
}

#[tokio::test]
async fn preferences_ask_for_a_yes_and_lift_it() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    for (scope, target, approval) in [
        ("global", "tool:disks/look", "require"),
        ("chat:9", "scenario:disks", "skip"),
    ] {
        let body = json!({"scope": scope, "target": target, "approval": approval});
        assert_eq!(
            daemon
                .send_json("PUT", "/api/v1/preferences", &body)
                .await
                .status,
            200
        );
    }
    let look = json!({"tool_name": "look", "arguments": {}});
    assert_eq!(call(&daemon, &look).await.status, 202);
    let wipe = json!({"tool_name": "wipe", "arguments": {"disk": "sda1"}, "chat_id": "9"});
    assert_eq!(call(&daemon, &wipe).await.status, 200);
    assert_eq!(callee.ran().len(), 1);
    // What does not fit the schema need not be decided by anybody.
    let wrong = call(&daemon, &json!({"tool_name": "wipe", "arguments": {}})).await;
    assert_eq!(wrong.status, 400, "{wrong:?}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_yes_does_not_count_for_a_tool_that_is_another_by_now() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    let id = ask(&daemon, "sda1").await;
    let revision = daemon.json("/api/v1/scenarios/disks").await["freshness"]["received_at"].clone();
    let parameters = json!({"type": "object", "properties": {"disk": {"type": "string"}, "all": {"type": "boolean"}}});
    let wipe = json!({"enabled_by_default": true, "requires_approval": true});
    callee.lists(manifest("disks", &[tool_with("wipe", &parameters, &wipe)]));
    daemon
        .until("/api/v1/tools", |answer| {
            String::from_utf8_lossy(&answer.body).contains("\"all\"")
        })
        .await;
    assert_ne!(revision, Value::Null);
    let refused = decide(&daemon, &id, "approve", &json!({})).await;
    assert_eq!(refused.status, 409);
    assert_eq!(refused.json()["code"], "changed");
    assert!(
        refused.problem().contains("the definition of"),
        "{refused:?}"
    );
    callee.lists(manifest("disks", &[tool("look")]));
    daemon.until_tools(&["look"]).await;
    let refused = decide(&daemon, &id, "approve", &json!({})).await;
    assert!(
        refused.status == 409 && refused.problem().contains("not offered"),
        "{refused:?}"
    );
    // As it was asked for, it may be approved again.
    callee.lists(disks());
    daemon.until_tools(&["look", "wipe"]).await;
    assert_eq!(
        decide(&daemon, &id, "approve", &json!({})).await.status,
        200
    );
    assert_eq!(callee.ran().len(), 1);
    daemon.stop().await;
}

#[tokio::test]
async fn a_yes_does_not_count_for_another_owner_of_the_name() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let stranger = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    let id = ask(&daemon, "sda1").await;
    daemon.stop().await;
    // The same name at another address: perhaps another program.
    let daemon = office(&home, &stranger).await;
    daemon.until_state("disks", "live").await;
    let refused = decide(&daemon, &id, "approve", &json!({})).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(refused.json()["code"], "changed", "{refused:?}");
    assert!(
        refused.problem().contains("another peer answers"),
        "{refused:?}"
    );
    assert_eq!(shown(&daemon, &id).await["state"], "waiting");
    assert_empty!(callee.ran());
    assert_empty!(stranger.ran());
    daemon.stop().await;
}

#[tokio::test]
async fn what_waits_outlives_the_daemon() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    let first = ask(&daemon, "sda1").await;
    let second = ask(&daemon, "sda2").await;
    let before = shown(&daemon, &first).await;
    decide(&daemon, &second, "reject", &json!({"by": "kim"})).await;
    daemon.stop().await;
    let daemon = office(&home, &callee).await;
    assert_eq!(shown(&daemon, &first).await, before);
    assert_eq!(shown(&daemon, &second).await["state"], "rejected");
    assert_eq!(
        decide(&daemon, &second, "approve", &json!({})).await.status,
        409
    );
    daemon.until_state("disks", "live").await;
    assert_eq!(
        decide(&daemon, &first, "approve", &json!({})).await.json()["state"],
        "answered"
    );
    daemon.stop().await;
    let daemon = office(&home, &callee).await;
    assert_eq!(
        shown(&daemon, &first).await["answer"]["result"],
        json!({"disk": "sda1"})
    );
    assert_eq!(callee.ran().len(), 1);
    daemon.stop().await;
}

/// The access of a call is stored with it.
#[tokio::test]
async fn a_call_belongs_to_its_access_also_after_a_restart() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let configured = || {
        let mut config = config(&home, &callee);
        config.server.operator_token = Some(callsheet::model::Secret::new(TOKEN));
        config
    };
    let body = json!({"tool_name": "wipe", "arguments": {"disk": "sda1"}});
    let bearer = format!("Bearer {TOKEN}");
    let id = async |daemon: &Daemon, shown: &[&str]| {
        let answer = showing(daemon, "POST", "/api/v1/tools/execute", shown, &body).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["approval_id"].take()
    };
    let daemon = Daemon::ready(configured()).await;
    let of_operator = id(&daemon, &[&bearer]).await;
    daemon.stop().await;
    let daemon = Daemon::ready(configured()).await;
    daemon.until_state("disks", "live").await;
    let of_other = id(&daemon, &[]).await;
    assert_ne!(of_other, of_operator);
    assert_eq!(id(&daemon, &[&bearer]).await, of_operator);
    assert_eq!(id(&daemon, &[]).await, of_other);
    daemon.stop().await;
}

/// One that a daemon had begun to run when it ended.
fn begun(id: &str, waiting: &Value, idempotent: bool, owner: &Callee) -> ApprovalRequest {
    let text = |name: &str| Arc::<str>::from(waiting[name].as_str().unwrap());
    let now = Clock::system().wall();
    ApprovalRequest {
        id: id.into(),
        tool: "disks/wipe".parse().unwrap(),
        name: "wipe".into(),
        arguments: JsonText::parse(&waiting["arguments"].to_string()).unwrap(),
        caller: CallerInfo {
            chat: Some("7".into()),
            ..CallerInfo::default()
        },
        access: None,
        owner: PeerIdentity {
            identity: None,
            origin: Some(format!("http://localhost:{}", owner.port()).into()),
        },
        definition: text("definition"),
        called: None,
        digest: text("digest"),
        idempotent,
        asked_at: now,
        expires_at: now.saturating_add(Duration::from_secs(60)).unwrap(),
        state: ApprovalState::Started,
        decided: Some(ApprovalDecision {
            by: "kim".into(),
            at: now,
            reason: None,
        }),
        ended_at: None,
        answer: None,
    }
}

#[tokio::test]
async fn what_was_under_way_when_a_daemon_ended_is_run_again_only_if_that_is_safe() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    let waiting = shown(&daemon, &ask(&daemon, "sda1").await).await;
    daemon.stop().await;
    {
        let store = sqlite::open(&home.state(), Clock::system()).unwrap();
        let writes = [("unsafe", false), ("safe", true)];
        let writes =
            writes.map(|(id, safe)| Write::Approval(Arc::new(begun(id, &waiting, safe, &callee))));
        store.save(writes.into()).await.unwrap();
    }
    let daemon = office(&home, &callee).await;
    let lost = until(&daemon, "unsafe", "unknown-outcome").await;
    assert_eq!(lost["decided_by"], "kim");
    until(&daemon, "safe", "answered").await;
    assert_eq!(callee.ran().len(), 1);
    for id in ["unsafe", "safe"] {
        assert_eq!(decide(&daemon, id, "approve", &json!({})).await.status, 409);
    }
    daemon.stop().await;
    let daemon = office(&home, &callee).await;
    assert_eq!(shown(&daemon, "unsafe").await["state"], "unknown-outcome");
    assert_eq!(shown(&daemon, "safe").await["state"], "answered");
    assert_eq!(callee.ran().len(), 1);
    daemon.stop().await;
}

#[tokio::test]
async fn a_tools_own_failure_and_a_broken_way_are_told_apart() {
    let home = Home::new();
    let mut callee = Callee::start(disks(), |_| async {
        answer(
            409,
            &json!({"success": false, "error": "it is mounted", "code": "conflict"}),
        )
    })
    .await;
    let daemon = office(&home, &callee).await;
    let id = ask(&daemon, "sda1").await;
    let failed = decide(&daemon, &id, "approve", &json!({})).await.json();
    assert_eq!(failed["state"], "answered");
    assert_eq!(failed["answer"]["code"], "conflict");
    assert_eq!(failed["answer"]["error"], "it is mounted");
    let id = ask(&daemon, "sda1").await;
    callee.kill().await;
    let failed = decide(&daemon, &id, "approve", &json!({})).await;
    assert_eq!(failed.status, 200, "{failed:?}");
    assert_eq!(failed.json()["state"], "failed", "{failed:?}");
    assert_eq!(failed.json()["answer"]["success"], false);
    daemon.stop().await;
}

#[tokio::test]
async fn there_is_room_for_so_many_and_the_largest_group_gives_way() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let configured = || {
        let mut config = config(&home, &callee);
        config.calls.approvals_max = 2;
        config
    };
    let daemon = Daemon::ready(configured()).await;
    let wipe = |chat: &'static str| json!({"tool_name": "wipe", "arguments": {"disk": "sda3"}, "chat_id": chat});
    let first = ask(&daemon, "sda1").await;
    let second = ask(&daemon, "sda2").await;
    let other = call(&daemon, &wipe("8")).await;
    assert_eq!(other.status, 202, "{other:?}");
    let gone = shown(&daemon, &first).await;
    assert_eq!(gone["state"], "expired", "{gone}");
    assert_eq!(gone["decided_by"], "callsheet", "{gone}");
    let reason = gone["reason"].as_str().unwrap();
    assert!(
        reason.contains("`disks/wipe`") && reason.contains("`calls.approvals_max`"),
        "{reason}"
    );
    assert_eq!(
        decide(&daemon, &first, "approve", &json!({})).await.status,
        409
    );
    let full = call(&daemon, &wipe("9")).await;
    assert_eq!(
        full.status, 429,
        "no caller has more than another one: {full:?}"
    );
    assert_eq!(full.json()["code"], "approvals_full", "{full:?}");
    daemon.stop().await;

    let daemon = Daemon::ready(configured()).await;
    assert_eq!(
        shown(&daemon, &first).await["state"],
        "expired",
        "it was stored"
    );
    assert_eq!(shown(&daemon, &second).await["state"], "waiting");
    decide(&daemon, &second, "reject", &json!({})).await;
    assert_eq!(call(&daemon, &wipe("9")).await.status, 202);
    assert_eq!(
        daemon
            .get(&format!("/api/v1/approvals/{second}"))
            .await
            .status,
        404,
        "what is over makes room"
    );
    assert!(callee.ran().is_empty(), "calls that reached the scenario");
    daemon.stop().await;
}

/// Has the store refuse every change of approvals, until it is given back with `DROP TRIGGER`.
fn refusing_store(home: &Home) -> rusqlite::Connection {
    let store = rusqlite::Connection::open(home.state()).unwrap();
    store.execute_batch(REFUSE).unwrap();
    store
}

const REFUSE: &str =
    "CREATE TRIGGER refuse BEFORE INSERT ON approvals BEGIN SELECT RAISE(ABORT, 'no room'); END";

#[tokio::test]
async fn an_approval_that_cannot_be_stored_sends_no_call() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    let id = ask(&daemon, "sda1").await;
    let store = refusing_store(&home);

    let refused = decide(&daemon, &id, "approve", &json!({})).await;

    assert!(refused.status >= 500, "{refused:?}");
    assert!(callee.ran().is_empty(), "calls that reached the scenario");
    assert_eq!(shown(&daemon, &id).await["state"], "waiting");
    store.execute_batch("DROP TRIGGER refuse").unwrap();
    assert_eq!(
        decide(&daemon, &id, "approve", &json!({})).await.status,
        200
    );
    assert_eq!(callee.ran().len(), 1, "calls that reached the scenario");
    daemon.stop().await;
}

#[tokio::test]
async fn a_call_that_cannot_be_stored_takes_no_place() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let mut config = config(&home, &callee);
    config.calls.approvals_max = 1;
    let daemon = Daemon::ready(config).await;
    let store = refusing_store(&home);
    for disk in ["sda1", "sda2", "sda3"] {
        let refused = call(
            &daemon,
            &json!({"tool_name": "wipe", "arguments": {"disk": disk}}),
        )
        .await;
        assert_eq!(
            refused.json()["code"],
            "approval_not_stored",
            "{disk}: {refused:?}"
        );
    }
    store.execute_batch("DROP TRIGGER refuse").unwrap();
    let first = ask(&daemon, "sda4").await;
    store.execute_batch(REFUSE).unwrap();
    let refused = call(
        &daemon,
        &json!({"tool_name": "wipe", "arguments": {"disk": "sda5"}, "chat_id": "7"}),
    )
    .await;
    assert_eq!(refused.json()["code"], "approval_not_stored", "{refused:?}");
    assert_eq!(
        shown(&daemon, &first).await["state"],
        "waiting",
        "what should have given way still waits"
    );
    assert!(callee.ran().is_empty(), "calls that reached the scenario");
    daemon.stop().await;
}

#[tokio::test]
async fn whoever_follows_hears_of_it() {
    let home = Home::new();
    let callee = Callee::start(disks(), |_| async { done(&json!("wiped")) }).await;
    let daemon = office(&home, &callee).await;
    let (mut all, _) = Listener::begin(daemon.address, "?kind=approval").await;
    let (mut chat, _) = Listener::begin(daemon.address, "?kind=approval&chat_id=7").await;
    let (mut other, _) = Listener::begin(daemon.address, "?kind=approval&chat_id=8").await;
    let id = ask(&daemon, "sda1").await;
    decide(&daemon, &id, "approve", &json!({"by": "kim"})).await;
    let mut last = String::new();
    for listener in [&mut all, &mut chat] {
        for state in ["waiting", "started", "answered"] {
            let event = listener.next().await;
            assert_eq!(event.event.as_str(), "approval");
            assert_eq!(event.data["id"], json!(id));
            assert_eq!(event.data["state"], json!(state));
            assert_eq!(
                event.data.get("arguments"),
                None,
                "what is wiped is nobody's business who only follows"
            );
            last = event.id;
        }
    }
    drop(chat);
    ask(&daemon, "sda3").await;
    let mut resumed = Listener::resume(daemon.address, "?kind=approval&chat_id=7", &last).await;
    assert_eq!(
        resumed.next().await.data["state"],
        "waiting",
        "nothing is missed"
    );
    let call = json!({"tool_name": "wipe", "arguments": {"disk": "sda2"}, "chat_id": "8"});
    assert_eq!(self::call(&daemon, &call).await.status, 202);
    let event = other.next().await;
    assert_eq!(event.data["chat_id"], "8");
    assert_eq!(event.data["state"], "waiting");
    daemon.stop().await;
}

#[tokio::test]
async fn the_page_shows_what_waits_without_running_it() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = office(&home, &callee).await;
    let page = |target: &'static str| daemon.get(target);
    let empty = String::from_utf8(page("/dashboard/calls").await.body).unwrap();
    assert!(empty.contains("No call waits for a decision"), "{empty}");
    let id = ask(&daemon, "<script>alert(1)</script>\u{202e}").await;
    let shown = String::from_utf8(page("/dashboard/calls/now").await.body).unwrap();
    assert!(
        shown.contains(&format!("/api/v1/approvals/{id}/approve")),
        "{shown}"
    );
    assert!(
        shown.contains("&lt;script&gt;") && !shown.contains("<script>") && shown.contains("U+202E"),
        "{shown}"
    );
    assert_empty!(callee.ran());
    daemon.stop().await;
}

/// A call that waits, as an earlier daemon stored it.
async fn stored_waiting(home: &Home, callee: &Callee) -> ApprovalRequest {
    let daemon = office(home, callee).await;
    let id = ask(&daemon, "sda1").await;
    daemon.stop().await;
    let stored = sqlite::open(&home.state(), Clock::system())
        .unwrap()
        .load()
        .await
        .unwrap();
    stored
        .approvals
        .into_iter()
        .find(|request| *request.id == id)
        .unwrap()
}

#[tokio::test]
async fn a_call_waits_no_longer_than_it_may_when_the_clock_was_set_back() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let waiting = stored_waiting(&home, &callee).await;
    let far = waiting
        .expires_at
        .saturating_add(jiff::SignedDuration::from_hours(24 * 365))
        .unwrap();
    let id = waiting.id.to_string();
    let write = Write::Approval(Arc::new(ApprovalRequest {
        expires_at: far,
        ..waiting
    }));
    sqlite::open(&home.state(), Clock::system())
        .unwrap()
        .save(vec![write])
        .await
        .unwrap();
    let mut config = config(&home, &callee);
    config.calls.approval_expiry = Duration::from_millis(200);
    let daemon = Daemon::ready(config).await;
    until(&daemon, &id, "expired").await;
    daemon.stop().await;
}

#[tokio::test]
async fn what_is_forgotten_leaves_the_database() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let mut config = config(&home, &callee);
    config.calls.keep = Duration::ZERO;
    let daemon = Daemon::ready(config).await;
    let id = ask(&daemon, "sda1").await;
    decide(&daemon, &id, "reject", &json!({})).await;
    daemon
        .until(&format!("/api/v1/approvals/{id}"), |answer| {
            answer.status == 404
        })
        .await;
    daemon.stop().await;
    let store = rusqlite::Connection::open(home.state()).unwrap();
    let rows: i64 = store
        .query_row("SELECT count(*) FROM approvals", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 0, "what is forgotten is stored no more");
}

#[tokio::test]
async fn what_ended_first_makes_room_first() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let mut config = config(&home, &callee);
    config.calls.approvals_max = 2;
    let daemon = Daemon::ready(config).await;
    let early = ask(&daemon, "sda1").await;
    let late = ask(&daemon, "sda2").await;
    decide(&daemon, &late, "reject", &json!({})).await;
    decide(&daemon, &early, "reject", &json!({})).await;
    ask(&daemon, "sda3").await;
    assert_eq!(
        daemon
            .get(&format!("/api/v1/approvals/{late}"))
            .await
            .status,
        404
    );
    assert_eq!(
        daemon
            .get(&format!("/api/v1/approvals/{early}"))
            .await
            .status,
        200,
        "it ended just now"
    );
    daemon.stop().await;
}
