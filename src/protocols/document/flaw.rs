//! Flaws: what is wrong with a part of a document, where, and how to fix it; and the findings made
//! of them.

use crate::json::LEVELS_MAX;
use crate::model::finding::push_step;
pub(in crate::protocols) use crate::model::finding::quoted_excerpt;
use crate::model::{Bounds, CappedFindings, Finding, FindingCode};

/// The most bytes of a member's name in a pointer. Other programs may send longer names.
const STEP: usize = 256;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::protocols) struct Flaw {
    /// JSON pointer (RFC 6901), relative to whatever is being read.
    pub(in crate::protocols) pointer: String,
    /// Continues a sentence that begins with the thing: "is a number, not a text".
    pub(in crate::protocols) what: String,
    /// The next step.
    pub(in crate::protocols) hint: Option<String>,
}

impl Flaw {
    pub(in crate::protocols) fn new(pointer: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            what: what.into(),
            hint: None,
        }
    }

    /// The value is of another kind than the protocol requires.
    pub(in crate::protocols) fn kind(
        pointer: impl Into<String>,
        found: &str,
        wanted: &str,
    ) -> Self {
        Self::new(pointer, format!("is {found}, not {wanted}")).hint(format!("make it {wanted}"))
    }

    pub(in crate::protocols) fn too_deep() -> Self {
        Self::new("", format!("nests deeper than {LEVELS_MAX} levels")).hint("flatten it")
    }

    /// The part has more bytes than the limit.
    pub(in crate::protocols) fn too_large(bytes: usize, bounds: Bounds) -> Self {
        let what = format!(
            "is {bytes} bytes long, more than the {} of `refresh.max_tool`",
            bounds.part
        );
        Self::new("", what).hint("shorten it, or raise `refresh.max_tool`")
    }

    /// A text has an escape that no reader understands.
    pub(in crate::protocols) fn broken_string() -> Self {
        Self::new("", "has a text with a broken escape")
            .hint("write valid Unicode escapes, surrogates in pairs")
    }

    /// A number is beyond the range of a double.
    pub(in crate::protocols) fn number_too_large() -> Self {
        Self::new("", "has a number that is too large for every reader")
            .hint("write numbers within a double's range")
    }

    pub(in crate::protocols) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same flaw with a pointer from one level further out. If the name of the level is too
    /// long, the pointer leads to the enclosing object.
    pub(in crate::protocols) fn within(mut self, name: &str) -> Self {
        let inner = std::mem::take(&mut self.pointer);
        if name.len() > STEP {
            return self;
        }
        push_step(&mut self.pointer, name);
        self.pointer.push_str(&inner);
        self
    }

    /// The flaw as a finding. `thing` begins the sentence.
    pub(in crate::protocols) fn finding(
        self,
        code: FindingCode,
        thing: &str,
        tool: Option<&str>,
    ) -> Finding {
        let place = if self.pointer.is_empty() {
            "the document"
        } else {
            &self.pointer
        };
        let mut finding =
            Finding::new(code, format!("{thing}: {place} {}", self.what)).at(self.pointer);
        finding.hint = self.hint;
        finding.tool = tool.map(Into::into);
        finding
    }
}

/// The index of the tool that a pointer leads into.
pub(in crate::protocols) fn tool_index(pointer: &str) -> Option<usize> {
    pointer
        .strip_prefix("/tools/")?
        .split('/')
        .next()?
        .parse()
        .ok()
}

/// The findings of one document, limited in number.
#[derive(Debug, Default)]
pub(in crate::protocols) struct DocumentFindings(CappedFindings);

impl DocumentFindings {
    pub(in crate::protocols) fn push(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    /// Adds a finding with this code. It is made only if it is among those that are kept.
    pub(in crate::protocols) fn push_with(
        &mut self,
        code: FindingCode,
        finding: impl FnOnce() -> Finding,
    ) {
        self.0.push_with(code, finding);
    }

    /// Adds a flaw as a finding. `thing` begins the sentence.
    pub(in crate::protocols) fn flaw(
        &mut self,
        code: FindingCode,
        thing: &str,
        flaw: Flaw,
        tool: Option<&str>,
    ) {
        self.push(flaw.finding(code, thing, tool));
    }

    /// All findings: first those of the document, then those of tools in the order of the list, and
    /// last the number of findings that were left out.
    pub(in crate::protocols) fn finish(self) -> Vec<Finding> {
        let mut findings = self.0.finish();
        findings.sort_by_key(|finding| {
            finding
                .pointer
                .as_deref()
                .map_or(Some(usize::MAX), tool_index)
        });
        findings
    }
}
