//! Which era a request is of, and what a request of the modern era has to carry (MCP 2026-07-28,
//! Streamable HTTP).
//!
//! The method alone never decides: a client may send both eras to the same address.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::JsonText;
use crate::protocols::LogLevel;
use crate::server::mcp::capabilities::{ClientCapabilities, client_name};
use crate::server::mcp::refusal::{INVALID_PARAMS, Refusal};

/// The revision without a handshake.
pub(super) const MODERN: &str = "2026-07-28";
/// The revisions with one, newest first.
pub(super) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The only revision whose clients may send several messages at once.
pub(super) const WITH_BATCHES: &str = "2025-03-26";

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The methods that only the modern era has.
const MODERN_METHODS: [&str; 2] = ["server/discover", "subscriptions/listen"];

/// The era of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestEra {
    /// Without a handshake: the request says what its client can do.
    Modern(ModernClient),
    /// In a session.
    Legacy,
}

/// A client, as its request declares it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ModernClient {
    pub(super) capabilities: ClientCapabilities,
    pub(super) name: Option<String>,
    /// The least severe log messages that it wants.
    pub(super) log_level: Option<LogLevel>,
}

/// The `_meta` of a request, as far as it decides.
#[derive(Debug, Default, Deserialize)]
struct RequestMeta {
    #[serde(default, rename = "_meta")]
    meta: Map<String, Value>,
    name: Option<String>,
    uri: Option<String>,
    #[serde(rename = "taskId")]
    task: Option<String>,
}

impl RequestEra {
    /// The era of a request. A modern one that lacks what it has to carry, or contradicts itself,
    /// is refused.
    pub(super) fn of(
        headers: &HeaderMap,
        method: &str,
        params: Option<&JsonText>,
    ) -> Result<Self, Refusal> {
        let params: RequestMeta = params
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or_default();
        let header = single(headers, &PROTOCOL_VERSION)?;
        if is_legacy(&params, header) && !MODERN_METHODS.contains(&method) {
            return Ok(Self::Legacy);
        }
        check_modern(headers, method, &params, header).map(Self::Modern)
    }

    /// Whether a message that is no request belongs to a session.
    pub(super) fn in_session(
        headers: &HeaderMap,
        params: Option<&JsonText>,
    ) -> Result<bool, Refusal> {
        let params: RequestMeta = params
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or_default();
        Ok(is_legacy(&params, single(headers, &PROTOCOL_VERSION)?))
    }
}

fn is_legacy(params: &RequestMeta, header: Option<&str>) -> bool {
    let declared = params.meta.get("io.modelcontextprotocol/protocolVersion");
    declared.is_none() && header.is_none_or(|header| LEGACY.contains(&header))
}

fn check_modern(
    headers: &HeaderMap,
    method: &str,
    params: &RequestMeta,
    header: Option<&str>,
) -> Result<ModernClient, Refusal> {
    let Some(header) = header else {
        return Err(Refusal::mismatch("MCP-Protocol-Version is missing"));
    };
    let meta = |name: &str| params.meta.get(&format!("io.modelcontextprotocol/{name}"));
    let declared = meta("protocolVersion").and_then(Value::as_str);
    let (Some(declared), Some(capabilities @ Value::Object(_))) =
        (declared, meta("clientCapabilities"))
    else {
        let why = "`params._meta` needs io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities";
        return Err(Refusal::new(
            http::StatusCode::BAD_REQUEST,
            INVALID_PARAMS,
            why,
        ));
    };
    if header != declared {
        let why = format!("MCP-Protocol-Version {header:?} is not {declared:?} of the body");
        return Err(Refusal::mismatch(why));
    }
    if declared != MODERN {
        return Err(Refusal::unsupported(MODERN, declared));
    }
    if single(headers, &METHOD)?.map(str::trim) != Some(method) {
        return Err(Refusal::mismatch(
            "Mcp-Method is not the method of the body",
        ));
    }
    let subject = match method {
        "tools/call" | "prompts/get" => Some(&params.name),
        "resources/read" => Some(&params.uri),
        _ if method.starts_with("tasks/") => Some(&params.task),
        _ => None,
    };
    if let Some(subject) = subject {
        let sent = single(headers, &NAME)?.map(decoded);
        if sent.is_none() || sent.as_deref() != subject.as_deref() {
            return Err(Refusal::mismatch("Mcp-Name is not the name in the body"));
        }
    }
    Ok(ModernClient {
        capabilities: ClientCapabilities::parse(Some(capabilities)),
        name: client_name(meta("clientInfo")),
        log_level: meta("logLevel")
            .and_then(Value::as_str)
            .and_then(LogLevel::parse),
    })
}

