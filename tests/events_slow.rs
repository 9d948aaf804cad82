//! Readers of events that do not keep up, over either way: they are let go, are told why if they
//! read at all, and cost little until then. In a program of its own, since it looks at the memory
//! of the whole process.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::net::SocketAddr;

use callsheet::provide::ToolDefinition;
use callsheet::runtime::memory;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use support::daemon::{Daemon, Home, NEVER, PATIENCE, Scenario, tool};
use support::listener::Listener;
use support::socket::{Came, Follower};

const STREAM: &str = "GET /api/v1/events?kind=catalog HTTP/1.1\r\n";
const SOCKET: &str = "GET /api/v1/ws?kind=catalog HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                      Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
/// Readers of each way that read nothing.
const STUCK: usize = 20;
/// Events that they may be behind.
const QUEUE: usize = 25;
/// With a queue for each of them, they would hold some 200 MB by the end; what they share is some
/// 30 MB.
const MOST: u64 = 100 << 20;

/// A connection that follows, and never reads beyond the status.
async fn stuck(address: SocketAddr, head: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream
        .write_all(format!("{head}Host: {address}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert!(matches!(&first, b"HTTP/1.1 200" | b"HTTP/1.1 101"));
    stream
}

/// Two sets of tools; a change from one to the other is told in some 200 KB.
fn editions() -> [Vec<ToolDefinition>; 2] {
    ["a", "b"].map(|edition| {
        (0..800)
            .map(|n| tool(&format!("{edition}_{n:03}_{}", "x".repeat(50))))
            .collect()
    })
}

/// A number that the daemon counts.
async fn counted(daemon: &Daemon, name: &str) -> usize {
    let text = String::from_utf8(daemon.get("/metrics").await.body).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .expect(name);
    line.split(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn those_who_read_nothing_are_let_go_and_cost_bounded_memory() {
    let home = Home::new();
    let editions = editions();
    let notes = Scenario::start("notes", editions[0].clone()).await;
    let mut config = home.config(&[&notes]);
    (config.refresh.min_interval, config.refresh.max_interval) = (NEVER, NEVER);
    (
        config.events.ring,
        config.events.ring_bytes,
        config.events.reader_queue,
    ) = (1_000, 1 << 30, QUEUE);
    let daemon = Daemon::ready(config).await;
    let mut all = Vec::new();
    for head in [STREAM, SOCKET] {
        for _ in 0..STUCK {
            all.push(stuck(daemon.address, head).await);
        }
    }
    assert_eq!(
        counted(&daemon, "callsheet_event_subscribers").await,
        2 * STUCK
    );
    let before = memory::resident().unwrap();
    let mut most = 0;
    let mut changes = 0;
    // What the kernel takes on the way is some megabytes for each, so they fall behind only then.
    while counted(&daemon, "callsheet_event_subscribers").await > 0 {
        changes += 1;
        assert!(changes < 400, "they are never let go");
        notes.offer(editions[changes % 2].clone());
        assert_eq!(
            daemon
                .send("POST", "/api/v1/scenarios/notes/refresh")
                .await
                .status,
            200
        );
        most = most.max(memory::resident().unwrap().saturating_sub(before));
    }
    assert!(changes > QUEUE, "{changes} changes");
    assert!(
        most < MOST,
        "{most} bytes more for {} readers after {changes} changes",
        2 * STUCK
    );
    assert_eq!(
        counted(&daemon, "callsheet_event_readers_dropped_total").await,
        2 * STUCK
    );
    for mut stream in all {
        // What was on its way is still there, and then it is over, with a word or with a reset.
        let mut rest = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest))
            .await
            .expect("the connection was closed");
    }
    daemon.stop().await;
}

/// Tells so much that who reads nothing is let go.
async fn tell_until_let_go(daemon: &Daemon, notes: &Scenario) {
    let before = counted(daemon, "callsheet_event_readers_dropped_total").await;
    let mut changes = 0;
    while counted(daemon, "callsheet_event_readers_dropped_total").await == before {
        changes += 1;
        assert!(changes < 400, "it is never let go");
        let edition = ["a", "b"][changes % 2];
        notes.offer((0..800).map(|n| tool(&format!("{edition}_{n:03}_{}", "x".repeat(50)))));
        assert_eq!(
            daemon
                .send("POST", "/api/v1/scenarios/notes/refresh")
                .await
                .status,
            200
        );
    }
}

/// A daemon whose readers may be behind a few times only, and that remembers all.
async fn impatient(home: &Home) -> (Daemon, Scenario) {
    let notes = Scenario::of("notes", &["add"]).await;
    let mut config = home.config(&[&notes]);
    (config.refresh.min_interval, config.refresh.max_interval) = (NEVER, NEVER);
    (
        config.events.ring,
        config.events.ring_bytes,
        config.events.reader_queue,
    ) = (1_000, 1 << 30, 3);
    (Daemon::ready(config).await, notes)
}

/// How often it is tried to read a last word, which waits for a second only.
const TRIES: usize = 5;

#[tokio::test]
async fn a_stream_that_does_not_keep_up_is_told_so_and_may_go_on() {
    let home = Home::new();
    let (daemon, notes) = impatient(&home).await;
    for attempt in 1.. {
        let (mut listener, mut last) = Listener::begin(daemon.address, "?kind=catalog").await;
        tell_until_let_go(&daemon, &notes).await;
        let mut events = Vec::new();
        while let Some(event) = listener.maybe().await {
            events.push(event);
        }
        let Some(end) = events.pop_if(|event| event.event == "end") else {
            assert!(attempt < TRIES, "never told");
            continue;
        };
        assert_eq!(end.id, "");
        let reason = end.data["reason"].as_str().unwrap();
        assert!(
            reason.contains("did not keep up") && reason.contains("resume with the id"),
            "{reason}"
        );
        last = events.pop().unwrap_or(last);
        let mut resumed = Listener::resume(daemon.address, "?kind=catalog", &last.id).await;
        assert_eq!(resumed.next().await.event, "catalog", "nothing was lost");
        break;
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_socket_that_does_not_keep_up_is_told_so_and_may_go_on() {
    let home = Home::new();
    let (daemon, notes) = impatient(&home).await;
    for attempt in 1.. {
        let (mut socket, mut last) = Follower::begin(daemon.address, "?kind=catalog").await;
        tell_until_let_go(&daemon, &notes).await;
        let (code, reason) = loop {
            match socket.came().await {
                Came::Event(event) => last = event,
                Came::Closed(code, reason) => break (code, reason),
                Came::Pong(_) => {}
            }
        };
        if code == 0 {
            assert!(attempt < TRIES, "never told");
            continue;
        }
        assert_eq!(code, 1013);
        assert!(reason.contains("resume with the id"), "{reason}");
        let query = format!("?kind=catalog&cursor={}", last.id);
        let mut resumed = support::socket::open(daemon.address, &query, &[])
            .await
            .unwrap();
        assert_eq!(resumed.next().await.event, "catalog", "nothing was lost");
        break;
    }
    daemon.stop().await;
}
