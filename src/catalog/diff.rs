//! Compares two catalogs: for one client, by published name, with the reason of each difference.
//!
//! Pure, and as cheap as the change: entries that both catalogs share are not looked at. Only a
//! query for which tools compete (by relevance or for places), whose outcome every tool takes part
//! in, compares whole views.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::ordmap::DiffItem;

use super::definition_diff::ChangedDefinition;
use super::explain::out_of_bounds;
use super::findings::unmatched_preference;
use super::scoped_catalog::ScopedCatalog;
use super::{Catalog, CatalogEntry, View, ViewQuery, Visibility};
use crate::model::{
    DefinitionVersion, Finding, PreferenceTarget, PublishedName, ScenarioName, Scope, Tool, ToolId,
    ViewTool,
};

/// The scenarios whose entries differ between two catalogs. Computed once, used for every client.
#[derive(Debug, Clone, Default)]
pub struct Touched(BTreeMap<ScenarioName, [Option<Arc<CatalogEntry>>; 2]>);

/// What a client's list gained, lost and has changed. Each in order of the names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CatalogDiff {
    /// Tools whose published names were not in the list.
    pub added: Vec<ToolChange>,
    /// Tools whose published names are not in the list any more.
    pub removed: Vec<ToolChange>,
    /// Published names whose tools are others, or have changed.
    pub changed: Vec<ToolChange>,
    /// Published scenarios that changed without any of that: their own description, their
    /// categories, tools that are switched off. Only listed for clients that do not filter by
    /// category, tag or relevance.
    pub scenarios: Vec<ScenarioName>,
}

/// A tool that was added, removed or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolChange {
    /// The name it is or was published under.
    pub name: PublishedName,
    /// Which tool that is or was.
    pub id: ToolId,
    /// Why, in one clause without a full stop.
    pub reason: String,
    /// The version of its definition.
    pub version: DefinitionVersion,
}

impl Touched {
    /// The entries that differ.
    pub fn between(old: &Catalog, new: &Catalog) -> Self {
        let pairs = old.entries.diff(&new.entries).map(|item| match item {
            DiffItem::Add(name, entry) => (name.clone(), [None, Some(Arc::clone(entry))]),
            DiffItem::Remove(name, entry) => (name.clone(), [Some(Arc::clone(entry)), None]),
            DiffItem::Update {
                old: (name, old),
                new: (_, new),
            } => (name.clone(), [Some(Arc::clone(old)), Some(Arc::clone(new))]),
        });
        Self(pairs.collect())
    }

    /// Whether no entry differs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tools that both catalogs have with other definitions, whether or not they are listed.
    pub fn changed_definitions(&self) -> Vec<ChangedDefinition> {
        let pairs = self
            .0
            .values()
            .filter_map(|[old, new]| Some((old.as_ref()?, new.as_ref()?)));
        let changed = pairs.flat_map(|(old, new)| {
            new.tools.iter().filter_map(|tool| {
                let was = old.tool(&tool.id.tool)?.offered();
                let is = tool.offered();
                let differs = !Arc::ptr_eq(was, is) && was != is;
                differs.then(|| ChangedDefinition::between(&tool.id, was, is))?
            })
        });
        changed.collect()
    }

    /// The tools that only the former catalog has, whether or not they were listed.
    pub(crate) fn gone_tools(&self) -> impl Iterator<Item = &Arc<ViewTool>> {
        let pairs = self.0.values();
        pairs.flat_map(|[old, new]| only_in(old.as_ref(), new.as_ref()))
    }

    /// The tools that only the later catalog has.
    pub(crate) fn new_tools(&self) -> impl Iterator<Item = &Arc<ViewTool>> {
        let pairs = self.0.values();
        pairs.flat_map(|[old, new]| only_in(new.as_ref(), old.as_ref()))
    }

    fn entries(&self) -> impl Iterator<Item = &Arc<CatalogEntry>> {
        self.0.values().flatten().flatten()
    }
}

/// The tools of an entry that another one of the same scenario has not.
fn only_in<'a>(
    entry: Option<&'a Arc<CatalogEntry>>,
    other: Option<&'a Arc<CatalogEntry>>,
) -> impl Iterator<Item = &'a Arc<ViewTool>> {
    let tools = entry.into_iter().flat_map(|entry| entry.tools.iter());
    tools.filter(move |tool| other.is_none_or(|other| other.tool(&tool.id.tool).is_none()))
}

