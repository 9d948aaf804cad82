//! Why a tool is or is not in the list: every decision, in the order it was taken, with its source.

use std::sync::Arc;

use serde_json::Value;

use super::entry::is_listed;
use super::findings;
use super::prefer::Rule;
use super::profiles::beyond_level;
use super::scoped_catalog::ScopedCatalog;
use super::{Catalog, CatalogEntry, NamingStyle, ViewQuery, Visibility};
use crate::model::{
    Execution, Finding, NameRef, OverrideValue, ParameterOverride, PublishedName, Settings, Tool,
    ViewTool,
};

/// One decision about a tool, for `explain`: the topic, the outcome and the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainStep {
    /// What was decided: `offered`, `standing`, `enabled`, `approval`, `internal`, `execution`,
    /// `profile`, `name`, `alias`, `mcp-name`, `priority`, `pinned`, `description`, `parameters`.
    pub subject: &'static str,
    /// The outcome and its reason, for people.
    pub outcome: String,
    /// Where it came from, as [`crate::model::Provenance`] writes it; `catalog` for decisions of
    /// the merge itself.
    pub source: String,
}

/// Why a tool is or is not in the list.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The tool with the settings of the client's scope.
    pub tool: Arc<ViewTool>,
    /// Whether a list for this scope contains it (before limits).
    pub listed: bool,
    /// The one cause, in one clause: `in the list`, or `not in the list: ...`.
    pub verdict: String,
    /// Every decision, in the order it was taken. For each setting the manifest comes first, then
    /// the preferences from the widest to the narrowest.
    pub steps: Vec<ExplainStep>,
    /// The findings about the tool and about the visibility of its scenario.
    pub findings: Vec<Finding>,
}

const MANIFEST: &str = "manifest";
const CATALOG: &str = "catalog";
/// The subject that tags of tools without hints count for.
const APPROVAL: &str = "approval";

/// Explains one tool in the scope of `query`, as `catalog` has it (by its identity). A tool that
/// the catalog does not have is explained as no longer offered. The filters and limits of `query`
/// do not matter.
pub fn explain(catalog: &Catalog, query: &ViewQuery, tool: &ViewTool) -> Explanation {
    let lens = ScopedCatalog::for_query(catalog, query);
    let offered = catalog
        .entry(&tool.id.scenario)
        .and_then(|entry| Some((entry, entry.tool(&tool.id.tool)?)));
    let Some((entry, tool)) = offered else {
        let entry = catalog.entry(&tool.id.scenario);
        let held = entry.and_then(|entry| entry.held_reason(&tool.id.tool));
        let outcome = held.map_or_else(
            || format!("scenario {} does not offer it any more", tool.id.scenario),
            str::to_owned,
        );
        let verdict = format!("not in the list: {outcome}");
        let steps = vec![ExplainStep {
            subject: "offered",
            outcome,
            source: CATALOG.to_owned(),
        }];
        return Explanation {
            tool: Arc::new(tool.clone()),
            listed: false,
            verdict,
            steps,
            findings: catalog
                .find_held(&NameRef::Id(tool.id.clone()))
                .into_iter()
                .collect(),
        };
    };
    let tool = lens.tool(tool);
    let mut steps = vec![offer(entry), standing(entry)];
    steps.extend(enabled(&lens, &tool));
    steps.extend(approval(&lens, &tool));
    steps.push(internal(&tool));
    steps.extend(execution(&tool));
    let outside = out_of_bounds(catalog, query, &tool);
    let in_bounds = outside.is_none();
    let verdict = verdict(entry, &tool, outside.as_ref());
    steps.extend(outside);
    steps.extend(names(&lens, entry, &tool));
    steps.extend(priority(&lens, &tool));
    steps.extend(pinned(&lens, &tool));
    steps.extend(overrides(&lens, &tool));
    let mut findings: Vec<Finding> = findings::of_standing(entry).into_iter().collect();
    if !matches!(entry.visibility, Visibility::Hidden(_)) {
        findings::of_tool(&lens, &tool, &mut findings);
    }
    findings.sort_unstable();
    let listed = entry.is_published() && is_listed(&tool) && in_bounds;
    Explanation {
        tool: shown(entry, tool),
        listed,
        verdict,
        steps,
        findings,
    }
}

