//! The JSON shapes of the original agent-inbox. Tools have the spelling of the Tool Discovery
//! Protocol and their original names; schemas and metadata are passed on as the text they came in.
//! Lists are never `null`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use url::Url;

use crate::catalog::CatalogEntry;
use crate::model::target::redacted_url;
use crate::model::{
    Category, Extra, Health, Provenance, ScenarioState, Scope, Tool, ViewTool, client_member,
};
use crate::server::api::shared_json::Time;

/// Scenarios, tools with their settings, and categories.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct ToolSet<'a> {
    pub(in crate::server) scenarios: Vec<ScenarioJson<'a>>,
    pub(in crate::server) tools: Vec<EffectiveTool<'a>>,
    pub(in crate::server) categories: Vec<CategoryJson<'a>>,
    /// When this content came to be.
    pub(in crate::server) generated_at: Time,
}

/// `ScenarioInfo`, under the name that the scenario is filed under: its tools refer to that one.
pub(in crate::server) struct ScenarioJson<'a>(pub(in crate::server) &'a CatalogEntry);

/// `ToolCategory`.
pub(in crate::server) struct CategoryJson<'a>(pub(in crate::server) &'a Category);

/// `ToolDefinition`.
struct ToolJson<'a>(&'a Tool);

/// One tool with its effective settings.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EffectiveTool")]
pub(in crate::server) struct EffectiveTool<'a> {
    scenario: &'a str,
    tool: ToolJson<'a>,
    enabled: bool,
    /// Which scope switched it on or off; empty is the scenario itself.
    source: &'static str,
    requires_approval: bool,
    /// The scope that decides whether approval is needed; absent is the scenario itself.
    #[serde(skip_serializing_if = "str::is_empty")]
    approval_source: &'static str,
    /// `require` or `skip`, when a preference says so.
    #[serde(skip_serializing_if = "str::is_empty")]
    approval_override: &'static str,
}

impl<'a> EffectiveTool<'a> {
    pub(in crate::server) fn new(tool: &'a ViewTool) -> Self {
        let effective = &tool.effective;
        let approval_override = match (&effective.approval_source, effective.requires_approval) {
            (Provenance::Manifest, _) => "",
            (_, true) => "require",
            (_, false) => "skip",
        };
        Self {
            scenario: tool.id.scenario.as_str(),
            tool: ToolJson(&tool.tool),
            enabled: effective.enabled,
            source: source(&effective.enabled_source),
            requires_approval: effective.requires_approval,
            approval_source: source(&effective.approval_source),
            approval_override,
        }
    }
}

/// The source in the words of the original: empty is the manifest. The original has no profiles,
/// and its routes take none.
fn source(provenance: &Provenance) -> &'static str {
    match provenance {
        Provenance::Manifest => "",
        Provenance::Preference(place) | Provenance::UnfitOverride(place) => match place.0 {
            Scope::Global => "global",
            Scope::Profile(_) => "profile",
            Scope::Chat(_) => "chat",
        },
    }
}

impl Serialize for ScenarioJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let info = &self.0.manifest.scenario;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", self.0.name.as_str())?;
        map.serialize_entry("version", &info.version)?;
        map.serialize_entry("description", &info.description)?;
        // As it was written, but without credentials.
        let without = |url: &str| {
            Url::parse(url)
                .ok()
                .filter(has_credentials)
                .map(|url| redacted_url(&url))
        };
        let base_url = info
            .base_url
            .as_deref()
            .map(|url| without(url).map_or(Cow::Borrowed(url), Cow::Owned));
        optional(&mut map, "base_url", base_url.as_ref())?;
        extra(&mut map, &info.extra)?;
        map.end()
    }
}

fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

impl Serialize for CategoryJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.0.id)?;
        map.serialize_entry("name", &self.0.name)?;
        optional(&mut map, "description", self.0.description.as_ref())?;
        optional(&mut map, "icon", self.0.icon.as_ref())?;
        optional(&mut map, "display_order", self.0.display_order.as_ref())?;
        extra(&mut map, &self.0.extra)?;
        map.end()
    }
}

