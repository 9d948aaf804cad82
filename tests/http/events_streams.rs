//! The streams of `GET /api/v1/events` themselves: resuming, readers that do not read, too many of
//! them, and the end.

use std::net::SocketAddr;
use std::time::Duration;

use callsheet::provide::ToolDefinition;
use callsheet::runtime::Clock;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::assert_empty;
use crate::support::daemon::{Daemon, Home, NEVER, PATIENCE, Scenario, tool};
use crate::support::listener::{Listener, ask};
use crate::support::serving;

const CATALOG: &str = "?kind=catalog";

/// Switches the tool of `notes` on or off for everybody.
async fn switch(daemon: &Daemon, on: bool) {
    let preference = json!({"scope": "global", "target": "tool:notes/add", "enabled": on});
    assert_eq!(
        daemon
            .send_json("PUT", "/api/v1/preferences", &preference)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_reader_that_was_cut_off_misses_nothing() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add", "find"]).await;
    let daemon = home.start(&[&notes]).await;
    daemon.until_ready().await;
    // What comes and goes within a moment is no change to those who follow, so each change waits
    // until it was told.
    let (mut witness, _) = Listener::begin(daemon.address, CATALOG).await;
    for query in [CATALOG, "?kind=catalog&profile=coder"] {
        let (listener, first) = Listener::begin(daemon.address, query).await;
        drop(listener);
        for on in [false, true] {
            switch(&daemon, on).await;
            witness.next().await;
        }
        let mut resumed = Listener::resume(daemon.address, query, &first.id).await;
        let off = resumed.next().await;
        let on = resumed.next().await;
        assert_eq!(off.event.as_str(), "catalog");
        assert_eq!(off.texts("removed"), vec!["add"]);
        assert_eq!(on.event.as_str(), "catalog");
        assert_eq!(on.texts("added"), vec!["add"]);
        let mut by_query =
            Listener::open(daemon.address, &format!("{query}&cursor={}", off.id)).await;
        assert_eq!(by_query.next().await, on);
        // The header, which a client sets that reconnects by itself, beats the cursor of the
        // address.
        let target = format!("{query}&cursor={}", off.id);
        let mut both = Listener::resume(daemon.address, &target, &on.id).await;
        switch(&daemon, false).await;
        let event = both.next().await;
        assert_eq!(witness.next().await, event);
        assert_eq!(event.texts("removed"), ["add"]);
        assert!(seq(&on.id) < seq(&event.id), "{} {}", on.id, event.id);
        switch(&daemon, true).await;
        witness.next().await;
    }
    daemon.stop().await;
}

fn seq(id: &str) -> u64 {
    id.split_once('.').unwrap().1.parse().unwrap()
}

#[tokio::test]
async fn a_cursor_that_is_not_known_gets_a_snapshot() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add"]).await;
    let mut config = home.config(&[&notes]);
    // Each switch is told as two events, half of that.
    config.events.ring = 4;
    let daemon = Daemon::ready(config.clone()).await;
    let (_, first) = Listener::begin(daemon.address, CATALOG).await;
    let (epoch, _) = first.id.split_once('.').unwrap();
    let later = format!("{epoch}.{}", seq(&first.id) + 1_000);
    for unknown in ["0123456789abcdef.1", "nonsense", "", later.as_str()] {
        let mut resumed = Listener::resume(daemon.address, CATALOG, unknown).await;
        assert_eq!(resumed.next().await, first, "{unknown}");
    }
    let (mut witness, _) = Listener::begin(daemon.address, CATALOG).await;
    for on in [false, true, false] {
        switch(&daemon, on).await;
        // Told one by one, or the ring would not overflow.
        while witness
            .next()
            .await
            .texts(if on { "added" } else { "removed" })
            .is_empty()
        {}
    }
    let mut resumed = Listener::resume(daemon.address, CATALOG, &first.id).await;
    let snapshot = resumed.next().await;
    assert_eq!(snapshot.event.as_str(), "snapshot", "too long ago");
    assert!(snapshot.texts("names").is_empty(), "too long ago");
    daemon.stop().await;

    let again = Daemon::ready(config).await;
    let mut resumed = Listener::resume(again.address, CATALOG, &snapshot.id).await;
    let other = resumed.next().await;
    assert_eq!(other.event, "snapshot", "of another process");
    assert!(!other.id.starts_with(epoch));
    again.stop().await;
}

#[tokio::test]
async fn a_stop_ends_the_streams_at_once_and_says_why() {
    let home = Home::new();
    let editions = editions();
    let notes = Scenario::start("notes", editions[0].clone()).await;
    let mut config = home.config(&[&notes]);
    (
        config.events.ring,
        config.events.ring_bytes,
        config.events.reader_queue,
    ) = (1_000, 1 << 30, 1_000);
    config.server.stop_timeout = PATIENCE;
    (config.refresh.min_interval, config.refresh.max_interval) = (NEVER, NEVER);
    let daemon = Daemon::ready(config).await;
    let (mut listener, _) = Listener::begin(daemon.address, CATALOG).await;
    // One who does not read, and for whom more waits than fits on the way, does not hold it up
    // either.
    let mut stuck = silent(daemon.address).await;
    let mut sent = 0;
    for change in 1..=35 {
        notes.offer(editions[change % 2].clone());
        assert_eq!(
            daemon
                .send("POST", "/api/v1/scenarios/notes/refresh")
                .await
                .status,
            200
        );
        let event = listener.next().await;
        sent += event.data.to_string().len();
    }
    let begun = Clock::system().now();
    daemon.stop().await;
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stuck.read_to_end(&mut rest))
        .await
        .expect("the connection was closed");
    assert!(rest.len() < sent, "{} of {sent} bytes fitted", rest.len());
    let last = listener.next().await;
    assert_eq!(last.event.as_str(), "end");
    assert_eq!(last.id.as_str(), "");
    assert_eq!(last.data["reason"], "the daemon is stopping");
    assert_eq!(listener.maybe().await, None);
}

