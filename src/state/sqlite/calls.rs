//! Rows of calls that wait for approval, of operations under way, and of turns.
//!
//! `INSERT OR REPLACE` would move a row to the end; these rows keep their position, which is the
//! order of arrival.

use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Row, Transaction, params};

use super::columns::{bad, column, flag, parsed, party};
use crate::model::{
    ApprovalDecision, ApprovalRequest, CalledDefinition, CallerInfo, JsonText, Operation,
    Permission, Progress, StoredAnswer, StoredTurn, ToolId,
};

pub(super) fn put_approval(
    transaction: &Transaction<'_>,
    approval: &ApprovalRequest,
) -> rusqlite::Result<usize> {
    let decided = approval.decided.as_ref();
    let answer = approval.answer.as_ref();
    transaction
        .prepare_cached(
            "INSERT INTO approvals (id, tool, name, arguments, chat, profile, user_id, identity, origin, definition,
                digest, idempotent, asked_at, expires_at, state, decided_by, decided_at, reason, ended_at, success,
                result, error, code, took_ms, operation, access, client, called, called_version, permission)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
                ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30)
             ON CONFLICT (id) DO UPDATE SET state = excluded.state, decided_by = excluded.decided_by,
                decided_at = excluded.decided_at, reason = excluded.reason, ended_at = excluded.ended_at,
                success = excluded.success, result = excluded.result, error = excluded.error, code = excluded.code,
                took_ms = excluded.took_ms, operation = excluded.operation",
        )?
        .execute(params![
            &*approval.id,
            approval.tool.to_string(),
            &*approval.name,
            approval.arguments.get(),
            approval.caller.chat.as_deref(),
            approval.caller.profile.as_deref(),
            approval.caller.user_id.as_deref(),
            approval.owner.identity.as_deref(),
            approval.owner.origin.as_deref(),
            &*approval.definition,
            &*approval.digest,
            approval.idempotent,
            approval.asked_at.to_string(),
            approval.expires_at.to_string(),
            approval.state.as_str(),
            decided.map(|decided| &*decided.by),
            decided.map(|decided| decided.at.to_string()),
            decided.and_then(|decided| decided.reason.as_deref()),
            time(approval.ended_at),
            answer.map(|answer| answer.success),
            answer.and_then(|answer| answer.result.as_ref()).map(JsonText::get),
            answer.and_then(|answer| answer.error.as_deref()),
            answer.and_then(|answer| answer.code.as_deref()),
            answer.map(|answer| i64::try_from(answer.took_ms).unwrap_or(i64::MAX)),
            answer.and_then(|answer| answer.operation.as_deref()),
            approval.access.as_deref(),
            approval.caller.client.as_deref(),
            approval.called.as_ref().map(|called| called.id.to_string()),
            approval.called.as_ref().map(|called| called.version.to_string()),
            approval.caller.permission.map(Permission::as_str),
        ])
}

pub(super) fn approval(row: &Row<'_>) -> Result<ApprovalRequest, String> {
    Ok(ApprovalRequest {
        id: shared(row, "id")?,
        tool: parsed(row, "tool")?,
        name: shared(row, "name")?,
        arguments: json(row, "arguments")?,
        caller: CallerInfo {
            client: later(row, "client")?,
            permission: level(row)?,
            ..caller(row)?
        },
        access: later(row, "access")?,
        owner: party(row)?,
        definition: shared(row, "definition")?,
        called: called(row)?,
        digest: shared(row, "digest")?,
        idempotent: flag(column(row, "idempotent")?, "idempotent")?,
        asked_at: parsed(row, "asked_at")?,
        expires_at: parsed(row, "expires_at")?,
        state: parsed(row, "state")?,
        decided: decided(row)?,
        ended_at: maybe_time(row, "ended_at")?,
        answer: answer(row)?,
    })
}

/// The level that the caller named.
fn level(row: &Row<'_>) -> Result<Option<Permission>, String> {
    let Some(text) = later(row, "permission")? else {
        return Ok(None);
    };
    let parsed = text.parse().map_err(|error| bad("permission", error));
    parsed.map(Some)
}

fn called(row: &Row<'_>) -> Result<Option<CalledDefinition>, String> {
    let Some(id) = later(row, "called")? else {
        return Ok(None);
    };
    let id = id.parse::<ToolId>().map_err(|error| bad("called", error))?;
    Ok(Some(CalledDefinition {
        id,
        version: parsed(row, "called_version")?,
    }))
}

fn decided(row: &Row<'_>) -> Result<Option<ApprovalDecision>, String> {
    let Some(by) = maybe(row, "decided_by")? else {
        return Ok(None);
    };
    Ok(Some(ApprovalDecision {
        by,
        at: parsed(row, "decided_at")?,
        reason: maybe(row, "reason")?,
    }))
}

