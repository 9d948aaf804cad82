//! From the pages of `tools/list` to a manifest.
//!
//! A tool keeps the bytes of its input schema, and every member that the model has no name for
//! (`title`, `annotations`, `icons`, `outputSchema`, `_meta`, ...). Annotations become tags such as
//! `hint:destructive`; they are hints of the server and decide nothing by themselves. A malformed
//! tool is left out with a finding.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::headers::{self, HeaderParam, HeaderTable};
use super::listing::{NextPage, ServerList};
use super::server::ServerDescription;
use crate::json::LEVELS_MAX;
use crate::json::scan::kind;
use crate::json::soundness::{ScanResult, scan};
use crate::json::write::write_string;
use crate::lint;
use crate::model::{
    Bounds, Digest, Extra, Facts, Finding, FindingCode, JsonText, Manifest, ScenarioInfo,
    SentFindings, Tool, VersionCell, gives_hints,
};
use crate::protocols::ListError;
use crate::protocols::document::budget::{DecodeBudget, TOOL, shared_text_bytes};
use crate::protocols::document::envelope::Members;
use crate::protocols::document::first::NamedItem;
use crate::protocols::document::flaw::{DocumentFindings, Flaw};
use crate::protocols::document::raw::Raw;
use crate::protocols::meta_fields;
use crate::protocols::sent_document::{LintRules, SentDocument, innermost, steps};
use crate::protocols::tool_discovery;

/// The schema of a tool that declares no arguments.
const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// What `tools/list` gave, decoded.
#[derive(Debug)]
pub(super) struct DecodedTools {
    pub(super) manifest: Manifest,
    pub(super) findings: Vec<Finding>,
    pub(super) quarantined: usize,
    pub(super) headers: HeaderTable,
}

/// One page of `tools/list`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolsPage<'a> {
    #[serde(borrow)]
    tools: &'a RawValue,
    next_cursor: Option<String>,
    #[serde(borrow)]
    ttl_ms: Option<&'a RawValue>,
}

impl<'a> ToolsPage<'a> {
    /// Reads a page. The error is a sentence about the answer.
    pub(super) fn parse(result: &'a JsonText) -> Result<Self, ListError> {
        serde_json::from_str(result.get()).map_err(|error| {
            ListError::Malformed(format!(
                "its answer to `tools/list` cannot be read: {error}"
            ))
        })
    }
}