/// The tool under the name that is shown. One of a hidden scenario has no published name, so the
/// one that its scenario gave it stands for it.
fn shown(entry: &CatalogEntry, tool: Arc<ViewTool>) -> Arc<ViewTool> {
    if !matches!(entry.visibility, Visibility::Hidden(_)) {
        return tool;
    }
    Arc::new(ViewTool {
        name: PublishedName::plain(&tool.id.tool),
        ..ViewTool::clone(&tool)
    })
}

/// Whether the tool is in the list, and of several causes that it is not the one that counts first.
fn verdict(entry: &CatalogEntry, tool: &ViewTool, outside: Option<&ExplainStep>) -> String {
    let cause = match &entry.visibility {
        Visibility::Withdrawn(reason) => format!("{} is withdrawn: {reason}", entry.name),
        Visibility::Hidden(reason) => format!("{} is hidden: {reason}", entry.name),
        Visibility::Published => match outside {
            Some(step) => step.outcome.clone(),
            None if !tool.effective.enabled => {
                tool.effective.enabled_source.why_disabled(&entry.name)
            }
            None if tool.execution.is_activity() => {
                format!("it is the {}, which is listed", tool.execution)
            }
            None if tool.tool.facts.internal_only => format!("{} marks it as internal", entry.name),
            None => return "in the list".to_owned(),
        },
    };
    format!("not in the list: {cause}")
}

fn step(
    subject: &'static str,
    outcome: impl Into<String>,
    source: impl Into<String>,
) -> ExplainStep {
    ExplainStep {
        subject,
        outcome: outcome.into(),
        source: source.into(),
    }
}

fn offer(entry: &CatalogEntry) -> ExplainStep {
    let manifest = &entry.manifest;
    let made = manifest.generated_at.map_or_else(
        || "not dated".to_owned(),
        |at| at.strftime("generated %Y-%m-%dT%H:%M:%SZ").to_string(),
    );
    let version = match manifest.protocol_version.as_ref() {
        "" => String::new(),
        version => format!(", protocol {version}"),
    };
    step(
        "offered",
        format!(
            "scenario {} offers it in its manifest ({made}{version})",
            entry.name
        ),
        MANIFEST,
    )
}

fn standing(entry: &CatalogEntry) -> ExplainStep {
    let outcome = match &entry.visibility {
        Visibility::Published => "its tools are published".to_owned(),
        Visibility::Withdrawn(reason) => {
            format!("the scenario is withdrawn, its tools keep their names: {reason}")
        }
        Visibility::Hidden(reason) => format!("the scenario is hidden: {reason}"),
    };
    step("standing", outcome, format!("scenario {}", entry.name))
}

fn enabled(lens: &ScopedCatalog<'_>, tool: &ViewTool) -> Vec<ExplainStep> {
    let default = if tool.tool.facts.enabled_by_default {
        "enabled"
    } else {
        "disabled"
    };
    let value = |settings: &Settings| {
        settings
            .enabled
            .map(|on| if on { "enabled" } else { "disabled" }.to_owned())
    };
    let winner = lens
        .rules
        .choices(&tool.id, &tool.tool)
        .enabled
        .map(|choice| choice.rule);
    voices(
        lens,
        tool,
        "enabled",
        &format!("{default} by default"),
        value,
        winner,
    )
}

fn approval(lens: &ScopedCatalog<'_>, tool: &ViewTool) -> Vec<ExplainStep> {
    let needs = if tool.tool.facts.requires_approval {
        "requires"
    } else {
        "does not require"
    };
    let value = |settings: &Settings| {
        settings
            .approval
            .map(|approval| approval.as_str().to_owned())
    };
    let winner = lens
        .rules
        .choices(&tool.id, &tool.tool)
        .approval
        .map(|choice| choice.rule);
    voices(
        lens,
        tool,
        APPROVAL,
        &format!("the manifest {needs} approval"),
        value,
        winner,
    )
}

