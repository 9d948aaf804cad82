//! URLs of pages.

use crate::model::ToolId;
use crate::server::dashboard::text::segment;

/// The URL of the page of a tool.
pub(super) fn tool(id: &ToolId) -> String {
    format!("/dashboard/tool?id={}", segment(&id.to_string()))
}
