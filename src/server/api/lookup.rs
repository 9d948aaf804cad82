//! Finds the tool that a client named, or makes a refusal that suggests names.

use std::sync::Arc;

use http::StatusCode;

use crate::catalog::{
    self, Catalog, NameLookup, RevisionHistory, Snapshot, ViewQuery, Visibility, find_in_scope,
    nearest, out_of_bounds,
};
use crate::model::{
    Finding, FindingCode, Health, NameRef, PreferenceTarget, ScenarioState, ViewTool,
};
use crate::server::ServerState;
use crate::server::http::error::{Problem, excerpt};
use crate::server::http::next_step::NextStep;

/// Largest number of similar names in a refusal.
const CANDIDATES: usize = catalog::NEAR;

/// Finds the tool `name` in the scope of `query`, even if the list leaves it out. 404 suggests
/// similar names, 409 has the names of all tools that it could mean.
pub(in crate::server) fn resolve_tool(
    catalog: &Catalog,
    query: &ViewQuery,
    name: &str,
) -> Result<Arc<ViewTool>, Problem> {
    match find_in_scope(catalog, query, &NameRef::parse(name)) {
        NameLookup::One(tool) => Ok(tool),
        NameLookup::Ambiguous(tools) => {
            let candidates: Vec<String> = tools.iter().map(|tool| tool.id.to_string()).collect();
            let detail = format!("several tools are called `{}`", excerpt(name));
            let problem = Problem::new(StatusCode::CONFLICT, detail)
                .and_next(&format!("use {}", candidates.join(" or ")));
            Err(problem.with_member("candidates", candidates))
        }
        NameLookup::None => Err(unknown_tool(catalog, name)),
    }
}

/// The finding by which the tool `name` is left out of the list, though its scenario has it.
pub(in crate::server) fn left_out(snapshot: &Snapshot, name: &str) -> Option<Finding> {
    let name = NameRef::parse(name);
    let held = match &name {
        NameRef::Id(_) => snapshot.catalog.find_held(&name),
        NameRef::Bare(text) => snapshot.catalog.find_held_as(text),
    };
    if held.is_some() {
        return held;
    }
    let is_it = |finding: &&Finding| match (&name, &finding.scenario, &finding.tool) {
        (NameRef::Id(id), Some(scenario), Some(tool)) => {
            id.scenario == *scenario && id.tool == *tool
        }
        (NameRef::Bare(name), Some(_), Some(tool)) => **name == **tool,
        _ => false,
    };
    let leaves_out = |code| {
        matches!(
            code,
            FindingCode::ToolQuarantined | FindingCode::ToolUnavailable | FindingCode::TaskRequired
        )
    };
    snapshot
        .findings
        .iter()
        .filter(|finding| leaves_out(finding.code))
        .find(is_it)
        .cloned()
}

/// The refusal of a name that the list does not have; for a tool that is left out, with the reason.
pub(in crate::server) fn with_left_out(
    problem: Problem,
    snapshot: &Snapshot,
    name: &str,
) -> Problem {
    if problem.status_and_detail().0 != StatusCode::NOT_FOUND {
        return problem;
    }
    let Some(finding) = left_out(snapshot, name) else {
        return problem;
    };
    let problem = Problem::not_found(format!(
        "`{}` is left out of the list: {}",
        excerpt(name),
        finding.message
    ));
    problem
        .and_next_if(finding.hint.as_deref())
        .with_member("code", finding.code.as_str())
}

/// The tool that had this name in the latest earlier list that had the name.
pub(in crate::server) fn remembered(
    history: &RevisionHistory,
    query: &ViewQuery,
    name: &str,
) -> Option<Arc<ViewTool>> {
    let name = NameRef::parse(name);
    history
        .newest_first()
        .find_map(|catalog| match find_in_scope(catalog, query, &name) {
            NameLookup::One(tool) => Some(tool),
            NameLookup::Ambiguous(_) | NameLookup::None => None,
        })
}

