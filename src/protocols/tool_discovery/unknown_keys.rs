//! Members with names near to those of the protocol, and members of `metadata` that stand beside
//! it: mistakes that cost what the member says.
//!
//! Other unknown members are no mistake: the protocol may be extended, and they are passed on.

use std::collections::HashSet;

use serde_json::Value;
use strsim::osa_distance;

use crate::model::finding::{push_step, quoted_excerpt};
use crate::model::{CappedFindings, Finding, FindingCode};
use crate::protocols::sent_document::tools;

const DOCUMENT: &[&str] = &[
    "protocol_version",
    "scenario",
    "tools",
    "categories",
    "generated_at",
];
const SCENARIO: &[&str] = &["name", "version", "description", "base_url"];
const CATEGORY: &[&str] = &["id", "name", "description", "icon", "display_order"];
const TOOL: &[&str] = &["name", "description", "category", "parameters", "metadata"];
const METADATA: &[&str] = &[
    "async_behavior",
    "cost_estimate",
    "enabled_by_default",
    "examples",
    "idempotent",
    "internal_only",
    "long_running",
    "modifies_state",
    "rate_limit_per_minute",
    "required_permission",
    "requires_approval",
    "sensitive_output",
    "tags",
    "timeout_seconds",
];

/// A finding for each such member, with a pointer into the document as it was sent. The tools in
/// `broken` were left out already.
pub(super) fn findings(document: &Value, broken: &HashSet<usize>) -> Vec<Finding> {
    let mut found = CappedFindings::default();
    near_misses(document, "", DOCUMENT, None, &mut found);
    near_misses(
        document.get("scenario").unwrap_or(&Value::Null),
        "/scenario",
        SCENARIO,
        None,
        &mut found,
    );
    let categories = document
        .get("categories")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for (index, category) in categories.enumerate() {
        near_misses(
            category,
            &format!("/categories/{index}"),
            CATEGORY,
            None,
            &mut found,
        );
    }
    for (index, tool) in tools(document)
        .iter()
        .enumerate()
        .filter(|(index, _)| !broken.contains(index))
    {
        let name = tool.get("name").and_then(Value::as_str);
        near_misses(tool, &format!("/tools/{index}"), TOOL, name, &mut found);
        misplaced(tool, &format!("/tools/{index}"), name, &mut found);
        let metadata = tool.get("metadata").unwrap_or(&Value::Null);
        near_misses(
            metadata,
            &format!("/tools/{index}/metadata"),
            METADATA,
            name,
            &mut found,
        );
    }
    found.finish()
}

/// Adds a finding for each member of a value whose name is near to one of the `known`; `place` is
/// the pointer of the value.
pub(in crate::protocols) fn near_misses(
    value: &Value,
    place: &str,
    known: &[&str],
    tool: Option<&str>,
    found: &mut CappedFindings,
) {
    for key in keys(value) {
        if let Some(near) = nearest(key, known) {
            let message = format!("the protocol has no member {}", quoted_excerpt(key));
            let hint = format!("did you mean `{near}`?");
            found.push(unknown(message, hint, place, key, tool));
        }
    }
}

/// Adds a finding for each member of a tool that the protocol has within `metadata` only: beside
/// it, `requires_approval` would not have a person decide about the tool's calls. A tool that has
/// it there too, such as one in the list of a callsheet daemon, has none misplaced.
fn misplaced(tool: &Value, place: &str, name: Option<&str>, found: &mut CappedFindings) {
    let metadata = tool.get("metadata").unwrap_or(&Value::Null);
    let is_there = |key: &str| keys(metadata).any(|known| plain(known) == plain(key));
    let is_misplaced = |key: &&str| is_known(key, METADATA) && !is_there(key);
    for key in keys(tool).filter(is_misplaced) {
        let message = format!("`{key}` has no effect here: the protocol has it within `metadata`");
        let hint = format!("move `{key}` into the `metadata` of the tool");
        found.push(unknown(message, hint, place, key, name));
    }
}

fn keys(value: &Value) -> impl Iterator<Item = &str> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(key, _)| key.as_str())
}

/// The finding about a member of the value at `place`, which may belong to a tool.
fn unknown(message: String, hint: String, place: &str, key: &str, tool: Option<&str>) -> Finding {
    let mut pointer = place.to_owned();
    push_step(&mut pointer, key);
    let finding = Finding::new(FindingCode::UnknownKey, message)
        .at(pointer)
        .hint(hint);
    match tool {
        Some(tool) => finding.of_tool(tool),
        None => finding,
    }
}

/// A name without what may differ between spellings: hyphens and letter case.
fn plain(text: &str) -> String {
    text.replace(['_', '-'], "").to_lowercase()
}

/// Whether a name is known, in either spelling.
fn is_known(key: &str, known: &[&str]) -> bool {
    known
        .iter()
        .any(|known| key == *known || key == camel(known))
}

/// The known name that an unknown one was meant to be, in either spelling; `None` for a known one,
/// and for one that is too far from all.
fn nearest<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    const KEY_BYTES_MAX: usize = 40;
    if key.len() > KEY_BYTES_MAX || is_known(key, known) {
        return None;
    }
    let wanted = plain(key);
    let limit = (wanted.chars().count() / 4).clamp(1, 3);
    let distances = known
        .iter()
        .map(|known| (osa_distance(&wanted, &plain(known)), *known));
    let (distance, near) = distances.min_by_key(|(distance, _)| *distance)?;
    // A short word with one other letter is another word.
    (distance == 0 || distance <= limit && wanted.len() > 4).then_some(near)
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut camel, part| {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
        camel
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_in_member_names_are_distinguished_from_unknown_members() {
        for (key, near) in [
            ("paramters", Some("parameters")),
            ("Parameters", Some("parameters")),
            ("desciption", Some("description")),
            ("parameters", None),
            ("inputSchema", None),
            ("title", None),
            ("nam", None),
        ] {
            assert_eq!(nearest(key, TOOL), near, "{key}");
        }
        for (key, near) in [
            ("enabled_by_defualt", Some("enabled_by_default")),
            ("enabledByDefault", None),
            ("enabled-by-default", Some("enabled_by_default")),
            ("require_approval", Some("requires_approval")),
            ("tag", None),
            ("owner", None),
        ] {
            assert_eq!(nearest(key, METADATA), near, "{key}");
        }
    }
}
