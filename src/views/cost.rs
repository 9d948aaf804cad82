//! What a list costs in tokens: by scenario, by tool and by part, beside the vendors' limits, and
//! what would save some.
//!
//! Tokens are estimates, as everywhere ([`crate::formats::FormatLimits::tokens`]). Deferred tools
//! cost none.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::View;
use crate::formats::{FORMATS, Format, search_tools_bytes, signature};
use crate::model::{ScenarioName, ViewTool};

/// The tokens of one tool in a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ToolCost")]
pub(crate) struct ToolCost {
    /// All of it.
    pub(crate) tokens: usize,
    /// Its description.
    pub(crate) description_tokens: usize,
    /// Its schema, with its name and what else the format writes.
    pub(crate) schema_tokens: usize,
}

/// What a list costs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Cost")]
pub(crate) struct CostJson<'a> {
    /// Estimated tokens of the tools that are not deferred.
    pub(crate) tokens: usize,
    /// How many of them are descriptions.
    pub(crate) description_tokens: usize,
    /// How many are schemas, with names and what else the format writes.
    pub(crate) schema_tokens: usize,
    /// The scenarios of the list, the dearest first. The tokens of one are what switching it off
    /// saves.
    pub(crate) scenarios: Vec<ScenarioCostJson<'a>>,
    /// Every format with a known limit of tools.
    pub(crate) caps: Vec<CapJson>,
    /// What else would save tokens.
    pub(crate) saved: SavedJson,
}

/// What the tools of one scenario cost.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ScenarioCost")]
pub(crate) struct ScenarioCostJson<'a> {
    /// Its name.
    pub(crate) scenario: &'a str,
    /// How many of its tools are in the list and not deferred.
    pub(crate) tools: usize,
    #[serde(flatten)]
    pub(crate) cost: ToolCost,
}

/// The limit of a format.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Cap")]
pub(crate) struct CapJson {
    /// Its id.
    pub(crate) format: &'static str,
    /// Tools of one request at most.
    pub(crate) max_tools: usize,
    /// How many tools are beyond it.
    pub(crate) over: usize,
}

/// How many tokens of the list are saved by other ways to offer the same tools.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Saved")]
pub(crate) struct SavedJson {
    /// By `mode=search` at `/mcp`: only tools that are always listed stay, beside those that
    /// search. Each search costs up to 2,000 tokens.
    pub(crate) search_mode: usize,
    /// By the signatures of all tools in place of their schemas.
    pub(crate) signatures: usize,
}

impl ToolCost {
    /// The cost of a tool that takes so many bytes in a format.
    pub(crate) fn new(tool: &ViewTool, bytes: usize, format: &dyn Format) -> Self {
        let limits = format.limits();
        let tokens = limits.tokens(bytes);
        // Texts can always be written.
        let written = serde_json::to_string(&*tool.tool.description).unwrap_or_default();
        let description_tokens = limits.tokens(written.len()).min(tokens);
        Self {
            tokens,
            description_tokens,
            schema_tokens: tokens - description_tokens,
        }
    }

    fn add(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.description_tokens += other.description_tokens;
        self.schema_tokens += other.schema_tokens;
    }
}

impl<'a> CostJson<'a> {
    /// The cost of a view in a format. `bytes` has the size of each tool in order; `None` for one
    /// that the format leaves out.
    pub(crate) fn new(
        view: &'a View,
        format: &dyn Format,
        bytes: impl Iterator<Item = Option<usize>>,
    ) -> Self {
        let limits = format.limits();
        let mut all = ToolCost::default();
        let mut by_scenario: BTreeMap<&ScenarioName, (usize, ToolCost)> = BTreeMap::new();
        let mut kept_by_search = limits.tokens(search_tools_bytes());
        let mut lines = 0;
        for (tool, bytes) in view.tools().zip(bytes) {
            let Some(bytes) = bytes.filter(|_| !view.is_deferred(tool)) else {
                continue;
            };
            let cost = ToolCost::new(tool, bytes, format);
            all.add(cost);
            let (tools, sum) = by_scenario.entry(&tool.id.scenario).or_default();
            *tools += 1;
            sum.add(cost);
            if tool.effective.pinned {
                kept_by_search += cost.tokens;
            }
            lines += limits.tokens(signature(tool.name.as_str(), tool).len());
        }
        let mut scenarios: Vec<_> = by_scenario
            .into_iter()
            .map(|(scenario, (tools, cost))| ScenarioCostJson {
                scenario: scenario.as_str(),
                tools,
                cost,
            })
            .collect();
        // Equal ones stay in the order of their names.
        scenarios.sort_by_key(|scenario| Reverse(scenario.cost.tokens));
        Self {
            tokens: all.tokens,
            description_tokens: all.description_tokens,
            schema_tokens: all.schema_tokens,
            scenarios,
            caps: caps(view.len() + view.left_out.len()),
            saved: SavedJson {
                search_mode: all.tokens.saturating_sub(kept_by_search),
                signatures: all.tokens.saturating_sub(lines),
            },
        }
    }

    /// The cost of a view whose tools are written for this.
    pub(crate) fn measure(view: &'a View, format: &dyn Format) -> Self {
        let bytes = view
            .tools()
            .map(|tool| format.encode(tool).json.map(|json| json.len()));
        Self::new(view, format, bytes)
    }
}

/// Every known limit of tools, for so many.
fn caps(tools: usize) -> Vec<CapJson> {
    FORMATS
        .iter()
        .filter_map(|format| {
            let max_tools = format.limits().max_tools?;
            Some(CapJson {
                format: format.id(),
                max_tools,
                over: tools.saturating_sub(max_tools),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_with_a_limit_says_how_many_tools_are_beyond_it() {
        let over: BTreeMap<_, _> = caps(200)
            .into_iter()
            .map(|cap| (cap.format, cap.over))
            .collect();
        assert_eq!(over.get("openai"), Some(&72));
        assert_eq!(over.get("gemini"), Some(&0));
        assert!(!over.contains_key("native"), "{over:?}");
    }
}
