//! A server that speaks plain JSON-RPC as a test says: a real one on loopback that answers each
//! method by a script and counts what was requested.

#![allow(
    clippy::disallowed_methods,
    reason = "a server of a test is no task of the daemon"
)]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) use super::in_process::PATIENCE;

/// Answers requests at `/rpc`. Stopped when it is dropped.
pub(crate) struct RpcServer {
    pub(crate) address: SocketAddr,
    stage: Arc<Stage>,
    serving: JoinHandle<()>,
}

struct Stage {
    script: Mutex<Script>,
    /// The status of answers that are errors.
    status_of_errors: AtomicU16,
    requested: watch::Sender<Vec<String>>,
}

type Script = Box<dyn FnMut(&str, &Value) -> Result<Value, Value> + Send>;

impl RpcServer {
    /// Gives to each method, with its parameters, a result or an error.
    pub(crate) async fn start(
        script: impl FnMut(&str, &Value) -> Result<Value, Value> + Send + 'static,
    ) -> Self {
        let stage = Arc::new(Stage {
            script: Mutex::new(Box::new(script)),
            status_of_errors: AtomicU16::new(200),
            requested: watch::Sender::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new()
            .route("/rpc", post(answer))
            .with_state(Arc::clone(&stage));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address,
            stage,
            serving,
        }
    }

    /// Offers these tools under this identity, and gives back the arguments of a call.
    pub(crate) async fn offering(identity: &str, tools: &[Value]) -> Self {
        Self::start(offer(identity, tools)).await
    }

    /// Answers by another script from now on.
    pub(crate) fn script(
        &self,
        script: impl FnMut(&str, &Value) -> Result<Value, Value> + Send + 'static,
    ) {
        *self.stage.script.lock().unwrap() = Box::new(script);
    }

    /// Sends errors with this status from now on.
    pub(crate) fn send_errors_with(&self, status: u16) {
        self.stage.status_of_errors.store(status, Ordering::Relaxed);
    }

    /// How often a method was requested.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.stage
            .requested
            .borrow()
            .iter()
            .filter(|requested| *requested == method)
            .count()
    }

    /// Waits until a method was requested so many times in all.
    pub(crate) async fn until(&self, method: &str, times: usize) {
        let mut requested = self.stage.requested.subscribe();
        let enough = |all: &Vec<String>| all.iter().filter(|one| *one == method).count() >= times;
        let waited = tokio::time::timeout(PATIENCE, requested.wait_for(enough))
            .await
            .is_ok();
        assert!(
            waited,
            "`{method}` came {} times, not {times}",
            self.count(method)
        );
    }
}

impl Drop for RpcServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The script of a server that offers these tools under this identity.
pub(crate) fn offer(
    identity: &str,
    tools: &[Value],
) -> impl FnMut(&str, &Value) -> Result<Value, Value> + use<> {
    let identity = identity.to_owned();
    let tools = tools.to_vec();
    move |method, params| match method {
        "server/identity" => Ok(
            json!({"server_id": identity, "tools_count": tools.len(), "protocol_version": "1.0"}),
        ),
        "tools/list" => Ok(json!({"tools": tools})),
        "tools/call" if params["name"] == "fails" => {
            Err(json!({"code": -32600, "message": "the disk is full"}))
        }
        "tools/call" => Ok(json!({"called": params["name"], "with": params["arguments"]})),
        _ => Err(json!({"code": -32601, "message": "Method not found"})),
    }
}

/// A tool with one text that it wants, as a list has it.
pub(crate) fn listed(name: &str) -> Value {
    json!({
        "name": name,
        "description": format!("Does {name}"),
        "inputSchema": {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "Where"}},
            "required": ["path"],
        },
    })
}

async fn answer(State(stage): State<Arc<Stage>>, body: String) -> Response {
    let request: Value = serde_json::from_str(&body).unwrap();
    let method = request["method"].as_str().unwrap().to_owned();
    let outcome = (stage.script.lock().unwrap())(&method, &request["params"]);
    stage.requested.send_modify(|all| all.push(method));
    let (status, answer) = match outcome {
        Ok(result) => (
            200,
            json!({"jsonrpc": "2.0", "result": result, "id": request["id"]}),
        ),
        Err(error) => {
            let status = stage.status_of_errors.load(Ordering::Relaxed);
            (
                status,
                json!({"jsonrpc": "2.0", "error": error, "id": request["id"]}),
            )
        }
    };
    let status = StatusCode::from_u16(status).unwrap();
    (
        status,
        [("content-type", "application/json")],
        answer.to_string(),
    )
        .into_response()
}