impl Serialize for ToolJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.0.name)?;
        map.serialize_entry("description", &*self.0.description)?;
        optional(&mut map, "category", self.0.category.as_ref())?;
        raw(&mut map, "parameters", self.0.parameters.get())?;
        raw(&mut map, "metadata", self.0.metadata.get())?;
        extra(&mut map, &self.0.extra)?;
        map.end()
    }
}

fn optional<M: SerializeMap>(
    map: &mut M,
    name: &str,
    value: Option<&impl Serialize>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

fn extra<M: SerializeMap>(map: &mut M, extra: &Extra) -> Result<(), M::Error> {
    extra
        .iter()
        .try_for_each(|(name, value)| raw(map, name, &client_member(name, value.get())))
}

fn raw<M: SerializeMap>(map: &mut M, name: &str, value: &str) -> Result<(), M::Error> {
    let value: &RawValue = serde_json::from_str(value).map_err(M::Error::custom)?;
    map.serialize_entry(name, value)
}

/// Whether a scenario answers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ScenarioStatus")]
pub(in crate::server) struct ScenarioStatusJson<'a> {
    scenario: &'a str,
    /// Its last poll succeeded, and its tools are published.
    available: bool,
    /// The time of that poll; empty if it was never polled.
    last_checked: String,
    tool_count: usize,
    /// Why it is not available, or what last went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// A scenario in `GET /api/v1/tools/scenarios`.
pub(in crate::server) fn status<'a>(
    health: &'a Health,
    entry: Option<&CatalogEntry>,
) -> ScenarioStatusJson<'a> {
    let answered = matches!(
        health.state,
        ScenarioState::Live | ScenarioState::Stale | ScenarioState::Asleep
    ) && health.failures_in_a_row == 0;
    let published = entry.is_some_and(CatalogEntry::is_published);
    let available = answered && published;
    let error = health
        .last_error
        .as_ref()
        .map(|error| error.message.as_str());
    ScenarioStatusJson {
        scenario: health.name.as_str(),
        available,
        last_checked: health
            .last_attempt
            .map(|time| time.to_string())
            .unwrap_or_default(),
        tool_count: entry.map_or(0, |entry| entry.tools.len()),
        error: error.or_else(|| (!available).then_some(health.reason.as_str())),
    }
}

/// The result of a change.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "InboxChange")]
pub(in crate::server) struct InboxChangeJson {
    pub(in crate::server) success: bool,
    /// Empty for the global settings.
    pub(in crate::server) chat_id: String,
    pub(in crate::server) scenario: String,
    pub(in crate::server) tool_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) reset: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) approval_override: Option<String>,
}

/// The result of polling every scenario, compared with the scenarios that had tools before.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct Synced {
    pub(in crate::server) scenarios_with_tools: usize,
    pub(in crate::server) new_scenarios: Vec<String>,
    pub(in crate::server) removed_scenarios: Vec<String>,
    pub(in crate::server) total_tools: usize,
}

/// The parts of a manifest. Their unknown members are passed on unchanged.
macro_rules! part {
    ($written:ident, $name:literal, $schema:tt) => {
        impl JsonSchema for $written<'_> {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

part!(ScenarioJson, "ScenarioInfo", {
    "description": "A program that offers tools, under its name. Unknown members are passed on.",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "version": {"type": "string"},
        "description": {"type": "string"},
        "base_url": {"type": "string"}
    },
    "required": ["name", "version", "description"]
});
part!(CategoryJson, "ToolCategory", {
    "description": "A grouping of tools. Unknown members are passed on.",
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "name": {"type": "string"},
        "description": {"type": "string"},
        "icon": {"type": "string"},
        "display_order": {"type": "integer"}
    },
    "required": ["id", "name"]
});
part!(ToolJson, "ToolDefinition", {
    "description": "A tool as its scenario offers it. Unknown members are passed on.",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "description": {"type": "string"},
        "category": {"type": "string"},
        "parameters": {"type": "object", "description": "JSON Schema of the arguments."},
        "metadata": {"type": "object"}
    },
    "required": ["name", "description", "parameters", "metadata"]
});
