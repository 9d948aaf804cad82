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
use axum::routing::get;
use http::HeaderMap;
use tokio::sync::Semaphore;

use super::{App, health, routes, wire};
use crate::catalog::CatalogReader;
use crate::runtime::{Clock, Stop, Tasks};

mod assets;
mod history;
mod live;
mod page;
mod plots;
mod row;
mod scenarios;
mod text;

/// Pages that are followed at once at most.
const STREAMS: usize = 128;

/// What the pages need beside what every handler can reach.
#[derive(Debug)]
pub(super) struct Dashboard {
    history: history::History,
    streams: Arc<Semaphore>,
    stop: Stop,
}

impl Dashboard {
    /// Begins to remember what pages show of the past.
    pub(super) fn start(reader: CatalogReader, clock: Clock, tasks: &Tasks, stop: Stop) -> Self {
        let history = history::History::start(reader, clock, tasks, stop.clone());
        Self { history, streams: Arc::new(Semaphore::new(STREAMS)), stop }
    }
}

/// Every page, part of a page and file.
pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/", get(front))
        .route("/dashboard/assets/{name}", get(assets::serve))
        .route("/dashboard/live", get(live::follow))
        .route("/dashboard/scenarios", get(scenarios::part))
}

/// `GET /`: the page of the scenarios for browsers, the table of routes for everybody else.
async fn front(state: State<App>, query: RawQuery, asked: HeaderMap) -> Response {
    if page::wants_page(&asked) {
        return scenarios::page(state, query, asked).await.into_response();
    }
    let mut answer = wire::json(&health::index(routes::ROUTES)).into_response();
    answer.headers_mut().insert(http::header::VARY, http::HeaderValue::from_static("accept"));
    answer
}
