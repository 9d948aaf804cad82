//! One bad scenario costs that scenario: the tools of the others are served, whatever it does.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;

use crate::support::daemon::{Daemon, Home, NEVER, PATIENCE, Scenario, configured};
use crate::support::upstream_server::{MIB, UpstreamServer, answer, hang};

/// A manifest with so many tools, as the protocol has it.
fn manifest(scenario: &str, tools: usize) -> Vec<u8> {
    let tool = |n: usize| {
        json!({
            "name": format!("tool_{n:05}"), "description": "One of many", "metadata": {"enabled_by_default": true},
            "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        })
    };
    let tools: Vec<_> = (0..tools).map(tool).collect();
    let scenario = json!({"name": scenario, "version": "1.0.0", "description": "A test's"});
    let generated_at = "2026-01-05T10:00:00Z";
    let manifest = json!({
        "protocol_version": "1.0", "scenario": scenario, "tools": tools, "categories": [],
        "generated_at": generated_at,
    });
    manifest.to_string().into_bytes()
}

const JSON: &str = "Content-Type: application/json";

/// Answers with a manifest of one tool as soon as the gate is open.
async fn gated(gate: watch::Receiver<bool>) -> UpstreamServer {
    UpstreamServer::serving(move |_, mut stream| {
        let mut gate = gate.clone();
        Box::pin(async move {
            let _ = gate.wait_for(|open| *open).await;
            let _ = stream
                .write_all(&answer("200 OK", &[JSON], &manifest("slow", 1)))
                .await;
        })
    })
    .await
}

#[tokio::test]
async fn a_dead_and_a_slow_scenario_delay_nothing() {
    let home = Home::new();
    let good = Scenario::of("good", &["brew"]).await;
    let mut dead = Scenario::of("dead", &["stir"]).await;
    dead.stop().await;
    let (open, gate) = watch::channel(false);
    let slow = gated(gate).await;
    let mut config = home.config(&[&good, &dead]);
    config.scenarios.push(configured("slow", slow.address()));
    config.refresh.timeout = NEVER;
    config.server.ready_timeout = NEVER;
    let daemon = Daemon::start(config).await;

    daemon.until_tools(&["brew"]).await;
    daemon
        .wait_until("the dead one was asked", |all| {
            all.health
                .values()
                .any(|health| health.name.as_str() == "dead" && health.failures_in_a_row > 0)
        })
        .await;
    // The slow one is the only one that is still awaited, and the list of the others does not wait
    // for it.
    let waiting = daemon.get("/readyz").await;
    assert_eq!(waiting.status, 503);
    assert_eq!(
        waiting.json(),
        json!({"status": "starting", "awaited": ["scenario slow"]})
    );
    for format in ["native", "openai"] {
        assert_eq!(daemon.tools(&format!("?format={format}")).await, ["brew"]);
    }
    assert_eq!(
        daemon.json("/api/v1/scenarios/slow").await["state"],
        "connecting"
    );

    open.send(true).unwrap();
    daemon.until_ready().await;
    assert_eq!(
        daemon.json("/readyz").await,
        json!({"status": "ready", "awaited": []})
    );
    daemon.until_tools(&["brew", "tool_00000"]).await;
    daemon.stop().await;
}

#[tokio::test]
async fn ready_comes_with_its_deadline_at_the_latest() {
    let home = Home::new();
    let good = Scenario::of("good", &["brew"]).await;
    let never = UpstreamServer::serving(|_, stream| hang(stream)).await;
    let mut config = home.config(&[&good]);
    config.scenarios.push(configured("slow", never.address()));
    config.refresh.timeout = NEVER;
    config.server.ready_timeout = Duration::from_millis(300);
    let daemon = Daemon::ready(config).await;
    assert_eq!(daemon.get("/readyz").await.status, 200);
    assert_eq!(
        daemon.json("/api/v1/scenarios/slow").await["state"],
        "connecting"
    );
    daemon.until_tools(&["brew"]).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_scenario_that_hangs_later_keeps_its_tools_and_delays_no_other() {
    let home = Home::new();
    let good = Scenario::of("good", &["brew"]).await;
    let mut ill = Scenario::of("ill", &["stir"]).await;
    let mut config = home.config(&[&good, &ill]);
    config.refresh.timeout = Duration::from_millis(200);
    let daemon = Daemon::ready(config).await;
    assert_eq!(daemon.tools("").await, ["brew", "stir"]);
    ill.stop().await;
    let _hanging = ill.hang().await;
    let failing =
        |answer: &crate::support::serving::Answer| answer.json()["last_error"]["kind"] == "timeout";
    daemon.until("/api/v1/scenarios/ill", failing).await;
    good.offer([
        crate::support::daemon::tool("brew"),
        crate::support::daemon::tool("pour"),
    ]);
    daemon.until_tools(&["brew", "pour", "stir"]).await;
    daemon.stop().await;
}

/// Serves these bytes as a scenario beside a good one, and returns its health once it was asked
/// twice. The good one's tools are in the list meanwhile.
async fn beside_a_good_one(hostile: &UpstreamServer, patience: Duration) -> serde_json::Value {
    let home = Home::new();
    let good = Scenario::of("good", &["brew"]).await;
    let mut config = home.config(&[&good]);
    config
        .scenarios
        .push(configured("hostile", hostile.address()));
    config.refresh.timeout = patience;
    config.refresh.max_body = MIB;
    let daemon = Daemon::ready(config).await;
    let twice = |answer: &crate::support::serving::Answer| {
        answer.json()["failures_in_a_row"].as_u64() > Some(1)
    };
    let health = daemon
        .until("/api/v1/scenarios/hostile", twice)
        .await
        .json();
    // What the good one offers next is taken up too.
    good.offer([
        crate::support::daemon::tool("brew"),
        crate::support::daemon::tool("pour"),
    ]);
    daemon.until_tools(&["brew", "pour"]).await;
    assert_eq!(daemon.json("/api/v1/scenarios/good").await["state"], "live");
    daemon.stop().await;
    health
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    // It is announced as larger than the limit, and sent on and on.
    let hostile = UpstreamServer::serving(|_, mut stream| {
        Box::pin(async move {
            let head = format!(
                "HTTP/1.1 200 OK\r\n{JSON}\r\nContent-Length: {}\r\n\r\n",
                64 * MIB
            );
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(&[b' '; 8 * 1024]).await.is_ok() {}
        })
    })
    .await;
    let health = beside_a_good_one(&hostile, PATIENCE).await;
    assert_eq!(health["last_error"]["kind"], "too-large", "{health}");
}

#[tokio::test]
async fn a_body_without_end_is_refused_at_the_limit() {
    let hostile = UpstreamServer::serving(|_, mut stream| {
        Box::pin(async move {
            let _ = stream
                .write_all(
                    format!("HTTP/1.1 200 OK\r\n{JSON}\r\nConnection: close\r\n\r\n[").as_bytes(),
                )
                .await;
            while stream.write_all(&[b'['; 8 * 1024]).await.is_ok() {}
        })
    })
    .await;
    let health = beside_a_good_one(&hostile, PATIENCE).await;
    assert_eq!(health["last_error"]["kind"], "too-large", "{health}");
}

#[tokio::test]
async fn a_body_that_never_comes_is_cut_off() {
    let hostile = UpstreamServer::serving(|_, mut stream| {
        Box::pin(async move {
            let head = format!("HTTP/1.1 200 OK\r\n{JSON}\r\nContent-Length: 1000\r\n\r\n{{");
            let _ = stream.write_all(head.as_bytes()).await;
            hang(stream).await;
        })
    })
    .await;
    let health = beside_a_good_one(&hostile, Duration::from_millis(200)).await;
    assert_eq!(health["last_error"]["kind"], "timeout", "{health}");
}

#[tokio::test]
async fn what_is_no_manifest_is_refused_with_its_place() {
    for (body, part) in [
        (
            &b"{\"protocol_version\": \"1.0\", \"scenario\": {\"name\": \"hos"[..],
            "ends in the middle, after 53 bytes",
        ),
        (b"[[[[", "a bare JSON list and begins with `[[[[`"),
        (b"<html></html>", "a web page or XML"),
        (b"\xff\xfe", "a text that is not JSON"),
        (b"", "the body is empty"),
    ] {
        let hostile = UpstreamServer::answering(move |_| answer("200 OK", &[JSON], body)).await;
        let health = beside_a_good_one(&hostile, PATIENCE).await;
        let message = health["last_error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
        assert_eq!(health["tools"]["published"], 0);
    }
}

#[tokio::test]
async fn ten_thousand_tools_are_taken_as_they_are() {
    let home = Home::new();
    let good = Scenario::of("good", &["brew"]).await;
    let huge =
        UpstreamServer::answering(|_| answer("200 OK", &[JSON], &manifest("huge", 10_000))).await;
    let mut config = home.config(&[&good]);
    config.scenarios.push(configured("huge", huge.address()));
    config.refresh.min_interval = NEVER;
    config.refresh.max_interval = NEVER;
    let daemon = Daemon::ready(config).await;
    let list = daemon.get("/api/v1/tools").await;
    assert_eq!(list.header("callsheet-tools"), "10001");
    let openai = daemon
        .get("/api/v1/tools?format=openai&scenario=good")
        .await
        .json();
    assert_eq!(crate::support::daemon::names_of(&openai), ["brew"]);
    daemon.stop().await;
}
