//! Bytes that are held for clients: bodies that never end, and lists that are not read, are refused
//! beyond the budget, and are free again when their connections are gone.

#![allow(
    clippy::disallowed_methods,
    reason = "the answers of this test's own daemon are small"
)]

use std::time::Duration;

use callsheet::catalog::Inputs;
use callsheet::model::{Finding, FindingCode, Secret};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::callee::{self, Callee};
use crate::support::house::House;
use crate::support::mcp_client::McpClient;
use crate::support::offers::{offer, put, tool};
use crate::support::serving::{self, Answer, Served, ask};
use crate::support::socket::{Came, open};

/// No condition of these tests takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(30);

async fn served() -> Served {
    let server = callsheet::config::ServerConfig {
        max_body: 60_000,
        held_bytes: 1 << 20,
        ..serving::configured()
    };
    serving::serve_configured(
        serving::snapshot(&Inputs::default(), Vec::new(), Vec::new()),
        1 << 20,
        server,
    )
    .await
}

/// A connection that has sent all of a body but its last byte.
async fn unfinished(server: &Served) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; 49_999]).await.unwrap();
    stream
}

async fn held(server: &Served) -> u64 {
    let metrics = server.get("/metrics").await;
    let text = String::from_utf8(metrics.body).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("callsheet_held_bytes "))
        .unwrap();
    line.parse().unwrap()
}

/// Waits until so many bytes are held.
pub(crate) async fn until_held(server: &Served, what: &str, condition: impl Fn(u64) -> bool) {
    let waiting = async {
        while !condition(held(server).await) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("never {what}"));
}

#[tokio::test]
async fn bodies_that_do_not_end_are_refused_beyond_the_budget_and_free_again() {
    let server = served().await;
    let mut unread = Vec::new();
    for count in 1..=3 {
        unread.push(unfinished(&server).await);
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
            unread.push(stream);
        }
    };
    let refused = tokio::time::timeout(PATIENCE, refused)
        .await
        .expect("a body is refused");
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after"),
        "{refused}"
    );
    assert!(refused.contains("server.held_bytes"), "{refused}");
    assert_eq!(server.get("/healthz").await.status, 200);
    assert_eq!(server.get("/api/v1/tools").await.status, 200);
    drop(unread);
    until_held(&server, "free again", |bytes| bytes < 50_000).await;
    let taken = server
        .ask(
            "POST",
            "/rpc",
            &[("content-type", "application/json")],
            "{}",
        )
        .await;
    assert_eq!(taken.status, 200);
}

/// A daemon whose list has some 1.2 MB. All large answers may have 3.5 MiB, and those of one
/// connection half as much. Hardly any list is kept.
async fn served_lists() -> Served {
    served_lists_keeping(1_000).await
}

/// The same, where lists of so many bytes are kept.
async fn served_lists_keeping(most: u64) -> Served {
    let mut fleet = Inputs::default();
    for number in 0..20 {
        let text = "It does what its name says, and nothing else. ".repeat(64);
        let tools: Vec<_> = (0..20)
            .map(|at| tool(&format!("tool_{number}_{at}")).about(&text))
            .collect();
        put(&mut fleet, offer(&format!("scenario-{number}"), &tools));
    }
    let server = callsheet::config::ServerConfig {
        held_bytes: 8 << 20,
        max_body: 100_000,
        ..serving::configured()
    };
    serving::serve_configured(
        serving::snapshot(&fleet, Vec::new(), Vec::new()),
        most,
        server,
    )
    .await
}

/// A client with one connection, of whose answers the daemon can send little before they are read.
fn client_that_does_not_read() -> reqwest::Client {
    // Fails when another test of this program installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Compressed, the lists would be short.
    let client = reqwest::Client::builder()
        .http2_prior_knowledge()
        .no_proxy()
        .no_gzip()
        .no_brotli();
    client
        .http2_initial_stream_window_size(65_535)
        .http2_initial_connection_window_size(16 << 20)
        .build()
        .unwrap()
}

