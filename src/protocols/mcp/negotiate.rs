//! Finds out which revision a server speaks, and greets it.
//!
//! First `server/discover` of the modern era; a server that does not know it is greeted with
//! `initialize`. Over HTTP a server that refuses both as HTTP may still speak the transport HTTP+SSE
//! of 2024-11-05. No single error code decides, because servers answer an unknown method in many
//! ways. Each step has a time limit of its own. This module lists and calls no tools, and remembers
//! nothing.

use std::time::Duration;

use http::StatusCode;

use super::connection::{Carrier, Connected};
use super::http::{Dialect, HttpConnection};
use super::request::{Reply, Request, RequestError, client_info};
use super::revision::Revision;
use super::server::{Greeting, ServerInfo};
use super::sse;
use crate::model::JsonText;
use crate::protocols::json_rpc::{self, RpcError};
use crate::protocols::{ListError, NoCaller};
use crate::transports::TransportError;
use crate::transports::http::Upstream;

/// The server speaks another revision (MCP 2026-07-28, error codes).
pub(super) const UNSUPPORTED_VERSION: i64 = -32_022;
/// Errors that only a modern server answers: wrong headers, and a missing capability.
const MODERN_ERRORS: [i64; 2] = [-32_020, -32_021];
/// The most bytes of a greeting.
const GREETING: usize = 1024 * 1024;

/// What is known of a server before it is greeted, from an earlier connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Modern,
    Legacy,
    /// Legacy, over HTTP+SSE.
    Sse,
}

/// What the answer to `server/discover` means.
pub(super) enum Discovered {
    Modern(ServerInfo, Revision),
    /// Another revision of the modern era is wanted; the same request is worth one repetition.
    Again,
    /// It does not know the method, or answers it like no modern server.
    Legacy,
    /// No verdict: the server was not reached, or is out of order.
    Unreachable(ListError),
}

/// The request that a modern server has to answer.
pub(super) fn discover(limit: Duration) -> Request {
    Request::new("server/discover", "", limit, GREETING)
}

/// The request that begins a session with a legacy server. Of what a client may offer, callsheet
/// answers questions to the user only.
pub(super) fn initialize(limit: Duration) -> Request {
    let params = format!(
        r#""protocolVersion":"{}","capabilities":{{"elicitation":{{}}}},"clientInfo":{}"#,
        Revision::LEGACY,
        client_info()
    );
    Request::new("initialize", params, limit, GREETING)
}

/// The message that ends the greeting of a legacy server.
pub(super) fn initialized() -> String {
    json_rpc::notification("notifications/initialized", "{}")
}

/// Judges the answer to `server/discover`.
pub(super) fn judge(answered: Result<Reply, RequestError>) -> Discovered {
    match answered {
        Ok(Ok(result)) => greeting(&result),
        Ok(Err(error)) => judge_error(&error),
        Err(RequestError::NotRpc { .. } | RequestError::SessionLost | RequestError::Cancelled) => Discovered::Legacy,
        Err(RequestError::Unanswered(TransportError::Timeout { .. })) => Discovered::Legacy,
        // Gateways refuse an unknown method in this way, too, and some servers fail at it.
        Err(RequestError::Unanswered(TransportError::Status { status: 401 | 403 | 500 | 501, .. })) => {
            Discovered::Legacy
        }
        Err(error) => Discovered::Unreachable(error.into_list_error()),
    }
}

fn greeting(result: &JsonText) -> Discovered {
    let Some(greeting) = Greeting::parse(result) else { return Discovered::Legacy };
    let supported = greeting.supported.unwrap_or_default();
    let modern = supported.iter().filter_map(|text| Revision::parse(text)).find(|revision| revision.is_modern());
    modern.map_or(Discovered::Legacy, |revision| Discovered::Modern(greeting.info, revision))
}

fn judge_error(error: &RpcError) -> Discovered {
    if MODERN_ERRORS.contains(&error.code) {
        return Discovered::Modern(ServerInfo::default(), Revision::MODERN);
    }
    if error.code == UNSUPPORTED_VERSION && supports_modern(error) {
        return Discovered::Again;
    }
    Discovered::Legacy
}

