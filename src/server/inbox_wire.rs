//! The JSON shapes of the original agent-inbox. Tools are in the protocol's own spelling, with their original names; schemas and
//! metadata go through as the text they came in. Lists are never `null`.

use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::catalog::Entry;
use crate::model::{Category, Extra, Health, JsonText, Provenance, ScenarioState, Scope, Tool, ViewTool};

/// `GET /api/v1/tools/set`.
#[derive(Serialize)]
pub(super) struct ToolSet<'a> {
    pub(super) scenarios: Vec<ScenarioJson<'a>>,
    pub(super) tools: Vec<EffectiveTool<'a>>,
    pub(super) categories: Vec<CategoryJson<'a>>,
    pub(super) generated_at: String,
}

/// `ScenarioInfo`, under the name that the scenario is filed under: its tools refer to that one.
pub(super) struct ScenarioJson<'a>(pub(super) &'a Entry);

/// `ToolCategory`.
pub(super) struct CategoryJson<'a>(pub(super) &'a Category);

/// `ToolDefinition`.
struct ToolJson<'a>(&'a Tool);

/// One tool with what preferences made of it.
#[derive(Serialize)]
pub(super) struct EffectiveTool<'a> {
    scenario: &'a str,
    tool: ToolJson<'a>,
    enabled: bool,
    source: &'static str,
    requires_approval: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    approval_source: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    approval_override: &'static str,
}

impl<'a> EffectiveTool<'a> {
    pub(super) fn new(tool: &'a ViewTool) -> Self {
        let effective = &tool.effective;
        let approval_override = match (&effective.approval_source, effective.requires_approval) {
            (Provenance::Manifest, _) => "",
            (Provenance::Preference(_), true) => "require",
            (Provenance::Preference(_), false) => "skip",
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

/// The words of the original: empty is the manifest. It knows no profiles, and its routes ask for none.
fn source(provenance: &Provenance) -> &'static str {
    match provenance {
        Provenance::Manifest => "",
        Provenance::Preference(place) => match place.0 {
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
        optional(&mut map, "base_url", info.base_url.as_ref())?;
        extra(&mut map, &info.extra)?;
        map.end()
    }
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
        raw(&mut map, "parameters", &self.0.parameters)?;
        raw(&mut map, "metadata", &self.0.metadata)?;
        extra(&mut map, &self.0.extra)?;
        map.end()
    }
}

fn optional<M: SerializeMap>(map: &mut M, name: &str, value: Option<&impl Serialize>) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

fn extra<M: SerializeMap>(map: &mut M, extra: &Extra) -> Result<(), M::Error> {
    extra.iter().try_for_each(|(name, value)| raw(map, name, value))
}

fn raw<M: SerializeMap>(map: &mut M, name: &str, value: &JsonText) -> Result<(), M::Error> {
    let value: &RawValue = serde_json::from_str(value.get()).map_err(M::Error::custom)?;
    map.serialize_entry(name, value)
}

/// A scenario in `GET /api/v1/tools/scenarios`: `{scenario, available, last_checked, tool_count, error?}`.
///
/// `available` means that the last time it was asked it answered, and its tools are published; `last_checked` is that time, empty when it
/// was never asked.
pub(super) fn status(health: &Health, entry: Option<&Entry>) -> Value {
    let answered = matches!(health.state, ScenarioState::Live | ScenarioState::Stale) && health.failures_in_a_row == 0;
    let published = entry.is_some_and(Entry::is_published);
    let available = answered && published;
    let mut status = serde_json::json!({
        "scenario": health.name.as_str(),
        "available": available,
        "last_checked": health.last_attempt.map(|time| time.to_string()).unwrap_or_default(),
        "tool_count": entry.map_or(0, |entry| entry.tools.len()),
    });
    let error = health.last_error.as_ref().map(|error| error.message.as_str());
    if let Some(error) = error.or_else(|| (!available).then_some(health.reason.as_str())) {
        status["error"] = error.into();
    }
    status
}
