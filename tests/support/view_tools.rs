//! Builds views by hand, for tests of what is made of them.

use std::sync::Arc;

use callsheet::catalog::search::Indexed;
use callsheet::catalog::view::Part;
use callsheet::catalog::{CatalogEntry, Linted, RunsLong, View, Visibility};
use callsheet::model::{
    Category, Digest, Effective, Execution, Extra, Facts, JsonText, Manifest, Provenance,
    PublishedName, RelayedOffers, ScenarioInfo, ScenarioName, Tool, ToolId, VersionCell, ViewTool,
};
use jiff::Timestamp;

/// A raw JSON text.
pub(crate) fn raw(json: &str) -> JsonText {
    JsonText::parse(json).expect("the test writes JSON")
}

/// Unknown members.
pub(crate) fn extra(members: &[(&str, &str)]) -> Extra {
    members
        .iter()
        .map(|(key, json)| (Arc::from(*key), raw(json)))
        .collect()
}

/// A tool under its own name, enabled by its manifest, with this schema.
pub(crate) fn tool(scenario: &str, name: &str, parameters: &str) -> ViewTool {
    let tool = Tool {
        name: name.into(),
        description: format!("What {name} does.").into(),
        category: None,
        parameters: raw(parameters),
        metadata: raw(r#"{"enabled_by_default":true}"#),
        facts: Arc::new(Facts {
            enabled_by_default: true,
            ..Facts::default()
        }),
        extra: Extra::default(),
        definition: None,
        version: VersionCell::default(),
    };
    ViewTool {
        id: ToolId::new(scenario.parse().expect("a scenario name"), name),
        tool: Arc::new(tool),
        name: PublishedName::plain(name),
        effective: Effective {
            enabled: true,
            enabled_source: Provenance::Manifest,
            requires_approval: false,
            approval_source: Provenance::Manifest,
            priority: 0,
            pinned: false,
        },
        companions: Arc::default(),
        overridden: None,
        execution: Execution::default(),
    }
}

/// The same tool, offered otherwise.
pub(crate) fn offered(mut tool: ViewTool, change: impl FnOnce(&mut Tool)) -> ViewTool {
    change(Arc::make_mut(&mut tool.tool));
    tool
}

/// A category without anything optional.
pub(crate) fn category(id: &str, name: &str) -> Category {
    Category {
        id: id.into(),
        name: name.into(),
        description: None,
        icon: None,
        display_order: None,
        extra: Extra::default(),
    }
}

/// The manifest of a scenario with these tools.
pub(crate) fn manifest(
    scenario: &str,
    tools: Vec<Arc<Tool>>,
    categories: Vec<Category>,
) -> Manifest {
    Manifest {
        protocol_version: "1.0".into(),
        scenario: ScenarioInfo {
            name: scenario.into(),
            ..ScenarioInfo::default()
        },
        tools,
        categories: categories.into(),
        generated_at: None,
        extra: Extra::default(),
        relayed: RelayedOffers::default(),
        digest: Digest::default(),
        sent_findings: callsheet::model::SentFindings::default(),
        held: Arc::default(),
    }
}

/// A scenario with all of its tools in the view.
pub(crate) fn part(scenario: &str, tools: Vec<ViewTool>, categories: Vec<Category>) -> Part {
    let name: ScenarioName = scenario.parse().expect("a scenario name");
    let tools: Vec<_> = tools.into_iter().map(Arc::new).collect();
    let manifest = manifest(
        scenario,
        tools.iter().map(|tool| Arc::clone(&tool.tool)).collect(),
        categories,
    );
    let entry = CatalogEntry {
        name,
        manifest: Arc::new(manifest),
        visibility: Visibility::Published,
        tools: tools.clone().into(),
        listed: tools.clone().into(),
        digest: Digest::default(),
        linted: Linted::default(),
        indexed: Indexed::default(),
        runs_long: RunsLong::default(),
    };
    Part {
        entry: Arc::new(entry),
        tools: tools.into(),
        whole: true,
    }
}

/// A view of these parts, with nothing left out.
pub(crate) fn view(parts: Vec<Part>) -> View {
    View {
        parts,
        ..View::default()
    }
}

/// The time of every view here.
pub(crate) fn then() -> Timestamp {
    "2026-03-01T09:30:00.25Z".parse().expect("a time")
}
