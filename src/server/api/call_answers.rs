//! The answers to calls. Results are passed on byte for byte.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::calls::active::{ActiveCall, PendingInput};
use crate::calls::{AwaitedApproval, GoingOn, ToolAnswer};
use crate::model::{JsonText, ViewTool};
use crate::server::ServerState;
use crate::server::api::call_event_json::{self, ActiveCallJson, InteractionJson};
use crate::server::api::shared_json::{self, RawJson, Time};
use crate::server::http::error::Problem;

/// The answer to a call.
pub(in crate::server) type CallHttpResponse = Response<Full<Bytes>>;

/// What a scenario answered to a call. That a tool failed is an answer, too.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct CallAnswer<'a> {
    /// Whether the tool succeeded.
    success: bool,
    /// The result, unchanged. Of an MCP server its structured content, or else its text.
    #[schemars(with = "Value")]
    result: Option<RawJson<'a>>,
    /// The whole result of an MCP server, with its content blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    content: Option<RawJson<'a>>,
    /// The error, in the scenario's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    /// The error code, as the scenario has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    /// `completed`, `failed`, or what the scenario calls the state of what goes on.
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, !skip_serializing_if)]
    execution_time_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, !skip_serializing_if)]
    scenario: Option<&'a str>,
    /// The name that its scenario gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, !skip_serializing_if)]
    tool_name: Option<&'a str>,
    /// The published name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, !skip_serializing_if)]
    name: Option<&'a str>,
    /// The definition that was called, as `scenario/tool`, if the tool ran as its activity.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<String>,
    /// Where it was sent; empty for a latent call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, !skip_serializing_if)]
    url: Option<&'a str>,
    /// How often it was sent; 0 for a latent call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, !skip_serializing_if)]
    attempts: Option<u32>,
    /// The id of the call.
    call_id: &'a str,
    /// JSON pointers to members that were `null` for "not set" and were taken out of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    adjusted: Option<&'a [String]>,
    /// Why callsheet declined a question of the tool, and what to do: no user declined it.
    #[serde(skip_serializing_if = "Option::is_none")]
    declined: Option<String>,
    /// What the scenario answered beside the result, where operations of the tool are followed, or
    /// it follows or cancels those of another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_answer: Option<Map<String, Value>>,
    /// Present if an operation is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_async: Option<bool>,
    /// The scenario's own id of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "run_id_schema")]
    run_id: Option<&'a Option<String>>,
    /// The operation that is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<&'a str>,
    /// Why its progress cannot be tracked.
    #[serde(skip_serializing_if = "Option::is_none")]
    untracked: Option<&'a str>,
}

fn run_id_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"]})
}

/// A call that waits for approval.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct CallWaits<'a> {
    success: bool,
    result: (),
    error: String,
    /// `approval_required`.
    code: &'static str,
    /// `waiting_for_approval`.
    status: &'static str,
    scenario: &'a str,
    /// The name that its scenario gave it.
    tool_name: &'a str,
    /// Under which its answer will be.
    approval_id: &'a str,
    /// Until when it may be decided.
    expires_at: Time,
    /// JSON pointers to members that were `null` for "not set" and were taken out of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    adjusted: Option<&'a [String]>,
}

/// A call whose tool waits for input.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct CallNeedsInput<'a> {
    success: bool,
    result: (),
    error: String,
    /// `input_required`.
    code: &'static str,
    /// `waiting_for_input`.
    status: &'static str,
    /// The name that the caller used.
    tool_name: &'a str,
    call_id: &'a str,
    interaction: InteractionJson<'a>,
}