impl CatalogDiff {
    /// Whether the list is the same.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.changed.is_empty()
            && self.scenarios.is_empty()
    }
}

impl Catalog {
    /// Whether scopes or profiles may see another list although no entry differs.
    pub fn scopes_differ(&self, next: &Self) -> bool {
        let same = Arc::ptr_eq(&self.preferences, &next.preferences)
            && Arc::ptr_eq(&self.profiles, &next.profiles);
        !same
    }
}

/// The differences for the client of `query`. `touched` is of the same two catalogs.
pub fn difference(
    old: &Catalog,
    new: &Catalog,
    touched: &Touched,
    query: &ViewQuery,
) -> CatalogDiff {
    let lenses = [
        ScopedCatalog::for_query(old, query),
        ScopedCatalog::for_query(new, query),
    ];
    let mut found = CatalogDiff::default();
    let mut narrowed = query.clone();
    if !query.competes()
        && let Some(mut concerned) = concerned(&lenses, touched, query)
    {
        if !query.scenarios.is_empty() {
            concerned.retain(|name| query.scenarios.contains(name));
        }
        if concerned.is_empty() {
            return found;
        }
        narrowed.scenarios = concerned;
    }
    let views = [View::select(old, &narrowed), View::select(new, &narrowed)];
    compare(&lenses, &views, query, &mut found);
    rest(&lenses, touched, query, &mut found);
    found
}

