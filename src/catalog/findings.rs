//! Findings of the merge. They are made at each request from the content of the catalog, so that
//! many colliding tools cost no work without a request.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::name_claim::ClaimKind;
use super::overrides::unfit_parameters;
use super::scoped_catalog::ScopedCatalog;
use super::{Catalog, CatalogEntry, UnknownProfile, Visibility, pins};
use crate::model::{
    Finding, FindingCode, PreferenceTarget, Provenance, PublishedName, ScenarioName, Scope, ToolId,
    UnfitOverride, ViewTool,
};

/// The most other tools that a finding names. If there are more, its text ends with `and more`.
const NAMED_RIVALS: usize = 8;

/// Every code that findings about one tool, or about all tools of one scenario, have.
const OF_TOOLS: [FindingCode; 12] = [
    FindingCode::OverrideDoesNotFit,
    FindingCode::NameCollision,
    FindingCode::NameRepaired,
    FindingCode::AliasRefused,
    FindingCode::Aliased,
    FindingCode::Disabled,
    FindingCode::Withdrawn,
    FindingCode::InternalOnly,
    FindingCode::ActivityBound,
    FindingCode::ActivityMissing,
    FindingCode::ActivityFallback,
    FindingCode::ToolHeld,
];

/// Takes findings of the merge one by one. Those that it does not want are not even made.
pub(crate) trait FindingSink {
    /// Whether it wants findings with this code.
    fn wants(&self, code: FindingCode) -> bool;

    /// Takes a finding with this code about this scenario.
    fn take(
        &mut self,
        code: FindingCode,
        scenario: Option<&ScenarioName>,
        finding: impl FnOnce() -> Finding,
    );
}

/// Every finding.
impl FindingSink for Vec<Finding> {
    fn wants(&self, _: FindingCode) -> bool {
        true
    }

    fn take(
        &mut self,
        _: FindingCode,
        _: Option<&ScenarioName>,
        finding: impl FnOnce() -> Finding,
    ) {
        self.push(finding());
    }
}

/// The findings with a code that is wanted.
struct OfCodes<F> {
    wanted: F,
    findings: Vec<Finding>,
}

impl<F: Fn(FindingCode) -> bool> FindingSink for OfCodes<F> {
    fn wants(&self, code: FindingCode) -> bool {
        (self.wanted)(code)
    }

    fn take(
        &mut self,
        code: FindingCode,
        _: Option<&ScenarioName>,
        finding: impl FnOnce() -> Finding,
    ) {
        if self.wants(code) {
            self.findings.push(finding());
        }
    }
}

/// Gives a finding that is made already.
fn give(sink: &mut impl FindingSink, finding: Finding) {
    let scenario = finding.scenario.clone();
    sink.take(finding.code, scenario.as_ref(), || finding);
}

impl Catalog {
    /// Every finding of the merge in the global scope, in order, with those about preferences of
    /// any scope that match no target.
    pub fn findings(&self) -> Vec<Finding> {
        self.findings_where(None, |_| true)
    }

    /// Those of them that are about `scenario` (or all) and have a code that is wanted. What is not
    /// wanted is, as far as that can be known, not even made.
    pub fn findings_where(
        &self,
        scenario: Option<&ScenarioName>,
        wanted: impl Fn(FindingCode) -> bool,
    ) -> Vec<Finding> {
        let mut findings = OfCodes {
            wanted,
            findings: Vec::new(),
        };
        self.give_findings(scenario, &mut findings);
        findings.findings.sort_unstable();
        findings.findings
    }

