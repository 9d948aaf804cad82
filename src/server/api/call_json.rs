//! JSON shapes of approvals (calls that need the approval of a human) and of operations
//! (long-running tools). Only converts the model's types; stores and decides no approval or
//! operation.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::{
    ApprovalRequest, ApprovalState, JsonText, Operation, OperationState, Progress, StoredAnswer,
};
use crate::server::api::shared_json::{RawJson, Time};
use crate::server::auth::Access;

/// Largest size in bytes of arguments that a list shows. One approval by its id shows all.
const LISTED: usize = 16 * 1024;

/// A call that needs approval, without its arguments and its answer: they may be large, and are
/// read by id.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EventApproval")]
pub(in crate::server) struct ApprovalEvent<'a> {
    id: &'a str,
    #[schemars(schema_with = "approval_states")]
    state: &'static str,
    scenario: &'a str,
    /// The name that its scenario gave it.
    tool: &'a str,
    /// The name that the caller used.
    tool_name: &'a str,
    chat_id: Option<&'a str>,
    profile: Option<&'a str>,
    user_id: Option<&'a str>,
    /// The client: the name of an MCP client, or the `User-Agent` of another one.
    client: Option<&'a str>,
    asked_at: Time,
    /// Until when it may be decided.
    expires_at: Time,
    /// The name of the decider, as the decider gave it.
    decided_by: Option<&'a str>,
    decided_at: Option<Time>,
    /// The reason, if one was given.
    reason: Option<&'a str>,
    ended_at: Option<Time>,
}

/// A call that needs approval, as lists show it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ListedApproval")]
pub(in crate::server) struct ApprovalRow<'a> {
    #[serde(flatten)]
    event: ApprovalEvent<'a>,
    /// Exactly the text that will be sent; in lists `null` when it is large.
    #[schemars(with = "Option<Map<String, Value>>")]
    arguments: Option<RawJson<'a>>,
    arguments_bytes: usize,
    /// Digest of the call that an approval is bound to.
    digest: &'a str,
    owner: Owner<'a>,
}

/// The program that answered as the scenario when the call was requested.
#[derive(Debug, Serialize, JsonSchema)]
struct Owner<'a> {
    /// The identity that it claimed.
    identity: Option<&'a str>,
    /// Where it was: scheme, host and port.
    origin: Option<&'a str>,
}

/// A whole call that needs approval, with its outcome.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Approval")]
pub(in crate::server) struct ApprovalJson<'a> {
    #[serde(flatten)]
    row: ApprovalRow<'a>,
    /// Digest of the tool as it was offered then.
    definition: &'a str,
    /// There once it was run; `null` for clients without the token if the call was made with it.
    answer: Option<AnswerJson<'a>>,
}

/// The outcome of a call: the members of an answer to a call.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ApprovedAnswer")]
struct AnswerJson<'a> {
    success: bool,
    /// What the tool gave back.
    #[schemars(with = "Option<Value>")]
    result: Option<RawJson<'a>>,
    error: Option<&'a str>,
    /// The short word for it.
    code: Option<&'a str>,
    execution_time_ms: u64,
    /// The operation that is running.
    operation_id: Option<&'a str>,
}

/// An operation without its result.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EventOperation")]
pub(in crate::server) struct OperationEvent<'a> {
    id: &'a str,
    #[schemars(schema_with = "operation_states")]
    state: &'static str,
    scenario: &'a str,
    /// The name that its scenario gave it.
    tool: &'a str,
    chat_id: Option<&'a str>,
    profile: Option<&'a str>,
    user_id: Option<&'a str>,
    /// The scenario's own id of it: a text or a number.
    reference: Value,
    /// The state as the scenario last named it.
    status: Option<&'a str>,
    progress: ProgressJson<'a>,
    /// Why it is in this state, or why the latest poll failed.
    note: Option<&'a str>,
    /// The error of the operation, as the scenario reports it.
    error: Option<&'a str>,
    started_at: Time,
    /// When its state was last polled.
    polled_at: Option<Time>,
    /// When following it ends at the latest.
    deadline_at: Time,
    cancelling_since: Option<Time>,
    ended_at: Option<Time>,
}

/// The progress of an operation, as its scenario reports it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Progress")]
struct ProgressJson<'a> {
    /// Mostly a percentage.
    progress: Option<f64>,
    message: Option<&'a str>,
    phase: Option<&'a str>,
    current_step: Option<f64>,
    total_steps: Option<f64>,
    /// The remaining time or work, as the scenario writes it.
    estimated_remaining: Option<&'a str>,
}

