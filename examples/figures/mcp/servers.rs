//! MCP servers of 2026-07-28 with 20 tools each, as child processes and over HTTP: what the figures
//! list, call and change.
//!
//! The first tool answers at once. The second one adds a tool whose name says when that was
//! signalled, in microseconds.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use callsheet::runtime::{Clock, Tasks};
use futures_util::{StreamExt as _, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::child_process::Child;
use crate::manifests::{self, TOOLS};

/// What the name of a tool begins with that came later; the rest is the time.
pub(crate) const LATER: &str = "came_at_";
const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}"#;
const ANSWER: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"{\"lines\":[\"fn main() {\",\"}\"]}"}],"structuredContent":{"lines":["fn main() {","}"]}}"#;
const CHANGED: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}"#;
const ACKNOWLEDGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}"#;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The role of this program as a child process.
pub(crate) const CHILD: &str = "play-mcp-child";

/// The arguments with which this program is server number `at` as a child process.
pub(crate) fn child_arguments(at: usize) -> [String; 2] {
    [CHILD.to_owned(), at.to_string()]
}

/// A process full of servers over HTTP.
pub(crate) struct HttpServers {
    pub(crate) addresses: Vec<SocketAddr>,
    _child: Child,
}

impl HttpServers {
    /// Servers with the numbers from `first` on.
    pub(crate) fn start(core: Option<usize>, first: usize, count: usize) -> Result<Self> {
        let arguments = [
            "play-mcp-servers".to_owned(),
            first.to_string(),
            count.to_string(),
        ];
        let mut child = Child::start(core, &arguments)?;
        let line = child.line()?;
        let addresses = line
            .split(' ')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .with_context(|| line.clone())?;
        Ok(Self {
            addresses,
            _child: child,
        })
    }
}

/// One server.
struct Server {
    at: usize,
    /// The result of `tools/list`.
    list: watch::Sender<Bytes>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: String,
    #[serde(default)]
    params: Value,
}

/// What a request is answered with.
enum Answered {
    Result(Bytes),
    /// A stream of changes.
    Changes,
    Nothing,
}

impl Server {
    fn new(at: usize) -> Self {
        Self {
            at,
            list: watch::Sender::new(list(at, None)),
        }
    }

    /// Answers a message. The change that a call makes is signalled after its answer was written.
    fn answer(&self, message: &Message<'_>) -> Answered {
        if message.id.is_none() {
            return Answered::Nothing;
        }
        match message.method.as_str() {
            "server/discover" => Answered::Result(DISCOVERED.into()),
            "tools/list" => Answered::Result(self.list.borrow().clone()),
            "subscriptions/listen" => Answered::Changes,
            _ => Answered::Result(ANSWER.into()),
        }
    }

    /// Adds the tool that a call wants, if it wants one.
    fn after(&self, message: &Message<'_>) {
        if message.method == "tools/call" && message.params["name"] == manifests::tool(self.at, 1) {
            let later = format!("{LATER}{}", Clock::system().wall().as_microsecond());
            self.list.send_replace(list(self.at, Some(&later)));
        }
    }
}

/// The tools as a result, with one that came later.
fn list(at: usize, later: Option<&str>) -> Bytes {
    let manifest: Value = serde_json::from_str(&manifests::small(at, 0, TOOLS)).unwrap_or_default();
    let tool = |tool: &Value| json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["parameters"]});
    let mut tools: Vec<Value> = manifest["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .map(tool)
        .collect();
    tools.extend(later.map(
        |name| json!({"name": name, "description": "Later", "inputSchema": {"type": "object"}}),
    ));
    json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
        .to_string()
        .into()
}

fn envelope(id: Option<&RawValue>, result: &[u8]) -> Vec<u8> {
    let mut text = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":"#,
        id.map_or("null", RawValue::get)
    )
    .into_bytes();
    text.extend_from_slice(result);
    text.push(b'}');
    text
}

/// The role of a child process: serves over standard input and output until the input ends.
pub(crate) fn play_child(arguments: &[String]) -> Result<()> {
    let [at] = arguments else {
        anyhow::bail!("play-mcp-child NUMBER")
    };
    let server = Server::new(at.parse()?);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let mut input = BufReader::new(tokio::io::stdin()).lines();
            let mut output = tokio::io::stdout();
            let mut list = server.list.subscribe();
            loop {
                let mut said = tokio::select! {
                    line = input.next_line() => {
                        let Some(line) = line? else { return Ok(()) };
                        let message: Message<'_> = serde_json::from_str(&line)?;
                        let said = match server.answer(&message) {
                            Answered::Result(result) => envelope(message.id, &result),
                            Answered::Changes => ACKNOWLEDGED.into(),
                            Answered::Nothing => continue,
                        };
                        server.after(&message);
                        said
                    }
                    Ok(()) = list.changed() => CHANGED.into(),
                };
                said.push(b'\n');
                output.write_all(&said).await?;
                output.flush().await?;
            }
        })
}

/// The role of a process with servers over HTTP. Prints their addresses, and serves until it is
/// killed.
pub(crate) fn play_servers(arguments: &[String]) -> Result<()> {
    let [first, count] = arguments else {
        anyhow::bail!("play-mcp-servers FIRST COUNT")
    };
    let first = first.parse::<usize>()?;
    let count = count.parse::<usize>()?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let tasks = Tasks::new();
        let mut addresses = Vec::with_capacity(count);
        for at in first..first + count {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            addresses.push(listener.local_addr()?.to_string());
            tasks.spawn(run(Arc::new(Server::new(at)), listener, tasks.clone()));
        }
        println!("{}", addresses.join(" "));
        std::future::pending::<()>().await;
        Ok(())
    })
}

async fn run(server: Arc<Server>, listener: TcpListener, tasks: Tasks) {
    while let Ok((stream, _)) = listener.accept().await {
        // Answers are small, and none waits for the next one.
        let _ = stream.set_nodelay(true);
        let server = Arc::clone(&server);
        tasks.spawn(async move {
            let answer = service_fn(move |request| {
                let server = Arc::clone(&server);
                async move { Ok::<_, Infallible>(respond(&server, request).await) }
            });
            // A client that goes away is no matter.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

async fn respond(server: &Server, request: Request<Incoming>) -> Response<Body> {
    let body = request
        .into_body()
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let Ok(message) = serde_json::from_slice::<Message<'_>>(&body) else {
        return with(
            StatusCode::BAD_REQUEST,
            "text/plain",
            Full::new(Bytes::new()).boxed_unsync(),
        );
    };
    match server.answer(&message) {
        Answered::Result(result) => {
            let text = Full::new(Bytes::from(envelope(message.id, &result)));
            // The list is prepared here, and the stream signals it: the answer is on its way no
            // later than that.
            server.after(&message);
            with(StatusCode::OK, "application/json", text.boxed_unsync())
        }
        Answered::Changes => {
            let first = stream::iter([event(ACKNOWLEDGED)]);
            let changes = stream::unfold(server.list.subscribe(), |mut list| async move {
                list.changed().await.ok()?;
                Some((event(CHANGED), list))
            });
            with(
                StatusCode::OK,
                "text/event-stream",
                StreamBody::new(first.chain(changes).map(Ok).boxed()).boxed_unsync(),
            )
        }
        Answered::Nothing => with(
            StatusCode::ACCEPTED,
            "text/plain",
            Full::new(Bytes::new()).boxed_unsync(),
        ),
    }
}

fn event(message: &str) -> Frame<Bytes> {
    Frame::data(format!("event: message\ndata: {message}\n\n").into())
}

fn with(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
