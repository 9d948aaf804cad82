//! An MCP server whose answers the test writes: a real HTTP server on loopback, in whatever era.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use callsheet::runtime::Tasks;
use futures_util::StreamExt as _;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use super::callee::PATIENCE;

/// One message that came, or the opening of a stream (then `message` is null).
#[derive(Debug, Clone)]
pub(crate) struct Came {
    pub(crate) http: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) message: Value,
}

impl Came {
    /// The method of the message, or that of HTTP where there is none.
    pub(crate) fn method(&self) -> &str {
        self.message["method"]
            .as_str()
            .unwrap_or(self.http.as_str())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// An answer with this result.
    pub(crate) fn result(&self, result: &Value) -> Answer {
        Answer::Json(
            200,
            json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result}),
        )
    }

    /// An answer with an error.
    pub(crate) fn error(&self, status: u16, code: i64, message: &str) -> Answer {
        let error = json!({"code": code, "message": message});
        Answer::Json(
            status,
            json!({"jsonrpc": "2.0", "id": self.message["id"], "error": error}),
        )
    }
}

/// What the server answers.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Json(u16, Value),
    /// The same with a header.
    With(&'static str, String, Box<Answer>),
    Text(u16, String),
    /// Events with these data, then the end.
    Events(Vec<Value>),
    /// Events with these data, and then each one that the test sends, for as long as it lives.
    Stream(Vec<Value>),
    /// The stream of HTTP+SSE: its first event names this address.
    Endpoint(&'static str),
    /// The first answer that the test sends, as a document.
    Later,
    /// This one, once the test has opened the gate.
    After(watch::Receiver<bool>, Box<Answer>),
    /// No answer.
    Silence,
}

type Script = Box<dyn FnMut(&Came) -> Answer + Send>;

/// A scripted server. Ends when it is dropped.
pub(crate) struct McpServer {
    stage: Arc<Stage>,
    url: Url,
    _serving: AbortOnDropHandle<()>,
}

struct Stage {
    script: Mutex<Script>,
    came: watch::Sender<Vec<Came>>,
    pushed: broadcast::Sender<Value>,
}

impl McpServer {
    /// Starts on a free port.
    pub(crate) async fn start(script: impl FnMut(&Came) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
        let stage = Stage {
            script: Mutex::new(Box::new(script)),
            came: watch::Sender::default(),
            pushed: broadcast::Sender::new(1_000),
        };
        let stage = Arc::new(stage);
        let app = Router::new().fallback(serve).with_state(Arc::clone(&stage));
        let serving = Tasks::new().spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            stage,
            url,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    /// Answers by another script from now on.
    pub(crate) fn script(&self, script: impl FnMut(&Came) -> Answer + Send + 'static) {
        *self.stage.script.lock().unwrap() = Box::new(script);
    }

    pub(crate) fn url(&self) -> Url {
        self.url.clone()
    }

    /// Sends a message on every open stream.
    pub(crate) fn push(&self, message: Value) {
        let _ = self.stage.pushed.send(message);
    }

    /// Every message so far.
    pub(crate) fn came(&self) -> Vec<Came> {
        self.stage.came.borrow().clone()
    }

    /// Those of this method.
    pub(crate) fn of(&self, method: &str) -> Vec<Came> {
        self.came()
            .into_iter()
            .filter(|came| came.method() == method)
            .collect()
    }

    /// Waits until a method came so often.
    pub(crate) async fn until(&self, method: &str, times: usize) {
        let mut came = self.stage.came.subscribe();
        let reached = came
            .wait_for(|came| came.iter().filter(|came| came.method() == method).count() >= times);
        let waited = tokio::time::timeout(PATIENCE, reached).await.is_ok();
        assert!(
            waited,
            "{method} came {} times, not {times}: {:?}",
            self.of(method).len(),
            self.came()
        );
    }
}

async fn serve(State(stage): State<Arc<Stage>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let message = serde_json::from_slice(&body).unwrap_or_default();
    let came = Came {
        http: head.method,
        path: head.uri.to_string(),
        headers: head.headers,
        message,
    };
    // Before it is counted, so that a test that saw the message can push to its stream.
    let pushed = stage.pushed.subscribe();
    let answer = (stage.script.lock().unwrap())(&came);
    stage.came.send_modify(|all| all.push(came));
    respond(answer, pushed).await
}

async fn respond(answer: Answer, mut pushed: broadcast::Receiver<Value>) -> Response {
    match answer {
        Answer::Json(status, value) => Response::builder()
            .status(status)
            .header("content-type", "application/json")
            .body(Body::from(value.to_string()))
            .unwrap(),
        Answer::With(name, value, answer) => {
            let mut response = Box::pin(respond(*answer, pushed)).await;
            response.headers_mut().insert(name, value.parse().unwrap());
            response
        }
        Answer::Text(status, text) => Response::builder()
            .status(StatusCode::from_u16(status).unwrap())
            .body(Body::from(text))
            .unwrap(),
        Answer::Events(messages) => events(messages.iter().map(event).collect(), None),
        Answer::Stream(messages) => events(messages.iter().map(event).collect(), Some(pushed)),
        Answer::Endpoint(address) => events(
            vec![format!("event: endpoint\ndata: {address}\n\n")],
            Some(pushed),
        ),
        Answer::Later => loop {
            let message = pushed.recv().await.expect("a message that the test sends");
            if message.get("method").is_none() {
                break Box::pin(respond(Answer::Json(200, message), pushed)).await;
            }
        },
        Answer::After(mut gate, answer) => {
            gate.wait_for(|is_open| *is_open)
                .await
                .expect("a gate that the test opens");
            Box::pin(respond(*answer, pushed)).await
        }
        Answer::Silence => std::future::pending().await,
    }
}

/// These events, and then what is pushed, if anything can be.
fn events(first: Vec<String>, pushed: Option<broadcast::Receiver<Value>>) -> Response {
    let pushed = futures_util::stream::unfold(pushed, |pushed| async move {
        let mut pushed = pushed?;
        let message = pushed.recv().await.ok()?;
        Some((event(&message), Some(pushed)))
    });
    let body = futures_util::stream::iter(first)
        .chain(pushed)
        .map(|text| Ok::<_, Infallible>(Bytes::from(text)));
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from_stream(body))
        .unwrap()
}

fn event(message: &Value) -> String {
    format!(": a comment\nevent: message\ndata: {message}\n\n")
}

/// A tool without parameters.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

/// Answers as a server of 2026-07-28 with these tools, which signals changes.
pub(crate) fn modern(tools: &Value) -> impl FnMut(&Came) -> Answer + Send + use<> {
    let tools = tools.clone();
    move |came| {
        match came.method() {
        "server/discover" => came.result(&json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 3_600_000, "cacheScope": "public",
            "capabilities": {"tools": {"listChanged": true}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "2"}},
        })),
        "tools/list" => {
            came.result(&json!({"resultType": "complete", "tools": tools, "ttlMs": 300_000, "cacheScope": "public"}))
        }
        "subscriptions/listen" => Answer::Stream(vec![
            json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}}),
        ]),
        "tools/call" => came.result(&json!({
            "resultType": "complete", "content": [{"type": "text", "text": "done"}],
            "structuredContent": {"arguments": came.message["params"]["arguments"]},
        })),
        _ => came.error(404, -32_601, "Method not found"),
    }
    }
}

