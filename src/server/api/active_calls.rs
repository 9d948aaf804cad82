//! `/api/v1/calls` and `/api/v1/interactions`: shows and cancels calls under way, and gives them
//! the input that their tools wait for. A call of another caller counts as unknown, but with the
//! right `operate`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::calls::active::{ActiveCall, CallPhase, InputError};
use crate::model::JsonText;
use crate::server::api::call_answers::CallState;
use crate::server::api::call_event_json::{self, ActiveCallJson};
use crate::server::api::{calls, shared_json};
use crate::server::auth::Access;
use crate::server::http::body::bad_member;
use crate::server::http::error::Problem;
use crate::server::http::query::NoQuery;
use crate::server::http::typed_body::ApiJson;
use crate::server::{ServerState, SharedState};

/// Input for a tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Input")]
pub(in crate::server) struct InputBody {
    /// `accept` gives the content, `decline` refuses it, `cancel` dismisses the question.
    #[schemars(regex(pattern = "^(accept|decline|cancel)$"))]
    action: String,
    /// What the form has: an object, or a text that holds one.
    #[schemars(
        skip_serializing_if = "Option::is_none",
        schema_with = "content_schema"
    )]
    content: Option<Value>,
}

fn content_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["object", "string"]})
}

/// `GET /api/v1/calls/{call_id}`: how far a call is; the answer of one that is over, as its caller
/// got or would have got it.
pub(in crate::server) async fn show(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
    access: Access,
) -> Result<Response, Problem> {
    let call = find(&shared, &id, access)?;
    match call.phase() {
        CallPhase::Over(end) => {
            let answer = calls::answer_of(&shared, call, end).await;
            answer.map(IntoResponse::into_response)
        }
        phase => state(&call, phase.input_status(), StatusCode::OK),
    }
}

/// `DELETE /api/v1/calls/{call_id}`: cancels a call. 202, since its scenario may take a while; 409
/// if it is over.
pub(in crate::server) async fn cancel(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
    access: Access,
) -> Result<Response, Problem> {
    let call = find(&shared, &id, access)?;
    if let CallPhase::Over(_) = call.phase() {
        return Err(already_over());
    }
    call.cancel();
    state(&call, "cancelling", StatusCode::ACCEPTED)
}

/// `POST /api/v1/interactions/{id}` `{action, content?}`: gives the input, and answers as the call
/// does.
pub(in crate::server) async fn give(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
    access: Access,
    ApiJson(body): ApiJson<InputBody>,
) -> Result<Response, Problem> {
    let reply = JsonText::known(reply(body)?);
    let (call, end) = shared
        .calls
        .give_input(&id, reply, |owner| access.may_see(owner))
        .await?;
    Ok(calls::answer_of(&shared, call, end).await?.into_response())
}

/// The result of an elicitation that the body means.
fn reply(body: InputBody) -> Result<String, Problem> {
    let action = body.action;
    match action.as_str() {
        "accept" => Ok(
            serde_json::json!({"action": "accept", "content": content(body.content)?}).to_string(),
        ),
        "decline" | "cancel" => Ok(serde_json::json!({"action": action}).to_string()),
        _ => Err(bad_member(
            "action",
            &Value::from(action),
            "`accept`, `decline` or `cancel`",
        )),
    }
}

/// The content of a form. Pages send it as a text.
fn content(given: Option<Value>) -> Result<Map<String, Value>, Problem> {
    let bad = |value: &Value| bad_member("content", value, "an object, or a text that holds one");
    match given {
        None => Ok(Map::new()),
        Some(Value::Object(content)) => Ok(content),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Map::new()),
        Some(Value::String(text)) => {
            serde_json::from_str(&text).map_err(|_| bad(&Value::String(text)))
        }
        Some(other) => Err(bad(&other)),
    }
}

/// The call with this id, if this caller may see it.
fn find(shared: &ServerState, id: &str, access: Access) -> Result<Arc<ActiveCall>, Problem> {
    let call = shared
        .calls
        .active()
        .get(id)
        .filter(|call| access.may_see(call.owner()));
    call.ok_or_else(unknown_call)
}

/// The problem for an id that no call has.
pub(in crate::server) fn unknown_call() -> Problem {
    Problem::not_found("no call under way has this id: it is over, or never was")
        .with_member("code", "unknown_call")
}

/// The problem of cancelling a call that is over.
pub(in crate::server) fn already_over() -> Problem {
    let problem = Problem::new(StatusCode::CONFLICT, "the call is over");
    problem
        .and_next("`GET` of the same address has its answer")
        .with_member("code", "already_over")
}

fn state(call: &ActiveCall, status: &'static str, code: StatusCode) -> Result<Response, Problem> {
    let input = call.pending_input();
    let json = ActiveCallJson {
        call_id: call.id(),
        tool_name: call.tool_name(),
        status,
        interaction: input.as_deref().map(call_event_json::interaction),
    };
    let mut answer = shared_json::json(&CallState::UnderWay(json))?;
    *answer.status_mut() = code;
    Ok(answer)
}

impl CallPhase {
    /// The word for a call that is not over.
    fn input_status(&self) -> &'static str {
        if matches!(self, Self::NeedsInput(_)) {
            "waiting_for_input"
        } else {
            "running"
        }
    }
}

impl From<InputError> for Problem {
    fn from(error: InputError) -> Self {
        Self::not_found(error.to_string()).with_member("code", "unknown_interaction")
    }
}
