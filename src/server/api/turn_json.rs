//! JSON shapes of turns: what is requested, and what became of each call.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::calls::Violation;
use crate::calls::turns::{Settled, Turn, TurnCall, TurnCallStatus, TurnPhase};
use crate::server::api::call_event_json::{self, InteractionJson};
use crate::server::api::shared_json::RawJson;
use crate::server::http::error::Problem;

/// The largest number of seconds that an answer may be waited for.
pub(in crate::server) const WAIT_MAX: u32 = 600;

/// A vendor's response with options. A body that has no `response` is the vendor's response itself.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TurnRequest")]
pub(in crate::server) struct TurnBody<'a> {
    /// The vendor's whole response, or the assistant's message in it.
    #[serde(borrow)]
    #[schemars(with = "Value")]
    pub(super) response: &'a RawValue,
    /// The `Callsheet-Revision` or the `ETag` of the list that the model has.
    #[serde(default)]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub(super) revision: Option<String>,
    /// How many calls are under way at once; as many as the limits allow without it.
    #[serde(default)]
    #[schemars(skip_serializing_if = "Option::is_none", range(min = 1))]
    pub(super) parallel: Option<usize>,
    /// `all` calls, which is the default; `any`: the first one that succeeds; `race`: the first one
    /// that ends. The others are cancelled where their scenario can. `any` and `race` are for
    /// idempotent tools.
    #[serde(default)]
    #[schemars(
        skip_serializing_if = "Option::is_none",
        regex(pattern = "^(all|any|race)$")
    )]
    pub(super) mode: Option<String>,
    /// How many seconds approvals, input and operations are waited for; 0 without it.
    #[serde(default)]
    #[schemars(skip_serializing_if = "Option::is_none", range(max = WAIT_MAX))]
    pub(super) wait: Option<u32>,
    /// An id that no other turn has: with it, the same turn sent again runs no call twice.
    #[serde(default)]
    #[schemars(
        skip_serializing_if = "Option::is_none",
        regex(pattern = "^[A-Za-z0-9._-]{8,90}$")
    )]
    pub(super) turn_id: Option<String>,
    /// `wait`: the turn is answered 202 while a call waits for approval. `tell`: the model gets a
    /// text that says so.
    #[serde(default)]
    #[schemars(
        skip_serializing_if = "Option::is_none",
        regex(pattern = "^(wait|tell)$")
    )]
    pub(super) approvals: Option<String>,
    /// The most tokens of text of one result, as estimated. What is longer is cut with a mark.
    #[serde(default)]
    #[schemars(skip_serializing_if = "Option::is_none", range(min = 1))]
    pub(super) max_result_tokens: Option<usize>,
    /// The names of the program's own tools. With them, calls of any other name that no tool has
    /// are refused; without them, such calls are left to the program.
    #[serde(default)]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub(super) own_tools: Option<Vec<String>>,
    /// User ID passed on to the scenario, if its protocol supports it.
    #[serde(default)]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub(super) user_id: Option<String>,
}

/// What became of a turn.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Turn")]
pub(in crate::server) struct TurnJson<'a> {
    turn_id: &'a str,
    /// `complete`, or `waiting`.
    status: &'static str,
    /// What follows the assistant's message in the next request, in the vendor's shape. `null`
    /// while a call is not over.
    #[schemars(with = "Option<Vec<Value>>")]
    messages: Option<Box<RawValue>>,
    /// What became of each call, in the model's order.
    calls: Vec<TurnCallJson<'a>>,
    /// Whether the list with the given `revision` is not remembered: names that could mean several
    /// tools were not called.
    is_revision_forgotten: bool,
}

/// One call of a turn.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TurnCall")]
struct TurnCallJson<'a> {
    /// The vendor's id of the call.
    id: Option<&'a str>,
    /// The name that the model used.
    name: &'a str,
    #[schemars(schema_with = "statuses")]
    status: &'static str,
    /// The id of the call: for its events, and for its whole result.
    call_id: String,
    scenario: Option<&'a str>,
    /// The name that its scenario gave it.
    tool_name: Option<&'a str>,
    /// The definition that was called, if the activity of another scenario ran it, as
    /// `scenario/tool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<String>,
    /// Whether the model gets less than the whole result: `GET /api/v1/results/{call_id}` has it.
    is_cut: bool,
    /// What the model gets where there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The short word for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    violations: Vec<ViolationJson>,
    /// The names of tools that may be meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<String>,
    /// The approval that it waits or waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<String>,
    /// The operation that goes on, or went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<String>,
    /// The input that its tool waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<InteractionJson<'static>>")]
    interaction: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_time_ms: Option<u64>,
    /// JSON pointers to members that were `null` for "not set" and were taken out of the arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    adjusted: Vec<String>,
    /// Why callsheet declined a question of the tool, and what to do: no user declined it.
    #[serde(skip_serializing_if = "Option::is_none")]
    declined: Option<String>,
}

