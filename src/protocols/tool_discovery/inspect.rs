//! Inspects a document for its author: all findings of decoding and of the rules of `lint`, with
//! pointers into the document as it was sent.
//!
//! Unlike [`super::decode()`] it never fails: a document that cannot be used gives a finding. It
//! builds a tree of the whole document, so it is for requests to inspect a document, not for every
//! poll.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::author_names::AuthorNames;
use super::flaw::tool_index;
use super::head;
use super::sent_pointer::sent_pointer;
use crate::lint;
use crate::model::finding::push_step;
use crate::model::{AcceptedVersions, Finding, FindingCode, Manifest};
use crate::protocols::ListError;
use crate::protocols::sent_document::{left_out, put, tools, with_index};

/// A document and its findings.
#[derive(Debug)]
pub struct Inspected {
    /// The decoded part; `None` when the document as a whole was refused.
    pub manifest: Option<Manifest>,
    /// The findings: first those of the document, then those of each tool in the order sent.
    /// Pointers use the names in the document's own spelling.
    pub findings: Vec<Finding>,
    /// The names of the tools, in the order sent.
    pub order: Vec<String>,
    /// `generated_at` as JSON text, as sent.
    pub stamp: Option<String>,
    /// How the author writes the names of members, where the protocol has more than one way.
    pub names: AuthorNames,
}

impl Inspected {
    /// What has no document that can be read.
    pub fn refused(findings: Vec<Finding>) -> Self {
        Self {
            manifest: None,
            findings,
            order: Vec::new(),
            stamp: None,
            names: AuthorNames::default(),
        }
    }

    /// A list of a protocol with one spelling and no time in it.
    pub fn listed(manifest: Manifest, findings: Vec<Finding>, order: Vec<String>) -> Self {
        Self {
            manifest: Some(manifest),
            order,
            ..Self::refused(findings)
        }
    }
}

/// Inspects a document in any spelling. A version out of range is a finding, and the rest is
/// inspected as well.
pub fn inspect(body: &[u8], accept: &AcceptedVersions) -> Inspected {
    let text = head::object_text(body).unwrap_or_default();
    let document = serde_json::from_str::<Value>(text).unwrap_or_default();
    let mut findings = Vec::new();
    let decoded = match super::decode(body, accept) {
        Err(error @ ListError::Incompatible { .. }) => {
            let hint =
                "write the version of the protocol whose fields the document has, such as `1.0`";
            findings.push(
                Finding::new(FindingCode::VersionRefused, error.to_string())
                    .at("/protocol_version")
                    .hint(hint),
            );
            super::decode(body, &AcceptedVersions::parse("*").unwrap_or_default())
        }
        decoded => decoded,
    };
    let manifest = match decoded {
        Ok(decoded) => {
            let broken = left_out(&decoded.findings);
            findings.extend(decoded.findings);
            let of_content = content_findings(&document, &decoded.manifest, &broken);
            findings.extend(of_content);
            findings.extend(spelling_findings(&document, &broken));
            findings.extend(super::unknown_keys::findings(&document, &broken));
            Some(decoded.manifest)
        }
        Err(error) => {
            findings.push(refused(&error));
            None
        }
    };
    let names = AuthorNames::in_document(&document);
    for finding in &mut findings {
        names.write_in(finding);
        if let Some(pointer) = &finding.pointer {
            let sent = sent_pointer(&document, pointer);
            put(finding, sent);
        }
    }
    // A stable sort keeps the order of the rules within a tool.
    findings.sort_by_key(|finding| {
        finding
            .pointer
            .as_deref()
            .map_or(Some(usize::MAX), tool_index)
    });
    let order = tools(&document)
        .iter()
        .filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned()))
        .collect();
    let stamp = ["generated_at", "generatedAt"]
        .iter()
        .find_map(|name| document.get(name))
        .map(Value::to_string);
    Inspected {
        manifest,
        findings,
        order,
        stamp,
        names,
    }
}

/// Runs the rules on the manifest. Pointers get the tools' indices as sent, because the manifest is
/// sorted and the document may not be.
pub(in crate::protocols) fn content_findings(
    document: &Value,
    manifest: &Manifest,
    broken: &HashSet<usize>,
) -> Vec<Finding> {
    renumbered(document, manifest, broken, lint::check_manifest(manifest))
}

/// The findings of rules on the manifest, with the tools' indices as sent.
pub(in crate::protocols) fn renumbered(
    document: &Value,
    manifest: &Manifest,
    broken: &HashSet<usize>,
    mut findings: Vec<Finding>,
) -> Vec<Finding> {
    let mut sent = HashMap::new();
    for (index, tool) in tools(document)
        .iter()
        .enumerate()
        .filter(|(index, _)| !broken.contains(index))
    {
        if let Some(name) = tool.get("name").and_then(Value::as_str) {
            sent.entry(name).or_insert(index);
        }
    }
    for finding in &mut findings {
        let Some(pointer) = finding.pointer.as_deref() else {
            continue;
        };
        let name = tool_index(pointer)
            .and_then(|index| manifest.tools.get(index))
            .map(|tool| tool.name.as_ref());
        if let Some(index) = name.and_then(|name| sent.get(name)) {
            finding.pointer = Some(with_index(pointer, *index));
        }
    }
    findings
}

/// Findings that need the document as sent: its spelling, and tools without metadata, which the
/// model fills in.
fn spelling_findings(document: &Value, broken: &HashSet<usize>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let spelling = if let Some(name) = ["protocolVersion", "generatedAt"]
        .iter()
        .find(|name| document.get(**name).is_some())
    {
        Some(("protojson", *name))
    } else {
        let stamped = document.get("generated_at").is_some_and(Value::is_object);
        stamped.then_some(("Go structs", "generated_at"))
    };
    if let Some((spelling, member)) = spelling {
        let message = format!(
            "the document uses the spelling of {spelling}; the specification uses snake_case"
        );
        let mut pointer = String::new();
        push_step(&mut pointer, member);
        findings.push(
            Finding::new(FindingCode::Spelling, message)
                .at(pointer)
                .hint("write `snake_case` names, plain values and RFC 3339 times, which every consumer can read"),
        );
    }
    for (index, tool) in tools(document)
        .iter()
        .enumerate()
        .filter(|(index, _)| !broken.contains(index))
    {
        if tool.get("metadata").is_none_or(Value::is_null)
            && let Some(name) = tool.get("name").and_then(Value::as_str)
        {
            findings.push(
                Finding::new(
                    FindingCode::MetadataMissing,
                    "no metadata: the tool is disabled by default",
                )
                .of_tool(name)
                .at(format!("/tools/{index}/metadata"))
                .hint("write at least `enabled_by_default` and `requires_approval`"),
            );
        }
    }
    findings
}

pub(in crate::protocols) fn refused(error: &ListError) -> Finding {
    if let ListError::VersionUnreadable(message) = error {
        return Finding::new(FindingCode::VersionUnreadable, message.clone())
            .at("/protocol_version")
            .hint("write it as a text of two or three numbers, such as `\"1.0\"`");
    }
    let hint = match error {
        ListError::NotThisProtocol(_) => {
            "check that this is the manifest: an object with `protocol_version`, `scenario` and `tools`"
        }
        _ => "fix this first; the rest of the manifest was not checked",
    };
    Finding::new(FindingCode::ManifestRefused, error.to_string()).hint(hint)
}
