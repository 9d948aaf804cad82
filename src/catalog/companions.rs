//! The tools by which the operations of another tool are followed and cancelled, under the names
//! that they are published under.
//!
//! A tool names them in its `async_behavior` by the names that its scenario gave them. A reader of
//! a list needs the names in that list.

use std::sync::Arc;

use serde_json::Value;

use crate::model::{CompanionName, Tool, ViewTool};

/// Gives each of a scenario's tools, which are sorted by original name, its companions. Tools that
/// have the right ones stay the same `Arc`.
pub(super) fn name_all(tools: &mut [Arc<ViewTool>]) {
    for index in 0..tools.len() {
        let Some(tool) = tools.get(index) else {
            continue;
        };
        let companions: Arc<[CompanionName]> = declared(&tool.tool)
            .iter()
            .filter_map(|name| companion(tools, name))
            .collect();
        if tool.companions != companions {
            let renamed = Arc::new(ViewTool {
                companions,
                ..ViewTool::clone(tool)
            });
            if let Some(tool) = tools.get_mut(index) {
                *tool = renamed;
            }
        }
    }
}

fn companion(tools: &[Arc<ViewTool>], name: &str) -> Option<CompanionName> {
    let index = tools
        .binary_search_by(|tool| tool.id.tool.as_ref().cmp(name))
        .ok()?;
    let tool = tools.get(index)?;
    Some(CompanionName {
        original: Arc::clone(&tool.id.tool),
        published: tool.name.clone(),
    })
}

/// The names that the tool's `async_behavior` has.
fn declared(tool: &Tool) -> Vec<String> {
    // Few tools declare it. The metadata of the others is not parsed.
    if !tool.metadata.get().contains("\"async_behavior\"") {
        return Vec::new();
    }
    let metadata: Value = serde_json::from_str(tool.metadata.get()).unwrap_or_default();
    let named = CompanionName::POINTERS
        .into_iter()
        .filter_map(|pointer| metadata.pointer(pointer)?.as_str());
    named.map(str::to_owned).collect()
}
