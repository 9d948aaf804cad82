//! From a name to the tool it stands for: lookups in the claims on names, never a scan.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::scoped_catalog::ScopedCatalog;
use super::{Catalog, ViewQuery, pins};
use crate::model::{Finding, HeldTool, NameRef, PublishedName, ScenarioName, ToolId, ViewTool};

/// What a name stands for.
#[derive(Debug, Clone)]
pub enum NameLookup {
    /// One tool (in the list or not; see its entry's standing).
    One(Arc<ViewTool>),
    /// Several; a caller has to choose. In order.
    Ambiguous(Vec<Arc<ViewTool>>),
    /// None.
    None,
}

impl Catalog {
    /// Looks a tool up by identity, published name, or (when only one has it) original name. A
    /// published name goes before the name for MCP clients, and that before original ones. Of
    /// several tools with an original name like `module.tool` the one of the scenario `module` is
    /// meant: the text before the first dot names the scenario. The tools of hidden scenarios are
    /// found by identity only, and an identity is never taken for a bare name with a slash in it:
    /// that could return a tool of another scenario than the requested one.
    pub fn find(&self, name: &NameRef) -> NameLookup {
        ScopedCatalog::global(self).find(name)
    }

    /// The finding about the tool of this name that is held until an operator accepts it. A new
    /// one claims no name, so only its identity means it.
    pub fn find_held(&self, name: &NameRef) -> Option<Finding> {
        let id = match name {
            NameRef::Id(id) => id,
            NameRef::Bare(text) => self.names.claimants(text).find(|id| self.is_held(id))?,
        };
        let held = &self.entry(&id.scenario)?.manifest.held;
        let tool = held.iter().find(|held| held.name == id.tool)?;
        Some(pins::of_held(&id.scenario, tool))
    }

    /// The finding about a held tool that would have this name. For people who look for it.
    pub(crate) fn find_held_as(&self, text: &str) -> Option<Finding> {
        let entries = self.entries().filter(|entry| entry.is_published());
        let mut held = entries.flat_map(|entry| {
            let tools = entry.manifest.held.iter();
            tools.map(move |held| (&entry.name, held))
        });
        let is_meant = |(scenario, held): &(&ScenarioName, &HeldTool)| {
            let id = ToolId::new((*scenario).clone(), Arc::clone(&held.name));
            *id.tool == *text
                || PublishedName::qualified(&id).as_str() == text
                || PublishedName::for_mcp(&id).as_str() == text
        };
        held.find(is_meant)
            .map(|(scenario, held)| pins::of_held(scenario, held))
    }

    /// Whether a tool is held until an operator accepts it.
    pub(super) fn is_held(&self, id: &ToolId) -> bool {
        let entry = self.entry(&id.scenario);
        entry.is_some_and(|entry| entry.held_reason(&id.tool).is_some())
    }
}

/// Looks a tool up by its names in the scope of `query`: identity, published name in that scope, or
/// an original name that only one has. The filters and limits of `query` do not matter. The rules
/// are those of [`Catalog::find`].
pub fn find_in_scope(catalog: &Catalog, query: &ViewQuery, name: &NameRef) -> NameLookup {
    ScopedCatalog::for_query(catalog, query).find(name)
}

impl ScopedCatalog<'_> {
    fn find(&self, name: &NameRef) -> NameLookup {
        match name {
            NameRef::Id(id) => self
                .catalog
                .tool(id)
                .map_or(NameLookup::None, |tool| NameLookup::One(self.tool(tool))),
            NameRef::Bare(text) => self.find_bare(text),
        }
    }

    fn find_bare(&self, text: &str) -> NameLookup {
        // Most clients send a published name, which belongs to exactly one tool.
        let known = || {
            self.names
                .claimants(text)
                .filter_map(|id| self.catalog.tool(id))
        };
        if let Some(published) = known()
            .map(|tool| self.tool(tool))
            .find(|tool| tool.name.as_str() == text)
        {
            return NameLookup::One(published);
        }
        if let Some(own) = known().find(|tool| PublishedName::for_mcp(&tool.id).as_str() == text) {
            return NameLookup::One(self.tool(own));
        }
        // A tool may claim a text in two ways; the set keeps one of each, in order.
        let claimants: BTreeSet<_> = self.names.claimants(text).collect();
        let tools = claimants.iter().filter_map(|id| self.catalog.tool(id));
        let mut originals = Vec::new();
        for tool in tools.map(|tool| self.tool(tool)) {
            if *tool.id.tool == *text {
                originals.push(tool);
            }
        }
        if let Some((scenario, _)) = text.split_once('.')
            && originals.len() > 1
            && let Some(own) = originals
                .iter()
                .find(|tool| tool.id.scenario.as_str() == scenario)
        {
            return NameLookup::One(Arc::clone(own));
        }
        match originals.len() {
            // The name may mean the tool that is held, as before.
            1 if claimants.iter().any(|id| self.catalog.is_held(id)) => NameLookup::None,
            0 => NameLookup::None,
            1 => originals.pop().map_or(NameLookup::None, NameLookup::One),
            _ => NameLookup::Ambiguous(originals),
        }
    }
}
