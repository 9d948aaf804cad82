//! The HTTP face: what the daemon knows, for programs and people, and the actions that operators and users take.
//!
//! A request passes the [`guard`] first. The list and single tools are then answered by [`front`], the thin way in; everything else
//! goes through the table in [`routes`]. Each request is answered from one snapshot. Nothing here decides anything about tools:
//! reading goes to `catalog` and `views`, changing goes to the engine, calling to `calls`.
//!
//! Never done here: asking scenarios, keeping state, telling a client the details of an unexpected failure (those go to the log).

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::calls::Calls;
use crate::catalog::CatalogReader;
use crate::config;
use crate::engine::EngineHandle;
use crate::events::Hub;
use crate::metrics::Requests;
use crate::runtime::{Clock, Readiness, Stop, Tasks};
use crate::views::Views;

mod accept;
mod api;
mod approvals;
mod body;
mod call_shapes;
mod call_wire;
mod calls;
mod coding;
mod dashboard;
mod decider;
mod error;
mod event_wire;
mod events;
mod findings;
mod front;
mod guard;
mod health;
mod inbox;
mod inbox_wire;
mod keeping;
mod kept;
mod lookup;
mod metrics;
mod modules;
mod operations;
mod params;
mod preferences;
mod query;
mod repeats;
mod routes;
mod scenarios;
mod search;
mod sent;
mod socket;
mod tools;
mod wire;

pub use kept::Kept;

/// What the HTTP face needs of the others.
#[derive(Debug)]
pub struct Parts {
    /// What is published.
    pub reader: CatalogReader,
    /// The prepared lists.
    pub views: Views,
    /// Where changes go.
    pub engine: EngineHandle,
    /// Where tools are called.
    pub calls: Calls,
    /// Where changes are heard.
    pub events: Hub,
    /// What `/readyz` tells.
    pub readiness: Readiness,
    /// `[server]` of the configuration.
    pub config: config::Server,
    /// Every value of the configuration with where it comes from, for the dashboard; empty when a program made it.
    pub settings: watch::Receiver<config::ShownValues>,
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
struct Shared {
    reader: CatalogReader,
    views: Views,
    engine: EngineHandle,
    calls: Calls,
    events: Hub,
    readiness: Readiness,
    clock: Clock,
    tasks: Tasks,
    repeats: repeats::Repeats,
    lately: keeping::Lately,
    requests: Arc<Requests>,
    dashboard: dashboard::Dashboard,
}

/// The state of the axum routes.
type App = Arc<Shared>;

/// A listener that is answered on already, while what answers is still made: lists of the run before are given out at once, everything else
/// waits.
#[derive(Debug)]
pub struct Opening {
    front: front::Front,
    serving: AbortOnDropHandle<usize>,
    local: SocketAddr,
}

/// Begins to answer on a listener, until `stop`.
///
/// # Errors
/// [`ServeError::Address`] alone.
pub fn open(
    listener: TcpListener,
    config: &config::Server,
    kept: Option<Kept>,
    clock: Clock,
    tasks: &Tasks,
    stop: &Stop,
) -> Result<Opening, ServeError> {
    let local = listener.local_addr().map_err(ServeError::Address)?;
    let limits = accept::Limits {
        connections: config.max_connections,
        stop_timeout: config.stop_timeout,
        ..accept::Limits::default()
    };
    let guard = guard::Guard::new(config);
    let front = front::Front::new(front::Early { guard, kept, clock, tasks: tasks.clone() });
    let (all, of_all, stop) = (front.clone(), tasks.clone(), stop.clone());
    let serve = move |stream: &TcpStream, let_go| {
        all.connection(stream.local_addr().unwrap_or(local).ip(), events::LetGo(Arc::new(let_go)))
    };
    let serving = async move { accept::serve(listener, serve, limits, clock, &of_all, &stop).await };
    Ok(Opening { front, serving: AbortOnDropHandle::new(tasks.spawn(serving)), local })
}

impl Opening {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.local
    }

    /// Answers everything from here on, until the stop; see [`run`]. With `keep`, lists are kept beside the database at that place for the next
    /// start.
    pub async fn serve(self, parts: Parts, keep: Option<PathBuf>, stop: Stop) -> Result<(), ServeError> {
        let Parts { reader, views, engine, calls, events, readiness, config, settings, clock, tasks } = parts;
        let dashboard = dashboard::Dashboard::start(reader.clone(), settings, clock, &tasks, stop.clone());
        let kept = self.front.kept();
        let written = kept.as_deref().map(keeping::Written::of);
        let shared = Arc::new(Shared {
            reader,
            views,
            engine,
            calls,
            events,
            readiness,
            clock,
            tasks: tasks.clone(),
            repeats: repeats::Repeats::default(),
            lately: keeping::Lately::of(kept.iter().flat_map(|kept| kept.asked())),
            requests: Arc::clone(self.front.requests()),
            dashboard,
        });
        drop(kept);
        if let Some(database) = keep {
            tasks.spawn(keeping::run(Arc::clone(&shared), database, written, stop));
        }
        self.front.begin(shared, config.max_body);
        tracing::info!(address = %self.local, "serving");
        match self.serving.await {
            Ok(0) => Ok(()),
            Ok(connections) => Err(ServeError::Cut { connections }),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime goes down.
                Err(_cancelled) => Ok(()),
            },
        }
    }
}

/// Serves until `stop`: then no connection is accepted any more, answers under way may finish within `server.stop_timeout`, and what
/// is left is cut off.
///
/// Speaks HTTP/1.1 and HTTP/2 with prior knowledge (RFC 9113 section 3.3), both without TLS.
///
/// # Errors
/// [`ServeError::Cut`] when something had to be cut off; `Ok` means that every answer was finished.
pub async fn run(listener: TcpListener, parts: Parts, stop: Stop) -> Result<(), ServeError> {
    let opening = open(listener, &parts.config, None, parts.clock, &parts.tasks, &stop)?;
    opening.serve(parts, None, stop).await
}
