//! Several calls of one answer: all of them, the first that succeeds, or the first that ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callsheet::calls::{CallMode, run_several};
use callsheet::runtime::Stop;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::callee::{Callee, done, manifest, tool, tool_with};
use crate::support::house::{House, request};
use crate::support::mcp_server::{Answer, McpServer, legacy};

/// What the calls of a script give, in their order: after how many milliseconds, and whether they
/// succeed.
async fn run(
    mode: CallMode,
    parallel: usize,
    script: &[(u64, bool)],
) -> (Vec<Option<bool>>, usize, usize) {
    let at_once = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    let stopped = AtomicUsize::new(0);
    let call = |index: usize, stop: Stop| {
        let (wait, succeeds) = script[index];
        let at_once = &at_once;
        let most = &most;
        let stopped = &stopped;
        async move {
            most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::select! {
                () = sleep(Duration::from_millis(wait)) => {}
                () = stop.wait() => { stopped.fetch_add(1, Ordering::SeqCst); }
            }
            at_once.fetch_sub(1, Ordering::SeqCst);
            succeeds
        }
    };
    let decides = |succeeded: &bool| mode.is_decided_by(true, *succeeded);
    let outcomes = run_several(script.len(), parallel, call, decides).await;
    (
        outcomes,
        most.load(Ordering::SeqCst),
        stopped.load(Ordering::SeqCst),
    )
}

#[tokio::test(start_paused = true)]
async fn all_gives_every_outcome_in_the_order_of_the_calls() {
    let (outcomes, most, _) = run(CallMode::All, 8, &[(30, true), (10, false), (20, true)]).await;
    assert_eq!(outcomes, [Some(true), Some(false), Some(true)]);
    assert_eq!(most, 3);
    let (outcomes, most, _) = run(CallMode::All, 2, &[(10, true); 7]).await;
    assert_eq!(outcomes, [Some(true); 7]);
    assert_eq!(most, 2);
    assert_eq!(run(CallMode::All, 0, &[(1, true)]).await.0, [Some(true)]);
    assert_eq!(run(CallMode::Race, 1, &[]).await.0, []);
}

#[tokio::test(start_paused = true)]
async fn any_takes_the_first_success_and_all_where_there_is_none() {
    let (outcomes, ..) = run(CallMode::Any, 8, &[(30, true), (10, false), (20, true)]).await;
    assert_eq!(outcomes, [None, Some(false), Some(true)]);
    let (outcomes, ..) = run(CallMode::Any, 8, &[(20, false), (10, false)]).await;
    assert_eq!(outcomes, [Some(false), Some(false)]);
}

#[tokio::test(start_paused = true)]
async fn race_takes_the_first_end_and_begins_no_further_call() {
    let (outcomes, most, _) = run(CallMode::Race, 2, &[(30, true), (10, false), (1, true)]).await;
    assert_eq!(outcomes, [None, Some(false), None]);
    assert_eq!(most, 2);
}

#[test]
fn modes_are_written_as_they_are_read() {
    for mode in [CallMode::All, CallMode::Any, CallMode::Race] {
        assert_eq!(mode.as_str().parse(), Ok(mode));
    }
    assert!(
        "first"
            .parse::<CallMode>()
            .unwrap_err()
            .to_string()
            .contains("`all`, `any` or `race`")
    );
}

#[tokio::test]
async fn only_idempotent_tools_compete_and_the_loser_is_left_alone() {
    let any = json!({"type": "object", "properties": {}});
    let safe = json!({"enabled_by_default": true, "idempotent": true});
    let tools = [
        tool("send"),
        tool_with("fast", &any, &safe),
        tool_with("slow", &any, &safe),
    ];
    let (release, held) = tokio::sync::watch::channel(false);
    let callee = Callee::start(manifest("files", &tools), move |ran| {
        let mut held = held.clone();
        async move {
            if ran.tool == "slow" {
                held.wait_for(|released| *released).await.unwrap();
            }
            done(&json!(ran.tool))
        }
    })
    .await;
    let house = House::of(&[("files", callee.url())]).await;
    let calls = |names: &[&str]| {
        names
            .iter()
            .map(|name| request(name, &json!({})))
            .collect::<Vec<_>>()
    };
    let refused = house
        .app
        .calls()
        .execute_several(calls(&["fast", "send"]), CallMode::Race, 8)
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`mode=race` is for idempotent tools only, and these are not declared so: `files/send`; call them with `mode=all`"
    );
    assert_eq!(callee.ran().len(), 0);

    let race = house
        .app
        .calls()
        .execute_several(calls(&["slow", "fast"]), CallMode::Race, 8)
        .await
        .unwrap();
    assert!(race[0].is_none());
    // A call that is refused before it is sent is no end of a race.
    let race = house
        .app
        .calls()
        .execute_several(calls(&["gone", "fast"]), CallMode::Race, 1)
        .await
        .unwrap();
    assert_eq!(
        race[0].as_ref().unwrap().as_ref().unwrap_err().kind(),
        "unknown_tool"
    );
    assert!(race[1].as_ref().unwrap().is_ok());
    let race = house
        .app
        .calls()
        .execute_several(calls(&["slow", "fast"]), CallMode::Race, 8)
        .await
        .unwrap();
    let first = race[1].as_ref().unwrap().as_ref().unwrap();
    assert_eq!(first.outcome.result.as_ref().unwrap().get(), "\"fast\"");
    release.send_replace(true);
    let all = house
        .app
        .calls()
        .execute_several(calls(&["slow", "send", "gone"]), CallMode::All, 8)
        .await
        .unwrap();
    let words: Vec<Value> = all
        .iter()
        .map(|outcome| match outcome.as_ref().unwrap() {
            Ok(answered) => {
                serde_json::from_str(answered.outcome.result.as_ref().unwrap().get()).unwrap()
            }
            Err(refused) => json!(refused.kind()),
        })
        .collect();
    assert_eq!(words, [json!("slow"), json!("send"), json!("unknown_tool")]);
    house.finish().await;
}

#[tokio::test]
async fn what_is_not_needed_any_more_is_cancelled_where_its_scenario_can() {
    let schema = json!({"type": "object", "properties": {}});
    let search =
        json!([{"name": "search", "inputSchema": schema, "annotations": {"readOnlyHint": true}}]);
    let mut own = legacy("2025-11-25", &search);
    let server = McpServer::start(move |came| match came.method() {
        // It never answers.
        "tools/call" => Answer::Stream(Vec::new()),
        _ => own(came),
    })
    .await;
    let (release, held) = tokio::sync::watch::channel(false);
    let safe = json!({"enabled_by_default": true, "idempotent": true});
    let callee = Callee::start(
        manifest("files", &[tool_with("find", &schema, &safe)]),
        move |_| {
            let mut held = held.clone();
            async move {
                held.wait_for(|released| *released).await.unwrap();
                done(&json!("found"))
            }
        },
    )
    .await;
    let house = House::of(&[("files", callee.url()), ("web", server.url())]).await;
    let calls = vec![request("search", &json!({})), request("find", &json!({}))];
    let app = std::sync::Arc::clone(&house.app);
    let race = callsheet::runtime::Tasks::new().spawn(async move {
        app.calls()
            .execute_several(calls, CallMode::Any, 8)
            .await
            .unwrap()
    });
    server.until("tools/call", 1).await;
    release.send_replace(true);
    let outcomes = race.await.unwrap();
    assert!(outcomes[0].is_none() && outcomes[1].as_ref().unwrap().is_ok());
    server.until("notifications/cancelled", 1).await;
    house.finish().await;
}
