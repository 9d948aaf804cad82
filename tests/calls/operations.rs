//! Long-running tools: what a scenario goes on with is followed to its end, called off, and never
//! mixed up with another scenario's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::response::Response;
use callsheet::config::Config;
use callsheet::runtime::Clock;
use serde_json::{Value, json};

use crate::support::callee::{Callee, Ran, answer, done, manifest, tool_with};
use crate::support::daemon::{Daemon, Home, PATIENCE, configured};
use crate::support::listener::Listener;
use crate::support::serving::Answer;

/// How `start` says that it is followed: every 20 ms.
pub(crate) fn behaviour() -> Value {
    json!({
        "status_polling": {"status_tool": "get_run", "operation_id_field": "run.id", "status_tool_id_param": "run_id",
            "poll_interval_seconds": 0.02},
        "completion_conditions": {"status_field": "status", "success_values": ["done"], "failure_values": ["failed", "stopped"],
            "error_field": "why", "result_field": "output"},
        "progress_tracking": {"progress_field": "percent", "message_field": "said"},
        "cancellation": {"cancel_tool": "stop_run", "cancel_tool_id_param": "run_id", "graceful": true,
            "cancel_timeout_seconds": 20},
    })
}

/// A scenario with a tool that goes on, followed as `behaviour` says, whose partners take an id of
/// this type.
pub(crate) fn runs(name: &str, behaviour: &Value, kind: &str) -> Value {
    let on = json!({"enabled_by_default": true});
    let takes =
        json!({"type": "object", "properties": {"run_id": {"type": kind}}, "required": ["run_id"]});
    let start =
        json!({"enabled_by_default": true, "long_running": true, "async_behavior": behaviour});
    let nothing = json!({"type": "object", "properties": {}});
    let tools = [
        tool_with("start", &nothing, &start),
        tool_with("get_run", &takes, &on),
        tool_with("stop_run", &takes, &on),
    ];
    manifest(name, &tools)
}

/// Started: it goes on under this id.
pub(crate) fn started(id: &Value) -> Response {
    answer(
        202,
        &json!({"success": true, "is_async": true, "run_id": "outer", "status": "running", "result": {"run": {"id": id}}}),
    )
}

pub(crate) fn config(home: &Home, callees: &[(&str, &Callee)]) -> Config {
    let mut config = home.config(&[]);
    config.scenarios = callees
        .iter()
        .map(|(name, callee)| configured(name, ([127, 0, 0, 1], callee.port()).into()))
        .collect();
    config.calls.poll_min = Duration::from_millis(5);
    config
}

async fn call(daemon: &Daemon, name: &str) -> Answer {
    daemon
        .send_json(
            "POST",
            "/api/v1/tools/execute",
            &json!({"tool_name": name, "arguments": {}, "chat_id": "7"}),
        )
        .await
}

/// Starts an operation; its id.
pub(crate) async fn begin(daemon: &Daemon, name: &str) -> String {
    let answer = call(daemon, name).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let answer = answer.json();
    assert_eq!(answer["is_async"], true);
    answer["operation_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer:#}"))
        .to_owned()
}

async fn shown(daemon: &Daemon, id: &str) -> Value {
    daemon.json(&format!("/api/v1/operations/{id}")).await
}

