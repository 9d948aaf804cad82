//! What each method answers.

use axum::response::Response;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use crate::model::JsonText;
use crate::server::mcp::context::McpContext;
use crate::server::mcp::era::{LEGACY, MODERN, Refusal, RequestEra};
use crate::server::mcp::{calls, changes, lists, own_tools};

/// How to use the tools, for the model.
const INSTRUCTIONS: &str = "The tools come from several providers; callsheet passes each call on to the one that owns the tool. The list changes while providers come and go. A call that needs the approval of a person says so, and where it is decided.";

/// The answer to a request.
pub(super) enum Answer {
    /// The text of the result.
    Result(Bytes),
    /// A stream of events.
    Stream(Response),
}

/// Answers a request without a handshake.
pub(super) async fn modern(
    context: &McpContext,
    id: &JsonText,
    method: &str,
    params: Option<&JsonText>,
) -> Result<Answer, Refusal> {
    match method {
        "server/discover" => Ok(result(&json!({
            "resultType": "complete",
            "supportedVersions": [MODERN],
            "capabilities": {"tools": {"listChanged": true}},
            "instructions": INSTRUCTIONS,
            "ttlMs": 3_600_000,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
        }))),
        "subscriptions/listen" => changes::listen(context, id, params).await.map(Answer::Stream),
        _ => common(context, RequestEra::Modern, method, params).await,
    }
}

/// Answers a request of a client that begins with a handshake.
pub(super) async fn legacy(context: &McpContext, method: &str, params: Option<&JsonText>) -> Result<Answer, Refusal> {
    match method {
        "initialize" => Ok(result(&json!({
            "protocolVersion": version(params),
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": server_info(),
            "instructions": INSTRUCTIONS,
        }))),
        "ping" => Ok(result(&json!({}))),
        _ => common(context, RequestEra::Legacy, method, params).await,
    }
}

async fn common(
    context: &McpContext,
    era: RequestEra,
    method: &str,
    params: Option<&JsonText>,
) -> Result<Answer, Refusal> {
    match method {
        "tools/list" => lists::tools(context, params).await.map(Answer::Result),
        "tools/call" => {
            let params = own_tools::meant(params);
            match own_tools::call(context, params.as_ref()).await {
                Some(own) => own.map(|result| Answer::Result(result.into())),
                None => calls::call(context, params.as_ref()).await.map(Answer::Result),
            }
        }
        _ => Err(Refusal::unknown_method(era, method)),
    }
}

/// The revision that a client wants, if it is known; else the newest.
fn version(params: Option<&JsonText>) -> &'static str {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InitializeParams {
        protocol_version: String,
    }
    let wanted = params.and_then(|params| serde_json::from_str::<InitializeParams>(params.get()).ok());
    let known = wanted.and_then(|wanted| LEGACY.into_iter().find(|version| *version == wanted.protocol_version));
    known.unwrap_or(LEGACY[0])
}

fn server_info() -> serde_json::Value {
    json!({"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")})
}

fn result(value: &serde_json::Value) -> Answer {
    Answer::Result(value.to_string().into())
}
