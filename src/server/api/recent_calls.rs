//! `GET /api/v1/calls`: the latest calls that are over, as `callsheet logs` shows them. Never their
//! arguments and results; errors and callers only to the access that made the call, and to
//! operators; ids by which answers are read only to operators.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use crate::calls::{EndedCall, NumberedCall};
use crate::model::ScenarioName;
use crate::server::SharedState;
use crate::server::api::shared_json::{self, Time};
use crate::server::auth::Access;
use crate::server::http::error::Problem;
use crate::server::http::params::{MAX_NUMBER, Param, ParamType, grammar};
use crate::server::http::query::{QueryParams, bad_value, once};

/// How many calls an answer has unless the client says so.
const LIMIT: usize = 100;
/// The filters of the list.
pub(in crate::server) const FILTERS: &[Param] = &[
    once("scenario")
        .takes(ParamType::Matching(grammar::SCENARIO))
        .about("Only calls of this scenario.", "files"),
    once("chat_id")
        .takes(ParamType::Matching(grammar::FREE))
        .about("Only calls of this conversation.", "42"),
    once("profile")
        .takes(ParamType::Matching(grammar::FREE))
        .about("Only calls with this profile.", "coder"),
    once("after")
        .takes(ParamType::Number)
        .about("Only calls after the one with this number.", "0"),
    once("limit")
        .takes(ParamType::Count(1, u32::MAX))
        .about("Maximum number of calls, the latest; 100 by default.", "20"),
];

/// The latest calls.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RecentCalls")]
pub(in crate::server) struct RecentCallList<'a> {
    /// In the order in which they ended.
    calls: Vec<RecentCallJson<'a>>,
    /// The number of the latest call, also over restarts.
    last: u64,
}

/// A call that is over.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RecentCall")]
pub(super) struct RecentCallJson<'a> {
    /// Its number, which grows in the order in which calls ended, also over restarts.
    number: u64,
    /// When it was requested.
    at: Time,
    /// The tool, as `scenario/tool`; `null` if the name meant none.
    id: Option<String>,
    /// The published name of the tool, or the name that the caller used.
    tool_name: &'a str,
    /// What came of it, as metrics count it: `ok`, `failed`, `invalid_arguments`, ...
    outcome: &'a str,
    /// The error: of the tool, or why the call was refused; 500 characters at most.
    error: Option<&'a str>,
    /// The code of the error.
    code: Option<&'a str>,
    /// What a person has to know of the outcome beside that: it is that of an earlier approval, or
    /// callsheet declined a question of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    /// The HTTP status that the caller got; `null` if it went away before the call was sent.
    status: Option<u16>,
    /// From the request to the answer, with all waiting.
    execution_time_ms: u64,
    /// How many times it was sent.
    attempts: u32,
    /// The version of the definition that it was sent for, whole; absent where it was not sent, and
    /// for calls that an earlier version stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition_version: Option<&'a str>,
    /// The client: the name of an MCP client, or the `User-Agent` of another one.
    client: Option<&'a str>,
    chat_id: Option<&'a str>,
    profile: Option<&'a str>,
    user_id: Option<&'a str>,
    /// The id under which its caller followed it; `null` for others, and for approved calls. With
    /// it an answer is read, so clients without the right `operate` get `null` here.
    call_id: Option<&'a str>,
    /// The approval that it waits for, or with which it was sent; `null` like `call_id` for clients
    /// without the right `operate`.
    approval_id: Option<&'a str>,
    /// Whether the members about its caller, its status and its error are `null` because they are
    /// withheld: it was made with the operator's token, or stored by an earlier version, and the
    /// client lacks the token.
    withheld: bool,
}

/// `GET /api/v1/calls`: the latest calls that match the filters, in the order in which they ended.
pub(in crate::server) async fn list(
    State(shared): State<SharedState>,
    access: Access,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), FILTERS)?;
    let scenario = query.scenario("scenario")?;
    let scope = query.scope()?;
    let after = number(&query, "after")?.unwrap_or(0);
    let limit =
        count(&query, "limit")?.map_or(LIMIT, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    if limit == 0 {
        return Err(bad_value("limit", "0", "a whole number from 1 on"));
    }
    let wanted = |call: &EndedCall| {
        // What is withheld must not be found by a filter.
        let is_shown = access.may_see(&call.access);
        let of_scenario =
            |name: &ScenarioName| call.tool.as_ref().is_some_and(|id| id.scenario == *name);
        scenario.as_ref().is_none_or(of_scenario)
            && scope
                .chat
                .as_ref()
                .is_none_or(|chat| is_shown && call.chat.as_ref() == Some(chat))
            && scope
                .profile
                .as_ref()
                .is_none_or(|profile| is_shown && call.profile.as_ref() == Some(profile))
    };
    let (mut calls, last) = shared.calls.recent();
    calls.retain(|numbered| numbered.number > after && wanted(&numbered.call));
    let latest = &calls[calls.len().saturating_sub(limit)..];
    shared_json::json(&RecentCallList {
        calls: latest
            .iter()
            .map(|numbered| call(numbered, access))
            .collect(),
        last,
    })
}

/// A call as this access may see it: of one that belongs to another access the tool, the outcome
/// and the times. The ids by which answers are read only with every right: all clients without the
/// token have the same access, and what keeps their answers apart is that they do not know each
/// other's ids.
pub(super) fn call(numbered: &NumberedCall, access: Access) -> RecentCallJson<'_> {
    let NumberedCall { number, call, .. } = numbered;
    let shown = access.may_see(&call.access).then_some(&**call);
    let named = (access == Access::Full).then_some(&**call);
    RecentCallJson {
        number: *number,
        at: Time(call.at),
        id: call.tool.as_ref().map(ToString::to_string),
        tool_name: &call.name,
        outcome: &call.outcome,
        error: shown.and_then(|call| call.error.as_deref()),
        code: shown.and_then(|call| call.code.as_deref()),
        note: shown.and_then(|call| call.note.as_deref()),
        status: shown.and_then(|call| call.status),
        execution_time_ms: u64::try_from(call.took.as_millis()).unwrap_or(u64::MAX),
        attempts: call.attempts,
        definition_version: call.definition_version.as_deref(),
        client: shown.and_then(|call| call.client.as_deref()),
        chat_id: shown.and_then(|call| call.chat.as_deref()),
        profile: shown.and_then(|call| call.profile.as_deref()),
        user_id: shown.and_then(|call| call.user.as_deref()),
        call_id: named.and_then(|call| call.call_id.as_deref()),
        approval_id: named.and_then(|call| call.approval.as_deref()),
        withheld: shown.is_none(),
    }
}

/// The number of a line or of a call, if it is given.
pub(super) fn number(query: &QueryParams, name: &str) -> Result<Option<u64>, Problem> {
    let read = |value: &str| {
        let number = value.parse().ok().filter(|number| *number <= MAX_NUMBER);
        number.ok_or_else(|| bad_value(name, value, "a whole number below 2^53"))
    };
    query.optional(name).map(read).transpose()
}

/// A whole number, if it is given.
pub(super) fn count(query: &QueryParams, name: &str) -> Result<Option<u64>, Problem> {
    let read = |value: &str| {
        value
            .parse::<u32>()
            .map_err(|_| bad_value(name, value, "a whole number below 2^32"))
    };
    Ok(query.optional(name).map(read).transpose()?.map(u64::from))
}
