//! Which activity runs a definition: decided with each catalog, from the tools that are in it.
//!
//! An activity that a definition names is used as it is. Without one, the tool with the name of the
//! definition is its activity, if exactly one scenario offers such a tool; otherwise the definition
//! is latent. A withdrawn scenario keeps its tools here: a definition does not become latent
//! because its scenario is down. A tool that is an activity is listed as its definition only.
//!
//! Never looks at whether a tool is enabled: a call decides that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use super::{Catalog, CatalogEntry, Visibility};
use crate::model::{
    BoundActivity, DEFINITIONS, Execution, Finding, FindingCode, ScenarioName, Tool, ToolId,
    ViewTool,
};

static NAME: LazyLock<Option<ScenarioName>> = LazyLock::new(|| DEFINITIONS.parse().ok());

/// The tools that a name of an activity may mean.
enum FoundActivity {
    None,
    One(ToolId),
    Several(Vec<ToolId>),
}

/// How the calls of a tool get their results if it has nothing to do with definitions.
pub(super) fn own_execution(tool: &Tool) -> Execution {
    if tool.is_latent() || tool.definition.is_some() {
        Execution::Latent
    } else {
        Execution::Own
    }
}

impl Catalog {
    /// The entry with the definitions of this daemon, if it has any.
    pub(super) fn definitions(&self) -> Option<&Arc<CatalogEntry>> {
        let entry = self.entries.get(NAME.as_ref()?)?;
        entry
            .tools
            .iter()
            .any(|tool| tool.tool.definition.is_some())
            .then_some(entry)
    }

    /// Whether a definition has an activity of its own for callers of this profile.
    pub(super) fn has_activities_for(&self, profile: &str) -> bool {
        let choices = self
            .definitions()
            .into_iter()
            .flat_map(|entry| entry.tools.iter());
        choices
            .filter_map(|tool| tool.tool.definition.as_ref())
            .any(|choice| choice.by_profile.contains_key(profile))
    }

    /// The profiles for which definitions have activities of their own; one may come several times.
    pub(super) fn profiles_of_activities(&self) -> impl Iterator<Item = &str> {
        let choices = self
            .definitions()
            .into_iter()
            .flat_map(|entry| entry.tools.iter());
        let choices = choices.filter_map(|tool| tool.tool.definition.as_ref());
        choices
            .flat_map(|choice| choice.by_profile.keys())
            .map(String::as_str)
    }

    /// The tools that run a definition for callers of this profile alone, each with that
    /// definition. Other callers have them as tools of their own.
    pub(super) fn activities_for(&self, profile: &str) -> BTreeMap<ToolId, ToolId> {
        let mut activities = BTreeMap::new();
        for tool in self
            .definitions()
            .into_iter()
            .flat_map(|entry| entry.tools.iter())
        {
            let named = tool
                .tool
                .definition
                .as_ref()
                .and_then(|choice| choice.by_profile.get(profile));
            let execution = named.map(|named| self.activity_or_latent(named));
            if let Some(activity) = execution.as_ref().and_then(Execution::activity) {
                activities
                    .entry(activity.clone())
                    .or_insert_with(|| tool.id.clone());
            }
        }
        activities
    }

    /// The activity with this name, or latent if it is not there.
    pub(super) fn activity_or_latent(&self, named: &str) -> Execution {
        self.find_activity(named)
            .bound(named)
            .unwrap_or(Execution::Latent)
    }

    /// Every tool that can be the activity of a definition, in order.
    pub fn activities(&self) -> impl Iterator<Item = &ToolId> {
        let tools = self.entries().flat_map(|entry| entry.tools.iter());
        tools.map(|tool| &tool.id).filter(|id| self.can_run(id))
    }

    /// Decides about every definition, and about the tools that are their activities.
    pub(super) fn bind(&mut self) {
        let entry = self.definitions().map(Arc::clone);
        if entry.is_none() && self.activities.is_empty() {
            return;
        }
        let mut definitions = BTreeMap::new();
        let mut activities = BTreeMap::<ToolId, ToolId>::new();
        for tool in entry.iter().flat_map(|entry| entry.tools.iter()) {
            if tool.tool.definition.is_none() {
                continue;
            }
            let execution = self.decide(tool);
            if let Some(activity) = execution.activity().cloned() {
                activities
                    .entry(activity)
                    .or_insert_with(|| tool.id.clone());
            }
            definitions.insert(tool.id.clone(), execution);
        }
        let concerned = self
            .activities
            .iter()
            .chain(activities.keys())
            .chain(definitions.keys());
        let concerned: BTreeSet<ScenarioName> = concerned.map(|id| id.scenario.clone()).collect();
        for name in concerned {
            let execution =
                |tool: &ViewTool| match (definitions.get(&tool.id), activities.get(&tool.id)) {
                    (Some(decided), _) => decided.clone(),
                    (None, Some(definition)) => Execution::ActivityOf(Box::new(definition.clone())),
                    (None, None) => own_execution(&tool.tool),
                };
            if let Some(entry) = self
                .entries
                .get(&name)
                .and_then(|entry| entry.run_otherwise(execution))
            {
                self.put(name, Some(Arc::new(entry)));
            }
        }
        self.activities = Arc::new(activities.into_keys().collect());
    }

