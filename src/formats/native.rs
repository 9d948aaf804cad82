//! The native list: itself a Tool Discovery Protocol manifest, so that one daemon can be a scenario
//! of another.
//!
//! Raw texts (schemas, metadata, unknown members) are embedded as they are; it adds the owner of a
//! tool and its effective settings, and those keys are always callsheet's own. It changes the
//! content of a scenario in two cases only, since another daemon reads only the metadata: approval
//! that a preference requires stands there too, and `async_behavior` names the tools that follow
//! and cancel an operation by the names that they have in this list.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::limits::{self, FormatLimits};
use super::{Encoded, Format, ListFrame, ListHead, lossy};
use crate::json::soundness::is_sound;
use crate::json::write::{ObjectWriter, quoted};
use crate::model::{
    ACTIVITY, Category, CompanionName, Execution, Extra, Finding, PROVIDER_VERSION, ViewTool,
    client_member,
};

/// `format=native`.
#[derive(Debug)]
pub struct NativeFormat;

/// The keys of a tool that belong to callsheet or to the protocol; a scenario's unknown members
/// never take their place.
const TOOL_KEYS: &[&str] = &[
    "name",
    "description",
    "category",
    "parameters",
    "metadata",
    "scenario",
    "original_name",
    "enabled",
    "enabled_source",
    "requires_approval",
    "approval_source",
    "definition_version",
    PROVIDER_VERSION,
];

/// The keys of a category.
const CATEGORY_KEYS: &[&str] = &["id", "name", "description", "icon", "display_order"];

