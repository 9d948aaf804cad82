//! The routes of the original agent-inbox with the same members, so that its UI and its callers can
//! move over.
//!
//! Some differences are intended: lists are never `null`, resetting works, setting one value keeps
//! the others, `last_checked` is correct, and a scenario that is down stays in the list as not
//! available. Unknown members of a body are ignored, as in the original.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::catalog::{Snapshot, View, ViewQuery};
use crate::model::{PreferenceTarget, Scope, SettingsPatch, ToolId};
use crate::server::api::preferences::approval_override;
use crate::server::api::shared_json;
use crate::server::auth::Access;
use crate::server::compat::inbox_json::{
    CategoryJson, EffectiveTool, InboxChangeJson, ScenarioJson, Synced, ToolSet, status,
};
use crate::server::http::error::Problem;
use crate::server::http::held::ConnectionBytes;
use crate::server::http::params::{ParamType, grammar};
use crate::server::http::query::{NoQuery, Param, QueryParams, bad_value, once};
use crate::server::http::response_cache::CachedResponse;
use crate::server::http::typed_body::ApiJson;
use crate::server::rendered::rendered;
use crate::server::{ServerState, SharedState};
use crate::views::Coding;

/// The chat whose settings are meant; empty is global, as in the original.
const CHAT_ID: Param = once("chat_id")
    .takes(ParamType::Matching(
        r"^[^\u0000-\u001f\u007f-\u009f]{0,200}$",
    ))
    .about("The conversation; the global settings without it.", "42");
/// The parameters of the tool set.
pub(in crate::server) const CHAT: &[Param] = &[CHAT_ID];
/// The parameters of a reset.
pub(in crate::server) const RESET: &[Param] = &[
    once("scenario")
        .takes(ParamType::Matching(grammar::SCENARIO))
        .about("The scenario.", "files")
        .required(),
    once("tool_name")
        .takes(ParamType::Matching(TOOL))
        .about(
            "The tool, by the name that its scenario gave it.",
            "read_text",
        )
        .required(),
    CHAT_ID,
];
/// The name of a tool.
const TOOL: &str = r"^[\s\S]{1,256}$";

/// Switches a tool on or off. Further members are ignored.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "InboxEnabled")]
pub(in crate::server) struct EnabledBody {
    /// The chat whose setting it is; absent, null or empty is global.
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "chat_schema")]
    chat_id: Option<String>,
    #[schemars(regex(pattern = grammar::SCENARIO))]
    scenario: String,
    /// The name that its scenario gave it.
    #[schemars(regex(pattern = TOOL))]
    tool_name: String,
    enabled: bool,
}

/// Sets whether calls of a tool need approval. Further members are ignored.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "InboxApproval")]
pub(in crate::server) struct ApprovalBody {
    /// The chat whose setting it is; absent, null or empty is global.
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "chat_schema")]
    chat_id: Option<String>,
    #[schemars(regex(pattern = grammar::SCENARIO))]
    scenario: String,
    /// The name that its scenario gave it.
    #[schemars(regex(pattern = TOOL))]
    tool_name: String,
    /// Empty inherits.
    #[schemars(schema_with = "approval_schema")]
    approval_override: String,
}

fn chat_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "pattern": r"^[^\u0000-\u001f\u007f-\u009f]{0,200}$"})
}

fn approval_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["require", "skip", ""]})
}

/// `GET /api/v1/tools/set?chat_id=`: the scenarios, all their tools (enabled or not), and the
/// categories. Without `chat_id`, or with an empty one, the global settings apply.
pub(in crate::server) async fn tool_set(
    State(shared): State<SharedState>,
    Extension(bytes): Extension<ConnectionBytes>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), CHAT)?;
    let chat = match scope(query.optional("chat_id").unwrap_or_default())? {
        Scope::Chat(id) => Some(id),
        _ => None,
    };
    let raw = raw.unwrap_or_default();
    if let Some(kept) = kept_set(&shared, &raw, &bytes) {
        return kept;
    }
    let state = Arc::clone(&shared);
    let held = bytes.clone();
    let made = async move {
        kept_set(&state, &raw, &held).unwrap_or_else(|| new_set(&state, &raw, chat, &held))
    };
    rendered(&shared, &bytes, made).await?
}

