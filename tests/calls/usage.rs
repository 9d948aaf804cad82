//! How often tools were called, what came of it and how long it took: counted, on the tool's page
//! and in metrics.

#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "also helpers of a test fail it by panicking; counts are exact"
)]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use callsheet::calls::WaitLimits;
use callsheet::model::{ToolId, ToolUsage};
use callsheet::runtime::{Clock, Tasks};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::callee::{Callee, PATIENCE, answer, done, manifest, tool, tool_with};
use crate::support::house::{House, request, switched};
use crate::support::scrape::Scrape;
use crate::support::serving::{Answer, ask};

const JSON: (&str, &str) = ("content-type", "application/json");

fn id(text: &str) -> ToolId {
    text.parse().unwrap()
}

async fn execute(address: SocketAddr, body: &Value) -> Answer {
    ask(
        address,
        "POST",
        "/api/v1/tools/execute",
        &[JSON],
        &body.to_string(),
    )
    .await
}

async fn scrape(address: SocketAddr) -> Scrape {
    Scrape::parse(&ask(address, "GET", "/metrics", &[("accept", "text/plain")], "").await)
}

/// The text of a tool's page without its tags.
async fn page(address: SocketAddr, id: &str) -> String {
    let target = format!("/dashboard/tool?id={}", id.replace('/', "%2F"));
    let page = ask(address, "GET", &target, &[], "").await;
    assert_eq!(page.status, 200, "{page:?}");
    let page = String::from_utf8(page.body).unwrap();
    let texts = page
        .split('<')
        .filter_map(|part| part.split_once('>'))
        .map(|(_, text)| text.trim());
    texts
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Waits until something was counted of a tool.
async fn until(house: &House, tool: &str, holds: impl Fn(&ToolUsage) -> bool) -> ToolUsage {
    let deadline = Clock::system().now() + PATIENCE;
    loop {
        let usage = house.app.calls().usage(&id(tool));
        if let Some(usage) = usage.clone().filter(|usage| holds(usage)) {
            return usage;
        }
        assert!(Clock::system().now() < deadline, "never came: {usage:?}");
        tokio::task::yield_now().await;
    }
}

/// Tools that do what they are called.
async fn files() -> Callee {
    let strict =
        json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}});
    let wipe = json!({"enabled_by_default": true, "requires_approval": true});
    let any = json!({"type": "object", "properties": {}});
    let on = json!({"enabled_by_default": true});
    let tools = [
        tool_with("read", &strict, &on),
        tool("idle"),
        tool_with("wipe", &any, &wipe),
    ];
    Callee::start(manifest("files", &tools), |ran| async move {
        if ran.arguments["path"] == "missing" {
            return answer(
                200,
                &json!({"success": false, "error": "no such file", "code": "not_found"}),
            );
        }
        done(&ran.arguments)
    })
    .await
}

#[tokio::test]
async fn calls_failures_durations_and_the_last_call_are_counted_and_shown() {
    let files = files().await;
    let house = House::of(&[("files", files.url())]).await;
    let address = house.serve().await;
    let before = Clock::system().wall();
    let read = |path: &Value| json!({"tool_name": "read", "arguments": {"path": path}});
    for (path, status) in [
        (json!("a"), 200),
        (json!("b"), 200),
        (json!("missing"), 200),
        (json!(7), 400),
    ] {
        assert_eq!(execute(address, &read(&path)).await.status, status);
    }
    let usage = house.app.calls().usage(&id("files/read")).unwrap();
    assert_eq!(usage.calls, 4);
    assert_eq!(usage.sent, 3);
    assert_eq!(usage.failed(), 2);
    assert_eq!(
        usage.failures,
        BTreeMap::from([("failed".into(), 1), ("invalid_arguments".into(), 1)])
    );
    assert!(
        usage.longest > Duration::ZERO && usage.longest <= usage.total,
        "{usage:?}"
    );
    let mean = usage.mean().unwrap();
    assert!(
        mean <= usage.longest && usage.last >= before && usage.last <= Clock::system().wall(),
        "{usage:?}"
    );

    let shown = page(address, "files/read").await;
    for part in [
        "Calls 4",
        "Failures 2",
        "failed 1",
        "invalid_arguments 1",
        "Average duration",
        "Last called",
    ] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    let idle = page(address, "files/idle").await;
    assert!(
        idle.contains("No calls are recorded") && !idle.contains("Last called"),
        "{idle}"
    );

    // What nobody can be meant by counts for no tool, and in the totals.
    assert_eq!(
        execute(address, &json!({"tool_name": "reed"})).await.status,
        404
    );
    assert_eq!(house.app.calls().usages().len(), 1);
    let totals = scrape(address).await;
    assert_eq!(totals.value("callsheet_calls_total{outcome=\"ok\"}"), 2.0);
    assert_eq!(
        totals.value("callsheet_calls_total{outcome=\"unknown_tool\"}"),
        1.0
    );
    assert_eq!(
        totals.value("callsheet_call_duration_seconds_count{outcome=\"failed\"}"),
        1.0
    );
    assert!(
        !totals.text.contains("callsheet_tool_call"),
        "not unless it is asked for"
    );
    house.finish().await;
}

