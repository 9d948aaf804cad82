//! The routes that the first client of modules uses: list the modules, poll them all, call one
//! directly.
//!
//! A module is a scenario that speaks the module protocol; its source does not matter.

use std::sync::Arc;

use axum::extract::{Extension, Path, State};
use axum::response::Response;
use http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

use crate::calls::{CallEnd, CallerRole, Failure, FailureCode, WaitLimits};
use crate::catalog::{Snapshot, ViewQuery};
use crate::model::{Health, Permission, ScenarioState, ToolId, ViewTool};
use crate::protocols::module;
use crate::server::api::call_answers::taken_out;
use crate::server::api::call_body::parse_request;
use crate::server::api::shared_json::{self, RawJson};
use crate::server::auth::Access;
use crate::server::http::body::RawBody;
use crate::server::http::error::Problem;
use crate::server::http::held::ConnectionBytes;
use crate::server::http::query::NoQuery;
use crate::server::rendered::rendered;
use crate::server::{ServerState, SharedState};

/// Every module.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Modules")]
pub(in crate::server) struct ModuleList<'a> {
    modules: Vec<Module<'a>>,
}

/// How a module is, and what it offers.
#[derive(Serialize, JsonSchema)]
struct Module<'a> {
    #[serde(flatten)]
    scenario: shared_json::HealthJson<'a>,
    offers: Vec<Offer<'a>>,
}

/// A tool of a module.
#[derive(Serialize, JsonSchema)]
struct Offer<'a> {
    /// The name that the module gave it.
    name: &'a str,
    /// The name in the list of tools.
    published_as: &'a str,
    description: &'a str,
    #[schemars(schema_with = "permissions")]
    required_permission: &'static str,
}

fn permissions(_: &mut SchemaGenerator) -> Schema {
    const KNOWN: [Permission; 5] = [
        Permission::Guest,
        Permission::User,
        Permission::Admin,
        Permission::Owner,
        Permission::Unknown,
    ];
    json_schema!({"type": "string", "enum": KNOWN.map(Permission::as_str)})
}

/// The result of polling every module.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RefreshedModules")]
pub(in crate::server) struct RefreshedModules {
    /// `ok`.
    status: &'static str,
    /// The modules whose tools are known.
    modules: Vec<String>,
}

/// What a module would answer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ModuleAnswer")]
pub(in crate::server) struct ModuleAnswer<'a> {
    tool_name: &'a str,
    success: bool,
    /// What the tool gave back.
    #[schemars(with = "Value")]
    result: Option<RawJson<'a>>,
    error: Option<&'a str>,
    /// JSON pointers to members that were `null` for "not set" and were taken out of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    adjusted: Option<&'a [String]>,
}

/// `GET /api/modules`: `{"modules": [...]}` in order of their names. Each has its health as in
/// `/api/v1/scenarios`, and its tools in `offers`: their original names, their published names and
/// the permissions they require.
pub(in crate::server) async fn list(
    State(shared): State<SharedState>,
    Extension(bytes): Extension<ConnectionBytes>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let state = Arc::clone(&shared);
    rendered(&shared, &bytes, async move { listed(&state) }).await?
}

fn listed(shared: &ServerState) -> Result<Response, Problem> {
    let snapshot = shared.reader.snapshot();
    let now = shared.clock.wall();
    let all = modules(&snapshot).map(|health| {
        let entry = snapshot
            .catalog
            .entry(&health.name)
            .filter(|entry| entry.is_published());
        let offers = entry
            .into_iter()
            .flat_map(|entry| entry.tools.iter())
            .map(|tool| offer(tool))
            .collect();
        Module {
            scenario: shared_json::health(health, now),
            offers,
        }
    });
    shared_json::json(&ModuleList {
        modules: all.collect(),
    })
}

/// `POST /refresh-tools`: polls every module now. Answers `{"status": "ok", "modules": [names of
/// those whose tools are known]}`.
pub(in crate::server) async fn refresh(
    State(shared): State<SharedState>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let may_be_asked = |health: &&Arc<Health>| {
        !matches!(
            health.state,
            ScenarioState::Blocked | ScenarioState::Pending | ScenarioState::Removed
        )
    };
    let before = shared.reader.snapshot();
    let names: Vec<_> = modules(&before)
        .filter(may_be_asked)
        .map(|health| health.name.clone())
        .collect();
    if !names.is_empty() {
        // An empty list of names would poll all scenarios.
        shared.engine.refresh(names).await?;
    }
    let after = shared.reader.snapshot();
    let known = modules(&after).map(|health| &health.name);
    let known = known.filter(|name| {
        after
            .catalog
            .entry(name)
            .is_some_and(|entry| entry.is_published())
    });
    shared_json::json(&RefreshedModules {
        status: "ok",
        modules: known.map(ToString::to_string).collect(),
    })
}

