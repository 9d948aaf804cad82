//! `GET /api/v1/log`: calls that are over, changes of states, ends of programs and starts of
//! callsheet, as `callsheet logs` shows them. Arguments and results only where they are kept, for
//! clients with the operator's token.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::calls::{CallPayload, KeptText, LogEntry, LogWanted};
use crate::model::{RecordedEnd, ScenarioState, StateTransition};
use crate::server::SharedState;
use crate::server::api::recent_calls::{self, RecentCallJson};
use crate::server::api::shared_json::{self, Time};
use crate::server::auth::Access;
use crate::server::http::error::Problem;
use crate::server::http::params::{Param, ParamType, grammar};
use crate::server::http::query::{QueryParams, bad_value, once};
use crate::state::LogKind;

/// How many lines an answer has unless the client says so.
const DEFAULT_LINES: u32 = 100;
/// The most lines of one answer.
const MOST_LINES: u32 = 10_000;
/// The filters of the log.
pub(in crate::server) const FILTERS: &[Param] = &[
    once("kind")
        .takes(ParamType::Word(|| LogKind::ALL.map(LogKind::as_str).into()))
        .about(
            "Only calls, changes of states, ends of programs, or starts of callsheet.",
            "call",
        ),
    once("scenario")
        .takes(ParamType::Matching(grammar::SCENARIO))
        .about("Only what concerns this scenario.", "files"),
    once("tool").about(
        "Only calls of this tool, by its name or as `scenario/tool`.",
        "search",
    ),
    once("failed")
        .takes(ParamType::Flag)
        .about("Only calls that did not succeed.", "true"),
    once("since").takes(ParamType::Time).about(
        "Only what happened at this time or later (RFC 3339).",
        "2026-03-01T09:30:00Z",
    ),
    once("after")
        .takes(ParamType::Number)
        .about("Only lines after the one with this number.", "0"),
    once("before")
        .takes(ParamType::Number)
        .about("Only lines before the one with this number.", "120"),
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
    /// Whether the lines of calls have the arguments and results: `off` (they are not kept),
    /// `withheld` (the client lacks the operator's token), or `shown`.
    payloads: &'static str,
}

/// One line of the log.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LogLine")]
struct LineJson<'a> {
    /// Its number. It grows from line to line, also over restarts; after a crash there is a gap.
    line: u64,
    /// `call`, `state`, `end` (a program that callsheet started ended) or `start` (of callsheet).
    kind: &'static str,
    /// When the call or the program ended, the state changed, or callsheet started.
    at: Time,
    /// The call of a line `call`.
    call: Option<RecentCallJson<'a>>,
    /// The arguments and the result of a line `call`, as far as they are kept. Absent without the
    /// right to see them, and where they are not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<PayloadJson<'a>>,
    /// The change of a line `state`.
    state: Option<StateChangeJson<'a>>,
    /// The end of a line `end`.
    end: Option<ProgramEndJson<'a>>,
    /// The start of a line `start`.
    start: Option<StartJson<'a>>,
}

/// The arguments and the result of a call.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CallPayload")]
struct PayloadJson<'a> {
    /// The arguments as the caller sent them.
    arguments: KeptTextJson<'a>,
    /// The result; `null` if the scenario gave none.
    result: Option<KeptTextJson<'a>>,
}

/// JSON, or the beginning of it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "KeptText")]
struct KeptTextJson<'a> {
    /// The text: JSON, unless it is cut. `***` stands for a secret that callsheet sends itself.
    text: &'a str,
    /// Bytes of the whole text.
    bytes: u64,
    /// Whether its end is not kept.
    cut: bool,
}

/// How a program that callsheet started ended by itself.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProgramEnd")]
struct ProgramEndJson<'a> {
    /// The scenario.
    name: &'a str,
    /// How, in one sentence without a full stop: with which exit code, by which signal, or for
    /// which fault callsheet stopped it.
    reason: &'a str,
    /// Its exit code; `null` if a signal ended it.
    exit_code: Option<i32>,
    /// The number of the signal that ended it.
    signal: Option<i32>,
    /// How long it ran.
    uptime_ms: u64,
    /// The last lines that it wrote on standard error, the oldest first, with secrets masked; 10 at
    /// most.
    stderr: &'a [String],
}

