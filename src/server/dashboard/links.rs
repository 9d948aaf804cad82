//! URLs of pages.

use crate::model::{ScenarioName, ToolId};
use crate::server::dashboard::text::segment;

/// The URL of the page of a tool.
pub(super) fn tool(id: &ToolId) -> String {
    format!("/dashboard/tool?id={}", segment(&id.to_string()))
}

/// The URL of the page of a scenario.
pub(super) fn scenario(name: &ScenarioName) -> String {
    format!("/dashboard/scenarios/{}", segment(name.as_str()))
}
