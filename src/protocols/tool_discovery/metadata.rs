//! The metadata of a tool: its text in the seed's spelling, and the facts that decisions need.
//!
//! The two flags that the protocol requires are always written out: an absent flag is `false`.
//! Scalars of a wrong type with a clear meaning (`"30"`, `"true"`, `30.0`) are converted. Any other
//! wrong type is a flaw, above all in the flags about approval.

use std::sync::Arc;

use super::envelope::UNKNOWN_MEMBERS_MAX;
use super::flaw::Flaw;
use super::interner::Interner;
use super::spelling::{
    METADATA, example_input, example_output, is_camel_metadata, is_foreign, is_zero, message,
    number, rename, seed_name,
};
use crate::json::scan::{each_string, kind, string};
use crate::json::soundness::{ScanResult, scan};
use crate::json::tree::Node;
use crate::model::{Facts, JsonText, Permission};
use crate::protocols::document::raw::Raw;

const FLAGS: [&str; 7] = [
    "enabled_by_default",
    "requires_approval",
    "long_running",
    "idempotent",
    "modifies_state",
    "sensitive_output",
    "internal_only",
];
const COUNTS: [&str; 2] = ["timeout_seconds", "rate_limit_per_minute"];

/// Decodes the metadata of one tool. `protojson` says whether the document is in protojson; it is
/// set to true when a name in the metadata shows it.
pub(super) fn decode(
    raw: Option<Raw<'_>>,
    protojson: &mut bool,
    shared: &mut Interner,
) -> Result<(JsonText, Arc<Facts>), Flaw> {
    let Some(raw) = raw else {
        return Ok((shared.no_metadata.clone(), shared.facts(Facts::default())?));
    };
    let json = raw.get();
    if !json.starts_with('{') {
        return Err(Flaw::kind("", kind(json), "an object"));
    }
    if !*protojson {
        let mut plain = Plain::default();
        let (found, text) = scan(json, is_foreign, |name, value| {
            *protojson |= is_camel_metadata(name);
            plain.member(name, value);
        });
        if found == ScanResult::TooDeep {
            return Err(Flaw::too_deep());
        }
        if found == ScanResult::Plain
            && !*protojson
            && let Some(facts) = plain.facts(shared)?
        {
            return Ok((shared.json(&text)?, facts));
        }
    }
    let written = in_seed_spelling(shared.budget.tree(json)?, *protojson)?.text();
    let mut plain = Plain::default();
    scan(&written, is_foreign, |name, value| {
        plain.member(name, value);
    });
    let facts = plain
        .facts(shared)?
        .ok_or_else(|| Flaw::new("", "cannot be read"))?;
    Ok((shared.json(&written)?, facts))
}

/// Metadata in the seed's spelling where every type is right, read member by member. All other
/// metadata is read through the tree, which converts it or reports the flaw.
#[derive(Default)]
struct Plain<'a> {
    /// In the order of [`FLAGS`].
    flags: [Option<bool>; FLAGS.len()],
    /// In the order of [`COUNTS`].
    counts: [Option<i64>; COUNTS.len()],
    /// The tags as JSON texts, as written.
    tags: Option<Vec<&'a str>>,
    /// Not part of the protocol. An unknown level becomes [`Permission::Unknown`].
    permission: Permission,
    /// A member has a wrong type, or occurs twice.
    unsound: bool,
}

impl<'a> Plain<'a> {
    /// Reads one member. `value` is the text from the start of its value.
    fn member(&mut self, name: &str, value: &'a str) {
        let place = |names: &[&str]| names.iter().position(|known| *known == name);
        let sound = if let Some(at) = place(&FLAGS) {
            let flag = match value.as_bytes() {
                [b't', ..] => Some(true),
                [b'f', ..] => Some(false),
                _ => None,
            };
            flag.is_some() && std::mem::replace(&mut self.flags[at], flag).is_none()
        } else if let Some(at) = place(&COUNTS) {
            let end = value
                .find([',', '}', ' ', '\t', '\n', '\r'])
                .unwrap_or(value.len());
            let count = value[..end].parse().ok();
            count.is_some() && std::mem::replace(&mut self.counts[at], count).is_none()
        } else if name == "tags" {
            let mut tags = Vec::new();
            let mut count = 0;
            let all = each_string(value, |tag| {
                count += 1;
                if count <= UNKNOWN_MEMBERS_MAX {
                    tags.push(tag);
                }
            });
            all && count <= UNKNOWN_MEMBERS_MAX && self.tags.replace(tags).is_none()
        } else if name == "required_permission" {
            self.permission = permission(value);
            true
        } else {
            true
        };
        self.unsound |= !sound;
    }

    /// `None` when a member is unsound, or when one of the two required flags is missing.
    fn facts(self, shared: &mut Interner) -> Result<Option<Arc<Facts>>, Flaw> {
        let (Some(enabled_by_default), Some(requires_approval)) = (self.flags[0], self.flags[1])
        else {
            return Ok(None);
        };
        if self.unsound {
            return Ok(None);
        }
        let [_, _, long_running, idempotent, _, _, internal_only] = self.flags;
        // Zero and negative numbers set no limit: on the protobuf wire zero means "not set".
        let [timeout, rate] = self.counts.map(|count| {
            count
                .and_then(|count| u64::try_from(count).ok())
                .filter(|count| *count > 0)
        });
        let written = self.tags.unwrap_or_default();
        let mut tags = Vec::with_capacity(written.len());
        for tag in written {
            let Some(tag) = string(tag) else {
                return Ok(None);
            };
            tags.push(shared.text(&tag)?);
        }
        let facts = Facts {
            enabled_by_default,
            requires_approval,
            internal_only: internal_only.unwrap_or_default(),
            required_permission: self.permission,
            tags,
            timeout_seconds: timeout,
            rate_limit_per_minute: rate,
            long_running: long_running.unwrap_or_default(),
            idempotent: idempotent.unwrap_or_default(),
            unannotated: false,
        };
        shared.facts(facts).map(Some)
    }
}

