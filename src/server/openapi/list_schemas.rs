//! Types that describe the lists of tools, whose JSON is written by hand for speed. Tests compare
//! real answers with their schemas.

use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::server::api::shared_json::Time;
use crate::views::ReportJson;

/// The list of tools in the requested format.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "AnyToolList")]
#[expect(dead_code, reason = "it is only described")]
pub(in crate::server) enum AnyToolList<'a> {
    Native(NativeList),
    Reported(ReportedList<'a>),
    /// What the vendor takes as its list of tools.
    Vendor(Vec<Map<String, Value>>),
    /// The same where the vendor takes an object.
    VendorObject(Map<String, Value>),
    /// The same where a vendor takes no empty list.
    Nothing(()),
}

/// `report=true`: the list, and what was decided about each tool.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is only described")]
pub(in crate::server) struct ReportedList<'a> {
    /// The list in the requested format.
    tools: Value,
    report: ReportJson<'a>,
}

/// `format=native`: a manifest of the Tool Discovery Protocol, so that one daemon can be a scenario
/// of another.
#[derive(JsonSchema)]
#[schemars(rename = "ToolManifest")]
#[expect(dead_code, reason = "it is only described")]
pub(in crate::server) struct NativeList {
    protocol_version: String,
    scenario: NativeScenario,
    /// The daemons that the list came through.
    #[schemars(skip_serializing_if = "Option::is_none")]
    via: Option<Vec<String>>,
    tools: Vec<NativeTool>,
    categories: Vec<NativeCategory>,
    generated_at: Time,
}

/// callsheet itself.
#[derive(JsonSchema)]
#[schemars(rename = "Publisher")]
#[expect(dead_code, reason = "it is only described")]
struct NativeScenario {
    name: String,
    version: String,
    description: String,
}

/// A tool with its owner and its effective settings. Unknown members are passed on.
#[derive(JsonSchema)]
#[schemars(rename = "Tool")]
#[expect(dead_code, reason = "it is only described")]
pub(in crate::server) struct NativeTool {
    /// The published name.
    name: String,
    description: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    /// JSON Schema of the arguments.
    parameters: Map<String, Value>,
    metadata: Map<String, Value>,
    scenario: String,
    /// The name its scenario gave it.
    original_name: String,
    enabled: bool,
    /// `manifest`, or the preference as `SCOPE TARGET`.
    enabled_source: String,
    requires_approval: bool,
    approval_source: String,
    /// The version of its definition, short: a call may name it.
    definition_version: String,
    /// The version that its provider gives it, if it gives one. Only shown: the provider may change
    /// the tool and not this.
    #[schemars(skip_serializing_if = "Option::is_none")]
    provider_version: Option<String>,
    /// JSON Schema of the results, if the tool declares it.
    #[schemars(rename = "outputSchema", skip_serializing_if = "Option::is_none")]
    output_schema: Option<Map<String, Value>>,
    /// What runs its calls, where that is not simply its scenario; empty if the calling model gives
    /// the result.
    #[schemars(rename = "_activity", skip_serializing_if = "Option::is_none")]
    activity: Option<String>,
}

/// A grouping of tools. Unknown members are passed on.
#[derive(JsonSchema)]
#[schemars(rename = "Category")]
#[expect(dead_code, reason = "it is only described")]
struct NativeCategory {
    id: String,
    name: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    icon: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    display_order: Option<i64>,
}

/// One tool in the requested format.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "AnyTool")]
#[expect(dead_code, clippy::large_enum_variant, reason = "it is only described")]
pub(in crate::server) enum AnyTool {
    Native(NativeTool),
    /// As the vendor takes it.
    Vendor(Map<String, Value>),
}
