//! The HTTP server: shows the state of the daemon to programs and people, and takes the actions of
//! operators and users.
//!
//! ```text
//! connection (http/accept) -> http_service: guard, counters, budget of bytes
//!                              |-> GET of the list ---------------------> views
//!                              `-> routes: table -> auth -> handler ----> catalog, engine, calls
//!                                  (api, compat, events, dashboard, mcp, json_rpc)
//! ```
//!
//! What is kept true here:
//!
//! - Every operation in a table of routes names its right ([`auth`]), and the right is judged
//!   before the handler runs or the body is read. The list alone is answered before the router:
//!   every caller may read it.
//! - A request that shows the catalog or health takes one snapshot and answers from it.
//! - An unexpected failure (500) is a constant text for the client; its details go to the log.
//! - Bytes that are held for a client are reserved before they are needed. Without room the request
//!   is refused.
//! - All decisions about tools are made elsewhere: reads go to `catalog` and `views`, changes to
//!   the engine, calls to `calls`.
//!
//! Read in this order:
//!
//! 1. `routes.rs` (everything that can be requested) with `route_spec.rs` and `route_refusals.rs`;
//!    `http_service.rs` (what each request passes first).
//! 2. `auth/` (rights), `http/` (connections, the guard, bodies, queries, errors).
//! 3. `api/` (one file for each resource), `openapi/` (their description), `events/`; `rendered.rs`
//!    and `readable_arguments.rs` help several of them.
//! 4. The other faces: `mcp/`, `json_rpc/`, `compat/`, `dashboard/`; `command_socket.rs` serves the
//!    same routes to the command line.
//!
//! Never polls scenarios, and keeps no state that outlives the process.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::bundles::BundleStore;
use crate::calls::Calls;
use crate::catalog::CatalogReader;
use crate::config::{self, Config};
use crate::engine::EngineHandle;
use crate::events::Hub;
use crate::metrics::Requests;
use crate::model::Secret;
use crate::protocols::definitions::DefinitionRegistry;
use crate::runtime::{Clock, Readiness, Stop, Tasks, open_files};
use crate::transports::http::credentials::oauth::OAuthTokens;
use crate::views::ViewCache;

mod api;
mod auth;
#[cfg(unix)]
mod command_socket;
mod compat;
mod dashboard;
mod events;
mod http;
mod http_service;
mod json_rpc;
mod mcp;
mod openapi;
mod readable_arguments;
mod rendered;
mod route_layer;
mod route_refusals;
mod route_spec;
mod routes;

pub use self::http::accept::OpenConnections;

/// The other parts of the daemon that the server needs.
#[derive(Debug)]
pub struct ServerParts {
    /// The published snapshot.
    pub reader: CatalogReader,
    /// The prepared lists.
    pub views: ViewCache,
    /// Takes changes.
    pub engine: EngineHandle,
    /// Calls tools.
    pub calls: Calls,
    /// Logins at authorization servers.
    pub logins: Arc<OAuthTokens>,
    /// The stored tools.
    pub bundles: BundleStore,
    /// The definitions of this daemon.
    pub definitions: DefinitionRegistry,
    /// Publishes events.
    pub events: Hub,
    /// The state for `/readyz`.
    pub readiness: Readiness,
    /// The active configuration.
    pub config: watch::Receiver<Arc<Config>>,
    /// Every value of the configuration with its source, for the dashboard; empty if a program
    /// built the configuration.
    pub settings: watch::Receiver<Vec<config::EffectiveValue>>,
    /// How the configuration was loaded, so that its file can be changed; `None` if a program built
    /// the configuration.
    pub load_options: Option<Arc<config::LoadOptions>>,
    /// The key with which it signs and encrypts what MCP clients give back, as the store keeps it.
    /// Without one they begin anew after each start.
    pub key: Option<Secret>,
    /// The path of the Unix socket on which it listens too, for the command line.
    pub command_socket: Option<PathBuf>,
    /// Counts the open connections.
    pub connections: OpenConnections,
    /// For ages and waits.
    pub clock: Clock,
    /// Runs the tasks of connections.
    pub tasks: Tasks,
}

/// A new key of the server, for the store. `None` if the system has no random numbers.
pub fn new_key() -> Option<Secret> {
    mcp::new_key()
}

/// Why the server ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener does not know its own address, so the guard cannot know which requests are
    /// meant for it.
    #[error("cannot tell the address of the listener")]
    Address(#[source] io::Error),
    /// The Unix socket of `server.rpc_socket` cannot be made.
    #[error("`server.rpc_socket`: cannot make the socket {}: {error}", path.display())]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// After the stop, so many connections still had an answer to send when `server.stop_timeout`
    /// was over.
    #[error("{connections} connection(s) were cut off at the end of `server.stop_timeout`")]
    Cut {
        /// The number of connections.
        connections: usize,
    },
}