/// A place in arguments that does not fit.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TurnViolation")]
struct ViolationJson {
    /// A JSON pointer.
    pointer: String,
    message: String,
}

impl From<Violation> for ViolationJson {
    fn from(violation: Violation) -> Self {
        Self {
            pointer: violation.pointer,
            message: violation.message,
        }
    }
}

/// The whole result of one call of a turn.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TurnResult")]
pub(in crate::server) struct ResultJson<'a> {
    call_id: &'a str,
    turn_id: &'a str,
    /// The name that the model used.
    name: &'a str,
    #[schemars(schema_with = "statuses")]
    status: &'static str,
    /// What the tool gave back.
    #[schemars(with = "Option<Value>")]
    result: Option<RawJson<'a>>,
    /// The whole result of an MCP server, with its content blocks.
    #[schemars(with = "Option<Value>")]
    content: Option<RawJson<'a>>,
    /// What the model gets where there is no result.
    error: Option<&'a str>,
    /// The short word for it.
    code: Option<&'a str>,
}

fn statuses(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": TurnCallStatus::ALL.map(TurnCallStatus::as_str)})
}

/// A turn as it is now.
pub(super) fn turn(turn: &Turn) -> Result<TurnJson<'_>, Problem> {
    let messages = turn.messages();
    let status = if messages.is_some() {
        "complete"
    } else {
        "waiting"
    };
    let messages = messages
        .map(RawValue::from_string)
        .transpose()
        .map_err(|error| Problem::internal(&error))?;
    let calls = turn.calls.iter().zip(turn.phases()).enumerate();
    Ok(TurnJson {
        turn_id: &turn.id,
        status,
        messages,
        calls: calls
            .map(|(number, (made, phase))| call(turn, number, made, &phase))
            .collect(),
        is_revision_forgotten: turn.settings.is_revision_forgotten,
    })
}

fn call<'a>(turn: &Turn, number: usize, made: &'a TurnCall, phase: &TurnPhase) -> TurnCallJson<'a> {
    let json = TurnCallJson {
        id: made.read.id.as_deref(),
        name: &made.read.name,
        status: phase.status().as_str(),
        call_id: turn.call_id(number),
        scenario: made.tool.as_ref().map(|tool| tool.scenario.as_str()),
        tool_name: made.tool.as_ref().map(|tool| &*tool.tool),
        definition: None,
        is_cut: false,
        error: None,
        code: None,
        violations: Vec::new(),
        candidates: Vec::new(),
        approval_id: None,
        operation_id: None,
        interaction: None,
        execution_time_ms: None,
        adjusted: Vec::new(),
        declined: None,
    };
    match phase {
        TurnPhase::Queued | TurnPhase::Running => json,
        TurnPhase::NeedsInput(input) => {
            let interaction = serde_json::to_value(call_event_json::interaction(input)).ok();
            TurnCallJson {
                interaction,
                ..json
            }
        }
        TurnPhase::WaitsForApproval(id) => TurnCallJson {
            code: Some("approval_required".to_owned()),
            approval_id: Some(id.as_ref().to_owned()),
            ..json
        },
        TurnPhase::GoesOn(settled) | TurnPhase::Over(settled) => {
            let is_cut = turn.is_cut(number, settled);
            let Settled {
                said,
                code,
                violations,
                candidates,
                took_ms,
                adjusted,
                definition,
                ..
            } = Settled::clone(settled);
            TurnCallJson {
                definition,
                is_cut,
                error: said,
                code,
                violations: violations.into_iter().map(ViolationJson::from).collect(),
                candidates,
                approval_id: settled.approval_id.as_deref().map(str::to_owned),
                operation_id: settled.operation_id.as_deref().map(str::to_owned),
                execution_time_ms: took_ms,
                adjusted,
                declined: settled.declined.map(|why| why.to_string()),
                ..json
            }
        }
    }
}

/// The whole result of a call that is over.
pub(super) fn result<'a>(
    id: &'a str,
    turn: &'a Turn,
    call: &'a TurnCall,
    settled: &'a Settled,
) -> ResultJson<'a> {
    ResultJson {
        call_id: id,
        turn_id: &turn.id,
        name: &call.read.name,
        status: settled.status.as_str(),
        result: settled.result.as_ref().map(RawJson),
        content: settled.content.as_ref().map(RawJson),
        error: settled.said.as_deref(),
        code: settled.code.as_deref(),
    }
}
