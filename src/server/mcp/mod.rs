//! The daemon as a server of the Model Context Protocol: `/mcp`, and `/mcp/{profile}` for the tools
//! of one profile (Streamable HTTP).
//!
//! ```text
//! POST -> messages -> era -> methods -> lists, relayed, prompts, resources ----------> answer
//!                      |               `-> own_tools -> calls -> call_work -> long_request -^
//!                      `-> session_id, sessions (legacy)           caller (progress, input)
//! GET  -> changes (legacy stream)    DELETE -> ends a session
//! ```
//!
//! What is kept true here:
//!
//! - Both eras are answered at the same address, decided for each request: 2026-07-28 without a
//!   handshake, and 2025-11-25 to 2024-11-05 in a session that `initialize` begins.
//! - The id of a session is signed and says what the session is, so a client goes on after a
//!   restart of the daemon. What is remembered besides may be forgotten.
//! - A list comes from memory and is the one of `format=mcp`; the query of the address narrows it
//!   as in `GET /api/v1/tools`. Only the first lists wait, for at most a few seconds.
//! - Calls take the way of every call. Prompts and resources of scenarios are passed on.
//! - Every table has a limit: sessions, streams, waiting calls, followed resources.
//!
//! Read in this order:
//!
//! 1. This file, `context.rs`, `messages.rs`, `era.rs`, `methods.rs` (which module answers what).
//! 2. `greeting.rs`, `capabilities.rs`, `sealing.rs`, `session_id.rs`, `sessions.rs`, `face.rs`,
//!    `logging.rs`.
//! 3. `lists.rs`, `own_answer.rs`, `own_tools.rs`, `find_tools.rs`, `relayed.rs`, `prompts.rs`,
//!    `resources.rs`, `uri_template.rs`.
//! 4. `calls.rs`, `param_headers.rs`, `call_work.rs`, `caller.rs`, `long_request.rs`, `held.rs`,
//!    `request_state.rs`, `call_results.rs`, `adjusted.rs`; `answer.rs` and `refusal.rs`.
//! 5. `changes.rs`, `offers_seen.rs`, `watched.rs` (what clients hear of changes).

mod adjusted;
mod answer;
mod call_results;
mod call_work;
mod caller;
mod calls;
mod capabilities;
mod changes;
mod context;
mod era;
mod face;
mod find_tools;
mod greeting;
mod held;
mod lists;
mod logging;
mod long_request;
mod messages;
mod methods;
mod offers_seen;
mod own_answer;
mod own_tools;
mod param_headers;
mod prompts;
mod refusal;
mod relayed;
mod request_state;
mod resources;
mod sealing;
mod session_id;
mod sessions;
mod uri_template;
mod watched;

use axum::Router;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use http::{HeaderMap, StatusCode, Version};

use crate::server::SharedState;
use crate::server::api::lookup;
use crate::server::auth::Right::{Call, Read};
use crate::server::auth::{Access, ConfigWatch};
use crate::server::events::DisconnectTrigger;
use crate::server::http::body::RawBody;
use crate::server::http::error::Problem;
use crate::server::http::held::ConnectionBytes;
use crate::server::http::query::{ListQuery, QueryParams, bad_value};
use crate::server::route_layer::require_right;

use context::McpContext;
use era::RequestEra;
pub(super) use face::McpFace;
pub(super) use sealing::new_key;
use sessions::SESSION_ID;

/// The paths, for the counters.
pub(super) const PATHS: [&str; 2] = ["/mcp", "/mcp/{profile}"];

/// Both paths, each method with its right.
pub(super) fn router(config: &ConfigWatch) -> Router<SharedState> {
    PATHS.into_iter().fold(Router::new(), |router, path| {
        let own = require_right(post(receive), Call, config)
            .merge(require_right(get(stream), Read, config))
            .merge(require_right(delete(end), Call, config));
        router.route(path, own)
    })
}

