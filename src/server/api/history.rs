//! How the definition of a tool changed.

use std::sync::Arc;

use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use crate::calls::DefinitionChange;
use crate::catalog::{Snapshot, ViewQuery};
use crate::model::{ToolId, ViewTool};
use crate::server::ServerState;
use crate::server::api::lookup;
use crate::server::api::shared_json::{self, Time};
use crate::server::http::error::Problem;

/// The changes of a tool's definition that are kept.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DefinitionHistory")]
pub(in crate::server) struct DefinitionHistory<'a> {
    /// The published name; that of its identity, if it is not offered now.
    name: &'a str,
    /// `scenario/tool`.
    id: &'a str,
    /// The version of its definition now, whole; for a tool that is offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition_version: Option<String>,
    /// The version that its provider gives it, if it gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_version: Option<String>,
    /// The changes, the latest first.
    changes: Vec<DefinitionChangeJson<'a>>,
}

/// One change of a definition.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DefinitionChange")]
struct DefinitionChangeJson<'a> {
    at: Time,
    /// The version before, whole.
    from: &'a str,
    /// The version since, whole.
    to: &'a str,
    /// The parts that differ, the first of them.
    parts: Vec<ChangedPartJson<'a>>,
    /// How many more parts differ.
    more: usize,
}

/// A part of a definition that differs.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ChangedPart")]
struct ChangedPartJson<'a> {
    /// Where it is, as a JSON pointer into the tool.
    pointer: &'a str,
    /// What it was, where it differs; `null` if it is new.
    before: Option<&'a str>,
    /// What it is, where it differs; `null` if it is gone.
    after: Option<&'a str>,
}

/// Answers with the history of a tool, also of one that is not offered now, by its identity.
pub(super) fn answer(
    shared: &ServerState,
    snapshot: &Arc<Snapshot>,
    scope: &ViewQuery,
    name: &str,
) -> Result<Response, Problem> {
    let problem = match lookup::resolve_tool(&snapshot.catalog, scope, name) {
        Ok(tool) => {
            let changes = shared.calls.history(snapshot, &tool.id);
            return of_tool(&tool.id, Some(&tool), &changes);
        }
        Err(problem) => problem,
    };
    // The histories have the tools of all profiles, so they are not read for one.
    let id: Option<ToolId> = name.parse().ok().filter(|_| !scope.names_bounds());
    let known = id
        .map(|id| (shared.calls.history(snapshot, &id), id))
        .filter(|(changes, _)| !changes.is_empty());
    let Some((changes, id)) = known else {
        let problem = lookup::with_left_out(problem, snapshot, name);
        return Err(lookup::with_unanswered(problem, snapshot, name));
    };
    of_tool(&id, None, &changes)
}

/// `offered` is the tool, if it is offered now.
fn of_tool(
    id: &ToolId,
    offered: Option<&ViewTool>,
    changes: &[Arc<DefinitionChange>],
) -> Result<Response, Problem> {
    let id = id.to_string();
    shared_json::json(&DefinitionHistory {
        name: offered.map_or(&id, |tool| tool.name.as_str()),
        definition_version: offered.map(|tool| tool.tool.version().to_string()),
        provider_version: offered.and_then(|tool| tool.tool.provider_version()),
        changes: changes.iter().map(|change| written(change)).collect(),
        id: &id,
    })
}

fn written(change: &DefinitionChange) -> DefinitionChangeJson<'_> {
    let parts = change.parts.iter().map(|part| ChangedPartJson {
        pointer: &part.pointer,
        before: part.before.as_deref(),
        after: part.after.as_deref(),
    });
    DefinitionChangeJson {
        at: Time(change.at),
        from: &change.from,
        to: &change.to,
        parts: parts.collect(),
        more: change.more,
    }
}