    /// Gives those that are about `scenario` (or all) to `sink`, in no order.
    pub(crate) fn give_findings(
        &self,
        scenario: Option<&ScenarioName>,
        sink: &mut impl FindingSink,
    ) {
        let is_about =
            |finding: &Finding| scenario.is_none() || finding.scenario.as_ref() == scenario;
        if sink.wants(FindingCode::PreferenceUnmatched) || sink.wants(FindingCode::ProfileOptional)
        {
            let unmatched = self.unmatched_preferences().into_iter();
            unmatched
                .filter(is_about)
                .for_each(|finding| give(sink, finding));
        }
        if sink.wants(FindingCode::OverrideDoesNotFit) {
            let unfit = self.unfit_overrides_of_scopes().into_iter();
            unfit
                .filter(is_about)
                .for_each(|finding| give(sink, finding));
        }
        if OF_TOOLS.iter().any(|code| sink.wants(*code)) {
            let lens = ScopedCatalog::global(self);
            let one = scenario.map(|name| self.entry(name));
            let all = self.entries().filter(|_| scenario.is_none());
            for entry in one.flatten().into_iter().chain(all) {
                of_entry(&lens, entry, sink);
            }
        }
        if sink.wants(FindingCode::CategoryIgnored) {
            let shadowed = self.shadowed_categories().into_iter();
            shadowed
                .filter(is_about)
                .for_each(|finding| give(sink, finding));
        }
    }

    /// The findings about overrides in the scopes of profiles and conversations that do not fit
    /// their tools. Those of the global scope are among the findings of tools.
    pub(super) fn unfit_overrides_of_scopes(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (scope, target, settings) in self.preferences.iter() {
            let PreferenceTarget::Tool(id) = target else {
                continue;
            };
            if *scope == Scope::Global || settings.parameters.is_none() {
                continue;
            }
            let Some(offered) = self.tool(id).map(|tool| tool.offered()) else {
                continue;
            };
            for unfit in unfit_parameters(settings, offered) {
                let mut finding = unfit_override(id, &unfit);
                finding.message = format!("{} (scope {scope})", finding.message);
                findings.push(finding.of_scenario(&id.scenario).of_tool(id.tool.clone()));
            }
        }
        findings
    }

    /// What was decided about a scenario's tools and categories in the global scope, in order.
    pub fn findings_of(&self, scenario: &ScenarioName) -> Vec<Finding> {
        let mut findings = self.findings_of_tools(scenario);
        let shadowed = self.shadowed_categories().into_iter();
        findings.extend(shadowed.filter(|finding| finding.scenario.as_ref() == Some(scenario)));
        findings.sort_unstable();
        findings
    }