/// A call that is not over.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "CallAccepted")]
pub(in crate::server) enum Accepted<'a> {
    GoesOn(CallAnswer<'a>),
    Waits(CallWaits<'a>),
    NeedsInput(CallNeedsInput<'a>),
}

/// A call under way, or the answer of one that is over.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::server) enum CallState<'a> {
    UnderWay(ActiveCallJson<'a>),
    Over(CallAnswer<'a>),
}

/// Whether operations of a tool are followed, or those of another one are followed or cancelled by
/// it.
pub(super) fn takes_part_in_operations(shared: &ServerState, tool: &ViewTool) -> bool {
    let named = |other: &Arc<ViewTool>| {
        other
            .companions
            .iter()
            .any(|known| known.original == tool.id.tool)
    };
    let snapshot = shared.reader.snapshot();
    !tool.companions.is_empty()
        || snapshot
            .catalog
            .entry(&tool.id.scenario)
            .is_some_and(|entry| entry.tools.iter().any(named))
}

/// The members of a scenario's answer apart from its result.
fn beside_result(document: Option<&JsonText>) -> Map<String, Value> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct ProviderAnswer {
        #[serde(rename = "result")]
        _result: IgnoredAny,
        #[serde(flatten)]
        others: Map<String, Value>,
    }
    let answer = document.and_then(|text| serde_json::from_str::<ProviderAnswer>(text.get()).ok());
    answer.map(|answer| answer.others).unwrap_or_default()
}

/// The answer of a tool. Where operations are followed, the rest of what its scenario answered is
/// passed on too: another daemon reads the status there.
pub(super) fn answered(
    shared: &ServerState,
    answer: &ToolAnswer,
    call_id: &str,
) -> Result<CallHttpResponse, Problem> {
    let response = answer.response.as_deref();
    let running = response.and_then(|response| response.outcome.running.as_ref());
    let goes_on = running.is_some() || answer.going != GoingOn::No;
    let status = match (
        running.and_then(|running| running.status.as_deref()),
        goes_on,
    ) {
        (Some(word), _) => word,
        (None, true) => "running",
        (None, false) if answer.success => "completed",
        (None, false) => "failed",
    };
    let operation_id = if let GoingOn::As(operation) = &answer.going {
        Some(&**operation)
    } else {
        None
    };
    let untracked = if let GoingOn::Untracked(why) = &answer.going {
        Some(why.as_str())
    } else {
        None
    };
    let told = response.filter(|response| takes_part_in_operations(shared, &response.tool));
    let json = CallAnswer {
        success: answer.success,
        result: answer.result.as_ref().map(RawJson),
        content: answer.content.as_ref().map(RawJson),
        error: answer.error.as_deref(),
        code: answer.code.as_deref(),
        status,
        execution_time_ms: answer.took_ms,
        scenario: response.map(|response| response.tool.id.scenario.as_str()),
        tool_name: response.map(|response| &*response.tool.id.tool),
        name: response.map(|response| response.called().name.as_str()),
        definition: response
            .and_then(|response| response.definition.as_ref())
            .map(|tool| tool.id.to_string()),
        url: response.map(|response| response.url.as_str()),
        attempts: response.map(|response| response.attempts),
        call_id,
        adjusted: taken_out(&answer.adjusted),
        declined: answer.declined.map(|why| why.to_string()),
        provider_answer: told.map(|response| beside_result(response.outcome.document.as_ref())),
        is_async: goes_on.then_some(true),
        run_id: running.map(|running| &running.run_id),
        operation_id,
        untracked,
    };
    let result_bytes = answer
        .result
        .as_ref()
        .map_or(0, |result| result.get().len());
    if goes_on {
        json_answer(StatusCode::ACCEPTED, &Accepted::GoesOn(json), result_bytes)
    } else {
        json_answer(StatusCode::OK, &CallState::Over(json), result_bytes)
    }
}

/// The pointers to members that were taken out, if there are any.
pub(in crate::server) fn taken_out(adjusted: &[String]) -> Option<&[String]> {
    if adjusted.is_empty() {
        None
    } else {
        Some(adjusted)
    }
}

fn json_answer(
    status: StatusCode,
    document: &impl Serialize,
    result_bytes: usize,
) -> Result<CallHttpResponse, Problem> {
    Ok(shared_json::written(
        status,
        shared_json::bytes(document, result_bytes)?,
    ))
}

/// The answer for a call that waits for approval: 202 with the id of the approval.
pub(super) fn waiting_answer(awaited: &AwaitedApproval) -> Result<CallHttpResponse, Problem> {
    let waiting = &awaited.request;
    let id = &waiting.tool;
    let json = CallWaits {
        success: false,
        result: (),
        error: format!("a call of `{id}` needs the approval of a human, and waits for it"),
        code: "approval_required",
        status: "waiting_for_approval",
        scenario: id.scenario.as_str(),
        tool_name: &id.tool,
        approval_id: &waiting.id,
        expires_at: Time(waiting.expires_at),
        adjusted: taken_out(&awaited.adjusted),
    };
    json_answer(StatusCode::ACCEPTED, &Accepted::Waits(json), 0)
}

/// The answer for a call whose tool waits for input: 202 with the interaction.
pub(super) fn input_answer(
    call: &ActiveCall,
    input: &PendingInput,
) -> Result<CallHttpResponse, Problem> {
    let json = CallNeedsInput {
        success: false,
        result: (),
        error: format!(
            "the tool needs input to continue: {}",
            input.wanted.message()
        ),
        code: "input_required",
        status: "waiting_for_input",
        tool_name: call.tool_name(),
        call_id: call.id(),
        interaction: call_event_json::interaction(input),
    };
    json_answer(StatusCode::ACCEPTED, &Accepted::NeedsInput(json), 0)
}