/// The list of all but so many tools, of which only the head is read.
async fn list_without(
    server: &Served,
    client: &reqwest::Client,
    tools: usize,
) -> reqwest::Response {
    let target = format!(
        "http://{}/api/v1/tools?max_tools={}",
        server.address,
        400 - tools
    );
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
    assert!(
        (one * 3 / 2..one * 5 / 2).contains(&two),
        "the same list counts once: {one} and {two}"
    );

    let refused = list_without(&server, &clients[3], 3).await;
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    assert!(refused.text().await.unwrap().contains("server.held_bytes"));
    assert_eq!(
        server.get("/api/v1/tools").await.status,
        200,
        "the list that all clients share has room"
    );
    let small = list_without(&server, &clients[3], 399).await;
    assert_eq!(small.status(), 200, "small answers have room");
    drop(small.bytes().await.unwrap());

    drop((first, same, second, clients));
    until_held(&server, "free again", |bytes| bytes < 100_000).await;
    assert_eq!(server.get("/api/v1/tools?max_tools=397").await.status, 200);
}

#[tokio::test]
async fn findings_that_are_not_read_are_made_and_reserved_once_for_all_clients() {
    let message = "It is left out, and this is why. ".repeat(8);
    let finding = |at: usize| Finding::new(FindingCode::EntryIgnored, format!("{at}: {message}"));
    let first = serving::snapshot(
        &Inputs::default(),
        Vec::new(),
        (0..3_000).map(finding).collect(),
    );
    let server = callsheet::config::ServerConfig {
        held_bytes: 8 << 20,
        ..serving::configured()
    };
    let server = serving::serve_configured(first, 1_000, server).await;
    let clients: Vec<_> = (0..6).map(|_| client_that_does_not_read()).collect();
    let target = format!("http://{}/api/v1/findings", server.address);
    let mut unread = vec![clients[0].get(&target).send().await.unwrap()];
    let one = held(&server).await;
    assert!((1_000_000..1_700_000).contains(&one), "{one}");
    for client in &clients[1..] {
        unread.push(client.get(&target).send().await.unwrap());
    }
    assert!(unread.iter().all(|answer| answer.status() == 200));
    let all = held(&server).await;
    assert!(
        all < one * 3 / 2,
        "the same findings count once: {one} and {all}"
    );
    drop((unread, clients));
    until_held(&server, "free again", |bytes| bytes < 100_000).await;
    assert_eq!(
        server.get("/api/v1/findings").await.json()["findings"]
            .as_array()
            .map(Vec::len),
        Some(3_000)
    );
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
    assert_eq!(
        other.status(),
        200,
        "another connection has a share of its own"
    );
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let rpc = client.post(format!("http://{}/rpc?max_tools=397", server.address));
    let rpc = rpc
        .header("content-type", "application/json")
        .body(message)
        .send()
        .await
        .unwrap();
    let text = rpc.text().await.unwrap();
    assert!(
        text.contains("this client already uses its share"),
        "{}",
        &text[..text.len().min(300)]
    );
}

/// Two lists of some 1.2 MB are not read. The snapshot that begins a stream has 1.3 MB, and all
/// large answers together may have 3.5 MiB.
#[tokio::test]
async fn an_event_for_which_there_is_no_memory_ends_its_stream_with_the_reason() {
    let mut fleet = Inputs::default();
    let text = "It does what its name says, and nothing else. ".repeat(64);
    let long: Vec<_> = (0..400)
        .map(|at| tool(&format!("tool_{at}")).about(&text))
        .collect();
    put(&mut fleet, offer("long", &long));
    let names: Vec<_> = (0..20_000)
        .map(|at| tool(&format!("{}_{at}", "name".repeat(12))))
        .collect();
    put(&mut fleet, offer("names", &names));
    let server = callsheet::config::ServerConfig {
        held_bytes: 8 << 20,
        ..serving::configured()
    };
    let server = serving::serve_configured(
        serving::snapshot(&fleet, Vec::new(), Vec::new()),
        1_000,
        server,
    )
    .await;
    let clients = [client_that_does_not_read(), client_that_does_not_read()];
    let list = |tools: usize| {
        format!(
            "http://{}/api/v1/tools?scenario=long&max_tools={tools}",
            server.address
        )
    };
    let first = clients[0].get(list(399)).send().await.unwrap();
    let second = clients[1].get(list(398)).send().await.unwrap();
    assert_eq!([first.status(), second.status()], [200, 200]);

    let mut socket = open(server.address, "", &[]).await.unwrap();
    let Came::Closed(code, reason) = socket.came().await else {
        panic!("the snapshot came")
    };
    assert_eq!(code, 1013);
    assert!(reason.contains("server.held_bytes"), "{reason}");
    let client = client_that_does_not_read();
    let stream = client
        .get(format!("http://{}/api/v1/events", server.address))
        .send()
        .await
        .unwrap();
    let text = tokio::time::timeout(PATIENCE, stream.text())
        .await
        .expect("it ends")
        .unwrap();
    assert!(
        text.contains("event: end") && text.contains("server.held_bytes"),
        "{text}"
    );
    drop((first, second));
    let mut socket = open(server.address, "", &[]).await.unwrap();
    assert_eq!(socket.next().await.event, "snapshot");
}

