//! One tool, from whatever spelling, or what is wrong with it.
//!
//! A tool in the seed's spelling is looked over once and its texts are shared as they are; only
//! what needs it goes through a tree.

use std::sync::Arc;

use super::budget::{TOOL, shared_text_bytes};
use super::envelope::Members;
use super::flaw::{Flaw, quoted_excerpt};
use super::interner::Interner;
use super::metadata;
use super::spelling::{is_foreign, schema};
use crate::json::scan::{each_string, kind};
use crate::json::soundness::{ScanResult, scan};
use crate::json::tree::Node;
use crate::model::{JsonText, TOOL_NAME_MAX, Tool, VersionCell};
use crate::protocols::document::raw::Raw;
use crate::protocols::meta_fields;

/// The name of a tool, if it has one that can be read.
pub(in crate::protocols) fn name(members: &mut Members<'_>) -> Result<Arc<str>, Flaw> {
    let flaw = |what: String| {
        Flaw::new("/name", what).hint(format!(
            "give the tool a `name` of 1 to {TOOL_NAME_MAX} bytes"
        ))
    };
    let name = members
        .take_text("name")?
        .ok_or_else(|| flaw("is missing".into()))?;
    match name.len() {
        0 => Err(flaw("is empty".into())),
        1..=TOOL_NAME_MAX => Ok(name.as_ref().into()),
        long => Err(flaw(format!(
            "{} is {long} bytes long",
            quoted_excerpt(&name)
        ))),
    }
}

/// Reads the tool of this name. `protojson` is true if the document has that spelling; a tool may
/// show it by itself as well.
pub(super) fn decode(
    name: Arc<str>,
    mut members: Members<'_>,
    protojson: bool,
    shared: &mut Interner,
) -> Result<Tool, Flaw> {
    let raw_metadata = members.take_set("metadata");
    let mut protojson = protojson;
    let (metadata, facts) = metadata::decode(raw_metadata, &mut protojson, shared)
        .map_err(|flaw| flaw.within("metadata"))?;
    members.rename(&[], protojson);
    shared.budget.take(TOOL + shared_text_bytes(&name))?;
    let category = members.take_text("category")?.filter(|id| !id.is_empty());
    let mut tool = Tool {
        name,
        description: shared.own(&members.take_text("description")?.unwrap_or_default())?,
        category: category.map(|id| shared.text(&id)).transpose()?,
        parameters: parameters(members.take_set("parameters"), protojson, shared)
            .map_err(|flaw| flaw.within("parameters"))?,
        metadata,
        facts,
        extra: members.into_extra(&mut shared.budget)?,
        definition: None,
        version: VersionCell::default(),
    };
    meta_fields::lift(&mut tool, &mut shared.budget).map_err(|flaw| flaw.within("parameters"))?;
    Ok(tool)
}

fn parameters(
    raw: Option<Raw<'_>>,
    protojson: bool,
    shared: &mut Interner,
) -> Result<JsonText, Flaw> {
    let Some(raw) = raw else {
        return Ok(shared.no_parameters.clone());
    };
    let json = raw.get();
    if !json.starts_with('{') {
        return Err(Flaw::kind("", kind(json), "an object"));
    }
    // In protojson something is wrapped or left out in nearly every schema, so that a look would be
    // in vain.
    if !protojson {
        let mut types = 0;
        let mut properties = 0;
        let mut sound = true;
        let (found, text) = scan(json, is_foreign, |name, value| match name {
            "type" => {
                types += 1;
                sound &= value.starts_with("\"object\"");
            }
            "properties" => {
                properties += 1;
                sound &= value.starts_with('{');
            }
            "required" => sound &= each_string(value, |_| {}),
            _ => {}
        });
        if found == ScanResult::TooDeep {
            return Err(Flaw::too_deep());
        }
        if found == ScanResult::Plain && sound && types == 1 && properties == 1 {
            return shared.json(&text);
        }
    }
    let written = root(schema(shared.budget.tree(json)?, protojson, true))?.text();
    shared.json(&written)
}

/// Judges the outermost level of a schema and fills in what must be there.
fn root(node: Node<'_>) -> Result<Node<'_>, Flaw> {
    let Node::Object(mut members) = node else {
        return Err(Flaw::kind("", node.kind(), "an object"));
    };
    let place = |members: &[(_, Node<'_>)], wanted: &str| {
        members
            .iter()
            .position(|(name, _): &(std::borrow::Cow<'_, str>, _)| name == wanted)
    };
    let type_at = if let Some(at) = place(&members, "type") {
        if members[at].1.as_string() != Some("object") {
            let found = quoted_excerpt(&members[at].1.text());
            return Err(Flaw::new("/type", format!("is {found}, not `\"object\"`"))
                .hint("tools take one object"));
        }
        at
    } else {
        members.insert(0, ("type".into(), Node::scalar("\"object\"")));
        0
    };
    match place(&members, "properties").map(|at| &members[at].1) {
        None => members.insert(type_at + 1, ("properties".into(), Node::Object(Vec::new()))),
        Some(Node::Object(_)) => {}
        Some(other) => return Err(Flaw::kind("/properties", other.kind(), "an object")),
    }
    match place(&members, "required").map(|at| &members[at].1) {
        Some(Node::List(items)) if items.iter().all(|item| item.as_string().is_some()) => {}
        None => {}
        Some(_) => {
            return Err(Flaw::new("/required", "is not a list of texts")
                .hint("list the names of required parameters"));
        }
    }
    Ok(Node::Object(members))
}
