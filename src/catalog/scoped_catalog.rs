//! The catalog as one scope sees it: effective settings and names with the preferences of a profile
//! and a chat on top.
//!
//! A scope without preferences of its own shares all data of the catalog. Otherwise only the tools
//! that its preferences match are built again, and only the names that its aliases touch are
//! resolved again, on a persistent copy of the claims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::entry::ContentHasher;
use super::merge::concerned_tools;
use super::overrides::ToolAsShown;
use super::prefer::{RuleLayer, RuleStack};
use super::resolve::NameResolver;
use super::{Catalog, CatalogEntry, Revision, ViewQuery, Visibility};
use crate::model::{
    CompanionName, Execution, PublishedName, ScenarioName, Scope, ToolId, ViewTool,
};

/// See the module's head.
pub(super) struct ScopedCatalog<'a> {
    pub(super) catalog: &'a Catalog,
    /// The scopes that hold, narrowest first; the last is the global one.
    pub(super) rules: Arc<RuleStack>,
    /// The claims with the aliases of these scopes.
    pub(super) names: NameResolver,
    /// The narrowest scope that the client has, for hints.
    pub(super) scope: Scope,
    /// Tools whose names differ from the global ones.
    pub(super) renamed: BTreeMap<ToolId, PublishedName>,
    /// The scenarios that the scopes name or whose tools they rename.
    pub(super) spoken_of: BTreeSet<ScenarioName>,
    /// Whether tools of other scenarios may differ too.
    pub(super) spans_scenarios: bool,
    /// The profile, if definitions have activities of their own for it.
    profile: Option<String>,
    /// The tools that run definitions for this profile alone, each with its definition.
    activities: BTreeMap<ToolId, ToolId>,
}

impl<'a> ScopedCatalog<'a> {
    /// The global scope.
    pub(super) fn global(catalog: &'a Catalog) -> Self {
        Self {
            catalog,
            rules: Arc::clone(&catalog.rules),
            names: catalog.names.clone(),
            scope: Scope::Global,
            renamed: BTreeMap::new(),
            spoken_of: BTreeSet::new(),
            spans_scenarios: false,
            profile: None,
            activities: BTreeMap::new(),
        }
    }

    /// The scope of a query.
    pub(super) fn for_query(catalog: &'a Catalog, query: &ViewQuery) -> Self {
        let mut lens = Self::global(catalog);
        let chat = query.chat.clone().map(Scope::Chat);
        let profile = catalog
            .profile_of(query)
            .map(|name| Scope::Profile(name.to_owned()));
        let has_activities = |name: &&str| catalog.has_activities_for(name);
        lens.profile = catalog
            .profile_of(query)
            .filter(has_activities)
            .map(str::to_owned);
        let scopes: Vec<Scope> = chat.into_iter().chain(profile).collect();
        let layers = scopes
            .iter()
            .map(|scope| RuleLayer::for_scope(&catalog.preferences, scope));
        let own: Vec<Arc<RuleLayer>> = layers
            .filter(|layer| !layer.is_empty())
            .map(Arc::new)
            .collect();
        if let Some(scope) = scopes.into_iter().next() {
            lens.scope = scope;
        }
        if !own.is_empty() {
            lens.spans_scenarios = own.iter().any(|layer| layer.spans_scenarios());
            lens.spoken_of = own
                .iter()
                .flat_map(|layer| layer.scenarios().cloned())
                .collect();
            let layers = own.iter().chain(&catalog.rules.layers).cloned().collect();
            lens.rules = Arc::new(RuleStack {
                layers,
                ..RuleStack::clone(&catalog.rules)
            });
            lens.rename(
                own.iter()
                    .flat_map(|layer| layer.aliased().cloned())
                    .collect(),
            );
        }
        if let Some(profile) = &lens.profile {
            lens.activities = catalog.activities_for(profile);
            lens.spoken_of.extend(
                lens.activities
                    .keys()
                    .map(|activity| activity.scenario.clone()),
            );
            lens.spoken_of
                .extend(catalog.definitions().map(|entry| entry.name.clone()));
        }
        lens
    }

    /// Whether the scope has preferences of its own.
    fn is_scoped(&self) -> bool {
        self.spans_scenarios || !self.spoken_of.is_empty()
    }

    /// Whether the entry is here as it is globally.
    pub(super) fn leaves(&self, entry: &CatalogEntry) -> bool {
        !self.spans_scenarios && !self.spoken_of.contains(&entry.name)
    }

    /// A tool of the catalog as this scope makes it. The same `Arc` if the tool does not differ.
    pub(super) fn tool(&self, tool: &Arc<ViewTool>) -> Arc<ViewTool> {
        if !self.is_scoped() {
            return Arc::clone(tool);
        }
        let name = self.renamed.get(&tool.id).unwrap_or(&tool.name);
        let ToolAsShown {
            tool: shown,
            overridden,
            effective,
        } = self.rules.shown(&tool.id, tool.offered());
        let companions = self.companions(tool);
        let execution = self.execution(tool);
        if *name == tool.name
            && effective == tool.effective
            && overridden == tool.overridden
            && shown.description == tool.tool.description
            && shown.parameters == tool.tool.parameters
            && companions == tool.companions
            && execution == tool.execution
        {
            return Arc::clone(tool);
        }
        let id = tool.id.clone();
        let name = name.clone();
        Arc::new(ViewTool {
            id,
            tool: shown,
            overridden,
            name,
            effective,
            companions,
            execution,
        })
    }

