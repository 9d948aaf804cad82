//! The dashboard: HTML pages for operators, rendered on the server and updated by events.
//!
//! ```text
//! GET /dashboard/... -> handler -> snapshot -> sections (Markup) -> page (frame) -> document
//! GET /dashboard/live -> event `health`, `calls`, ... -> the script fetches the parts again
//! button -> route of the API, or the same function
//! ```
//!
//! What is kept true here:
//!
//! - A page is a whole document that can be read without scripts. With scripts, parts of it are
//!   fetched again when [`live`] sends an event; no part is polled on a timer.
//! - Strings from scenarios pass [`text::foreign`] or another function of that module. The pages
//!   have no inline scripts or styles, and load files from no other host.
//! - This module makes no decisions about tools or calls. Actions go to the routes of the API, or
//!   call the same functions.
//! - Each row of its table of routes names its right, like those of the API.
//!
//! Read in this order:
//!
//! 1. This file (the table of routes), `page.rs` (the frame), `text.rs`, `links.rs`,
//!    `security_headers.rs`, `assets.rs`, `live.rs`, `nav_numbers.rs`.
//! 2. The first page: `scenarios.rs`, `scenario_row.rs`, `overview.rs`, `connect.rs`, `add.rs`; and
//!    one scenario: `scenario.rs`, `login.rs`, `raw_answer.rs`, `history.rs`, `plots.rs`.
//! 3. Tools: `tools.rs`, `bulk.rs`, `bulk_bar.rs`; one tool: `tool.rs`, `schema.rs`, `try_tool.rs`,
//!    `first_value.rs`; `bundles.rs`.
//! 4. Calls: `calls.rs`, `latest_calls.rs`, `decided_call.rs`, `interactions.rs`.
//! 5. `findings.rs`, `finding_list.rs`, `causes.rs`; `preferences.rs`, `configuration.rs`,
//!    `docs.rs`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, RawQuery, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get, post, put};
use http::HeaderMap;
use tokio::sync::{Semaphore, watch};

use crate::catalog::CatalogReader;
use crate::config::EffectiveValue;
use crate::runtime::{Clock, Stop, Tasks};
use crate::server::SharedState;
use crate::server::auth::Right;
use crate::server::auth::Right::{Call, Operate, Prefer, Read};
use crate::server::http::error::Problem;
use crate::server::http::held::ConnectionBytes;
use crate::server::rendered::rendered;
use crate::server::route_layer::require_right;

mod add;
mod assets;
mod bulk;
mod bulk_bar;
mod bundles;
mod calls;
mod causes;
mod configuration;
mod connect;
mod decided_call;
mod docs;
mod finding_list;
mod findings;
mod first_value;
mod history;
mod interactions;
mod latest_calls;
mod links;
mod live;
mod login;
mod nav_numbers;
mod overview;
mod page;
mod pins;
mod plots;
mod preferences;
mod profiles;
mod raw_answer;
mod scenario;
mod scenario_row;
mod scenarios;
mod schema;
mod security_headers;
mod text;
mod tool;
mod tools;
mod try_tool;

/// The header that htmx sends with each request.
const HX_REQUEST: &str = "hx-request";
/// At most this many pages follow events at once.
const STREAMS: usize = 128;

/// State of the pages, besides what every handler can reach.
#[derive(Debug)]
pub(super) struct Dashboard {
    history: history::History,
    errors: nav_numbers::ErrorCount,
    streams: Arc<Semaphore>,
    raw_polls: Semaphore,
    stop: Stop,
    settings: watch::Receiver<Vec<EffectiveValue>>,
}

impl Dashboard {
    /// Starts to record the history that pages show. `settings` is the active configuration.
    pub(super) fn start(
        reader: CatalogReader,
        settings: watch::Receiver<Vec<EffectiveValue>>,
        clock: Clock,
        tasks: &Tasks,
        stop: Stop,
    ) -> Self {
        let history = history::History::start(reader, clock, tasks, stop.clone());
        let streams = Arc::new(Semaphore::new(STREAMS));
        let looks = Semaphore::new(raw_answer::MAX_CONCURRENT);
        let errors = nav_numbers::ErrorCount::default();
        Self {
            history,
            errors,
            streams,
            raw_polls: looks,
            stop,
            settings,
        }
    }
}

