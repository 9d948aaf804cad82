//! Decides which tools a client may get at all: bounds, settings and the filters by scenario,
//! category and tag.

use std::sync::Arc;

use super::absence::Absence;
use super::query::ViewQuery;
use crate::catalog::entry::is_listed;
use crate::catalog::profiles::beyond_level;
use crate::catalog::scoped_catalog::ScopedCatalog;
use crate::catalog::{Catalog, CatalogEntry, UnknownProfile, Visibility};
use crate::model::{CallerBounds, Execution, ViewTool};

/// One scenario's share of a view.
#[derive(Debug, Clone)]
pub struct Part {
    /// The scenario.
    pub entry: Arc<CatalogEntry>,
    /// Its tools in the view, sorted by original name unless a conversation carries some of them.
    /// Shared with the entry when `whole`.
    pub tools: Arc<[Arc<ViewTool>]>,
    /// Whether `tools` is exactly [`CatalogEntry::listed`]: the entry's tools that are enabled and
    /// not internal, with global settings and names, all of them loaded. Such parts can be rendered
    /// once per entry. This is judged by the outcome, not by the query: a filter that takes all of
    /// them, a limit that cuts none of them, a scope that changes none of them or an `include_*`
    /// that adds none leaves a part whole.
    pub whole: bool,
}

/// See the module's head.
pub(super) struct ViewFilter<'a> {
    query: &'a ViewQuery,
    /// Whether the query filters by scenario, category or tag.
    chooses: bool,
    /// The bounds of the client.
    bounds: CallerBounds<'a>,
    /// Why the profile sees no tools, if it is not known.
    unknown: Option<UnknownProfile>,
}

impl<'a> ViewFilter<'a> {
    pub(super) fn for_query(catalog: &'a Catalog, query: &'a ViewQuery) -> Self {
        let chooses = !(query.categories.is_empty() && query.tags.is_empty() && query.q.is_none());
        Self {
            query,
            chooses,
            bounds: catalog.bounds(query),
            unknown: catalog.unknown_profile(query),
        }
    }

    /// The part of a published entry; `None` if it has no place in the view.
    pub(super) fn part(&self, lens: &ScopedCatalog<'_>, entry: &Arc<CatalogEntry>) -> Option<Part> {
        if !self.bounds.allows_scenario(&entry.name) {
            return None;
        }
        let whole = || Part {
            entry: Arc::clone(entry),
            tools: Arc::clone(&entry.listed),
            whole: true,
        };
        if entry.tools.is_empty() {
            return (!self.chooses).then(whole);
        }
        let query = self.query;
        let by_content = !(query.categories.is_empty() && query.tags.is_empty());
        let leveled = self.bounds.permission.is_some();
        let plain = !by_content
            && !leveled
            && !query.pinned_only
            && !query.include_disabled
            && !query.include_internal;
        let leaves = lens.leaves(entry);
        if plain && leaves {
            return (!entry.listed.is_empty()).then(whole);
        }
        let mut tools = Vec::new();
        let mut is_whole = true;
        for global in entry.tools.iter() {
            let tool = if leaves {
                Arc::clone(global)
            } else {
                lens.tool(global)
            };
            let takes = self.refuses(&tool).is_none();
            is_whole &= takes == is_listed(global) && (!takes || Arc::ptr_eq(&tool, global));
            if takes {
                tools.push(tool);
            }
        }
        match (tools.is_empty(), is_whole) {
            (true, _) => None,
            (false, true) => Some(whole()),
            (false, false) => Some(Part {
                entry: Arc::clone(entry),
                tools: tools.into(),
                whole: false,
            }),
        }
    }

    /// Why the client gets no tool of an entry, if so.
    pub(super) fn refuses_entry(&self, entry: &CatalogEntry) -> Option<Absence> {
        match &entry.visibility {
            Visibility::Withdrawn(reason) | Visibility::Hidden(reason) => {
                return Some(Absence::Withdrawn(reason.clone()));
            }
            Visibility::Published => {}
        }
        if !self.bounds.allows_scenario(&entry.name) {
            let out_of_profile = || format!("the profile may not see scenario {}", entry.name);
            return Some(Absence::Profile(
                self.unknown
                    .as_ref()
                    .map_or_else(out_of_profile, ToString::to_string),
            ));
        }
        let is_selected =
            self.query.scenarios.is_empty() || self.query.scenarios.contains(&entry.name);
        (!is_selected).then_some(Absence::Filtered("scenario"))
    }

    /// Why the client does not get a tool of a published scenario within its bounds, if so. The
    /// first reason counts.
    pub(super) fn refuses(&self, tool: &ViewTool) -> Option<Absence> {
        let query = self.query;
        let offered = &*tool.tool;
        let required = offered.facts.required_permission;
        if !self.bounds.allows_permission(required) {
            let why = beyond_level(query, &self.bounds, required);
            return Some(Absence::Profile(why));
        }
        if tool.is_internal() && !query.include_internal {
            return Some(match &tool.execution {
                Execution::ActivityOf(definition) => Absence::Activity(definition.to_string()),
                _ => Absence::Internal,
            });
        }
        if !tool.effective.enabled && !query.include_disabled {
            return Some(Absence::Disabled(tool.effective.enabled_source.to_string()));
        }
        if query.pinned_only && !tool.effective.pinned {
            return Some(Absence::Filtered("mode"));
        }
        let of_category = || {
            offered
                .category
                .as_deref()
                .is_some_and(|id| query.categories.contains(id))
        };
        if !query.categories.is_empty() && !of_category() {
            return Some(Absence::Filtered("category"));
        }
        let of_tag = || {
            offered
                .facts
                .tags
                .iter()
                .any(|tag| query.tags.contains(&**tag))
        };
        (!query.tags.is_empty() && !of_tag()).then_some(Absence::Filtered("tag"))
    }
}
