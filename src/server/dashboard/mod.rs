//! The dashboard: pages for operators, made here, kept true by events.
//!
//! Pages are whole documents that also work without scripts for reading. With them, parts of a page are fetched again when
//! [`live`] tells that something changed; nothing is asked for by the clock. Everything that scenarios wrote passes [`text::foreign`].
//!
//! Never done here: deciding anything. Actions go to the routes of the API, or call what those call.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post, put};
use http::HeaderMap;
use tokio::sync::{Semaphore, watch};

use super::{App, health, routes, wire};
use crate::catalog::CatalogReader;
use crate::config::ShownValues;
use crate::runtime::{Clock, Stop, Tasks};

mod assets;
mod bulk;
mod calls;
mod configuration;
mod docs;
mod findings;
mod history;
mod live;
mod page;
mod plots;
mod preferences;
mod raw;
mod row;
mod scenario;
mod scenarios;
mod schema;
mod text;
mod tool;
mod tools;

/// Pages that are followed at once at most.
const STREAMS: usize = 128;

/// What the pages need beside what every handler can reach.
#[derive(Debug)]
pub(super) struct Dashboard {
    history: history::History,
    streams: Arc<Semaphore>,
    looks: Semaphore,
    stop: Stop,
    settings: watch::Receiver<ShownValues>,
}

impl Dashboard {
    /// Begins to remember what pages show of the past. `settings` is the configuration in force.
    pub(super) fn start(
        reader: CatalogReader,
        settings: watch::Receiver<ShownValues>,
        clock: Clock,
        tasks: &Tasks,
        stop: Stop,
    ) -> Self {
        let history = history::History::start(reader, clock, tasks, stop.clone());
        let (streams, looks) = (Arc::new(Semaphore::new(STREAMS)), Semaphore::new(raw::LOOKS));
        Self { history, streams, looks, stop, settings }
    }
}

/// What a path answers.
type Handler = fn() -> MethodRouter<App>;

/// Every page, part of a page and file.
const PAGES: &[(&str, Handler)] = &[
    ("/dashboard/assets/{name}", || get(assets::serve)),
    ("/dashboard/live", || get(live::follow)),
    ("/dashboard/scenarios", || get(scenarios::part)),
    ("/dashboard/scenarios/{name}", || get(scenario::page)),
    ("/dashboard/scenarios/{name}/now", || get(scenario::now)),
    ("/dashboard/scenarios/{name}/offer", || get(scenario::offer_part)),
    ("/dashboard/scenarios/{name}/model", || get(scenario::model)),
    ("/dashboard/scenarios/{name}/raw", || post(raw::look)),
    ("/dashboard/tools", || get(tools::page)),
    ("/dashboard/tools/rows", || get(tools::part)),
    ("/dashboard/tools/formats", || get(tools::formats)),
    ("/dashboard/tools/preference", || put(tools::prefer)),
    ("/dashboard/tools/preferences", || post(bulk::change)),
    ("/dashboard/tool", || get(tool::page)),
    ("/dashboard/tool/format", || get(tool::format)),
    ("/dashboard/calls", || get(calls::page)),
    ("/dashboard/calls/now", || get(calls::part)),
    ("/dashboard/findings", || get(findings::page)),
    ("/dashboard/findings/now", || get(findings::part)),
    ("/dashboard/preferences", || get(preferences::page)),
    ("/dashboard/preferences/now", || get(preferences::part)),
    ("/dashboard/configuration", || get(configuration::page)),
    ("/docs", || get(docs::page)),
];

/// The paths of all of them, by which requests are counted.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(path, _)| *path)
}

/// The router of all of them.
pub(super) fn router() -> Router<App> {
    PAGES.iter().fold(Router::new(), |router, (path, handler)| router.route(path, handler()))
}

/// `GET /`: the page of the scenarios for browsers, the table of routes for everybody else.
pub(super) async fn front(state: State<App>, query: RawQuery, asked: HeaderMap) -> Response {
    if page::wants_page(&asked) {
        return scenarios::page(state, query, &asked).into_response();
    }
    table()
}

/// Not async itself: the table holds [`front`], whose type would depend on itself.
fn table() -> Response {
    let mut answer = wire::json(&health::index(routes::ROUTES)).into_response();
    answer.headers_mut().insert(http::header::VARY, http::HeaderValue::from_static("accept"));
    answer
}
