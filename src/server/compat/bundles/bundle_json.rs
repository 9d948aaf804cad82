//! Bundles and stored tools in JSON, and their descriptions for the document of the API.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::switches;
use crate::bundles::{StoredBundle, StoredDocument, StoredTool, time};
use crate::catalog::Catalog;
use crate::json::members::MemberTexts;
use crate::model::ToolId;
use crate::protocols::bundle::left_out;
use crate::server::ServerState;
use crate::server::api::shared_json::RawJson;
use crate::server::http::error::Problem;

/// What is said about a bundle. Its members are read where those of files are
/// ([`crate::bundles::BundleChange`]).
#[derive(Deserialize)]
pub(super) struct BundleBody(pub(super) Map<String, Value>);

impl JsonSchema for BundleBody {
    fn schema_name() -> Cow<'static, str> {
        "BundleContent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "slug": {
                    "type": "string",
                    "description": "1 to 64 letters, digits and `-`; other bundles may have the same.",
                },
                "displayName": {"type": "string", "description": "For people."},
                "isEnabled": {"type": ["boolean", "null"], "description": "`true` by default."},
                "description": {"type": ["string", "null"], "description": "For people and models."},
            },
            "required": ["slug", "displayName"],
            "description": "What is said about a bundle.",
        })
    }
}

/// Enables or disables.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Switch")]
pub(super) struct SwitchBody {
    pub(super) is_enabled: bool,
}

/// The document of a stored bundle, with the name of its scenario.
#[derive(Serialize)]
pub(super) struct BundleJson(Box<RawValue>);

impl JsonSchema for BundleJson {
    fn schema_name() -> Cow<'static, str> {
        "Bundle".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {
                "schemaVersion": {"type": "string"},
                "id": {"type": "string", "description": "A UUID of version 7."},
                "slug": {"type": "string"},
                "displayName": {"type": "string"},
                "description": {"type": ["string", "null"]},
                "isEnabled": {"type": ["boolean", "null"]},
                "isBuiltIn": {"type": ["boolean", "null"]},
                "createdAt": {"type": "string"},
                "modifiedAt": {"type": ["string", "null"]},
                "softDeletedAt": {
                    "type": ["string", "null"],
                    "description": "When it was deleted; it is removed two days later if it is still empty.",
                },
                "scenario": {"type": "string", "description": "The name of its scenario."},
            },
            "required": ["schemaVersion", "id", "slug", "displayName", "createdAt", "scenario"],
            "description": "A stored bundle. Further members of its file are there, too.",
        })
    }
}

/// What is said about a version of a tool. Its members are read where those of files are
/// ([`crate::bundles::ToolContent`]).
#[derive(Deserialize)]
pub(super) struct ToolBody(pub(super) Map<String, Value>);

impl JsonSchema for ToolBody {
    fn schema_name() -> Cow<'static, str> {
        "StoredToolContent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {
                "displayName": {"type": "string", "description": "For people."},
                "description": {"type": ["string", "null"], "description": "For models and people."},
                "tags": {"type": ["array", "null"], "items": {"type": "string"}},
                "type": {"type": "string", "description": "`http` or `go`."},
                "isEnabled": {"type": ["boolean", "null"], "description": "`true` by default."},
                "argSchema": {"description": "The JSON Schema of the arguments, as an object or as its text."},
                "outputSchema": {"description": "The JSON Schema of the result, in the same way."},
                "impl": {
                    "type": "object", "additionalProperties": true,
                    "description": "The request, or the function.",
                },
            },
            "required": ["displayName", "type", "impl"],
            "description": "What is said about a version of a tool.",
        })
    }
}

/// The document of a stored tool, with its name in the list of tools and what was counted of it.
#[derive(Serialize)]
pub(super) struct StoredToolJson(Box<RawValue>);

