//! Tools over plain JSON-RPC 2.0: `POST /rpc`, one handler for all methods.
//!
//! ```text
//! text -> envelope: messages -> respond: each request -> result of its method -> envelope: answers
//!                                 `-> tools/list, tools/call, tools/describe, server/identity
//! ```
//!
//! What is kept true here:
//!
//! - A client keeps the list and lists again only when the identity differs: equal lists have equal
//!   identities.
//! - A message that is no request is answered and never run. A notification gets no answer.
//! - Answers come in the order of their requests. A batch has at most [`MAX_BATCH`] messages;
//!   beyond a number of bytes of answers its further requests are refused and not run.
//! - What reads and writes messages, and the identity, know no method and no registry: they also
//!   serve other programs that speak this protocol.
//!
//! Read in this order: `envelope.rs` (messages), `respond.rs` (a text to its answers), this file
//! (the methods), `offer.rs` with `schema.rs` (the list), `identity.rs`.
//!
//! Never here: sessions, and requests to the client.

mod envelope;
mod identity;
pub(crate) mod offer;
mod respond;
mod schema;

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::registry::{CallStart, Registry};

use offer::listed;

pub use envelope::{
    AnswerError, Envelope, IncomingMessage, MAX_BATCH, Received, answer, around_result, read,
};
pub use identity::{IdentifiedTool, ListIdentity};
pub use respond::respond;
pub use schema::input_schema;

/// The answer to the body of `POST /rpc`: a message, or a batch of them. 204 if they want no
/// answer, else 200: an error of the protocol is an answer.
pub(crate) async fn receive(registry: &Registry, body: &[u8]) -> Response {
    let run = |method: String, params: Option<String>| async move {
        result(registry, &method, params.as_deref()).await
    };
    match respond(body, run).await {
        Some(text) => (
            [
                (CONTENT_TYPE, "application/json"),
                (CACHE_CONTROL, "no-store"),
            ],
            text,
        )
            .into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

/// The result of a method as JSON text.
async fn result(
    registry: &Registry,
    method: &str,
    params: Option<&str>,
) -> Result<String, AnswerError> {
    match method {
        "tools/list" => Ok(registry.offer().rpc().list.clone()),
        "tools/call" => call(registry, params).await,
        "tools/describe" => describe(registry, params),
        "server/identity" => Ok(registry.offer().rpc().identity.clone()),
        _ => Err(AnswerError::method_not_found()),
    }
}

/// The parameters that name a tool. Further members are ignored.
struct ToolParams {
    name: String,
    arguments: Map<String, Value>,
}

impl ToolParams {
    fn read(params: Option<&str>) -> Result<Self, AnswerError> {
        #[derive(Deserialize)]
        struct SentParams {
            #[serde(default)]
            name: Value,
            #[serde(default)]
            arguments: Option<Value>,
        }
        let invalid =
            |why: String| AnswerError::invalid_params("Invalid parameters").with_data(why.into());
        // An array would be read as the members in their order.
        let text = params
            .filter(|params| params.starts_with('{'))
            .unwrap_or("{}");
        let sent: SentParams =
            serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
        let Value::String(name) = sent.name else {
            return Err(AnswerError::invalid_params("Missing 'name'"));
        };
        match sent.arguments {
            None | Some(Value::Null) => Ok(Self {
                name,
                arguments: Map::new(),
            }),
            Some(Value::Object(arguments)) => Ok(Self { name, arguments }),
            Some(_) => Err(invalid("`arguments` is not an object".to_owned())),
        }
    }
}

async fn call(registry: &Registry, params: Option<&str>) -> Result<String, AnswerError> {
    let ToolParams { name, arguments } = ToolParams::read(params)?;
    match registry.run(&name, arguments.into()) {
        CallStart::Unknown => Err(unknown(&name)),
        CallStart::ListedOnly => Err(AnswerError::refused(format!(
            "{name} is listed here, but this program does not run it"
        ))),
        // The tool's own failure has its text.
        CallStart::Runs(running) => running
            .await
            .map(|result| result.to_string())
            .map_err(AnswerError::invalid_request),
    }
}

/// The tool as in the list, and in `details` as `GET /api/v1/tools/{name}` has it.
fn describe(registry: &Registry, params: Option<&str>) -> Result<String, AnswerError> {
    let ToolParams { name, .. } = ToolParams::read(params)?;
    let offer = registry.offer();
    let document = offer.tools.get(&name).ok_or_else(|| unknown(&name))?;
    let details: Value = serde_json::from_slice(&document.body).unwrap_or_default();
    let mut described = listed(&details);
    described["details"] = details;
    Ok(described.to_string())
}

fn unknown(name: &str) -> AnswerError {
    AnswerError::invalid_request(format!("no tool is called `{name}`"))
}
