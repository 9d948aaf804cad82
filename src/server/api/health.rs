//! Whether the daemon is alive, whether it is ready, and which routes it has.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::runtime::tasks;
use crate::server::SharedState;
use crate::server::api::shared_json;
use crate::server::auth::Access;
use crate::server::http::error::Problem;

/// That the daemon lives.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct Live {
    status: &'static str,
    /// Tasks that are alive: a number that only ever grows is a leak.
    tasks: usize,
}

/// Whether the daemon is ready.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct Ready<'a> {
    /// `ready` or `starting`.
    status: &'static str,
    /// What is awaited.
    awaited: Vec<String>,
    /// There while the daemon takes itself to be cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    isolated: Option<shared_json::IsolatedJson>,
    /// There when the daemon follows its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<shared_json::ConfigurationJson<'a>>,
}

/// The table of routes.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct Index {
    name: &'static str,
    version: &'static str,
    routes: Vec<IndexedRoute>,
}

/// One path.
#[derive(Serialize, JsonSchema)]
struct IndexedRoute {
    /// With commas between, as in the `Allow` header.
    methods: String,
    /// `{name}` is one segment, `{*name}` one or more.
    path: &'static str,
    /// For people.
    answers: String,
}

/// `GET /healthz`: 200 as long as the daemon answers requests. `tasks` is the number of live tasks:
/// a number that only ever grows is a leak.
pub(in crate::server) async fn live() -> Result<Response, Problem> {
    shared_json::json(&Live {
        status: "ok",
        tasks: tasks::alive(),
    })
}

/// `GET /readyz`: 200 when nothing is awaited any more, else 503; `awaited` names it. While the
/// daemon assumes that it is cut off, `isolated` says since when and why; it stays ready, because
/// the list is still served. If the daemon follows its configuration file, `configuration` says
/// since when the active configuration is used, what the last reload changed, which keys wait for a
/// restart, and what is wrong with the file if it cannot be used. The daemon stays ready then, too,
/// with the configuration before it.
pub(in crate::server) async fn ready(
    State(shared): State<SharedState>,
    access: Access,
) -> Result<Response, Problem> {
    let awaited = shared.readiness.awaited();
    let (status, text) = if awaited.is_empty() {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "starting")
    };
    let snapshot = shared.reader.snapshot();
    let answer = Ready {
        status: text,
        awaited,
        isolated: snapshot.isolated.as_ref().map(shared_json::isolated),
        configuration: snapshot
            .configuration
            .as_ref()
            .map(|state| shared_json::configuration(state, access)),
    };
    Ok((status, shared_json::json(&answer)?).into_response())
}

/// `GET /`: the table of routes: methods, path and answer of each.
pub(in crate::server) fn index(
    routes: impl Iterator<Item = (String, &'static str, String)>,
) -> Index {
    let shown = routes.map(|(methods, path, answers)| IndexedRoute {
        methods,
        path,
        answers,
    });
    Index {
        name: "callsheet",
        version: env!("CARGO_PKG_VERSION"),
        routes: shown.collect(),
    }
}
