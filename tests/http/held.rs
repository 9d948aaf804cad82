//! Bytes that are held for clients: bodies that never end, and lists that are not read, are refused
//! beyond the budget, and are free again when their connections are gone.

#![allow(clippy::disallowed_methods, reason = "the answers of this test's own daemon are small")]

use std::time::Duration;

use callsheet::catalog::Inputs;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::offers::{offer, put, tool};
use crate::support::serving::{self, Served};

/// No condition of these tests takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(30);

async fn served() -> Served {
    let server = callsheet::config::ServerConfig { max_body: 60_000, held_bytes: 1 << 20, ..serving::configured() };
    serving::serve_configured(serving::snapshot(&Inputs::default(), Vec::new(), Vec::new()), 1 << 20, server).await
}

/// A connection that has sent all of a body but its last byte.
async fn unfinished(server: &Served) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head =
        "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; 49_999]).await.unwrap();
    stream
}

async fn held(server: &Served) -> u64 {
    let metrics = server.get("/metrics").await;
    let text = String::from_utf8(metrics.body).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("callsheet_held_bytes ")).unwrap();
    line.parse().unwrap()
}

async fn until_held(server: &Served, what: &str, condition: impl Fn(u64) -> bool) {
    let waiting = async {
        while !condition(held(server).await) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never {what}"));
}

#[tokio::test]
async fn bodies_that_do_not_end_are_refused_beyond_the_budget_and_free_again() {
    let server = served().await;
    let mut open = Vec::new();
    for count in 1..=3 {
        open.push(unfinished(&server).await);
        until_held(&server, "read", |bytes| bytes >= count * 49_999).await;
    }
    // Bodies have a quarter of what is not kept for small answers: the next one has no room, other
    // requests have.
    let refused = async {
        loop {
            let mut stream = unfinished(&server).await;
            let mut answer = vec![0; 4_096];
            let read = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut answer)).await;
            if let Ok(Ok(length @ 1..)) = read {
                return String::from_utf8_lossy(&answer[..length]).into_owned();
            }
            open.push(stream);
        }
    };
    let refused = tokio::time::timeout(PATIENCE, refused).await.expect("a body is refused");
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after"), "{refused}");
    assert!(refused.contains("server.held_bytes"), "{refused}");
    assert_eq!(server.get("/healthz").await.status, 200);
    assert_eq!(server.get("/api/v1/tools").await.status, 200);
    drop(open);
    until_held(&server, "free again", |bytes| bytes < 50_000).await;
    let taken = server.ask("POST", "/rpc", &[("content-type", "application/json")], "{}").await;
    assert_eq!(taken.status, 200);
}

/// A daemon whose list has some 1.2 MB. All large answers may have 3.5 MiB, and those of one
/// connection half as much. Hardly any list is kept.
async fn served_lists() -> Served {
    let mut fleet = Inputs::default();
    for number in 0..20 {
        let text = "It does what its name says, and nothing else. ".repeat(64);
        let tools: Vec<_> = (0..20).map(|at| tool(&format!("tool_{number}_{at}")).about(&text)).collect();
        put(&mut fleet, offer(&format!("scenario-{number}"), &tools));
    }
    let server = callsheet::config::ServerConfig { held_bytes: 8 << 20, ..serving::configured() };
    serving::serve_configured(serving::snapshot(&fleet, Vec::new(), Vec::new()), 1_000, server).await
}

/// A client with one connection, of whose answers the daemon can send little before they are read.
fn client_that_does_not_read() -> reqwest::Client {
    // Fails when another test of this program installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Compressed, the lists would be short.
    let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().no_gzip().no_brotli();
    client.http2_initial_stream_window_size(65_535).http2_initial_connection_window_size(16 << 20).build().unwrap()
}

/// The list of all but so many tools, of which only the head is read.
async fn list_without(server: &Served, client: &reqwest::Client, tools: usize) -> reqwest::Response {
    let target = format!("http://{}/api/v1/tools?max_tools={}", server.address, 400 - tools);
    client.get(target).send().await.unwrap()
}

#[tokio::test]
async fn lists_that_are_not_read_are_reserved_once_each_and_refused_beyond_the_budget() {
    let server = served_lists().await;
    let clients: Vec<_> = (0..4).map(|_| client_that_does_not_read()).collect();
    let first = list_without(&server, &clients[0], 1).await;
    assert_eq!(first.status(), 200);
    let one = held(&server).await;
    assert!((1_000_000..1_700_000).contains(&one), "{one}");
    let same = list_without(&server, &clients[1], 1).await;
    let second = list_without(&server, &clients[2], 2).await;
    assert_eq!([same.status(), second.status()], [200, 200]);
    let two = held(&server).await;
    assert!((one * 3 / 2..one * 5 / 2).contains(&two), "the same list counts once: {one} and {two}");

    let refused = list_without(&server, &clients[3], 3).await;
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    assert!(refused.text().await.unwrap().contains("server.held_bytes"));
    assert_eq!(server.get("/api/v1/tools").await.status, 200, "the list that all clients share has room");
    let small = list_without(&server, &clients[3], 399).await;
    assert_eq!(small.status(), 200, "small answers have room");
    drop(small.bytes().await.unwrap());

    drop((first, same, second, clients));
    until_held(&server, "free again", |bytes| bytes < 100_000).await;
    assert_eq!(server.get("/api/v1/tools?max_tools=397").await.status, 200);
}

#[tokio::test]
async fn a_head_of_a_list_needs_no_room() {
    let server = served_lists().await;
    let known = list_without(&server, &client_that_does_not_read(), 2).await;
    let length = known.headers()["content-length"].clone();
    drop(known.bytes().await.unwrap());
    let client = client_that_does_not_read();
    let first = list_without(&server, &client, 1).await;
    assert_eq!(first.status(), 200);
    let refused = list_without(&server, &client, 2).await;
    assert_eq!(refused.status(), 429, "the share is in use");
    let target = format!("http://{}/api/v1/tools?max_tools=398", server.address);
    let head = client.head(target).send().await.unwrap();
    assert_eq!(head.status(), 200);
    assert_eq!(head.headers()["content-length"], length);
    drop(first);
}

#[tokio::test]
async fn lists_that_one_connection_does_not_read_are_refused_beyond_its_share() {
    let server = served_lists().await;
    let client = client_that_does_not_read();
    let first = list_without(&server, &client, 1).await;
    let second = list_without(&server, &client, 2).await;
    assert_eq!([first.status(), second.status()], [200, 429]);
    let again = list_without(&server, &client, 1).await;
    assert_eq!(again.status(), 200, "the list that it holds already");
    let other = list_without(&server, &client_that_does_not_read(), 2).await;
    assert_eq!(other.status(), 200, "another connection has a share of its own");
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let rpc = client.post(format!("http://{}/rpc?max_tools=397", server.address));
    let rpc = rpc.header("content-type", "application/json").body(message).send().await.unwrap();
    let text = rpc.text().await.unwrap();
    assert!(text.contains("this client already uses its share"), "{}", &text[..text.len().min(300)]);
}