/// One route: its path, its right and its handler.
pub(super) struct PageRoute {
    pub(super) path: &'static str,
    /// The right that its client needs.
    pub(super) right: Right,
    kind: PageRouteKind,
    handler: fn() -> MethodRouter<SharedState>,
}

/// What a route of the dashboard sends.
#[derive(Clone, Copy)]
enum PageRouteKind {
    /// A page, which is made when it is its turn.
    Page,
    /// A part of a page, which its page fetches, made in the same way.
    Part,
    /// No page, or one that waits for other programs.
    Other,
}

const fn page_route(
    path: &'static str,
    right: Right,
    handler: fn() -> MethodRouter<SharedState>,
) -> PageRoute {
    PageRoute {
        path,
        right,
        kind: PageRouteKind::Page,
        handler,
    }
}

const fn part_route(path: &'static str, handler: fn() -> MethodRouter<SharedState>) -> PageRoute {
    PageRoute {
        path,
        right: Read,
        kind: PageRouteKind::Part,
        handler,
    }
}

const fn other_route(
    path: &'static str,
    right: Right,
    handler: fn() -> MethodRouter<SharedState>,
) -> PageRoute {
    PageRoute {
        path,
        right,
        kind: PageRouteKind::Other,
        handler,
    }
}

/// All routes: pages, parts of pages, actions and files.
pub(super) const PAGE_ROUTES: &[PageRoute] = &[
    other_route("/dashboard/assets/{name}", Read, || get(assets::serve)),
    other_route("/dashboard/live", Read, || get(live::follow)),
    part_route("/dashboard/overview", || get(overview::part)),
    part_route("/dashboard/overview/calls", || get(overview::calls_part)),
    part_route("/dashboard/scenarios", || get(scenarios::part)),
    page_route("/dashboard/scenarios/{name}", Read, || get(scenario::page)),
    part_route("/dashboard/scenarios/{name}/now", || get(scenario::now)),
    part_route("/dashboard/scenarios/{name}/offer", || {
        get(scenario::offer_part)
    }),
    part_route("/dashboard/scenarios/{name}/model", || get(scenario::model)),
    other_route("/dashboard/scenarios/{name}/raw", Call, || {
        post(raw_answer::poll_raw)
    }),
    other_route("/dashboard/scenarios/{name}/login", Operate, || {
        post(login::begin)
    }),
    other_route(login::CALLBACK, Read, || get(login::callback)),
    other_route(login::CALLBACK_OF_ISSUER, Read, || get(login::callback)),
    page_route("/dashboard/tools", Read, || get(tools::page)),
    part_route("/dashboard/tools/rows", || get(tools::part)),
    part_route("/dashboard/tools/formats", || get(tools::formats)),
    other_route("/dashboard/tools/preference", Prefer, || put(tools::prefer)),
    other_route("/dashboard/tools/preferences", Prefer, || {
        post(bulk::change)
    }),
    page_route("/dashboard/tool", Read, || get(tool::page)),
    part_route("/dashboard/tool/format", || get(tool::format)),
    part_route("/dashboard/tool/now", || get(tool::settings_part)),
    part_route("/dashboard/tool/calls", || get(tool::calls_part)),
    page_route("/dashboard/calls", Read, || get(calls::page)),
    part_route("/dashboard/calls/now", || get(calls::part)),
    part_route("/dashboard/calls/latest", || get(latest_calls::part)),
    page_route("/dashboard/calls/{id}", Read, || get(decided_call::page)),
    page_route("/dashboard/findings", Read, || get(findings::page)),
    part_route("/dashboard/findings/now", || get(findings::part)),
    page_route("/dashboard/preferences", Read, || get(preferences::page)),
    part_route("/dashboard/preferences/now", || get(preferences::part)),
    other_route("/dashboard/profiles/set", Operate, || post(profiles::set)),
    other_route("/dashboard/profiles/remove", Operate, || {
        post(profiles::remove)
    }),
    page_route("/dashboard/bundles", Read, || get(bundles::page)),
    part_route("/dashboard/bundles/now", || get(bundles::part)),
    other_route("/dashboard/bundles/new", Operate, || post(bundles::create)),
    page_route("/dashboard/bundles/{id}/edit", Read, || get(bundles::edit)),
    other_route("/dashboard/bundles/{id}/tool", Operate, || {
        post(bundles::store)
    }),
    other_route("/dashboard/bundles/{id}/draft", Operate, || {
        post(bundles::draft)
    }),
    other_route("/dashboard/bundles/{id}/try", Operate, || {
        post(bundles::try_draft)
    }),
    other_route("/dashboard/bundles/{id}/switch", Operate, || {
        post(bundles::set_enabled)
    }),
    other_route("/dashboard/bundles/{id}/rename", Operate, || {
        post(bundles::change)
    }),
    other_route("/dashboard/bundles/{id}/delete", Operate, || {
        post(bundles::delete)
    }),
    other_route("/dashboard/bundles/{id}/restore", Operate, || {
        post(bundles::restore)
    }),
    page_route("/dashboard/configuration", Read, || {
        get(configuration::page)
    }),
    page_route("/docs", Read, || get(docs::page)),
];

