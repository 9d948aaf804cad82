//! Findings about a document that was listed, with pointers into the document as it was sent.
//!
//! Rules and decoding name members as the model does, and count tools in the order of their names.
//! The author of a document has other names, another order, and values with wrappers around them.
//! Only the parts that pointers lead into are read as trees, one tool at a time, and none that is
//! large: a listing must not cost many times its document. It never changes what was decoded.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::document::envelope::{Members, each_item, own_text};
use super::document::flaw::tool_index;
use super::document::raw::Raw;
use crate::model::finding::push_step;
use crate::model::{Finding, FindingCode, Manifest, SentFindings, Severity};

/// Bytes of a tool, or of another member of the document, that are read as a tree at most. A
/// pointer into a larger one leads to the whole of it.
const TREE_PART_BYTES_MAX: usize = 1 << 20;

/// How a protocol finds the place of a pointer in a document as sent, or the innermost one around
/// it.
type SentPointer = fn(&Value, &str) -> String;

/// What is a mistake in a manifest of one protocol.
pub(super) type LintRules = fn(&Manifest) -> Vec<Finding>;

/// A document as it was sent.
pub(super) struct SentDocument<'a> {
    tools: Option<Raw<'a>>,
    /// Its other members.
    rest: Members<'a>,
    sent_pointer: SentPointer,
}

impl<'a> SentDocument<'a> {
    /// A document that was decoded before; `None` for one that cannot have been.
    pub(super) fn parse(text: &'a str, sent_pointer: SentPointer) -> Option<Self> {
        let mut rest = Members::parse(text).ok()?.ok()?;
        Some(Self {
            tools: rest.take("tools"),
            rest,
            sent_pointer,
        })
    }

    /// What the rules of its protocol find in its manifest, without what is only good to know.
    /// `decoded` are the findings of decoding, which say what the manifest does not have of it.
    pub(super) fn lint(
        &self,
        manifest: &Manifest,
        rules: LintRules,
        decoded: &[Finding],
    ) -> SentFindings {
        let mut findings = rules(manifest);
        findings.retain(|finding| finding.code.severity() != Severity::Info);
        self.renumber(manifest, &left_out(decoded), &mut findings);
        self.place(&mut findings);
        SentFindings::new(findings)
    }

    /// Gives findings the pointers of the document, also where their messages repeat them.
    pub(super) fn place(&self, findings: &mut [Finding]) {
        let tools = self.tools(
            &findings
                .iter()
                .filter_map(|finding| tool_index(finding.pointer.as_deref()?))
                .collect(),
        );
        let rest = std::cell::OnceCell::new();
        // Findings of one tool mostly follow each other.
        let mut current = (None, Value::Null);
        for finding in findings {
            let Some(pointer) = finding.pointer.as_deref() else {
                continue;
            };
            let sent = match tool_index(pointer) {
                None => (self.sent_pointer)(rest.get_or_init(|| self.rest()), pointer),
                Some(index) => {
                    if current.0 != Some(index) {
                        let tool = tools
                            .get(&index)
                            .copied()
                            .and_then(tree)
                            .unwrap_or_default();
                        current = (Some(index), json!({ "tools": [tool] }));
                    }
                    with_index(
                        &(self.sent_pointer)(&current.1, &with_index(pointer, 0)),
                        index,
                    )
                }
            };
            put(finding, sent);
        }
    }

    /// Gives pointers the indices that the tools have in the document.
    fn renumber(&self, manifest: &Manifest, left_out: &HashSet<usize>, findings: &mut [Finding]) {
        let tool = |finding: &Finding| manifest.tools.get(tool_index(finding.pointer.as_deref()?)?);
        let wanted: HashSet<&str> = findings
            .iter()
            .filter_map(tool)
            .map(|tool| tool.name.as_ref())
            .collect();
        let mut sent: HashMap<&str, usize> = HashMap::new();
        let _ = self.tools.filter(|_| !wanted.is_empty()).map(|list| {
            each_item(list, |index, raw| {
                let name = own_text(raw, "name").filter(|_| !left_out.contains(&index));
                if let Some(name) = name.and_then(|name| wanted.get(&*name).copied()) {
                    sent.entry(name).or_insert(index);
                }
            })
        });
        for finding in findings {
            let index = tool(finding).and_then(|tool| sent.get(tool.name.as_ref()));
            if let (Some(index), Some(pointer)) = (index, finding.pointer.as_deref()) {
                finding.pointer = Some(with_index(pointer, *index));
            }
        }
    }

    /// These of its tools.
    fn tools(&self, wanted: &HashSet<usize>) -> HashMap<usize, Raw<'a>> {
        let mut found = HashMap::with_capacity(wanted.len());
        let _ = self.tools.filter(|_| !wanted.is_empty()).map(|list| {
            each_item(list, |index, raw| {
                if wanted.contains(&index) {
                    found.insert(index, raw);
                }
            })
        });
        found
    }

    /// Everything but its tools, of which the list alone is there.
    fn rest(&self) -> Value {
        let mut members: Map<String, Value> = self
            .rest
            .iter()
            .map(|(name, raw)| (name.to_owned(), tree(raw).unwrap_or_default()))
            .collect();
        if self.tools.is_some() {
            members.insert("tools".to_owned(), json!([]));
        }
        members.into()
    }
}

/// Puts the pointer of the document into a finding, also where its message repeats the former one.
pub(super) fn put(finding: &mut Finding, sent: String) {
    if let Some(pointer) = finding
        .pointer
        .as_deref()
        .filter(|pointer| pointer.len() > 1 && **pointer != *sent)
    {
        finding.message =
            finding
                .message
                .replacen(&format!(" {pointer} "), &format!(" {sent} "), 1);
    }
    finding.pointer = Some(sent);
}

/// The pointer of these steps in `document`, as far as they lead.
pub(super) fn innermost(document: &Value, steps: impl IntoIterator<Item = String>) -> String {
    let mut sent = String::new();
    for step in steps {
        let before = sent.len();
        push_step(&mut sent, &step);
        if document.pointer(&sent).is_none() {
            sent.truncate(before);
            break;
        }
    }
    sent
}

/// The steps of a pointer.
pub(super) fn steps(pointer: &str) -> Vec<String> {
    pointer
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"))
        .collect()
}

/// The tools of a document, as they were sent.
pub(super) fn tools(document: &Value) -> &[Value] {
    document
        .get("tools")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The indices, as sent, of the tools that decoding left out.
pub(super) fn left_out(decoded: &[Finding]) -> HashSet<usize> {
    let is_left_out = |finding: &&Finding| {
        matches!(
            finding.code,
            FindingCode::ToolQuarantined | FindingCode::DuplicateTool
        )
    };
    decoded
        .iter()
        .filter(is_left_out)
        .filter_map(|finding| tool_index(finding.pointer.as_deref()?))
        .collect()
}

/// The same pointer with another index of the tool.
pub(super) fn with_index(pointer: &str, index: usize) -> String {
    let mut steps = pointer.splitn(4, '/').skip(1);
    match (steps.next(), steps.next(), steps.next()) {
        (Some("tools"), Some(_), Some(rest)) => format!("/tools/{index}/{rest}"),
        (Some("tools"), Some(_), None) => format!("/tools/{index}"),
        _ => pointer.to_owned(),
    }
}

fn tree(raw: Raw<'_>) -> Option<Value> {
    serde_json::from_str(Some(raw.get()).filter(|text| text.len() <= TREE_PART_BYTES_MAX)?).ok()
}
