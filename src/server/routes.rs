//! The table of routes, and the router made from it. To add a route: a function in `server/` and an entry here, which also is all that
//! `/openapi.json` and `/docs` need to describe it, but for its examples (`api/examples.json`).

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{MethodRouter, delete, get, post, put};
use http::{Method, Uri};
use serde_json::{Map, Value};

use super::api::Tag::{Daemon, Events, Inbox, Preferences, Scenarios, Tools};
use super::api::Verb::{Delete, Get, Post, Put};
use super::api::shapes::{AnyTool, AnyToolList};
use super::api::{self, Answer, Operation, Refusal, json, operation, refusal, streamed, text, within};
use super::error::{Problem, excerpt};
use super::event_wire::Streamed;
use super::params::{self, Param};
use super::query::ListQuery;
use super::wire::HealthJson;
use super::{
    App, dashboard, events, findings, health, inbox, inbox_wire, metrics, preferences, scenarios, search, socket, tools,
};
use crate::engine::EngineError;
use crate::events::SubscribeError;
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
    /// In the router's notation: `{name}` is one segment, `{*name}` one or more.
    pub(super) path: &'static str,
    /// The parameters in the path.
    pub(super) places: &'static [Param],
    /// What its methods do. A test holds them equal to what the handlers take.
    pub(super) operations: &'static [Operation],
}

const fn route(path: &'static str, places: &'static [Param], operations: &'static [Operation]) -> Route {
    Route { path, places, operations }
}

impl Route {
    /// The methods, as in the `Allow` header.
    pub(super) fn methods(&self) -> String {
        let own = self.operations.iter().filter(|operation| operation.below.is_empty());
        let methods: Vec<&str> = own
            .flat_map(|operation| [operation.verb.as_str(), if operation.is_safe() { "HEAD" } else { "" }])
            .filter(|method| !method.is_empty())
            .collect();
        methods.join(",")
    }

    /// For people.
    pub(super) fn answers(&self) -> String {
        let answers: Vec<String> = self.operations.iter().map(Operation::answers).collect();
        answers.join("; ")
    }

    fn handler(&self) -> MethodRouter<App> {
        let handlers = self.operations.iter().filter_map(|operation| operation.handler);
        handlers.fold(MethodRouter::new(), |all, handler| all.merge(handler()))
    }
}

const UNKNOWN: Refusal = refusal(404, "No scenario is called so; `candidates` holds near names.");
const UNSURE: Refusal = refusal(409, "The name could mean several tools: `candidates` names them.");
const NO_TOOL: Refusal =
    refusal(404, "No tool is called so, or it is not published now; the answer says why, or offers near names.");
const BUSY: Refusal = refusal(503, "Too many follow already; `Retry-After` says when to try again.")
    .made(|| Problem::busy(SubscribeError::Full(1_000).to_string()));
const CANNOT_ASK: Refusal = refusal(409, "It is blocked, or there is no address to ask.");
const TOO_MANY: Refusal =
    refusal(409, "There are as many preferences as are kept.").made(|| EngineError::TooManyPreferences.into());
const NOT_ALLOWED: Refusal = refusal(409, "Its standing does not allow that now; the answer says what to do first.");