/// The list of the tools of a server. One without tools need not know the method.
pub(super) fn tools_list(server: &ServerDescription) -> ServerList {
    let next = |result: &JsonText| {
        let page = ToolsPage::parse(result)?;
        Ok(NextPage {
            cursor: page.next_cursor,
            ttl_ms: milliseconds(page.ttl_ms),
        })
    };
    let unknown = (!server.has_tools).then_some(r#"{"tools":[]}"#);
    ServerList {
        method: "tools/list",
        next,
        unknown,
    }
}

/// A lifetime as a server writes it; zero where it gives none.
pub(super) fn milliseconds(ttl: Option<&RawValue>) -> u64 {
    ttl.and_then(|ttl| ttl.get().parse().ok())
        .unwrap_or_default()
}

/// Decodes all pages of a list.
pub(super) fn decode(
    pages: &[JsonText],
    server: &ServerDescription,
    revision: &'static str,
    bounds: Bounds,
    wants_headers: bool,
) -> Result<DecodedTools, ListError> {
    let refuse = |flaw: Flaw| {
        let at = if flaw.pointer.is_empty() {
            "it"
        } else {
            flaw.pointer.as_str()
        };
        ListError::Malformed(format!(
            "its list of tools cannot be used: {at} {}",
            flaw.what
        ))
    };
    let list = joined(pages)?;
    let raw: &RawValue = serde_json::from_str(&list).map_err(|error| {
        ListError::Malformed(format!("its list of tools cannot be read: {error}"))
    })?;
    let mut findings = DocumentFindings::default();
    let mut budget = DecodeBudget::for_document(list.len());
    let affordable = budget.tools();
    let (items, beyond) = tool_discovery::first_by_name(
        Raw::from_raw_value(raw),
        bounds.tools,
        affordable,
        &mut findings,
    )
    .map_err(refuse)?;
    let mut tools: Vec<Arc<Tool>> = Vec::with_capacity(items.len());
    let mut quarantined = beyond;
    let mut table = HeaderTable::new();
    for item in items {
        match tool(&item, bounds, wants_headers, &mut budget) {
            // Tools with the same name follow each other.
            Ok((tool, params)) if tools.last().is_none_or(|last| last.name != tool.name) => {
                if !params.is_empty() {
                    table.insert(Arc::clone(&tool.name), params);
                }
                tools.push(Arc::new(tool));
            }
            Ok((tool, _)) => {
                findings.push(tool_discovery::second(Arc::clone(&tool.name), item.index));
            }
            Err(flaw) => {
                quarantined += 1;
                tool_discovery::quarantine(item.index, flaw, item.tool_name(), &mut findings);
            }
        }
    }
    tools.retain(|tool| !is_for_tasks_only(tool, &mut findings));
    tools.shrink_to_fit();
    let manifest = Manifest {
        protocol_version: revision.into(),
        ..Manifest::new(scenario(server), tools)
    }
    .digested();
    Ok(DecodedTools {
        manifest,
        findings: findings.finish(),
        quarantined,
        headers: table,
    })
}

/// Decodes a list that is no MCP server's and has the members of one: `{"tools": [...]}`. Also
/// gives the number of malformed tools.
pub(in crate::protocols) fn decode_list(
    list: &JsonText,
    bounds: Bounds,
    judged: Option<Digest>,
) -> Result<(Manifest, Vec<Finding>, usize), ListError> {
    let pages = std::slice::from_ref(list);
    let DecodedTools {
        mut manifest,
        findings,
        quarantined,
        ..
    } = decode(pages, &ServerDescription::default(), "", bounds, false)?;
    if judged != Some(manifest.digest) {
        manifest.sent_findings = sent_findings(pages, &manifest, check_tools, &findings);
    }
    Ok((manifest, findings, quarantined))
}

/// The rules for a list of a server that has no name.
fn check_tools(manifest: &Manifest) -> Vec<Finding> {
    let findings = lint::check_mcp(manifest).into_iter();
    findings
        .filter(|finding| finding.code != FindingCode::ScenarioNaming)
        .collect()
}

/// What the author of the tools on these pages should know. Pointers count the tools of all pages
/// as one list.
pub(super) fn sent_findings(
    pages: &[JsonText],
    manifest: &Manifest,
    rules: LintRules,
    decoded: &[Finding],
) -> SentFindings {
    let whole = joined(pages).map(|list| format!("{{\"tools\":{list}}}"));
    let document = whole
        .as_ref()
        .ok()
        .and_then(|text| SentDocument::parse(text, sent_pointer));
    document
        .map(|document| document.lint(manifest, rules, decoded))
        .unwrap_or_default()
}

/// The same place in the answer of a server, which has no metadata.
fn sent_pointer(document: &Value, pointer: &str) -> String {
    let mut steps = steps(pointer);
    // Instructions and prompts come in messages of their own.
    if steps.first().is_none_or(|first| first != "tools") {
        return pointer.to_owned();
    }
    if let [_, _, parameters, ..] = steps.as_mut_slice()
        && parameters == "parameters"
    {
        "inputSchema".clone_into(parameters);
    }
    innermost(document, steps)
}

/// The tools of all pages as one list.
fn joined(pages: &[JsonText]) -> Result<String, ListError> {
    let mut list = String::with_capacity(pages.iter().map(|page| page.get().len()).sum());
    list.push('[');
    for page in pages {
        let page = ToolsPage::parse(page)?;
        let tools = page.tools.get();
        let Some(inner) = tools
            .strip_prefix('[')
            .and_then(|tools| tools.strip_suffix(']'))
        else {
            return Err(ListError::Malformed(format!(
                "`tools` in its list is {}, not a list",
                kind(tools)
            )));
        };
        if inner.trim().is_empty() {
            continue;
        }
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(inner);
    }
    list.push(']');
    Ok(list)
}

/// What the server says of itself. Its instructions are kept for people and given to no model.
fn scenario(server: &ServerDescription) -> ScenarioInfo {
    let mut extra = Vec::new();
    let mut add = |name: &str, text: &str| {
        if !text.is_empty() {
            let mut json = String::new();
            write_string(&mut json, text);
            extra.push((name.into(), JsonText::known(json)));
        }
    };
    add("instructions", &server.instructions);
    ScenarioInfo {
        name: server.name.as_str().into(),
        version: server.version.as_str().into(),
        description: server.title.as_str().into(),
        base_url: None,
        extra: extra.into(),
    }
}

/// One tool, and the arguments that it wants in headers.
fn tool(
    item: &NamedItem<'_>,
    bounds: Bounds,
    wants_headers: bool,
    budget: &mut DecodeBudget,
) -> Result<(Tool, Vec<HeaderParam>), Flaw> {
    let mut members = Members::from_raw(item.raw)?;
    let name = tool_discovery::tool_name(&mut members)?;
    let size = members.bytes();
    if size > bounds.part {
        return Err(Flaw::too_large(size, bounds));
    }
    let description = members.take_text("description")?.unwrap_or_default();
    let within = |flaw: Flaw| flaw.within("inputSchema");
    let parameters = input_schema(members.take_set("inputSchema"), budget).map_err(within)?;
    let params = if wants_headers {
        let invalid =
            |why| within(Flaw::new("", why)).hint("correct the annotation, or leave it out");
        headers::annotations(parameters.get()).map_err(invalid)?
    } else {
        Vec::new()
    };
    let extra = members.into_extra(budget)?;
    let tags = tags(&extra);
    let metadata = metadata(&tags);
    budget.take(
        TOOL + shared_text_bytes(&name)
            + shared_text_bytes(&description)
            + shared_text_bytes(&metadata),
    )?;
    let mut tool = Tool {
        name,
        description: description.as_ref().into(),
        category: None,
        parameters,
        metadata: JsonText::known(metadata),
        facts: Arc::new(Facts {
            enabled_by_default: true,
            tags: tags.into_iter().map(Into::into).collect(),
            unannotated: !gives_hints(&extra),
            ..Facts::default()
        }),
        extra,
        definition: None,
        version: VersionCell::default(),
    };
    meta_fields::lift(&mut tool, budget).map_err(within)?;
    Ok((tool, params))
}

/// The input schema as it was written. It has to be that of an object.
fn input_schema(raw: Option<Raw<'_>>, budget: &mut DecodeBudget) -> Result<JsonText, Flaw> {
    let Some(raw) = raw else {
        return Ok(JsonText::known(NO_PARAMETERS));
    };
    let json = raw.get();
    if !json.starts_with('{') {
        return Err(Flaw::kind("", kind(json), "an object"));
    }
    let mut root = None;
    let (found, compact) = scan(
        json,
        |_| false,
        |name, value| {
            if name == "type" {
                root = Some(value);
            }
        },
    );
    match root {
        Some(value) if !value.starts_with("\"object\"") => {
            return Err(Flaw::new("/type", "is not `\"object\"`").hint("tools take one object"));
        }
        _ => {}
    }
    let text = match found {
        ScanResult::TooDeep => {
            return Err(
                Flaw::new("", format!("nests deeper than {LEVELS_MAX} levels")).hint("flatten it"),
            );
        }
        ScanResult::Plain => json.to_owned(),
        ScanResult::Odd => {
            let written = budget.tree(json)?.text();
            // What every reader can read stays as it was written.
            if written == compact {
                json.to_owned()
            } else {
                written
            }
        }
    };
    budget.take(shared_text_bytes(&text))?;
    Ok(JsonText::known(text))
}

#[derive(Deserialize)]
struct Annotations {
    #[serde(rename = "readOnlyHint")]
    read_only: Option<bool>,
    #[serde(rename = "destructiveHint")]
    destructive: Option<bool>,
    #[serde(rename = "idempotentHint")]
    idempotent: Option<bool>,
    #[serde(rename = "openWorldHint")]
    open_world: Option<bool>,
}

/// The hints that a tool gives of itself, as tags. Only what it says is one: the defaults of the
/// protocol are not written down as if the server had said them.
fn tags(extra: &Extra) -> Vec<&'static str> {
    let annotations = extra.iter().find(|(name, _)| &**name == "annotations");
    let annotations =
        annotations.and_then(|(_, json)| serde_json::from_str::<Annotations>(json.get()).ok());
    let Some(annotations) = annotations else {
        return Vec::new();
    };
    let hints = [
        (annotations.read_only, "hint:read-only"),
        (annotations.destructive, "hint:destructive"),
        (annotations.idempotent, "hint:idempotent"),
        (annotations.open_world, "hint:open-world"),
    ];
    hints
        .into_iter()
        .filter(|(hint, _)| *hint == Some(true))
        .map(|(_, tag)| tag)
        .collect()
}