/// A start of callsheet.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DaemonStart")]
struct StartJson<'a> {
    /// The version that was started.
    version: &'a str,
    /// Until when the daemon before ran at least; `null` if there was none.
    previous_until: Option<Time>,
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
    access: Access,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), FILTERS)?;
    let wanted = wanted(&query)?;
    let page = shared.calls.log(&wanted);
    let payloads = match (shared.calls.logs_payloads(), access) {
        (false, _) => "off",
        (true, Access::Full) => "shown",
        (true, Access::WithoutToken | Access::WrongToken) => "withheld",
    };
    let lines = page.lines.iter().map(|entry| line(entry, access)).collect();
    shared_json::json(&LogJson {
        lines,
        more: page.more,
        last: page.last,
        last_call: page.last_call,
        dropped: page.dropped,
        payloads,
    })
}

fn wanted(query: &QueryParams) -> Result<LogWanted, Problem> {
    let kind = query.optional("kind").map(|kind| {
        kind.parse()
            .map_err(|_| bad_value("kind", kind, "`call`, `state`, `end` or `start`"))
    });
    let since = query.optional("since").map(|since| {
        since
            .parse::<Timestamp>()
            .map_err(|_| bad_value("since", since, "a time such as 2026-03-01T09:30:00Z"))
    });
    let limit = recent_calls::count(query, "limit")?.unwrap_or_else(|| DEFAULT_LINES.into());
    if limit == 0 || limit > MOST_LINES.into() {
        return Err(bad_value(
            "limit",
            &limit.to_string(),
            "a whole number from 1 to 10000",
        ));
    }
    Ok(LogWanted {
        kinds: kind.transpose()?.into_iter().collect(),
        scenario: query.scenario("scenario")?,
        tool: query.optional("tool").map(str::to_owned),
        failed: query.flag("failed")?,
        since: since.transpose()?,
        after: recent_calls::number(query, "after")?,
        before: recent_calls::number(query, "before")?,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    })
}

fn line(entry: &LogEntry, access: Access) -> LineJson<'_> {
    let mut line = LineJson {
        line: entry.line(),
        kind: entry.kind().as_str(),
        at: Time(entry.at()),
        call: None,
        payload: None,
        state: None,
        end: None,
        start: None,
    };
    match entry {
        LogEntry::Call(call) => {
            line.call = Some(recent_calls::call(call, access));
            line.payload = call
                .payload
                .as_deref()
                .filter(|_| access == Access::Full)
                .map(payload);
        }
        LogEntry::State(state) => line.state = Some(change(&state.change)),
        LogEntry::End(end) => line.end = Some(program_end(&end.end)),
        LogEntry::Start(start) => {
            let previous_until = start.previous_until.map(Time);
            line.start = Some(StartJson {
                version: &start.version,
                previous_until,
            });
        }
    }
    line
}

fn payload(payload: &CallPayload) -> PayloadJson<'_> {
    PayloadJson {
        arguments: kept(&payload.arguments),
        result: payload.result.as_ref().map(kept),
    }
}

fn kept(kept: &KeptText) -> KeptTextJson<'_> {
    KeptTextJson {
        text: &kept.text,
        bytes: kept.bytes,
        cut: kept.cut,
    }
}

fn program_end(end: &RecordedEnd) -> ProgramEndJson<'_> {
    let program = &end.program;
    ProgramEndJson {
        name: end.name.as_str(),
        reason: &program.how,
        exit_code: program.exit_code,
        signal: program.signal,
        uptime_ms: u64::try_from(program.uptime.as_millis()).unwrap_or(u64::MAX),
        stderr: &program.stderr,
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