/// Waits until something holds of it.
async fn until(daemon: &Daemon, id: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let deadline = Clock::system().now() + PATIENCE;
    loop {
        let now = shown(daemon, id).await;
        if holds(&now) {
            return now;
        }
        assert!(Clock::system().now() < deadline, "never came: {now:#}");
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn until_state(daemon: &Daemon, id: &str, state: &str) -> Value {
    until(daemon, id, |now| now["state"] == state).await
}

/// Answers `statuses` one after the other, the last one for ever.
pub(crate) fn telling(
    id: Value,
    statuses: Vec<Value>,
) -> impl Fn(Ran) -> std::future::Ready<Response> {
    let polls = AtomicUsize::new(0);
    move |ran| {
        std::future::ready(match ran.tool.as_str() {
            "start" => started(&id),
            "get_run" => {
                let at = polls.fetch_add(1, Ordering::SeqCst).min(statuses.len() - 1);
                done(&statuses[at])
            }
            _ => done(&json!({"stopping": true})),
        })
    }
}

fn asked_of(callee: &Callee, tool: &str) -> Vec<Value> {
    callee
        .ran()
        .into_iter()
        .filter(|ran| ran.tool == tool)
        .map(|ran| ran.arguments)
        .collect()
}

#[tokio::test]
async fn an_operation_is_followed_to_its_end_and_told_as_it_moves() {
    let home = Home::new();
    let statuses = vec![
        json!({"status": "queued"}),
        json!({"status": "running", "percent": 40, "said": "at work"}),
        json!({"status": "running", "percent": 40, "said": "at work"}),
        json!({"status": "done", "percent": 100, "output": {"files": 3}}),
    ];
    let callee = Callee::start(
        runs("builds", &behaviour(), "string"),
        telling(json!("r-1"), statuses),
    )
    .await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let (mut events, _) = Listener::begin(daemon.address, "?kind=operation&chat_id=7").await;
    let id = begin(&daemon, "start").await;
    let over = until_state(&daemon, &id, "succeeded").await;
    assert_eq!(over["result"], json!({"files": 3}));
    assert_eq!(over["reference"], "r-1");
    assert_eq!(over["status"], "done");
    assert_eq!(over["scenario"], "builds");
    assert_eq!(over["tool"], "start");
    assert_eq!(over["chat_id"], "7");
    assert!(
        asked_of(&callee, "get_run")
            .iter()
            .all(|asked| *asked == json!({"run_id": "r-1"}))
    );
    assert_eq!(
        asked_of(&callee, "get_run").len(),
        4,
        "nobody asks once it is over"
    );
    let mut seen = Vec::new();
    while seen.last() != Some(&(json!("succeeded"), json!(100.0))) {
        let event = events.next().await;
        assert_eq!(event.event.as_str(), "operation");
        assert_eq!(event.data["id"], json!(id));
        seen.push((
            event.data["state"].clone(),
            event.data["progress"]["progress"].clone(),
        ));
    }
    assert_eq!(seen.len(), 4, "what does not change is not told: {seen:?}");
    let all = daemon
        .json("/api/v1/operations?state=succeeded&chat_id=7")
        .await;
    assert_eq!(all["operations"].as_array().unwrap().len(), 1);
    assert_eq!(
        daemon.json("/api/v1/operations?chat_id=8").await["operations"],
        json!([])
    );
    let gone = daemon
        .send("DELETE", &format!("/api/v1/operations/{id}"))
        .await;
    assert_eq!(gone.status, 409);
    assert_eq!(gone.json()["code"], "already_over");
    assert_eq!(daemon.get("/api/v1/operations/none").await.status, 404);
    daemon.stop().await;
}

#[tokio::test]
async fn a_failure_says_why_and_numbers_are_ids_too() {
    let home = Home::new();
    let failed = vec![json!({"status": "failed", "why": "no room"})];
    let callee = Callee::start(
        runs("builds", &behaviour(), "integer"),
        telling(json!(17), failed),
    )
    .await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let id = begin(&daemon, "start").await;
    let over = until_state(&daemon, &id, "failed").await;
    assert_eq!(over["error"], "no room");
    assert_eq!(over["reference"], 17);
    assert_eq!(asked_of(&callee, "get_run"), [json!({"run_id": 17})]);
    daemon.stop().await;
}

#[tokio::test]
async fn only_the_scenario_that_started_it_is_asked() {
    let home = Home::new();
    let running = || vec![json!({"status": "running"}), json!({"status": "done"})];
    let one = Callee::start(
        runs("one", &behaviour(), "string"),
        telling(json!("a"), running()),
    )
    .await;
    let two = Callee::start(
        runs("two", &behaviour(), "string"),
        telling(json!("b"), running()),
    )
    .await;
    let daemon = Daemon::ready(config(&home, &[("one", &one), ("two", &two)])).await;
    let first = begin(&daemon, "one/start").await;
    let second = begin(&daemon, "two/start").await;
    until_state(&daemon, &first, "succeeded").await;
    until_state(&daemon, &second, "succeeded").await;
    for (callee, id) in [(&one, "a"), (&two, "b")] {
        let polls = asked_of(callee, "get_run");
        assert!(
            polls.len() == 2 && polls.iter().all(|polls| *polls == json!({"run_id": id})),
            "{polls:?}"
        );
    }
    daemon.stop().await;
}

#[tokio::test]
async fn it_is_called_off_by_the_declared_tool_and_ends_when_the_scenario_says_so() {
    let home = Home::new();
    let stopped = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&stopped);
    let callee = Callee::start(runs("builds", &behaviour(), "string"), move |ran: Ran| {
        std::future::ready(match ran.tool.as_str() {
            "start" => started(&json!("r-1")),
            "stop_run" => {
                seen.fetch_add(1, Ordering::SeqCst);
                done(&json!({}))
            }
            // It ends some questions after it was told to.
            _ if seen.load(Ordering::SeqCst) == 0 => done(&json!({"status": "running"})),
            _ if seen.fetch_add(1, Ordering::SeqCst) < 3 => done(&json!({"status": "stopping"})),
            _ => done(&json!({"status": "stopped"})),
        })
    })
    .await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let id = begin(&daemon, "start").await;
    let target = format!("/api/v1/operations/{id}");
    let cancelling = daemon.send("DELETE", &target).await;
    assert_eq!(cancelling.status, 202, "{cancelling:?}");
    assert_eq!(cancelling.json()["state"], "cancelling", "{cancelling:?}");
    until_state(&daemon, &id, "cancelled").await;
    assert_eq!(asked_of(&callee, "stop_run"), [json!({"run_id": "r-1"})]);
    assert_eq!(daemon.send("DELETE", &target).await.status, 409);
    daemon.stop().await;
}

#[tokio::test]
async fn a_repeated_cancel_calls_no_tool_again() {
    let home = Home::new();
    let stopping = telling(json!("r-1"), vec![json!({"status": "stopping"})]);
    let callee = Callee::start(runs("builds", &behaviour(), "string"), stopping).await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let target = format!("/api/v1/operations/{}", begin(&daemon, "start").await);
    for _ in 0..2 {
        let cancelling = daemon.send("DELETE", &target).await;
        assert_eq!(cancelling.status, 202, "{cancelling:?}");
        assert_eq!(cancelling.json()["state"], "cancelling", "{cancelling:?}");
    }
    assert_eq!(asked_of(&callee, "stop_run").len(), 1);
    daemon.stop().await;
}

/// The one that is configured holds also where the operation began under a longer one.
#[tokio::test]
async fn an_operation_is_followed_no_longer_than_the_configuration_allows() {
    let home = Home::new();
    let mut long = behaviour();
    long["status_polling"]["max_poll_duration_seconds"] = json!(7_200);
    let running = telling(json!("r-1"), vec![json!({"status": "running"})]);
    let callee = Callee::start(runs("builds", &long, "string"), running).await;
    let limited = |longest| {
        let mut config = config(&home, &[("builds", &callee)]);
        config.calls.poll_longest = longest;
        config
    };
    let daemon = Daemon::ready(limited(Duration::from_secs(3_600))).await;
    let id = begin(&daemon, "start").await;
    let now = shown(&daemon, &id).await;
    let time = |member: &str| {
        now[member]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap()
    };
    assert_eq!(
        time("deadline_at")
            .duration_since(time("started_at"))
            .as_secs(),
        3_600,
        "{now}"
    );
    daemon.stop().await;
    let daemon = Daemon::ready(limited(Duration::from_millis(100))).await;
    until_state(&daemon, &id, "timed-out").await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_cancel_that_fails_changes_nothing_and_without_a_tool_for_it_nobody_follows() {
    let home = Home::new();
    let callee = Callee::start(runs("builds", &behaviour(), "string"), |ran: Ran| {
        std::future::ready(match ran.tool.as_str() {
            "start" => started(&json!("r-1")),
            "stop_run" => answer(
                409,
                &json!({"success": false, "error": "not now", "code": "conflict"}),
            ),
            _ => done(&json!({"status": "running"})),
        })
    })
    .await;
    let mut silent = behaviour();
    silent.as_object_mut().unwrap().remove("cancellation");
    let other = Callee::start(
        runs("other", &silent, "string"),
        telling(json!("x"), vec![json!({"status": "running"})]),
    )
    .await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee), ("other", &other)])).await;
    let id = begin(&daemon, "builds/start").await;
    let refused = daemon
        .send("DELETE", &format!("/api/v1/operations/{id}"))
        .await;
    assert_eq!(refused.status, 502);
    assert_eq!(refused.json()["code"], "cancel_failed");
    assert!(refused.problem().contains("not now"), "{refused:?}");
    assert_eq!(shown(&daemon, &id).await["state"], "running");
    let id = begin(&daemon, "other/start").await;
    let let_go = daemon
        .send("DELETE", &format!("/api/v1/operations/{id}"))
        .await;
    assert_eq!(let_go.status, 200);
    assert_eq!(let_go.json()["state"], "abandoned");
    assert!(
        let_go.json()["note"]
            .as_str()
            .unwrap()
            .contains("may run on"),
        "{let_go:?}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn following_outlives_the_daemon() {
    let home = Home::new();
    let callee = Callee::start(
        runs("builds", &behaviour(), "string"),
        telling(json!("r-1"), vec![json!({"status": "running"})]),
    )
    .await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let id = begin(&daemon, "start").await;
    until(&daemon, &id, |now| now["status"] == "running").await;
    daemon.stop().await;
    callee.runs(telling(
        json!("r-2"),
        vec![json!({"status": "done", "output": 1})],
    ));
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let over = until_state(&daemon, &id, "succeeded").await;
    assert_eq!(over["result"], 1);
    assert_eq!(over["tool"], "start");
    assert_eq!(
        asked_of(&callee, "start").len(),
        1,
        "it is not started again"
    );
    daemon.stop().await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    assert_eq!(shown(&daemon, &id).await["result"], 1);
    daemon.stop().await;
}

