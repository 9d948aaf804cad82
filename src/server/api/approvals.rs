//! `/api/v1/approvals`: lists, shows and decides calls that need the approval of a human.
//!
//! Never runs a call itself: [`crate::calls`] does.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::calls::WaitLimits;
use crate::calls::approval::{Approvals, DecideError, DecisionRefusal};
use crate::engine::EngineError;
use crate::model::{ApprovalRequest, ApprovalState};
use crate::server::api::findings::parse_values;
use crate::server::api::recent_calls::count;
use crate::server::api::{call_json, shared_json};
use crate::server::auth::Access;
use crate::server::http::body::bad_member;
use crate::server::http::error::Problem;
use crate::server::http::next_step::NextStep;
use crate::server::http::params::{Param, ParamType, grammar};
use crate::server::http::query::{NoQuery, QueryParams, bad_value, many, once};
use crate::server::http::typed_body::ApiJson;
use crate::server::{ServerState, SharedState};

/// The decider of a decision whose request names none: what may decide is an operator.
const UNNAMED_DECIDER: &str = "operator";
/// Largest length of a name and of a reason, in characters.
const BY_MAX: usize = 200;
const REASON_MAX: usize = 2_000;

/// The filters of the list of approvals.
pub(in crate::server) const FILTERS: &[Param] = &[
    many("state")
        .takes(ParamType::Word(|| ApprovalState::ALL.map(ApprovalState::as_str).to_vec()))
        .about("Only calls in these states.", "waiting"),
    once("scenario").takes(ParamType::Matching(grammar::SCENARIO)).about("Only calls of this scenario.", "files"),
    once("chat_id").takes(ParamType::Matching(grammar::FREE)).about("Only calls of this conversation.", "42"),
    once("profile").takes(ParamType::Matching(grammar::FREE)).about("Only calls with this profile.", "coder"),
    once("after").about(
        "Only calls that were requested after the one with this id: the last one of the page before.",
        "8d3f5a0e-4c1b-4f7e-9a26-c5d7e8f90a1b",
    ),
    once("limit").takes(ParamType::Count(1, PAGE_CALLS_MAX)).about(
        "A page of at most so many calls, the first ones, and fewer where they are long: a page is a small answer, \
         for which there is nearly always room. All calls without it.",
        "20",
    ),
];
/// How long an approving request waits for the answer of the call. After that it is answered with
/// the state `started`.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// The most calls of one page.
const PAGE_CALLS_MAX: u32 = 1_000;
/// A page ends before the call that would make it longer than so many bytes, unless it is the first
/// one. With it the answer stays below the 64 KiB that small answers have.
const PAGE_BYTES: usize = 56 * 1024;

/// Calls that need approval.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Approvals")]
pub(in crate::server) struct ApprovalList<'a> {
    approvals: Vec<call_json::ApprovalRow<'a>>,
    /// Whether there are later calls that match; `after` with the id of the last one gets them.
    more: bool,
    /// The number of all waiting calls, whatever the filters.
    waiting: usize,
    /// Whether deciding needs the token of `server.operator_token`; without one every caller may
    /// decide, too.
    token_needed: bool,
}

/// The body of an approval.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Approve")]
pub(in crate::server) struct ApproveBody {
    /// The name of the decider.
    #[schemars(skip_serializing_if = "Option::is_none", length(max = BY_MAX))]
    by: Option<String>,
    /// The digest of the call that the decider has seen: the approval counts for no other call.
    #[schemars(skip_serializing_if = "Option::is_none", length(max = BY_MAX))]
    digest: Option<String>,
}

/// The body of a rejection.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Reject")]
pub(in crate::server) struct RejectBody {
    /// The name of the decider.
    #[schemars(skip_serializing_if = "Option::is_none", length(max = BY_MAX))]
    by: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none", length(max = REASON_MAX))]
    reason: Option<String>,
}

/// `GET /api/v1/approvals`: `{"approvals": [...], "waiting": n}`, in the order in which they were
/// requested. Filters: `state` with several values, `scenario`, `chat_id`, `profile`. With `limit`
/// a page of them, which begins after the call `after`.
pub(in crate::server) async fn list(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), FILTERS)?;
    let states = parse_values(&query, "state", &ApprovalState::ALL, ApprovalState::as_str)?;
    let scenario = query.scenario("scenario")?;
    let scope = query.scope()?;
    let all = shared
        .calls
        .approvals()
        .map(Approvals::all)
        .unwrap_or_default();
    let waiting = all
        .iter()
        .filter(|request| request.state == ApprovalState::Waiting)
        .count();
    let wanted = |request: &ApprovalRequest| {
        (states.is_empty() || states.contains(&request.state))
            && scenario
                .as_ref()
                .is_none_or(|scenario| *scenario == request.tool.scenario)
            && request
                .caller
                .is_within(scope.chat.as_deref(), scope.profile.as_deref())
    };
    let later = &all[first_place(&all, query.optional("after"))?..];
    let rows = later
        .iter()
        .filter(|request| wanted(request))
        .map(|request| call_json::approval_row(request));
    let ApprovalPage { rows, more } = match count(&query, "limit")? {
        Some(limit) if limit == 0 || limit > PAGE_CALLS_MAX.into() => {
            return Err(bad_value(
                "limit",
                &limit.to_string(),
                "a whole number from 1 to 1000",
            ));
        }
        Some(limit) => page(rows, usize::try_from(limit).unwrap_or(usize::MAX))?,
        None => ApprovalPage {
            rows: rows.collect(),
            more: false,
        },
    };
    let token_needed = shared.config.borrow().operator_token().is_some();
    shared_json::json(&ApprovalList {
        approvals: rows,
        more,
        waiting,
        token_needed,
    })
}

