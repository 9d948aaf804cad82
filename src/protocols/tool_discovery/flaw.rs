//! What is wrong with a part of a document, where, and what to do about it; and the findings that become of it.

use std::collections::BTreeMap;

use super::text::MAX_DEPTH;
use crate::model::{Finding, FindingCode};

/// Findings of one code beyond this many are counted, not told one by one: a hostile body holds a hundred thousand broken tools.
const TOLD_PER_CODE: usize = 100;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    /// JSON pointer (RFC 6901), relative to whatever is being read.
    pub(super) pointer: String,
    /// Continues a sentence that begins with the thing: "is a number, not a text".
    pub(super) what: String,
    /// The next step.
    pub(super) hint: Option<String>,
}

impl Flaw {
    pub(super) fn new(pointer: impl Into<String>, what: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), what: what.into(), hint: None }
    }

    /// Something is of another kind than the protocol says.
    pub(super) fn kind(pointer: impl Into<String>, found: &str, wanted: &str) -> Self {
        Self::new(pointer, format!("is {found}, not {wanted}")).hint(format!("make it {wanted}"))
    }

    pub(super) fn too_deep() -> Self {
        Self::new("", format!("nests deeper than {MAX_DEPTH} levels")).hint("flatten it")
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same flaw, seen from one level further out.
    pub(super) fn within(mut self, name: &str) -> Self {
        self.pointer = format!("/{}{}", name.replace('~', "~0").replace('/', "~1"), self.pointer);
        self
    }
}

/// The findings of one document, bounded.
#[derive(Debug, Default)]
pub(super) struct Findings {
    told: Vec<Finding>,
    counts: BTreeMap<FindingCode, usize>,
}

impl Findings {
    pub(super) fn push(&mut self, finding: Finding) {
        let count = self.counts.entry(finding.code).or_default();
        *count += 1;
        if *count <= TOLD_PER_CODE {
            self.told.push(finding);
        }
    }

    /// A flaw at its place. `thing` begins the sentence.
    pub(super) fn flaw(&mut self, code: FindingCode, thing: &str, flaw: Flaw, tool: Option<&str>) {
        let place = if flaw.pointer.is_empty() { "the document" } else { &flaw.pointer };
        let mut finding = Finding::new(code, format!("{thing}: {place} {}", flaw.what)).at(flaw.pointer);
        finding.hint = flaw.hint;
        finding.tool = tool.map(Into::into);
        self.push(finding);
    }

    /// All of them, with one more for each code of which some were only counted.
    pub(super) fn finish(mut self) -> Vec<Finding> {
        for (code, count) in self.counts {
            if let Some(more) = count.checked_sub(TOLD_PER_CODE).filter(|more| *more > 0) {
                self.told.push(Finding::new(code, format!("{more} more of this kind are not told one by one")));
            }
        }
        self.told
    }
}

/// The beginning of a text, in backticks, with what a terminal might act on escaped, for messages.
pub(super) fn shown(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut out = String::from("`");
    for c in text.chars().take(SHOWN) {
        match c {
            '"' | '\'' | '\\' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out.push_str(if text.chars().nth(SHOWN).is_some() { "...`" } else { "`" });
    out
}