/// `POST /api/modules/{module}/execute` with
/// `{"tool_name", "arguments", "user_id"?, "profile"?, "chat_id"?}`: calls a tool of this module in
/// the same way as every other call. Answers
/// `{"tool_name", "success", "result", "error", "adjusted"?}`: 200 for success and for failure, as
/// modules do, and 202 while an operation is running or the call waits for approval. Only an
/// invalid body is a problem.
pub(in crate::server) async fn execute(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
    access: Access,
    RawBody(body): RawBody,
) -> Result<Response, Problem> {
    let mut request = parse_request(&body, access.requester())?;
    // Frees the buffer of the body for other requests while the call waits.
    drop(body);
    let tool = request.name.clone();
    let scope = request.scope();
    let snapshot = shared.reader.snapshot();
    let known = |name: &str| modules(&snapshot).any(|health| health.name.as_str() == name);
    let failed = |error: &str| tool_result(StatusCode::OK, &ModuleAnswer::failed(&tool, error), 0);
    if !tool.contains('.') {
        return failed(&format!(
            "Invalid tool name format: {tool}. Expected 'module.tool_name'."
        ));
    }
    if !known(&name) {
        return failed(&format!("Unknown module: {name}"));
    }
    request.scenario = Some(name.parse()?);
    match shared
        .calls
        .settle(request, CallerRole::Absent, WaitLimits::NONE)
        .await
    {
        CallEnd::Answered(answer) => {
            let is_running = answer
                .response
                .as_ref()
                .is_some_and(|response| response.outcome.running.is_some());
            let status = if is_running {
                StatusCode::ACCEPTED
            } else {
                StatusCode::OK
            };
            let result = answer.result.as_ref();
            let json = ModuleAnswer {
                tool_name: &tool,
                success: answer.success,
                result: result.map(RawJson),
                error: answer.error.as_deref(),
                adjusted: taken_out(&answer.adjusted),
            };
            tool_result(status, &json, result.map_or(0, |result| result.get().len()))
        }
        CallEnd::AwaitsApproval(awaited) => {
            let id = &awaited.request.tool;
            let approval = &awaited.request.id;
            let why = format!(
                "a call of `{id}` needs the approval of a human, and waits for it as `{approval}`"
            );
            let json = ModuleAnswer {
                adjusted: taken_out(&awaited.adjusted),
                ..ModuleAnswer::failed(&tool, &why)
            };
            tool_result(StatusCode::ACCEPTED, &json, 0)
        }
        CallEnd::NeedsInput(input) => failed(&input.wanted.message()),
        CallEnd::Failed(failure) => failed(&failure_message(&snapshot, &scope, &tool, &failure)),
    }
}

/// The reason of a failure, with the texts of the first client of modules where it has one. `tool`
/// is the name that the client used.
fn failure_message(
    snapshot: &Snapshot,
    scope: &ViewQuery,
    tool: &str,
    failure: &Failure,
) -> String {
    if failure.code == FailureCode::UnknownTool {
        let owner = tool.split_once('.').map_or(tool, |(owner, _)| owner);
        let is_known = modules(snapshot).any(|health| health.name.as_str() == owner);
        return if is_known {
            format!("Unknown tool: {tool}")
        } else {
            format!("Unknown module: {owner}")
        };
    }
    match (&failure.cause, &failure.tool, &failure.reason) {
        (Some(cause), ..) => module::error_message(cause),
        (None, Some(id), Some(reason)) if failure.code == FailureCode::NotAllowed => {
            denial_message(snapshot, scope, id, reason)
        }
        _ => failure.to_string(),
    }
}

/// The reason why a profile may not call a tool, with the texts of the first client of modules
/// where it has one.
fn denial_message(snapshot: &Snapshot, scope: &ViewQuery, id: &ToolId, reason: &str) -> String {
    let bounds = snapshot.catalog.bounds(scope);
    let required = required_permission(snapshot, id);
    match bounds.permission {
        Some(has) if !bounds.allows_permission(required) => {
            format!(
                "Permission denied: {} requires '{required}' but user has '{has}'",
                id.tool
            )
        }
        _ => format!("Permission denied: {reason}"),
    }
}

/// The permission that a tool requires.
fn required_permission(snapshot: &Snapshot, id: &ToolId) -> Permission {
    let entry = snapshot.catalog.entry(&id.scenario);
    let tool = entry.and_then(|entry| entry.tools.iter().find(|tool| tool.id == *id));
    tool.map(|tool| tool.tool.facts.required_permission)
        .unwrap_or_default()
}

impl<'a> ModuleAnswer<'a> {
    fn failed(tool_name: &'a str, error: &'a str) -> Self {
        Self {
            tool_name,
            success: false,
            result: None,
            error: Some(error),
            adjusted: None,
        }
    }
}

fn tool_result(
    status: StatusCode,
    answer: &ModuleAnswer<'_>,
    result_bytes: usize,
) -> Result<Response, Problem> {
    Ok(shared_json::written(
        status,
        shared_json::bytes(answer, result_bytes)?,
    ))
}

fn modules(snapshot: &Snapshot) -> impl Iterator<Item = &Arc<Health>> {
    snapshot
        .health
        .values()
        .filter(|health| health.protocol == Some(module::ID))
}

fn offer(tool: &ViewTool) -> Offer<'_> {
    Offer {
        name: &tool.tool.name,
        published_as: tool.name.as_str(),
        description: &tool.tool.description,
        required_permission: tool.tool.facts.required_permission.as_str(),
    }
}