fn priority(lens: &ScopedCatalog<'_>, tool: &ViewTool) -> Vec<ExplainStep> {
    let value = |settings: &Settings| settings.priority.map(|priority| priority.to_string());
    let winner = lens
        .rules
        .choices(&tool.id, &tool.tool)
        .priority
        .map(|choice| choice.rule);
    voices(lens, tool, "priority", "0 by default", value, winner)
}

/// Only listed if a preference sets it: a manifest has no such setting.
fn pinned(lens: &ScopedCatalog<'_>, tool: &ViewTool) -> Vec<ExplainStep> {
    let value = |settings: &Settings| {
        settings.pinned.map(|on| {
            if on {
                "always listed"
            } else {
                "not always listed"
            }
            .to_owned()
        })
    };
    let winner = lens
        .rules
        .choices(&tool.id, &tool.tool)
        .pinned
        .map(|choice| choice.rule);
    if winner.is_none() {
        return Vec::new();
    }
    voices(
        lens,
        tool,
        "pinned",
        "not always listed by default",
        value,
        winner,
    )
}

/// What operators replaced of the tool. Only listed if a preference replaces a part.
fn overrides(lens: &ScopedCatalog<'_>, tool: &ViewTool) -> Vec<ExplainStep> {
    let Some(overridden) = &tool.overridden else {
        return Vec::new();
    };
    let source = |rule: &Rule| format!("{} {}", rule.place.0, rule.place.1);
    let active = lens.rules.overrides(&tool.id);
    let mut steps = Vec::new();
    if let Some((text, rule)) = active.description {
        let offered = &overridden.offered.description;
        let outcome = format!("shown as {text:?}; its scenario says {offered:?}");
        steps.push(step("description", outcome, source(rule)));
    }
    if let Some((parameters, rule)) = active.parameters {
        for (name, parameter) in parameters.iter() {
            let unfit = overridden
                .unfit
                .iter()
                .find(|unfit| unfit.parameter == *name);
            let outcome = match unfit {
                Some(unfit) => format!("does not fit: {unfit}"),
                None => replaced(name, parameter, &overridden.offered),
            };
            steps.push(step("parameters", outcome, source(rule)));
        }
    }
    steps
}

/// What replaces parts of one parameter, with the text that its scenario has.
fn replaced(name: &str, parameter: &ParameterOverride, offered: &Tool) -> String {
    let mut parts = Vec::new();
    if let Some(text) = &parameter.description {
        let schema: Value = serde_json::from_str(offered.parameters.get()).unwrap_or_default();
        let own = schema["properties"][name]["description"]
            .as_str()
            .unwrap_or_default();
        parts.push(format!("shown as {text:?}; its scenario says {own:?}"));
    }
    match &parameter.value {
        Some(OverrideValue::Fixed(value)) => {
            parts.push(format!("fixed to {} and not shown", value.get()));
        }
        Some(OverrideValue::Default(value)) => {
            parts.push(format!("{} is sent if it is left out", value.get()));
        }
        None => {}
    }
    format!("`{name}`: {}", parts.join("; "))
}

fn internal(tool: &ViewTool) -> ExplainStep {
    let outcome = if tool.tool.facts.internal_only {
        "the scenario marks it as internal: LLMs never see it, programs may request it"
    } else {
        "not marked as internal"
    };
    step("internal", outcome, MANIFEST)
}

/// How its calls get their results, where not simply from its own scenario.
fn execution(tool: &ViewTool) -> Option<ExplainStep> {
    let outcome = match &tool.execution {
        Execution::Own => return None,
        Execution::ActivityOf(definition) => {
            format!("it is the activity of {definition}, and is listed as that only")
        }
        Execution::By(bound) => format!("explicit: {} runs its calls", bound.tool),
        Execution::Latent => "latent: the caller's model produces the result".to_owned(),
        Execution::Missing(name) => {
            format!("it cannot be called: its activity `{name}` is not there")
        }
    };
    Some(step("execution", outcome, CATALOG))
}

