//! Which era a request is of, and what a request of the modern era has to carry (MCP 2026-07-28,
//! Streamable HTTP and error codes).
//!
//! The method alone never decides: a client may send both eras to the same address.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::{HeaderMap, HeaderName, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::model::JsonText;
use crate::protocols::json_rpc::{METHOD_NOT_FOUND, RpcError};

/// The revision without a handshake.
pub(super) const MODERN: &str = "2026-07-28";
/// The revisions with one, newest first.
pub(super) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const PARSE_ERROR: i64 = -32_700;
/// Parameters that are wrong (JSON-RPC 2.0 section 5.1).
pub(super) const INVALID_PARAMS: i64 = -32_602;
const HEADER_MISMATCH: i64 = -32_020;
const UNSUPPORTED_VERSION: i64 = -32_022;

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The methods that only the modern era has.
const MODERN_METHODS: [&str; 2] = ["server/discover", "subscriptions/listen"];

/// The era of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestEra {
    Modern,
    Legacy,
}

/// A request that is not answered: its status and its error.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) error: RpcError,
}

impl Refusal {
    /// A refusal with this error.
    pub(super) fn new(status: StatusCode, code: i64, message: impl Into<String>) -> Self {
        Self { status, error: RpcError { code, message: message.into(), data: None } }
    }

    /// A body that is no message.
    pub(super) fn unreadable(why: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, PARSE_ERROR, why)
    }

    /// Parameters that are wrong.
    pub(super) fn invalid(why: impl Into<String>) -> Self {
        Self::new(StatusCode::OK, INVALID_PARAMS, why)
    }

    /// A method that is not known in the era of the request.
    pub(super) fn unknown_method(era: RequestEra, method: &str) -> Self {
        let status = if era == RequestEra::Modern { StatusCode::NOT_FOUND } else { StatusCode::OK };
        Self::new(status, METHOD_NOT_FOUND, format!("Method not found: {}", method.escape_debug()))
    }
}

/// The `_meta` of a request, as far as it decides.
#[derive(Debug, Default, Deserialize)]
struct RequestMeta {
    #[serde(default, rename = "_meta")]
    meta: Map<String, Value>,
    name: Option<String>,
    uri: Option<String>,
}

impl RequestEra {
    /// The era of a request. A modern one that lacks what it has to carry, or contradicts itself, is
    /// refused.
    pub(super) fn of(headers: &HeaderMap, method: &str, params: Option<&JsonText>) -> Result<Self, Refusal> {
        let params: RequestMeta = params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        let declared = params.meta.get("io.modelcontextprotocol/protocolVersion");
        let header = single(headers, &PROTOCOL_VERSION)?;
        let is_legacy_header = header.is_none_or(|header| LEGACY.contains(&header));
        if declared.is_none() && is_legacy_header && !MODERN_METHODS.contains(&method) {
            return Ok(Self::Legacy);
        }
        check_modern(headers, method, &params, header).map(|()| Self::Modern)
    }
}

fn check_modern(headers: &HeaderMap, method: &str, params: &RequestMeta, header: Option<&str>) -> Result<(), Refusal> {
    let bad = |code, why: String| Refusal::new(StatusCode::BAD_REQUEST, code, why);
    let Some(header) = header else {
        return Err(bad(HEADER_MISMATCH, "Header mismatch: MCP-Protocol-Version is missing".to_owned()));
    };
    let declared = params.meta.get("io.modelcontextprotocol/protocolVersion").and_then(Value::as_str);
    let capabilities = params.meta.get("io.modelcontextprotocol/clientCapabilities");
    let (Some(declared), Some(Value::Object(_))) = (declared, capabilities) else {
        let why = "`params._meta` needs io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities";
        return Err(bad(INVALID_PARAMS, why.to_owned()));
    };
    if header != declared {
        let why = format!("Header mismatch: MCP-Protocol-Version {header:?} is not {declared:?} of the body");
        return Err(bad(HEADER_MISMATCH, why));
    }
    if declared != MODERN {
        let data = json!({"supported": [MODERN], "requested": declared}).to_string();
        let mut refusal = bad(UNSUPPORTED_VERSION, "Unsupported protocol version".to_owned());
        refusal.error.data = Some(JsonText::known(data));
        return Err(refusal);
    }
    if single(headers, &METHOD)?.map(str::trim) != Some(method) {
        return Err(bad(HEADER_MISMATCH, "Header mismatch: Mcp-Method is not the method of the body".to_owned()));
    }
    let subject = match method {
        "tools/call" | "prompts/get" => params.name.as_deref(),
        "resources/read" => params.uri.as_deref(),
        _ => return Ok(()),
    };
    let sent = single(headers, &NAME)?.map(decoded);
    if sent.is_none() || sent.as_deref() != subject {
        return Err(bad(HEADER_MISMATCH, "Header mismatch: Mcp-Name is not the name in the body".to_owned()));
    }
    Ok(())
}

/// The value of a header that may be sent once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        let why = format!("Header mismatch: {name} was sent twice");
        return Err(Refusal::new(StatusCode::BAD_REQUEST, HEADER_MISMATCH, why));
    }
    Ok(first.and_then(|value| value.to_str().ok()))
}

/// The text that a header means: plain, or in base64 with the mark of the protocol.
fn decoded(value: &str) -> String {
    let value = value.trim();
    let inner = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let bytes = inner.and_then(|inner| BASE64_STANDARD.decode(inner).ok());
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn judged(pairs: &[(&'static str, &str)], method: &str, params: &str) -> Result<RequestEra, (u16, i64)> {
        let era = RequestEra::of(&headers(pairs), method, Some(&JsonText::parse(params).unwrap()));
        era.map_err(|refusal| (refusal.status.as_u16(), refusal.error.code))
    }

    fn meta(version: &str) -> String {
        format!(
            r#"{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{}}}},"name":"a b"}}"#
        )
    }

    #[test]
    fn the_era_follows_from_the_headers_and_the_body() {
        let modern = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")];
        assert_eq!(judged(&[], "initialize", "{}"), Ok(RequestEra::Legacy));
        assert_eq!(judged(&[("mcp-protocol-version", "2025-06-18")], "tools/list", "{}"), Ok(RequestEra::Legacy));
        assert_eq!(judged(&modern, "tools/list", &meta(MODERN)), Ok(RequestEra::Modern));
        assert_eq!(judged(&[], "tools/list", &meta(MODERN)), Err((400, HEADER_MISMATCH)));
        assert_eq!(judged(&modern, "tools/list", "{}"), Err((400, INVALID_PARAMS)));
        assert_eq!(judged(&[], "server/discover", "{}"), Err((400, HEADER_MISMATCH)));
        assert_eq!(judged(&modern, "tools/list", &meta("v999.0.0")), Err((400, HEADER_MISMATCH)));
        let odd = [("mcp-protocol-version", "v999.0.0"), ("mcp-method", "tools/list")];
        assert_eq!(judged(&odd, "tools/list", &meta("v999.0.0")), Err((400, UNSUPPORTED_VERSION)));
        assert_eq!(judged(&modern, "ping", &meta(MODERN)), Err((400, HEADER_MISMATCH)));
    }

    #[test]
    fn the_name_in_the_header_is_the_one_in_the_body() {
        let with =
            |name: &'static str| [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", name)];
        for name in ["a b", " a b ", "=?base64?YSBi?="] {
            assert_eq!(judged(&with(name), "tools/call", &meta(MODERN)), Ok(RequestEra::Modern), "{name:?}");
        }
        assert_eq!(judged(&with("other"), "tools/call", &meta(MODERN)), Err((400, HEADER_MISMATCH)));
    }
}
