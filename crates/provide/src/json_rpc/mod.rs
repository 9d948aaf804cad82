//! Tools over plain JSON-RPC 2.0: `POST /rpc`, one handler for all methods.
//!
//! The methods are `tools/list`, `tools/call`, `tools/describe` and `server/identity`. A client
//! keeps the list and lists again only when the identity differs. What reads and writes messages,
//! and the identity, also serve other programs that speak this protocol.
//!
//! Never here: sessions, and requests to the client.

mod envelope;
mod identity;
mod schema;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::registry::{CallStart, Registry, ServedOffer};

pub use envelope::{AnswerError, IncomingMessage, MAX_BATCH, Received, answer, read};
pub use identity::{IdentifiedTool, ListIdentity};
pub use schema::input_schema;

/// Messages of one batch that are worked on at a time.
const AT_A_TIME: usize = 8;

/// The list and its identity as JSON texts, made once for each offer.
pub(crate) struct RpcOffer {
    list: String,
    identity: String,
}

/// `POST /rpc`: a message, or a batch of them. 204 if they want no answer, else 200: an error of
/// the protocol is an answer.
pub(crate) async fn receive(State(registry): State<Registry>, body: Bytes) -> Response {
    let answered = match read(&body) {
        Received::One(message) => answer_one(&registry, message).await,
        Received::Batch(messages) => {
            let answers = stream::iter(messages).map(|message| answer_one(&registry, message)).buffered(AT_A_TIME);
            let answers: Vec<String> = answers.filter_map(std::future::ready).collect().await;
            (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
        }
    };
    match answered {
        Some(text) => ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], text).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

async fn answer_one(registry: &Registry, message: IncomingMessage) -> Option<String> {
    match message {
        IncomingMessage::Request { id, method, params } => {
            Some(answer(&id, result(registry, &method, params.as_deref()).await))
        }
        IncomingMessage::Notification => None,
        IncomingMessage::Refused { id, error } => Some(answer(id.as_deref().unwrap_or("null"), Err(error))),
    }
}

/// The result of a method as JSON text.
async fn result(registry: &Registry, method: &str, params: Option<&str>) -> Result<String, AnswerError> {
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
        let invalid = |why: String| AnswerError::invalid_params("Invalid parameters").with_data(why.into());
        // An array would be read as the members in their order.
        let text = params.filter(|params| params.starts_with('{')).unwrap_or("{}");
        let sent: SentParams = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
        let Value::String(name) = sent.name else { return Err(AnswerError::invalid_params("Missing 'name'")) };
        match sent.arguments {
            None | Some(Value::Null) => Ok(Self { name, arguments: Map::new() }),
            Some(Value::Object(arguments)) => Ok(Self { name, arguments }),
            Some(_) => Err(invalid("`arguments` is not an object".to_owned())),
        }
    }
}

async fn call(registry: &Registry, params: Option<&str>) -> Result<String, AnswerError> {
    let ToolParams { name, arguments } = ToolParams::read(params)?;
    match registry.run(&name, arguments.into()) {
        CallStart::Unknown => Err(unknown(&name)),
        CallStart::ListedOnly => {
            Err(AnswerError::refused(format!("{name} is listed here, but this program does not run it")))
        }
        // The tool's own failure has its text.
        CallStart::Runs(running) => {
            running.await.map(|result| result.to_string()).map_err(AnswerError::invalid_request)
        }
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

/// A tool as the list has it.
fn listed(tool: &Value) -> Value {
    let schema = tool["parameters"].to_string();
    let schema: Value = serde_json::from_str(input_schema(&schema)).unwrap_or_default();
    json!({"name": tool["name"], "description": tool["description"], "inputSchema": schema})
}

impl RpcOffer {
    /// Of the tools of an offer.
    pub(crate) fn new(offer: &ServedOffer) -> Self {
        let documents = offer.tools.values().map(|document| serde_json::from_slice(&document.body).unwrap_or_default());
        let tools: Vec<Value> = documents.map(|tool: Value| listed(&tool)).collect();
        let schemas: Vec<String> = tools.iter().map(|tool| tool["inputSchema"].to_string()).collect();
        let identified = tools.iter().zip(&schemas).map(|(tool, schema)| IdentifiedTool {
            name: tool["name"].as_str().unwrap_or_default(),
            description: tool["description"].as_str().unwrap_or_default(),
            schema,
        });
        // The members of an identity can always be written.
        let identity = serde_json::to_string(&ListIdentity::of(identified.collect())).unwrap_or_default();
        Self { list: json!({"tools": tools}).to_string(), identity }
    }
}
