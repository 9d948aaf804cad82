//! From bytes to a manifest.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::quality::RandomState;
use serde_json::value::RawValue;

use super::envelope::{Loose, Members, Raw};
use super::flaw::{Findings, Flaw, shown};
use super::shared::Shared;
use super::spelling::{CATEGORY, MANIFEST, SCENARIO, message};
use super::text::{self, Node, kind, string};
use super::{Decoded, digest, head, tool};
use crate::model::{
    Accept, Bounds, Category, Digest, Extra, Finding, FindingCode, JsonText, Manifest, ScenarioInfo, Tool,
};
use crate::protocols::ListError;

/// Decodes a manifest in any spelling; see the module's head for what is refused, left out or put right.
pub fn decode(body: &[u8], accept: &Accept) -> Result<Decoded, ListError> {
    decode_within(body, accept, Bounds::NONE)
}

/// The same of what a stranger wrote: tools that are too large or too many are left out with a finding, and another member that is too
/// large costs the document.
pub fn decode_within(body: &[u8], accept: &Accept, bounds: Bounds) -> Result<Decoded, ListError> {
    read(body, accept, bounds, false)
}

/// The same of what this daemon stored, which may have come by a protocol that has no version and no time stamp.
pub fn decode_stored(body: &[u8], accept: &Accept) -> Result<Decoded, ListError> {
    read(body, accept, Bounds::NONE, true)
}

fn read(body: &[u8], accept: &Accept, bounds: Bounds, stored: bool) -> Result<Decoded, ListError> {
    let text = head::object_text(body)?;
    let mut document = head::document(text)?;
    let protojson = MANIFEST.iter().any(|(camel, _)| document.members.has(camel));
    document.members.rename(MANIFEST, protojson);
    head::recognise(&document, text)?;
    if let Some((name, bytes)) = document.members.beyond(bounds.part) {
        return Err(head::refuse(&Flaw::too_large(bytes, bounds).within(name)));
    }
    let mut findings = Findings::default();
    let mut members = document.members;
    let versionless = stored && head::is_versionless(&mut members);
    let protocol_version = if versionless { "".into() } else { head::version(&mut members, accept, &mut findings)? };
    let scenario = scenario(&mut members, protojson).map_err(|flaw| head::refuse(&flaw.within("scenario")))?;
    let mut unstamped = Findings::default();
    let generated_at = head::generated_at(&mut members, if versionless { &mut unstamped } else { &mut findings });
    let categories = categories(&mut members, protojson, &mut findings).into();
    let items = match document.tools {
        None | Some(Loose::Null) => Vec::new(),
        Some(Loose::List(items)) => items,
        Some(other) => return Err(head::refuse(&Flaw::kind("/tools", other.kind(), "a list"))),
    };
    let (items, beyond) = first_by_name(items, bounds.tools, &mut findings);
    let (tools, malformed) = tools(items, (protojson, bounds), text.len(), &mut findings);
    let quarantined = malformed + beyond;
    let extra = manifest_extra(members, protojson).map_err(|flaw| head::refuse(&flaw))?;
    let mut manifest =
        Manifest { protocol_version, scenario, tools, categories, generated_at, extra, digest: Digest::default() };
    manifest.digest = digest::of(&manifest);
    Ok(Decoded { manifest, findings: findings.finish(), quarantined })
}

fn scenario(members: &mut Members<'_>, protojson: bool) -> Result<ScenarioInfo, Flaw> {
    let Some(raw) = members.take_set("scenario") else { return Ok(ScenarioInfo::default()) };
    let mut members = Members::read(raw).map_err(|found| Flaw::kind("", found, "an object"))?;
    members.rename_set(SCENARIO, protojson);
    // A version is an opaque text, so a number serves as well.
    let version = members.take_set("version").map_or(Some("".into()), |raw| match kind(raw.get()) {
        "a number" => Some(raw.get().into()),
        _ => string(raw.get()),
    });
    Ok(ScenarioInfo {
        name: text_of(&mut members, "name")?,
        version: version.ok_or_else(|| Flaw::new("/version", "is no text"))?.as_ref().into(),
        description: text_of(&mut members, "description")?,
        base_url: members.take_text("base_url")?.map(|url| url.as_ref().into()),
        extra: members.into_extra()?,
    })
}

fn text_of(members: &mut Members<'_>, name: &str) -> Result<Arc<str>, Flaw> {
    Ok(members.take_text(name)?.unwrap_or_default().as_ref().into())
}