/// The value of a header that may be sent once.
pub(super) fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(Refusal::mismatch(format_args!("{name} was sent twice")));
    }
    // What is no visible ASCII is no value that a client may send.
    first
        .map(|value| {
            value
                .to_str()
                .map_err(|_| Refusal::mismatch(format_args!("{name} is not a text")))
        })
        .transpose()
}

/// The text that a header means: plain, or in base64 with the mark of the protocol.
pub(super) fn decoded(value: &str) -> String {
    let value = value.trim();
    let inner = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    let bytes = inner.and_then(|inner| BASE64_STANDARD.decode(inner).ok());
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_else(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::mcp::refusal::{HEADER_MISMATCH, UNSUPPORTED_VERSION};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    /// Whether it is modern, or the status and the code with which it is refused.
    fn judged(
        pairs: &[(&'static str, &str)],
        method: &str,
        params: &str,
    ) -> Result<bool, (u16, i64)> {
        let era = RequestEra::of(
            &headers(pairs),
            method,
            Some(&JsonText::parse(params).unwrap()),
        );
        let is_modern = era.map(|era| matches!(era, RequestEra::Modern(_)));
        is_modern.map_err(|refusal| (refusal.status.as_u16(), refusal.error.code))
    }

    fn meta(version: &str) -> String {
        format!(
            r#"{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{}}}},"name":"a b"}}"#
        )
    }

    #[test]
    fn the_era_follows_from_the_headers_and_the_body() {
        let modern = [
            ("mcp-protocol-version", MODERN),
            ("mcp-method", "tools/list"),
        ];
        assert_eq!(judged(&[], "initialize", "{}"), Ok(false));
        assert_eq!(
            judged(
                &[("mcp-protocol-version", "2025-06-18")],
                "tools/list",
                "{}"
            ),
            Ok(false)
        );
        assert_eq!(judged(&modern, "tools/list", &meta(MODERN)), Ok(true));
        assert_eq!(
            judged(&[], "tools/list", &meta(MODERN)),
            Err((400, HEADER_MISMATCH))
        );
        assert_eq!(
            judged(&modern, "tools/list", "{}"),
            Err((400, INVALID_PARAMS))
        );
        assert_eq!(
            judged(&[], "server/discover", "{}"),
            Err((400, HEADER_MISMATCH))
        );
        assert_eq!(
            judged(&modern, "tools/list", &meta("v999.0.0")),
            Err((400, HEADER_MISMATCH))
        );
        let unsupported = [
            ("mcp-protocol-version", "v999.0.0"),
            ("mcp-method", "tools/list"),
        ];
        assert_eq!(
            judged(&unsupported, "tools/list", &meta("v999.0.0")),
            Err((400, UNSUPPORTED_VERSION))
        );
        assert_eq!(
            judged(&modern, "ping", &meta(MODERN)),
            Err((400, HEADER_MISMATCH))
        );
    }

    #[test]
    fn the_name_in_the_header_is_the_one_in_the_body() {
        let with = |name: &'static str| {
            [
                ("mcp-protocol-version", MODERN),
                ("mcp-method", "tools/call"),
                ("mcp-name", name),
            ]
        };
        for name in ["a b", " a b ", "=?base64?YSBi?="] {
            assert_eq!(
                judged(&with(name), "tools/call", &meta(MODERN)),
                Ok(true),
                "{name:?}"
            );
        }
        assert_eq!(
            judged(&with("other"), "tools/call", &meta(MODERN)),
            Err((400, HEADER_MISMATCH))
        );
    }
}
