//! Checks names, versions, descriptions and categories.

use crate::model::finding::quoted_excerpt;
use crate::model::name::{PUBLISHED_NAME_MAX, is_legal};
use crate::model::{CappedFindings, Finding, FindingCode, Manifest, ScenarioName, Tool};

use super::rule_context::RuleContext;

/// Checks the parts of the manifest that are not tools.
pub(super) fn document(manifest: &Manifest, findings: &mut CappedFindings) {
    let scenario = &manifest.scenario;
    let name = scenario.name.as_ref();
    let naming = |message: String, pointer: &str| {
        Finding::new(FindingCode::ScenarioNaming, message)
            .at(pointer)
            .hint("name it with letters, digits, `.`, `_` or `-`, such as `agent-manager`")
    };
    if name.is_empty() {
        findings.push(naming("the scenario has no name".into(), "/scenario/name"));
    } else if name.parse::<ScenarioName>().is_err() {
        findings.push(naming(
            format!("{} is not a valid name of a scenario", quoted_excerpt(name)),
            "/scenario/name",
        ));
    }
    // A protocol without a version has no version of the scenario either.
    if !manifest.protocol_version.is_empty() && semver::Version::parse(&scenario.version).is_err() {
        let message = match scenario.version.as_ref() {
            "" => "the scenario has no version".to_owned(),
            version => format!(
                "the scenario's version {} is not a semantic version",
                quoted_excerpt(version)
            ),
        };
        let finding = Finding::new(FindingCode::ScenarioVersion, message).at("/scenario/version");
        findings.push(
            finding.hint(
                "write three numbers, such as `1.0.0`, and change them when the tools change",
            ),
        );
    }
    let grouped = manifest
        .tools
        .iter()
        .filter(|tool| tool.category.is_some())
        .count();
    if manifest.categories.is_empty() && grouped > 0 {
        // One finding for the whole manifest: a provider that defines no category has made one
        // mistake, not one for each tool.
        let message =
            format!("the manifest defines no categories, but tools name some ({grouped} of them)");
        let finding = Finding::new(FindingCode::CategoryUnknown, message).at("/categories");
        findings.push(finding.hint("define each of them in `categories` with its `id` and `name`"));
    }
}

/// Checks the name, the description and the category of a tool.
pub(super) fn tool(place: &mut RuleContext<'_>, tool: &Tool, manifest: &Manifest) {
    let name = tool.name.as_ref();
    let categories = &*manifest.categories;
    // A manifest without a protocol version is a module's; names of module tools contain a dot.
    let dotted = manifest.protocol_version.is_empty();
    // Every LLM vendor takes a hyphen, and published names may have one.
    let in_grammar = name
        .bytes()
        .all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c) || dotted && c == b'.');
    if !in_grammar {
        place.within("name", |place| {
            let message = format!(
                "LLM vendors allow letters, digits, `_` and `-` in names, but this is {}",
                quoted_excerpt(name)
            );
            place.report(
                FindingCode::ToolNaming,
                message,
                "rename the tool; until then it may be published under a repaired name",
            );
        });
    } else if !is_legal(&name.replace('.', "_")) {
        place.within("name", |place| {
            let message = format!(
                "LLM vendors require a name that begins with a letter and has at most {PUBLISHED_NAME_MAX} characters, but this is {}",
                quoted_excerpt(name)
            );
            place.report(FindingCode::ToolNaming, message, "rename the tool; until then it is published under a repaired name");
        });
    }
    if tool.description.trim().is_empty() {
        place.within("description", |place| {
            let message = "the tool has no description, so LLMs cannot know when to use it";
            place.report(
                FindingCode::ToolUndescribed,
                message,
                "describe it in one or two sentences",
            );
        });
    }
    if let Some(category) = &tool.category
        && !categories.is_empty()
        && categories
            .binary_search_by(|known| known.id.cmp(category))
            .is_err()
    {
        place.within("category", |place| {
            let message = format!("the category {} is not defined", quoted_excerpt(category));
            place.report(
                FindingCode::CategoryUnknown,
                message,
                "define it in `categories`, or use the `id` of one that is",
            );
        });
    }
}
