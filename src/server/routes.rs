//! The table of routes, and the router made from it. To add a route: a function in `server/` and a line here.

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use http::{Method, Uri};

use super::error::{Problem, excerpt};
use super::{
    App, calls, dashboard, events, findings, health, inbox, metrics, preferences, scenarios, search, socket, tools,
};
use crate::metrics::Requests;

/// Rests of paths below `/api/v1/tools/` that never name a tool, so that further routes take no tool's address away. A tool with such a
/// published name is reached as `scenario/tool`.
pub(super) const RESERVED: &[&str] = &["set", "scenarios", "config", "config/approval", "sync", "search", "execute"];

/// How requests are counted that the guard did not let pass.
pub(super) const REFUSED: &str = "refused";
/// How questions of browsers are counted before a request.
pub(super) const PREFLIGHT: &str = "preflight";
/// How requests are counted that no route answers.
pub(super) const UNMATCHED: &str = "unmatched";

/// One path and what it answers.
pub(super) struct Route {
    /// The methods, as in the `Allow` header; a test holds this equal to what the handler takes.
    pub(super) methods: &'static str,
    /// In the router's notation: `{name}` is one segment, `{*name}` one or more.
    pub(super) path: &'static str,
    /// For people.
    pub(super) answers: &'static str,
    handler: fn() -> MethodRouter<App>,
}

const fn route(
    methods: &'static str,
    path: &'static str,
    answers: &'static str,
    handler: fn() -> MethodRouter<App>,
) -> Route {
    Route { methods, path, answers, handler }
}

/// Every route there is, but `/`, which shows this table, and the pages of the dashboard.
pub(super) const ROUTES: &[Route] = &[
    route("GET,HEAD", "/healthz", "whether the daemon lives", || get(health::live)),
    route("GET,HEAD", "/readyz", "whether every scenario that is configured was asked, else 503", || {
        get(health::ready)
    }),
    route("GET,HEAD", "/metrics", "what was counted, for Prometheus", || get(metrics::scrape)),
    route("GET,HEAD", "/api/v1/tools", "the list of tools", || get(tools::list_route)),
    route("GET,HEAD", "/api/v1/tools/search", "the tools that fit a text best, with why", || get(search::search)),
    route("GET,HEAD", "/api/v1/tools/{*name}", "one tool, or with `/explain` why it is or is not in the list", || {
        get(tools::one_route)
    }),
    route("GET,HEAD", "/api/v1/scenarios", "the health of every scenario", || get(scenarios::all)),
    route("GET,HEAD", "/api/v1/scenarios/{name}", "the health of one scenario with its findings", || {
        get(scenarios::one)
    }),
    route("POST", "/api/v1/scenarios/{name}/refresh", "asks it now", || post(scenarios::refresh)),
    route("POST,DELETE", "/api/v1/scenarios/{name}/trust", "trusts its address, or takes that back", || {
        post(scenarios::trust).delete(scenarios::untrust)
    }),
    route("POST,DELETE", "/api/v1/scenarios/{name}/block", "neither asks nor publishes it, or takes that back", || {
        post(scenarios::block).delete(scenarios::unblock)
    }),
    route("GET,HEAD,PUT,DELETE", "/api/v1/preferences", "preferences by scope and target", || {
        get(preferences::all).put(preferences::change).delete(preferences::reset)
    }),
    route("GET,HEAD", "/api/v1/findings", "every open finding", || get(findings::all)),
    route("GET,HEAD", "/api/v1/events", "changes as they happen, as server-sent events", || get(events::follow)),
    route("GET,HEAD", "/api/v1/ws", "changes as they happen, over a WebSocket", || get(socket::follow)),
    route("GET,HEAD", "/api/v1/tools/set", "agent-inbox: scenarios, tools with their settings, categories", || {
        get(inbox::tool_set)
    }),
    route("GET,HEAD", "/api/v1/tools/scenarios", "agent-inbox: which scenarios answer", || get(inbox::statuses)),
    route("POST,DELETE", "/api/v1/tools/config", "agent-inbox: switches a tool on or off, or resets it", || {
        post(inbox::set_enabled).delete(inbox::reset)
    }),
    route("POST", "/api/v1/tools/config/approval", "agent-inbox: approval of a tool", || post(inbox::set_approval)),
    route("POST", "/api/v1/tools/execute", "calls a tool and answers what it gave back", || post(calls::execute)),
    route("POST", "/api/v1/tools/sync", "agent-inbox: asks every scenario now", || post(inbox::sync)),
];

/// The router of all routes, with bodies of at most `max_body` bytes.
pub(super) fn router(shared: App, max_body: usize) -> Router {
    let router = ROUTES.iter().fold(Router::new(), |router, route| router.route(route.path, (route.handler)()));
    router
        .merge(dashboard::router())
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(max_body))
        .layer(from_fn(name_route))
        .with_state(shared)
}

/// Counters for every route there is.
pub(super) fn counted() -> Requests {
    Requests::new(
        ROUTES.iter().map(|route| route.path).chain(dashboard::paths()).chain([REFUSED, PREFLIGHT, UNMATCHED]),
    )
}

/// The route that a request was counted under, from its answer.
pub(super) fn answered_by(answer: &http::response::Response<impl Sized>) -> &str {
    answer.extensions().get::<MatchedPath>().map_or(UNMATCHED, MatchedPath::as_str)
}

/// Leaves with the answer which route it came from.
async fn name_route(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut answer = next.run(request).await;
    if let Some(route) = route {
        answer.extensions_mut().insert(route);
    }
    answer
}

/// 404 for a path that no route has.
async fn unknown(uri: Uri) -> Problem {
    Problem::not_found(format!("there is no route `{}`; `GET /` lists all", excerpt(uri.path())))
}

/// 405; the router adds the `Allow` header.
async fn wrong_method(method: Method, uri: Uri) -> Problem {
    let detail = format!("`{}` does not take {method}; `Allow` names what it takes", excerpt(uri.path()));
    Problem::new(http::StatusCode::METHOD_NOT_ALLOWED, detail)
}