/// The tool set that was made from this snapshot for an equal request.
fn kept_set(
    shared: &ServerState,
    raw: &str,
    bytes: &ConnectionBytes,
) -> Option<Result<Response, Problem>> {
    let snapshot = shared.reader.snapshot();
    // It has no entity tag, so what the client has does not matter.
    let kept = shared.tool_sets.answer(
        &snapshot,
        raw,
        Coding::Identity,
        &HeaderMap::new(),
        Some(bytes.answers()),
    )?;
    Some(
        kept.map(|answer| answer.map(Body::new))
            .map_err(Problem::from),
    )
}

/// Makes the tool set, and keeps it for as long as the snapshot.
fn new_set(
    shared: &ServerState,
    raw: &str,
    chat: Option<String>,
    bytes: &ConnectionBytes,
) -> Result<Response, Problem> {
    let snapshot = shared.reader.snapshot();
    let wanted = ViewQuery {
        chat,
        include_disabled: true,
        include_internal: true,
        ..ViewQuery::default()
    };
    let view = View::select(&snapshot.catalog, &wanted);
    let published = || {
        snapshot
            .catalog
            .entries()
            .filter(|entry| entry.is_published())
    };
    // Each scenario chooses its category ids. If two scenarios use one id, the category of the
    // first one is shown; the order is fixed.
    let mut ids = BTreeSet::new();
    let categories = published().flat_map(|entry| &*entry.manifest.categories);
    let set = ToolSet {
        scenarios: published().map(|entry| ScenarioJson(entry)).collect(),
        tools: view
            .parts
            .iter()
            .flat_map(|part| part.tools.iter())
            .map(|tool| EffectiveTool::new(tool))
            .collect(),
        categories: categories
            .filter(|category| ids.insert(&category.id))
            .map(CategoryJson)
            .collect(),
        generated_at: shared_json::Time(snapshot.generated_at),
    };
    let body = serde_json::to_vec(&set).map_err(|error| Problem::internal(&error))?;
    let ready = CachedResponse::untagged(body, shared_json::WRITTEN_HEADERS.into_iter().collect());
    shared
        .tool_sets
        .insert(&snapshot, raw, Coding::Identity, &ready);
    Ok(ready
        .answer_held(&HeaderMap::new(), bytes.answers())?
        .map(Body::new))
}

/// `GET /api/v1/tools/scenarios`: a bare array of every known scenario, also of those that are
/// down.
pub(in crate::server) async fn statuses(
    State(shared): State<SharedState>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let snapshot = shared.reader.snapshot();
    let entry = |name| snapshot.catalog.entry(name).map(AsRef::as_ref);
    let shown: Vec<_> = snapshot
        .health
        .iter()
        .map(|(name, health)| status(health, entry(name)))
        .collect();
    shared_json::json(&shown)
}

/// `POST /api/v1/tools/config` with `{chat_id?, scenario, tool_name, enabled}`: enables or disables
/// a tool.
pub(in crate::server) async fn set_enabled(
    State(shared): State<SharedState>,
    access: Access,
    _: NoQuery,
    ApiJson(body): ApiJson<EnabledBody>,
) -> Result<Response, Problem> {
    let subject = ToolSetting::new(
        body.chat_id.as_deref().unwrap_or_default(),
        &body.scenario,
        &body.tool_name,
    )?;
    let patch = SettingsPatch {
        enabled: Some(Some(body.enabled)),
        ..SettingsPatch::default()
    };
    shared
        .set_preference(access, subject.scope.clone(), subject.target.clone(), patch)
        .await?;
    shared_json::json(&InboxChangeJson {
        enabled: Some(body.enabled),
        ..subject.done
    })
}

/// `DELETE /api/v1/tools/config?scenario=&tool_name=&chat_id=`: resets whether the tool is enabled
/// and its approval, the two settings of the original; an alias or a priority stays.
pub(in crate::server) async fn reset(
    State(shared): State<SharedState>,
    access: Access,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), RESET)?;
    let chat = query.optional("chat_id").unwrap_or_default();
    let subject = ToolSetting::new(
        chat,
        query.required("scenario")?,
        query.required("tool_name")?,
    )?;
    let patch = SettingsPatch {
        enabled: Some(None),
        approval: Some(None),
        ..SettingsPatch::default()
    };
    shared
        .set_preference(access, subject.scope.clone(), subject.target.clone(), patch)
        .await?;
    shared_json::json(&InboxChangeJson {
        reset: Some(true),
        ..subject.done
    })
}

