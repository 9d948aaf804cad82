//! A scenario that is called, and a bare reverse proxy that does the same hop as the daemon and
//! nothing else.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use callsheet::runtime::{Clock, Tasks};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::child_process::Child;

/// Its only tool.
pub(crate) const TOOL: &str = "read_lines";
/// What the tool is called with.
pub(crate) const ARGUMENTS: &str = r#"{"path":"src/main.rs","first":1,"lines":40}"#;
/// What it answers.
const ANSWER: &str =
    r#"{"success":true,"result":{"path":"src/main.rs","lines":["fn main() {","}"]}}"#;

/// A process in one of the two roles.
pub(crate) struct Process {
    pub(crate) address: SocketAddr,
    _child: Child,
}

impl Process {
    /// A scenario. One that hangs lists its tool, and never answers a call.
    pub(crate) fn scenario(core: usize, hangs: bool) -> Result<Self> {
        Self::start(
            core,
            &[
                "play-callee".to_owned(),
                if hangs { "hangs" } else { "answers" }.to_owned(),
            ],
        )
    }

    /// A scenario that answers a call after as many milliseconds as it is asked for lines.
    pub(crate) fn slow_scenario(core: usize) -> Result<Self> {
        Self::start(core, &["play-callee".to_owned(), "waits".to_owned()])
    }

    /// A proxy before `to`.
    pub(crate) fn proxy(core: usize, to: SocketAddr) -> Result<Self> {
        Self::start(core, &["play-proxy".to_owned(), to.to_string()])
    }

    fn start(core: usize, arguments: &[String]) -> Result<Self> {
        let mut child = Child::start(Some(core), arguments)?;
        Ok(Self {
            address: child.line()?.parse()?,
            _child: child,
        })
    }
}

fn manifest() -> String {
    let parameters = json!({"type": "object", "required": ["path"], "properties": {
        "path": {"type": "string", "minLength": 1, "description": "The file, below the root of the project"},
        "first": {"type": "integer", "minimum": 1, "description": "The first line"},
        "lines": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "How many lines"},
    }});
    let metadata = json!({"enabled_by_default": true, "idempotent": true});
    let tool = json!({"name": TOOL, "description": "Reads lines of a file", "parameters": parameters, "metadata": metadata});
    json!({"protocol_version": "1.0", "scenario": {"name": "files"}, "tools": [tool]}).to_string()
}

/// The role of the scenario. Prints its address, and serves until it is killed.
pub(crate) fn serve(arguments: &[String]) -> Result<()> {
    let [manner] = arguments else {
        anyhow::bail!("callee answers|hangs|waits")
    };
    let hangs = manner == "hangs";
    let waits = manner == "waits";
    let manifest = Bytes::from(manifest());
    serving(move |request: Request<Incoming>| {
        let manifest = manifest.clone();
        async move {
            if request.method() == "GET" {
                return json_of(manifest);
            }
            // As a scenario does, it reads what it is asked.
            let body = request.into_body().collect().await;
            if hangs {
                std::future::pending::<()>().await;
            }
            if waits {
                let body = body
                    .map(http_body_util::Collected::to_bytes)
                    .unwrap_or_default();
                let call: Value = serde_json::from_slice(&body).unwrap_or_default();
                let wait =
                    Duration::from_millis(call["arguments"]["lines"].as_u64().unwrap_or_default());
                Clock::system().sleep(wait).await;
            }
            json_of(Bytes::from_static(ANSWER.as_bytes()))
        }
    })
}

fn json_of(body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The role of the proxy: reads a request, sends it on over a connection that is kept, reads the
/// answer, and sends that back.
pub(crate) fn pass_on(arguments: &[String]) -> Result<()> {
    let [to] = arguments else {
        anyhow::bail!("proxy ADDRESS")
    };
    let to = to.parse::<SocketAddr>()?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    serving(move |request: Request<Incoming>| {
        let client = client.clone();
        async move {
            let (mut head, body) = request.into_parts();
            let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
            head.uri = format!("http://{to}{path}")
                .parse::<Uri>()
                .unwrap_or_default();
            let body = body
                .collect()
                .await
                .map(http_body_util::Collected::to_bytes)
                .unwrap_or_default();
            let Ok(answer) = client
                .request(Request::from_parts(head, Full::new(body)))
                .await
            else {
                return Response::default();
            };
            let (head, body) = answer.into_parts();
            let body = body
                .collect()
                .await
                .map(http_body_util::Collected::to_bytes)
                .unwrap_or_default();
            Response::from_parts(head, Full::new(body))
        }
    })
}

/// Answers every request so, on the same kind of runtime as the daemon's.
fn serving<F, A>(answer: F) -> Result<()>
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let tasks = Tasks::new();
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            println!("{}", listener.local_addr()?);
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let answer = answer.clone();
                tasks.spawn(async move {
                    let service = service_fn(move |request| {
                        let answered = answer(request);
                        async move { Ok::<_, Infallible>(answered.await) }
                    });
                    // A client that goes away is no matter.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        })
}