/// The refusal of a name that no tool has, with the scenarios whose tools are not known. A name
/// with its scenario is of no other one.
pub(in crate::server) fn with_unanswered(
    problem: Problem,
    snapshot: &Snapshot,
    name: &str,
) -> Problem {
    let meant = NameRef::parse(name);
    let may_be_of = |health: &&Arc<Health>| match &meant {
        NameRef::Id(id) => id.scenario == health.name,
        NameRef::Bare(_) => true,
    };
    let unanswered = |health: &&Arc<Health>| {
        !snapshot
            .catalog
            .entries()
            .any(|entry| entry.name == health.name)
            && !matches!(
                health.state,
                ScenarioState::Blocked | ScenarioState::Pending | ScenarioState::Removed
            )
    };
    let all: Vec<&Arc<Health>> = snapshot
        .health
        .values()
        .filter(may_be_of)
        .filter(unanswered)
        .collect();
    if all.is_empty() {
        return problem;
    }
    let described: Vec<String> = all
        .iter()
        .take(CANDIDATES)
        .map(|health| format!("{} ({})", health.name, in_one_clause(&health.reason)))
        .collect();
    let more = if all.len() > CANDIDATES {
        " and more"
    } else {
        ""
    };
    let has = if all.len() == 1 {
        "scenario has"
    } else {
        "scenarios have"
    };
    let text = match &meant {
        NameRef::Id(_) => format!("its scenario has not answered: {}", described.join(", ")),
        NameRef::Bare(_) => format!(
            "{} {has} not answered, and it may be theirs: {}{more}",
            all.len(),
            described.join(", ")
        ),
    };
    let names: Vec<&str> = all.iter().map(|health| health.name.as_str()).collect();
    problem.and_detail(&text).with_member("unanswered", names)
}

/// The reason of a state up to what it quotes of a program: one error does not hold several others,
/// and what stands behind a semicolon is the next step of an error.
fn in_one_clause(reason: &str) -> &str {
    let is_plain = |at: &usize| reason[..*at].matches('`').count().is_multiple_of(2);
    let end = reason.match_indices("; ").map(|(at, _)| at).find(is_plain);
    end.map_or(reason, |end| &reason[..end])
}

/// Refuses a profile that is not known if others are, and names those. A typing error must not look
/// like a profile that may see few tools, or all. The name is kept for a finding.
pub(in crate::server) fn check_profile(
    shared: &ServerState,
    catalog: &Catalog,
    query: &ViewQuery,
) -> Result<(), Problem> {
    catalog.unknown_profile(query).map_or(Ok(()), |unknown| {
        shared.refused_profiles.add(&unknown.name);
        let problem = Problem::from_error(StatusCode::FORBIDDEN, &unknown)
            .with_member("code", "unknown_profile");
        Err(problem.with_member("known", unknown.known))
    })
}

/// Whether a tool of this name exists in the scope, even if it is not listed.
pub(in crate::server) fn exists(catalog: &Catalog, query: &ViewQuery, name: &str) -> bool {
    matches!(
        find_in_scope(catalog, query, &NameRef::parse(name)),
        NameLookup::One(_)
    )
}

/// Refuses a tool that is not published or that the client's profile may not see, with the reason.
pub(in crate::server) fn check_visible(
    catalog: &Catalog,
    query: &ViewQuery,
    tool: &ViewTool,
) -> Result<(), Problem> {
    if let Some(step) = out_of_bounds(catalog, query, tool) {
        return Err(Problem::not_found(format!(
            "`{}` is not for this profile: {}",
            tool.id, step.outcome
        )));
    }
    let scenario = &tool.id.scenario;
    match catalog.entry(scenario).map(|entry| &entry.visibility) {
        Some(Visibility::Published) | None => Ok(()),
        Some(Visibility::Withdrawn(reason) | Visibility::Hidden(reason)) => {
            let detail = format!("`{}` is not published now: {reason}", tool.id);
            Err(Problem::not_found(detail).with_member("reason", reason.as_str()))
        }
    }
}