#[tokio::test]
async fn nobody_else_is_asked_about_it_and_following_ends_in_time() {
    let home = Home::new();
    let mut short = behaviour();
    short["status_polling"]["max_poll_duration_seconds"] = json!(1);
    let running = || vec![json!({"status": "running"})];
    let callee = Callee::start(
        runs("builds", &short, "string"),
        telling(json!("r-1"), running()),
    )
    .await;
    let stranger = Callee::start(
        runs("builds", &short, "string"),
        telling(json!("r-1"), running()),
    )
    .await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let id = begin(&daemon, "start").await;
    daemon.stop().await;
    // Another program under the same name, with the same tools.
    let daemon = Daemon::ready(config(&home, &[("builds", &stranger)])).await;
    daemon.until_state("builds", "live").await;
    let over = until_state(&daemon, &id, "timed-out").await;
    assert!(
        over["note"].as_str().unwrap().contains("may run on"),
        "{over}"
    );
    assert!(
        asked_of(&stranger, "get_run").is_empty() && asked_of(&stranger, "stop_run").is_empty()
    );
    daemon.stop().await;
}

/// A scenario without an identity that moves cannot be told from another one.
#[tokio::test]
async fn a_scenario_that_moved_without_an_identity_ends_it_long_before_its_deadline() {
    let home = Home::new();
    let running = || vec![json!({"status": "running"})];
    let mut callee = Callee::start(
        runs("builds", &behaviour(), "string"),
        telling(json!("r-1"), running()),
    )
    .await;
    let small = |callee: &Callee| {
        let mut config = config(&home, &[("builds", callee)]);
        config.calls.poll_max = Duration::from_millis(20);
        config
    };
    let daemon = Daemon::ready(small(&callee)).await;
    let first = begin(&daemon, "start").await;
    let second = begin(&daemon, "start").await;
    daemon.stop().await;
    let polls = asked_of(&callee, "get_run").len();
    let _old = callee.move_on().await;
    let daemon = Daemon::ready(small(&callee)).await;
    daemon.until_state("builds", "live").await;
    // Called off before that is noticed, or after: it ends either way, and nobody is told.
    let called_off = daemon
        .send("DELETE", &format!("/api/v1/operations/{second}"))
        .await;
    assert!(matches!(called_off.status, 200 | 409), "{called_off:?}");
    let over = until(&daemon, &second, |now| !now["ended_at"].is_null()).await;
    assert!(
        ["abandoned", "lost"]
            .iter()
            .any(|state| over["state"] == *state),
        "{over}"
    );
    let over = until_state(&daemon, &first, "lost").await;
    let note = over["note"].as_str().unwrap();
    assert!(
        note.contains("is not there any more") && note.contains("belongs to the peer at"),
        "{note}"
    );
    assert_eq!(asked_of(&callee, "get_run").len(), polls);
    assert!(asked_of(&callee, "stop_run").is_empty());
    // What is started there now is followed.
    let third = begin(&daemon, "start").await;
    until(&daemon, &third, |now| !now["polled_at"].is_null()).await;
    daemon.stop().await;
}

