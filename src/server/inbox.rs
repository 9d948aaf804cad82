//! The routes of the original agent-inbox, with the same keys, so that its UI and its callers can move over.
//!
//! What differs is on purpose: lists are never `null`, resetting works, setting one thing leaves the others, `last_checked` is true, and
//! a dead scenario stays in the list as not available. Members that a body has beyond those named are ignored, as they always were.

use std::collections::BTreeSet;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::body::{JsonBody, bad_member};
use super::error::Problem;
use super::inbox_wire::{CategoryJson, EffectiveTool, ScenarioJson, ToolSet, status};
use super::preferences::approval_override;
use super::query::{Query, bad_value, once};
use super::{App, wire};
use crate::catalog::{Snapshot, View, ViewQuery};
use crate::model::{Scope, SettingsPatch, Target, ToolId};

/// `GET /api/v1/tools/set?chat_id=`: the scenarios, every tool of them whether enabled or not, and the categories. Without `chat_id`
/// (or with an empty one) the global settings hold.
pub(super) async fn tool_set(State(shared): State<App>, RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &[once("chat_id")])?;
    let chat = match scope(query.one("chat_id").unwrap_or_default())? {
        Scope::Chat(id) => Some(id),
        _ => None,
    };
    let snapshot = shared.reader.snapshot();
    let wanted = ViewQuery { chat, include_disabled: true, include_internal: true, ..ViewQuery::default() };
    let view = View::select(&snapshot.catalog, &wanted);
    let published = || snapshot.catalog.entries().filter(|entry| entry.is_published());
    // Ids are the scenarios' own; of two categories with one id the first scenario's stays, as the order is fixed.
    let mut ids = BTreeSet::new();
    let categories = published().flat_map(|entry| &entry.manifest.categories);
    wire::json(&ToolSet {
        scenarios: published().map(|entry| ScenarioJson(entry)).collect(),
        tools: view.parts.iter().flat_map(|part| part.tools.iter()).map(|tool| EffectiveTool::new(tool)).collect(),
        categories: categories.filter(|category| ids.insert(&category.id)).map(CategoryJson).collect(),
        generated_at: snapshot.generated_at.to_string(),
    })
}

/// `GET /api/v1/tools/scenarios`: a bare array of every known scenario, dead ones too.
pub(super) async fn statuses(State(shared): State<App>, RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let snapshot = shared.reader.snapshot();
    let entry = |name| snapshot.catalog.entry(name).map(AsRef::as_ref);
    let shown: Vec<Value> = snapshot.health.iter().map(|(name, health)| status(health, entry(name))).collect();
    wire::json(&shown)
}

/// `POST /api/v1/tools/config` with `{chat_id?, scenario, tool_name, enabled}`: switches a tool on or off.
pub(super) async fn set_enabled(State(shared): State<App>, body: JsonBody) -> Result<Response, Problem> {
    let subject = Subject::of_body(&body)?;
    let enabled = match body.0.get("enabled") {
        Some(Value::Bool(enabled)) => *enabled,
        Some(other) => return Err(bad_member("enabled", other, "true or false")),
        None => return Err(Problem::bad_request("`enabled` is missing from the body")),
    };
    let patch = SettingsPatch { enabled: Some(Some(enabled)), ..SettingsPatch::default() };
    shared.engine.prefer(subject.scope.clone(), subject.target.clone(), patch).await?;
    wire::json(&subject.done("enabled", enabled.into()))
}

/// `DELETE /api/v1/tools/config?scenario=&tool_name=&chat_id=`: resets whether the tool is enabled and its approval, the two that the
/// original keeps; an alias or a priority stays.
pub(super) async fn reset(State(shared): State<App>, RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &[once("scenario"), once("tool_name"), once("chat_id")])?;
    let chat = query.one("chat_id").unwrap_or_default();
    let subject = Subject::new(chat, query.required("scenario")?, query.required("tool_name")?)?;
    let patch = SettingsPatch { enabled: Some(None), approval: Some(None), ..SettingsPatch::default() };
    shared.engine.prefer(subject.scope.clone(), subject.target.clone(), patch).await?;
    wire::json(&subject.done("reset", true.into()))
}

