//! Servers that both callsheet and its rivals can ask: each speaks the Model Context Protocol
//! (Streamable HTTP, at `/mcp`) and the Tool Discovery Protocol (at `/api/v1/tools`), says the same
//! in both, and tells those who listen that its tools changed.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use callsheet::runtime::{Clock, Tasks};
use futures_util::{StreamExt as _, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};

use crate::child_process::Child;
use crate::manifests::{self, TOOLS};
use crate::raw_http;

/// How slow a slow one is.
pub(crate) const SLOW: Duration = Duration::from_secs(3);
/// The versions of the Model Context Protocol in which it is spoken to as here.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// What a call answers.
pub(crate) const CALLED: &str = "fn main() {}";
/// Where one is told to end.
const END: &str = "/end";

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A process full of them.
pub(crate) struct Upstreams {
    pub(crate) addresses: Vec<SocketAddr>,
    _child: Child,
}

impl Upstreams {
    pub(crate) fn start(count: usize) -> Result<Self> {
        let mut child = Child::start(None, &["play-upstreams".to_owned(), count.to_string()])?;
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

    /// Tells one to `/change` (offer a tool more), to be `/slow`, or to be `/quick` again.
    pub(crate) async fn tell(&self, at: usize, what: &str) -> Result<()> {
        raw_http::once(self.addresses[at], "GET", what)
            .await
            .map(drop)
    }

    /// Ends one: once this returns its port is refused, and who was connected is cut off.
    pub(crate) async fn end(&self, at: usize) {
        let address = self.addresses[at];
        // This request is cut off as well.
        let _ = raw_http::once(address, "GET", END).await;
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            Clock::system().sleep(Duration::from_millis(1)).await;
        }
    }
}

/// The role: serves until it is killed. Prints its addresses.
pub(crate) fn serve(arguments: &[String]) -> Result<()> {
    let [count] = arguments else {
        anyhow::bail!("play-upstreams COUNT")
    };
    let count = count.parse::<usize>()?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let tasks = Tasks::new();
        let mut addresses = Vec::with_capacity(count);
        for at in 0..count {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            addresses.push(listener.local_addr()?.to_string());
            let upstream = Upstream {
                at,
                more: watch::Sender::new(0),
                slow: AtomicBool::new(false),
                end: Notify::new(),
            };
            tasks.spawn(Arc::new(upstream).run(listener, tasks.clone()));
        }
        println!("{}", addresses.join(" "));
        std::future::pending::<()>().await;
        Ok(())
    })
}

struct Upstream {
    at: usize,
    /// How many tools it offers beside the first ones.
    more: watch::Sender<usize>,
    slow: AtomicBool,
    end: Notify,
}

impl Upstream {
    async fn run(self: Arc<Self>, listener: TcpListener, tasks: Tasks) {
        loop {
            let stream = tokio::select! {
                () = self.end.notified() => return,
                Ok((stream, _)) = listener.accept() => stream,
                else => return,
            };
            let upstream = Arc::clone(&self);
            tasks.spawn(async move {
                let asked = Arc::clone(&upstream);
                let answer = service_fn(move |request| {
                    let upstream = Arc::clone(&asked);
                    async move { Ok::<_, Infallible>(upstream.answer(request).await) }
                });
                let serving = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), answer);
                // Those that are connected when it ends are cut off. A client that goes away is no
                // matter.
                tokio::select! {
                    _ = serving => {}
                    () = upstream.end.notified() => upstream.end.notify_waiters(),
                }
            });
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        match (request.method(), request.uri().path()) {
            (_, "/change") => self.more.send_modify(|more| *more += 1),
            (_, "/slow") => self.slow.store(true, Ordering::Relaxed),
            (_, "/quick") => self.slow.store(false, Ordering::Relaxed),
            (_, END) => {
                self.end.notify_one();
                self.end.notify_waiters();
            }
            (&Method::GET, "/api/v1/tools") => {
                self.wait().await;
                let mut response = of_json(&self.manifest());
                response
                    .headers_mut()
                    .insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
                return response;
            }
            (&Method::GET, "/mcp") => return self.follow(),
            (&Method::POST, "/mcp") => {
                let body = request
                    .into_body()
                    .collect()
                    .await
                    .map(http_body_util::Collected::to_bytes);
                let message: Value =
                    serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
                return self.message(&message).await;
            }
            (&Method::DELETE, "/mcp") => {}
            _ => return with(StatusCode::NOT_FOUND, Bytes::new()),
        }
        with(StatusCode::OK, Bytes::new())
    }

    async fn wait(&self) {
        if self.slow.load(Ordering::Relaxed) {
            Clock::system().sleep(SLOW).await;
        }
    }

    /// Answers one message; a notification has no answer.
    async fn message(&self, message: &Value) -> Response<Body> {
        let Some(id) = message.get("id") else {
            return with(StatusCode::ACCEPTED, Bytes::new());
        };
        self.wait().await;
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                let asked = message["params"]["protocolVersion"]
                    .as_str()
                    .unwrap_or_default();
                let version = if VERSIONS.contains(&asked) {
                    asked
                } else {
                    VERSIONS[2]
                };
                let info = json!({"name": manifests::name(self.at), "version": "1.0.0"});
                json!({"protocolVersion": version, "capabilities": {"tools": {"listChanged": true}}, "serverInfo": info})
            }
            "ping" => json!({}),
            "tools/call" => json!({"content": [{"type": "text", "text": CALLED}]}),
            "tools/list" => json!({"tools": self.tools().iter().map(of_mcp).collect::<Vec<_>>()}),
            other => {
                let error = json!({"code": -32601, "message": format!("no method {other}")});
                return of_json(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        of_json(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// A stream of events that says when the tools changed.
    fn follow(&self) -> Response<Body> {
        let changes = self.more.subscribe();
        let events = stream::unfold(changes, |mut changes| async move {
            changes.changed().await.ok()?;
            let event = format!("event: message\ndata: {CHANGED}\n\n");
            Some((Ok(Frame::data(Bytes::from(event))), changes))
        });
        let mut response = Response::new(StreamBody::new(events.boxed()).boxed_unsync());
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        response
    }

    /// What it offers, as the Tool Discovery Protocol says it.
    fn manifest(&self) -> Value {
        let mut manifest: Value =
            serde_json::from_str(&manifests::manifest(self.at, 0)).unwrap_or_default();
        manifest["tools"] = self.tools().into();
        manifest
    }

    fn tools(&self) -> Vec<Value> {
        let text = manifests::small(self.at, 0, TOOLS + *self.more.borrow());
        let manifest: Value = serde_json::from_str(&text).unwrap_or_default();
        manifest["tools"].as_array().cloned().unwrap_or_default()
    }
}

/// A tool as the Model Context Protocol says it.
fn of_mcp(tool: &Value) -> Value {
    json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["parameters"]})
}

fn of_json(value: &Value) -> Response<Body> {
    let mut response = with(StatusCode::OK, Bytes::from(value.to_string()));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn with(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() = status;
    response
}