    /// What was decided about a scenario and concerns none of its tools alone, in order. None is
    /// made for a single tool.
    pub(crate) fn findings_of_scenario(&self, scenario: &ScenarioName) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self
            .entry(scenario)
            .and_then(|entry| of_standing(entry))
            .into_iter()
            .collect();
        let shadowed = self.shadowed_categories().into_iter();
        findings.extend(shadowed.filter(|finding| finding.scenario.as_ref() == Some(scenario)));
        findings.sort_unstable();
        findings
    }

    /// The listed tools of this name that have another one because it is the alias of `id`, in
    /// order. Only tools that claim the name are looked at.
    pub(crate) fn displaced_by<'a>(
        &'a self,
        id: &'a ToolId,
        alias: &'a PublishedName,
    ) -> impl Iterator<Item = &'a ToolId> {
        let lens = ScopedCatalog::global(self);
        let is_displaced = move |other: &&ToolId| {
            let entry = self
                .entry(&other.scenario)
                .filter(|entry| entry.is_published());
            let tool = entry.and_then(|entry| entry.tool(&other.tool));
            let is_named = |tool: &&Arc<ViewTool>| {
                *tool.id.tool == *alias.as_str() && !tool.execution.is_activity()
            };
            let mut names = Vec::new();
            if let Some(tool) = tool.filter(is_named) {
                of_name(&lens, tool, &mut names);
            }
            let mut collisions = names
                .iter()
                .filter(|finding| finding.code == FindingCode::NameCollision);
            collisions.any(|finding| finding.others.contains(id))
        };
        self.names
            .rivals(alias.as_str(), ClaimKind::Plain, id)
            .filter(is_displaced)
    }

    /// What was decided about a scenario's tools in the global scope.
    pub(super) fn findings_of_tools(&self, scenario: &ScenarioName) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Some(entry) = self.entry(scenario) {
            of_entry(&ScopedCatalog::global(self), entry, &mut findings);
        }
        findings
    }

    /// Preferences without effect, and profiles that clients may leave out.
    pub(super) fn unmatched_preferences(&self) -> Vec<Finding> {
        let mut categories = BTreeSet::new();
        let mut tags = BTreeSet::new();
        let is_group = |target: &PreferenceTarget| {
            matches!(
                target,
                PreferenceTarget::Category(_) | PreferenceTarget::Tag(_)
            )
        };
        let any_group = self
            .preferences
            .iter()
            .any(|(_, target, _)| is_group(target));
        let entries = self.entries().filter(|_| any_group);
        for tool in entries.flat_map(|entry| entry.tools.iter()) {
            categories.extend(tool.tool.category.as_deref());
            tags.extend(tool.tool.facts.tags.iter().map(|tag| &**tag));
        }
        let matches = |target: &PreferenceTarget| match target {
            PreferenceTarget::Scenario(name) => self.entries.contains_key(name),
            PreferenceTarget::Tool(id) => self.tool(id).is_some() || self.is_held(id),
            PreferenceTarget::Category(id) => categories.contains(id.as_str()),
            PreferenceTarget::Tag(tag) => tags.contains(tag.as_str()),
        };
        let unmatched = self.preferences.iter().filter_map(|(scope, target, _)| {
            match self.unknown_scope(scope) {
                Some(unknown) => Some(preference_of_unknown_profile(scope, target, &unknown)),
                None => (!matches(target)).then(|| unmatched_preference(scope, target)),
            }
        });
        unmatched
            .chain(self.has_optional_profiles().then(optional_profiles))
            .collect()
    }
}

/// The finding that clients are bounded only if they say so.
fn optional_profiles() -> Finding {
    let message = "profiles are configured, but clients that name none see and call every tool";
    Finding::new(FindingCode::ProfileOptional, message)
        .hint("set `permissions.default_profile` to the profile that holds for them")
}

/// The finding that a preference has no effect because its profile sees no tools.
fn preference_of_unknown_profile(
    scope: &Scope,
    target: &PreferenceTarget,
    unknown: &UnknownProfile,
) -> Finding {
    let message =
        format!("the {scope} preference for {target} has no effect but is kept: {unknown}");
    about(
        Finding::new(FindingCode::PreferenceUnmatched, message),
        target,
    )
}

pub(super) fn unmatched_preference(scope: &Scope, target: &PreferenceTarget) -> Finding {
    let message = format!(
        "the {scope} preference for {target} has no effect: no scenario offers it now; it is kept"
    );
    about(
        Finding::new(FindingCode::PreferenceUnmatched, message),
        target,
    )
}

/// With the scenario and the tool that a target names.
fn about(finding: Finding, target: &PreferenceTarget) -> Finding {
    match target {
        PreferenceTarget::Scenario(name) => finding.of_scenario(name),
        PreferenceTarget::Tool(id) => finding.of_scenario(&id.scenario).of_tool(id.tool.clone()),
        PreferenceTarget::Category(_) | PreferenceTarget::Tag(_) => finding,
    }
}

fn of_entry(lens: &ScopedCatalog<'_>, entry: &CatalogEntry, sink: &mut impl FindingSink) {
    if let Some(withdrawn) = of_standing(entry) {
        give(sink, withdrawn);
        return;
    }
    for held in entry.manifest.held.iter() {
        give(sink, pins::of_held(&entry.name, held));
    }
    for tool in entry.tools.iter() {
        of_tool(lens, tool, sink);
    }
}