fn answer(row: &Row<'_>) -> Result<Option<StoredAnswer>, String> {
    let Some(success) = column::<Option<i64>>(row, "success")? else {
        return Ok(None);
    };
    let took: Option<i64> = column(row, "took_ms")?;
    Ok(Some(StoredAnswer {
        success: flag(success, "success")?,
        result: maybe_json(row, "result")?,
        content: None,
        error: maybe(row, "error")?,
        code: maybe(row, "code")?,
        took_ms: took
            .and_then(|took| u64::try_from(took).ok())
            .unwrap_or_default(),
        operation: maybe(row, "operation")?,
    }))
}

pub(super) fn put_operation(
    transaction: &Transaction<'_>,
    operation: &Operation,
) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached(
            "INSERT INTO operations (id, tool, chat, profile, user_id, identity, origin, behaviour, reference, state,
                started_at, deadline_at, cancelling_since, ended_at, status, note, result, error, access)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
             ON CONFLICT (id) DO UPDATE SET state = excluded.state, cancelling_since = excluded.cancelling_since,
                ended_at = excluded.ended_at, status = excluded.status, note = excluded.note,
                result = excluded.result, error = excluded.error",
        )?
        .execute(params![
            &*operation.id,
            operation.tool.to_string(),
            operation.caller.chat.as_deref(),
            operation.caller.profile.as_deref(),
            operation.caller.user_id.as_deref(),
            operation.owner.identity.as_deref(),
            operation.owner.origin.as_deref(),
            operation.behaviour.get(),
            operation.reference.get(),
            operation.state.as_str(),
            operation.started_at.to_string(),
            operation.deadline_at.to_string(),
            time(operation.cancelling_since),
            time(operation.ended_at),
            operation.status.as_deref(),
            operation.note.as_deref(),
            operation.result.as_ref().map(JsonText::get),
            operation.error.as_deref(),
            operation.access.as_deref(),
        ])
}

pub(super) fn operation(row: &Row<'_>) -> Result<Operation, String> {
    Ok(Operation {
        id: shared(row, "id")?,
        tool: parsed(row, "tool")?,
        caller: caller(row)?,
        access: later(row, "access")?,
        owner: party(row)?,
        behaviour: json(row, "behaviour")?,
        reference: json(row, "reference")?,
        state: parsed(row, "state")?,
        started_at: parsed(row, "started_at")?,
        deadline_at: parsed(row, "deadline_at")?,
        ended_at: maybe_time(row, "ended_at")?,
        polled_at: None,
        status: maybe(row, "status")?,
        // The next answer reports it again.
        progress: Progress::default(),
        note: maybe(row, "note")?,
        result: maybe_json(row, "result")?,
        error: maybe(row, "error")?,
        cancelling_since: maybe_time(row, "cancelling_since")?,
    })
}

pub(super) fn put_turn(
    transaction: &Transaction<'_>,
    turn: &StoredTurn,
) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached(
            "INSERT INTO turns (id, owner, digest, format, begun_at, document) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, digest = excluded.digest, format = excluded.format,
                begun_at = excluded.begun_at, document = excluded.document",
        )?
        .execute(params![
            &*turn.id,
            &*turn.owner,
            &*turn.digest,
            &*turn.format,
            turn.begun_at.to_string(),
            turn.document.get(),
        ])
}

pub(super) fn turn(row: &Row<'_>) -> Result<StoredTurn, String> {
    Ok(StoredTurn {
        id: shared(row, "id")?,
        owner: shared(row, "owner")?,
        digest: shared(row, "digest")?,
        format: shared(row, "format")?,
        begun_at: parsed(row, "begun_at")?,
        document: json(row, "document")?,
    })
}

/// The caller, without the client, which operations do not store.
fn caller(row: &Row<'_>) -> Result<CallerInfo, String> {
    Ok(CallerInfo {
        chat: maybe(row, "chat")?,
        profile: maybe(row, "profile")?,
        user_id: maybe(row, "user_id")?,
        client: None,
        permission: None,
    })
}

/// The text of a column that was added later: a file that cannot be written may be older.
fn later(row: &Row<'_>, name: &str) -> Result<Option<Arc<str>>, String> {
    if row.as_ref().column_index(name).is_err() {
        return Ok(None);
    }
    maybe(row, name)
}

fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

fn shared(row: &Row<'_>, name: &str) -> Result<Arc<str>, String> {
    column::<String>(row, name).map(Into::into)
}

fn maybe(row: &Row<'_>, name: &str) -> Result<Option<Arc<str>>, String> {
    Ok(column::<Option<String>>(row, name)?.map(Into::into))
}

fn maybe_time(row: &Row<'_>, name: &str) -> Result<Option<Timestamp>, String> {
    let text: Option<String> = column(row, name)?;
    text.map(|text| text.parse())
        .transpose()
        .map_err(|error: jiff::Error| bad(name, error))
}

fn json(row: &Row<'_>, name: &str) -> Result<JsonText, String> {
    JsonText::parse(&column::<String>(row, name)?).map_err(|error| bad(name, error))
}

fn maybe_json(row: &Row<'_>, name: &str) -> Result<Option<JsonText>, String> {
    let text: Option<String> = column(row, name)?;
    text.map(|text| JsonText::parse(&text))
        .transpose()
        .map_err(|error| bad(name, error))
}
