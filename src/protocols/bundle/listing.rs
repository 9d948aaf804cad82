//! The list of one bundle: written as a manifest of the Tool Discovery Protocol, and decoded as
//! every other one.

use serde_json::{Map, json};

use super::usable;
use crate::bundles::{BundleStore, StoredBundle, StoredTool, ToolImplementation};
use crate::model::{AcceptedVersions, CappedFindings, Finding, FindingCode, Manifest, Tool};
use crate::protocols::tool_discovery::{self, Decoded};
use crate::protocols::{ListError, ListRequest};

/// The manifest of a bundle, with its findings and the number of tools that are left out.
pub(super) fn decode(
    bundle: &StoredBundle,
    store: &BundleStore,
    request: &ListRequest,
) -> Result<(Manifest, Vec<Finding>, usize), ListError> {
    let mut findings = CappedFindings::default();
    let mut tools = Vec::new();
    let mut left_out = 0;
    if bundle.definition.is_enabled {
        bundle
            .findings
            .iter()
            .cloned()
            .for_each(|finding| findings.push(finding));
        left_out += bundle
            .findings
            .iter()
            .filter(|finding| finding.code == FindingCode::ToolQuarantined)
            .count();
        for tool in &bundle.tools {
            if !tool.is_enabled {
                findings.push(switched_off(bundle, tool));
                continue;
            }
            match usable::left_out(tool, store) {
                None => tools.push(offer(tool, &tool.name())),
                Some(finding) => {
                    left_out += 1;
                    findings.push(finding);
                }
            }
        }
    } else {
        let message = format!(
            "the bundle is disabled, so its {} tool(s) are not offered",
            bundle.tools.len()
        );
        let hint = format!(
            "enable it with `callsheet bundle enable {}`",
            bundle.definition.id
        );
        findings.push(Finding::new(FindingCode::Disabled, message).hint(hint));
    }
    let document = document(bundle, &tools);
    let decoded =
        tool_discovery::decode_within(document.as_bytes(), &request.accept, request.bounds)?;
    let Decoded {
        manifest,
        findings: decode_findings,
        quarantined,
    } = decoded;
    // Findings about the document itself are dropped, because it is generated here.
    decode_findings
        .into_iter()
        .filter(|finding| finding.tool.is_some())
        .for_each(|finding| findings.push(finding));
    Ok((manifest, findings.finish(), left_out + quarantined))
}

/// The finding for a tool that is disabled where it is stored. Its switch is above all preferences,
/// as that of its bundle is.
fn switched_off(bundle: &StoredBundle, tool: &StoredTool) -> Finding {
    let finding = Finding::new(FindingCode::Disabled, "the tool is disabled in its bundle")
        .of_tool(tool.name());
    finding.hint(format!(
        "enable it with `callsheet bundle enable {} {} {}`",
        bundle.definition.id, tool.slug, tool.version
    ))
}

/// A tool as the list of its bundle would have it.
pub(crate) fn listed_tool(bundle: &StoredBundle, tool: &StoredTool) -> Option<Tool> {
    let document = document(bundle, &[offer(tool, &tool.name())]);
    let decoded = tool_discovery::decode(document.as_bytes(), &AcceptedVersions::default()).ok()?;
    decoded.manifest.tools.first().map(|tool| (**tool).clone())
}

/// The manifest with every tool.
pub(super) fn whole(bundle: &StoredBundle) -> Option<Manifest> {
    let tools: Vec<String> = bundle
        .tools
        .iter()
        .map(|tool| offer(tool, &tool.name()))
        .collect();
    let decoded = tool_discovery::decode(
        document(bundle, &tools).as_bytes(),
        &AcceptedVersions::default(),
    );
    decoded.ok().map(|decoded| decoded.manifest)
}

/// A manifest of the Tool Discovery Protocol.
fn document(bundle: &StoredBundle, tools: &[String]) -> String {
    let about = &bundle.definition;
    let description = if about.description.is_empty() {
        &about.display_name
    } else {
        &about.description
    };
    let document = json!({
        "protocol_version": "1.0",
        "scenario": {"name": bundle.scenario.as_str(), "version": "", "description": description},
        "categories": [],
    });
    with_raw_member(
        document.to_string(),
        "tools",
        &format!("[{}]", tools.join(",")),
    )
}

/// The text of an object that has members, with one more that is JSON already: a tree of all
/// schemas would take many times their bytes.
fn with_raw_member(mut object: String, name: &str, json: &str) -> String {
    object.pop();
    object.extend([",\"", name, "\":", json, "}"]);
    object
}

/// One tool in the manifest.
fn offer(tool: &StoredTool, name: &str) -> String {
    let mut metadata = Map::from_iter([
        ("enabled_by_default".to_owned(), true.into()),
        ("requires_approval".to_owned(), false.into()),
        (
            "implementation_digest".to_owned(),
            tool.implementation_digest.as_str().into(),
        ),
    ]);
    if !tool.tags.is_empty() {
        metadata.insert("tags".to_owned(), json!(tool.tags));
    }
    if let ToolImplementation::Http(http) = &tool.implementation {
        let seconds = http.timeout.as_millis().div_ceil(1000);
        metadata.insert(
            "timeout_seconds".to_owned(),
            json!(u64::try_from(seconds).unwrap_or(u64::MAX)),
        );
        metadata.insert("idempotent".to_owned(), http.is_idempotent().into());
        if let Some(most) = http.max_calls_per_minute {
            metadata.insert("rate_limit_per_minute".to_owned(), json!(most));
        }
    }
    let description = if tool.description.is_empty() {
        &tool.display_name
    } else {
        &tool.description
    };
    let offer = json!({
        "name": name,
        "title": tool.display_name,
        "description": description,
        "metadata": metadata,
    });
    let offer = with_raw_member(offer.to_string(), "parameters", tool.arg_schema.get());
    match &tool.output_schema {
        Some(output) => with_raw_member(offer, "outputSchema", output.get()),
        None => offer,
    }
}
