//! Whether the daemon lives, whether it is ready, and what it answers to.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Value, json};

use super::error::Problem;
use super::routes::Route;
use super::{App, wire};
use crate::runtime::tasks;

/// `GET /healthz`: 200 as long as requests are answered at all. `tasks` are those that are alive: a number that only ever grows is a leak.
pub(super) async fn live() -> Result<Response, Problem> {
    wire::json(&json!({"status": "ok", "tasks": tasks::alive()}))
}

/// `GET /readyz`: 200 when nothing is awaited any more, else 503; `awaited` names what is. While the daemon takes itself to be cut off,
/// `isolated` says since when and why: the list is served all the same, so it stays ready. `configuration` tells of a daemon that follows
/// its file since when what is in force is so, what the last reload changed, which keys wait for a restart, and what is wrong with
/// what is written now, if that cannot be used: the one before is in force then, so it stays ready too.
pub(super) async fn ready(State(shared): State<App>) -> Result<Response, Problem> {
    let awaited = shared.readiness.awaited();
    let (status, text) =
        if awaited.is_empty() { (StatusCode::OK, "ready") } else { (StatusCode::SERVICE_UNAVAILABLE, "starting") };
    let mut answer = json!({"status": text, "awaited": awaited});
    let snapshot = shared.reader.snapshot();
    if let Some(isolated) = &snapshot.isolated {
        answer["isolated"] = wire::isolated(isolated);
    }
    if let Some(state) = &snapshot.configuration {
        answer["configuration"] = wire::configuration(state);
    }
    Ok((status, wire::json(&answer)?).into_response())
}

/// `GET /`: what can be asked, from the table of routes itself.
pub(super) fn index(routes: &[Route]) -> Value {
    let routes: Vec<Value> = routes
        .iter()
        .map(|route| json!({"methods": route.methods, "path": route.path, "answers": route.answers}))
        .collect();
    json!({"name": "callsheet", "version": env!("CARGO_PKG_VERSION"), "routes": routes})
}
