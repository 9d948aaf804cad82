//! The JSON pointer at which a rule is checking, and how the rule reports findings.

use std::sync::Arc;

use crate::model::finding::push_step;
use crate::model::{CappedFindings, Finding, FindingCode, Tool};

/// A position within one tool.
pub(super) struct RuleContext<'f> {
    findings: &'f mut CappedFindings,
    tool: Arc<str>,
    pointer: String,
}

impl<'f> RuleContext<'f> {
    /// Starts at the tool itself.
    pub(super) fn new(findings: &'f mut CappedFindings, tool: &Tool, index: usize) -> Self {
        Self { findings, tool: Arc::clone(&tool.name), pointer: format!("/tools/{index}") }
    }

    /// Runs `judge` at a member of the current value.
    pub(super) fn within(&mut self, step: &str, judge: impl FnOnce(&mut Self)) {
        let length = self.pointer.len();
        push_step(&mut self.pointer, step);
        judge(self);
        self.pointer.truncate(length);
    }

    /// Runs `judge` at an element of the current list.
    pub(super) fn at(&mut self, index: usize, judge: impl FnOnce(&mut Self)) {
        self.within(&index.to_string(), judge);
    }

    /// The steps from the document to this position, unescaped.
    pub(super) fn steps(&self) -> impl Iterator<Item = String> {
        self.pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"))
    }

    /// Whether this is in the schema of a tool's results, which no LLM vendor gets and whose
    /// members no caller fills in.
    pub(super) fn is_in_output(&self) -> bool {
        self.pointer.split('/').nth(3) == Some("outputSchema")
    }

    /// Reports a finding at this position.
    pub(super) fn report(&mut self, code: FindingCode, message: impl Into<String>, hint: impl Into<String>) {
        let Self { findings, tool, pointer } = self;
        findings.push_with(code, || Finding::new(code, message).of_tool(Arc::clone(tool)).at(pointer).hint(hint));
    }

    /// Reports a finding at `further`, a JSON pointer relative to this position.
    pub(super) fn report_at(&mut self, further: &str, code: FindingCode, message: impl Into<String>, hint: &str) {
        let length = self.pointer.len();
        self.pointer.push_str(further);
        self.report(code, message, hint);
        self.pointer.truncate(length);
    }
}
