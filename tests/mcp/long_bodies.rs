//! Long results of MCP servers are read and written beside the threads that serve requests, a few
//! at once.

use std::net::SocketAddr;

use callsheet::discovery::{Endpoint, SourceTrust};
use callsheet::model::{Profile, StdioTarget, Target};
use callsheet::runtime::Tasks;
use serde_json::{Value, json};

use crate::relayed::{all, offering};
use crate::support::callee::PATIENCE;
use crate::support::house::{House, scenario};
use crate::support::mcp_client::McpClient;
use crate::support::mcp_server::{Answer, Came, McpServer, modern, tool};
use crate::support::scrape::Scrape;
use crate::support::serving::ask;

/// Bytes of a text that makes a body long.
const LONG: usize = 100_000;
const READ: &str = "resources/read";

/// How a server sends an answer.
#[derive(Debug, Clone, Copy)]
enum Sent {
    Whole,
    /// As an event.
    Streamed,
    /// As an event, after a sign of progress.
    WithProgress,
}

/// A server with the resources `test://long` and `test://brief`, and other long results.
async fn server(sent: Sent) -> McpServer {
    let uris = ["test://long", "test://brief"];
    let mut own = offering(modern(&json!([tool("read")])), all(), &uris);
    McpServer::start(move |came: &Came| {
        let params = &came.message["params"];
        let text = "x".repeat(LONG);
        let result = match came.method() {
            "tools/call" => json!({"content": [{"type": "text", "text": text}]}),
            "prompts/get" => {
                json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
            }
            READ if params["uri"] == "test://long" => {
                json!({"contents": [{"uri": "test://long", "text": text}]})
            }
            "completion/complete" => json!({"completion": {"values": [text]}}),
            _ => return own(came),
        };
        let answer = json!({"jsonrpc": "2.0", "id": came.message["id"], "result": result});
        let token = &params["_meta"]["progressToken"];
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": token, "progress": 1}});
        match sent {
            Sent::Whole => Answer::Json(200, answer),
            Sent::Streamed => Answer::Events(vec![answer]),
            Sent::WithProgress => Answer::Events(vec![progress, answer]),
        }
    })
    .await
}

/// How often the daemon worked on a long body so far.
async fn long_bodies(address: SocketAddr) -> f64 {
    let answer = ask(address, "GET", "/metrics", &[], "").await;
    Scrape::parse(&answer).value("callsheet_long_bodies_total")
}

/// How often it does for one request, which has a long result.
async fn worked(address: SocketAddr, method: &str, params: Value) -> f64 {
    let before = long_bodies(address).await;
    let client = McpClient::modern(address, json!({}));
    let result = client.result(method, params).await;
    assert!(result.to_string().len() > LONG, "{method}");
    long_bodies(address).await - before
}

fn call(name: &str) -> Value {
    json!({"name": name, "_meta": {"progressToken": "p"}})
}

#[tokio::test]
async fn a_long_result_is_received_read_checked_and_written_beside_requests() {
    // A stream has it once more, as its last event.
    for (sent, times) in [
        (Sent::Whole, 4.0),
        (Sent::Streamed, 4.0),
        (Sent::WithProgress, 5.0),
    ] {
        let server = server(sent).await;
        let house = House::of(&[("docs", server.url())]).await;
        let address = house.serve().await;
        let reference = json!({"type": "ref/prompt", "name": "docs__greet"});
        let argument = json!({"name": "who", "value": "v"});
        let request = json!({"ref": reference, "argument": argument});
        for (method, params) in [
            ("tools/call", call("docs__read")),
            (READ, json!({"uri": "test://long"})),
            ("prompts/get", json!({"name": "docs__greet"})),
            ("completion/complete", request),
        ] {
            // Without a token of the client it gets no progress, and no stream.
            let times = if method == "tools/call" { times } else { 4.0 };
            let worked = worked(address, method, params).await;
            assert!((worked - times).abs() < 0.5, "{method} {sent:?}: {worked}");
        }
        let before = long_bodies(address).await;
        let body = json!({"tool_name": "docs__read", "arguments": {}}).to_string();
        let json = [("content-type", "application/json")];
        let answer = ask(address, "POST", "/api/v1/tools/execute", &json, &body).await;
        assert!(answer.status == 200 && answer.body.len() > LONG);
        let worked = long_bodies(address).await - before;
        assert!((worked - 4.0).abs() < 0.5, "{sent:?}: {worked}");
        let before = long_bodies(address).await;
        let client = McpClient::modern(address, json!({}));
        client.result(READ, json!({"uri": "test://brief"})).await;
        assert!(long_bodies(address).await - before < 0.5, "a short one");
        house.finish().await;
    }
}