/// The scenarios that may differ for a client without a limit; `None` if all may differ.
fn concerned(
    lenses: &[ScopedCatalog<'_>; 2],
    touched: &Touched,
    query: &ViewQuery,
) -> Option<BTreeSet<ScenarioName>> {
    let [old, new] = lenses;
    let mut names: BTreeSet<ScenarioName> = touched.0.keys().cloned().collect();
    if old.catalog.bounds(query) != new.catalog.bounds(query) {
        return None;
    }
    let profile = new
        .catalog
        .profile_of(query)
        .map(|name| Scope::Profile(name.to_owned()));
    if old.catalog.profile_of(query) != new.catalog.profile_of(query) {
        return None;
    }
    let own = [query.chat.clone().map(Scope::Chat), profile];
    let same = |scope: &Scope| {
        old.catalog
            .preferences
            .scope(scope)
            .eq(new.catalog.preferences.scope(scope))
    };
    if !Arc::ptr_eq(&old.catalog.preferences, &new.catalog.preferences)
        && !own.iter().flatten().all(same)
    {
        if old.spans_scenarios || new.spans_scenarios {
            return None;
        }
        names.extend(old.spoken_of.iter().chain(&new.spoken_of).cloned());
    }
    // A newcomer may take or free a name in this scope alone.
    let moved = |a: &ScopedCatalog<'_>, b: &ScopedCatalog<'_>| -> Vec<ScenarioName> {
        let differs = a
            .renamed
            .iter()
            .filter(|(id, name)| b.renamed.get(*id) != Some(*name));
        differs.map(|(id, _)| id.scenario.clone()).collect()
    };
    names.extend(moved(old, new));
    names.extend(moved(new, old));
    Some(names)
}

/// Compares what two views show, name by name.
fn compare(
    lenses: &[ScopedCatalog<'_>; 2],
    views: &[View; 2],
    query: &ViewQuery,
    found: &mut CatalogDiff,
) {
    let [was, is] = views.each_ref().map(|view| {
        view.tools()
            .map(|tool| (tool.name.as_str(), tool))
            .collect::<BTreeMap<&str, &Arc<ViewTool>>>()
    });
    let by_id = |tools: &BTreeMap<&str, &Arc<ViewTool>>| -> BTreeMap<ToolId, PublishedName> {
        tools
            .values()
            .map(|tool| (tool.id.clone(), tool.name.clone()))
            .collect()
    };
    let named_before = by_id(&was);
    let named_now = by_id(&is);
    let named = |tool: &ViewTool, reason| {
        let version = tool.tool.version();
        ToolChange {
            name: tool.name.clone(),
            id: tool.id.clone(),
            reason,
            version,
        }
    };
    for (name, tool) in &was {
        match is.get(name) {
            None => {
                let other = named_now
                    .get(&tool.id)
                    .map(|name| format!("published as `{name}` now"));
                let reason = other.unwrap_or_else(|| absence(&lenses[1], query, tool, &WORDS_NOW));
                found.removed.push(named(tool, reason));
            }
            Some(now) if !alike(tool, now) => {
                found.changed.push(named(now, what_changed(tool, now)));
            }
            Some(_) => {}
        }
    }
    for (_, tool) in is.iter().filter(|(name, _)| !was.contains_key(*name)) {
        let other = named_before
            .get(&tool.id)
            .map(|name| format!("published as `{name}` before"));
        let reason = other.unwrap_or_else(|| absence(&lenses[0], query, tool, &WORDS_BEFORE));
        found.added.push(named(tool, reason));
    }
}

/// The published scenarios that differ although none of their names does.
fn rest(
    lenses: &[ScopedCatalog<'_>; 2],
    touched: &Touched,
    query: &ViewQuery,
    found: &mut CatalogDiff,
) {
    let by_content = query.pinned_only || !(query.categories.is_empty() && query.tags.is_empty());
    if by_content || query.competes() {
        return;
    }
    let bounds = lenses[1].catalog.bounds(query);
    let named: BTreeSet<&ScenarioName> = [&found.added, &found.removed, &found.changed]
        .into_iter()
        .flatten()
        .map(|named| &named.id.scenario)
        .collect();
    let is_published = |entry: &Arc<CatalogEntry>| entry.is_published();
    let unnamed = touched.0.iter().filter(|(name, pair)| {
        (query.scenarios.is_empty() || query.scenarios.contains(*name))
            && bounds.allows_scenario(name)
            && pair.iter().flatten().any(is_published)
            && !named.contains(*name)
    });
    found.scenarios = unnamed.map(|(name, _)| name.clone()).collect();
}

/// The texts of one reason, for the present and for the past.
struct Words {
    unknown: &'static str,
    not_offered: &'static str,
    internal: &'static str,
    filtered: &'static str,
    before: &'static str,
}

const WORDS_NOW: Words = Words {
    unknown: "its scenario is not known any more",
    not_offered: "its scenario does not offer it any more",
    internal: "its scenario marks it as internal now",
    filtered: "it does not fit the filter any more",
    before: "",
};

const WORDS_BEFORE: Words = Words {
    unknown: "its scenario is new",
    not_offered: "its scenario offers it now",
    internal: "its scenario does not mark it as internal any more",
    filtered: "it fits the filter now",
    before: "before: ",
};

/// Why a tool is not in the list of a catalog that a client sees through `lens`.
fn absence(lens: &ScopedCatalog<'_>, query: &ViewQuery, tool: &ViewTool, words: &Words) -> String {
    let Some(entry) = lens.catalog.entry(&tool.id.scenario) else {
        return words.unknown.to_owned();
    };
    if let Visibility::Withdrawn(reason) | Visibility::Hidden(reason) = &entry.visibility {
        return format!("{}{reason}", words.before);
    }
    let Some(offered) = entry.tool(&tool.id.tool) else {
        return entry.held_reason(&tool.id.tool).map_or_else(
            || words.not_offered.to_owned(),
            |reason| format!("{}{reason}", words.before),
        );
    };
    let seen = lens.tool(offered);
    if seen.is_internal() && !query.include_internal {
        words.internal.to_owned()
    } else if !seen.effective.enabled && !query.include_disabled {
        format!(
            "{}switched off by {}",
            words.before, seen.effective.enabled_source
        )
    } else if let Some(step) = out_of_bounds(lens.catalog, query, &seen) {
        format!("{}{}", words.before, step.outcome)
    } else {
        words.filtered.to_owned()
    }
}

fn alike(was: &Arc<ViewTool>, is: &Arc<ViewTool>) -> bool {
    Arc::ptr_eq(was, is)
        || (was.id == is.id
            && was.effective == is.effective
            && was.execution == is.execution
            && was.overridden == is.overridden
            && same(&was.tool, &is.tool))
}

fn same(was: &Arc<Tool>, is: &Arc<Tool>) -> bool {
    Arc::ptr_eq(was, is) || was == is
}

/// What of a tool is not as it was.
fn what_changed(was: &ViewTool, is: &ViewTool) -> String {
    let mut reasons = Vec::new();
    if was.id != is.id {
        reasons.push(format!("it is {} now, not {}", is.id, was.id));
    } else if !same(was.offered(), is.offered()) {
        let old = &**was.offered();
        let new = &**is.offered();
        let parts = [
            (old.description != new.description, "description"),
            (old.parameters != new.parameters, "parameters"),
            (old.category != new.category, "category"),
            (old.metadata != new.metadata, "metadata"),
            (old.extra != new.extra, "further members"),
        ];
        let parts: Vec<_> = parts
            .into_iter()
            .filter(|(differs, _)| *differs)
            .map(|(_, part)| part)
            .collect();
        reasons.push(format!("its scenario changed its {}", parts.join(", ")));
    }
    if was.overridden.is_some() || is.overridden.is_some() {
        let parts = [
            (was.tool.description != is.tool.description, "description"),
            (was.tool.parameters != is.tool.parameters, "parameters"),
        ];
        let replaced = parts.into_iter().filter(|(differs, _)| *differs);
        let replaced: Vec<_> = replaced.map(|(_, part)| part).collect();
        if !replaced.is_empty() && same(was.offered(), is.offered()) {
            reasons.push(format!(
                "an operator changed its {}",
                replaced.join(" and its ")
            ));
        }
    }
    let old = &was.effective;
    let new = &is.effective;
    if old.enabled != new.enabled {
        let switched = if new.enabled { "on" } else { "off" };
        reasons.push(format!("switched {switched} by {}", new.enabled_source));
    }
    if old.requires_approval != new.requires_approval {
        let needs = if new.requires_approval {
            "requires approval now"
        } else {
            "requires no approval any more"
        };
        reasons.push(format!("{needs}, by {}", new.approval_source));
    }
    if old.priority != new.priority {
        reasons.push(format!("its priority is {} now", new.priority));
    }
    if old.pinned != new.pinned {
        reasons.push(
            if new.pinned {
                "it is always listed now"
            } else {
                "it is not always listed any more"
            }
            .to_owned(),
        );
    }
    if reasons.is_empty() {
        reasons.push("its settings come from elsewhere now".to_owned());
    }
    reasons.join("; ")
}

/// The findings of the merge about all that differs, before and now, in the global scope. Those
/// about the rest are the same in both, but for the names of rivals that a message mentions.
pub fn findings_between(old: &Catalog, new: &Catalog, touched: &Touched) -> [Vec<Finding>; 2] {
    let of = |catalog: &Catalog| -> Vec<Finding> {
        touched
            .0
            .keys()
            .flat_map(|name| catalog.findings_of_tools(name))
            .collect()
    };
    let mut findings = [of(old), of(new)];
    for (catalog, findings) in [old, new].into_iter().zip(&mut findings) {
        findings.extend(catalog.unfit_overrides_of_scopes());
    }
    if touched
        .entries()
        .any(|entry| !entry.manifest.categories.is_empty())
    {
        // A change of one scenario decides also whose definition is shown for the others.
        findings[0].extend(old.shadowed_categories());
        findings[1].extend(new.shadowed_categories());
    }
    if old.scopes_differ(new) {
        findings[0].extend(old.unmatched_preferences());
        findings[1].extend(new.unmatched_preferences());
    } else if !touched.is_empty() {
        for (scope, target, _) in new.preferences.iter() {
            // Its match can only have changed with an entry that it names.
            if touched.entries().any(|entry| speaks_of(target, entry)) {
                for (catalog, findings) in [old, new].into_iter().zip(&mut findings) {
                    if catalog.unknown_scope(scope).is_none() && !matches(catalog, target) {
                        findings.push(unmatched_preference(scope, target));
                    }
                }
            }
        }
    }
    findings
}

fn matches(catalog: &Catalog, target: &PreferenceTarget) -> bool {
    match target {
        PreferenceTarget::Scenario(name) => catalog.entries.contains_key(name),
        PreferenceTarget::Tool(id) => catalog.tool(id).is_some(),
        PreferenceTarget::Category(_) | PreferenceTarget::Tag(_) => {
            catalog.entries().any(|entry| speaks_of(target, entry))
        }
    }
}

fn speaks_of(target: &PreferenceTarget, entry: &CatalogEntry) -> bool {
    match target {
        PreferenceTarget::Scenario(name) => *name == entry.name,
        PreferenceTarget::Tool(id) => id.scenario == entry.name,
        PreferenceTarget::Category(_) | PreferenceTarget::Tag(_) => entry.has(target),
    }
}
