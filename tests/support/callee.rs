//! A scenario that is called: a real server that lists tools and runs them as the test says, and
//! keeps what it was asked to run. It can be stopped and started again, at its port or at another
//! one.

#![allow(clippy::disallowed_methods, reason = "a server of a test is no task of the daemon")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::future::BoxFuture;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use url::Url;

pub(crate) use super::in_process::PATIENCE;

/// Runs tools. Stopped when it is dropped.
pub(crate) struct Callee {
    stage: Arc<Stage>,
    address: SocketAddr,
    serving: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    /// Holds the port while nobody listens there: connections to it are refused.
    held: Option<TcpSocket>,
}

struct Stage {
    manifest: Mutex<Value>,
    run: Mutex<Run>,
    ran: watch::Sender<Vec<Ran>>,
}

type Run = Arc<dyn Fn(Ran) -> BoxFuture<'static, Response> + Send + Sync>;

/// One call as it came.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) headers: HeaderMap,
    /// The whole body, byte for byte.
    pub(crate) text: String,
}

impl Callee {
    /// Serves this manifest at a free port and gives back what it was given.
    pub(crate) async fn echo(manifest: Value) -> Self {
        Self::start(manifest, |ran| async move { done(&ran.arguments) }).await
    }

    /// Serves this manifest at a free port and runs tools so.
    pub(crate) async fn start<F, A>(manifest: Value, run: F) -> Self
    where
        F: Fn(Ran) -> A + Send + Sync + 'static,
        A: Future<Output = Response> + Send + 'static,
    {
        let run: Run = Arc::new(move |ran| Box::pin(run(ran)));
        let stage = Stage { manifest: Mutex::new(manifest), run: Mutex::new(run), ran: watch::Sender::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut callee = Self { stage: Arc::new(stage), address, serving: None, held: None };
        callee.serve(listener);
        callee
    }

    fn serve(&mut self, listener: TcpListener) {
        let app = Router::new()
            .route("/api/v1/tools", get(list))
            .route("/api/v1/tools/execute", post(execute))
            .with_state(Arc::clone(&self.stage));
        let (stop, stopped) = oneshot::channel();
        self.serving = Some((stop, tokio::spawn(accept(listener, app, stopped))));
    }

    /// Runs tools otherwise from now on.
    pub(crate) fn runs<F, A>(&self, run: F)
    where
        F: Fn(Ran) -> A + Send + Sync + 'static,
        A: Future<Output = Response> + Send + 'static,
    {
        *self.stage.run.lock().unwrap() = Arc::new(move |ran| Box::pin(run(ran)));
    }

    /// Lists other tools from now on.
    pub(crate) fn lists(&self, manifest: Value) {
        *self.stage.manifest.lock().unwrap() = manifest;
    }

    pub(crate) fn url(&self) -> Url {
        Url::parse(&format!("http://{}/", self.address)).unwrap()
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Every call so far.
    pub(crate) fn ran(&self) -> Vec<Ran> {
        self.stage.ran.borrow().clone()
    }

    /// Waits until it was called so many times in all.
    pub(crate) async fn until_ran(&self, times: usize) {
        let mut ran = self.stage.ran.subscribe();
        let waited = tokio::time::timeout(PATIENCE, ran.wait_for(|ran| ran.len() >= times)).await.is_ok();
        assert!(waited, "called {} times, not {times}", self.ran().len());
    }

    /// Ends at once, as a killed process does: nobody listens at the port, which nobody else gets.
    pub(crate) async fn kill(&mut self) {
        if let Some((stop, serving)) = self.serving.take() {
            drop(stop);
            serving.await.unwrap();
        }
        let free = async {
            loop {
                match hold(self.address) {
                    Ok(held) => return held,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        self.held = Some(tokio::time::timeout(PATIENCE, free).await.expect("the port becomes free"));
    }

    /// Listens at its port again.
    pub(crate) fn revive(&mut self) {
        let listener = self.held.take().expect("it is dead").listen(1024).unwrap();
        self.serve(listener);
    }

    /// Ends where it is, and listens at another port. The old port stays held, so that connections
    /// to it are refused.
    pub(crate) async fn move_on(&mut self) -> TcpSocket {
        self.kill().await;
        let old = self.held.take().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        self.address = listener.local_addr().unwrap();
        self.serve(listener);
        old
    }
}

/// Serves until it is stopped, which ends every connection too, as the end of a process does.
async fn accept(listener: TcpListener, app: Router, stop: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let (stream, _) = tokio::select! {
            accepted = listener.accept() => accepted.unwrap(),
            _ = &mut stop => break,
        };
        let service = TowerToHyperService::new(app.clone());
        // A client that goes away ends its connection, which is no failure here.
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    connections.shutdown().await;
}

async fn list(State(stage): State<Arc<Stage>>) -> Response {
    let manifest = stage.manifest.lock().unwrap().to_string();
    ([("content-type", "application/json")], manifest).into_response()
}

async fn execute(State(stage): State<Arc<Stage>>, headers: HeaderMap, body: Bytes) -> Response {
    let text = String::from_utf8(body.to_vec()).unwrap();
    let body: Value = serde_json::from_str(&text).unwrap();
    let tool = body["tool_name"].as_str().unwrap().to_owned();
    let ran = Ran { tool, arguments: body["arguments"].clone(), headers, text };
    stage.ran.send_modify(|all| all.push(ran.clone()));
    let run = Arc::clone(&*stage.run.lock().unwrap());
    run(ran).await
}

/// A tool's answer: it did its work.
pub(crate) fn done(result: &Value) -> Response {
    answer(200, &json!({"success": true, "result": result}))
}

/// Any answer.
pub(crate) fn answer(status: u16, body: &Value) -> Response {
    text(status, body.to_string())
}

/// An answer that need not be JSON.
pub(crate) fn text(status: u16, body: impl Into<String>) -> Response {
    (StatusCode::from_u16(status).unwrap(), [("content-type", "application/json")], body.into()).into_response()
}

fn hold(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// A whole manifest of these tools.
pub(crate) fn manifest(scenario: &str, tools: &[Value]) -> Value {
    json!({
        "protocol_version": "1.0",
        "scenario": {"name": scenario, "version": "1.0.0", "description": "Runs what a test asks for"},
        "tools": tools,
        "categories": [],
        "generated_at": "2026-02-03T04:05:06Z",
    })
}

/// A tool that takes anything and is on.
pub(crate) fn tool(name: &str) -> Value {
    tool_with(name, &json!({"type": "object", "properties": {}}), &json!({"enabled_by_default": true}))
}

/// A tool with these parameters and metadata.
pub(crate) fn tool_with(name: &str, parameters: &Value, metadata: &Value) -> Value {
    json!({"name": name, "description": format!("Does {name}"), "parameters": parameters, "metadata": metadata})
}
