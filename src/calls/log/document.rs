//! Lines as they are stored: one JSON object each. Members are only added.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{CallPayload, LogEntry, NumberedCall, NumberedEnd, NumberedStart, NumberedState};
use crate::calls::ended_call::EndedCall;
use crate::calls::requester::FULL_ACCESS;
use crate::model::{ProgramEnd, RecordedEnd, ScenarioState, StateTransition};
use crate::state::{LogKind, LogRow};

/// A call in its stored form. What it does not have is left out: each call writes one.
#[derive(Serialize, Deserialize)]
struct StoredCall<'a> {
    number: u64,
    at: String,
    ended: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    name: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chat: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    profile: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<Cow<'a, str>>,
    #[serde(default)]
    access: Option<Cow<'a, str>>,
    outcome: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    took_us: u64,
    attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approval: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition_version: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    activity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<Cow<'a, CallPayload>>,
}

/// A change of a state in its stored form.
#[derive(Serialize, Deserialize)]
struct StoredState {
    scenario: String,
    from: Option<String>,
    to: Option<String>,
    reason: String,
    at: String,
    restarts: u32,
    failures_in_a_row: u32,
}

/// The end of a program in its stored form.
#[derive(Serialize, Deserialize)]
struct StoredEnd {
    scenario: String,
    at: String,
    how: String,
    exit_code: Option<i32>,
    signal: Option<i32>,
    uptime_ms: u64,
    stderr: Vec<String>,
}

/// A start of callsheet in its stored form.
#[derive(Serialize, Deserialize)]
struct StoredStart {
    at: String,
    version: String,
    previous_until: Option<String>,
}

/// The row of a line.
pub(super) fn entry_row(entry: &LogEntry) -> LogRow {
    match entry {
        LogEntry::Call(call) => call_row(call),
        LogEntry::State(state) => state_row(state),
        LogEntry::End(end) => end_row(end),
        LogEntry::Start(start) => start_row(start),
    }
}

/// The row of a call.
fn call_row(numbered: &NumberedCall) -> LogRow {
    let call = &numbered.call;
    let stored = StoredCall {
        number: numbered.number,
        at: call.at.to_string(),
        ended: numbered.ended.to_string(),
        tool: call.tool.as_ref().map(ToString::to_string),
        name: borrowed(&call.name),
        chat: call.chat.as_deref().map(borrowed),
        profile: call.profile.as_deref().map(borrowed),
        user: call.user.as_deref().map(borrowed),
        client: call.client.as_deref().map(borrowed),
        access: Some(borrowed(&call.access)),
        outcome: borrowed(&call.outcome),
        error: call.error.as_deref().map(borrowed),
        code: call.code.as_deref().map(borrowed),
        status: call.status,
        took_us: u64::try_from(call.took.as_micros()).unwrap_or(u64::MAX),
        attempts: call.attempts,
        call_id: call.call_id.as_deref().map(borrowed),
        approval: call.approval.as_deref().map(borrowed),
        definition_version: call.definition_version.as_deref().map(borrowed),
        activity: call.activity.as_ref().map(ToString::to_string),
        note: call.note.as_deref().map(borrowed),
        payload: numbered.payload.as_deref().map(Cow::Borrowed),
    };
    row(numbered.line, LogKind::Call, &stored)
}

