//! Where pages are.

use crate::model::ToolId;
use crate::server::dashboard::text::segment;

/// Where the page of a tool is.
pub(super) fn tool(id: &ToolId) -> String {
    format!("/dashboard/tool?id={}", segment(&id.to_string()))
}
