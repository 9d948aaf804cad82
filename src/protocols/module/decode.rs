//! From bytes to a manifest.

use std::sync::Arc;

use super::parameters;
use crate::json::write::write_string;
use crate::model::{
    Bounds, Facts, Finding, FindingCode, JsonText, Manifest, Permission, ScenarioInfo, Tool,
    VersionCell,
};
use crate::protocols::ListError;
use crate::protocols::document::budget::{DecodeBudget, TOOL, shared_text_bytes};
use crate::protocols::document::envelope::Members;
use crate::protocols::document::first::NamedItem;
use crate::protocols::document::flaw::{DocumentFindings, Flaw, quoted_excerpt};
use crate::protocols::tool_discovery::head;
use crate::protocols::tool_discovery::{self, Decoded};

/// Decodes a module's manifest. The module documentation says what is refused, left out or passed
/// on.
pub fn decode(body: &[u8]) -> Result<Decoded, ListError> {
    decode_within(body, Bounds::NONE)
}

/// Like [`decode`], with limits for manifests that are not trusted. Tools that are too large or too
/// many are left out with a finding; another member that is too large makes the document unusable.
pub fn decode_within(body: &[u8], bounds: Bounds) -> Result<Decoded, ListError> {
    let text = head::object_text(body)?;
    let mut members = head::members(text)?;
    let listed = members.take("tools");
    // A manifest of the Tool Discovery Protocol has `tools` too, and a scenario may serve it at
    // this path.
    if !members.has("module_name") || members.has("scenario") || members.has("protocol_version") {
        return Err(head::no_manifest(&format!(
            "it is a JSON object without `module_name`, or with members that no module has, and begins with {}",
            quoted_excerpt(text)
        )));
    }
    let refuse = |flaw: Flaw| head::refuse(&flaw);
    if let Some((name, bytes)) = members.beyond(bounds.part) {
        return Err(refuse(Flaw::too_large(bytes, bounds).within(name)));
    }
    let name = members
        .take_text("module_name")
        .map_err(refuse)?
        .unwrap_or_default();
    let description = members
        .take_text("description")
        .map_err(refuse)?
        .unwrap_or_default();
    let listed = listed.ok_or_else(|| refuse(Flaw::new("/tools", "is missing")))?;
    let mut findings = DocumentFindings::default();
    let mut budget = DecodeBudget::for_document(text.len());
    // Counted before the tools, because the tools may use all that is left; a tool beyond the
    // budget is left out alone.
    let extra = members.into_extra(&mut budget).map_err(refuse)?;
    let (items, beyond) =
        tool_discovery::first_by_name(listed, bounds.tools, budget.tools(), &mut findings)
            .map_err(|flaw| refuse(flaw.within("tools")))?;
    let (tools, malformed) = tools(items, &name, bounds, &mut budget, &mut findings);
    let scenario = ScenarioInfo {
        name: name.as_ref().into(),
        description: description.as_ref().into(),
        ..ScenarioInfo::default()
    };
    let manifest = Manifest {
        extra,
        ..Manifest::new(scenario, tools)
    }
    .digested();
    Ok(Decoded {
        manifest,
        findings: findings.finish(),
        quarantined: malformed + beyond,
    })
}

/// Decodes tools that are ordered by name. Malformed and repeated tools are left out with a
/// finding. Returns the tools and the number of malformed ones.
fn tools(
    items: Vec<NamedItem<'_>>,
    module: &str,
    bounds: Bounds,
    budget: &mut DecodeBudget,
    findings: &mut DocumentFindings,
) -> (Vec<Arc<Tool>>, usize) {
    let mut tools: Vec<Arc<Tool>> = Vec::with_capacity(items.len());
    let mut quarantined = 0;
    for item in items {
        let index = item.index;
        match tool(&item, bounds, budget) {
            // Tools with the same name follow each other.
            Ok((tool, level)) if tools.last().is_none_or(|last| last.name != tool.name) => {
                remark(&tool, index, module, &level, findings);
                tools.push(Arc::new(tool));
            }
            Ok((tool, _)) => findings.push(tool_discovery::second(Arc::clone(&tool.name), index)),
            Err(flaw) => {
                quarantined += 1;
                tool_discovery::quarantine(index, flaw, item.tool_name(), findings);
            }
        }
    }
    (tools, quarantined)
}

/// One tool, and the permission level that it needs, as written.
fn tool(
    item: &NamedItem<'_>,
    bounds: Bounds,
    budget: &mut DecodeBudget,
) -> Result<(Tool, String), Flaw> {
    let mut members = Members::from_raw(item.raw)?;
    let name = tool_discovery::tool_name(&mut members)?;
    let size = members.bytes();
    if size > bounds.part {
        return Err(Flaw::too_large(size, bounds));
    }
    let description = members.take_text("description")?.unwrap_or_default();
    let parameters = parameters::schema(members.take_set("parameters"), budget);
    let parameters = parameters.map_err(|flaw| flaw.within("parameters"))?;
    // A tool with no level, or with an empty one, is for every user.
    let level = members
        .take_text("required_permission")?
        .filter(|level| !level.is_empty());
    let level = level.map_or_else(
        || Permission::Guest.to_string(),
        std::borrow::Cow::into_owned,
    );
    let facts = Facts {
        enabled_by_default: true,
        required_permission: level.parse().unwrap_or(Permission::Unknown),
        ..Facts::default()
    };
    let mut metadata =
        r#"{"enabled_by_default":true,"requires_approval":false,"required_permission":"#.to_owned();
    write_string(&mut metadata, &level);
    metadata.push('}');
    budget.take(
        TOOL + shared_text_bytes(&name)
            + shared_text_bytes(&description)
            + shared_text_bytes(&metadata),
    )?;
    let tool = Tool {
        name,
        description: description.as_ref().into(),
        category: None,
        parameters,
        metadata: JsonText::known(metadata),
        facts: Arc::new(facts),
        extra: members.into_extra(budget)?,
        definition: None,
        version: VersionCell::default(),
    };
    Ok((tool, level))
}

/// Adds findings for a tool that is unusual but published.
fn remark(tool: &Tool, index: usize, module: &str, level: &str, findings: &mut DocumentFindings) {
    let own = tool
        .name
        .split_once('.')
        .is_some_and(|(owner, rest)| owner == module && !rest.is_empty());
    if !own {
        let message = format!(
            "the tool {} is not named after its module {}",
            quoted_excerpt(&tool.name),
            quoted_excerpt(module)
        );
        findings.push(
            Finding::new(FindingCode::ToolNaming, message)
                .at(format!("/tools/{index}/name"))
                .of_tool(Arc::clone(&tool.name))
                .hint("name it `module.tool`: consumers find the module by the part before the first dot"),
        );
    }
    if tool.facts.required_permission == Permission::Unknown {
        let message = format!(
            "{} is not a level of permission, so the tool is for no profile that has one",
            quoted_excerpt(level)
        );
        findings.push(
            Finding::new(FindingCode::MetadataValue, message)
                .at(format!("/tools/{index}/required_permission"))
                .of_tool(Arc::clone(&tool.name))
                .hint("use `guest`, `user`, `admin` or `owner`, or set `permissions.unknown = \"guest\"`"),
        );
    }
}