/// The finding that the tools of an entry are not in the list, and why. `None` for a published
/// entry and for one without tools.
pub(super) fn of_standing(entry: &CatalogEntry) -> Option<Finding> {
    let count = entry.tools.len();
    let tools = if count == 1 {
        "its tool is".to_owned()
    } else {
        format!("its {count} tools are")
    };
    let message = match &entry.visibility {
        Visibility::Withdrawn(reason) => {
            format!("{tools} withdrawn from the list, keeping the names: {reason}")
        }
        Visibility::Hidden(reason) => format!("{tools} not in the list: {reason}"),
        Visibility::Published => return None,
    };
    (count > 0).then(|| Finding::new(FindingCode::Withdrawn, message).of_scenario(&entry.name))
}

/// What was decided about one tool of a scenario that claims names, in the scope of `lens`.
pub(super) fn of_tool(lens: &ScopedCatalog<'_>, tool: &ViewTool, sink: &mut impl FindingSink) {
    let scenario = Some(&tool.id.scenario);
    if !tool.effective.enabled {
        sink.take(FindingCode::Disabled, scenario, || {
            about_tool(tool, disabled(lens, tool))
        });
    }
    of_overrides(tool, sink);
    if tool.tool.facts.internal_only {
        let why = "its scenario marks it as internal, so LLMs never see it";
        sink.take(FindingCode::InternalOnly, scenario, || {
            about_tool(tool, Finding::new(FindingCode::InternalOnly, why))
        });
    }
    // The name of an activity is not in lists.
    if !tool.execution.is_activity() {
        of_name(lens, tool, sink);
    }
    for finding in lens.catalog.activity_findings(tool) {
        give(sink, finding);
    }
}

fn about_tool(tool: &ViewTool, finding: Finding) -> Finding {
    finding
        .of_scenario(&tool.id.scenario)
        .of_tool(tool.id.tool.clone())
}

/// The finding that a tool is switched off.
fn disabled(lens: &ScopedCatalog<'_>, tool: &ViewTool) -> Finding {
    let why = match &tool.effective.enabled_source {
        Provenance::Manifest => "its manifest does not enable it by default".to_owned(),
        source @ Provenance::Preference(_) => {
            format!("switched off by the preference {source}")
        }
        source @ Provenance::UnfitOverride(_) => {
            let why = source.why_disabled(&tool.id.scenario);
            return Finding::new(FindingCode::Disabled, format!("withheld: {why}"))
                .hint(correcting(&tool.id));
        }
    };
    let hint = format!("to enable it: `{}`", enabling(&lens.scope, &tool.id));
    Finding::new(FindingCode::Disabled, why).hint(hint)
}

/// Gives the findings about overrides that do not fit a tool.
fn of_overrides(tool: &ViewTool, sink: &mut impl FindingSink) {
    let unfit = tool
        .overridden
        .iter()
        .flat_map(|overridden| overridden.unfit.iter());
    for unfit in unfit {
        sink.take(
            FindingCode::OverrideDoesNotFit,
            Some(&tool.id.scenario),
            || about_tool(tool, unfit_override(&tool.id, unfit)),
        );
    }
}

fn unfit_override(id: &ToolId, unfit: &UnfitOverride) -> Finding {
    let consequence = if unfit.is_fixed {
        "the tool is neither listed nor called"
    } else {
        "the tool is listed without this override"
    };
    let message = format!("an override does not fit: {unfit}; {consequence}");
    Finding::new(FindingCode::OverrideDoesNotFit, message).hint(correcting(id))
}

/// The command that takes the overrides of parameters away.
fn correcting(id: &ToolId) -> String {
    format!(
        "set `parameters` again as they fit the tool, or reset them: `callsheet prefs reset tool:{id} --setting parameters`"
    )
}

/// The command that enables a tool in a scope.
fn enabling(scope: &Scope, id: &ToolId) -> String {
    let scope = if *scope == Scope::Global {
        String::new()
    } else {
        format!(" --scope {scope}")
    };
    format!("callsheet prefs set tool:{id} --enabled true{scope}")
}

