//! The scripted scenario that is called: it lists tools, runs them as the test says, and keeps
//! what it ran.

use std::sync::{Arc, Mutex};

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::sync::watch;
use url::Url;

pub(crate) use super::in_process::PATIENCE;
use super::scripted::{Request, Scripted};

/// Runs tools. Stopped when it is dropped.
pub(crate) struct Callee {
    scripted: Scripted,
    stage: Arc<Stage>,
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
    #[allow(
        clippy::unused_async,
        reason = "it needs a runtime, which a caller that awaits it has"
    )]
    pub(crate) async fn start<F, A>(manifest: Value, run: F) -> Self
    where
        F: Fn(Ran) -> A + Send + Sync + 'static,
        A: Future<Output = Response> + Send + 'static,
    {
        let run: Run = Arc::new(move |ran| Box::pin(run(ran)));
        let stage = Stage {
            manifest: Mutex::new(manifest),
            run: Mutex::new(run),
            ran: watch::Sender::default(),
        };
        let stage = Arc::new(stage);
        let of_script = Arc::clone(&stage);
        let scripted = Scripted::start_slow(move |request| Arc::clone(&of_script).answer(request));
        Self { scripted, stage }
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
        self.scripted.url()
    }

    pub(crate) fn port(&self) -> u16 {
        self.scripted.port()
    }

    /// Every call so far.
    pub(crate) fn ran(&self) -> Vec<Ran> {
        self.stage.ran.borrow().clone()
    }

    /// Waits until it was called so many times in all.
    pub(crate) async fn until_ran(&self, times: usize) {
        let mut ran = self.stage.ran.subscribe();
        let waited = tokio::time::timeout(PATIENCE, ran.wait_for(|ran| ran.len() >= times))
            .await
            .is_ok();
        assert!(waited, "called {} times, not {times}", self.ran().len());
    }

    /// Ends at once, as a killed process does: connections to its port are refused.
    pub(crate) async fn kill(&mut self) {
        self.scripted.close().await;
    }

    /// Listens at its port again.
    pub(crate) fn revive(&mut self) {
        self.scripted.open();
    }

    /// Ends where it is, and listens at another port. The old port stays held, so that connections
    /// to it are refused.
    pub(crate) async fn move_on(&mut self) -> TcpSocket {
        self.scripted.move_on().await
    }
}

impl Stage {
    async fn answer(self: Arc<Self>, request: Request) -> Response {
        match (request.method.as_str(), request.target()) {
            ("GET", "/api/v1/tools") => {
                let manifest = self.manifest.lock().unwrap().to_string();
                text(200, manifest)
            }
            ("POST", "/api/v1/tools/execute") => self.execute(request).await,
            _ => text(404, ""),
        }
    }

    async fn execute(&self, request: Request) -> Response {
        let body: Value = serde_json::from_str(&request.text).unwrap();
        let tool = body["tool_name"].as_str().unwrap().to_owned();
        let ran = Ran {
            tool,
            arguments: body["arguments"].clone(),
            headers: request.headers,
            text: request.text,
        };
        self.ran.send_modify(|all| all.push(ran.clone()));
        let run = Arc::clone(&*self.run.lock().unwrap());
        run(ran).await
    }
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
    (
        StatusCode::from_u16(status).unwrap(),
        [("content-type", "application/json")],
        body.into(),
    )
        .into_response()
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
    tool_with(
        name,
        &json!({"type": "object", "properties": {}}),
        &json!({"enabled_by_default": true}),
    )
}

/// A tool with these parameters and metadata.
pub(crate) fn tool_with(name: &str, parameters: &Value, metadata: &Value) -> Value {
    json!({"name": name, "description": format!("Does {name}"), "parameters": parameters, "metadata": metadata})
}
