//! Bytes that calls hold: arguments that wait, results, and kept turns that slow clients read.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;

use crate::support::callee::{Callee, PATIENCE, done, manifest, tool};
use crate::support::house::House;
use crate::support::mcp_client::McpClient;
use crate::support::serving::{Answer, ask};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A daemon whose clients may hold so many bytes, in front of one tool.
async fn house(callee: &Callee, held_bytes: usize) -> House {
    House::with(&[("files", callee.url())], |config| {
        config.server.held_bytes = held_bytes;
    })
    .await
}

/// A tool that answers once it is let go.
async fn gated() -> (Callee, watch::Sender<bool>) {
    let (gate, open) = watch::channel(false);
    let callee = Callee::start(manifest("files", &[tool("work")]), move |_| {
        let mut open = open.clone();
        async move {
            open.wait_for(|open| *open).await.unwrap();
            done(&json!("done"))
        }
    })
    .await;
    (callee, gate)
}

fn body(bytes: usize, chat: Option<&str>) -> String {
    json!({"tool_name": "work", "arguments": {"text": "y".repeat(bytes)}, "chat_id": chat})
        .to_string()
}

async fn post(address: std::net::SocketAddr, target: &str, body: &str) -> Answer {
    ask(address, "POST", target, &[JSON], body).await
}

async fn held(address: std::net::SocketAddr) -> u64 {
    let metrics = String::from_utf8(ask(address, "GET", "/metrics", &[], "").await.body).unwrap();
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("callsheet_held_bytes "))
        .unwrap();
    line.parse().unwrap()
}

async fn until_held(address: std::net::SocketAddr, what: &str, condition: impl Fn(u64) -> bool) {
    let waiting = async {
        while !condition(held(address).await) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("never {what}"));
}

#[tokio::test]
async fn arguments_that_wait_are_reserved_and_every_face_says_why_a_call_has_no_room() {
    let (callee, gate) = gated().await;
    let house = house(&callee, 1_200_000).await;
    let address = house.serve().await;
    let waiting = |chat: Option<&'static str>| {
        callsheet::runtime::Tasks::new().spawn(async move {
            post(address, "/api/v1/tools/execute", &body(200_000, chat)).await
        })
    };
    // One caller has three quarters of the arguments, which have half of what is kept for neither
    // operators nor small answers.
    let first = waiting(None);
    callee.until_ran(1).await;
    let refused = post(address, "/api/v1/tools/execute", &body(200_000, None)).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert_eq!(refused.header("retry-after"), "1", "{refused:?}");
    assert_eq!(refused.json()["code"], "memory_share_full");
    assert!(
        refused.problem().contains("`server.held_bytes`"),
        "{refused:?}"
    );

    let params = json!({"name": "work", "arguments": {"text": "y".repeat(200_000)}});
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let refused = post(address, "/rpc", &message).await.json();
    assert_eq!(
        refused["error"]["data"],
        json!({"code": "memory_share_full", "retry_after_s": 1}),
        "{refused}"
    );
    let client = McpClient::legacy(address, "2025-06-18", json!({})).await;
    let refused = client.result("tools/call", params.clone()).await;
    let text = refused["content"][0]["text"].as_str().unwrap_or_default();
    assert!(
        text.contains("its share of the memory for clients"),
        "{refused}"
    );
    let call = json!({"_tool": "work", "text": "y".repeat(200_000)});
    let refused = post(
        address,
        "/api/v1/turns?format=calls",
        &json!({"calls": [call]}).to_string(),
    )
    .await
    .json();
    assert_eq!(refused["calls"][0]["status"], "refused", "{refused}");
    assert_eq!(
        refused["calls"][0]["code"], "memory_share_full",
        "{refused}"
    );

    // Another caller has room, until all have none; small answers always have some.
    let second = waiting(Some("other"));
    callee.until_ran(2).await;
    let refused = post(
        address,
        "/api/v1/tools/execute",
        &body(200_000, Some("third")),
    )
    .await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(refused.header("retry-after"), "1", "{refused:?}");
    assert_eq!(refused.json()["code"], "memory_full");
    assert_eq!(
        ask(address, "GET", "/api/v1/tools", &[], "").await.status,
        200
    );

    gate.send_replace(true);
    assert_eq!(first.await.unwrap().status, 200);
    assert_eq!(second.await.unwrap().status, 200);
    until_held(address, "free again", |bytes| bytes < 64_000).await;
    assert_eq!(
        post(address, "/api/v1/tools/execute", &body(200_000, None))
            .await
            .status,
        200
    );
    assert_eq!(callee.ran().len(), 3);
    house.finish().await;
}

/// While a call waits, only its arguments are held, and they once: of bodies, nothing is.
#[tokio::test]
async fn a_call_that_waits_holds_its_arguments_once_on_every_face() {
    let (callee, gate) = gated().await;
    let house = house(&callee, 8 << 20).await;
    let address = house.serve().await;
    let client = McpClient::legacy(address, "2025-06-18", json!({})).await;
    let params = json!({"name": "work", "arguments": {"text": "y".repeat(500_000)}});
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let tasks = callsheet::runtime::Tasks::new();
    let rpc = tasks.spawn(async move { post(address, "/rpc", &message).await });
    callee.until_ran(1).await;
    until_held(address, "once", |bytes| (500_000..600_000).contains(&bytes)).await;
    let mcp = tasks.spawn(async move { client.result("tools/call", params).await });
    callee.until_ran(2).await;
    until_held(address, "twice", |bytes| {
        (1_000_000..1_100_000).contains(&bytes)
    })
    .await;
    let http = tasks
        .spawn(async move { post(address, "/api/v1/tools/execute", &body(500_000, None)).await });
    callee.until_ran(3).await;
    until_held(address, "three times", |bytes| {
        (1_500_000..1_600_000).contains(&bytes)
    })
    .await;
    gate.send_replace(true);
    assert_eq!(http.await.unwrap().status, 200);
    assert_eq!(rpc.await.unwrap().json()["result"], "done");
    assert_eq!(mcp.await.unwrap()["content"][0]["text"], "done");
    house.finish().await;
}

