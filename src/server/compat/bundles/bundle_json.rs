//! Bundles and stored tools in JSON, and their descriptions for the document of the API.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::switches;
use crate::bundles::{StoredBundle, StoredDocument, StoredTool, time};
use crate::model::{MemberTexts, ToolId};
use crate::protocols::bundle::left_out;
use crate::server::ServerState;
use crate::server::http::error::Problem;

/// What is said about a bundle.
#[derive(JsonSchema)]
#[schemars(rename = "BundleContent", rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "it describes what is read member by member, for its refusals to name the member")]
pub(super) struct BundleBody {
    /// 1 to 64 letters, digits and `-`; other bundles may have the same.
    slug: String,
    /// For people.
    display_name: String,
    /// `true` by default.
    #[schemars(skip_serializing_if = "Option::is_none")]
    is_enabled: Option<bool>,
    /// For people and models.
    #[schemars(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// Enables or disables.
#[derive(JsonSchema)]
#[schemars(rename = "Switch", rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "it describes what is read member by member, for its refusals to name the member")]
pub(super) struct SwitchBody {
    is_enabled: bool,
}

/// A stored bundle. Further members of its file are there, too.
#[derive(JsonSchema)]
#[schemars(rename = "Bundle", rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes a stored document")]
pub(super) struct BundleJson {
    schema_version: String,
    /// A UUID of version 7.
    id: String,
    slug: String,
    display_name: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    is_enabled: Option<bool>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    is_built_in: Option<bool>,
    created_at: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    modified_at: Option<String>,
    /// When it was deleted; it is removed two days later if it is still empty.
    #[schemars(skip_serializing_if = "Option::is_none")]
    soft_deleted_at: Option<String>,
    /// The name of its scenario.
    scenario: String,
}

/// What is said about a version of a tool.
#[derive(JsonSchema)]
#[schemars(rename = "StoredToolContent", rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes what is read member by member, for its refusals to name the member")]
pub(super) struct ToolBody {
    /// For people.
    display_name: String,
    /// For models and people.
    #[schemars(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    tags: Option<Vec<String>>,
    /// `http` or `go`.
    r#type: String,
    /// `true` by default.
    #[schemars(skip_serializing_if = "Option::is_none")]
    is_enabled: Option<bool>,
    /// The JSON Schema of the arguments, as an object or as its text.
    #[schemars(skip_serializing_if = "Option::is_none")]
    arg_schema: Option<Value>,
    /// The JSON Schema of the result, in the same way.
    #[schemars(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    /// The request, or the function.
    r#impl: Map<String, Value>,
}

/// A stored version of a tool. Further members of its file are there, too.
#[derive(JsonSchema)]
#[schemars(rename = "StoredTool", rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes a stored document")]
pub(super) struct StoredToolJson {
    schema_version: String,
    /// A UUID of version 7; a file that was written by hand may have none.
    #[serde(rename = "toolID")]
    #[schemars(skip_serializing_if = "Option::is_none")]
    tool_id: Option<String>,
    #[serde(rename = "bundleID")]
    bundle_id: String,
    slug: String,
    version: String,
    display_name: String,
    r#type: String,
    created_at: String,
    /// The tool in the list of tools, as `scenario/tool`.
    tool: String,
    /// Whether preferences for all clients enable or disable it; `null` where none says so. It can
    /// be called if it is enabled here, and no preference disables it.
    preferred_enabled: Option<bool>,
    /// Why the list of tools leaves it out, if it cannot be run here.
    #[schemars(skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOutJson>,
    /// Calls that named it, with any result.
    call_count: u64,
    /// When the latest call ended.
    last_called_at: Option<String>,
}

/// Why a tool is left out of the list of tools.
#[derive(JsonSchema)]
#[schemars(rename = "LeftOutTool")]
#[expect(dead_code, reason = "it describes what is added to a stored document")]
pub(super) struct LeftOutJson {
    /// The reason, as the finding `tool-unavailable` has it.
    message: String,
    /// The next step.
    hint: Option<String>,
}

/// What an import stored.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ImportedBundle", rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportedBundleJson {
    /// The bundle as it is now.
    #[schemars(with = "BundleJson")]
    pub(super) bundle: Box<RawValue>,
    /// How many tools came in.
    pub(super) tools: usize,
    /// How many tools of the bundle cannot be run here, so that the list leaves them out.
    pub(super) left_out: usize,
}

/// One page of bundles.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BundleList")]
pub(super) struct BundleListJson {
    #[schemars(with = "Vec<BundleJson>")]
    pub(super) bundles: Vec<Box<RawValue>>,
    /// For the next page; absent on the last one.
    #[serde(rename = "nextPageToken", skip_serializing_if = "Option::is_none")]
    pub(super) next_page_token: Option<String>,
}

/// One page of stored tools.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StoredToolList")]
pub(super) struct ToolListJson {
    #[schemars(with = "Vec<StoredToolJson>")]
    pub(super) tools: Vec<Box<RawValue>>,
    /// For the next page; absent on the last one.
    #[serde(rename = "nextPageToken", skip_serializing_if = "Option::is_none")]
    pub(super) next_page_token: Option<String>,
}

/// A call of a stored tool.
#[derive(JsonSchema)]
#[schemars(rename = "Invoke", deny_unknown_fields)]
#[expect(dead_code, reason = "it describes what is read without copies")]
pub(super) struct InvokeBody {
    /// The arguments: an object, or the text of one.
    #[schemars(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
}