#[tokio::test]
async fn a_call_that_waits_for_a_yes_counts_when_it_is_made() {
    let files = files().await;
    let house = House::of(&[("files", files.url())]).await;
    let address = house.serve().await;
    let waiting = execute(address, &json!({"tool_name": "wipe"})).await.json();
    assert_eq!(house.app.calls().usage(&id("files/wipe")), None);
    house
        .app
        .calls()
        .approve(
            waiting["approval_id"].as_str().unwrap(),
            "a test",
            WaitLimits::within(PATIENCE),
        )
        .await
        .unwrap();
    let usage = until(&house, "files/wipe", |usage| usage.calls > 0).await;
    assert_eq!(usage.calls, 1);
    assert_eq!(usage.sent, 1);
    assert_eq!(usage.failed(), 0);
    house.finish().await;
}

#[tokio::test]
async fn a_call_counts_also_when_nobody_waits_for_it_any_more() {
    let files = files().await;
    let (open, gate) = watch::channel(false);
    files.runs(move |ran| {
        let mut gate = gate.clone();
        async move {
            gate.wait_for(|open| *open).await.unwrap();
            done(&ran.arguments)
        }
    });
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.concurrency = 1;
    })
    .await;
    let call = || {
        let app = Arc::clone(&house.app);
        Tasks::new().spawn(async move { app.call(request("idle", &json!({}))).await })
    };
    // One is sent, the other waits for its turn; nobody hears of either.
    let sent = call();
    files.until_ran(1).await;
    let queued = call();
    let deadline = Clock::system().now() + PATIENCE;
    while house.app.calls().waiting() == 0 && Clock::system().now() < deadline {
        tokio::task::yield_now().await;
    }
    queued.abort();
    let usage = until(&house, "files/idle", |usage| usage.calls == 1).await;
    assert_eq!(usage.sent, 0);
    assert_eq!(usage.failures, BTreeMap::from([("given_up".into(), 1)]));
    sent.abort();
    assert!(sent.await.unwrap_err().is_cancelled());
    open.send_replace(true);
    let usage = until(&house, "files/idle", |usage| usage.calls == 2).await;
    assert_eq!(usage.sent, 1);
    assert_eq!(usage.failed(), 1);
    assert_eq!(files.ran().len(), 1);
    house.finish().await;
}

#[tokio::test]
async fn metrics_tell_tools_apart_where_that_is_asked_for_while_they_are_listed() {
    let files = files().await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.tool_metrics = true;
    })
    .await;
    let address = house.serve().await;
    for path in ["a", "missing"] {
        execute(
            address,
            &json!({"tool_name": "read", "arguments": {"path": path}}),
        )
        .await;
    }
    let shown = scrape(address).await;
    let of = |metric: &str| format!("{metric}{{scenario=\"files\",tool=\"read\"}}");
    assert_eq!(shown.value(&of("callsheet_tool_calls_total")), 2.0);
    assert_eq!(shown.value(&of("callsheet_tool_call_failures_total")), 1.0);
    assert!(shown.value(&of("callsheet_tool_call_seconds_total")) > 0.0);
    assert_eq!(
        shown.count("callsheet_tool_calls_total"),
        1,
        "only what was called"
    );
    house
        .prefer("global", "tool:files/read", switched(false))
        .await;
    assert_eq!(
        scrape(address).await.count("callsheet_tool_call"),
        0,
        "it is in no list now"
    );
    house.finish().await;
}