/// Why the bounds of the client exclude a tool, if they do.
pub fn out_of_bounds(catalog: &Catalog, query: &ViewQuery, tool: &ViewTool) -> Option<ExplainStep> {
    let bounds = catalog.bounds(query);
    let required = tool.tool.facts.required_permission;
    let outcome = if let Some(unknown) = catalog.unknown_profile(query) {
        unknown.to_string()
    } else if !bounds.allows_scenario(&tool.id.scenario) {
        format!("the profile may not see scenario {}", tool.id.scenario)
    } else if !bounds.allows_permission(required) {
        beyond_level(query, &bounds, required)
    } else {
        return None;
    };
    let source = match (catalog.profile_of(query), query.permission) {
        (None, Some(level)) => format!("permission:{level}"),
        (name, _) => format!("profile:{}", name.unwrap_or_default()),
    };
    Some(step("profile", outcome, source))
}

/// The manifest's value of a setting, then every preference that sets it, and which of them is
/// active.
fn voices(
    lens: &ScopedCatalog<'_>,
    tool: &ViewTool,
    subject: &'static str,
    default: &str,
    value: impl Fn(&Settings) -> Option<String>,
    winner: Option<&Rule>,
) -> Vec<ExplainStep> {
    let verdict = |holds| if holds { "in effect" } else { "overridden" };
    let assumed = lens
        .rules
        .assumed(&tool.tool)
        .filter(|_| subject == APPROVAL);
    let mut steps: Vec<ExplainStep> = lens
        .rules
        .voices(&tool.id, &tool.tool)
        .chain(assumed)
        .filter_map(|(_, rule)| {
            let holds = winner.is_some_and(|winner| std::ptr::eq(winner, rule));
            let (scope, target) = &*rule.place;
            Some(step(
                subject,
                format!("{}; {}", value(&rule.settings)?, verdict(holds)),
                format!("{scope} {target}"),
            ))
        })
        .collect();
    steps.push(step(
        subject,
        format!("{default}; {}", verdict(winner.is_none())),
        MANIFEST,
    ));
    steps.reverse();
    steps
}

fn names(lens: &ScopedCatalog<'_>, entry: &CatalogEntry, tool: &ViewTool) -> Vec<ExplainStep> {
    let mut steps = Vec::new();
    if matches!(entry.visibility, Visibility::Hidden(_)) {
        steps.push(step(
            "name",
            "the tools of a hidden scenario have no published name",
            CATALOG,
        ));
        return steps;
    }
    if let Some((alias, rule)) = lens.rules.alias(&tool.id) {
        let given = if *alias == tool.name {
            "given"
        } else {
            "refused"
        };
        let (scope, target) = &*rule.place;
        steps.push(step(
            "alias",
            format!("alias `{alias}`: {given}"),
            format!("{scope} {target}"),
        ));
    }
    let mut of_name = Vec::new();
    findings::of_name(lens, tool, &mut of_name);
    for finding in of_name {
        steps.push(step(
            "name",
            format!("{}: {}", finding.code, finding.message),
            CATALOG,
        ));
    }
    if steps.is_empty() {
        let reason = match lens.names.style {
            NamingStyle::OnCollision => "no other tool has this name",
            NamingStyle::Always => "every tool is qualified (naming.style = \"always\")",
        };
        steps.push(step(
            "name",
            format!("published as `{}`: {reason}", tool.name),
            CATALOG,
        ));
    }
    // An alias is the name for MCP clients, too.
    let is_aliased = lens
        .rules
        .alias(&tool.id)
        .is_some_and(|(alias, _)| *alias == tool.name);
    let for_mcp = PublishedName::for_mcp(&tool.id);
    if for_mcp != tool.name && !is_aliased {
        steps.push(step(
            "mcp-name",
            format!("MCP clients may call it `{for_mcp}`"),
            CATALOG,
        ));
    }
    steps
}