    /// How the calls of a tool get their results for callers of the profile.
    fn execution(&self, tool: &ViewTool) -> Execution {
        if let Some(definition) = self
            .activities
            .get(&tool.id)
            .filter(|_| tool.execution == Execution::Own)
        {
            return Execution::ActivityOf(Box::new(definition.clone()));
        }
        let choice = tool.tool.definition.as_ref();
        let own = self
            .profile
            .as_ref()
            .zip(choice)
            .and_then(|(profile, choice)| choice.by_profile.get(profile));
        own.map_or_else(
            || tool.execution.clone(),
            |named| self.catalog.activity_or_latent(named),
        )
    }

    /// The companions of a tool under their names in this scope.
    fn companions(&self, tool: &ViewTool) -> Arc<[CompanionName]> {
        let renamed = |companion: &CompanionName| {
            let id = ToolId::new(tool.id.scenario.clone(), Arc::clone(&companion.original));
            self.renamed.get(&id).cloned()
        };
        let same = |companion: &CompanionName| renamed(companion).is_none();
        if self.renamed.is_empty() || tool.companions.iter().all(same) {
            return Arc::clone(&tool.companions);
        }
        let named = tool.companions.iter().map(|companion| CompanionName {
            original: Arc::clone(&companion.original),
            published: renamed(companion).unwrap_or_else(|| companion.published.clone()),
        });
        named.collect()
    }

    /// The alias that a tool is to have in this scope.
    pub(super) fn alias(&self, id: &ToolId) -> Option<PublishedName> {
        self.catalog.wanted_alias(&self.rules, id)
    }

    /// Lets these tools claim the aliases of this scope in place of the global ones, and resolves
    /// every name that this concerns.
    fn rename(&mut self, aliased: BTreeSet<ToolId>) {
        let catalog = self.catalog;
        let mut touched = BTreeSet::new();
        for id in aliased.iter().filter(|id| holds_names(catalog, id)) {
            let mut old = Vec::new();
            let mut new = Vec::new();
            self.names.claim(
                &mut old,
                id,
                catalog.wanted_alias(&catalog.rules, id).as_ref(),
            );
            self.names.claim(&mut new, id, self.alias(id).as_ref());
            touched.extend(old.iter().chain(&new).map(|claim| claim.text));
            self.names.change(old, new);
        }
        // A tool whose own wish changed is concerned even where no contest did, as with one more
        // alias that several have already.
        let mut concerned = concerned_tools(&catalog.names, &self.names, &touched);
        concerned.extend(aliased.into_iter().filter(|id| holds_names(catalog, id)));
        for id in concerned {
            let name = self.names.resolve(&id, self.alias(&id).as_ref());
            let old = catalog.tool(&id).filter(|tool| tool.name != name);
            if let Some(old) = old {
                let unique = |name| NameResolver::unique_claim(&id, name).into_iter().collect();
                self.names.change(unique(&old.name), unique(&name));
                self.spoken_of.insert(id.scenario.clone());
                self.renamed.insert(id, name);
            }
        }
    }
}

impl Catalog {
    /// Identity of the content as the scope of `query` sees it: equal for equal preferences on
    /// equal content, in any process. It is [`Catalog::revision`] itself when the scope has no
    /// preferences of its own and its profile no bounds. Filters and limits do not enter it.
    pub fn revision_for(&self, query: &ViewQuery) -> Revision {
        let lens = ScopedCatalog::for_query(self, query);
        let bounds = self.bounds(query);
        if !lens.is_scoped() && bounds.is_open() {
            return self.revision();
        }
        let mut content = ContentHasher::default();
        content.bytes(&self.revision().0.to_le_bytes());
        // They are those of profiles, which may change.
        content.text(format_args!("{bounds:?}"));
        let own = lens.rules.layers.len() - self.rules.layers.len();
        for rule in lens
            .rules
            .layers
            .iter()
            .take(own)
            .flat_map(|layer| layer.rules())
        {
            content.text(&rule.place.0);
            content.text(&rule.place.1);
            content.text(format_args!("{:?}", rule.settings));
        }
        // The names also depend on claims of scenarios that are not in the list, which the revision
        // does not cover.
        for (id, name) in &lens.renamed {
            content.text(id);
            content.text(name);
        }
        for tool in self
            .definitions()
            .filter(|_| lens.profile.is_some())
            .iter()
            .flat_map(|entry| entry.tools.iter())
        {
            content.text(lens.execution(tool));
        }
        Revision(content.hash.digest())
    }

    /// The tool with this identity, whatever its scenario's standing.
    pub(super) fn tool(&self, id: &ToolId) -> Option<&Arc<ViewTool>> {
        self.entries.get(&id.scenario)?.tool(&id.tool)
    }
}

/// Whether a tool is there and makes claims on names.
fn holds_names(catalog: &Catalog, id: &ToolId) -> bool {
    let entry = catalog.entries.get(&id.scenario);
    entry.is_some_and(|entry| {
        !matches!(entry.visibility, Visibility::Hidden(_)) && entry.tool(&id.tool).is_some()
    })
}