/// The level that a value names. Names of levels need no escapes, so a name with an escape is an
/// unknown level.
fn permission(value: &str) -> Permission {
    if value.starts_with("null") || value.starts_with("\"\"") {
        return Permission::Guest;
    }
    let name = value
        .strip_prefix('"')
        .and_then(|rest| Some(rest.split_once('"')?.0));
    name.and_then(|name| name.parse().ok())
        .unwrap_or(Permission::Unknown)
}

fn in_seed_spelling(node: Node<'_>, protojson: bool) -> Result<Node<'_>, Flaw> {
    let Node::Object(mut members) = node else {
        return Err(Flaw::kind("", node.kind(), "an object"));
    };
    let seed = |name: &str| seed_name(name, METADATA, protojson);
    members
        .retain(|(name, value)| !is_unset(seed(name).as_deref().unwrap_or(name), value, protojson));
    rename(&mut members, seed);
    for (name, value) in &mut members {
        let taken = std::mem::replace(value, Node::List(Vec::new()));
        *value = match name.as_ref() {
            "async_behavior" if protojson => message(taken),
            "examples" => examples(taken, protojson),
            flag if FLAGS.contains(&flag) => as_flag(taken).map_err(|flaw| flaw.within(flag))?,
            count if COUNTS.contains(&count) => {
                as_count(&taken).map_err(|flaw| flaw.within(count))?
            }
            "tags" => as_tags(taken).map_err(|flaw| flaw.within("tags"))?,
            _ => taken,
        };
    }
    for (at, flag) in ["enabled_by_default", "requires_approval"]
        .into_iter()
        .enumerate()
    {
        if !members.iter().any(|(name, _)| name == flag) {
            members.insert(at, (flag.into(), Node::scalar("false")));
        }
    }
    Ok(Node::Object(members))
}

fn is_unset(name: &str, value: &Node<'_>, protojson: bool) -> bool {
    let known = matches!(name, "idempotent" | "tags" | "examples")
        || METADATA.iter().any(|(_, seed)| *seed == name);
    known
        && if protojson {
            is_zero(value)
        } else {
            value.as_scalar() == Some("null")
        }
}

fn examples(node: Node<'_>, protojson: bool) -> Node<'_> {
    let Node::List(items) = node else { return node };
    let item = |item| {
        let Node::Object(mut members) = item else {
            return item;
        };
        let seed =
            |name: &str| seed_name(name, &[("expectedOutput", "expected_output")], protojson);
        if protojson {
            let known = |name: &str| matches!(name, "description" | "input" | "expected_output");
            members.retain(|(name, value)| {
                !(known(seed(name).as_deref().unwrap_or(name)) && is_zero(value))
            });
        }
        rename(&mut members, seed);
        let members = members.into_iter().map(|(name, value)| {
            let value = match name.as_ref() {
                "input" => example_input(value, protojson),
                "expected_output" => example_output(value, protojson),
                _ => value,
            };
            (name, value)
        });
        Node::Object(members.collect())
    };
    Node::List(items.into_iter().map(item).collect())
}

fn as_flag(node: Node<'_>) -> Result<Node<'_>, Flaw> {
    match (node.as_scalar(), node.as_string()) {
        (Some("true" | "false"), _) => Ok(node),
        (_, Some("true")) => Ok(Node::scalar("true")),
        (_, Some("false")) => Ok(Node::scalar("false")),
        _ => Err(Flaw::kind("", node.kind(), "a boolean")),
    }
}

fn as_count<'a>(node: &Node<'a>) -> Result<Node<'a>, Flaw> {
    let count = number(node).filter(|count| count.kind() == "a number");
    let text = count.as_ref().and_then(|count| count.as_scalar());
    let whole = text.and_then(|text| {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if fraction.bytes().all(|digit| digit == b'0') {
            whole.parse::<i64>().ok()
        } else {
            None
        }
    });
    whole
        .map(|whole| Node::scalar(whole.to_string()))
        .ok_or_else(|| {
            Flaw::new(
                "",
                format!(
                    "is {}, not a whole number",
                    super::flaw::quoted_excerpt(&node.text())
                ),
            )
            .hint("write a whole number")
        })
}

fn as_tags(node: Node<'_>) -> Result<Node<'_>, Flaw> {
    let Node::List(items) = &node else {
        return Err(Flaw::kind("", node.kind(), "a list of texts"));
    };
    if items.len() > UNKNOWN_MEMBERS_MAX {
        return Err(Flaw::new(
            "",
            format!("has {} tags, more than {UNKNOWN_MEMBERS_MAX}", items.len()),
        )
        .hint("give it fewer tags"));
    }
    match items
        .iter()
        .position(|item| item.as_scalar().and_then(string).is_none())
    {
        None => Ok(node),
        Some(at) => Err(Flaw::kind("", items[at].kind(), "a text").within(&at.to_string())),
    }
}
