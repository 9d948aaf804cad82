//! `GET /api/v1/log`: calls that are over and changes of states, as `callsheet logs` shows them.
//! Never arguments and results.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::calls::{LogEntry, LogWanted};
use crate::model::{ScenarioState, StateTransition};
use crate::server::SharedState;
use crate::server::api::recent_calls::{self, RecentCallJson};
use crate::server::api::shared_json::{self, Time};
use crate::server::http::error::Problem;
use crate::server::http::params::{Param, ParamType, grammar};
use crate::server::http::query::{QueryParams, bad_value, once};

/// How many lines an answer has unless the client says so.
const DEFAULT_LINES: u32 = 100;
/// The most lines of one answer.
const MOST_LINES: u32 = 10_000;
/// The filters of the log.
pub(in crate::server) const FILTERS: &[Param] = &[
    once("kind")
        .takes(ParamType::Word(|| vec!["call", "state"]))
        .about("Only calls, or only changes of states.", "call"),
    once("scenario").takes(ParamType::Matching(grammar::SCENARIO)).about("Only what concerns this scenario.", "files"),
    once("tool").about("Only calls of this tool, by its name or as `scenario/tool`.", "search"),
    once("failed").takes(ParamType::Flag).about("Only calls that did not succeed.", "true"),
    once("since")
        .takes(ParamType::Time)
        .about("Only what happened at this time or later (RFC 3339).", "2026-03-01T09:30:00Z"),
    once("after").takes(ParamType::Number).about("Only lines after the one with this number.", "0"),
    once("before").takes(ParamType::Number).about("Only lines before the one with this number.", "120"),
    once("limit")
        .takes(ParamType::Count(1, MOST_LINES))
        .about("Maximum number of lines, the latest; 100 by default.", "20"),
];

/// The latest lines of the log.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Log")]
pub(in crate::server) struct LogJson<'a> {
    /// In the order in which they happened.
    lines: Vec<LineJson<'a>>,
    /// Whether there are earlier lines that match; `before` with the number of the first line gets
    /// them.
    more: bool,
    /// The number of the latest line of the log.
    last: u64,
    /// The number of the latest call, as in `GET /api/v1/calls`.
    last_call: u64,
    /// Lines since the start of the daemon that could not be stored: a restart loses them.
    dropped: u64,
}

/// One line of the log.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LogLine")]
struct LineJson<'a> {
    /// Its number. It grows from line to line, also over restarts.
    line: u64,
    /// `call` or `state`.
    kind: &'static str,
    /// When the call ended, or the state changed.
    at: Time,
    /// The call; `null` for a change of a state.
    call: Option<RecentCallJson<'a>>,
    /// The change; `null` for a call.
    state: Option<StateChangeJson<'a>>,
}

/// A change of a scenario's state.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StateChange")]
struct StateChangeJson<'a> {
    /// The scenario.
    name: &'a str,
    /// Its previous state; `null` if it is new to this daemon.
    from: Option<&'static str>,
    /// Its new state; `null` if it is no longer known.
    to: Option<&'static str>,
    /// Why, in one sentence without a full stop.
    reason: &'a str,
    /// Failures since the last good answer until then.
    failures_in_a_row: u32,
}

/// `GET /api/v1/log`: the latest lines that match the filters.
pub(in crate::server) async fn list(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), FILTERS)?;
    let wanted = wanted(&query)?;
    let page = shared.calls.log(&wanted);
    let lines = page.lines.iter().map(line).collect();
    shared_json::json(&LogJson {
        lines,
        more: page.more,
        last: page.last,
        last_call: page.last_call,
        dropped: page.dropped,
    })
}

fn wanted(query: &QueryParams) -> Result<LogWanted, Problem> {
    let kind =
        query.optional("kind").map(|kind| kind.parse().map_err(|_| bad_value("kind", kind, "`call` or `state`")));
    let since = query.optional("since").map(|since| {
        since.parse::<Timestamp>().map_err(|_| bad_value("since", since, "a time such as 2026-03-01T09:30:00Z"))
    });
    let limit = recent_calls::count(query, "limit")?.unwrap_or_else(|| DEFAULT_LINES.into());
    if limit == 0 || limit > MOST_LINES.into() {
        return Err(bad_value("limit", &limit.to_string(), "a whole number from 1 to 10000"));
    }
    Ok(LogWanted {
        kind: kind.transpose()?,
        scenario: query.scenario("scenario")?,
        tool: query.optional("tool").map(str::to_owned),
        failed: query.flag("failed")?,
        since: since.transpose()?,
        after: recent_calls::number(query, "after")?,
        before: recent_calls::number(query, "before")?,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    })
}

fn line(entry: &LogEntry) -> LineJson<'_> {
    match entry {
        LogEntry::Call(call) => LineJson {
            line: call.line,
            kind: "call",
            at: Time(call.ended),
            call: Some(recent_calls::call(call)),
            state: None,
        },
        LogEntry::State(state) => LineJson {
            line: state.line,
            kind: "state",
            at: Time(state.change.at),
            call: None,
            state: Some(change(&state.change)),
        },
    }
}

fn change(change: &StateTransition) -> StateChangeJson<'_> {
    StateChangeJson {
        name: change.name.as_str(),
        from: change.from.map(ScenarioState::as_str),
        to: change.to.map(ScenarioState::as_str),
        reason: &change.reason,
        failures_in_a_row: change.failures_in_a_row,
    }
}