/// Everything about an operation.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Operation")]
pub(in crate::server) struct OperationJson<'a> {
    #[serde(flatten)]
    event: OperationEvent<'a>,
    /// What came of it.
    #[schemars(with = "Option<Value>")]
    result: Option<RawJson<'a>>,
}

fn approval_states(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ApprovalState::ALL.map(ApprovalState::as_str)})
}

fn operation_states(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": OperationState::ALL.map(OperationState::as_str)})
}

/// An approval as events carry it: without arguments and answer.
pub(in crate::server) fn approval_event(request: &ApprovalRequest) -> ApprovalEvent<'_> {
    let decided = request.decided.as_ref();
    ApprovalEvent {
        id: &request.id,
        state: request.state.as_str(),
        scenario: request.tool.scenario.as_str(),
        tool: &request.tool.tool,
        tool_name: &request.name,
        chat_id: request.caller.chat.as_deref(),
        profile: request.caller.profile.as_deref(),
        user_id: request.caller.user_id.as_deref(),
        client: request.caller.client.as_deref(),
        asked_at: Time(request.asked_at),
        expires_at: Time(request.expires_at),
        decided_by: decided.map(|decided| &*decided.by),
        decided_at: decided.map(|decided| Time(decided.at)),
        reason: decided.and_then(|decided| decided.reason.as_deref()),
        ended_at: request.ended_at.map(Time),
    }
}

/// An approval as lists show it: as in events, with the arguments unless they are larger than
/// [`LISTED`], and with the digest that an approval is bound to.
pub(in crate::server) fn approval_row(request: &ApprovalRequest) -> ApprovalRow<'_> {
    row(request, LISTED)
}

/// A whole approval, with the answer of the call if there is one that this access may see.
pub(in crate::server) fn approval(request: &ApprovalRequest, access: Access) -> ApprovalJson<'_> {
    let shown = request
        .answer
        .as_ref()
        .filter(|_| access.may_see_outcome(request.access.as_deref()));
    ApprovalJson {
        row: row(request, usize::MAX),
        definition: &request.definition,
        answer: shown.map(answer),
    }
}

/// An approval with its arguments if they have at most `most` bytes.
fn row(request: &ApprovalRequest, most: usize) -> ApprovalRow<'_> {
    let bytes = request.arguments.get().len();
    ApprovalRow {
        event: approval_event(request),
        arguments: (bytes <= most).then_some(RawJson(&request.arguments)),
        arguments_bytes: bytes,
        digest: &request.digest,
        owner: Owner {
            identity: request.owner.identity.as_deref(),
            origin: request.owner.origin.as_deref(),
        },
    }
}

fn answer(answer: &StoredAnswer) -> AnswerJson<'_> {
    AnswerJson {
        success: answer.success,
        result: answer.result.as_ref().map(RawJson),
        error: answer.error.as_deref(),
        code: answer.code.as_deref(),
        execution_time_ms: answer.took_ms,
        operation_id: answer.operation.as_deref(),
    }
}

/// An operation as events carry it: without its result.
pub(in crate::server) fn operation_event(operation: &Operation) -> OperationEvent<'_> {
    OperationEvent {
        id: &operation.id,
        state: operation.state.as_str(),
        scenario: operation.tool.scenario.as_str(),
        tool: &operation.tool.tool,
        chat_id: operation.caller.chat.as_deref(),
        profile: operation.caller.profile.as_deref(),
        user_id: operation.caller.user_id.as_deref(),
        reference: value(&operation.reference),
        status: operation.status.as_deref(),
        progress: progress(&operation.progress),
        note: operation.note.as_deref(),
        error: operation.error.as_deref(),
        started_at: Time(operation.started_at),
        polled_at: operation.polled_at.map(Time),
        deadline_at: Time(operation.deadline_at),
        cancelling_since: operation.cancelling_since.map(Time),
        ended_at: operation.ended_at.map(Time),
    }
}

/// A whole operation, with its result.
pub(in crate::server) fn operation(operation: &Operation) -> OperationJson<'_> {
    OperationJson {
        event: operation_event(operation),
        result: operation.result.as_ref().map(RawJson),
    }
}

fn progress(progress: &Progress) -> ProgressJson<'_> {
    ProgressJson {
        progress: progress.amount,
        message: progress.message.as_deref(),
        phase: progress.phase.as_deref(),
        current_step: progress.step,
        total_steps: progress.steps,
        estimated_remaining: progress.remaining.as_deref(),
    }
}

/// The value of a short text that was read before; `null` if it cannot be read.
fn value(text: &JsonText) -> Value {
    serde_json::from_str(text.get()).unwrap_or_default()
}
