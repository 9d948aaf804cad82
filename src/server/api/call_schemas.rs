//! Types that describe the JSON of calls, which is written by hand because results are passed on
//! byte for byte. Tests compare real answers with their schemas.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use crate::protocols::LogLevel;
use crate::server::api::active_calls::ActiveCallJson;
use crate::server::api::call_event_json::InteractionJson;
use crate::server::api::shared_json::Time;
use crate::server::http::params::grammar;

/// A call of a tool. Further members are ignored; a text that is empty or null is as good as none.
#[derive(JsonSchema)]
#[schemars(rename = "Call")]
#[expect(dead_code, reason = "it describes what is read with its numbers as they were written")]
pub(in crate::server) struct CallBody {
    /// A published name, `scenario/tool`, or a name that only one tool has.
    #[schemars(length(min = 1))]
    tool_name: String,
    /// The arguments: an object, or a text that holds one; none when absent or null.
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "arguments")]
    arguments: Option<Value>,
    /// The scenario that owns the tool; then the name may be the tool's own.
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "scenario")]
    scenario: Option<String>,
    /// The conversation, whose preferences apply.
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "free")]
    chat_id: Option<String>,
    /// The client's profile: its preferences and its limits apply.
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "profile_name")]
    profile: Option<String>,
    /// User ID passed on to the scenario, if its protocol supports it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    /// The `ETag` or `revision` of the list that the name was taken from. Without it the name is
    /// looked up in the present list.
    #[schemars(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    /// An id that no other call has, by which the call is followed and cancelled; one is made
    /// without it.
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "call_ids")]
    call_id: Option<String>,
    /// The least severe log messages of the tool that are wanted as events; `info` without it.
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "log_levels")]
    log_level: Option<String>,
}

fn call_ids(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string", "pattern": "^[A-Za-z0-9._-]{8,100}$"}, {"enum": ["", null]}]})
}

fn log_levels(_: &mut SchemaGenerator) -> Schema {
    let mut known: Vec<Value> = LogLevel::ALL.iter().map(|level| Value::from(level.as_str())).collect();
    known.extend([Value::from(""), Value::Null]);
    json_schema!({"enum": known})
}

fn arguments(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["object", "string", "null"]})
}

fn scenario(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string", "pattern": grammar::SCENARIO}, {"enum": ["", null]}]})
}

fn profile_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string", "pattern": grammar::FREE}, {"type": "null"}]})
}

fn free(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string", "pattern": grammar::FREE}, {"enum": ["", null]}]})
}

/// What a scenario answered to a call. That a tool failed is an answer, too.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is only described")]
pub(in crate::server) struct CallAnswer {
    /// Whether the tool succeeded.
    success: bool,
    /// The result, unchanged. Of an MCP server its structured content, or else its text.
    result: Value,
    /// The whole result of an MCP server, with its content blocks.
    #[schemars(skip_serializing_if = "Option::is_none")]
    content: Option<Value>,
    /// The error, in the scenario's words.
    #[schemars(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The error code, as the scenario has it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// `completed`, `failed`, or what the scenario calls the state of what goes on.
    status: String,
    execution_time_ms: u64,
    scenario: String,
    /// The name that its scenario gave it.
    tool_name: String,
    /// The published name.
    name: String,
    /// The definition that was called, as `scenario/tool`, if the tool ran as its activity.
    #[schemars(skip_serializing_if = "Option::is_none")]
    definition: Option<String>,
    /// Where it was sent; empty for a latent call.
    url: String,
    /// How often it was sent; 0 for a latent call.
    attempts: u32,
    /// The id of the call.
    call_id: String,
    /// JSON pointers to members that were `null` for "not set" and were taken out of the arguments.
    #[schemars(skip_serializing_if = "Option::is_none")]
    adjusted: Option<Vec<String>>,
    /// What the scenario answered beside the result, where operations of the tool are followed, or
    /// it follows or cancels those of another one.
    #[schemars(skip_serializing_if = "Option::is_none")]
    provider_answer: Option<Map<String, Value>>,
    /// Present if an operation is running.
    #[schemars(skip_serializing_if = "Option::is_none")]
    is_async: Option<bool>,
    /// The scenario's own id of the operation.
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "run_ids")]
    run_id: Option<String>,
    /// The operation that is running.
    #[schemars(skip_serializing_if = "Option::is_none")]
    operation_id: Option<String>,
    /// Why its progress cannot be tracked.
    #[schemars(skip_serializing_if = "Option::is_none")]
    untracked: Option<String>,
}

fn run_ids(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"]})
}

/// A call that waits for approval.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is only described")]
pub(in crate::server) struct CallWaits {
    success: bool,
    result: (),
    error: String,
    /// `approval_required`.
    code: String,
    /// `waiting_for_approval`.
    status: String,
    scenario: String,
    /// The name that its scenario gave it.
    tool_name: String,
    /// Under which its answer will be.
    approval_id: String,
    /// Until when it may be decided.
    expires_at: Time,
    /// JSON pointers to members that were `null` for "not set" and were taken out of the arguments.
    #[schemars(skip_serializing_if = "Option::is_none")]
    adjusted: Option<Vec<String>>,
}

/// A call that is not over.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "CallAccepted")]
#[expect(dead_code, clippy::large_enum_variant, reason = "it is only described")]
pub(in crate::server) enum Accepted<'a> {
    GoesOn(CallAnswer),
    Waits(CallWaits),
    NeedsInput(CallNeedsInput<'a>),
}

/// A call whose tool waits for input.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is only described")]
pub(in crate::server) struct CallNeedsInput<'a> {
    success: bool,
    result: (),
    error: String,
    /// `input_required`.
    code: String,
    /// `waiting_for_input`.
    status: String,
    /// The name that the caller used.
    tool_name: String,
    call_id: String,
    interaction: InteractionJson<'a>,
}

/// A call under way, or the answer of one that is over.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, clippy::large_enum_variant, reason = "it is only described")]
pub(in crate::server) enum CallState<'a> {
    UnderWay(ActiveCallJson<'a>),
    Over(CallAnswer),
}