#[tokio::test]
async fn a_result_without_room_is_left_out_and_the_caller_learns_that_the_tool_ran() {
    let callee = Callee::start(manifest("files", &[tool("work")]), |ran| async move {
        let bytes = usize::try_from(ran.arguments["bytes"].as_u64().unwrap()).unwrap();
        done(&json!("x".repeat(bytes)))
    })
    .await;
    let house = house(&callee, 1 << 20).await;
    let address = house.serve().await;
    let call =
        |bytes: usize| json!({"tool_name": "work", "arguments": {"bytes": bytes}}).to_string();
    let left_out = post(address, "/api/v1/tools/execute", &call(400_000)).await;
    assert_eq!(left_out.status, 502, "{left_out:?}");
    assert_eq!(
        left_out.header("retry-after"),
        "",
        "it ran, so it is not called again by itself"
    );
    let said = left_out.json();
    assert_eq!(said["code"], "result_left_out", "{said}");
    assert_eq!(said["sent"], true, "{said}");
    assert!(left_out.problem().contains("`files/work` ran"), "{said}");
    let turn = json!({"calls": [{"_tool": "work", "bytes": 400_000}]}).to_string();
    let turn = post(address, "/api/v1/turns?format=calls", &turn)
        .await
        .json();
    assert_eq!(turn["calls"][0]["status"], "failed", "{turn}");
    assert_eq!(turn["calls"][0]["code"], "result_left_out", "{turn}");
    assert!(
        turn["calls"][0]["error"]
            .as_str()
            .unwrap()
            .contains("may have done its work"),
        "{turn}"
    );
    assert_eq!(
        post(address, "/api/v1/tools/execute", &call(100_000))
            .await
            .status,
        200
    );
    until_held(address, "free again", |bytes| bytes < 64_000).await;
    house.finish().await;
}

/// A connection of a client that reads no more than the status of its answer.
async fn begun(address: std::net::SocketAddr, target: &str) -> (TcpStream, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let head = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    (stream, String::from_utf8_lossy(&status[9..]).into_owned())
}

#[tokio::test]
async fn one_kept_turn_that_many_slow_clients_read_is_bounded() {
    let text = "z".repeat(3 << 20);
    let callee = Callee::start(manifest("files", &[tool("work")]), move |_| {
        let text = text.clone();
        async move { done(&json!(text)) }
    })
    .await;
    let limit = 32 << 20;
    let house = house(&callee, limit).await;
    let address = house.serve().await;
    let body = json!({"calls": [{"_tool": "work"}]}).to_string();
    let turn = post(address, "/api/v1/turns?format=calls", &body).await;
    assert_eq!(turn.status, 200);
    let target = format!("/api/v1/turns/{}", turn.json()["turn_id"].as_str().unwrap());
    let mut open = Vec::new();
    let mut statuses = Vec::new();
    for _ in 0..30 {
        let (stream, status) = begun(address, &target).await;
        open.push(stream);
        statuses.push(status);
    }
    let served = statuses.iter().filter(|status| *status == "200").count();
    // Large answers have half of what is not kept for small ones: four of them, and what fits into
    // the sockets.
    assert!((4..20).contains(&served), "{statuses:?}");
    assert!(
        statuses
            .iter()
            .all(|status| status == "200" || status == "503"),
        "{statuses:?}"
    );
    assert!(held(address).await <= limit as u64);
    assert_eq!(
        ask(address, "GET", "/api/v1/tools", &[], "").await.status,
        200,
        "small answers have room"
    );
    drop(open);
    until_held(address, "free again", |bytes| bytes < 64_000).await;
    let again: Value = ask(address, "GET", &target, &[], "").await.json();
    assert_eq!(again["status"], "complete");
    tokio::time::timeout(Duration::from_secs(60), house.finish())
        .await
        .unwrap();
}

/// A large turn takes a while to write; other clients are served meanwhile.
#[tokio::test]
async fn others_are_served_while_a_large_turn_is_written() {
    let text = "\u{1}".repeat(500_000);
    let callee = Callee::start(manifest("files", &[tool("work")]), move |_| {
        let text = text.clone();
        async move { done(&json!(text)) }
    })
    .await;
    let house = house(&callee, 256 << 20).await;
    let address = house.serve().await;
    let body =
        json!({"calls": [{"_tool": "work"}, {"_tool": "work"}, {"_tool": "work"}]}).to_string();
    let turn = post(address, "/api/v1/turns?format=calls", &body)
        .await
        .json();
    let target = format!("/api/v1/turns/{}", turn["turn_id"].as_str().unwrap());
    let mut written = std::pin::pin!(begun(address, &target));
    let mut served = 0;
    let status = loop {
        tokio::select! {
            biased;
            (_, status) = &mut written => break status,
            other = ask(address, "GET", "/healthz", &[], "") => served += usize::from(other.status == 200),
        }
    };
    assert_eq!(status, "200");
    assert!(served >= 3, "{served} others were served meanwhile");
    house.finish().await;
}