/// The list that an address means: `format=mcp`, its profile, and its query.
fn list_query(
    shared: &SharedState,
    profile: Option<&str>,
    raw: Option<&str>,
) -> Result<ListQuery, Problem> {
    let mut query = "format=mcp".to_owned();
    if let Some(profile) = profile {
        let encoded: String = url::form_urlencoded::byte_serialize(profile.as_bytes()).collect();
        query.push_str("&profile=");
        query.push_str(&encoded);
    }
    if let Some(raw) = raw.filter(|raw| !raw.is_empty()) {
        query.push('&');
        query.push_str(raw);
    }
    let query = QueryParams::parse(Some(&query), &ListQuery::FOR_MCP)?;
    let mut list = ListQuery::from_params(&query)?;
    let snapshot = shared.reader.snapshot();
    lookup::check_profile(shared, &snapshot.catalog, &list.view)?;
    let of_profile = snapshot
        .catalog
        .profile_of(&list.view)
        .and_then(|name| snapshot.catalog.profile(name)?.searches);
    list.view.pinned_only = match query.optional("mode") {
        None => of_profile.unwrap_or(shared.config.borrow().mcp_face.searches),
        Some("list") => false,
        Some("search") => true,
        Some(other) => return Err(bad_value("mode", other, "`list` or `search`")),
    };
    Ok(list)
}

/// `POST /mcp`: one message, or a batch of them.
#[expect(clippy::too_many_arguments, reason = "each is a part of the request")]
async fn receive(
    State(shared): State<SharedState>,
    profile: Option<Path<String>>,
    RawQuery(raw): RawQuery,
    version: Version,
    headers: HeaderMap,
    access: Access,
    Extension(connection): Extension<DisconnectTrigger>,
    Extension(bytes): Extension<ConnectionBytes>,
    RawBody(body): RawBody,
) -> Response {
    match list_query(
        &shared,
        profile.as_ref().map(|Path(profile)| profile.as_str()),
        raw.as_deref(),
    ) {
        Ok(list) => {
            let context = McpContext {
                shared,
                list,
                headers,
                version,
                connection,
                bytes,
                access,
                is_batch: false,
            };
            messages::receive(context, body).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// `GET /mcp`: the stream on which a legacy client hears that the list changed, and gets requests
/// that belong to no stream of a call.
#[expect(clippy::too_many_arguments, reason = "each is a part of the request")]
async fn stream(
    State(shared): State<SharedState>,
    profile: Option<Path<String>>,
    RawQuery(raw): RawQuery,
    version: Version,
    headers: HeaderMap,
    access: Access,
    Extension(connection): Extension<DisconnectTrigger>,
    Extension(bytes): Extension<ConnectionBytes>,
) -> Result<Response, Problem> {
    if is_sessionless(&headers) {
        return Err(without_session("GET", "stream"));
    }
    let list = list_query(
        &shared,
        profile.as_ref().map(|Path(profile)| profile.as_str()),
        raw.as_deref(),
    )?;
    let context = McpContext {
        shared,
        list,
        headers,
        version,
        connection,
        bytes,
        access,
        is_batch: false,
    };
    let face = &context.shared.mcp;
    let opened = match face.sessions.find(&context.headers, &face.sealer) {
        Ok(session) => changes::legacy(&context, &session).await,
        Err(refusal) => Err(refusal),
    };
    Ok(opened.unwrap_or_else(|refusal| answer::refused(None, &refusal)))
}

/// `DELETE /mcp`: ends a session.
async fn end(State(shared): State<SharedState>, headers: HeaderMap) -> Result<Response, Problem> {
    if is_sessionless(&headers) {
        return Err(without_session("DELETE", "session"));
    }
    let face = &shared.mcp;
    Ok(match face.sessions.find(&headers, &face.sealer) {
        Ok(session) => {
            face.sessions.end(&session);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(refusal) => answer::refused(None, &refusal),
    })
}

/// Whether a request without a body belongs to no session.
fn is_sessionless(headers: &HeaderMap) -> bool {
    !headers.contains_key(SESSION_ID)
        || !RequestEra::in_session(headers, None).is_ok_and(|in_session| in_session)
}

/// 405: only sessions have what this method is for.
fn without_session(method: &str, what: &str) -> Problem {
    let detail =
        format!("{method} is for the {what} of a session: send Mcp-Session-Id, or use POST");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}
