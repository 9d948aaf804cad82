//! The daemon as a server of the Model Context Protocol: `/mcp`, and `/mcp/{profile}` for the tools of
//! one profile (Streamable HTTP).
//!
//! Both eras are answered at the same address, decided for each request: 2026-07-28 without a
//! handshake, and 2025-11-25 to 2024-11-05 after `initialize`. There are no sessions: every request
//! stands alone, so a client goes on after a restart of the daemon. The list comes from memory and
//! is the one of `format=mcp`; the query of the address narrows it as in `GET /api/v1/tools`. Calls
//! take the way of every call.
//!
//! Never here: requests of the server to a client, prompts and resources.

mod adjusted;
mod calls;
mod changes;
mod context;
mod era;
mod lists;
mod methods;
mod own_tools;

use axum::Router;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode, Version};

use crate::protocols::json_rpc::{self, RpcError, RpcMessage};
use crate::server::SharedState;
use crate::server::api::lookup;
use crate::server::auth::Right::{Call, Read};
use crate::server::auth::{ConfigWatch, require_right};
use crate::server::events::DisconnectTrigger;
use crate::server::http::body::RawBody;
use crate::server::http::error::Problem;
use crate::server::http::query::ListQuery;

use context::McpContext;
use era::{Refusal, RequestEra};
use methods::Answer;

/// The paths, for the counters.
pub(super) const PATHS: [&str; 2] = ["/mcp", "/mcp/{profile}"];
/// The most messages of one batch, which only 2025-03-26 has.
const MAX_BATCH: usize = 100;

/// The routes.
pub(super) fn router(config: &ConfigWatch) -> Router<SharedState> {
    PATHS.into_iter().fold(Router::new(), |router, path| {
        let own = require_right(post(receive), Call, config).merge(require_right(get(stream), Read, config));
        router.route(path, own)
    })
}

/// The list that an address means: `format=mcp`, its profile, and its query.
fn list_query(shared: &SharedState, profile: Option<&str>, raw: Option<&str>) -> Result<ListQuery, Problem> {
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
    let list = ListQuery::parse(Some(&query))?;
    lookup::check_profile(&shared.reader.snapshot().catalog, &list.view)?;
    Ok(list)
}

/// `POST /mcp`: one message, or a batch of them.
async fn receive(
    State(shared): State<SharedState>,
    profile: Option<Path<String>>,
    RawQuery(raw): RawQuery,
    version: Version,
    headers: HeaderMap,
    Extension(connection): Extension<DisconnectTrigger>,
    RawBody(body): RawBody,
) -> Response {
    let list = match list_query(&shared, profile.as_ref().map(|Path(profile)| profile.as_str()), raw.as_deref()) {
        Ok(list) => list,
        Err(problem) => return problem.into_response(),
    };
    let text = std::str::from_utf8(&body).map_err(|_| "the body is no text".to_owned());
    let messages = match text.and_then(json_rpc::parse) {
        Ok(messages) => messages,
        Err(why) => return refused(None, &Refusal::unreadable(why)),
    };
    let is_batch = body.trim_ascii_start().starts_with(b"[");
    let context = McpContext { shared, list, headers, version, connection };
    if is_batch {
        return batch(&context, messages).await;
    }
    match messages.into_iter().next() {
        Some(message) => one(&context, message).await,
        None => refused(None, &Refusal::unreadable("the body has no message".to_owned())),
    }
}

/// A batch gets the answers of its requests as one list. Streams do not fit into one.
async fn batch(context: &McpContext, messages: Vec<RpcMessage>) -> Response {
    if messages.is_empty() || messages.len() > MAX_BATCH {
        let why = format!("a batch has 1 to {MAX_BATCH} messages");
        return refused(None, &Refusal::unreadable(why));
    }
    let mut answers: Vec<Bytes> = Vec::new();
    for message in messages {
        let RpcMessage::Request { id, method, params } = message else { continue };
        let answer = match RequestEra::of(&context.headers, &method, params.as_ref()) {
            Ok(RequestEra::Legacy) => methods::legacy(context, &method, params.as_ref()).await,
            Ok(RequestEra::Modern) => Err(Refusal::unreadable("this revision has no batches".to_owned())),
            Err(refusal) => Err(refusal),
        };
        answers.push(match answer {
            Ok(Answer::Result(result)) => envelope(id.get(), &result),
            Ok(Answer::Stream(_)) => continue,
            Err(refusal) => error_envelope(Some(id.get()), &refusal.error),
        });
    }
    if answers.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    let mut body = b"[".to_vec();
    for (index, answer) in answers.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(answer);
    }
    body.push(b']');
    json(StatusCode::OK, body.into())
}

async fn one(context: &McpContext, message: RpcMessage) -> Response {
    // Notifications and answers are accepted: there is no session that they could change.
    let RpcMessage::Request { id, method, params } = message else { return StatusCode::ACCEPTED.into_response() };
    let answered = match RequestEra::of(&context.headers, &method, params.as_ref()) {
        Ok(RequestEra::Modern) => methods::modern(context, &id, &method, params.as_ref()).await,
        Ok(RequestEra::Legacy) => methods::legacy(context, &method, params.as_ref()).await,
        Err(refusal) => Err(refusal),
    };
    match answered {
        Ok(Answer::Result(result)) => json(StatusCode::OK, envelope(id.get(), &result)),
        Ok(Answer::Stream(response)) => response,
        Err(refusal) => refused(Some(id.get()), &refusal),
    }
}

/// `GET /mcp`: the stream on which a legacy client hears that the list changed.
async fn stream(
    State(shared): State<SharedState>,
    profile: Option<Path<String>>,
    RawQuery(raw): RawQuery,
    version: Version,
    headers: HeaderMap,
    Extension(connection): Extension<DisconnectTrigger>,
) -> Result<Response, Problem> {
    let list = list_query(&shared, profile.as_ref().map(|Path(profile)| profile.as_str()), raw.as_deref())?;
    let context = McpContext { shared, list, headers, version, connection };
    changes::legacy(&context).await
}

fn envelope(id: &str, result: &[u8]) -> Bytes {
    let mut body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#).into_bytes();
    body.extend_from_slice(result);
    body.push(b'}');
    body.into()
}

fn error_envelope(id: Option<&str>, error: &RpcError) -> Bytes {
    let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    let data = error.data.as_ref().map(|data| format!(r#","data":{}"#, data.get())).unwrap_or_default();
    let message = serde_json::Value::from(&*error.message);
    format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":{},"message":{message}{data}}}}}"#, error.code).into()
}

fn refused(id: Option<&str>, refusal: &Refusal) -> Response {
    json(refusal.status, error_envelope(id, &refusal.error))
}

fn json(status: StatusCode, body: Bytes) -> Response {
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}
