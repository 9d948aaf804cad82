//! Notes results of calls that do not fit the schema of results that their tool declares, for the
//! findings.
//!
//! Every result of a tool that declares such a schema is checked, and given to the caller whether
//! or not it fits: the tool has done its work. Only `invoke` of a stored tool fails for it. A
//! definition and its activity may declare one each.
//! A later result that fits takes the finding back.
//! Checks run beside the answer, one at a time, so results that come meanwhile stay unchecked.

use std::sync::Arc;

use super::inner::CallsInner;
use super::validate::{ArgumentVerdict, CheckLimits};
use super::{Calls, PreparedCall};
use crate::config;
use crate::model::{JsonText, ToolId, ViewTool};
use crate::protocols::Outcome;

impl Calls {
    /// How a result breaks the schema that its tool gives for results; `None` where it fits, or
    /// could not be checked.
    pub(crate) async fn broken_result(&self, tool: &ViewTool, result: &JsonText) -> Option<String> {
        let schema = tool.tool.output()?;
        let rules = self.0.config.load_full();
        let verdict = self
            .0
            .validators
            .judge_result(tool, schema, result, CheckLimits::of_clients(&rules))
            .await;
        let Ok(ArgumentVerdict::Unfit(violations, _)) = verdict else {
            return None;
        };
        violations
            .first()
            .map(|first| format!("`{}`: {}", first.pointer, first.message))
    }
}

/// Checks the result of a call beside its answer.
pub(super) fn note(
    inner: &Arc<CallsInner>,
    ready: &PreparedCall,
    outcome: &Outcome,
    rules: &Arc<config::CallsConfig>,
) {
    // The result of a tool that failed need not fit (MCP 2026-07-28, structured content).
    let is_whole = outcome.success && outcome.running.is_none() && outcome.input_required.is_none();
    let Some(result) = outcome.result.as_ref().filter(|_| is_whole) else {
        return;
    };
    let tools = [Some(&ready.tool), ready.definition.as_ref()]
        .into_iter()
        .flatten();
    let declared = tools.filter_map(|tool| Some((tool.id.clone(), tool.tool.output()?.clone())));
    let unknown: Vec<(ToolId, JsonText)> = declared
        .filter(|(id, schema)| !inner.validators.result_plainly_fits(id, schema, result))
        .collect();
    if unknown.is_empty() {
        return;
    }
    let Some(turn) = inner.validators.result_turn() else {
        return;
    };
    let inner = Arc::clone(inner);
    let result = result.clone();
    let rules = Arc::clone(rules);
    inner.tasks.clone().spawn(async move {
        for (id, schema) in unknown {
            inner
                .validators
                .check_result(&id, &schema, result.clone(), &rules)
                .await;
        }
        drop(turn);
    });
}
