//! A daemon that lists another daemon follows its events: what changes there shows here long before
//! the next listing on schedule.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use callsheet::catalog::Snapshot;
use callsheet::config::Config;
use callsheet::discovery::SourceTrust;
use callsheet::model::ScenarioState;
use callsheet::runtime::Clock;
use jiff::SignedDuration;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;
use url::Url;

use crate::support::callee::{Callee, PATIENCE, manifest, tool};
use crate::support::house::{House, scenario, switched};
use crate::support::upstream_server::{UpstreamServer, answer};

fn url(address: SocketAddr) -> Url {
    format!("http://{address}/").parse().unwrap()
}

fn is_live(snapshot: &Snapshot) -> bool {
    snapshot
        .health
        .get(&scenario("first"))
        .is_some_and(|health| health.state == ScenarioState::Live)
}

async fn until_names(house: &House, wanted: &[&str]) {
    house.until("the names", |_| house.names() == wanted).await;
}

/// No test waits as long as `refresh.min_interval`, after which the list would be requested by
/// schedule.
#[tokio::test]
async fn a_change_in_one_daemon_shows_in_the_one_that_lists_it() {
    let files = Callee::echo(manifest("files", &[tool("read"), tool("write")])).await;
    let first = House::of(&[("files", files.url())]).await;
    let address = first.serve().await;
    let second = House::of(&[("first", url(address))]).await;
    second
        .until(
            "live, though the list may not be used without asking",
            is_live,
        )
        .await;
    until_names(&second, &["read", "write"]).await;

    let clock = Clock::system();
    let mut times = Vec::new();
    for (on, names) in [
        (false, &["read"][..]),
        (true, &["read", "write"]),
        (false, &["read"]),
    ] {
        first
            .prefer("global", "tool:files/write", switched(on))
            .await;
        let published = clock.now();
        until_names(&second, names).await;
        times.push(clock.now() - published);
    }
    // A busy machine may be slow once.
    assert!(
        times.iter().any(|time| *time < Duration::from_millis(700)),
        "{times:?}"
    );
    let snapshot = second.app.snapshot();
    let health = &snapshot.health[&scenario("first")];
    let freshness = health.freshness.unwrap();
    assert!(
        freshness.fresh_until.duration_since(freshness.received_at) <= SignedDuration::from_secs(1),
        "its list tells a short lifetime"
    );
    assert!(is_live(&snapshot));

    // It is followed again when it is back.
    first.finish().await;
    second
        .until("not live", |snapshot| !is_live(snapshot))
        .await;
    let back = House::of(&[("files", files.url())]).await;
    assert_eq!(back.serve_at(address).await, address);
    second.until("live again", is_live).await;
    back.prefer("global", "tool:files/read", switched(false))
        .await;
    until_names(&second, &["write"]).await;
    second.finish().await;
    back.finish().await;
}

/// Each lists the other over MCP, and gets nothing back that it gave.
#[tokio::test]
async fn daemons_that_list_each_other_over_mcp_go_round_no_circle() {
    let files = Callee::echo(manifest("files", &[tool("read"), tool("write")])).await;
    let first = House::of(&[("files", files.url())]).await;
    let address = first.serve().await;
    let mcp = |address: SocketAddr| url(address).join("mcp").unwrap();
    let second = House::of(&[("first", mcp(address))]).await;
    until_names(&second, &["files__read", "files__write"]).await;

    let back = second.serve().await;
    first.place("second", mcp(back), SourceTrust::Trusted);
    let left_out = "2 tools that it has from this daemon are left out";
    first
        .until("its own tools are left out", |snapshot| {
            snapshot
                .findings
                .iter()
                .any(|finding| finding.message.contains(left_out))
        })
        .await;
    assert_eq!(first.names(), ["read", "write"]);

    // The list of a daemon itself is no scenario of it.
    first.place("itself", mcp(address), SourceTrust::Trusted);
    let itself = |snapshot: &Snapshot| {
        let error = snapshot
            .health
            .get(&scenario("itself"))
            .and_then(|health| health.last_error.clone());
        error.is_some_and(|error| error.message.contains("the list of this daemon itself"))
    };
    first.until("it is refused", itself).await;
    assert_eq!(first.names(), ["read", "write"]);
    second.finish().await;
    first.finish().await;
}