/// 404 for a name that no tool has, with similar names.
pub(in crate::server) fn unknown_tool(catalog: &Catalog, name: &str) -> Problem {
    let candidates = match NameRef::parse(name) {
        NameRef::Id(id) if catalog.entry(&id.scenario).is_some() => {
            let tools = catalog
                .entries()
                .filter(|entry| entry.name == id.scenario)
                .flat_map(|entry| entry.tools.iter());
            nearest(
                &id.tool,
                tools.map(|tool| (tool.tool.name.as_ref(), &tool.id)),
            )
        }
        NameRef::Id(id) => {
            let tools = all(catalog).filter(|tool| tool.tool.name == id.tool);
            tools
                .take(CANDIDATES)
                .map(|tool| tool.id.to_string())
                .collect()
        }
        NameRef::Bare(name) => {
            let published = all(catalog).map(|tool| (tool.name.as_str(), &tool.name));
            nearest(&name, published)
        }
    };
    let list = NextStep::request("GET", "/api/v1/tools?include_disabled=true");
    let next = match candidates.first() {
        Some(_) => format!("did you mean {}?", candidates.join(" or ")),
        None => format!("{list} lists those that are offered now"),
    };
    let problem =
        Problem::not_found(format!("no tool is called `{}`", excerpt(name))).and_next(&next);
    problem
        .with_member("candidates", candidates)
        .with_next(list)
}

/// That no tool or scenario is a target of preferences now, with near names.
pub(in crate::server) struct UnmatchedTarget(pub(in crate::server) String);

impl UnmatchedTarget {
    /// The same for a preference that was set.
    pub(in crate::server) fn kept(self) -> String {
        let end = if self.0.ends_with('?') { "" } else { "." };
        format!(
            "{}{end} The preference is kept, and holds when there is one",
            self.0
        )
    }
}

/// Whether no tool or scenario is a target of preferences now; `None` if one is.
pub(in crate::server) fn unmatched_target(
    snapshot: &Snapshot,
    target: &PreferenceTarget,
) -> Option<UnmatchedTarget> {
    let catalog = &snapshot.catalog;
    let tools = || catalog.entries().flat_map(|entry| entry.tools.iter());
    let (what, near) = match target {
        PreferenceTarget::Scenario(name) => {
            if snapshot.health.contains_key(name) {
                return None;
            }
            let names = snapshot
                .health
                .keys()
                .map(|known| (known.as_str(), format!("scenario:{known}")));
            (
                format!("no scenario is called `{name}` now"),
                nearest(name.as_str(), names),
            )
        }
        PreferenceTarget::Tool(id) => {
            let entry = catalog.entry(&id.scenario);
            if entry.is_some_and(|entry| entry.tool(&id.tool).is_some()) {
                return None;
            }
            let own = entry.into_iter().flat_map(|entry| entry.tools.iter());
            let mut near = nearest(
                &id.tool,
                own.map(|tool| (&*tool.tool.name, format!("tool:{}", tool.id))),
            );
            if near.is_empty() {
                let others = tools()
                    .filter(|tool| tool.tool.name == id.tool || *tool.name.as_str() == *id.tool);
                near = others
                    .take(CANDIDATES)
                    .map(|tool| format!("tool:{}", tool.id))
                    .collect();
            }
            (format!("no tool is called `{id}` now"), near)
        }
        PreferenceTarget::Category(id) => {
            let of_tools = || tools().filter_map(|tool| tool.tool.category.as_deref());
            if of_tools().any(|known| *known == **id) {
                return None;
            }
            let names = of_tools().map(|known| (known, format!("category:{known}")));
            (
                format!("no tool has the category `{id}` now"),
                nearest(id, names),
            )
        }
        PreferenceTarget::Tag(tag) => {
            let of_tools = || {
                tools()
                    .flat_map(|tool| tool.tool.facts.tags.iter())
                    .map(|known| &**known)
            };
            if of_tools().any(|known| *known == **tag) {
                return None;
            }
            let names = of_tools().map(|known| (known, format!("tag:{known}")));
            (
                format!("no tool has the tag `{tag}` now"),
                nearest(tag, names),
            )
        }
    };
    let suggestion = if near.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", near.join(" or "))
    };
    Some(UnmatchedTarget(format!("{what}{suggestion}")))
}

fn all(catalog: &Catalog) -> impl Iterator<Item = &Arc<ViewTool>> {
    catalog
        .entries()
        .filter(|entry| entry.is_published())
        .flat_map(|entry| entry.tools.iter())
}
