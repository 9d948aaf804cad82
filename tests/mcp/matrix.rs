//! Each kind of client in front of each kind of MCP server: list, call, failure, progress, input,
//! cancel and change.

use std::net::SocketAddr;
use std::process::Stdio;

use callsheet::discovery::{Endpoint, SourceTrust};
use callsheet::model::{StdioTarget, Target};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::support::house::House;
use crate::support::in_process::PATIENCE;
use crate::support::mcp_client::{McpClient, Streamed, rpc};

const UPSTREAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_upstream.py");

/// A client of one kind.
enum Kind {
    Modern(McpClient),
    Legacy(McpClient, Streamed),
    Stdio(Front),
}

/// `callsheet mcp`, spoken to as a legacy client does.
struct Front {
    _child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

/// What came for one request: what came before the answer, and the answer.
struct Heard {
    before: Vec<Value>,
    answer: Value,
}

impl Front {
    async fn start(address: SocketAddr) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_callsheet"))
            .args(["mcp", "--url", &format!("http://{address}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = child.stdout.take().unwrap();
        let mut front = Self {
            _child: child,
            input,
            output: BufReader::new(output).lines(),
        };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "front", "version": "1"}});
        front.write(&rpc("initialize", &params)).await;
        assert_eq!(
            front.next().await["result"]["protocolVersion"],
            "2025-11-25"
        );
        front
            .write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        front
    }

    async fn write(&mut self, message: &Value) {
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line())
            .await
            .expect("a line");
        serde_json::from_str(&line.unwrap().expect("the front goes on")).unwrap()
    }
}

/// The answer of a user to a question of the server.
fn filled_in() -> Value {
    json!({"action": "accept", "content": {"name": "Ada"}})
}

impl Kind {
    async fn start(kind: &str, address: SocketAddr) -> Self {
        let capabilities = json!({"elicitation": {}});
        match kind {
            "modern" => Self::Modern(McpClient::modern(address, capabilities)),
            "legacy" => {
                let client = McpClient::legacy(address, "2025-11-25", capabilities).await;
                let stream = client.listen().await;
                Self::Legacy(client, stream)
            }
            _ => Self::Stdio(Front::start(address).await),
        }
    }

    /// Sends a request, answers what is requested meanwhile, and gives what came.
    async fn request(&mut self, id: &str, method: &str, params: Value) -> Heard {
        let mut before = Vec::new();
        match self {
            Self::Modern(client) => {
                let mut params = params;
                for _ in 0..3 {
                    let mut came = client.follow(&json!(id), method, params.clone()).await;
                    let answer = until_answer(&mut came, &mut before).await;
                    if answer["result"]["resultType"] != "input_required" {
                        return Heard { before, answer };
                    }
                    let requests = answer["result"]["inputRequests"]
                        .as_object()
                        .unwrap()
                        .clone();
                    before.push(answer.clone());
                    params["inputResponses"] = requests
                        .keys()
                        .map(|key| (key.clone(), filled_in()))
                        .collect();
                    params["requestState"] = answer["result"]["requestState"].clone();
                }
                panic!("it asks again and again: {before:?}");
            }
            Self::Legacy(client, _) => {
                let mut came = client.follow(&json!(id), method, params).await;
                loop {
                    let message = came.next().await.expect("an answer");
                    if message.get("method").is_none() {
                        return Heard {
                            before,
                            answer: message,
                        };
                    }
                    if let Some(asked) = message.get("id") {
                        let reply = json!({"jsonrpc": "2.0", "id": asked, "result": filled_in()});
                        assert_eq!(client.send(&reply).await, 202);
                    }
                    before.push(message);
                }
            }
            Self::Stdio(front) => {
                let mut message = rpc(method, &params);
                message["id"] = id.into();
                front.write(&message).await;
                loop {
                    let message = front.next().await;
                    if message.get("method").is_none() {
                        assert_eq!(message["id"], id, "{message}");
                        return Heard {
                            before,
                            answer: message,
                        };
                    }
                    if let Some(asked) = message.get("id") {
                        front
                            .write(&json!({"jsonrpc": "2.0", "id": asked, "result": filled_in()}))
                            .await;
                    }
                    before.push(message);
                }
            }
        }
    }

    /// Calls a tool.
    async fn call(&mut self, tool: &str, more: Value) -> Heard {
        let mut params = json!({"name": format!("files__{tool}"), "arguments": {"a": 1}});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        self.request(tool, "tools/call", params).await
    }