/// Whether the data of the error names a modern revision that callsheet speaks.
pub(super) fn supports_modern(error: &RpcError) -> bool {
    #[derive(serde::Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    let data = error.data.as_ref().and_then(|data| serde_json::from_str::<Data>(data.get()).ok());
    let supported = data.map(|data| data.supported).unwrap_or_default();
    supported.iter().filter_map(|text| Revision::parse(text)).any(Revision::is_modern)
}

/// Reads the answer to `initialize`.
pub(super) fn begun(result: &JsonText) -> Result<(ServerInfo, Revision), ListError> {
    let Some(greeting) = Greeting::parse(result) else {
        return Err(ListError::NotThisProtocol("its answer to `initialize` is not one of MCP".to_owned()));
    };
    match (greeting.revision, greeting.version) {
        (Some(revision), _) if !revision.is_modern() => Ok((greeting.info, revision)),
        (_, Some(seen)) => Err(ListError::Incompatible { seen, accepted: accepted() }),
        (_, None) => Err(ListError::NotThisProtocol("its answer to `initialize` names no revision of MCP".to_owned())),
    }
}

fn accepted() -> String {
    "MCP 2024-11-05 to 2026-07-28".to_owned()
}

/// The reason why a server that refused `initialize` cannot be used.
pub(super) fn refused(error: &RpcError) -> ListError {
    if error.code == UNSUPPORTED_VERSION {
        return ListError::Incompatible { seen: error.message.clone(), accepted: accepted() };
    }
    ListError::NotThisProtocol(format!("it refused `initialize` of MCP: {error}"))
}

/// Greets a server over HTTP. What is known of its era is tried first.
pub(super) async fn over_http(upstream: &Upstream, known: Option<Era>) -> Result<(Connected, Era), ListError> {
    let limit = upstream.poll_limits().timeout;
    if !matches!(known, Some(Era::Legacy | Era::Sse)) {
        let modern = HttpConnection::new(upstream.clone(), Dialect::Modern(Revision::MODERN));
        for _ in 0..2 {
            let answered = modern.send(&discover(limit), &mut NoCaller).await;
            match judge(answered.map(|answered| answered.reply)) {
                Discovered::Modern(info, revision) => {
                    let http = HttpConnection::new(upstream.clone(), Dialect::Modern(revision));
                    return Ok((Connected::new(Carrier::Http(http), info), Era::Modern));
                }
                Discovered::Again => {}
                Discovered::Legacy => break,
                Discovered::Unreachable(error) => return Err(error),
            }
        }
    }
    if known == Some(Era::Sse) {
        return sse::connect(upstream).await.map(|connected| (connected, Era::Sse));
    }
    let handshake = HttpConnection::new(upstream.clone(), Dialect::Handshake);
    match handshake.send(&initialize(limit), &mut NoCaller).await {
        Ok(answered) if !is_http_refusal(answered.head.status) => {
            let (info, revision) = begun(&answered.reply.map_err(|error| refused(&error))?)?;
            let session = handshake.in_session(revision, &answered.head);
            session.notify(initialized()).await.map_err(RequestError::into_list_error)?;
            Ok((Connected::new(Carrier::Http(session), info), Era::Legacy))
        }
        Ok(answered) => {
            let refusal = answered.reply.err().map_or_else(not_mcp, |error| refused(&error));
            sse_or(upstream, refusal).await
        }
        Err(RequestError::NotRpc { status, error }) if is_refusal(status) => {
            sse_or(upstream, ListError::NotThisProtocol(error.to_string())).await
        }
        Err(RequestError::NotRpc { error, .. }) => Err(ListError::NotThisProtocol(error.to_string())),
        Err(error) => Err(error.into_list_error()),
    }
}

fn not_mcp() -> ListError {
    ListError::NotThisProtocol("it does not speak MCP".to_owned())
}

/// Tries HTTP+SSE; a server that does not speak it either is refused for the reason that came
/// before.
async fn sse_or(upstream: &Upstream, refusal: ListError) -> Result<(Connected, Era), ListError> {
    match sse::connect(upstream).await {
        Ok(connected) => Ok((connected, Era::Sse)),
        Err(ListError::NotThisProtocol(_) | ListError::Transport(TransportError::Status { .. })) => Err(refusal),
        Err(error) => Err(error),
    }
}

/// Whether a status refuses a POST at this address as such.
fn is_refusal(status: u16) -> bool {
    matches!(status, 400 | 404 | 405)
}

fn is_http_refusal(status: StatusCode) -> bool {
    is_refusal(status.as_u16())
}
