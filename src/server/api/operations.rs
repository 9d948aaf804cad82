//! `/api/v1/operations`: lists, shows and cancels long-running operations. Never polls an
//! operation. To clients without the token, operations of calls with it do not exist.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::calls::track::{CancelError, OperationTracker};
use crate::engine::EngineError;
use crate::model::{Operation, OperationState};
use crate::server::api::findings::parse_values;
use crate::server::api::{call_json, shared_json};
use crate::server::auth::Access;
use crate::server::http::error::Problem;
use crate::server::http::next_step::NextStep;
use crate::server::http::params::{Param, ParamType, grammar};
use crate::server::http::query::{NoQuery, QueryParams, many, once};
use crate::server::{ServerState, SharedState};

/// The filters of the list of operations.
pub(in crate::server) const FILTERS: &[Param] = &[
    many("state")
        .takes(ParamType::Word(|| {
            OperationState::ALL.map(OperationState::as_str).to_vec()
        }))
        .about("Only operations in these states.", "running"),
    once("scenario")
        .takes(ParamType::Matching(grammar::SCENARIO))
        .about("Only operations of this scenario.", "files"),
    once("chat_id")
        .takes(ParamType::Matching(grammar::FREE))
        .about("Only calls of this conversation.", "42"),
    once("profile")
        .takes(ParamType::Matching(grammar::FREE))
        .about("Only calls with this profile.", "coder"),
];

/// What long-running tools do.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct Operations<'a> {
    operations: Vec<call_json::OperationEvent<'a>>,
}

/// The operations that this access may see, in the order in which they were started.
pub(in crate::server) fn all_seen(shared: &ServerState, access: Access) -> Vec<Arc<Operation>> {
    let mut all = shared
        .calls
        .operations()
        .map(OperationTracker::all)
        .unwrap_or_default();
    all.retain(|operation| access.may_see_outcome(operation.access.as_deref()));
    all
}

/// The operation with this id, if this access may see it.
pub(in crate::server) fn find(
    shared: &ServerState,
    id: &str,
    access: Access,
) -> Option<Arc<Operation>> {
    let operation = shared.calls.operations()?.get(id)?;
    access
        .may_see_outcome(operation.access.as_deref())
        .then_some(operation)
}

/// `GET /api/v1/operations`: `{"operations": [...]}` in the order in which they were started,
/// without their results. Filters: `state` with several values, `scenario`, `chat_id`, `profile`.
pub(in crate::server) async fn list(
    State(shared): State<SharedState>,
    access: Access,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), FILTERS)?;
    let states = parse_values(
        &query,
        "state",
        &OperationState::ALL,
        OperationState::as_str,
    )?;
    let scenario = query.scenario("scenario")?;
    let scope = query.scope()?;
    let wanted = |operation: &Operation| {
        (states.is_empty() || states.contains(&operation.state))
            && scenario
                .as_ref()
                .is_none_or(|scenario| *scenario == operation.tool.scenario)
            && operation
                .caller
                .is_within(scope.chat.as_deref(), scope.profile.as_deref())
    };
    let all = all_seen(&shared, access);
    let shown = all
        .iter()
        .filter(|operation| wanted(operation))
        .map(|operation| call_json::operation_event(operation));
    shared_json::json(&Operations {
        operations: shown.collect(),
    })
}

/// `GET /api/v1/operations/{id}`: one operation with all its members and its result.
pub(in crate::server) async fn show(
    State(shared): State<SharedState>,
    access: Access,
    Path(id): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let operation =
        find(&shared, &id, access).ok_or_else(|| Problem::from(CancelError::Unknown))?;
    shared_json::json(&call_json::operation(&operation))
}

/// `DELETE /api/v1/operations/{id}`: cancels it. 200 once it is cancelled, 202 while the scenario
/// has not confirmed it.
pub(in crate::server) async fn cancel(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let operation = shared.calls.cancel(&id).await?;
    let mut answer = shared_json::json(&call_json::operation(&operation))?;
    if !operation.state.is_over() {
        *answer.status_mut() = StatusCode::ACCEPTED;
    }
    Ok(answer)
}

impl From<CancelError> for Problem {
    fn from(error: CancelError) -> Self {
        let detail = error.to_string();
        match error {
            CancelError::Unknown => {
                let list = NextStep::request("GET", "/api/v1/operations");
                let problem =
                    Self::not_found(detail).and_next(&format!("{list} lists those that are known"));
                problem
                    .with_member("code", "unknown_operation")
                    .with_next(list)
            }
            CancelError::Over(operation) => Self::new(StatusCode::CONFLICT, detail)
                .with_member("code", "already_over")
                .with_member("state", operation.state.as_str()),
            CancelError::Refused(..) => {
                let problem = Self::new(StatusCode::BAD_GATEWAY, detail);
                problem
                    .and_next("it is followed as before, so try again")
                    .with_member("code", "cancel_failed")
            }
            CancelError::Stopping => EngineError::Stopping.into(),
        }
    }
}