/// `POST /api/v1/tools/config/approval` with `{chat_id?, scenario, tool_name, approval_override}`, which is `require`, `skip`, or empty
/// to inherit.
pub(super) async fn set_approval(State(shared): State<App>, body: JsonBody) -> Result<Response, Problem> {
    let subject = Subject::of_body(&body)?;
    let text = match body.0.get("approval_override") {
        Some(Value::String(text)) => text,
        Some(other) => return Err(bad_member("approval_override", other, APPROVALS)),
        None => return Err(Problem::bad_request("`approval_override` is missing from the body")),
    };
    let approval = approval_override(text).map_err(|_| bad_value("approval_override", text, APPROVALS))?;
    let patch = SettingsPatch { approval: Some(approval), ..SettingsPatch::default() };
    shared.engine.prefer(subject.scope.clone(), subject.target.clone(), patch).await?;
    wire::json(&subject.done("approval_override", text.as_str().into()))
}

const APPROVALS: &str = "`require`, `skip` or the empty text";

/// `POST /api/v1/tools/sync`: asks every scenario now. `{scenarios_with_tools, new_scenarios, removed_scenarios, total_tools}`, new and
/// removed as against the scenarios with tools before.
pub(super) async fn sync(State(shared): State<App>) -> Result<Response, Problem> {
    let (before, _) = with_tools(&shared.reader.snapshot());
    shared.engine.refresh(Vec::new()).await?;
    let (after, total_tools) = with_tools(&shared.reader.snapshot());
    wire::json(&json!({
        "scenarios_with_tools": after.len(),
        "new_scenarios": after.difference(&before).collect::<Vec<_>>(),
        "removed_scenarios": before.difference(&after).collect::<Vec<_>>(),
        "total_tools": total_tools,
    }))
}

/// The published scenarios that have tools, and how many tools they have.
fn with_tools(snapshot: &Snapshot) -> (BTreeSet<String>, usize) {
    let entries = snapshot.catalog.entries().filter(|entry| entry.is_published());
    let mut total = 0;
    let names = entries.filter(|entry| !entry.tools.is_empty()).map(|entry| {
        total += entry.tools.len();
        entry.name.to_string()
    });
    (names.collect(), total)
}

/// Which tool a change speaks of, and where it holds.
#[derive(Debug)]
struct Subject {
    scope: Scope,
    target: Target,
    /// `{success, chat_id, scenario, tool_name}`, the beginning of each answer.
    answer: Value,
}

impl Subject {
    fn new(chat: &str, scenario: &str, tool: &str) -> Result<Self, Problem> {
        let target = Target::tool(ToolId::new(scenario.parse()?, tool))?;
        let answer = json!({"success": true, "chat_id": chat, "scenario": scenario, "tool_name": tool});
        Ok(Self { scope: scope(chat)?, target, answer })
    }

    fn of_body(body: &JsonBody) -> Result<Self, Problem> {
        let chat = match body.0.get("chat_id") {
            None | Some(Value::Null) => "",
            Some(Value::String(chat)) => chat,
            Some(other) => return Err(bad_member("chat_id", other, "a text")),
        };
        Self::new(chat, body.text("scenario")?, body.text("tool_name")?)
    }

    fn done(mut self, member: &str, value: Value) -> Value {
        self.answer[member] = value;
        self.answer
    }
}

/// The scope of a chat; global without one.
fn scope(chat: &str) -> Result<Scope, Problem> {
    if chat.is_empty() { Ok(Scope::Global) } else { Ok(format!("chat:{chat}").parse::<Scope>()?) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(body: Value) -> Result<Subject, Problem> {
        let Value::Object(members) = body else { panic!("not an object") };
        Subject::of_body(&JsonBody(members))
    }

    #[test]
    fn a_chat_that_is_absent_null_or_empty_is_global() {
        for chat in [json!(null), json!("")] {
            let subject = subject(json!({"chat_id": chat, "scenario": "files", "tool_name": "read", "x": 1})).unwrap();
            assert_eq!(subject.scope, Scope::Global);
        }
        let subject = subject(json!({"chat_id": "7", "scenario": "files", "tool_name": "read"})).unwrap();
        assert_eq!(subject.scope.to_string(), "chat:7");
        assert_eq!(subject.target.to_string(), "tool:files/read");
        let expected =
            json!({"success": true, "chat_id": "7", "scenario": "files", "tool_name": "read", "reset": true});
        assert_eq!(subject.done("reset", true.into()), expected);
    }

    #[test]
    fn a_subject_that_cannot_be_is_refused() {
        for body in [
            json!({"tool_name": "read"}),
            json!({"scenario": "files"}),
            json!({"scenario": "a/b", "tool_name": "read"}),
            json!({"scenario": "files", "tool_name": "x".repeat(257)}),
            json!({"chat_id": 7, "scenario": "files", "tool_name": "read"}),
        ] {
            assert_eq!(subject(body.clone()).unwrap_err().into_answer().status(), 400, "{body}");
        }
    }
}
