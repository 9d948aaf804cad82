//! How many tools the target of a preference matches, and of how many that cannot be said.

use super::Catalog;
use crate::model::{PreferenceTarget, ToolId, ViewTool};

/// The tags that hints of MCP servers become.
const HINT_TAGS: [&str; 4] = [
    "hint:read-only",
    "hint:destructive",
    "hint:idempotent",
    "hint:open-world",
];

/// So many tools are named of which it cannot be said whether a target matches them.
const UNJUDGED_FIRST: usize = 5;

/// What a target matches among the published tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetMatches {
    /// The tools that it matches.
    pub tools: usize,
    /// The further tools that it might match: it is a hint, and their servers give none.
    pub unjudged: usize,
    /// The first of these.
    pub unjudged_first: Vec<ToolId>,
}

impl Catalog {
    /// Counts the published tools that a target matches, enabled or not.
    pub fn target_matches(&self, target: &PreferenceTarget) -> TargetMatches {
        let mut found = TargetMatches::default();
        let entries = self.entries().filter(|entry| entry.is_published());
        for tool in entries.flat_map(|entry| entry.tools.iter()) {
            if self.is_matched(tool, target) {
                found.tools += 1;
            } else if is_unjudged(tool, target) {
                found.unjudged += 1;
                if found.unjudged_first.len() < UNJUDGED_FIRST {
                    found.unjudged_first.push(tool.id.clone());
                }
            }
        }
        found
    }

    fn is_matched(&self, tool: &ViewTool, target: &PreferenceTarget) -> bool {
        let facts = &tool.tool.facts;
        match target {
            PreferenceTarget::Scenario(name) => tool.id.scenario == *name,
            PreferenceTarget::Category(id) => tool.tool.category.as_deref() == Some(id),
            PreferenceTarget::Tool(id) => tool.id == *id,
            PreferenceTarget::Tag(tag) => {
                let is_assumed =
                    facts.unannotated && self.preferences().assumed_tags().contains(tag);
                is_assumed || facts.tags.iter().any(|own| **own == **tag)
            }
        }
    }
}

/// Whether the target is a hint, and the tool's server gives none for it.
fn is_unjudged(tool: &ViewTool, target: &PreferenceTarget) -> bool {
    let is_hint = matches!(target, PreferenceTarget::Tag(tag) if HINT_TAGS.contains(&tag.as_str()));
    is_hint && tool.tool.facts.unannotated
}