/// The paths of all routes, by which requests are counted.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    PAGE_ROUTES.iter().map(|entry| entry.path)
}

/// The router of all routes, each behind its right.
pub(super) fn router(shared: &SharedState) -> Router<SharedState> {
    let guarded = |entry: &PageRoute| {
        let handler = (entry.handler)();
        let made = from_fn_with_state(Arc::clone(shared), make_page);
        let handler = match entry.kind {
            PageRouteKind::Page => handler.route_layer(made),
            PageRouteKind::Part => handler.route_layer(made).layer(from_fn(whole_page)),
            PageRouteKind::Other => handler,
        };
        require_right(handler, entry.right, &shared.config)
    };
    PAGE_ROUTES.iter().fold(Router::new(), |router, entry| {
        router.route(entry.path, guarded(entry))
    })
}

/// Leads a browser that opens a part of a page to the page: alone it would have no style and no
/// navigation. Pages fetch their parts with `HX-Request`.
async fn whole_page(request: Request, next: Next) -> Response {
    if request.headers().contains_key(HX_REQUEST) || !page::wants_page(request.headers()) {
        return next.run(request).await;
    }
    let query = request
        .uri()
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    Redirect::to(&format!("{}{query}", page_around(request.uri().path()))).into_response()
}

/// The page that a part belongs to.
fn page_around(part: &str) -> &str {
    match part {
        "/dashboard/scenarios" | "/dashboard/overview" | "/dashboard/overview/calls" => "/",
        _ => part.rsplit_once('/').map_or("/", |(page, _)| page),
    }
}

/// Makes a page when it is its turn.
async fn make_page(
    State(shared): State<SharedState>,
    Extension(bytes): Extension<ConnectionBytes>,
    request: Request,
    next: Next,
) -> Response {
    let made = rendered(&shared, &bytes, next.run(request)).await;
    made.unwrap_or_else(|full| page::ErrorPage::from(Problem::from(full)).into_response())
}

/// The answer to a browser for a path that matches no route: a page. `None` for a client that wants
/// data. `/dashboard` alone leads every client to the first page.
pub(super) fn unknown(
    path: &str,
    headers: &HeaderMap,
    problem: impl FnOnce() -> Problem,
) -> Option<Response> {
    let to = |path: &'static str| Redirect::to(path).into_response();
    match path {
        "/dashboard" | "/dashboard/" => Some(to("/")),
        "/docs/" => Some(to("/docs")),
        _ => page::wants_page(headers).then(|| page::ErrorPage::from(problem()).into_response()),
    }
}

/// `GET /` for browsers: the page of the scenarios. `None` for a client that wants data.
pub(super) async fn home(
    state: State<SharedState>,
    bytes: &ConnectionBytes,
    query: RawQuery,
    headers: HeaderMap,
) -> Option<Response> {
    if !page::wants_page(&headers) {
        return None;
    }
    let shared = Arc::clone(&state.0);
    let made = rendered(&shared, bytes, async move {
        scenarios::page(state, query, &headers)
            .await
            .into_response()
    })
    .await;
    Some(made.unwrap_or_else(|full| page::ErrorPage::from(Problem::from(full)).into_response()))
}