#[tokio::test]
async fn failures_on_the_way_do_not_end_it() {
    let home = Home::new();
    let polls = Arc::new(AtomicUsize::new(0));
    let callee = Callee::start(runs("builds", &behaviour(), "string"), move |ran: Ran| {
        std::future::ready(
            match (ran.tool.as_str(), polls.fetch_add(1, Ordering::SeqCst)) {
                ("start", _) => started(&json!("r-1")),
                (_, 1) => answer(500, &json!({"success": false, "error": "try later"})),
                (_, 2) => crate::support::callee::text(200, "no JSON"),
                (_, 3) => done(&json!({"other": "nothing about it"})),
                _ => done(&json!({"status": "done"})),
            },
        )
    })
    .await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let id = begin(&daemon, "start").await;
    until_state(&daemon, &id, "succeeded").await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_scenario_that_does_not_know_it_any_more_ends_it() {
    let home = Home::new();
    let polls = AtomicUsize::new(0);
    let callee = Callee::start(runs("builds", &behaviour(), "string"), move |ran: Ran| {
        let poll = if ran.tool == "get_run" {
            polls.fetch_add(1, Ordering::SeqCst)
        } else {
            0
        };
        std::future::ready(match ran.tool.as_str() {
            "start" => started(&json!("r-1")),
            _ if poll == 0 => done(&json!({"status": "running"})),
            _ => answer(
                404,
                &json!({"success": false, "error": "no such run", "code": "not_found"}),
            ),
        })
    })
    .await;
    let mut config = config(&home, &[("builds", &callee)]);
    config.calls.poll_max = Duration::from_millis(20);
    let daemon = Daemon::ready(config).await;
    let id = begin(&daemon, "start").await;
    let lost = until_state(&daemon, &id, "lost").await;
    assert!(
        lost["note"].as_str().unwrap().contains("no such run"),
        "{lost}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn an_operation_whose_every_status_is_refused_ends_soon_with_the_reason() {
    let home = Home::new();
    let callee = Callee::start(runs("builds", &behaviour(), "string"), |ran: Ran| {
        std::future::ready(match ran.tool.as_str() {
            "start" => started(&json!("r-1")),
            _ => answer(
                400,
                &json!({"success": false, "error": "project is required", "code": "bad_request"}),
            ),
        })
    })
    .await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let id = begin(&daemon, "start").await;
    let over = until_state(&daemon, &id, "untracked").await;
    let note = over["note"].as_str().unwrap();
    assert!(
        note.contains("refused every request") && note.contains("project is required"),
        "{over}"
    );
    assert_eq!(asked_of(&callee, "get_run").len(), 5);
    daemon.stop().await;
}

#[tokio::test]
async fn an_id_that_means_something_else_to_the_status_tool_is_named() {
    let home = Home::new();
    let refusals = AtomicUsize::new(0);
    let callee = Callee::start(runs("builds", &behaviour(), "string"), move |ran: Ran| {
        let misses = if ran.tool == "get_run" {
            refusals.fetch_add(1, Ordering::SeqCst)
        } else {
            0
        };
        std::future::ready(match ran.tool.as_str() {
            "start" => started(&json!("r-1")),
            _ if misses < 4 => answer(
                404,
                &json!({"success": false, "error": "run not found", "code": "not_found"}),
            ),
            _ => done(&json!({"status": "done"})),
        })
    })
    .await;
    let mut config = config(&home, &[("builds", &callee)]);
    config.calls.poll_max = Duration::from_millis(200);
    let daemon = Daemon::ready(config).await;
    let id = begin(&daemon, "start").await;
    let expected = "`run_id` of its tool `get_run` may mean another id than \"r-1\", the `run.id` of the answer";
    let noted = until(&daemon, &id, |now| {
        now["note"]
            .as_str()
            .is_some_and(|note| note.contains("may mean"))
    })
    .await;
    assert!(
        noted["note"].as_str().unwrap().ends_with(expected),
        "{noted}"
    );
    assert_eq!(noted["state"], "running", "it may be found later");
    until_state(&daemon, &id, "succeeded").await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_status_that_is_not_declared_is_told_and_ends_after_ten_polls() {
    let home = Home::new();
    let mut behaviour = behaviour();
    behaviour["completion_conditions"]["pending_values"] = json!(["running"]);
    let statuses = vec![
        json!({"status": "running"}),
        json!({"status": "degraded", "left": 3}),
    ];
    let callee = Callee::start(
        runs("builds", &behaviour, "string"),
        telling(json!("r-1"), statuses),
    )
    .await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let id = begin(&daemon, "start").await;
    let over = until_state(&daemon, &id, "unknown-status").await;
    let expected = "its status is `degraded`, which `completion_conditions` declares neither as an end nor as pending";
    assert!(
        over["note"].as_str().unwrap().starts_with(expected),
        "{over}"
    );
    assert_eq!(over["status"], "degraded");
    assert!(
        over["result"].to_string().contains(r#""left":3"#),
        "expected the last answer, found {over}"
    );
    assert_eq!(asked_of(&callee, "get_run").len(), 11);
    let findings = daemon.findings("async-incomplete").await;
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0]["message"], json!(expected));
    assert_eq!(findings[0]["scenario"], "builds");
    assert_eq!(findings[0]["tool"], "start");
    daemon.stop().await;
}

/// What the answer to a call says of an operation that cannot be followed.
async fn untracked(behaviour: &Value, kind: &str, id: &Value) -> String {
    let home = Home::new();
    let id = id.clone();
    let callee = Callee::start(runs("builds", behaviour, kind), move |_| {
        std::future::ready(started(&id))
    })
    .await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let answer = call(&daemon, "start").await;
    assert_eq!(answer.status, 202, "what was started goes on: {answer:?}");
    let answer = answer.json();
    assert_eq!(answer["success"], true, "{answer}");
    assert_eq!(answer.get("operation_id"), None, "{answer}");
    assert_eq!(
        daemon.json("/api/v1/operations").await["operations"],
        json!([])
    );
    assert_eq!(callee.ran().len(), 1);
    daemon.stop().await;
    answer["untracked"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer:#}"))
        .to_owned()
}

#[tokio::test]
async fn what_cannot_be_followed_says_why_at_once() {
    let id = json!("r-1");
    let with = |pointer: &str, value: Value| {
        let mut declaration = behaviour();
        *declaration.pointer_mut(pointer).unwrap() = value;
        declaration
    };
    for (declaration, kind, id, named) in [
        // The status tool is not offered.
        (
            with("/status_polling/status_tool", json!("get_other")),
            "string",
            &id,
            "`get_other` is not offered by `builds`",
        ),
        // Nobody says when it is over.
        (
            with("/completion_conditions", Value::Null),
            "string",
            &id,
            "`completion_conditions`",
        ),
        (
            with("/completion_conditions/success_values", json!([])),
            "string",
            &id,
            "`success_values`",
        ),
        // No way to ask at all.
        (
            with("/status_polling", Value::Null),
            "string",
            &id,
            "`status_polling`",
        ),
        (Value::Null, "string", &id, "`async_behavior`"),
        // The id is somewhere else, is none, or does not fit.
        (
            with("/status_polling/operation_id_field", json!("pid")),
            "string",
            &id,
            "`pid`",
        ),
        (behaviour(), "string", &json!({"at": 1}), "`run.id`"),
        (behaviour(), "integer", &id, "`run_id`"),
        // The status tool takes something else.
        (
            with("/status_polling/status_tool_id_param", json!("pid")),
            "string",
            &id,
            "`run_id`",
        ),
    ] {
        let why = untracked(&declaration, kind, id).await;
        assert!(why.contains(named), "{named}: {why}");
    }
}

#[tokio::test]
async fn a_status_tool_that_wants_more_than_the_id_or_a_humans_yes_is_not_asked() {
    let home = Home::new();
    let more = json!({"type": "object", "properties": {"run_id": {}, "sandbox_id": {}}, "required": ["run_id", "sandbox_id"]});
    let offers = |parameters: &Value, approval: bool| {
        let on = json!({"enabled_by_default": true, "requires_approval": approval});
        let start = json!({"enabled_by_default": true, "async_behavior": behaviour()});
        let nothing = json!({"type": "object", "properties": {}});
        manifest(
            "builds",
            &[
                tool_with("start", &nothing, &start),
                tool_with("get_run", parameters, &on),
            ],
        )
    };
    let takes = json!({"type": "object", "properties": {"run_id": {}}});
    for (offered, named) in [
        (offers(&more, false), "`sandbox_id`"),
        (offers(&takes, true), "approval"),
    ] {
        let callee = Callee::start(offered, |_| std::future::ready(started(&json!(4711)))).await;
        let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
        daemon.until_state("builds", "live").await;
        let answer = call(&daemon, "start").await.json();
        assert!(
            answer["untracked"].as_str().unwrap().contains(named),
            "{answer}"
        );
        assert_eq!(callee.ran().len(), 1);
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_tool_that_can_go_on_but_did_not_is_answered_as_any_other() {
    let home = Home::new();
    let callee = Callee::start(runs("builds", &behaviour(), "string"), |_| async {
        done(&json!({"built": true}))
    })
    .await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let answer = call(&daemon, "start").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json().get("operation_id"), None);
    assert_eq!(answer.json().get("untracked"), None);
    // Many answer 200 and go on all the same: what names an operation is followed.
    callee.runs(|ran: Ran| {
        std::future::ready(match ran.tool.as_str() {
            "start" => done(&json!({"run": {"id": "r-1"}})),
            _ => done(&json!({"status": "done"})),
        })
    });
    let id = begin(&daemon, "start").await;
    until_state(&daemon, &id, "succeeded").await;
    daemon.stop().await;
}

#[tokio::test]
async fn so_many_are_followed_and_no_more() {
    let home = Home::new();
    let callee = Callee::start(
        runs("builds", &behaviour(), "string"),
        telling(json!("r-1"), vec![json!({"status": "running"})]),
    )
    .await;
    let mut config = config(&home, &[("builds", &callee)]);
    config.calls.operations_max = 1;
    let daemon = Daemon::ready(config).await;
    begin(&daemon, "start").await;
    let beyond = call(&daemon, "start").await.json();
    assert!(
        beyond["untracked"]
            .as_str()
            .unwrap()
            .contains("`calls.operations_max`"),
        "{beyond}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn so_many_bytes_of_operations_are_followed_and_no_more() {
    let home = Home::new();
    let answers = telling(json!("r-1"), vec![json!({"status": "running"})]);
    let callee = Callee::start(runs("builds", &behaviour(), "string"), answers).await;
    let mut config = config(&home, &[("builds", &callee)]);
    // Room for one, with what its tool declares.
    config.calls.kept_bytes = 2_500;
    let daemon = Daemon::ready(config).await;
    begin(&daemon, "start").await;
    let beyond = call(&daemon, "start").await.json();
    assert!(
        beyond["untracked"]
            .as_str()
            .unwrap()
            .contains("`calls.kept_bytes`"),
        "{beyond}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn an_approved_call_that_goes_on_is_followed() {
    let home = Home::new();
    let mut offered = runs("builds", &behaviour(), "string");
    offered["tools"][0]["metadata"]["requires_approval"] = json!(true);
    let callee = Callee::start(
        offered,
        telling(json!("r-1"), vec![json!({"status": "done", "output": "x"})]),
    )
    .await;
    let daemon = Daemon::ready(config(&home, &[("builds", &callee)])).await;
    let waiting = call(&daemon, "start").await.json();
    let target = format!(
        "/api/v1/approvals/{}/approve",
        waiting["approval_id"].as_str().unwrap()
    );
    let approved = daemon.send_json("POST", &target, &json!({})).await.json();
    let id = approved["answer"]["operation_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{approved:#}"))
        .to_owned();
    until_state(&daemon, &id, "succeeded").await;
    daemon.stop().await;
}