#[tokio::test]
async fn a_scenario_that_is_no_daemon_is_not_followed() {
    let list =
        json!({"protocol_version": "1.0", "scenario": {"name": "first"}, "tools": []}).to_string();
    let server = UpstreamServer::answering(move |_| {
        answer("200 OK", &["Connection: close"], list.as_bytes())
    })
    .await;
    let house = House::of(&[("first", server.url())]).await;
    house.refresh("first").await;
    assert_eq!(
        server
            .requests()
            .iter()
            .map(|request| request.target().to_owned())
            .collect::<Vec<_>>(),
        ["/api/v1/tools"; 2]
    );
    house.finish().await;
}

/// A daemon of another make that writes `via` and has no events, or none for us, or an answer there
/// that is none.
#[tokio::test]
async fn a_daemon_without_events_is_listed_as_ever() {
    for status in [
        "404 Not Found",
        "401 Unauthorized",
        "501 Not Implemented",
        "200 OK",
    ] {
        let list = json!({"protocol_version": "1.0", "scenario": {"name": "first"}, "via": ["other"], "tools": []});
        let list = list.to_string();
        let server = UpstreamServer::answering(move |request| match request.target() {
            "/api/v1/tools" => answer("200 OK", &["Connection: close"], list.as_bytes()),
            _ => answer(status, &["Connection: close"], b"{}"),
        })
        .await;
        let soon = |config: &mut Config| {
            config.refresh.forced_gap = Duration::from_millis(1);
            (config.refresh.backoff_base, config.refresh.backoff_max) =
                (Duration::from_millis(1), Duration::from_millis(1));
        };
        let house = House::with(&[("first", server.url())], soon).await;
        house.until("live", is_live).await;
        let count = |path: &str| {
            server
                .requests()
                .iter()
                .filter(|request| request.target().contains(path))
                .count()
        };
        while count("/events") == 0 {
            house.refresh("first").await;
        }
        let before = count("/tools");
        for _ in 0..10 {
            house.refresh("first").await;
        }
        assert!(is_live(&house.app.snapshot()));
        assert_eq!(
            count("/events"),
            1,
            "it has said that it has none: {status}"
        );
        // One more than was wanted, as changes since the first may have been missed.
        assert!(
            count("/tools") - before <= 11,
            "{status}: {}",
            count("/tools") - before
        );
        house.finish().await;
    }
}

#[tokio::test]
async fn a_daemon_that_sends_without_end_is_not_read_without_end() {
    let list = json!({"protocol_version": "1.0", "scenario": {"name": "first"}, "via": ["other"], "tools": []});
    let list = answer(
        "200 OK",
        &["Connection: close"],
        list.to_string().as_bytes(),
    );
    let left = Arc::new(watch::Sender::new(false));
    let mut leaves = left.subscribe();
    let server = UpstreamServer::serving(move |request, mut stream| {
        let list = list.clone();
        let left = Arc::clone(&left);
        Box::pin(async move {
            if request.target() == "/api/v1/tools" {
                let _ = stream.write_all(&list).await;
                return;
            }
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
            let comments = b": alive\n".repeat(1000);
            let mut sent = stream.write_all(head).await;
            while sent.is_ok() {
                sent = stream.write_all(&comments).await;
            }
            left.send_replace(true);
        })
    });
    let server = server.await;
    let house = House::of(&[("first", server.url())]).await;
    let waited = tokio::time::timeout(PATIENCE, leaves.wait_for(|left| *left)).await;
    assert!(waited.is_ok(), "it is read on and on");
    assert!(is_live(&house.app.snapshot()));
    house.finish().await;
}
