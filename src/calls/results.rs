//! Whether results fit the schemas that their tools declare for them (`outputSchema` of MCP).
//!
//! A result that does not is passed on all the same; a finding says so, and names the place in the
//! schema, since a result may be secret. No answer waits for the check, and at most one that takes
//! long runs at a time: results that come meanwhile stay unchecked.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::inner::CallsInner;
use crate::config;
use crate::model::{JsonText, Tool, ViewTool};
use crate::protocols::Outcome;

/// The schema that a tool declares for its results.
pub(super) fn schema(tool: &Tool) -> Option<&JsonText> {
    let schema = tool.extra.iter().find(|(name, _)| &**name == "outputSchema").map(|(_, schema)| schema);
    schema.filter(|schema| schema.get().starts_with('{'))
}

/// Checks the result of a call beside its answer.
pub(super) fn note(
    inner: &Arc<CallsInner>,
    tool: &Arc<ViewTool>,
    outcome: &Outcome,
    rules: &Arc<config::CallsConfig>,
) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct StructuredResult<'a> {
        #[serde(borrow)]
        structured_content: Option<&'a RawValue>,
    }
    // The result of a tool that failed need not fit (MCP 2026-07-28, structured content).
    let (Some(schema), Some(whole), true) = (schema(&tool.tool), &outcome.content, outcome.success) else { return };
    let Ok(sent) = serde_json::from_str::<StructuredResult<'_>>(whole.get()) else { return };
    let Some(structured) = sent.structured_content.map(|structured| JsonText::known(structured.get())) else {
        inner.validators.note_unfit(&tool.id, schema, "it had no `structuredContent`".into());
        return;
    };
    if inner.validators.result_plainly_fits(schema, &structured) {
        return;
    }
    let Some(turn) = inner.validators.result_turn() else { return };
    let (inner, tool, schema, rules) = (Arc::clone(inner), Arc::clone(tool), schema.clone(), Arc::clone(rules));
    inner.tasks.clone().spawn(async move {
        inner.validators.check_result(&tool.id, &schema, structured, &rules).await;
        drop(turn);
    });
}