/// The tools with the `most` first names, each with its place, and how many others there are. Not the first in the list: scenarios send
/// their tools in another order each time, and would seem to change with each answer.
pub(in crate::protocols) fn first_by_name<'a>(
    items: Vec<Loose<'a>>,
    most: usize,
    findings: &mut Findings,
) -> (Vec<(usize, Loose<'a>)>, usize) {
    let (total, items) = (items.len(), items.into_iter().enumerate());
    if total <= most {
        return (items.collect(), 0);
    }
    // What has no name that can be read sorts first: it is told as malformed, up to its share.
    let mut named: Vec<_> = items.map(|(index, item)| (item.name(), index, item)).collect();
    named.sort_by(|(a, at, _), (b, other, _)| a.cmp(b).then(at.cmp(other)));
    named.truncate(most);
    let beyond = total - most;
    let message = format!(
        "{beyond} of its {total} tools are left out: only {most} are taken from one scenario, the first by name"
    );
    findings.push(
        Finding::new(FindingCode::ToolsBeyondLimit, message)
            .at("/tools")
            .hint("split the scenario, or raise `refresh.max_tools`"),
    );
    (named.into_iter().map(|(_, index, item)| (index, item)).collect(), beyond)
}

/// Reads the tools of a document of so many bytes, sorted by name. What is malformed or repeated is left out with a finding; gives how
/// many were malformed.
fn tools(
    items: Vec<(usize, Loose<'_>)>,
    (protojson, bounds): (bool, Bounds),
    bytes: usize,
    findings: &mut Findings,
) -> (Vec<Arc<Tool>>, usize) {
    let mut drafts = Vec::with_capacity(items.len());
    // Seeded anew for each document, so that nobody can write names that meet.
    let mut seen = HashSet::with_capacity_and_hasher(items.len(), RandomState::default());
    let mut shared = Shared::of(bytes);
    let mut quarantined = 0;
    for (index, item) in items {
        let mut quarantine = |flaw: Flaw, name: Option<&str>| {
            quarantined += 1;
            let thing = name
                .map_or_else(|| "a tool is left out".into(), |name| format!("the tool {} is left out", shown(name)));
            let flaw = flaw.within(&index.to_string()).within("tools");
            findings.flaw(FindingCode::ToolQuarantined, &thing, flaw, name);
        };
        let mut members = match item {
            Loose::Object(members) => members,
            other => {
                quarantine(Flaw::kind("", other.kind(), "an object"), None);
                continue;
            }
        };
        let name = match tool::name(&mut members) {
            Ok(name) => name,
            Err(flaw) => {
                quarantine(flaw, None);
                continue;
            }
        };
        let size = members.bytes();
        if size > bounds.part {
            quarantine(Flaw::too_large(size, bounds), Some(&name));
            continue;
        }
        let filled = shared.long.filled();
        match tool::read(name.clone(), members, protojson, &mut shared) {
            Ok(draft) if seen.insert(name.clone()) => {
                drafts.push(draft);
                continue;
            }
            Ok(_) => findings.push(second(name, index)),
            Err(flaw) => quarantine(flaw, Some(&name)),
        }
        shared.long.cut_to(filled);
    }
    drafts.sort_unstable_by(|a, b| a.name().cmp(b.name()));
    let block = shared.long.finish();
    (drafts.into_iter().map(|draft| Arc::new(draft.finish(&block))).collect(), quarantined)
}

/// A tool whose name an earlier one has.
pub(in crate::protocols) fn second(name: Arc<str>, index: usize) -> Finding {
    let message = format!("a second tool {} is left out; the first stays", shown(&name));
    Finding::new(FindingCode::DuplicateTool, message)
        .at(format!("/tools/{index}/name"))
        .of_tool(name)
        .hint("give each tool of a scenario its own name")
}

/// Reads the categories, sorted by id. What is malformed or repeated is left out with a finding.
fn categories(members: &mut Members<'_>, protojson: bool, findings: &mut Findings) -> Vec<Category> {
    let mut ignore = |thing: &str, flaw: Flaw| {
        findings.flaw(FindingCode::CategoryIgnored, thing, flaw.within("categories"), None);
    };
    let Some(raw) = members.take_set("categories") else { return Vec::new() };
    let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
        ignore("all categories are left out", Flaw::kind("", kind(raw.get()), "a list"));
        return Vec::new();
    };
    let (mut categories, mut seen) = (Vec::new(), HashSet::new());
    for (index, raw) in items.into_iter().enumerate() {
        let flaw = match category(Raw::of(raw), protojson) {
            Ok(category) if seen.insert(category.id.clone()) => {
                categories.push(category);
                continue;
            }
            Ok(category) => Flaw::new("/id", format!("{} was given before; the first stays", shown(&category.id))),
            Err(flaw) => flaw,
        };
        ignore("a category is left out", flaw.within(&index.to_string()));
    }
    categories.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    categories
}

fn category(raw: Raw<'_>, protojson: bool) -> Result<Category, Flaw> {
    let mut members = Members::read(raw).map_err(|found| Flaw::kind("", found, "an object"))?;
    members.rename_set(CATEGORY, protojson);
    let id = text_of(&mut members, "id")?;
    if id.is_empty() {
        return Err(Flaw::new("/id", "is missing or empty").hint("give the category an `id`"));
    }
    let order = members.take_set("display_order").map(|raw| {
        let text = raw.get().trim_matches('"');
        text.parse::<i64>().map_err(|_| Flaw::kind("/display_order", kind(raw.get()), "a whole number"))
    });
    let set = |text: &std::borrow::Cow<'_, str>| !(protojson && text.is_empty());
    Ok(Category {
        id,
        name: text_of(&mut members, "name")?,
        description: members.take_text("description")?.filter(set).map(|text| text.as_ref().into()),
        icon: members.take_text("icon")?.filter(set).map(|text| text.as_ref().into()),
        display_order: order.transpose()?,
        extra: members.into_extra()?,
    })
}

/// What is left of the manifest. Of it the protocol's later texts know `capabilities`, a message without names of a user's.
fn manifest_extra(mut members: Members<'_>, protojson: bool) -> Result<Extra, Flaw> {
    let capabilities = if protojson { members.take("capabilities") } else { None };
    let mut extra = members.into_extra()?.into_vec();
    if let Some(raw) = capabilities.filter(|raw| raw.get() != "null") {
        let checked = text::share_unknown(raw).map_err(|flaw| flaw.within("capabilities"))?;
        extra.push(("capabilities".into(), JsonText::known(&message(Node::read(checked.get())?).text())));
    }
    Ok(extra.into())
}