/// A connection that follows, and never reads.
async fn silent(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let head = format!("GET /api/v1/events{CATALOG} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    // So much is read that it is known to be let in.
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_let_go() {
    let home = Home::new();
    let editions = editions();
    let notes = Scenario::start("notes", editions[0].clone()).await;
    let mut config = home.config(&[&notes]);
    (config.refresh.min_interval, config.refresh.max_interval) = (NEVER, NEVER);
    (
        config.events.max_subscribers,
        config.events.reader_queue,
        config.events.ring,
    ) = (1, 3, 5);
    let daemon = Daemon::ready(config).await;
    let mut stuck = silent(daemon.address).await;
    let refused = ask(daemon.address, CATALOG, &[]).await;
    assert_eq!(refused.status().as_u16(), 503);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(
        refused.headers()["content-type"],
        "application/problem+json"
    );
    let mut changes = 0;
    // Each change is some 100 KB of names; what the kernel buffers on the way is some megabytes.
    while serving::ask(daemon.address, "HEAD", "/api/v1/events", &[], "")
        .await
        .status
        == 503
    {
        changes += 1;
        assert!(changes < 400, "never let go");
        notes.offer(editions[changes % 2].clone());
        let refreshed = daemon.send("POST", "/api/v1/scenarios/notes/refresh").await;
        assert_eq!(refreshed.status, 200);
        assert_eq!(refreshed.json()["state"], "live");
    }
    // What was on its way is still there, and then it is over.
    let mut rest = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stuck.read_to_end(&mut rest))
        .await
        .expect("the connection was closed");
    assert!(
        changes > 3 && read.map_or(true, |length| length > 0),
        "{changes} changes"
    );
    // Nobody else was harmed.
    let (_, snapshot) = Listener::begin(daemon.address, CATALOG).await;
    assert_eq!(snapshot.texts("names").len(), 400);
    daemon.stop().await;
}

/// Two sets of tools; a change from one to the other is told in some 100 KB.
fn editions() -> [Vec<ToolDefinition>; 2] {
    ["a", "b"].map(|edition| (0..400).map(|n| long(edition, n)).collect())
}

fn long(edition: &str, number: usize) -> ToolDefinition {
    tool(&format!("{edition}_{number:03}_{}", "x".repeat(50)))
}

#[tokio::test]
async fn http2_carries_streams_beside_other_requests() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add"]).await;
    let daemon = home.start(&[&notes]).await;
    daemon.until_ready().await;
    // Nothing here is encrypted, but the client wants to know with what it would be. A second call
    // finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .http2_prior_knowledge()
        .no_proxy()
        .build()
        .unwrap();
    let url = |path: &str| format!("http://{}/api/v1/{path}", daemon.address);
    let mut streams = Vec::new();
    for _ in 0..3 {
        let answer = client.get(url("events?kind=catalog")).send().await.unwrap();
        assert_eq!(answer.version(), http::Version::HTTP_2);
        assert_eq!(answer.headers().get("connection"), None);
        let mut listener = Listener::of(answer);
        assert_eq!(listener.next().await.event, "snapshot");
        streams.push(listener);
    }
    assert_eq!(client.get(url("tools")).send().await.unwrap().status(), 200);
    switch(&daemon, false).await;
    for listener in &mut streams {
        assert_eq!(listener.next().await.texts("removed"), ["add"]);
    }
    daemon.stop().await;
    for listener in &mut streams {
        assert_eq!(listener.next().await.event, "end");
    }
}

#[tokio::test]
async fn the_route_is_guarded_and_strict() {
    let home = Home::new();
    let daemon = home.start(&[]).await;
    daemon.until_ready().await;
    let get = async |target: &str, headers: &[(&str, &str)]| {
        serving::ask(
            daemon.address,
            "GET",
            &format!("/api/v1/events{target}"),
            headers,
            "",
        )
        .await
    };
    let foreign = get("", &[("host", "evil.example")]).await;
    assert_eq!(foreign.status, 403);
    let unknown = get("?kind=catalogue", &[]).await;
    assert_eq!(unknown.status, 400);
    assert!(
        unknown.problem().contains("catalog, scenario, finding"),
        "{unknown:?}"
    );
    let unknown = get("?kinds=catalog", &[]).await;
    assert_eq!(unknown.status, 400);
    let known: Vec<Value> = unknown.json()["known"].as_array().unwrap().clone();
    assert!(
        ["kind", "cursor", "profile", "q"]
            .iter()
            .all(|name| known.contains(&json!(name))),
        "{known:?}"
    );
    let head = serving::ask(daemon.address, "HEAD", "/api/v1/events", &[], "").await;
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-type"), "text/event-stream");
    assert_empty!(head.body);
    daemon.stop().await;
}
