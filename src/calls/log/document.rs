//! Lines as they are stored: one JSON object each. Members are only added.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{LogEntry, NumberedCall, NumberedState};
use crate::calls::ended_call::EndedCall;
use crate::model::{ScenarioState, StateTransition};
use crate::state::{LogKind, LogRow};

/// A call in its stored form.
#[derive(Serialize, Deserialize)]
struct StoredCall {
    number: u64,
    at: String,
    ended: String,
    tool: Option<String>,
    name: String,
    chat: Option<String>,
    profile: Option<String>,
    user: Option<String>,
    client: Option<String>,
    outcome: String,
    error: Option<String>,
    code: Option<String>,
    status: Option<u16>,
    took_us: u64,
    attempts: u32,
    approval: Option<String>,
    activity: Option<String>,
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

/// The row of a call.
pub(super) fn call_row(numbered: &NumberedCall) -> LogRow {
    let call = &numbered.call;
    let stored = StoredCall {
        number: numbered.number,
        at: call.at.to_string(),
        ended: numbered.ended.to_string(),
        tool: call.tool.as_ref().map(ToString::to_string),
        name: call.name.clone(),
        chat: call.chat.clone(),
        profile: call.profile.clone(),
        user: call.user.clone(),
        client: call.client.clone(),
        outcome: call.outcome.clone().into_owned(),
        error: call.error.clone(),
        code: call.code.clone(),
        status: call.status,
        took_us: u64::try_from(call.took.as_micros()).unwrap_or(u64::MAX),
        attempts: call.attempts,
        approval: call.approval.as_deref().map(str::to_owned),
        activity: call.activity.as_ref().map(ToString::to_string),
    };
    row(numbered.line, LogKind::Call, &stored)
}

/// The row of a change of a state.
pub(super) fn state_row(numbered: &NumberedState) -> LogRow {
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

fn row(number: u64, kind: LogKind, stored: &impl Serialize) -> LogRow {
    // Texts and numbers can always be written.
    let document = serde_json::to_string(stored).unwrap_or_default();
    LogRow { number, kind, document: document.into() }
}

/// The line of a row; `None` if it cannot be read.
pub(super) fn entry(row: &LogRow) -> Option<LogEntry> {
    match row.kind {
        LogKind::Call => call(row).map(LogEntry::Call),
        LogKind::State => state(row).map(LogEntry::State),
    }
}

fn call(row: &LogRow) -> Option<NumberedCall> {
    let stored: StoredCall = serde_json::from_str(&row.document).ok()?;
    let ended = stored.ended.parse().ok()?;
    let call = EndedCall {
        at: stored.at.parse().ok()?,
        tool: stored.tool.and_then(|tool| tool.parse().ok()),
        name: stored.name,
        chat: stored.chat,
        profile: stored.profile,
        user: stored.user,
        client: stored.client,
        outcome: Cow::Owned(stored.outcome),
        error: stored.error,
        code: stored.code,
        status: stored.status,
        took: Duration::from_micros(stored.took_us),
        attempts: stored.attempts,
        approval: stored.approval.map(Into::into),
        activity: stored.activity.and_then(|tool| tool.parse().ok()),
    };
    Some(NumberedCall { number: stored.number, line: row.number, ended, call: Arc::new(call) })
}

fn state(row: &LogRow) -> Option<NumberedState> {
    let stored: StoredState = serde_json::from_str(&row.document).ok()?;
    let named =
        |text: Option<String>| text.and_then(|text| ScenarioState::ALL.into_iter().find(|s| s.as_str() == text));
    let change = StateTransition {
        name: stored.scenario.parse().ok()?,
        from: named(stored.from),
        to: named(stored.to),
        reason: stored.reason,
        at: stored.at.parse().ok()?,
        restarts: stored.restarts,
        failures_in_a_row: stored.failures_in_a_row,
    };
    Some(NumberedState { line: row.number, change: Arc::new(change) })
}
