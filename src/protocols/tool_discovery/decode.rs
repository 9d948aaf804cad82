//! From bytes to a manifest.

use std::sync::Arc;

use super::budget::{DecodeBudget, SHARED};
use super::envelope::share_unknown;
use super::envelope::{Members, UNKNOWN_MEMBERS_MAX};
use super::first::{FirstByName, NamedItem};
use super::flaw::{DocumentFindings, Flaw, quoted_excerpt};
use super::interner::Interner;
use super::spelling::{CATEGORY, MANIFEST, SCENARIO, message};
use super::{Decoded, head, tool};
use crate::json::scan::{kind, string};
use crate::model::{
    AcceptedVersions, Bounds, Category, Extra, Finding, FindingCode, JsonText, Manifest,
    ScenarioInfo, Tool,
};
use crate::protocols::ListError;
use crate::protocols::document::raw::Raw;

/// Decodes a manifest in any spelling; see the module's head for what is refused, left out or put
/// right.
pub fn decode(body: &[u8], accept: &AcceptedVersions) -> Result<Decoded, ListError> {
    decode_within(body, accept, Bounds::NONE)
}

/// The same of what a stranger wrote: tools that are too large or too many are left out with a
/// finding, and another member that is too large costs the document.
pub fn decode_within(
    body: &[u8],
    accept: &AcceptedVersions,
    bounds: Bounds,
) -> Result<Decoded, ListError> {
    let text = head::object_text(body)?;
    let mut members = head::members(text)?;
    let listed = members.take("tools");
    let protojson = MANIFEST.iter().any(|(camel, _)| members.has(camel));
    members.rename(MANIFEST, protojson);
    head::recognise(&members, listed, text)?;
    let refuse = |flaw: Flaw| head::refuse(&flaw);
    if let Some((name, bytes)) = members.beyond(bounds.part) {
        return Err(refuse(Flaw::too_large(bytes, bounds).within(name)));
    }
    let mut findings = DocumentFindings::default();
    let mut shared = Interner::for_document(text.len());
    let protocol_version = head::version(&mut members, accept, &mut findings)?;
    let scenario = scenario(&mut members, protojson, &mut shared.budget);
    let scenario = scenario.map_err(|flaw| refuse(flaw.within("scenario")))?;
    let generated_at = head::generated_at(&mut members, &mut findings);
    let categories = categories(&mut members, protojson, &mut shared.budget, &mut findings).into();
    // Before the tools, which may take all that is left: each of them costs itself alone.
    let extra = manifest_extra(members, protojson, &mut shared.budget).map_err(refuse)?;
    let listed = listed.filter(|listed| listed.get() != "null");
    let (items, beyond) = match listed {
        None => Default::default(),
        Some(listed) => {
            let affordable = shared.budget.tools();
            first_by_name(listed, bounds.tools, affordable, &mut findings)
                .map_err(|flaw| refuse(flaw.within("tools")))?
        }
    };
    let (tools, malformed) = tools(items, protojson, bounds, &mut shared, &mut findings);
    let quarantined = malformed + beyond;
    let listed = Manifest::new(scenario, tools);
    let manifest = Manifest {
        protocol_version,
        categories,
        generated_at,
        extra,
        ..listed
    }
    .digested();
    Ok(Decoded {
        manifest,
        findings: findings.finish(),
        quarantined,
    })
}

fn scenario(
    members: &mut Members<'_>,
    protojson: bool,
    budget: &mut DecodeBudget,
) -> Result<ScenarioInfo, Flaw> {
    let Some(raw) = members.take_set("scenario") else {
        return Ok(ScenarioInfo::default());
    };
    let mut members = Members::from_raw(raw)?;
    members.rename_set(SCENARIO, protojson);
    // A version is an opaque text, so a number serves as well.
    let version =
        members
            .take_set("version")
            .map_or(Some("".into()), |raw| match kind(raw.get()) {
                "a number" => Some(raw.get().into()),
                _ => string(raw.get()),
            });
    Ok(ScenarioInfo {
        name: text_of(&mut members, "name")?,
        version: version
            .ok_or_else(|| Flaw::new("/version", "is not a text"))?
            .as_ref()
            .into(),
        description: text_of(&mut members, "description")?,
        base_url: members
            .take_text("base_url")?
            .map(|url| url.as_ref().into()),
        extra: members.into_extra(budget)?,
    })
}

