//! Where pages are.

use super::text::segment;
use crate::model::ToolId;

/// Where the page of a tool is.
pub(super) fn tool(id: &ToolId) -> String {
    format!("/dashboard/tool?id={}", segment(&id.to_string()))
}