/// A text of a call, which is not copied to be written.
fn borrowed(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

/// The row of a change of a state.
fn state_row(numbered: &NumberedState) -> LogRow {
    let change = &numbered.change;
    let stored = StoredState {
        scenario: change.name.as_str().to_owned(),
        from: change.from.map(|state| state.as_str().to_owned()),
        to: change.to.map(|state| state.as_str().to_owned()),
        reason: change.reason.clone(),
        at: change.at.to_string(),
        restarts: change.restarts,
        failures_in_a_row: change.failures_in_a_row,
    };
    row(numbered.line, LogKind::State, &stored)
}

/// The row of an end of a program.
fn end_row(numbered: &NumberedEnd) -> LogRow {
    let RecordedEnd { name, at, program } = &*numbered.end;
    let stored = StoredEnd {
        scenario: name.as_str().to_owned(),
        at: at.to_string(),
        how: program.how.clone(),
        exit_code: program.exit_code,
        signal: program.signal,
        uptime_ms: u64::try_from(program.uptime.as_millis()).unwrap_or(u64::MAX),
        stderr: program.stderr.clone(),
    };
    row(numbered.line, LogKind::End, &stored)
}

/// The row of a start of callsheet.
fn start_row(start: &NumberedStart) -> LogRow {
    let stored = StoredStart {
        at: start.at.to_string(),
        version: start.version.to_string(),
        previous_until: start.previous_until.map(|until| until.to_string()),
    };
    row(start.line, LogKind::Start, &stored)
}

fn row(number: u64, kind: LogKind, stored: &impl Serialize) -> LogRow {
    // Texts and numbers can always be written.
    let document = serde_json::to_string(stored).unwrap_or_default();
    LogRow {
        number,
        kind,
        document: document.into(),
    }
}

/// The line of a row; `None` if it cannot be read.
pub(super) fn entry(row: &LogRow) -> Option<LogEntry> {
    match row.kind {
        LogKind::Call => call(row).map(LogEntry::Call),
        LogKind::State => state(row).map(LogEntry::State),
        LogKind::End => end(row).map(LogEntry::End),
        LogKind::Start => start(row).map(LogEntry::Start),
    }
}

fn call(row: &LogRow) -> Option<NumberedCall> {
    let stored: StoredCall<'_> = serde_json::from_str(&row.document).ok()?;
    let ended = stored.ended.parse().ok()?;
    let call = EndedCall {
        at: stored.at.parse().ok()?,
        tool: stored.tool.and_then(|tool| tool.parse().ok()),
        name: stored.name.into_owned(),
        chat: stored.chat.map(Cow::into_owned),
        profile: stored.profile.map(Cow::into_owned),
        user: stored.user.map(Cow::into_owned),
        client: stored.client.map(Cow::into_owned),
        access: stored.access.map_or_else(|| FULL_ACCESS.into(), Into::into),
        outcome: Cow::Owned(stored.outcome.into_owned()),
        error: stored.error.map(Cow::into_owned),
        code: stored.code.map(Cow::into_owned),
        status: stored.status,
        took: Duration::from_micros(stored.took_us),
        attempts: stored.attempts,
        call_id: stored.call_id.map(Into::into),
        approval: stored.approval.map(Into::into),
        definition_version: stored.definition_version.map(Cow::into_owned),
        activity: stored.activity.and_then(|tool| tool.parse().ok()),
        note: stored.note.map(Cow::into_owned),
    };
    let payload = stored.payload.map(|payload| Arc::new(payload.into_owned()));
    Some(NumberedCall {
        number: stored.number,
        line: row.number,
        ended,
        call: Arc::new(call),
        payload,
    })
}

fn end(row: &LogRow) -> Option<NumberedEnd> {
    let stored: StoredEnd = serde_json::from_str(&row.document).ok()?;
    let program = ProgramEnd {
        how: stored.how,
        exit_code: stored.exit_code,
        signal: stored.signal,
        stderr: stored.stderr,
        uptime: Duration::from_millis(stored.uptime_ms),
    };
    let name = stored.scenario.parse().ok()?;
    let end = RecordedEnd {
        name,
        at: stored.at.parse().ok()?,
        program: Arc::new(program),
    };
    Some(NumberedEnd {
        line: row.number,
        end: Arc::new(end),
    })
}

fn start(row: &LogRow) -> Option<NumberedStart> {
    let stored: StoredStart = serde_json::from_str(&row.document).ok()?;
    Some(NumberedStart {
        line: row.number,
        at: stored.at.parse().ok()?,
        version: stored.version.into(),
        previous_until: stored.previous_until.and_then(|until| until.parse().ok()),
    })
}

fn state(row: &LogRow) -> Option<NumberedState> {
    let stored: StoredState = serde_json::from_str(&row.document).ok()?;
    let named = |text: Option<String>| {
        text.and_then(|text| ScenarioState::ALL.into_iter().find(|s| s.as_str() == text))
    };
    let change = StateTransition {
        name: stored.scenario.parse().ok()?,
        from: named(stored.from),
        to: named(stored.to),
        reason: stored.reason,
        at: stored.at.parse().ok()?,
        restarts: stored.restarts,
        failures_in_a_row: stored.failures_in_a_row,
    };
    Some(NumberedState {
        line: row.number,
        change: Arc::new(change),
    })
}
