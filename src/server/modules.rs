//! The routes that the modules' first consumer speaks of: which modules there are, asking them all again, calling one directly.
//!
//! A module is a scenario that speaks the module protocol, wherever it was found.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::error::Problem;
use super::query::Query;
use super::{App, wire};
use crate::catalog::Snapshot;
use crate::config::MODULE;
use crate::model::{Health, ScenarioState, ViewTool};

/// `GET /api/modules`: `{"modules": [...]}` in order of their names: the health of each as in `/api/v1/scenarios`, and its tools as
/// `offers`, by their own names, with the names they are published under and the permission they ask.
pub(super) async fn all(State(shared): State<App>, RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let (snapshot, now) = (shared.reader.snapshot(), shared.clock.wall());
    let one = |health: &Arc<Health>| {
        let mut shown = wire::health(health, now);
        let entry = snapshot.catalog.entry(&health.name).filter(|entry| entry.is_published());
        shown["offers"] = entry.iter().flat_map(|entry| entry.tools.iter()).map(|tool| offer(tool)).collect();
        shown
    };
    wire::json(&json!({"modules": modules(&snapshot).map(one).collect::<Vec<_>>()}))
}

/// `POST /refresh-tools`: asks every module now. `{"status": "ok", "modules": [names of those whose tools are known]}`.
pub(super) async fn refresh(State(shared): State<App>) -> Result<Response, Problem> {
    let may_be_asked = |health: &&Arc<Health>| !matches!(health.state, ScenarioState::Blocked | ScenarioState::Pending);
    let before = shared.reader.snapshot();
    let names: Vec<_> = modules(&before).filter(may_be_asked).map(|health| health.name.clone()).collect();
    if !names.is_empty() {
        // Without names everybody would be asked.
        shared.engine.refresh(names).await?;
    }
    let after = shared.reader.snapshot();
    let known = modules(&after).map(|health| &health.name);
    let known = known.filter(|name| after.catalog.entry(name).is_some_and(|entry| entry.is_published()));
    wire::json(&json!({"status": "ok", "modules": known.map(ToString::to_string).collect::<Vec<_>>()}))
}

fn modules(snapshot: &Snapshot) -> impl Iterator<Item = &Arc<Health>> {
    snapshot.health.values().filter(|health| health.protocol == Some(MODULE))
}

fn offer(tool: &ViewTool) -> Value {
    json!({
        "name": &*tool.tool.name,
        "published_as": tool.name.as_str(),
        "description": &*tool.tool.description,
        "required_permission": tool.tool.facts.required_permission.as_str(),
    })
}