/// Some of the calls that match.
struct ApprovalPage<'a> {
    rows: Vec<call_json::ApprovalRow<'a>>,
    /// Whether there are later ones.
    more: bool,
}

/// The first calls, as many as fit.
fn page<'a>(
    rows: impl Iterator<Item = call_json::ApprovalRow<'a>>,
    limit: usize,
) -> Result<ApprovalPage<'a>, Problem> {
    let mut page = ApprovalPage {
        rows: Vec::new(),
        more: false,
    };
    let mut bytes = 0;
    for row in rows {
        bytes += shared_json::bytes(&row, 0)?.len();
        if page.rows.len() == limit || (bytes > PAGE_BYTES && !page.rows.is_empty()) {
            page.more = true;
            break;
        }
        page.rows.push(row);
    }
    Ok(page)
}

/// The place in the list behind the call with this id; the first one without an id.
fn first_place(all: &[Arc<ApprovalRequest>], after: Option<&str>) -> Result<usize, Problem> {
    let Some(after) = after else { return Ok(0) };
    let place = all.iter().position(|request| *request.id == *after);
    let unknown = || {
        bad_value("after", after, "the id of a call that is known")
            .and_next("begin again without it")
    };
    place.map(|place| place + 1).ok_or_else(unknown)
}

/// `GET /api/v1/approvals/{id}`: one approval with all its members, and with the answer of its
/// call.
pub(in crate::server) async fn show(
    State(shared): State<SharedState>,
    access: Access,
    Path(id): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    shared_json::json(&call_json::approval(&*require(&shared, &id)?, access))
}

/// The approval with this id.
pub(in crate::server) fn require(
    shared: &ServerState,
    id: &str,
) -> Result<Arc<ApprovalRequest>, Problem> {
    find(shared, id).ok_or_else(|| Problem::from(DecideError::from(DecisionRefusal::Unknown)))
}

/// `POST /api/v1/approvals/{id}/approve` `{by?, digest?}`: approves the call and runs it once. 200
/// with the answer of the call, 202 while it is running. With `digest`, 409 unless that is the
/// digest of the waiting call.
pub(in crate::server) async fn approve(
    State(shared): State<SharedState>,
    access: Access,
    Path(id): Path<String>,
    _: NoQuery,
    ApiJson(body): ApiJson<ApproveBody>,
) -> Result<Response, Problem> {
    let by = text("by", body.by.as_deref(), BY_MAX)?.unwrap_or(UNNAMED_DECIDER);
    if let Some(meant) = text("digest", body.digest.as_deref(), BY_MAX)?
        && let Some(request) = find(&shared, &id)
        && *request.digest != *meant
    {
        let problem = Problem::new(
            StatusCode::CONFLICT,
            "under this id there is another call than the one that you looked at",
        );
        return Err(problem
            .and_next("look at it again")
            .with_member("code", "changed"));
    }
    let request = shared
        .calls
        .approve(&id, by, WaitLimits::for_work(ANSWER_WAIT))
        .await?;
    let mut answer = shared_json::json(&call_json::approval(&request, access))?;
    if !request.state.is_over() {
        *answer.status_mut() = StatusCode::ACCEPTED;
    }
    Ok(answer)
}

/// `POST /api/v1/approvals/{id}/reject` `{by?, reason?}`: rejects the call, which is then never
/// run.
pub(in crate::server) async fn reject(
    State(shared): State<SharedState>,
    access: Access,
    Path(id): Path<String>,
    _: NoQuery,
    ApiJson(body): ApiJson<RejectBody>,
) -> Result<Response, Problem> {
    let by = text("by", body.by.as_deref(), BY_MAX)?.unwrap_or(UNNAMED_DECIDER);
    let reason = text("reason", body.reason.as_deref(), REASON_MAX)?;
    let request = shared.calls.reject(&id, by, reason).await?;
    shared_json::json(&call_json::approval(&request, access))
}

fn find(shared: &ServerState, id: &str) -> Option<Arc<ApprovalRequest>> {
    shared.calls.approvals()?.get(id)
}

/// An optional text of at most `most` characters. An empty text counts as left out.
fn text<'t>(name: &str, given: Option<&'t str>, most: usize) -> Result<Option<&'t str>, Problem> {
    match given {
        Some(text) if text.chars().count() > most => Err(bad_member(
            name,
            &Value::from(text),
            &format!("a text of at most {most} characters or null"),
        )),
        given => Ok(given.filter(|text| !text.is_empty())),
    }
}

impl From<DecideError> for Problem {
    fn from(error: DecideError) -> Self {
        let conflict = |error: &DecisionRefusal, code: &str| {
            Self::from_error(StatusCode::CONFLICT, error).with_member("code", code)
        };
        match error {
            DecideError::Refused(DecisionRefusal::Unknown) => {
                let list = NextStep::request("GET", "/api/v1/approvals");
                let problem = Self::not_found(DecisionRefusal::Unknown.to_string());
                let problem = problem.and_next(&format!("{list} lists those that are known"));
                problem
                    .with_member("code", "unknown_approval")
                    .with_next(list)
            }
            DecideError::Refused(ref refusal @ DecisionRefusal::Decided(ref request)) => {
                conflict(refusal, "already_decided").with_member("state", request.state.as_str())
            }
            DecideError::Refused(ref refusal @ DecisionRefusal::Busy) => {
                conflict(refusal, "being_decided")
            }
            DecideError::Refused(ref refusal @ DecisionRefusal::Late) => {
                conflict(refusal, "expired")
            }
            DecideError::Refused(ref refusal @ DecisionRefusal::Changed(_)) => {
                conflict(refusal, "changed")
            }
            DecideError::State(cause) => EngineError::State(cause).into(),
            DecideError::Stopping => EngineError::Stopping.into(),
        }
    }
}
