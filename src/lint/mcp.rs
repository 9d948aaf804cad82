//! Checks the tools of an MCP server, and how it lists them.

use super::rule_context::RuleContext;
use super::schema;
use super::serving::{ListResponse, check_content, slow};
use super::texts::{self, OwnTexts};
use crate::json::value::Json;
use crate::model::finding::quoted_excerpt;
use crate::model::name::PUBLISHED_NAME_MAX;
use crate::model::{CappedFindings, Finding, FindingCode, META, Manifest, Tool, refused_meta_keys};

/// The most characters of a tool's name (MCP 2026-07-28, tool names).
const NAME_MAX: usize = 128;

/// Where a server says something of itself. Its title is the description of the scenario.
const OWN_TEXTS: OwnTexts = OwnTexts {
    description: "/serverInfo/title",
    instructions: "/instructions",
};

/// How a server lists its tools.
#[derive(Debug, Clone)]
pub struct McpServing {
    /// Several answers to the same request.
    pub answers: Vec<ListResponse>,
    /// The pages of the list, and how many of them have no tools.
    pub pages: (usize, usize),
    /// Whether it promises to signal changes of its list.
    pub list_changed: bool,
}

/// Checks the tools of a server. Pointers name the members as the server does (`inputSchema`), and
/// the index of a tool is its index in [`Manifest::tools`].
pub fn check_mcp(manifest: &Manifest) -> Vec<Finding> {
    let mut findings = CappedFindings::default();
    if manifest.scenario.name.is_empty() {
        let finding = Finding::new(
            FindingCode::ScenarioNaming,
            "the server gives no name of itself",
        );
        findings.push(finding.hint("give `serverInfo` with `name` and `version`"));
    }
    texts::document(manifest, &OWN_TEXTS, &mut findings);
    for (index, tool) in manifest.tools.iter().enumerate() {
        let mut place = RuleContext::new(&mut findings, tool, index);
        names(&mut place, tool);
        let parameters = Json::parse(tool.parameters.get());
        texts::tool(
            &mut place,
            tool,
            "inputSchema",
            parameters.as_ref(),
            manifest,
        );
        meta_keys(&mut place, tool);
        if let Some(parameters) = &parameters {
            place.within("inputSchema", |place| schema::judge(place, parameters));
        }
        let output = tool
            .extra
            .iter()
            .find(|(name, _)| &**name == "outputSchema");
        if let Some(output) = output.and_then(|(_, json)| Json::parse(json.get())) {
            place.within("outputSchema", |place| schema::judge(place, &output));
        }
    }
    findings.finish()
}

/// Reports keys of `_meta` that clients do not get.
fn meta_keys(place: &mut RuleContext<'_>, tool: &Tool) {
    let meta = tool.extra.iter().find(|(name, _)| &**name == META);
    let refused = meta
        .map(|(_, meta)| refused_meta_keys(meta.get()))
        .unwrap_or_default();
    if let Some(first) = refused.first() {
        let message = format!(
            "{} of its keys, such as {}, is outside the grammar of MCP and left out for clients, which may refuse the whole list for it",
            refused.len(),
            quoted_excerpt(first)
        );
        let hint = "begin and end each name with a letter or digit, as in `example.com/my-key`";
        place.within(META, |place| {
            place.report(FindingCode::MetaKeyLeftOut, message, hint);
        });
    }
}

fn names(place: &mut RuleContext<'_>, tool: &Tool) {
    let name = tool.name.as_ref();
    let is_plain = name
        .bytes()
        .all(|c| c.is_ascii_alphanumeric() || b"_-./".contains(&c));
    let (message, hint) = if !is_plain || name.len() > NAME_MAX {
        let message = format!(
            "names of tools have at most {NAME_MAX} letters, digits, `_`, `-`, `.` or `/`, but this is {}",
            quoted_excerpt(name)
        );
        (message, "rename the tool; clients may refuse it")
    } else if name.len() > PUBLISHED_NAME_MAX {
        let message = format!(
            "several LLM vendors refuse names of more than {PUBLISHED_NAME_MAX} characters"
        );
        (
            message,
            "rename the tool; until then it is published under a shorter name",
        )
    } else {
        (String::new(), "")
    };
    if !message.is_empty() {
        place.within("name", |place| {
            place.report(FindingCode::ToolNaming, message, hint);
        });
    }
    if tool.description.trim().is_empty() {
        let message = "the tool has no description, so LLMs cannot know when to use it";
        let hint = "describe it in one or two sentences";
        place.within("description", |place| {
            place.report(FindingCode::ToolUndescribed, message, hint);
        });
    }
}

/// Checks how a server lists its tools.
pub fn check_mcp_serving(serving: &McpServing) -> Vec<Finding> {
    let mut findings: Vec<Finding> = slow(&serving.answers).into_iter().collect();
    findings.extend(check_content(&serving.answers));
    let (pages, empty) = serving.pages;
    if pages > 1 {
        let message =
            format!("the list comes in {pages} pages, and several clients read the first one only");
        let hint = "give the whole list in one page; `callsheet` does so for all its clients";
        findings.push(Finding::new(FindingCode::Paging, message).hint(hint));
    }
    if empty > 0 && pages > 1 {
        let message = format!("{empty} of the {pages} pages have no tools");
        findings.push(
            Finding::new(FindingCode::Paging, message)
                .hint("leave `nextCursor` out on the last page"),
        );
    }
    if !serving.list_changed {
        let message = "the server does not promise to signal changes of its list, so clients see them late or never";
        let hint = "declare the capability `tools.listChanged`, and send `notifications/tools/list_changed`";
        findings.push(Finding::new(FindingCode::ListChangedMissing, message).hint(hint));
    }
    findings
}
