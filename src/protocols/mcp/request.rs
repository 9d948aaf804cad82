//! One request to an MCP server: its parameters, headers and limits, and why it has no answer.
//!
//! This module sends nothing.

use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::revision::McpRevision;
use crate::json::rpc::RpcError;
use crate::model::JsonText;
use crate::protocols::{CallError, ListError, LogLevel, TraceContext};
use crate::transports::TransportError;

/// The result of a request, or the error that the server answered.
pub(super) type Reply = Result<JsonText, RpcError>;

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// One request.
#[derive(Debug)]
pub(super) struct McpRequest {
    pub(super) method: &'static str,
    /// The members of `params` without the braces and without `_meta`.
    pub(super) params: String,
    /// The subject of the request (the name of the tool), which modern servers want in a header.
    pub(super) subject: Option<String>,
    /// `Mcp-Param-*`: arguments that a modern server wants in headers.
    pub(super) headers: HeaderMap,
    /// The time until the answer, or until the next sign of progress.
    pub(super) limit: Duration,
    /// The time until the answer, whatever progress there is.
    pub(super) longest: Duration,
    /// The most bytes of the answer.
    pub(super) max_body: usize,
    /// Whether progress is wanted.
    pub(super) progress: bool,
    /// What a modern server may request meanwhile, as the text of an object.
    pub(super) capabilities: String,
    /// The least severe log messages that a modern server may send meanwhile.
    pub(super) log_level: Option<LogLevel>,
    /// The trace that it belongs to.
    pub(super) trace: Option<TraceContext>,
}

/// Why there is no answer of JSON-RPC.
#[derive(Debug, Clone)]
pub(super) enum RequestError {
    /// The request was not sent.
    Unsent(TransportError),
    /// The request was sent, or may have been, and no usable answer came.
    Unanswered(TransportError),
    /// An answer over HTTP that is not JSON-RPC.
    NotRpc { status: u16, error: CallError },
    /// The server does not know the session (any more), so it did not do what was requested.
    SessionLost,
    /// The caller cancelled the request, and the server was informed.
    Cancelled,
}

impl McpRequest {
    /// A request with these members of `params`, without progress.
    pub(super) fn new(
        method: &'static str,
        params: impl Into<String>,
        limit: Duration,
        max_body: usize,
    ) -> Self {
        Self {
            method,
            params: params.into(),
            subject: None,
            headers: HeaderMap::new(),
            limit,
            longest: limit,
            max_body,
            progress: false,
            capabilities: "{}".to_owned(),
            log_level: None,
            trace: None,
        }
    }

    /// Whether the request may be sent again after its credential was refused: all but the call of
    /// a tool, which may have run.
    pub(super) fn is_repeatable(&self) -> bool {
        self.method != "tools/call"
    }

    /// The text of `params` for a server that speaks this revision. The id of the request is its
    /// progress token, too.
    pub(super) fn params(&self, revision: McpRevision, id: u64) -> String {
        let mut meta = Vec::new();
        if revision.is_modern() {
            meta.push(format!(
                r#""io.modelcontextprotocol/protocolVersion":"{revision}""#
            ));
            meta.push(format!(
                r#""io.modelcontextprotocol/clientInfo":{}"#,
                client_info()
            ));
            meta.push(format!(
                r#""io.modelcontextprotocol/clientCapabilities":{}"#,
                self.capabilities
            ));
        }
        if let Some(level) = self.log_level.filter(|_| revision.is_modern()) {
            meta.push(format!(
                r#""io.modelcontextprotocol/logLevel":"{}""#,
                level.as_str()
            ));
        }
        if self.progress {
            meta.push(format!(r#""progressToken":{id}"#));
        }
        let trace = self.trace.iter().flat_map(TraceContext::members);
        meta.extend(
            trace.map(|(name, value)| format!(r#""{name}":{}"#, serde_json::Value::from(value))),
        );
        let mut members = self.params.clone();
        if !meta.is_empty() {
            if !members.is_empty() {
                members.push(',');
            }
            members.push_str(r#""_meta":{"#);
            members.push_str(&meta.join(","));
            members.push('}');
        }
        format!("{{{members}}}")
    }

    /// The headers that a modern server wants beside the message.
    pub(super) fn modern_headers(&self, revision: McpRevision) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(
            PROTOCOL_VERSION,
            HeaderValue::from_static(revision.as_str()),
        );
        headers.insert(METHOD, HeaderValue::from_static(self.method));
        if let Some(subject) = &self.subject {
            headers.insert(NAME, header_value(subject));
        }
        headers
    }
}

/// What callsheet says of itself.
pub(super) fn client_info() -> String {
    format!(
        r#"{{"name":"callsheet","version":"{}"}}"#,
        env!("CARGO_PKG_VERSION")
    )
}

/// The header in which a legacy server wants the revision (from 2025-06-18 on).
pub(super) fn version_header(revision: McpRevision) -> (HeaderName, HeaderValue) {
    (
        PROTOCOL_VERSION,
        HeaderValue::from_static(revision.as_str()),
    )
}

/// A text as the value of a header: as it is where that is visible ASCII, otherwise in base64 with
/// the mark of the protocol (MCP 2026-07-28, Streamable HTTP, value encoding).
pub(crate) fn header_value(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let value = if plain {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", BASE64_STANDARD.encode(text))
    };
    // Visible ASCII and base64 can always be written.
    HeaderValue::try_from(value).unwrap_or_else(|_| HeaderValue::from_static(""))
}

impl RequestError {
    /// The reason why a listing failed.
    pub(super) fn into_list_error(self) -> ListError {
        match self {
            Self::Unsent(error) | Self::Unanswered(error) => error.into(),
            Self::NotRpc { error, .. } => ListError::Malformed(error.to_string()),
            Self::SessionLost => ListError::Malformed("the server ended the session".to_owned()),
            Self::Cancelled => ListError::Malformed("the request was cancelled".to_owned()),
        }
    }

    /// The reason why a call has no outcome.
    pub(super) fn into_call_error(self, address: &str) -> CallError {
        let broken = |message: &str| TransportError::Broken {
            url: address.to_owned(),
            message: message.to_owned(),
        };
        match self {
            Self::Unsent(error) => CallError::Unsent(error),
            Self::Unanswered(error) => CallError::Unanswered(error),
            Self::NotRpc { error, .. } => error,
            Self::SessionLost => CallError::Unanswered(broken("the server ended the session")),
            Self::Cancelled => CallError::Unanswered(broken("its caller cancelled the call")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values_are_plain_where_they_can_be() {
        for (text, expected) in [
            ("get_weather", "get_weather"),
            ("two words", "two words"),
            ("", ""),
            (" edge", "=?base64?IGVkZ2U=?="),
            ("grüß", "=?base64?Z3LDvMOf?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ] {
            assert_eq!(header_value(text), expected, "{text:?}");
        }
    }

    #[test]
    fn parameters_carry_what_the_era_of_the_server_wants() {
        let mut request = McpRequest::new("tools/list", "", Duration::ZERO, 1);
        assert_eq!(request.params(McpRevision::V20250618, 1), "{}");
        assert!(
            request
                .params(McpRevision::MODERN, 1)
                .starts_with(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion""#)
        );
        request.params = r#""cursor":"""#.to_owned();
        request.progress = true;
        assert_eq!(
            request.params(McpRevision::V20250618, 4),
            r#"{"cursor":"","_meta":{"progressToken":4}}"#
        );
    }
}