impl JsonSchema for StoredToolJson {
    fn schema_name() -> Cow<'static, str> {
        "StoredTool".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let left_out = generator.subschema_for::<LeftOutJson<'_>>();
        let preferred = "Whether preferences for all clients enable or disable it; `null` where none says so. It \
                         can\nbe called if it is enabled here, and no preference disables it.";
        json_schema!({
            "type": "object",
            "properties": {
                "schemaVersion": {"type": "string"},
                "toolID": {
                    "type": ["string", "null"],
                    "description": "A UUID of version 7; a file that was written by hand may have none.",
                },
                "bundleID": {"type": "string"},
                "slug": {"type": "string"},
                "version": {"type": "string"},
                "displayName": {"type": "string"},
                "type": {"type": "string"},
                "createdAt": {"type": "string"},
                "tool": {"type": "string", "description": "The tool in the list of tools, as `scenario/tool`."},
                "preferredEnabled": {"type": ["boolean", "null"], "description": preferred},
                "leftOut": {
                    "anyOf": [left_out, {"type": "null"}],
                    "description": "Why the list of tools leaves it out, if it cannot be run here.",
                },
                "callCount": {
                    "type": "integer", "format": "uint64", "minimum": 0,
                    "description": "Calls that named it, with any result.",
                },
                "lastCalledAt": {"type": ["string", "null"], "description": "When the latest call ended."},
            },
            "required": [
                "schemaVersion", "bundleID", "slug", "version", "displayName", "type", "createdAt", "tool",
                "preferredEnabled", "callCount", "lastCalledAt",
            ],
            "description": "A stored version of a tool. Further members of its file are there, too.",
        })
    }
}

/// Why a tool is left out of the list of tools.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LeftOutTool")]
struct LeftOutJson<'a> {
    /// The reason, as the finding `tool-unavailable` has it.
    message: &'a str,
    /// The next step.
    hint: Option<&'a str>,
}

/// What an import stored.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ImportedBundle", rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportedBundleJson {
    /// The bundle as it is now.
    pub(super) bundle: BundleJson,
    /// How many tools came in.
    pub(super) tools: usize,
    /// How many tools of the bundle cannot be run here, so that the list leaves them out.
    pub(super) left_out: usize,
}

/// One page of bundles.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BundleList")]
pub(super) struct BundleListJson {
    pub(super) bundles: Vec<BundleJson>,
    /// For the next page; absent on the last one.
    #[serde(rename = "nextPageToken", skip_serializing_if = "Option::is_none")]
    pub(super) next_page_token: Option<String>,
}

/// One page of stored tools.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StoredToolList")]
pub(super) struct ToolListJson {
    pub(super) tools: Vec<StoredToolJson>,
    /// For the next page; absent on the last one.
    #[serde(rename = "nextPageToken", skip_serializing_if = "Option::is_none")]
    pub(super) next_page_token: Option<String>,
}

/// A call of a stored tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Invoke")]
pub(super) struct InvokeBody<'a> {
    /// The arguments: an object, or the text of one.
    #[serde(borrow)]
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<Value>")]
    pub(super) args: Option<&'a RawValue>,
}

/// What came of a call.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Invoked")]
pub(super) struct InvokedJson<'a> {
    /// Whether the tool succeeded.
    pub(super) ok: bool,
    /// What the tool gave back, if it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub(super) value: Option<RawJson<'a>>,
    /// Why it failed or was not called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'a str>,
    /// The same as a short word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<&'a str>,
}

/// The document of a bundle, with the name of its scenario.
pub(super) fn bundle(bundle: &StoredBundle) -> Result<BundleJson, Problem> {
    let about = &bundle.definition;
    let own = [
        ("modifiedAt", time(about.modified_at)),
        ("scenario", json!(bundle.scenario.as_str())),
    ];
    with_members(&about.document, &own).map(BundleJson)
}

/// The document of a tool, with its name in the list of tools and what was counted of it.
pub(super) fn tool(
    shared: &ServerState,
    catalog: &Catalog,
    bundle: &StoredBundle,
    tool: &StoredTool,
) -> Result<StoredToolJson, Problem> {
    let id = ToolId {
        scenario: bundle.scenario.clone(),
        tool: tool.name().into(),
    };
    let usage = shared.calls.usage(&id);
    let preferred = switches::preferred(catalog, bundle, tool);
    let mut own = vec![
        ("bundleID", json!(bundle.definition.id)),
        ("modifiedAt", time(tool.modified_at)),
        ("tool", json!(id.to_string())),
        ("preferredEnabled", json!(preferred)),
    ];
    if let Some(finding) = left_out(tool, &shared.bundles) {
        own.push((
            "leftOut",
            json!(LeftOutJson {
                message: &finding.message,
                hint: finding.hint.as_deref()
            }),
        ));
    }
    own.push((
        "callCount",
        json!(usage.as_ref().map_or(0, |usage| usage.calls)),
    ));
    own.push((
        "lastCalledAt",
        json!(usage.map(|usage| usage.last.to_string())),
    ));
    with_members(&tool.document, &own).map(StoredToolJson)
}

/// A document with members of the daemon's own, which replace those of the same names. The others
/// stay the text that they are: a page of trees would take many times its bytes.
fn with_members(
    document: &StoredDocument,
    own: &[(&str, Value)],
) -> Result<Box<RawValue>, Problem> {
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