fn text_of(members: &mut Members<'_>, name: &str) -> Result<Arc<str>, Flaw> {
    Ok(members.take_text(name)?.unwrap_or_default().as_ref().into())
}

/// The tools of a list that are taken, and how many others there are. Of too many the first by name
/// are taken: at most as many as the operator allows (the first number), and as the document can
/// pay for (the second).
pub(in crate::protocols) fn first_by_name<'a>(
    list: Raw<'a>,
    allowed: usize,
    affordable: usize,
    findings: &mut DocumentFindings,
) -> Result<(Vec<NamedItem<'a>>, usize), Flaw> {
    let most = allowed.min(affordable);
    let mut nameless = 0;
    let FirstByName {
        items,
        beyond,
        total,
    } = FirstByName::select("name", list, most, |index, raw| {
        nameless += 1;
        // There may be millions, of which few are reported.
        findings.push_with(FindingCode::ToolQuarantined, || {
            let flaw = Members::from_raw(raw)
                .and_then(|mut members| tool::name(&mut members))
                .err();
            quarantined(
                index,
                flaw.unwrap_or_else(|| Flaw::new("/name", "cannot be read")),
                None,
            )
        });
    })?;
    if beyond > 0 {
        let (from, hint) = if allowed <= affordable {
            FROM_ONE_SCENARIO
        } else {
            (
                "a manifest of this size",
                "split the scenario; most of its tools have neither a description nor parameters",
            )
        };
        findings.push(beyond_limit(beyond, total, most, from, hint));
    }
    Ok((items, beyond + nameless))
}

/// What the operator limits, and what may be done about it.
pub(super) const FROM_ONE_SCENARIO: (&str, &str) = (
    "one scenario",
    "split the scenario, or raise `refresh.max_tools`",
);

/// That a manifest has too many tools: how many are left out, of how many, and how many are taken.
pub(super) fn beyond_limit(
    beyond: usize,
    total: usize,
    most: usize,
    from: &str,
    hint: &'static str,
) -> Finding {
    let message = format!(
        "{beyond} of its {total} tools are left out: only {most} are taken from {from}, the first by name"
    );
    Finding::new(FindingCode::ToolsBeyondLimit, message)
        .at("/tools")
        .hint(hint)
}

/// Adds the finding for a tool that is left out as malformed, with its position in the list and, if
/// readable, its name.
pub(in crate::protocols) fn quarantine(
    index: usize,
    flaw: Flaw,
    name: Option<&str>,
    findings: &mut DocumentFindings,
) {
    findings.push(quarantined(index, flaw, name));
}

fn quarantined(index: usize, flaw: Flaw, name: Option<&str>) -> Finding {
    let thing = name.map_or_else(
        || "a tool is left out".into(),
        |name| format!("the tool {} is left out", quoted_excerpt(name)),
    );
    flaw.within(&index.to_string()).within("tools").finding(
        FindingCode::ToolQuarantined,
        &thing,
        name,
    )
}

/// Reads tools that are in the order of their names, one after the other. What is malformed or
/// repeated is left out with a finding; gives how many were malformed.
fn tools(
    items: Vec<NamedItem<'_>>,
    protojson: bool,
    bounds: Bounds,
    shared: &mut Interner,
    findings: &mut DocumentFindings,
) -> (Vec<Arc<Tool>>, usize) {
    let mut tools: Vec<Arc<Tool>> = Vec::with_capacity(items.len());
    let mut quarantined = 0;
    for item in items {
        match tool(&item, protojson, bounds, shared) {
            // Those of one name follow each other.
            Ok(tool) if tools.last().is_none_or(|last| last.name != tool.name) => {
                tools.push(Arc::new(tool));
            }
            Ok(tool) => findings.push(second(tool.name, item.index)),
            Err(flaw) => {
                quarantined += 1;
                quarantine(item.index, flaw, item.tool_name(), findings);
            }
        }
    }
    tools.shrink_to_fit();
    (tools, quarantined)
}

fn tool(
    item: &NamedItem<'_>,
    protojson: bool,
    bounds: Bounds,
    shared: &mut Interner,
) -> Result<Tool, Flaw> {
    let mut members = Members::from_raw(item.raw)?;
    let name = tool::name(&mut members)?;
    let size = members.bytes();
    if size > bounds.part {
        return Err(Flaw::too_large(size, bounds));
    }
    tool::decode(name, members, protojson, shared)
}

