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

use crate::catalog::CatalogReader;
use crate::config::ShownValue;
use crate::runtime::{Clock, Stop, Tasks};
use crate::server::App;
use crate::server::auth::Right;
use crate::server::auth::Right::{Call, Prefer, Read};
use crate::server::auth::{InForce, guarded};

mod assets;
mod bulk;
mod bulk_bar;
mod calls;
mod configuration;
mod docs;
mod findings;
mod guard;
mod history;
mod links;
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
    settings: watch::Receiver<Vec<ShownValue>>,
}

impl Dashboard {
    /// Begins to remember what pages show of the past. `settings` is the configuration in force.
    pub(super) fn start(
        reader: CatalogReader,
        settings: watch::Receiver<Vec<ShownValue>>,
        clock: Clock,
        tasks: &Tasks,
        stop: Stop,
    ) -> Self {
        let history = history::History::start(reader, clock, tasks, stop.clone());
        let (streams, looks) = (Arc::new(Semaphore::new(STREAMS)), Semaphore::new(raw::LOOKS));
        Self { history, streams, looks, stop, settings }
    }
}

/// One path with what it answers.
pub(super) struct Entry {
    pub(super) path: &'static str,
    /// What its caller needs.
    pub(super) right: Right,
    handler: fn() -> MethodRouter<App>,
}

const fn entry(path: &'static str, right: Right, handler: fn() -> MethodRouter<App>) -> Entry {
    Entry { path, right, handler }
}

/// Every page, part of a page, action and file.
pub(super) const ENTRIES: &[Entry] = &[
    entry("/dashboard/assets/{name}", Read, || get(assets::serve)),
    entry("/dashboard/live", Read, || get(live::follow)),
    entry("/dashboard/scenarios", Read, || get(scenarios::part)),
    entry("/dashboard/scenarios/{name}", Read, || get(scenario::page)),
    entry("/dashboard/scenarios/{name}/now", Read, || get(scenario::now)),
    entry("/dashboard/scenarios/{name}/offer", Read, || get(scenario::offer_part)),
    entry("/dashboard/scenarios/{name}/model", Read, || get(scenario::model)),
    entry("/dashboard/scenarios/{name}/raw", Call, || post(raw::look)),
    entry("/dashboard/tools", Read, || get(tools::page)),
    entry("/dashboard/tools/rows", Read, || get(tools::part)),
    entry("/dashboard/tools/formats", Read, || get(tools::formats)),
    entry("/dashboard/tools/preference", Prefer, || put(tools::prefer)),
    entry("/dashboard/tools/preferences", Prefer, || post(bulk::change)),
    entry("/dashboard/tool", Read, || get(tool::page)),
    entry("/dashboard/tool/format", Read, || get(tool::format)),
    entry("/dashboard/calls", Read, || get(calls::page)),
    entry("/dashboard/calls/now", Read, || get(calls::part)),
    entry("/dashboard/findings", Read, || get(findings::page)),
    entry("/dashboard/findings/now", Read, || get(findings::part)),
    entry("/dashboard/preferences", Read, || get(preferences::page)),
    entry("/dashboard/preferences/now", Read, || get(preferences::part)),
    entry("/dashboard/configuration", Read, || get(configuration::page)),
    entry("/docs", Read, || get(docs::page)),
];

/// The paths of all of them, by which requests are counted.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    ENTRIES.iter().map(|entry| entry.path)
}

/// The router of all of them, each behind its right.
pub(super) fn router(config: &InForce) -> Router<App> {
    let guarded = |entry: &Entry| guarded((entry.handler)(), entry.right, config);
    ENTRIES.iter().fold(Router::new(), |router, entry| router.route(entry.path, guarded(entry)))
}

/// `GET /` for browsers: the page of the scenarios. `None` for a client that wants data.
pub(super) fn home(state: State<App>, query: RawQuery, asked: &HeaderMap) -> Option<Response> {
    page::wants_page(asked).then(|| scenarios::page(state, query, asked).into_response())
}
