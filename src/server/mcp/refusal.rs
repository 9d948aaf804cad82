//! Requests that get an error: the codes of the protocol, and the statuses that they have over HTTP
//! (MCP 2026-07-28, error codes).

use http::StatusCode;
use serde_json::{Value, json};

use crate::json::rpc::{METHOD_NOT_FOUND, RpcError};
use crate::model::JsonText;
use crate::runtime::BudgetExceeded;
use crate::server::http::batch::AnswerLeftOut;
use crate::views::ViewRefused;

/// Text that is not JSON (JSON-RPC 2.0 section 5.1).
const PARSE_ERROR: i64 = -32_700;
/// JSON that is no request.
const INVALID_REQUEST: i64 = -32_600;
/// Parameters that are wrong.
pub(super) const INVALID_PARAMS: i64 = -32_602;
/// A header contradicts the body, or is missing.
pub(super) const HEADER_MISMATCH: i64 = -32_020;
/// The client cannot do what the request needs.
pub(super) const MISSING_CAPABILITY: i64 = -32_021;
/// The revision is not spoken.
pub(super) const UNSUPPORTED_VERSION: i64 = -32_022;
/// An own error, outside of the reserved range: a limit is reached.
const BUSY: i64 = -31_003;
/// An own error: the session is not known.
const UNKNOWN_SESSION: i64 = -31_004;

/// A request that is not answered: its status and its error.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) error: RpcError,
}

impl Refusal {
    /// A refusal with this error.
    pub(super) fn new(status: StatusCode, code: i64, message: impl Into<String>) -> Self {
        Self {
            status,
            error: RpcError {
                code,
                message: message.into(),
                data: None,
            },
        }
    }

    /// The same with more about the error, for programs.
    pub(super) fn with_data(mut self, data: &Value) -> Self {
        self.error.data = Some(JsonText::known(data.to_string()));
        self
    }

    /// A body that is not JSON.
    pub(super) fn unreadable(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, PARSE_ERROR, why)
    }

    /// A body that is JSON, and no message that may come now.
    pub(super) fn no_request(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, why)
    }

    /// Parameters that are wrong.
    pub(super) fn invalid(why: impl Into<String>) -> Self {
        Self::new(StatusCode::OK, INVALID_PARAMS, why)
    }

    /// A header that contradicts the body, or is missing.
    pub(super) fn mismatch(why: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            HEADER_MISMATCH,
            format!("Header mismatch: {why}"),
        )
    }

    /// A revision that is not spoken. Only those without a handshake are named: a client picks one
    /// of them for a request without a handshake.
    pub(super) fn unsupported(supported: &str, requested: &str) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            UNSUPPORTED_VERSION,
            "Unsupported protocol version",
        )
        .with_data(&json!({"supported": [supported], "requested": requested}))
    }

    /// A method that is not known in the era of the request.
    pub(super) fn unknown_method(is_modern: bool, method: &str) -> Self {
        let status = if is_modern {
            StatusCode::NOT_FOUND
        } else {
            StatusCode::OK
        };
        Self::new(
            status,
            METHOD_NOT_FOUND,
            format!("Method not found: {}", method.escape_debug()),
        )
    }

    /// A limit is reached.
    pub(super) fn busy(why: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, BUSY, why)
    }

    /// A request that was run, whose answer has no room. No status that clients take for one of a
    /// request that they may repeat.
    pub(super) fn left_out(why: AnswerLeftOut) -> Self {
        Self::new(StatusCode::OK, BUSY, why.to_string())
    }

    /// The session is not known (any more).
    pub(super) fn unknown_session() -> Self {
        let why = "the session is not known; send `initialize` to begin another one";
        Self::new(StatusCode::NOT_FOUND, UNKNOWN_SESSION, why)
    }
}

impl From<ViewRefused> for Refusal {
    fn from(error: ViewRefused) -> Self {
        let status = match error {
            ViewRefused::Memory(BudgetExceeded::Share { .. }) => StatusCode::TOO_MANY_REQUESTS,
            ViewRefused::Memory(BudgetExceeded::Whole { .. }) | ViewRefused::Busy(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        Self::new(status, BUSY, error.to_string())
    }
}
