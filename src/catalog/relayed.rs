//! What scenarios offer besides tools, as one client may see it: that of every published scenario
//! within the bounds of its profile. Preferences are for tools only.
//!
//! Names are built as those of tools for MCP clients. URIs stay as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Catalog, CatalogEntry, NamingStyle, ViewQuery};
use crate::model::{MCP_NAME_MAX, PublishedName, RelayedKind, RelayedOffer, ScenarioName, ToolId};

/// One prompt, resource or template in a list.
#[derive(Debug, Clone, Copy)]
pub struct RelayedItem<'a> {
    /// The scenario that offers it.
    pub scenario: &'a ScenarioName,
    /// What it offers.
    pub offer: &'a RelayedOffer,
}

impl RelayedItem<'_> {
    /// The name of a prompt that follows from its identity alone.
    pub(crate) fn qualified_name(&self) -> PublishedName {
        PublishedName::for_mcp(&ToolId::new(
            self.scenario.clone(),
            Arc::clone(&self.offer.key),
        ))
    }

    fn plain_name(&self) -> PublishedName {
        PublishedName::plain_shared(&self.offer.key)
    }
}

impl Catalog {
    /// Whether a client sees what a scenario offers.
    pub fn shows(&self, query: &ViewQuery, scenario: &ScenarioName) -> bool {
        self.entries
            .get(scenario)
            .is_some_and(|entry| self.is_shown(query, entry))
    }

    fn is_shown(&self, query: &ViewQuery, entry: &CatalogEntry) -> bool {
        entry.is_published()
            && self.bounds(query).allows_scenario(&entry.name)
            && (query.scenarios.is_empty() || query.scenarios.contains(&entry.name))
    }

    /// The scenarios that a client sees, in order.
    pub(crate) fn shown<'a>(
        &'a self,
        query: &'a ViewQuery,
    ) -> impl Iterator<Item = &'a Arc<CatalogEntry>> {
        self.entries
            .values()
            .filter(|entry| self.is_shown(query, entry))
    }

    /// Everything of one kind that a client sees, by scenario, then by key.
    pub fn relayed<'a>(
        &'a self,
        query: &'a ViewQuery,
        kind: RelayedKind,
    ) -> impl Iterator<Item = RelayedItem<'a>> {
        self.shown(query).flat_map(move |entry| {
            let offers = entry.manifest.relayed.of(kind).iter();
            offers.map(|offer| RelayedItem {
                scenario: &entry.name,
                offer,
            })
        })
    }

    /// The resources or templates with this URI that a client sees.
    pub fn relayed_with_key<'a>(
        &'a self,
        query: &'a ViewQuery,
        kind: RelayedKind,
        key: &'a str,
    ) -> impl Iterator<Item = RelayedItem<'a>> {
        self.shown(query).filter_map(move |entry| {
            let offer = entry.manifest.relayed.find(kind, key)?;
            Some(RelayedItem {
                scenario: &entry.name,
                offer,
            })
        })
    }

    /// The prompts that a client sees, each with its name: qualified by the scenario, or by
    /// [`NamingStyle::OnCollision`] the prompt's own one where no other has it.
    pub fn prompts<'a>(
        &'a self,
        query: &'a ViewQuery,
        style: NamingStyle,
    ) -> Vec<(PublishedName, RelayedItem<'a>)> {
        let all: Vec<_> = self.relayed(query, RelayedKind::Prompts).collect();
        let mut claims: BTreeMap<PublishedName, usize> = BTreeMap::new();
        if style == NamingStyle::OnCollision {
            // A prompt's qualified name is claimed, too, so that no other prompt gets it.
            for name in all
                .iter()
                .flat_map(|item| [item.plain_name(), item.qualified_name()])
            {
                *claims.entry(name).or_default() += 1;
            }
        }
        let named = all.into_iter().map(|item| {
            let own = item.plain_name();
            let is_own = claims.get(&own) == Some(&1) && own.as_str().len() <= MCP_NAME_MAX;
            (if is_own { own } else { item.qualified_name() }, item)
        });
        named.collect()
    }
}