    fn decide(&self, tool: &ViewTool) -> Execution {
        match tool
            .tool
            .definition
            .as_ref()
            .and_then(|choice| choice.named.as_ref())
        {
            Some(named) => self
                .find_activity(named)
                .bound(named)
                .unwrap_or_else(|| Execution::Missing(Arc::clone(named))),
            None => self.activity_or_latent(&tool.id.tool),
        }
    }

    fn find_activity(&self, named: &str) -> FoundActivity {
        let by_identity = named
            .contains('/')
            .then(|| named.parse::<ToolId>().ok())
            .flatten();
        let claimants = self.names.claimants(named).filter(|id| *id.tool == *named);
        let mut found: BTreeSet<&ToolId> =
            by_identity.as_ref().into_iter().chain(claimants).collect();
        found.retain(|id| self.can_run(id));
        let mut found: Vec<ToolId> = found.into_iter().cloned().collect();
        match found.len() {
            0 => FoundActivity::None,
            1 => found.pop().map_or(FoundActivity::None, FoundActivity::One),
            _ => FoundActivity::Several(found),
        }
    }

    /// Whether a tool is there whose own scenario runs it.
    fn can_run(&self, id: &ToolId) -> bool {
        let entry = self.entries.get(&id.scenario);
        let entry = entry.filter(|entry| !matches!(entry.visibility, Visibility::Hidden(_)));
        entry
            .and_then(|entry| entry.tool(&id.tool))
            .is_some_and(|tool| own_execution(&tool.tool) == Execution::Own)
    }

    /// What an operator should know about how the calls of a tool get their results.
    pub(super) fn activity_findings(&self, tool: &ViewTool) -> Vec<Finding> {
        let about = |code, message: String| {
            Finding::new(code, message)
                .of_scenario(&tool.id.scenario)
                .of_tool(Arc::clone(&tool.id.tool))
        };
        if let Execution::ActivityOf(definition) = &tool.execution {
            let message =
                format!("it is the activity of `{definition}`, and is listed as that only");
            return vec![about(FindingCode::ActivityBound, message)];
        }
        let Some(choice) = &tool.tool.definition else {
            return Vec::new();
        };
        let name_one = "name one that is there as `activity = \"SCENARIO/TOOL\"`";
        let mut findings = Vec::new();
        if let Some(named) = &choice.named
            && let Some(why) = self.find_activity(named).why_not(named)
        {
            let message = format!("it cannot be called: {why}");
            findings.push(
                about(FindingCode::ActivityMissing, message)
                    .hint(format!("{name_one}, or take the key out")),
            );
        } else if choice.named.is_none()
            && let found @ FoundActivity::Several(_) = self.find_activity(&tool.id.tool)
            && let Some(why) = found.why_not(&tool.id.tool)
        {
            findings.push(
                about(
                    FindingCode::ActivityFallback,
                    format!("it is latent: {why}"),
                )
                .hint(name_one),
            );
        }
        for (profile, named) in &choice.by_profile {
            let found = self.find_activity(named);
            if let Some(why) = found.why_not(named) {
                let message = format!("it is latent for the profile `{profile}`: {why}");
                findings.push(about(FindingCode::ActivityFallback, message).hint(name_one));
            } else if let FoundActivity::One(activity) = found {
                let message = format!(
                    "the profile `{profile}` has `{activity}` listed as this tool only, which it runs"
                );
                findings.push(about(FindingCode::ActivityBound, message));
            }
        }
        findings
    }
}

impl FoundActivity {
    /// The execution by the only tool that was found.
    fn bound(self, named: &str) -> Option<Execution> {
        let Self::One(tool) = self else { return None };
        Some(Execution::By(Box::new(BoundActivity {
            tool,
            name: named.into(),
        })))
    }

    /// Why no tool is meant.
    fn why_not(&self, named: &str) -> Option<String> {
        match self {
            Self::One(_) => None,
            Self::None => Some(format!("no scenario offers the activity `{named}`")),
            Self::Several(tools) => {
                let tools: Vec<String> = tools.iter().take(8).map(ToString::to_string).collect();
                Some(format!(
                    "several tools are called `{named}`: {}",
                    tools.join(", ")
                ))
            }
        }
    }
}