#[tokio::test]
async fn a_long_line_of_a_program_is_read_beside_requests_and_in_its_order() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");
    let folder = tempfile::tempdir().unwrap();
    let names = folder.path().join("names");
    std::fs::write(&names, "long read").unwrap();
    let names = names.display().to_string();
    let program = StdioTarget::new("python3").with_args([script, "modern", names.as_str()]);
    let house = House::with(&[], |_| ()).await;
    let endpoint = Endpoint::at("http://127.0.0.1:1/".parse().unwrap(), SourceTrust::Trusted);
    house.place_endpoint(
        "child",
        Endpoint {
            target: Some(Target::from(program)),
            ..endpoint
        },
    );
    house
        .until("listed", |snapshot| {
            snapshot.catalog.entry(&scenario("child")).is_some()
        })
        .await;
    let address = house.serve().await;
    let worked = worked(address, "tools/call", call("child__long")).await;
    assert!((worked - 4.0).abs() < 0.5, "{worked}");
    let client = McpClient::modern(address, json!({}));
    client.result("tools/call", call("child__read")).await;
    house.finish().await;
}

/// Runs a test with one thread for work that blocks.
fn with_one_blocking_thread(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime
        .worker_threads(1)
        .max_blocking_threads(1)
        .enable_all();
    runtime.build().unwrap().block_on(test);
}

/// Holds the thread for work that blocks until what it gives is dropped.
fn hold_thread(tasks: &Tasks) -> std::sync::mpsc::SyncSender<()> {
    let (release, held) = std::sync::mpsc::sync_channel::<()>(1);
    tasks.spawn_blocking(move || held.recv().is_err());
    release
}

/// No long body is worked on while the only thread for that is held.
#[test]
fn brief_requests_are_answered_while_long_results_wait_for_their_turn() {
    with_one_blocking_thread(async {
        let server = server(Sent::Whole).await;
        let house = House::of(&[("docs", server.url())]).await;
        let address = house.serve().await;
        let tasks = Tasks::new();
        let release = hold_thread(&tasks);
        let begin = || {
            let client = McpClient::modern(address, json!({}));
            tasks.spawn(async move { client.result(READ, json!({"uri": "test://long"})).await })
        };
        let long: Vec<_> = (0..20).map(|_| begin()).collect();
        server.until(READ, 20).await;
        let client = McpClient::modern(address, json!({}));
        for _ in 0..20 {
            let answer = ask(address, "GET", "/healthz", &[], "").await;
            assert_eq!(answer.status, 200, "{answer:?}");
            client.result(READ, json!({"uri": "test://brief"})).await;
        }
        assert!(long.iter().all(|long| !long.is_finished()));
        drop(release);
        for long in long {
            let result = tokio::time::timeout(PATIENCE, long).await;
            let result = result.expect("its turn comes").unwrap();
            let text = result["contents"][0]["text"].as_str();
            assert_eq!(text.map(str::len), Some(LONG));
        }
        house.finish().await;
    });
}

/// So many offers are more than one has made at once.
const MANY: usize = 300;

