//! The HTTP face: what the daemon knows, for programs and people, and the actions that operators and users take.
//!
//! A request passes the [`guard`](http::guard) first. The list is then answered by [`http_service`], before the router; everything else
//! goes through the table in [`routes`], where the right of its operation is checked ([`auth`]). Each
//! request is answered from one snapshot. Nothing here decides anything about tools: reading goes to
//! `catalog` and `views`, changing goes to the engine, calling to `calls`.
//!
//! Never done here: asking scenarios, keeping state, telling a client the details of an unexpected failure (those go to the log).

use std::io;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::calls::Calls;
use crate::catalog::CatalogReader;
use crate::config::{self, Config};
use crate::engine::EngineHandle;
use crate::events::Hub;
use crate::metrics::Requests;
use crate::runtime::{Clock, Readiness, Stop, Tasks};
use crate::views::ViewCache;

mod api;
mod auth;
mod compat;
mod dashboard;
mod events;
mod http;
mod http_service;
mod openapi;
mod routes;

/// What the HTTP face needs of the others.
#[derive(Debug)]
pub struct ServerParts {
    /// What is published.
    pub reader: CatalogReader,
    /// The prepared lists.
    pub views: ViewCache,
    /// Where changes go.
    pub engine: EngineHandle,
    /// Where tools are called.
    pub calls: Calls,
    /// Where changes are heard.
    pub events: Hub,
    /// What `/readyz` tells.
    pub readiness: Readiness,
    /// The configuration in force.
    pub config: watch::Receiver<Arc<Config>>,
    /// Every value of the configuration with where it comes from, for the dashboard; empty when a program made it.
    pub settings: watch::Receiver<Vec<config::EffectiveValue>>,
    /// For ages and waits.
    pub clock: Clock,
    /// Runs the connections.
    pub tasks: Tasks,
}

/// Why serving did not end by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener does not know its own address, so the guard cannot know which requests are meant for it.
    #[error("cannot tell the address of the listener")]
    Address(#[source] io::Error),
    /// The stop came, and these many connections still had an answer under way when `server.stop_timeout` was over.
    #[error("{connections} connection(s) were cut off at the end of `server.stop_timeout`")]
    Cut {
        /// How many.
        connections: usize,
    },
}

/// What every handler can reach. One per daemon.
#[derive(Debug)]
struct ServerState {
    reader: CatalogReader,
    views: ViewCache,
    engine: EngineHandle,
    calls: Calls,
    events: Hub,
    readiness: Readiness,
    clock: Clock,
    tasks: Tasks,
    response_cache: http::response_cache::ResponseCache,
    requests: Requests,
    config: auth::ConfigWatch,
    dashboard: dashboard::Dashboard,
}

/// The state of the axum routes.
type SharedState = Arc<ServerState>;

/// Serves until `stop`: then no connection is accepted any more, answers under way may finish within `server.stop_timeout`, and what
/// is left is cut off.
///
/// Speaks HTTP/1.1 and HTTP/2 with prior knowledge (RFC 9113 section 3.3), both without TLS.
///
/// # Errors
/// [`ServeError::Cut`] when something had to be cut off; `Ok` means that every answer was finished.
pub async fn run(listener: TcpListener, parts: ServerParts, stop: Stop) -> Result<(), ServeError> {
    let ServerParts { reader, views, engine, calls, events, readiness, config, settings, clock, tasks } = parts;
    let local = listener.local_addr().map_err(ServeError::Address)?;
    let server = config.borrow().server.clone();
    let limits = http::accept::ConnectionLimits {
        connections: server.max_connections,
        stop_timeout: server.stop_timeout,
        ..http::accept::ConnectionLimits::default()
    };
    let shared = Arc::new(ServerState {
        dashboard: dashboard::Dashboard::start(reader.clone(), settings, clock, &tasks, stop.clone()),
        reader,
        views,
        engine,
        calls,
        events,
        readiness,
        clock,
        tasks: tasks.clone(),
        response_cache: http::response_cache::ResponseCache::default(),
        requests: routes::request_counters(),
        config,
    });
    let front = http_service::HttpService::new(http::guard::Guard::new(&server), shared, server.max_body);
    let serve = move |stream: &TcpStream, let_go| {
        front.connection(stream.local_addr().unwrap_or(local).ip(), events::DisconnectTrigger(Arc::new(let_go)))
    };
    tracing::info!(address = %local, "serving");
    match http::accept::serve(listener, serve, limits, clock, &tasks, &stop).await {
        0 => Ok(()),
        connections => Err(ServeError::Cut { connections }),
    }
}
