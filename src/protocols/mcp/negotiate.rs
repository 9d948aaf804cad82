//! The greetings of both eras, and what their answers mean.
//!
//! A server is greeted with `server/discover` first; one that does not know it is greeted with
//! `initialize`. No single error code decides, because servers answer an unknown method in many
//! ways. This module sends nothing.

use std::time::Duration;

use super::inputs;
use super::request::{McpRequest, Reply, RequestError, client_info};
use super::revision::McpRevision;
use super::server::{Greeting, ServerDescription};
use super::setup::ServerSetup;
use crate::json::rpc::{self, RpcError};
use crate::model::JsonText;
use crate::protocols::ListError;
use crate::transports::TransportError;

/// The server speaks another revision (MCP 2026-07-28, error codes).
pub(super) const UNSUPPORTED_VERSION: i64 = -32_022;
/// Errors that only a modern server answers: wrong headers, and a missing capability.
const MODERN_ERRORS: [i64; 2] = [-32_020, -32_021];
/// The most bytes of a greeting.
const GREETING: usize = 1024 * 1024;

/// What the answer to `server/discover` means.
pub(super) enum Discovered {
    Modern(ServerDescription, McpRevision),
    /// Another revision of the modern era is wanted; the same request is worth one repetition.
    Again,
    /// It does not know the method, or answers it like no modern server.
    Legacy,
    /// It wants credentials. The legacy greeting may still be answered. If it is refused, too, then
    /// this is the reason that counts.
    Unauthorized(ListError),
    /// No verdict: the server was not reached, or is out of order.
    Unreachable(ListError),
}

/// The request that a modern server has to answer.
pub(super) fn discover(limit: Duration) -> McpRequest {
    McpRequest::new("server/discover", "", limit, GREETING)
}

/// The request that begins a session with a legacy server.
pub(super) fn initialize(limit: Duration, setup: &ServerSetup) -> McpRequest {
    let params = format!(
        r#""protocolVersion":"{}","capabilities":{},"clientInfo":{}"#,
        setup.handshake(),
        inputs::session_capabilities(&setup.interaction),
        client_info()
    );
    McpRequest::new("initialize", params, limit, GREETING)
}

/// The message that ends the greeting of a legacy server.
pub(super) fn initialized() -> String {
    rpc::notification("notifications/initialized", Some("{}"))
}

/// Judges the answer to `server/discover`.
pub(super) fn judge(answered: Result<Reply, RequestError>) -> Discovered {
    match answered {
        Ok(Ok(result)) => greeting(&result),
        Ok(Err(error)) => judge_error(&error),
        // Gateways refuse an unknown method with these statuses, too, and some servers fail at it.
        Err(
            RequestError::NotRpc { .. }
            | RequestError::SessionLost
            | RequestError::Cancelled
            | RequestError::Unanswered(
                TransportError::Timeout { .. }
                | TransportError::Status {
                    status: 500 | 501, ..
                },
            ),
        ) => Discovered::Legacy,
        Err(
            error @ RequestError::Unanswered(TransportError::Status {
                status: 401 | 403, ..
            }),
        ) => Discovered::Unauthorized(error.into_list_error()),
        Err(error) => Discovered::Unreachable(error.into_list_error()),
    }
}

fn greeting(result: &JsonText) -> Discovered {
    let Some(greeting) = Greeting::parse(result) else {
        return Discovered::Legacy;
    };
    let supported = greeting.supported.unwrap_or_default();
    let modern = supported
        .iter()
        .filter_map(|text| McpRevision::parse(text))
        .find(|revision| revision.is_modern());
    modern.map_or(Discovered::Legacy, |revision| {
        Discovered::Modern(greeting.info, revision)
    })
}

fn judge_error(error: &RpcError) -> Discovered {
    if MODERN_ERRORS.contains(&error.code) {
        return Discovered::Modern(ServerDescription::default(), McpRevision::MODERN);
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
    let data = error
        .data
        .as_ref()
        .and_then(|data| serde_json::from_str::<Data>(data.get()).ok());
    let supported = data.map(|data| data.supported).unwrap_or_default();
    supported
        .iter()
        .filter_map(|text| McpRevision::parse(text))
        .any(McpRevision::is_modern)
}

/// Reads the answer to `initialize`.
pub(super) fn begun(result: &JsonText) -> Result<(ServerDescription, McpRevision), ListError> {
    let Some(greeting) = Greeting::parse(result) else {
        return Err(ListError::NotThisProtocol(
            "its answer to `initialize` is not one of MCP".to_owned(),
        ));
    };
    match (greeting.revision, greeting.version) {
        (Some(revision), _) if !revision.is_modern() => Ok((greeting.info, revision)),
        (_, Some(seen)) => Err(ListError::Incompatible {
            seen,
            accepted: accepted(),
        }),
        (_, None) => Err(ListError::NotThisProtocol(
            "its answer to `initialize` names no revision of MCP".to_owned(),
        )),
    }
}

fn accepted() -> String {
    "MCP 2024-11-05 to 2026-07-28".to_owned()
}

/// The reason why a server that refused `initialize` cannot be used.
pub(super) fn refused(error: &RpcError) -> ListError {
    if error.code == UNSUPPORTED_VERSION {
        return ListError::Incompatible {
            seen: error.message.clone(),
            accepted: accepted(),
        };
    }
    ListError::NotThisProtocol(format!("it refused `initialize` of MCP: {error}"))
}