/// A server with many prompts and resources.
async fn server_of_many() -> McpServer {
    let mut own = offering(modern(&json!([])), all(), &[]);
    let prompts: Vec<_> = (0..MANY)
        .map(|number| json!({"name": format!("p{number}")}))
        .collect();
    let resources: Vec<_> = (0..MANY)
        .map(|number| json!({"uri": format!("test://{number}"), "name": "n"}))
        .collect();
    McpServer::start(move |came: &Came| match came.method() {
        "prompts/list" => came.result(&json!({"prompts": prompts})),
        "resources/list" => came.result(&json!({"resources": resources})),
        _ => own(came),
    })
    .await
}

#[test]
fn long_lists_of_offers_are_made_beside_requests_and_once() {
    with_one_blocking_thread(async {
        let server = server_of_many().await;
        let house = House::of(&[("docs", server.url())]).await;
        let address = house.serve().await;
        let client = McpClient::modern(address, json!({}));
        let tasks = Tasks::new();
        let begin = |method: &'static str, params: Value| {
            let client = client.clone();
            tasks.spawn(async move { client.result(method, params).await })
        };
        let release = hold_thread(&tasks);
        let prompts = begin("prompts/list", json!({}));
        let resources = begin("resources/list", json!({}));
        let prompt = begin("prompts/get", json!({"name": "docs__p7"}));
        for _ in 0..20 {
            let answer = ask(address, "GET", "/healthz", &[], "").await;
            assert_eq!(answer.status, 200, "{answer:?}");
            client.result("resources/templates/list", json!({})).await;
        }
        assert!(!prompts.is_finished() && !resources.is_finished() && !prompt.is_finished());
        assert_eq!(server.of("prompts/get").len(), 0);
        drop(release);
        let listed = prompts.await.unwrap();
        assert_eq!(listed["prompts"].as_array().map(Vec::len), Some(MANY));
        resources.await.unwrap();
        prompt.await.unwrap();
        // It is kept for its snapshot, and another one may come at any time.
        let mut is_kept = false;
        for _ in 0..20 {
            let sequence = house.app.snapshot().sequence;
            client.result("prompts/list", json!({})).await;
            let release = hold_thread(&tasks);
            let again = begin("prompts/list", json!({}));
            let answered = async {
                while !again.is_finished() && house.app.snapshot().sequence == sequence {
                    tokio::task::yield_now().await;
                }
            };
            let answered = tokio::time::timeout(PATIENCE, answered).await;
            answered.expect("the list is kept");
            is_kept = again.is_finished();
            drop(release);
            assert_eq!(again.await.unwrap(), listed);
            if is_kept {
                break;
            }
        }
        assert!(is_kept);
        house.finish().await;
    });
}

/// What a profile may not see is in no list that was made for it.
#[tokio::test]
async fn a_list_of_offers_is_kept_for_those_that_see_the_same() {
    let docs = server_of_many().await;
    let notes = server_of_many().await;
    let house = House::with(&[("docs", docs.url()), ("notes", notes.url())], |config| {
        let bounds = Profile {
            scenarios: Some([scenario("docs")].into()),
            ..Profile::default()
        };
        config.profiles.insert("small".to_owned(), bounds);
    })
    .await;
    let client = McpClient::modern(house.serve().await, json!({}));
    for _ in 0..2 {
        for (target, count) in [
            ("/mcp", 2 * MANY),
            ("/mcp/small", MANY),
            ("/mcp?scenario=notes", MANY),
        ] {
            let listed = client.at(target).result("prompts/list", json!({})).await;
            let listed = listed["prompts"].as_array().map(Vec::len);
            assert_eq!(listed, Some(count), "{target}");
        }
    }
    let names = |listed: &Value| listed["prompts"][0]["name"].clone();
    let notes = client
        .at("/mcp?scenario=notes")
        .result("prompts/list", json!({}))
        .await;
    assert_eq!(names(&notes), "notes__p0");
    house.finish().await;
}
