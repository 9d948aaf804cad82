//! `GET /api/v1/ws` of a whole daemon, followed by a real WebSocket client.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::support::daemon::{Daemon, Home, PATIENCE, Scenario};
use crate::support::listener::Listener;
use crate::support::serving;
use crate::support::socket::{Came, Follower, open};

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

async fn started(home: &Home) -> (Daemon, Scenario) {
    let notes = Scenario::of("notes", &["add", "find"]).await;
    let daemon = home.start(&[&notes]).await;
    daemon.until_ready().await;
    (daemon, notes)
}

#[tokio::test]
async fn a_socket_tells_what_the_stream_tells() {
    let home = Home::new();
    let (daemon, _notes) = started(&home).await;
    for query in [CATALOG, "?kind=catalog&scenario=notes&profile=coder"] {
        let (mut stream, first) = Listener::begin(daemon.address, query).await;
        let (mut socket, same) = Follower::begin(daemon.address, query).await;
        assert_eq!(first, same);
        for on in [false, true] {
            switch(&daemon, on).await;
            let event = socket.next().await;
            assert_eq!(event, stream.next().await);
            assert_eq!(event.texts(if on { "added" } else { "removed" }), ["add"]);
        }
    }
    daemon.stop().await;
}

#[tokio::test]
async fn one_that_was_cut_off_goes_on_where_it_was_on_either_way() {
    let home = Home::new();
    let (daemon, _notes) = started(&home).await;
    let (mut witness, _) = Follower::begin(daemon.address, CATALOG).await;
    let (socket, first) = Follower::begin(daemon.address, CATALOG).await;
    drop(socket);
    let mut events = Vec::new();
    for on in [false, true, false] {
        switch(&daemon, on).await;
        events.push(witness.next().await);
    }
    let mut resumed = open(
        daemon.address,
        &format!("{CATALOG}&cursor={}", first.id),
        &[],
    )
    .await
    .unwrap();
    for event in &events {
        assert_eq!(resumed.next().await, *event);
    }
    let mut stream = Listener::resume(daemon.address, CATALOG, &events[0].id).await;
    assert_eq!(
        [stream.next().await, stream.next().await],
        [events[1].clone(), events[2].clone()]
    );
    for unknown in ["0123456789abcdef.1", "nonsense"] {
        let mut new = open(daemon.address, &format!("{CATALOG}&cursor={unknown}"), &[])
            .await
            .unwrap();
        assert_eq!(new.next().await.event, "snapshot", "{unknown}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_stop_says_goodbye() {
    let home = Home::new();
    let (daemon, _notes) = started(&home).await;
    let (mut socket, _) = Follower::begin(daemon.address, CATALOG).await;
    let reading = async { socket.closed().await };
    let ((), (code, reason)) = tokio::join!(daemon.stop(), reading);
    assert_eq!(code, 1001);
    assert_eq!(reason.as_str(), "the daemon is stopping");
}

#[tokio::test]
async fn pages_of_other_sites_get_no_socket() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add"]).await;
    let mut config = home.config(&[&notes]);
    config.server.allowed_origins = vec!["https://ui.example".into()];
    let daemon = Daemon::ready(config).await;
    let own = format!("http://{}", daemon.address);
    for origin in [own.as_str(), "https://ui.example"] {
        assert!(
            open(daemon.address, CATALOG, &[("origin", origin)])
                .await
                .is_ok(),
            "{origin}"
        );
    }
    for origin in ["https://evil.example", "null", "http://localhost:1", ""] {
        let refused = open(daemon.address, CATALOG, &[("origin", origin)])
            .await
            .err()
            .expect("no socket");
        assert_eq!(refused, 403, "{origin}");
    }
    let own = [("origin", own.as_str()), ("sec-fetch-site", "cross-site")];
    for headers in [&[("host", "evil.example")][..], &own] {
        assert_eq!(
            open(daemon.address, CATALOG, headers)
                .await
                .err()
                .expect("no socket"),
            403
        );
    }
    daemon.stop().await;
}

#[tokio::test]
async fn what_is_no_handshake_is_refused_with_the_way_out() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add"]).await;
    let mut config = home.config(&[&notes]);
    config.events.max_subscribers = 1;
    let daemon = Daemon::ready(config).await;
    let plain = daemon.get("/api/v1/ws").await;
    assert_eq!(plain.status, 426);
    assert_eq!(plain.header("upgrade"), "websocket");
    assert!(plain.problem().contains("/api/v1/events"), "{plain:?}");
    let unknown = serving::ask(daemon.address, "GET", "/api/v1/ws?kinds=catalog", &[], "").await;
    assert_eq!(unknown.status, 400, "{unknown:?}");
    let (_first, _) = Follower::begin(daemon.address, CATALOG).await;
    assert_eq!(
        open(daemon.address, CATALOG, &[])
            .await
            .err()
            .expect("no socket"),
        503
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_client_may_ping_and_nothing_else() {
    let home = Home::new();
    let (daemon, _notes) = started(&home).await;
    let (mut socket, _) = Follower::begin(daemon.address, CATALOG).await;
    socket.say(Message::Ping(b"there?".to_vec().into())).await;
    assert_eq!(socket.came().await, Came::Pong(b"there?".to_vec()));
    socket.say(Message::text("{\"kind\": \"finding\"}")).await;
    assert_eq!(socket.closed().await.0, 1008);
    let (mut large, _) = Follower::begin(daemon.address, CATALOG).await;
    large.say(Message::binary(vec![0; 2_000])).await;
    // Not even read.
    assert_ne!(large.closed().await.0, 1008);
    daemon.stop().await;
}

#[tokio::test]
async fn pings_without_end_end_the_socket() {
    let home = Home::new();
    let (daemon, _notes) = started(&home).await;
    let (mut socket, _) = Follower::begin(daemon.address, CATALOG).await;
    for number in 0..2_000_usize {
        if !socket.says(Message::Ping(vec![b'p'; 20].into())).await {
            assert!(number > 900, "the first ones are allowed");
            break;
        }
    }
    let (code, reason) = socket.closed().await;
    assert_eq!(code, 1008);
    assert_eq!(reason, "too many pings");
    daemon.stop().await;
}

#[tokio::test]
async fn bytes_without_end_end_the_socket_and_no_other() {
    let home = Home::new();
    let (daemon, _notes) = started(&home).await;
    let (mut quiet, _) = Follower::begin(daemon.address, CATALOG).await;
    // Empty parts of a message that never ends, and pongs that answer no ping.
    let part = (&b"\x01\x80\0\0\0\0"[..], b"\x00\x80\0\0\0\0");
    let pong = (&b""[..], b"\x8a\x80\0\0\0\0");
    for flood in [part, pong] {
        let mut stream = greeted(daemon.address).await;
        let mut head = [0; 13];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 101 ");
        let (mut reading, mut writing) = stream.into_split();
        let frames = flood.1.repeat(5_000);
        let sending = async {
            writing.write_all(flood.0).await.unwrap();
            while writing.write_all(&frames).await.is_ok() {}
        };
        let taking = async { drop(tokio::io::copy(&mut reading, &mut tokio::io::sink()).await) };
        let cut = async { tokio::join!(sending, taking) };
        tokio::time::timeout(PATIENCE, cut)
            .await
            .expect("it was cut");
    }
    for _ in 0..100 {
        quiet.say(Message::Ping(b"there?".to_vec().into())).await;
        assert_eq!(quiet.came().await, Came::Pong(b"there?".to_vec()));
    }
    switch(&daemon, false).await;
    assert_eq!(quiet.next().await.event, "catalog");
    daemon.stop().await;
}

/// A connection on which a socket was requested.
async fn greeted(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET /api/v1/ws HTTP/1.1\r\nHost: {address}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn one_that_answers_no_ping_is_let_go_and_one_that_does_stays() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add"]).await;
    let mut config = home.config(&[&notes]);
    config.events.keep_alive = Duration::from_millis(200);
    let daemon = Daemon::ready(config).await;
    let (mut alive, _) = Follower::begin(daemon.address, CATALOG).await;
    let mut silent = greeted(daemon.address).await;
    let mut all = Vec::new();
    // Both read, but only one of them as the protocol says.
    let reading = async { silent.read_to_end(&mut all).await };
    tokio::select! {
        read = tokio::time::timeout(PATIENCE, reading) => drop(read.expect("it was let go")),
        came = alive.came() => panic!("{came:?}"),
    }
    assert!(all.starts_with(b"HTTP/1.1 101 "));
    assert!(alive.pings >= 3, "{}", alive.pings);
    switch(&daemon, false).await;
    assert_eq!(alive.next().await.event, "catalog");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_get_a_change() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add", "find"]).await;
    let mut config = home.config(&[&notes]);
    config.events.max_subscribers = 1_000;
    let daemon = Daemon::ready(config).await;
    let mut followers = Vec::new();
    for _ in 0..20 {
        let fifty = (0..50).map(|_| Follower::begin(daemon.address, CATALOG));
        followers.extend(
            join_all(fifty)
                .await
                .into_iter()
                .map(|(follower, _)| follower),
        );
    }
    assert_eq!(followers.len(), 1_000);
    switch(&daemon, false).await;
    let events = join_all(followers.iter_mut().map(Follower::next)).await;
    assert!(
        events
            .iter()
            .all(|one| one.texts("removed") == ["add"] && one.id == events[0].id)
    );
    let goodbyes = async { join_all(followers.iter_mut().map(Follower::closed)).await };
    let ((), goodbyes) = tokio::join!(daemon.stop(), goodbyes);
    assert!(goodbyes.iter().all(|(code, _)| *code == 1001));
}