/// `POST /api/v1/tools/config/approval` with `{chat_id?, scenario, tool_name, approval_override}`,
/// where `approval_override` is `require`, `skip`, or empty to inherit.
pub(in crate::server) async fn set_approval(
    State(shared): State<SharedState>,
    access: Access,
    _: NoQuery,
    ApiJson(body): ApiJson<ApprovalBody>,
) -> Result<Response, Problem> {
    let subject = ToolSetting::new(
        body.chat_id.as_deref().unwrap_or_default(),
        &body.scenario,
        &body.tool_name,
    )?;
    let text = body.approval_override;
    let approval =
        approval_override(&text).map_err(|_| bad_value("approval_override", &text, APPROVALS))?;
    let patch = SettingsPatch {
        approval: Some(approval),
        ..SettingsPatch::default()
    };
    shared
        .set_preference(access, subject.scope.clone(), subject.target.clone(), patch)
        .await?;
    shared_json::json(&InboxChangeJson {
        approval_override: Some(text),
        ..subject.done
    })
}

const APPROVALS: &str = "`require`, `skip` or the empty text";

/// `POST /api/v1/tools/sync`: polls every scenario now. Answers `{scenarios_with_tools,
/// new_scenarios, removed_scenarios, total_tools}`; new and removed are compared with the scenarios
/// that had tools before.
pub(in crate::server) async fn sync(
    State(shared): State<SharedState>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let (before, _) = with_tools(&shared.reader.snapshot());
    shared.engine.refresh(Vec::new()).await?;
    let (after, total_tools) = with_tools(&shared.reader.snapshot());
    shared_json::json(&Synced {
        scenarios_with_tools: after.len(),
        new_scenarios: after.difference(&before).cloned().collect(),
        removed_scenarios: before.difference(&after).cloned().collect(),
        total_tools,
    })
}

/// The published scenarios that have tools, and the number of these tools.
fn with_tools(snapshot: &Snapshot) -> (BTreeSet<String>, usize) {
    let entries = snapshot
        .catalog
        .entries()
        .filter(|entry| entry.is_published());
    let mut total = 0;
    let names = entries
        .filter(|entry| !entry.tools.is_empty())
        .map(|entry| {
            total += entry.tools.len();
            entry.name.to_string()
        });
    (names.collect(), total)
}

/// The tool and the scope of a change.
#[derive(Debug)]
struct ToolSetting {
    scope: Scope,
    target: PreferenceTarget,
    /// The first members of the answer.
    done: InboxChangeJson,
}

impl ToolSetting {
    fn new(chat: &str, scenario: &str, tool: &str) -> Result<Self, Problem> {
        let target = PreferenceTarget::tool(ToolId::new(scenario.parse()?, tool))?;
        let done = InboxChangeJson {
            success: true,
            chat_id: chat.to_owned(),
            scenario: scenario.to_owned(),
            tool_name: tool.to_owned(),
            enabled: None,
            reset: None,
            approval_override: None,
        };
        Ok(Self {
            scope: scope(chat)?,
            target,
            done,
        })
    }
}

/// The scope of a chat; global without one.
fn scope(chat: &str) -> Result<Scope, Problem> {
    if chat.is_empty() {
        Ok(Scope::Global)
    } else {
        Ok(format!("chat:{chat}").parse::<Scope>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::http::typed_body::parse_strict_body;
    use serde_json::{Value, json};

    fn subject(mut body: Value) -> Result<ToolSetting, Problem> {
        body["enabled"] = true.into();
        let body: EnabledBody = parse_strict_body(body.to_string().as_bytes())?;
        ToolSetting::new(
            body.chat_id.as_deref().unwrap_or_default(),
            &body.scenario,
            &body.tool_name,
        )
    }

    #[test]
    fn a_chat_that_is_absent_null_or_empty_is_global() {
        for chat in [json!(null), json!("")] {
            let subject =
                subject(json!({"chat_id": chat, "scenario": "files", "tool_name": "read", "x": 1}))
                    .unwrap();
            assert_eq!(subject.scope, Scope::Global);
        }
        let subject =
            subject(json!({"chat_id": "7", "scenario": "files", "tool_name": "read"})).unwrap();
        assert_eq!(subject.scope.to_string(), "chat:7");
        assert_eq!(subject.target.to_string(), "tool:files/read");
        let expected = json!({"success": true, "chat_id": "7", "scenario": "files", "tool_name": "read", "reset": true});
        let done = InboxChangeJson {
            reset: Some(true),
            ..subject.done
        };
        assert_eq!(serde_json::to_value(done).unwrap(), expected);
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
            assert_eq!(
                subject(body.clone())
                    .unwrap_err()
                    .into_full_response()
                    .status(),
                400,
                "{body}"
            );
        }
    }
}