/// What came of a call.
#[derive(JsonSchema)]
#[schemars(rename = "Invoked")]
#[expect(dead_code, reason = "it describes what is put together as text, so that a result goes on as it came")]
pub(super) struct InvokedJson {
    /// Whether the tool succeeded.
    ok: bool,
    /// What the tool gave back, if it succeeded.
    #[schemars(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// Why it failed or was not called.
    #[schemars(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The same as a short word.
    #[schemars(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// The document of a bundle, with the name of its scenario.
pub(super) fn bundle(bundle: &StoredBundle) -> Result<Box<RawValue>, Problem> {
    let about = &bundle.definition;
    let own = [("modifiedAt", time(about.modified_at)), ("scenario", json!(bundle.scenario.as_str()))];
    with_members(&about.document, &own)
}

/// The document of a tool, with its name in the list of tools and what was counted of it.
pub(super) fn tool(shared: &ServerState, bundle: &StoredBundle, tool: &StoredTool) -> Result<Box<RawValue>, Problem> {
    let id = ToolId { scenario: bundle.scenario.clone(), tool: tool.name().into() };
    let usage = shared.calls.usage(&id);
    let preferred = switches::preferred(&shared.reader.snapshot().catalog, bundle, tool);
    let mut own = vec![
        ("bundleID", json!(bundle.definition.id)),
        ("modifiedAt", time(tool.modified_at)),
        ("tool", json!(id.to_string())),
        ("preferredEnabled", json!(preferred)),
    ];
    if let Some(finding) = left_out(tool, &shared.bundles) {
        own.push(("leftOut", json!({"message": &*finding.message, "hint": finding.hint.as_deref()})));
    }
    own.push(("callCount", json!(usage.as_ref().map_or(0, |usage| usage.calls))));
    own.push(("lastCalledAt", json!(usage.map(|usage| usage.last.to_string()))));
    with_members(&tool.document, &own)
}

/// A document with members of the daemon's own, which replace those of the same names. The others
/// stay the text that they are: a page of trees would take many times its bytes.
fn with_members(document: &StoredDocument, own: &[(&str, Value)]) -> Result<Box<RawValue>, Problem> {
    let members = MemberTexts::parse(document.get()).map_err(|error| Problem::internal(&error))?;
    let mut text = members.filtered(|name| own.iter().all(|member| member.0 != name));
    text.pop();
    for (name, value) in own {
        let comma = if text.len() > 1 { "," } else { "" };
        let value = value.to_string();
        text.extend([comma, "\"", name, "\":", value.as_str()]);
    }
    text.push('}');
    RawValue::from_string(text).map_err(|error| Problem::internal(&error))
}

/// A bundle, for the description of the API.
pub(super) fn bundle_example() -> Value {
    json!({
        "schemaVersion": "2025-07-01",
        "id": "018faf50-b7b6-7a01-9a05-a22a6e0af101",
        "slug": "net",
        "displayName": "Net tools",
        "description": "Looks things up",
        "isEnabled": true,
        "isBuiltIn": false,
        "createdAt": "2026-03-01T09:00:00Z",
        "modifiedAt": "2026-03-01T09:00:00Z",
        "scenario": "net",
    })
}

/// What an import stored, for the description of the API.
pub(super) fn imported_example() -> Value {
    json!({"bundle": bundle_example(), "tools": 2, "leftOut": 0})
}

/// A page of bundles, for the description of the API.
pub(super) fn bundle_list_example() -> Value {
    json!({"bundles": [bundle_example()]})
}

/// The body of a change of a bundle, for the description of the API.
pub(super) fn bundle_put_example() -> Value {
    json!({"slug": "net", "displayName": "Net tools", "isEnabled": true, "description": "Looks things up"})
}

/// The body that disables, for the description of the API.
pub(super) fn switch_example() -> Value {
    json!({"isEnabled": false})
}

/// The body that adds a tool, for the description of the API.
pub(super) fn tool_put_example() -> Value {
    json!({
        "displayName": "Forecast",
        "description": "The weather of the next days in a city",
        "type": "http",
        "isEnabled": true,
        "argSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "outputSchema": {"type": "string"},
        "impl": {
            "method": "GET",
            "urlTemplate": "https://weather.example/v1/forecast?place=${city}",
            "headers": {"X-Key": "${WEATHER_KEY}"},
            "extractExpr": "$.days[0].summary",
        },
    })
}

/// A stored tool, for the description of the API.
pub(super) fn tool_example() -> Value {
    let mut tool = json!({
        "schemaVersion": "2025-07-01",
        "toolID": "018faf52-1c2d-7e40-8b1a-5f1c9e0a7d22",
        "bundleID": "018faf50-b7b6-7a01-9a05-a22a6e0af101",
        "slug": "weather",
        "version": "v2",
        "isBuiltIn": false,
        "createdAt": "2026-03-01T09:00:00Z",
        "modifiedAt": "2026-03-01T09:00:00Z",
        "tool": "net/weather_v2",
        "preferredEnabled": null,
        "callCount": 3,
        "lastCalledAt": "2026-03-01T10:30:00Z",
    });
    if let (Some(tool), Value::Object(content)) = (tool.as_object_mut(), tool_put_example()) {
        tool.extend(content);
    }
    tool
}

/// A page of stored tools, for the description of the API.
pub(super) fn tool_list_example() -> Value {
    json!({"tools": [tool_example()]})
}

/// The body of a call, for the description of the API.
pub(super) fn invoke_example() -> Value {
    json!({"args": {"city": "Paris"}})
}

/// The answer to a call, for the description of the API.
pub(super) fn invoked_example() -> Value {
    json!({"ok": true, "value": "Sunny"})
}