/// Every route there is, but the pages of the dashboard. A line is one thing that is said of an operation.
#[rustfmt::skip]
pub(super) const ROUTES: &[Route] = &[
    route("/", &[], &[
        operation(Get, Daemon, "listRoutes", "what can be asked", json::<health::Index>("every route"), || get(dashboard::front))
            .about("Browsers, which ask for `text/html`, get the dashboard."),
    ]),
    route("/healthz", &[], &[
        operation(Get, Daemon, "isAlive", "whether the daemon lives", json::<health::Live>("it does"), || get(health::live)),
    ]),
    route("/readyz", &[], &[
        operation(Get, Daemon, "isReady", "whether every scenario that is configured was asked, else 503", json::<health::Ready<'_>>("it was"), || get(health::ready))
            .also(&[json::<health::Ready<'_>>("some are still awaited").status(503)]),
    ]),
    route("/metrics", &[], &[
        operation(Get, Daemon, "scrapeMetrics", "what was counted, for Prometheus", text("application/openmetrics-text; version=1.0.0; charset=utf-8", "the metrics"), || get(metrics::scrape))
            .about("Who would rather have `text/plain` gets the older format of Prometheus."),
    ]),
    route("/openapi.json", &[], &[
        operation(Get, Daemon, "describeApi", "this description", json::<Map<String, Value>>("an OpenAPI 3.1 document"), || get(api::serve::serve))
            .about("`/docs` shows it as a page.")
            .revalidates(),
    ]),
    route("/api/v1/tools", &[], &[
        operation(Get, Tools, "listTools", "the list of tools", json::<AnyToolList<'_>>("the tools in the shape that was asked for").headers(tools::HEADERS), || get(tools::list_route))
            .about("Without parameters every tool that is published and enabled, as a manifest of the Tool Discovery Protocol. A filter that matches nothing gives an empty list.")
            .query(&ListQuery::KNOWN)
            .revalidates(),
    ]),
    route("/api/v1/tools/search", &[], &[
        operation(Get, Tools, "searchTools", "the tools that fit a text best, with why", json::<search::Answer<'_>>("the tools, the best first"), || get(search::search))
            .query(search::KNOWN)
            .revalidates(),
    ]),
    route("/api/v1/tools/{*name}", &[params::TOOL_NAME], &[
        operation(Get, Tools, "getTool", "one tool", json::<AnyTool>("the tool in the shape that was asked for").headers(tools::ONE_HEADERS), || get(tools::one_route))
            .about("A disabled tool is shown as such in the native format; formats for LLMs give only out what they list.")
            .query(tools::ONE)
            .refuses(&[NO_TOOL, UNSURE])
            .revalidates(),
        within("/explain", Tools, "explainTool", "why a tool is or is not in the list", json::<tools::Explained<'_>>("every decision with its source"))
            .about("Tools that are not published are explained, too.")
            .query(tools::EXPLAIN)
            .refuses(&[NO_TOOL, UNSURE]),
    ]),
    route("/api/v1/scenarios", &[], &[
        operation(Get, Scenarios, "listScenarios", "the health of every scenario", json::<scenarios::Everybody<'_>>("the scenarios, in order of their names"), || get(scenarios::all))
            .query(scenarios::STATES),
    ]),
    route("/api/v1/scenarios/{name}", &[params::SCENARIO_NAME], &[
        operation(Get, Scenarios, "getScenario", "the health of one scenario with its findings", json::<scenarios::Examined<'_>>("the scenario"), || get(scenarios::one))
            .refuses(&[UNKNOWN]),
    ]),
    route("/api/v1/scenarios/{name}/refresh", &[params::SCENARIO_NAME], &[
        operation(Post, Scenarios, "refreshScenario", "asks it now", json::<HealthJson<'_>>("its health after that, whatever came of it"), || post(scenarios::refresh))
            .refuses(&[UNKNOWN, CANNOT_ASK]),
    ]),
    route("/api/v1/scenarios/{name}/trust", &[params::SCENARIO_NAME], &[
        operation(Post, Scenarios, "trustScenario", "trusts its address", json::<HealthJson<'_>>("its health after that"), || post(scenarios::trust))
            .about("Its address may be used although its source does not vouch for it. Lifts a block.")
            .query(scenarios::ORIGIN)
            .refuses(&[UNKNOWN, NOT_ALLOWED])
            .stores(),
        operation(Delete, Scenarios, "untrustScenario", "takes the trust back", json::<HealthJson<'_>>("its health after that"), || delete(scenarios::untrust))
            .refuses(&[UNKNOWN, NOT_ALLOWED])
            .stores(),
    ]),
    route("/api/v1/scenarios/{name}/block", &[params::SCENARIO_NAME], &[
        operation(Post, Scenarios, "blockScenario", "neither asks nor publishes it", json::<HealthJson<'_>>("its health after that"), || post(scenarios::block))
            .refuses(&[UNKNOWN])
            .stores(),
        operation(Delete, Scenarios, "unblockScenario", "takes the block back", json::<HealthJson<'_>>("its health after that"), || delete(scenarios::unblock))
            .about("Changes nothing when it is not blocked, not even its trust.")
            .refuses(&[UNKNOWN])
            .stores(),
    ]),
    route("/api/v1/preferences", &[], &[
        operation(Get, Preferences, "listPreferences", "preferences by scope and target", json::<preferences::Preferences>("the preferences, in order"), || get(preferences::all))
            .query(preferences::FILTERS),
        operation(Put, Preferences, "setPreference", "changes the settings that the body speaks of", json::<preferences::Changed>("the preference as it is now, durable and published"), || put(preferences::change))
            .about("The tool or scenario need not exist now.")
            .body::<preferences::ChangeBody>()
            .refuses(&[TOO_MANY])
            .stores(),
        operation(Delete, Preferences, "resetPreference", "makes settings inherit again", json::<preferences::Changed>("the preference as it is now"), || delete(preferences::reset))
            .query(preferences::RESET)
            .stores(),
    ]),
    route("/api/v1/findings", &[], &[
        operation(Get, Daemon, "listFindings", "every open finding", json::<findings::Findings<'_>>("what was left out, renamed, hidden or kept old, and why"), || get(findings::all))
            .query(findings::FILTERS),
    ]),
    route("/api/v1/events", &[], &[
        operation(Get, Events, "followEvents", "changes as they happen, as server-sent events", streamed::<Streamed>("a stream that ends when the daemon stops or the client does not keep up"), || get(events::follow))
            .about("The first event is a `snapshot`, unless the cursor is known: then nothing was lost. `data` of each is that of the schema `Event`, `event` its kind, `id` its cursor. A comment shows now and then that the stream lives; an event `end` says why it ends.")
            .query(&events::KNOWN)
            .asked_with(events::RESUMED)
            .refuses(&[BUSY]),
    ]),
    route("/api/v1/ws", &[], &[
        operation(Get, Events, "followEventsBySocket", "changes as they happen, over a WebSocket", Answer { status: 101, about: "the socket is open", content: None, headers: &[] }, || get(socket::follow))
            .about("Each message is one text frame that holds an `Event`. The socket only tells: it is closed with 1008 when the client says something, 1013 when it does not keep up, 1001 when the daemon stops.")
            .query(&events::KNOWN)
            .asked_with(events::RESUMED)
            .refuses(&[refusal(426, "This is only answered over a WebSocket (RFC 6455)."), BUSY]),
    ]),
    route("/api/v1/tools/set", &[], &[
        operation(Get, Inbox, "getToolSet", "scenarios, tools with their settings, categories", json::<inbox_wire::ToolSet<'_>>("every tool, whether enabled or not"), || get(inbox::tool_set))
            .query(inbox::CHAT),
    ]),
    route("/api/v1/tools/scenarios", &[], &[
        operation(Get, Inbox, "listScenarioStatuses", "which scenarios answer", json::<Vec<inbox_wire::Status<'_>>>("every known scenario, dead ones too"), || get(inbox::statuses)),
    ]),
    route("/api/v1/tools/config", &[], &[
        operation(Post, Inbox, "setToolEnabled", "switches a tool on or off", json::<inbox_wire::Done>("what was set"), || post(inbox::set_enabled))
            .body::<inbox::EnabledBody>()
            .refuses(&[TOO_MANY])
            .stores(),
        operation(Delete, Inbox, "resetTool", "resets whether a tool is enabled and needs approval", json::<inbox_wire::Done>("what was reset"), || delete(inbox::reset))
            .query(inbox::RESET)
            .stores(),
    ]),
    route("/api/v1/tools/config/approval", &[], &[
        operation(Post, Inbox, "setToolApproval", "sets whether calls of a tool need approval", json::<inbox_wire::Done>("what was set"), || post(inbox::set_approval))
            .body::<inbox::ApprovalBody>()
            .refuses(&[TOO_MANY])
            .stores(),
    ]),
    route("/api/v1/tools/sync", &[], &[
        operation(Post, Inbox, "syncTools", "asks every scenario now", json::<inbox_wire::Synced>("what came of it"), || post(inbox::sync)),
    ]),
];

/// The router of all routes, with bodies of at most `max_body` bytes.
pub(super) fn router(shared: App, max_body: usize) -> Router {
    let router = ROUTES.iter().fold(Router::new(), |router, route| router.route(route.path, route.handler()));
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