impl Format for NativeFormat {
    fn id(&self) -> &'static str {
        "native"
    }

    fn limits(&self) -> &FormatLimits {
        &limits::NATIVE
    }

    fn for_llm(&self) -> bool {
        false
    }

    fn encode(&self, tool: &ViewTool) -> Encoded {
        let offered = &tool.tool;
        let effective = &tool.effective;
        for (key, raw) in [
            ("parameters", &offered.parameters),
            ("metadata", &offered.metadata),
        ] {
            if !is_sound(raw.get()) {
                return Encoded {
                    json: None,
                    findings: vec![unreadable(tool, key)],
                };
            }
        }
        let (members, findings) = passed_on(tool);
        let size = offered.parameters.get().len()
            + offered.metadata.get().len()
            + offered.description.len()
            + 400;
        let mut object = ObjectWriter::after(Vec::with_capacity(size));
        object
            .text("name", tool.name.as_str())
            .text("description", &offered.description)
            .optional("category", offered.category.as_deref())
            .raw("parameters", offered.parameters.get())
            .raw("metadata", &metadata(tool));
        for (key, json) in members {
            object.raw(key, &json);
        }
        object
            .text("scenario", tool.id.scenario.as_str())
            .text("original_name", &tool.id.tool)
            .flag("enabled", effective.enabled)
            .text("enabled_source", &effective.enabled_source.to_string())
            .flag("requires_approval", effective.requires_approval)
            .text("approval_source", &effective.approval_source.to_string())
            .text("definition_version", &offered.version().short())
            .optional(PROVIDER_VERSION, offered.provider_version().as_deref());
        if offered.own_activity().is_some()
            || !matches!(tool.execution, Execution::Own | Execution::ActivityOf(_))
        {
            object.text(ACTIVITY, tool.activity());
        }
        Encoded {
            json: Some(object.end()),
            findings,
        }
    }

    fn frame(&self, head: &ListHead<'_>) -> ListFrame {
        let mut scenario = ObjectWriter::after(Vec::new());
        scenario
            .text("name", env!("CARGO_PKG_NAME"))
            .text("version", env!("CARGO_PKG_VERSION"))
            .text("description", env!("CARGO_PKG_DESCRIPTION"));
        let mut open = br#"{"protocol_version":"1.0","scenario":"#.to_vec();
        open.extend(scenario.end());
        if let Some(id) = head.own_id {
            // One daemon may list another that lists it: a reader leaves out what came through
            // itself, by this and by the same member of a tool, which is passed on like everything
            // that the model does not know.
            open.extend_from_slice(format!(r#","via":[{}]"#, quoted(id)).as_bytes());
        }
        open.extend_from_slice(br#","tools":["#);

        let mut close = br#"],"categories":["#.to_vec();
        for (index, category) in head.categories.iter().enumerate() {
            if index > 0 {
                close.push(b',');
            }
            close = grouping(close, category);
        }
        close.extend_from_slice(br#"],"generated_at":"#);
        // RFC 3339 in UTC, with as many digits of the second as the time has.
        close.extend(quoted(&head.generated_at.to_string()).into_bytes());
        close.push(b'}');
        ListFrame { open, close }
    }
}

/// One tool as this list writes it; `None` if it has no form there.
pub(crate) fn written(tool: &ViewTool) -> Option<Value> {
    let json = NativeFormat.encode(tool).json?;
    serde_json::from_slice(&json).ok()
}

/// The metadata, with the approval that preferences require and the published names of companions.
fn metadata(tool: &ViewTool) -> Cow<'_, str> {
    let raw = tool.tool.metadata.get();
    let needs_approval = tool.effective.requires_approval && !tool.tool.facts.requires_approval;
    let is_renamed = tool
        .companions
        .iter()
        .any(|companion| *companion.original != *companion.published.as_str());
    if !needs_approval && !is_renamed {
        return raw.into();
    }
    // It was found sound before, so it can be read.
    let mut metadata: Value = serde_json::from_str(raw).unwrap_or_default();
    if let Some(members) = metadata.as_object_mut().filter(|_| needs_approval) {
        members.insert("requires_approval".to_owned(), true.into());
    }
    for pointer in CompanionName::POINTERS {
        let Some(name) = metadata.pointer_mut(pointer) else {
            continue;
        };
        if let Some(known) = tool
            .companions
            .iter()
            .find(|known| name.as_str() == Some(&*known.original))
        {
            *name = known.published.as_str().into();
        }
    }
    metadata.to_string().into()
}

/// The unknown members that can be passed on, each key once, and a finding for those that cannot.
fn passed_on(tool: &ViewTool) -> (Vec<ClientMember<'_>>, Vec<Finding>) {
    let (mut members, taken) = free_members(&tool.tool.extra, TOOL_KEYS);
    // Written by callsheet from what it was decided.
    members.retain(|(key, _)| *key != ACTIVITY);
    let (members, broken): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|(_, json)| is_sound(json));
    let mut findings: Vec<_> = broken
        .into_iter()
        .map(|(key, _)| unreadable(tool, key))
        .collect();
    if !taken.is_empty() {
        let taken: Vec<_> = taken.iter().map(|key| format!("`{key}`")).collect();
        let message = format!(
            "left out the tool's own {}: callsheet writes these members itself",
            taken.join(", ")
        );
        findings.push(lossy(tool, message));
    }
    (members, findings)
}

/// The key of an unknown member, and its text for clients.
type ClientMember<'a> = (&'a str, Cow<'a, str>);

/// The unknown members apart from those whose key is one of `ours`, which come second; the first of
/// equal keys stays.
fn free_members<'a>(
    extra: &'a Extra,
    own_keys: &[&str],
) -> (Vec<ClientMember<'a>>, BTreeSet<&'a str>) {
    let mut seen = BTreeSet::new();
    let mut taken = BTreeSet::new();
    let mut members = Vec::new();
    for (key, json) in extra {
        if own_keys.contains(&key.as_ref()) {
            taken.insert(key.as_ref());
        } else if seen.insert(key.as_ref()) {
            members.push((key.as_ref(), client_member(key, json.get())));
        }
    }
    (members, taken)
}

/// One category behind what is already in `out`.
fn grouping(out: Vec<u8>, category: &Category) -> Vec<u8> {
    let mut object = ObjectWriter::after(out);
    object
        .text("id", &category.id)
        .text("name", &category.name)
        .optional("description", category.description.as_deref())
        .optional("icon", category.icon.as_deref());
    if let Some(order) = category.display_order {
        object.raw("display_order", &order.to_string());
    }
    for (key, json) in free_members(&category.extra, CATEGORY_KEYS).0 {
        if is_sound(&json) {
            object.raw(key, &json);
        }
    }
    object.end()
}

fn unreadable(tool: &ViewTool, key: &str) -> Finding {
    lossy(tool, format!("`{key}` cannot be embedded in a list: common JSON readers refuse it"))
        .at(format!("/{}", super::schema::escaped(key)))
        .hint("nest at most 127 levels, escape characters in whole pairs, and keep numbers within a double")
}
