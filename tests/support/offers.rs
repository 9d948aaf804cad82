//! Small makers of tools, manifests, offers and preferences for tests of the merge.

use std::sync::Arc;

use callsheet::catalog::{Catalog, Change, Inputs, Offer, Visibility, build};
use callsheet::model::{
    ActivityChoice, Category, Digest, Facts, JsonText, Manifest, Permission, PreferenceSet,
    PreferenceTarget, PublishedName, RelayedOffers, ScenarioInfo, ScenarioName, Scope, Settings,
    Tool, ToolId, VersionCell,
};
use xxhash_rust::xxh3::xxh3_128;

/// A tool in the making: enabled, without category, tags or description.
#[derive(Debug, Clone)]
pub(crate) struct Draft(Tool);

/// A tool of this name.
pub(crate) fn tool(name: &str) -> Draft {
    let raw = |text: &str| JsonText::parse(text).unwrap();
    Draft(Tool {
        name: name.into(),
        description: "".into(),
        category: None,
        parameters: raw(r#"{"type":"object","properties":{}}"#),
        metadata: raw(r#"{"enabled_by_default":true}"#),
        facts: Arc::new(Facts {
            enabled_by_default: true,
            ..Facts::default()
        }),
        extra: Box::default(),
        definition: None,
        version: VersionCell::default(),
    })
}

impl Draft {
    pub(crate) fn about(mut self, description: &str) -> Self {
        self.0.description = description.into();
        self
    }

    pub(crate) fn taking(mut self, parameters: &str) -> Self {
        self.0.parameters = JsonText::parse(parameters).unwrap();
        self
    }

    pub(crate) fn category(mut self, id: &str) -> Self {
        self.0.category = Some(id.into());
        self
    }

    pub(crate) fn tag(mut self, tag: &str) -> Self {
        self.0.facts_mut().tags.push(tag.into());
        self
    }

    pub(crate) fn off(mut self) -> Self {
        self.0.facts_mut().enabled_by_default = false;
        self
    }

    /// A definition, with the activity that it names.
    pub(crate) fn defined(mut self, activity: Option<&str>) -> Self {
        let choice = ActivityChoice {
            named: activity.map(Into::into),
            ..ActivityChoice::default()
        };
        self.0.definition = Some(Arc::new(choice));
        self
    }

    /// A definition with an activity of its own for a profile.
    pub(crate) fn defined_for(mut self, profile: &str, activity: &str) -> Self {
        let by_profile = [(profile.to_owned(), activity.into())].into();
        self.0.definition = Some(Arc::new(ActivityChoice {
            named: None,
            by_profile,
        }));
        self
    }

    pub(crate) fn internal(mut self) -> Self {
        self.0.facts_mut().internal_only = true;
        self
    }

    pub(crate) fn asks(mut self, permission: Permission) -> Self {
        self.0.facts_mut().required_permission = permission;
        self
    }

    pub(crate) fn risky(mut self) -> Self {
        self.0.facts_mut().requires_approval = true;
        self
    }
}

/// A manifest as a decoder would give it: tools and categories sorted, digest over everything but
/// `generated_at`.
pub(crate) fn manifest(scenario: &str, tools: &[Draft]) -> Manifest {
    let mut tools: Vec<_> = tools
        .iter()
        .map(|draft| Arc::new(draft.0.clone()))
        .collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let mut categories: Vec<Arc<str>> = tools
        .iter()
        .filter_map(|tool| tool.category.clone())
        .collect();
    categories.sort();
    categories.dedup();
    let category = |id: Arc<str>| Category {
        name: id.clone(),
        id,
        description: None,
        icon: None,
        display_order: None,
        extra: Box::default(),
    };
    let content = format!("{scenario} {tools:?}");
    Manifest {
        protocol_version: "1.0".into(),
        scenario: ScenarioInfo {
            name: scenario.into(),
            version: "1".into(),
            ..ScenarioInfo::default()
        },
        tools,
        categories: categories.into_iter().map(category).collect(),
        generated_at: None,
        extra: Box::default(),
        relayed: RelayedOffers::default(),
        digest: Digest(xxh3_128(content.as_bytes())),
        sent_findings: callsheet::model::SentFindings::default(),
        held: Arc::default(),
    }
}

/// A published offer.
pub(crate) fn offer(scenario: &str, tools: &[Draft]) -> Offer {
    Offer {
        manifest: Arc::new(manifest(scenario, tools)),
        visibility: Visibility::Published,
    }
}

/// The same offer with another standing.
pub(crate) fn standing(mut offer: Offer, standing: Visibility) -> Offer {
    offer.visibility = standing;
    offer
}

pub(crate) fn scenario(name: &str) -> ScenarioName {
    name.parse().unwrap()
}

pub(crate) fn id(text: &str) -> ToolId {
    text.parse().unwrap()
}

/// Inputs with published scenarios of plain tools.
pub(crate) fn inputs(scenarios: &[(&str, &[&str])]) -> Inputs {
    let mut inputs = Inputs::default();
    for (name, tools) in scenarios {
        let tools: Vec<_> = tools.iter().map(|name| tool(name)).collect();
        put(&mut inputs, offer(name, &tools));
    }
    inputs
}

/// Puts an offer under the name it gives itself.
pub(crate) fn put(inputs: &mut Inputs, offer: Offer) {
    inputs
        .offers
        .insert(offer.manifest.scenario.name.parse().unwrap(), offer);
}

/// The change that puts an offer under the name it gives itself.
pub(crate) fn change(offer: Offer) -> Change {
    Change::Offer(offer.manifest.scenario.name.parse().unwrap(), Some(offer))
}

/// Nothing set; to be changed with struct update syntax.
pub(crate) fn inherit() -> Settings {
    Settings::default()
}

pub(crate) fn alias(name: &str) -> Settings {
    Settings {
        alias: Some(PublishedName::alias(name).unwrap()),
        ..inherit()
    }
}

pub(crate) fn enabled(on: bool) -> Settings {
    Settings {
        enabled: Some(on),
        ..inherit()
    }
}

pub(crate) fn priority(priority: i32) -> Settings {
    Settings {
        priority: Some(priority),
        ..inherit()
    }
}

/// Preferences of scope, target and settings.
pub(crate) fn preferences(all: &[(&str, &str, Settings)]) -> Arc<PreferenceSet> {
    let mut set = PreferenceSet::default();
    for (scope, target, settings) in all {
        let scope: Scope = scope.parse().unwrap();
        let target: PreferenceTarget = target.parse().unwrap();
        set.set(scope, target, settings.clone());
    }
    Arc::new(set)
}

/// A catalog of these scenarios with these preferences.
pub(crate) fn catalog(scenarios: &[(&str, &[&str])], wanted: &[(&str, &str, Settings)]) -> Catalog {
    build(&Inputs {
        preferences: preferences(wanted),
        ..inputs(scenarios)
    })
}

/// The published names, each with its tool's identity, in order: `name = scenario/tool`.
pub(crate) fn names(catalog: &Catalog) -> Vec<String> {
    let tools = catalog.entries().flat_map(|entry| entry.tools.iter());
    tools
        .map(|tool| format!("{} = {}", tool.name, tool.id))
        .collect()
}

/// The findings as `code scenario/tool: message`.
pub(crate) fn finding_lines(catalog: &Catalog) -> Vec<String> {
    let line = |finding: &callsheet::model::Finding| {
        let scenario = finding.scenario.as_ref().map_or("", ScenarioName::as_str);
        let tool = finding.tool.as_deref().unwrap_or("");
        format!("{} {scenario}/{tool}: {}", finding.code, finding.message)
    };
    catalog.findings().iter().map(line).collect()
}
