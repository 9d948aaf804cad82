//! Calls that wait for a yes, and operations that go on, as JSON.

use serde_json::{Value, json};

use super::error::Problem;
use crate::model::{ApprovalRequest, Asker, CallAnswer, JsonText, Operation, Progress};

/// Bytes of arguments that a list shows; those of one call are shown whole.
const LISTED: usize = 16 * 1024;

/// What is told of a call that needs a yes: everything but its arguments and its answer, which may be large, and are for those who ask.
pub(super) fn approval_event(request: &ApprovalRequest) -> Value {
    let decided = request.decided.as_ref();
    json!({
        "id": &*request.id,
        "state": request.state.as_str(),
        "scenario": request.tool.scenario.as_str(),
        "tool": &*request.tool.tool,
        "tool_name": &*request.name,
        "chat_id": request.asker.chat.as_deref(),
        "profile": request.asker.profile.as_deref(),
        "user_id": request.asker.user_id.as_deref(),
        "asked_at": request.asked_at.to_string(),
        "expires_at": request.expires_at.to_string(),
        "decided_by": decided.map(|decided| &*decided.by),
        "decided_at": decided.map(|decided| decided.at.to_string()),
        "reason": decided.and_then(|decided| decided.reason.as_deref()),
        "ended_at": request.ended_at.map(|at| at.to_string()),
    })
}

/// The same with what a list has beside it: the arguments, unless they are large, and the digest that a yes is bound to.
pub(super) fn approval_row(request: &ApprovalRequest) -> Result<Value, Problem> {
    let mut shown = approval_event(request);
    let bytes = request.arguments.get().len();
    shown["arguments"] = if bytes <= LISTED { value(&request.arguments)? } else { Value::Null };
    shown["arguments_bytes"] = json!(bytes);
    shown["digest"] = json!(&*request.digest);
    shown["owner"] = json!({"identity": request.owner.identity.as_deref(), "origin": request.owner.origin.as_deref()});
    Ok(shown)
}

/// Everything about one, with what it came to.
pub(super) fn approval(request: &ApprovalRequest) -> Result<Value, Problem> {
    let mut shown = approval_row(request)?;
    shown["arguments"] = value(&request.arguments)?;
    shown["definition"] = json!(&*request.definition);
    shown["answer"] = request.answer.as_ref().map(answer).transpose()?.into();
    Ok(shown)
}

/// What a call came to: the members of an answer to a call.
fn answer(answer: &CallAnswer) -> Result<Value, Problem> {
    Ok(json!({
        "success": answer.success,
        "result": answer.result.as_ref().map(value).transpose()?,
        "error": answer.error.as_deref(),
        "code": answer.code.as_deref(),
        "execution_time_ms": answer.took_ms,
        "operation_id": answer.operation.as_deref(),
    }))
}

/// What is told of an operation: everything but its result.
pub(super) fn operation_event(operation: &Operation) -> Value {
    let Asker { chat, profile, user_id } = &operation.asker;
    json!({
        "id": &*operation.id,
        "state": operation.state.as_str(),
        "scenario": operation.tool.scenario.as_str(),
        "tool": &*operation.tool.tool,
        "chat_id": chat.as_deref(),
        "profile": profile.as_deref(),
        "user_id": user_id.as_deref(),
        "reference": value(&operation.reference).unwrap_or_default(),
        "status": operation.status.as_deref(),
        "progress": progress(&operation.progress),
        "note": operation.note.as_deref(),
        "error": operation.error.as_deref(),
        "started_at": operation.started_at.to_string(),
        "polled_at": operation.polled_at.map(|at| at.to_string()),
        "deadline_at": operation.deadline_at.to_string(),
        "cancelling_since": operation.cancelling_since.map(|at| at.to_string()),
        "ended_at": operation.ended_at.map(|at| at.to_string()),
    })
}

/// Everything about one.
pub(super) fn operation(operation: &Operation) -> Result<Value, Problem> {
    let mut shown = operation_event(operation);
    shown["result"] = operation.result.as_ref().map(value).transpose()?.into();
    Ok(shown)
}

fn progress(progress: &Progress) -> Value {
    json!({
        "progress": progress.amount,
        "message": progress.message.as_deref(),
        "phase": progress.phase.as_deref(),
        "current_step": progress.step,
        "total_steps": progress.steps,
        "estimated_remaining": progress.remaining.as_deref(),
    })
}

fn value(text: &JsonText) -> Result<Value, Problem> {
    serde_json::from_str(text.get()).map_err(|error| Problem::internal(&error))
}