/// A tool whose name an earlier one has.
pub(in crate::protocols) fn second(name: Arc<str>, index: usize) -> Finding {
    let message = format!(
        "a second tool {} is left out; the first stays",
        quoted_excerpt(&name)
    );
    Finding::new(FindingCode::DuplicateTool, message)
        .at(format!("/tools/{index}/name"))
        .of_tool(name)
        .hint("give each tool of a scenario its own name")
}

/// Reads the categories, sorted by id. What is malformed or repeated is left out with a finding,
/// and so is what is beyond [`UNKNOWN_MEMBERS_MAX`].
fn categories(
    members: &mut Members<'_>,
    protojson: bool,
    budget: &mut DecodeBudget,
    findings: &mut DocumentFindings,
) -> Vec<Category> {
    let mut ignore = |thing: &str, flaw: Flaw| {
        findings.flaw(
            FindingCode::CategoryIgnored,
            thing,
            flaw.within("categories"),
            None,
        );
    };
    let Some(raw) = members.take_set("categories") else {
        return Vec::new();
    };
    let nameless = |index: usize, raw| {
        if let Err(flaw) = category(raw, protojson, budget) {
            ignore("a category is left out", flaw.within(&index.to_string()));
        }
    };
    let FirstByName { items, beyond, .. } =
        match FirstByName::select("id", raw, UNKNOWN_MEMBERS_MAX, nameless) {
            Ok(first) => first,
            Err(flaw) => {
                ignore("all categories are left out", flaw);
                return Vec::new();
            }
        };
    if beyond > 0 {
        let flaw = Flaw::new(
            "",
            format!(
                "has {beyond} more than the {UNKNOWN_MEMBERS_MAX} that are taken, the first by id"
            ),
        );
        ignore(
            "some categories are left out",
            flaw.hint("group the tools in fewer categories"),
        );
    }
    let mut categories: Vec<Category> = Vec::with_capacity(items.len());
    for NamedItem { index, raw, .. } in items {
        let flaw = match category(raw, protojson, budget) {
            // Those of one id follow each other.
            Ok(category) if categories.last().is_none_or(|last| last.id != category.id) => {
                categories.push(category);
                continue;
            }
            Ok(category) => Flaw::new(
                "/id",
                format!(
                    "{} was given before; the first stays",
                    quoted_excerpt(&category.id)
                ),
            ),
            Err(flaw) => flaw,
        };
        ignore("a category is left out", flaw.within(&index.to_string()));
    }
    categories
}

fn category(raw: Raw<'_>, protojson: bool, budget: &mut DecodeBudget) -> Result<Category, Flaw> {
    let mut members = Members::from_raw(raw)?;
    members.rename_set(CATEGORY, protojson);
    let id = text_of(&mut members, "id")?;
    if id.is_empty() {
        return Err(Flaw::new("/id", "is missing or empty").hint("give the category an `id`"));
    }
    // Four texts of its own, which are in it.
    budget.take(size_of::<Category>() + 4 * SHARED + raw.get().len())?;
    let order = members.take_set("display_order").map(|raw| {
        let text = raw.get().trim_matches('"');
        text.parse::<i64>()
            .map_err(|_| Flaw::kind("/display_order", kind(raw.get()), "a whole number"))
    });
    let set = |text: &std::borrow::Cow<'_, str>| !(protojson && text.is_empty());
    Ok(Category {
        id,
        name: text_of(&mut members, "name")?,
        description: members
            .take_text("description")?
            .filter(set)
            .map(|text| text.as_ref().into()),
        icon: members
            .take_text("icon")?
            .filter(set)
            .map(|text| text.as_ref().into()),
        display_order: order.transpose()?,
        extra: members.into_extra(budget)?,
    })
}

/// What is left of the manifest. Of it the protocol's later texts know `capabilities`, a message
/// without names of a user's.
fn manifest_extra(
    mut members: Members<'_>,
    protojson: bool,
    budget: &mut DecodeBudget,
) -> Result<Extra, Flaw> {
    let capabilities = if protojson {
        members.take("capabilities")
    } else {
        None
    };
    let mut extra = members.into_extra(budget)?.into_vec();
    if let Some(raw) = capabilities.filter(|raw| raw.get() != "null") {
        let within = |flaw: Flaw| flaw.within("capabilities");
        let checked = share_unknown(raw, budget).map_err(within)?;
        let written = message(budget.tree(checked.get()).map_err(within)?).text();
        extra.push(("capabilities".into(), JsonText::known(written)));
    }
    Ok(extra.into())
}