/// Why a tool has the name it has, where that is not simply its own.
pub(super) fn of_name(lens: &ScopedCatalog<'_>, tool: &ViewTool, sink: &mut impl FindingSink) {
    let id = &tool.id;
    let scenario = Some(&id.scenario);
    let name = &tool.name;
    let plain = PublishedName::plain_shared(&id.tool);
    match lens.rules.alias(id) {
        Some((alias, rule)) if alias == name => {
            let (scope, target) = &*rule.place;
            sink.take(FindingCode::Aliased, scenario, || {
                let message = format!("published as `{name}` by the preference {scope} {target}");
                about_tool(tool, Finding::new(FindingCode::Aliased, message))
            });
            return;
        }
        Some((alias, _)) => sink.take(FindingCode::AliasRefused, scenario, || {
            about_tool(tool, alias_refused(lens, tool, alias))
        }),
        None if lens.names.style == super::NamingStyle::OnCollision && plain != *name => {
            sink.take(FindingCode::NameCollision, scenario, || {
                let collision = collision(lens, tool, &plain).hint(format!(
                    "`callsheet prefs set tool:{id} --alias NAME` gives it a name of its own"
                ));
                about_tool(tool, collision)
            });
        }
        None => {}
    }
    if name.is_reserved() {
        sink.take(FindingCode::NameCollision, scenario, || {
            about_tool(tool, collision(lens, tool, &PublishedName::qualified(id)))
        });
    }
    if plain.as_str() != &*id.tool {
        sink.take(FindingCode::NameRepaired, scenario, || {
            let message = format!(
                "the name `{}` is not one that every LLM vendor accepts; published as `{name}`",
                id.tool
            );
            about_tool(tool, Finding::new(FindingCode::NameRepaired, message))
        });
    }
}

/// The finding that a tool does not get the alias that a preference gives it.
fn alias_refused(lens: &ScopedCatalog<'_>, tool: &ViewTool, alias: &PublishedName) -> Finding {
    let NameObstacle { why, rivals } = obstacle(lens, &tool.id, alias);
    let message = format!(
        "the alias `{alias}` is not available: {why}; published as `{}`",
        tool.name
    );
    let refused = Finding::new(FindingCode::AliasRefused, message).with_others(rivals);
    refused.hint("choose an alias that no other tool has")
}

/// The finding that a tool does not get the name it wants.
fn collision(lens: &ScopedCatalog<'_>, tool: &ViewTool, wanted: &PublishedName) -> Finding {
    let NameObstacle { why, rivals } = obstacle(lens, &tool.id, wanted);
    let message = format!(
        "`{wanted}` is not available: {why}; published as `{}`",
        tool.name
    );
    Finding::new(FindingCode::NameCollision, message).with_others(rivals)
}

/// What keeps a tool from a name.
struct NameObstacle {
    why: String,
    /// The tools that have or want the name, as many as are named.
    rivals: Vec<ToolId>,
}

/// Why a tool does not get the name it wants.
fn obstacle(lens: &ScopedCatalog<'_>, id: &ToolId, wanted: &PublishedName) -> NameObstacle {
    if wanted.is_reserved() {
        let why = "names of this shape are kept for tools whose qualified names meet".to_owned();
        return NameObstacle {
            why,
            rivals: Vec::new(),
        };
    }
    let kinds = [
        (ClaimKind::Qualified, "it is the qualified name of"),
        (ClaimKind::Alias, "it is the alias of"),
        (ClaimKind::Plain, "it is also the name of"),
    ];
    for (kind, what) in kinds {
        let mut all = lens.names.rivals(wanted.as_str(), kind, id);
        let rivals: Vec<ToolId> = all.by_ref().take(NAMED_RIVALS).cloned().collect();
        if !rivals.is_empty() {
            let more = if all.next().is_some() {
                " and more"
            } else {
                ""
            };
            let named: Vec<String> = rivals.iter().map(ToString::to_string).collect();
            return NameObstacle {
                why: format!("{what} {}{more}", named.join(", ")),
                rivals,
            };
        }
    }
    NameObstacle {
        why: "something else claims it".to_owned(),
        rivals: Vec::new(),
    }
}