/// A batch of so many requests.
fn batch(count: usize, method: &str, params: &str) -> String {
    let one =
        |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
    format!("[{}]", (0..count).map(one).collect::<Vec<_>>().join(","))
}

/// Sends a message to one of the two faces of JSON-RPC. Only the head of the answer is read.
async fn message(
    server: &Served,
    client: &reqwest::Client,
    path: &str,
    session: &str,
    body: String,
) -> reqwest::Response {
    let request = client
        .post(format!("http://{}{path}", server.address))
        .header("content-type", "application/json");
    let request = request.header("accept", "application/json, text/event-stream");
    let request = if session.is_empty() {
        request
    } else {
        request.header("mcp-session-id", session)
    };
    request.body(body).send().await.unwrap()
}

/// A session of the one revision of MCP that has batches; an empty text for `/rpc`, which has no
/// sessions.
async fn session_at(face: &str, server: &Served, client: &reqwest::Client) -> String {
    if face == "/mcp" {
        session(server, client).await
    } else {
        String::new()
    }
}

async fn session(server: &Served, client: &reqwest::Client) -> String {
    let greeting = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let greeted = message(server, client, "/mcp", "", greeting.to_owned()).await;
    greeted.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_batch_holds_a_list_once_however_often_it_requests_it() {
    let server = served_lists_keeping(64 << 20).await;
    for face in ["/rpc", "/mcp"] {
        let client = client_that_does_not_read();
        let session = session_at(face, &server, &client).await;
        let path = format!("{face}?max_tools=399");
        let unread = message(
            &server,
            &client,
            &path,
            &session,
            batch(30, "tools/list", "{}"),
        )
        .await;
        assert_eq!(unread.status(), 200, "{face}");
        let bytes = held(&server).await;
        assert!(
            (500_000..1_700_000).contains(&bytes),
            "{face}: one list, whose answer has thirty: {bytes}"
        );
        let answers: Vec<serde_json::Value> =
            serde_json::from_slice(&unread.bytes().await.unwrap()).unwrap();
        assert_eq!(answers.len(), 30, "{face}");
        for (id, answer) in answers.iter().enumerate() {
            assert_eq!(answer["id"], id, "{face}");
            assert_eq!(
                answer["result"]["tools"].as_array().map(Vec::len),
                Some(399),
                "{face}"
            );
        }
        drop(client);
        until_held(&server, "free again", |bytes| bytes < 100_000).await;
    }
}

#[tokio::test]
async fn a_batch_ends_at_the_first_answer_beyond_the_limit_and_says_which_were_not_run() {
    let server = served_lists_keeping(64 << 20).await;
    for face in ["/rpc", "/mcp"] {
        let client = client_that_does_not_read();
        let session = session_at(face, &server, &client).await;
        let answer = message(
            &server,
            &client,
            face,
            &session,
            batch(100, "tools/list", "{}"),
        )
        .await;
        assert_eq!(answer.status(), 200, "{face}");
        let text = answer.text().await.unwrap();
        assert!(text.len() < 70 << 20, "{face}: {} bytes", text.len());
        let not_run = text
            .matches("send the rest in another one; this request was not run")
            .count();
        assert!((20..60).contains(&not_run), "{face}: {not_run}");
        assert_eq!(text.matches(r#""jsonrpc":"2.0""#).count(), 100, "{face}");
    }
}

#[tokio::test]
async fn the_answers_of_a_batch_count_together_in_the_share_of_their_connection() {
    let server = served_lists().await;
    let client = client_that_does_not_read();
    let described = batch(1_000, "tools/describe", r#"{"name":"tool_1_1"}"#);
    let answer = message(&server, &client, "/rpc", "", described.clone()).await;
    assert_eq!(answer.status(), 200);
    let bytes = held(&server).await;
    assert!(
        (1 << 20..2 << 20).contains(&bytes),
        "a share has 1.75 MiB: {bytes}"
    );
    let text = answer.text().await.unwrap();
    let run = text.matches(r#""result":"#).count();
    assert!((100..500).contains(&run), "{run}");
    assert!(
        text.contains("have no room: this client already uses its share"),
        "{}",
        &text[text.len() - 300..]
    );
    until_held(&server, "free again", |bytes| bytes < 100_000).await;

    let unread = list_without(&server, &client, 1).await;
    let session = session(&server, &client).await;
    let refused = message(
        &server,
        &client,
        "/mcp?max_tools=398",
        &session,
        batch(3, "tools/list", "{}"),
    )
    .await;
    let refused: Vec<serde_json::Value> =
        serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
    assert_eq!(
        refused
            .iter()
            .filter(|each| each["error"]["code"] == -31_003)
            .count(),
        3,
        "{refused:?}"
    );
    drop(unread);
}

/// A list that all clients share is copied if it is short.
#[tokio::test]
async fn the_short_lists_of_a_batch_are_counted_for_each_time_they_are_copied() {
    let server = served_lists_keeping(64 << 20).await;
    for face in ["/rpc", "/mcp"] {
        let client = client_that_does_not_read();
        let session = session_at(face, &server, &client).await;
        let count = if face == "/mcp" { 100 } else { 1_000 };
        let path = format!("{face}?max_tools=1");
        let answer = message(
            &server,
            &client,
            &path,
            &session,
            batch(count, "tools/list", "{}"),
        )
        .await;
        assert_eq!(answer.status(), 200, "{face}");
        let bytes = held(&server).await;
        let text = answer.text().await.unwrap();
        assert_eq!(text.matches(r#""jsonrpc":"2.0""#).count(), count, "{face}");
        // But for a bracket.
        assert!(
            bytes + 10 > text.len() as u64,
            "{face}: {bytes} of {}",
            text.len()
        );
        assert_eq!(
            face == "/rpc",
            text.contains("have no room"),
            "{face}: a share has 1.75 MiB, {}",
            text.len()
        );
        until_held(&server, "free again", |bytes| bytes < 100_000).await;
    }
}

const TOKEN: &str = "0123456789abcdef-topsecret";

/// A daemon with a token, whose tool set has some 600 KB, and 20 calls of 10 KB that wait for an
/// approval. All large answers have some 3 MB.
async fn waiting_calls() -> (Callee, House, std::net::SocketAddr) {
    let text = "It does what its name says, and nothing else. ".repeat(40);
    let mut tools: Vec<_> = (0..300)
        .map(|at| callee::tool(&format!("tool_{at}")))
        .collect();
    for tool in &mut tools {
        tool["description"] = json!(text);
    }
    let callee = Callee::echo(callee::manifest("files", &tools)).await;
    let house = House::with(&[("files", callee.url())], |config| {
        config.server.held_bytes = 8 << 20;
        config.server.operator_token = Some(Secret::new(TOKEN));
    })
    .await;
    let address = house.serve().await;
    let json = [("content-type", "application/json")];
    let body = json!({"scope": "global", "target": "tool:files/tool_0", "approval": "require"})
        .to_string();
    assert_eq!(
        ask(address, "PUT", "/api/v1/preferences", &json, &body)
            .await
            .status,
        200
    );
    for chat in 0..20 {
        let arguments = json!({"text": "y".repeat(10_000)});
        let body =
            json!({"tool_name": "tool_0", "chat_id": chat.to_string(), "arguments": arguments})
                .to_string();
        let waits = ask(address, "POST", "/api/v1/tools/execute", &json, &body).await;
        assert_eq!(waits.status, 202, "{waits:?}");
    }
    (callee, house, address)
}

/// Twelve connections that leave large answers unread, until there is room for none.
async fn large_answers_unread(
    address: std::net::SocketAddr,
) -> Vec<(reqwest::Client, Vec<reqwest::Response>)> {
    let mut held = Vec::new();
    for connection in 0..12 {
        let client = client_that_does_not_read();
        let mut unread = Vec::new();
        loop {
            let chat = unread.len();
            let target = format!("http://{address}/api/v1/tools/set?chat_id={connection}-{chat}");
            let answer = client.get(target).send().await.unwrap();
            if answer.status() != 200 {
                assert!([429, 503].contains(&answer.status().as_u16()), "{answer:?}");
                break;
            }
            unread.push(answer);
        }
        held.push((client, unread));
    }
    assert!(
        held[0].1.len() > 1 && held[11].1.is_empty(),
        "all room for large answers is in use"
    );
    held
}

async fn by_operator(address: std::net::SocketAddr, method: &str, target: &str) -> Answer {
    let bearer = format!("Bearer {TOKEN}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    ask(
        address,
        method,
        target,
        &headers,
        if method == "POST" { "{}" } else { "" },
    )
    .await
}

#[tokio::test]
async fn an_operator_can_look_and_decide_while_large_answers_of_others_are_not_read() {
    let (_callee, house, address) = waiting_calls().await;
    let unread = large_answers_unread(address).await;
    let all = "/api/v1/approvals";
    let without_token = ask(address, "GET", all, &[], "").await;
    assert_eq!(
        without_token.status,
        503,
        "it is large: {}",
        without_token.body.len()
    );
    for target in [
        all,
        "/dashboard/calls",
        "/dashboard/calls/now",
        "/api/v1/findings",
        "/dashboard/findings",
        "/docs",
    ] {
        let answer = by_operator(address, "GET", target).await;
        assert_eq!(
            answer.status,
            200,
            "{target}: {}",
            String::from_utf8_lossy(&answer.body)
        );
    }
    let listed = by_operator(address, "GET", all).await;
    assert!(listed.body.len() > 200_000, "{}", listed.body.len());
    let id = listed.json()["approvals"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let approved = by_operator(address, "POST", &format!("{all}/{id}/approve")).await;
    assert_eq!(approved.status, 200, "{approved:?}");
    drop(unread);
    house.finish().await;
}

/// While a list is coded it is there plainly, too, but not twice.
#[tokio::test]
async fn a_coded_list_needs_no_room_for_a_second_plain_one() {
    let (_callee, house, address) = waiting_calls().await;
    let client = client_that_does_not_read();
    let get = |target: &str| {
        client
            .get(format!("http://{address}{target}"))
            .header("accept-encoding", "gzip")
            .send()
    };
    // A connection has 1.6 MB for large answers. Each list has some 600 KB.
    let unread = get("/api/v1/tools/set?chat_id=1").await.unwrap();
    assert_eq!(unread.status(), 200, "{unread:?}");
    let coded = get("/api/v1/tools?max_tools=299").await.unwrap();
    assert_eq!(coded.status(), 200, "{coded:?}");
    assert_eq!(coded.headers()["content-encoding"], "gzip");
    drop((unread, coded));
    house.finish().await;
}

#[tokio::test]
async fn the_errors_of_a_batch_count_in_the_share_of_their_connection() {
    let (callee, house, address) = waiting_calls().await;
    let failed = json!({"success": false, "error": "x".repeat(50_000)});
    callee.runs(move |_| {
        let failed = callee::answer(200, &failed);
        async move { failed }
    });
    let json = [("content-type", "application/json")];
    let calls = batch(60, "tools/call", r#"{"name":"tool_1","arguments":{}}"#);
    let answer = ask(address, "POST", "/rpc", &json, &calls).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = String::from_utf8(answer.body).unwrap();
    assert_eq!(text.matches(r#""jsonrpc":"2.0""#).count(), 60);
    assert!(text.len() < 1_700_000, "a share has 1.5 MB: {}", text.len());
    assert!(
        text.contains("have no room: this client already uses its share"),
        "{}",
        &text[text.len() - 300..]
    );
    assert!(
        text.contains("this request was not run"),
        "{}",
        &text[text.len() - 300..]
    );
    assert!(callee.ran().len() < 45, "{}", callee.ran().len());
    house.finish().await;
}

/// Its head is not sent before, as a connection that is cut would not say why.
#[tokio::test]
async fn a_result_whose_answer_has_no_room_is_left_out_with_the_reason() {
    let (callee, house, address) = waiting_calls().await;
    callee.runs(|_| async { callee::done(&json!("x".repeat(700_000))) });
    let unread = large_answers_unread(address).await;
    let params = json!({"name": "tool_1", "arguments": {}});
    let left_out = |error: &serde_json::Value| {
        let why = error["message"].as_str().unwrap_or_default();
        why.contains("this request was run, its answer is left out")
            && why.contains("`server.held_bytes`")
    };
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let json = [("content-type", "application/json")];
    let refused = ask(address, "POST", "/rpc", &json, &message).await;
    assert_eq!(refused.status, 200, "{refused:?}");
    assert!(left_out(&refused.json()["error"]), "{refused:?}");
    let modern = McpClient::modern(address, json!({}));
    let legacy = McpClient::legacy(address, "2025-06-18", json!({})).await;
    for client in [modern, legacy] {
        let refused = client.request("tools/call", params.clone()).await;
        assert_eq!(refused.0, 200, "{}", refused.1);
        assert_eq!(refused.1["error"]["code"], -31_003, "{}", refused.1);
        assert!(left_out(&refused.1["error"]), "{}", refused.1);
    }
    drop(unread);
    let run = ask(address, "POST", "/rpc", &json, &message).await;
    assert_eq!(run.json()["result"].as_str().map(str::len), Some(700_000));
    house.finish().await;
}

/// Otherwise clients that request the same list would use up the room of operators.
#[tokio::test]
async fn a_list_in_the_room_of_operators_is_refused_to_other_clients() {
    let (_callee, house, address) = waiting_calls().await;
    let unread = large_answers_unread(address).await;
    let target = format!("http://{address}/api/v1/tools?max_tools=299");
    let list = |client: &reqwest::Client| client.get(&target);
    let operator = client_that_does_not_read();
    let held = list(&operator).bearer_auth(TOKEN).send().await.unwrap();
    assert_eq!(held.status(), 200);
    let client = client_that_does_not_read();
    let refused = list(&client).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    drop(unread);
    let waiting = async {
        while list(&client).send().await.unwrap().status() != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .expect("clients have room again");
    drop(held);
    house.finish().await;
}

#[tokio::test]
async fn a_page_of_approvals_has_room_among_small_answers() {
    let (_callee, house, address) = waiting_calls().await;
    let unread = large_answers_unread(address).await;
    let whole = by_operator(address, "GET", "/api/v1/approvals")
        .await
        .json();
    assert_eq!(whole["more"], false, "all are there without `limit`");
    let mut listed = Vec::new();
    let mut target = "/api/v1/approvals?state=waiting&limit=100".to_owned();
    loop {
        let page = ask(address, "GET", &target, &[], "").await;
        assert_eq!(page.status, 200, "{page:?}");
        assert!(page.body.len() <= 64 * 1024, "{}", page.body.len());
        let page = page.json();
        assert_eq!(page["waiting"], 20);
        listed.extend(page["approvals"].as_array().unwrap().clone());
        if page["more"] == false {
            break;
        }
        let last = listed.last().unwrap()["id"].as_str().unwrap().to_owned();
        target = format!("/api/v1/approvals?state=waiting&limit=100&after={last}");
    }
    assert_eq!(json!(listed), whole["approvals"], "each once, in order");
    let two = ask(address, "GET", "/api/v1/approvals?limit=2", &[], "")
        .await
        .json();
    assert_eq!(two["approvals"].as_array().unwrap().len(), 2);
    assert_eq!(two["more"], true);
    for refused in ["limit=0", "limit=1001", "after=unknown"] {
        let answer = ask(
            address,
            "GET",
            &format!("/api/v1/approvals?{refused}"),
            &[],
            "",
        )
        .await;
        assert_eq!(answer.status, 400, "{refused}: {answer:?}");
    }
    drop(unread);
    house.finish().await;
}