/// The state that every handler can reach. One per daemon.
#[derive(Debug)]
struct ServerState {
    reader: CatalogReader,
    views: ViewCache,
    engine: EngineHandle,
    calls: Calls,
    logins: Arc<OAuthTokens>,
    bundles: BundleStore,
    definitions: DefinitionRegistry,
    archives: compat::bundles::ArchiveLimit,
    events: Hub,
    readiness: Readiness,
    clock: Clock,
    tasks: Tasks,
    stop: Stop,
    response_cache: http::response_cache::ResponseCache,
    /// Answers with the tool set of the original agent-inbox.
    tool_sets: http::response_cache::ResponseCache,
    /// Lists of findings: whole answers, and those of single scenarios, which are parts of answers.
    finding_lists: http::response_cache::ResponseCache,
    /// Lists of prompts, resources and templates for MCP clients.
    offer_lists: http::response_cache::ResponseCache,
    /// For answers that take long to write.
    rendering: rendered::RenderingQueues,
    requests: Requests,
    config: auth::ConfigWatch,
    load_options: Option<Arc<config::LoadOptions>>,
    /// Where it listens.
    listens: SocketAddr,
    /// Held while the file of the configuration is changed.
    config_edits: tokio::sync::Mutex<()>,
    dashboard: dashboard::Dashboard,
    mcp: mcp::McpFace,
    identities: json_rpc::Identities,
    used_formats: api::findings::UsedFormats,
    bytes: http::held::ClientBytes,
    refused_profiles: api::refused_profiles::RefusedProfiles,
    /// The description of the API. It is made of the table of routes, which leads to the handlers.
    api_document: fn() -> &'static serde_json::Value,
}

/// The state of the axum routes.
type SharedState = Arc<ServerState>;

impl ServerState {
    /// What handlers share from now on, with the tasks that keep it up to date until `stop`.
    fn new(parts: ServerParts, listens: SocketAddr, stop: &Stop) -> Self {
        let ServerParts {
            reader,
            views,
            engine,
            calls,
            logins,
            bundles,
            definitions,
            events,
            readiness,
            config,
            settings,
            load_options,
            key,
            command_socket: _,
            connections: _,
            clock,
            tasks,
        } = parts;
        let body_max = config.borrow().server.max_body;
        Self {
            bytes: http::held::ClientBytes::new(&http::held::ClientBudgets::of(&calls), body_max),
            dashboard: dashboard::Dashboard::start(
                reader.clone(),
                settings,
                clock,
                &tasks,
                stop.clone(),
            ),
            reader,
            views,
            engine,
            calls,
            logins,
            bundles,
            definitions,
            archives: compat::bundles::ArchiveLimit::default(),
            events,
            readiness,
            clock,
            tasks: tasks.clone(),
            stop: stop.clone(),
            response_cache: http::response_cache::ResponseCache::default(),
            tool_sets: http::response_cache::ResponseCache::default(),
            finding_lists: http::response_cache::ResponseCache::default(),
            offer_lists: http::response_cache::ResponseCache::default(),
            rendering: rendered::RenderingQueues::new(),
            requests: routes::request_counters(),
            mcp: mcp::McpFace::new(key.as_ref(), clock),
            identities: json_rpc::Identities::default(),
            used_formats: api::findings::UsedFormats::default(),
            refused_profiles: api::refused_profiles::RefusedProfiles::default(),
            api_document: openapi::serve::api_document,
            config,
            load_options,
            listens,
            config_edits: tokio::sync::Mutex::default(),
        }
    }
}

/// Serves until `stop`. Then no more connections are accepted, answers that have begun may finish
/// within `server.stop_timeout`, and the remaining connections are cut.
///
/// Speaks HTTP/1.1 and HTTP/2 with prior knowledge (RFC 9113 section 3.3), both without TLS, on the
/// listener and on the Unix socket of the command line.
///
/// # Errors
/// [`ServeError::Cut`] if connections had to be cut; `Ok` means that every answer was finished.
pub async fn run(listener: TcpListener, parts: ServerParts, stop: Stop) -> Result<(), ServeError> {
    let local = listener.local_addr().map_err(ServeError::Address)?;
    let server = parts.config.borrow().server.clone();
    #[cfg(unix)]
    let socket = parts.command_socket.clone();
    let most = open_files::connections_within_limit(server.max_connections);
    if most < server.max_connections {
        tracing::warn!(
            connections = most,
            "fewer connections than `server.max_connections` are kept, because the system allows few open files; raise that limit (`ulimit -n`, `LimitNOFILE`)"
        );
    }
    let limits = http::accept::ConnectionLimits {
        connections: most,
        stop_timeout: server.stop_timeout,
        ..http::accept::ConnectionLimits::default()
    };
    let connections = parts.connections.clone();
    let clock = parts.clock;
    let tasks = parts.tasks.clone();
    let shared = Arc::new(ServerState::new(parts, local, &stop));
    #[cfg(unix)]
    if let Some(path) = &server.rpc_socket {
        json_rpc::listen(path, server.max_body, &shared).map_err(|error| ServeError::Socket {
            path: path.clone(),
            error,
        })?;
    }
    let guard = http::guard::Guard::new(&server, routes::body_rules());
    let front = http_service::HttpService::new(guard, shared, server.max_body);
    #[cfg(unix)]
    let by_socket = async {
        match socket.and_then(|path| command_socket::CommandSocket::bind(&path)) {
            Some(socket) => {
                socket
                    .serve(
                        front.clone().for_operator(),
                        local.ip(),
                        limits,
                        clock,
                        &tasks,
                        (&connections, &stop),
                    )
                    .await
            }
            None => 0,
        }
    };
    #[cfg(not(unix))]
    let by_socket = std::future::ready(0);
    let serve = |stream: &TcpStream, let_go, load: &http::accept::ConnectionLoad| {
        let local = stream.local_addr().unwrap_or(local).ip();
        front.connection(local, events::DisconnectTrigger(Arc::new(let_go)), load)
    };
    tracing::info!(address = %local, "serving");
    let by_address =
        http::accept::serve(listener, serve, limits, clock, &tasks, &connections, &stop);
    let (by_address, by_socket) = tokio::join!(by_address, by_socket);
    match by_address + by_socket {
        0 => Ok(()),
        connections => Err(ServeError::Cut { connections }),
    }
}