    /// Begins a call that never ends, and cancels it as the kind of client does.
    async fn cancel(&mut self) {
        let params = json!({"name": "files__hang", "arguments": {}});
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "hang"}});
        let mut begun = None;
        match self {
            Self::Modern(client) | Self::Legacy(client, _) => {
                begun = Some(client.begin(&json!("hang"), "tools/call", params).await);
            }
            Self::Stdio(front) => {
                let mut message = rpc("tools/call", &params);
                message["id"] = "hang".into();
                front.write(&message).await;
            }
        }
        self.until_counted("hanging").await;
        match self {
            Self::Modern(_) => drop(begun),
            Self::Legacy(client, _) => assert_eq!(client.send(&cancelled).await, 202),
            Self::Stdio(front) => front.write(&cancelled).await,
        }
    }

    /// Waits until the server counts one call that hangs, or was cancelled.
    async fn until_counted(&mut self, tool: &str) {
        let mut count = Value::Null;
        let counted = async {
            while count != "1" {
                count =
                    self.call(tool, json!({})).await.answer["result"]["content"][0]["text"].take();
            }
        };
        let counted = tokio::time::timeout(PATIENCE, counted).await;
        assert!(
            counted.is_ok(),
            "the server counts {count} calls that are {tool}"
        );
    }

    /// Has the list change and waits for the notification.
    async fn until_changed(&mut self) {
        let changed = "notifications/tools/list_changed";
        let mut listening = match self {
            Self::Modern(client) => {
                let params = json!({"notifications": {"toolsListChanged": true}});
                let mut stream = client
                    .follow(&json!("L"), "subscriptions/listen", params)
                    .await;
                stream.next().await.expect("the acknowledgement");
                Some(stream)
            }
            Self::Legacy(..) | Self::Stdio(_) => None,
        };
        let heard = self.call("grow", json!({})).await;
        if heard
            .before
            .iter()
            .any(|message| message["method"] == changed)
        {
            return;
        }
        let message = match self {
            Self::Modern(_) => listening.as_mut().unwrap().next().await,
            Self::Legacy(_, stream) => stream.next().await,
            Self::Stdio(front) => Some(front.next().await),
        };
        assert_eq!(message.unwrap()["method"], changed);
    }
}

async fn until_answer(came: &mut Streamed, before: &mut Vec<Value>) -> Value {
    loop {
        let message = came.next().await.expect("an answer");
        if message.get("method").is_none() {
            return message;
        }
        before.push(message);
    }
}

/// A server of one kind, listed as `files`. The process ends with the first value.
async fn upstream(kind: &str) -> (Option<Child>, House) {
    let house = House::of(&[]).await;
    if kind.starts_with("stdio") {
        let endpoint = Endpoint::at("http://127.0.0.1:1/".parse().unwrap(), SourceTrust::Trusted);
        let program = StdioTarget::new("python3").with_args([UPSTREAM, kind]);
        house.place_endpoint(
            "files",
            Endpoint {
                target: Some(Target::from(program)),
                ..endpoint
            },
        );
        house
            .until("listed", |snapshot| snapshot.catalog.entries().count() == 1)
            .await;
        return (None, house);
    }
    let mut child = Command::new("python3")
        .args([UPSTREAM, kind])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let port = lines.next_line().await.unwrap().expect("a port");
    house.place(
        "files",
        format!("http://127.0.0.1:{port}/mcp").parse().unwrap(),
        SourceTrust::Trusted,
    );
    house
        .until("listed", |snapshot| snapshot.catalog.entries().count() == 1)
        .await;
    (Some(child), house)
}

/// Everything that a client of one kind does with a server of one kind.
async fn everything(upstream_kind: &str, client_kind: &str) {
    let at = format!("{client_kind} client of {upstream_kind}");
    let (_server, house) = upstream(upstream_kind).await;
    let mut client = Kind::start(client_kind, house.serve().await).await;

    let listed = client.request("list", "tools/list", json!({})).await.answer;
    assert_eq!(
        listed["result"]["tools"].as_array().map(Vec::len),
        Some(8),
        "{at}: {listed}"
    );
    let called = client.call("echo", json!({})).await.answer;
    assert_eq!(
        called["result"]["structuredContent"],
        json!({"a": 1}),
        "{at}: {called}"
    );
    let failed = client.call("fail", json!({})).await.answer;
    assert_eq!(failed["result"]["isError"], true, "{at}: {failed}");
    assert_eq!(
        failed["result"]["content"][0]["text"], "no such city",
        "{at}: {failed}"
    );

    let slow = client
        .call("slow", json!({"_meta": {"progressToken": "p-1"}}))
        .await;
    let steps: Vec<_> = slow
        .before
        .iter()
        .map(|message| message["params"].clone())
        .collect();
    let step = |done: u32| json!({"progressToken": "p-1", "progress": done, "total": 2});
    assert_eq!(steps, [step(1), step(2)], "{at}");
    assert_eq!(
        slow.answer["result"]["content"][0]["text"], "done",
        "{at}: {}",
        slow.answer
    );
    let quiet = client.call("slow", json!({})).await;
    assert_eq!(
        quiet.before,
        Vec::<Value>::new(),
        "{at}: no progress without a token"
    );

    let asked = client.call("ask", json!({})).await;
    assert_eq!(
        asked.answer["result"]["content"][0]["text"], "Ada",
        "{at}: {} {:?}",
        asked.answer, asked.before
    );

    client.cancel().await;
    client.until_counted("cancelled").await;
    client.until_changed().await;
    drop(client);
    house.finish().await;
}

const CLIENTS: [&str; 3] = ["modern", "legacy", "stdio"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_of_a_modern_server_over_http() {
    for client in CLIENTS {
        everything("modern-http", client).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_of_a_legacy_server_over_http() {
    for client in CLIENTS {
        everything("legacy-http", client).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_of_a_server_over_the_older_transport() {
    for client in CLIENTS {
        everything("sse", client).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_of_a_modern_program() {
    for client in CLIENTS {
        everything("stdio-modern", client).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_of_a_legacy_program() {
    for client in CLIENTS {
        everything("stdio-legacy", client).await;
    }
}