/// The metadata in the spelling of the Tool Discovery Protocol, which is what is stored.
fn metadata(tags: &[&str]) -> String {
    let mut metadata = r#"{"enabled_by_default":true,"requires_approval":false"#.to_owned();
    if !tags.is_empty() {
        let tags: Vec<_> = tags.iter().map(|tag| format!("\"{tag}\"")).collect();
        metadata.push_str(r#","tags":["#);
        metadata.push_str(&tags.join(","));
        metadata.push(']');
    }
    metadata.push('}');
    metadata
}

/// Whether a tool can be called as a task only, so that every call of it would fail. A finding says
/// that it is left out.
fn is_for_tasks_only(tool: &Tool, findings: &mut DocumentFindings) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct DeclaredExecution {
        task_support: Option<String>,
    }
    let execution = tool.extra.iter().find(|(name, _)| &**name == "execution");
    let execution =
        execution.and_then(|(_, json)| serde_json::from_str::<DeclaredExecution>(json.get()).ok());
    let is_required = execution
        .and_then(|execution| execution.task_support)
        .as_deref()
        == Some("required");
    if is_required {
        let finding = Finding::new(
            FindingCode::TaskRequired,
            "it can be called as a task only, which callsheet cannot do",
        )
        .of_tool(Arc::clone(&tool.name))
        .hint("let the server accept plain calls of it, too");
        findings.push(finding);
    }
    is_required
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(pages: &[&str]) -> DecodedTools {
        let pages: Vec<_> = pages
            .iter()
            .map(|page| JsonText::parse(page).unwrap())
            .collect();
        let server = ServerDescription {
            name: "files".into(),
            instructions: "Use it.".into(),
            ..ServerDescription::default()
        };
        decode(&pages, &server, "2025-11-25", Bounds::NONE, true).unwrap()
    }

    #[test]
    fn a_tool_keeps_the_bytes_of_its_schema_and_its_unknown_members() {
        let schema = r#"{ "$schema":"https://json-schema.org/draft/2020-12/schema", "type":"object",
            "properties":{"a":{"type":"string","pattern":"^\\u0041"}}, "required":["a"] }"#;
        let page = format!(
            r#"{{"tools":[{{"name":"read","title":"Read","inputSchema":{schema},"annotations":{{"readOnlyHint":true,"destructiveHint":false}},"outputSchema":{{"type":"object"}},"_meta":{{"x":1}}}}]}}"#
        );
        let decoded = decoded(&[&page]);
        let tool = &decoded.manifest.tools[0];
        assert_eq!(tool.parameters.get(), schema);
        assert_eq!(
            tool.metadata.get(),
            r#"{"enabled_by_default":true,"requires_approval":false,"tags":["hint:read-only"]}"#
        );
        let names: Vec<_> = tool.extra.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["title", "annotations", "outputSchema", "_meta"]);
        assert!(!tool.facts.idempotent && tool.facts.enabled_by_default);
        assert_eq!(&*decoded.manifest.scenario.name, "files");
        assert!(decoded.findings.is_empty(), "{:?}", decoded.findings);
    }

    #[test]
    fn the_tools_of_all_pages_are_one_list_by_name() {
        let decoded = decoded(&[
            r#"{"tools":[{"name":"b"}],"nextCursor":"2"}"#,
            r#"{"tools":[]}"#,
            r#"{"tools":[ {"name":"a"},{"name":"b"}]}"#,
        ]);
        let names: Vec<_> = decoded
            .manifest
            .tools
            .iter()
            .map(|tool| &*tool.name)
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(decoded.manifest.tools[0].parameters.get(), NO_PARAMETERS);
        assert_eq!(decoded.findings.len(), 1, "the second `b`");
    }

    #[test]
    fn a_malformed_tool_costs_that_tool() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
        let page = format!(
            r#"{{"tools":[{{"name":"ok"}},{{"name":""}},{{"name":"list","inputSchema":[]}},{{"name":"text","inputSchema":{{"type":"string"}}}},{{"name":"deep","inputSchema":{deep}}},{{"name":"head","inputSchema":{{"type":"object","properties":{{"a":{{"type":"number","x-mcp-header":"A"}}}}}}}},7]}}"#
        );
        let decoded = decoded(&[&page]);
        let names: Vec<_> = decoded
            .manifest
            .tools
            .iter()
            .map(|tool| &*tool.name)
            .collect();
        assert_eq!(names, vec!["ok"]);
        assert_eq!(decoded.quarantined, 6);
        assert_eq!(decoded.findings.len(), 6);
    }

    #[test]
    fn a_list_that_is_none_is_refused() {
        for page in ["{}", "[]", r#"{"tools":{}}"#, r#"{"tools":null}"#] {
            let pages = [JsonText::parse(page).unwrap()];
            let decoded = decode(
                &pages,
                &ServerDescription::default(),
                "",
                Bounds::NONE,
                false,
            );
            assert!(matches!(decoded, Err(ListError::Malformed(_))), "{page}");
        }
    }
}