/// Answers as a server of this legacy revision with these tools and a session, which signals
/// changes.
pub(crate) fn legacy(
    revision: &'static str,
    tools: &Value,
) -> impl FnMut(&Came) -> Answer + Send + use<> {
    let tools = tools.clone();
    move |came| match (came.http.as_str(), came.method()) {
        ("GET", _) if came.header("mcp-session-id") == Some("s-1") => Answer::Stream(Vec::new()),
        ("POST", "initialize") => {
            let greeting = came.result(&json!({
                "protocolVersion": revision, "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "legacy", "version": "1"}, "instructions": "Use it well.",
            }));
            Answer::With("mcp-session-id", "s-1".to_owned(), Box::new(greeting))
        }
        ("POST", _) if came.header("mcp-session-id") != Some("s-1") => Answer::Json(
            400,
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32_000, "message": "Server not initialized"}}),
        ),
        ("POST", "notifications/initialized" | "notifications/cancelled") => {
            Answer::Text(202, String::new())
        }
        ("POST", "tools/list") => came.result(&json!({"tools": tools})),
        ("POST", "tools/call") => {
            came.result(&json!({"content": [{"type": "text", "text": "done"}]}))
        }
        ("POST", _) if came.message.get("result").is_some() => Answer::Text(202, String::new()),
        ("POST", _) => came.error(200, -32_601, "Method not found"),
        _ => Answer::Text(405, String::new()),
    }
}
