//! The faces at which every tool can be called, and what differs between two runs.

use std::net::SocketAddr;

use regex::Regex;
use serde_json::{Value, json};

use crate::support::mcp_client::META;
use crate::support::serving::{Answer, ask};

/// A face that calls any tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    /// `POST /api/v1/tools/execute`.
    Http,
    /// `POST /mcp`, a client of 2026-07-28 without capabilities.
    Mcp,
    /// `POST /rpc`.
    JsonRpc,
    /// `POST /api/v1/turns`.
    Turns,
}

/// A call.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) profile: Option<&'static str>,
    /// The version of the definition that it is made for.
    pub(crate) version: Option<&'static str>,
    /// How many seconds a turn waits for what goes on.
    pub(crate) wait: u64,
}

impl Wanted {
    /// A call of this tool without arguments.
    pub(crate) fn of(tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            arguments: json!({}),
            profile: None,
            version: None,
            wait: 0,
        }
    }
}

impl Face {
    pub(crate) const ALL: [Self; 4] = [Self::Http, Self::Mcp, Self::JsonRpc, Self::Turns];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Mcp => "mcp",
            Self::JsonRpc => "json-rpc",
            Self::Turns => "turns",
        }
    }

    /// Calls a tool, and gives the answer as it came.
    pub(crate) async fn call(self, address: SocketAddr, wanted: &Wanted) -> Answer {
        match self {
            Self::Http => by_http(address, wanted).await,
            Self::Mcp => by_mcp(address, wanted).await,
            Self::JsonRpc => by_json_rpc(address, wanted).await,
            Self::Turns => by_turn(address, wanted).await,
        }
    }
}

/// Sends a JSON body.
pub(crate) async fn post(address: SocketAddr, target: &str, body: &Value) -> Answer {
    ask(
        address,
        "POST",
        target,
        &[("content-type", "application/json")],
        &body.to_string(),
    )
    .await
}

/// The target with the profile of the call.
fn of_profile(target: &str, wanted: &Wanted) -> String {
    let separator = if target.contains('?') { '&' } else { '?' };
    wanted.profile.map_or_else(
        || target.to_owned(),
        |profile| format!("{target}{separator}profile={profile}"),
    )
}

async fn by_http(address: SocketAddr, wanted: &Wanted) -> Answer {
    let mut body =
        json!({"tool_name": wanted.tool, "arguments": wanted.arguments, "profile": wanted.profile});
    if let Some(version) = wanted.version {
        body["definition_version"] = version.into();
    }
    post(address, "/api/v1/tools/execute", &body).await
}

async fn by_mcp(address: SocketAddr, wanted: &Wanted) -> Answer {
    let mut params = json!({"name": wanted.tool, "arguments": wanted.arguments});
    params["_meta"][format!("{META}protocolVersion")] = "2026-07-28".into();
    params["_meta"][format!("{META}clientCapabilities")] = json!({});
    params["_meta"][format!("{META}clientInfo")] = json!({"name": "tester", "version": "1"});
    if let Some(version) = wanted.version {
        params["_meta"]["callsheet/definition_version"] = version.into();
    }
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", &wanted.tool),
    ];
    ask(
        address,
        "POST",
        &of_profile("/mcp", wanted),
        &headers,
        &body.to_string(),
    )
    .await
}

async fn by_json_rpc(address: SocketAddr, wanted: &Wanted) -> Answer {
    let mut params = json!({"name": wanted.tool, "arguments": wanted.arguments});
    if let Some(version) = wanted.version {
        params["definition_version"] = version.into();
    }
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    post(address, &of_profile("/rpc", wanted), &body).await
}

async fn by_turn(address: SocketAddr, wanted: &Wanted) -> Answer {
    let function = json!({"name": wanted.tool, "arguments": wanted.arguments.to_string()});
    let call = json!({"id": "c0", "type": "function", "function": function});
    let response = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let body = json!({"response": response, "wait": wanted.wait});
    post(
        address,
        &of_profile("/api/v1/turns?format=openai", wanted),
        &body,
    )
    .await
}

/// What was answered, in one line.
pub(crate) fn line(answer: &Answer) -> String {
    let retry = answer
        .headers
        .get("retry-after")
        .map(|wait| format!(" retry-after {}", wait.to_str().unwrap()));
    format!(
        "{}{} {}",
        answer.status,
        retry.unwrap_or_default(),
        String::from_utf8_lossy(&answer.body).trim()
    )
}

/// The line without what differs between two runs.
pub(crate) fn masked(line: &str) -> String {
    const VARYING: [(&str, &str); 9] = [
        (
            r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d((\.\d+)?Z| UTC)",
            "<time>",
        ),
        (r"(127\.0\.0\.1|localhost):\d+", "$1:<port>"),
        (
            r#""(execution_time_ms|took_ms|duration_ms)":\d+"#,
            r#""$1":<ms>"#,
        ),
        (
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
            "<uuid>",
        ),
        (r"\b[0-9a-f]{16,64}\b", "<id>"),
        (r"\b\d+ (s|seconds)\b", "<seconds> $1"),
        (r"retry-after \d+", "retry-after <seconds>"),
        (r#""(retry_after_s)":\d+"#, r#""$1":<seconds>"#),
        (r"[\r\n]+", " / "),
    ];
    VARYING
        .iter()
        .fold(line.to_owned(), |line, (pattern, word)| {
            Regex::new(pattern)
                .unwrap()
                .replace_all(&line, *word)
                .into_owned()
        })
}
