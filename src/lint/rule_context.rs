//! The JSON pointer at which a rule is checking, and how the rule reports findings.

use std::sync::Arc;

use crate::model::finding::{push_step, quoted_excerpt};
use crate::model::{CappedFindings, Finding, FindingCode, Tool};

/// A position within one tool, or within a document beside its tools.
pub(super) struct RuleContext<'f> {
    findings: &'f mut CappedFindings,
    tool: Option<Arc<str>>,
    pointer: String,
    /// What the position is called where no pointer leads to it.
    name: Option<Arc<str>>,
}

impl<'f> RuleContext<'f> {
    /// Starts at the tool itself.
    pub(super) fn new(findings: &'f mut CappedFindings, tool: &Tool, index: usize) -> Self {
        Self {
            findings,
            tool: Some(Arc::clone(&tool.name)),
            pointer: format!("/tools/{index}"),
            name: None,
        }
    }

    /// Starts at the document.
    pub(super) fn of_document(findings: &'f mut CappedFindings) -> Self {
        Self {
            findings,
            tool: None,
            pointer: String::new(),
            name: None,
        }
    }

    /// Runs `judge` at a part of the current list that is found by its name.
    pub(super) fn named(&mut self, name: &Arc<str>, judge: impl FnOnce(&mut Self)) {
        self.name = Some(Arc::clone(name));
        judge(self);
        self.name = None;
    }

    /// Runs `judge` at a member of the current value.
    pub(super) fn within(&mut self, step: &str, judge: impl FnOnce(&mut Self)) {
        let length = self.pointer.len();
        if self.name.is_none() {
            push_step(&mut self.pointer, step);
        }
        judge(self);
        self.pointer.truncate(length);
    }

    /// Runs `judge` at `further`, a JSON pointer relative to this position.
    pub(super) fn below(&mut self, further: &str, judge: impl FnOnce(&mut Self)) {
        let length = self.pointer.len();
        self.pointer.push_str(further);
        judge(self);
        self.pointer.truncate(length);
    }

    /// Runs `judge` at an element of the current list.
    pub(super) fn at(&mut self, index: usize, judge: impl FnOnce(&mut Self)) {
        self.within(&index.to_string(), judge);
    }

    /// The steps from the document to this position, unescaped.
    pub(super) fn steps(&self) -> impl Iterator<Item = String> {
        self.pointer
            .split('/')
            .skip(1)
            .map(|step| step.replace("~1", "/").replace("~0", "~"))
    }

    /// Whether this is in the schema of a tool's results, which no LLM vendor gets and whose
    /// members no caller fills in.
    pub(super) fn is_in_output(&self) -> bool {
        self.pointer.split('/').nth(3) == Some("outputSchema")
    }

    /// Reports a finding at this position. Where no pointer leads to it, its name begins the
    /// message.
    pub(super) fn report(
        &mut self,
        code: FindingCode,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let Self {
            findings,
            tool,
            pointer,
            name,
        } = self;
        findings.push_with(code, || {
            let message: String = message.into();
            let message = match name {
                Some(name) => format!("{}: {message}", quoted_excerpt(name)),
                None => message,
            };
            let finding = Finding::new(code, message).at(pointer).hint(hint);
            Finding {
                tool: tool.clone(),
                ..finding
            }
        });
    }

    /// Reports a finding at `further`, a JSON pointer relative to this position.
    pub(super) fn report_at(
        &mut self,
        further: &str,
        code: FindingCode,
        message: impl Into<String>,
        hint: &str,
    ) {
        self.below(further, |place| place.report(code, message, hint));
    }
}
