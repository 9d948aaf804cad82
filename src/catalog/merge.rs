//! The one step that makes a catalog from another: some offers replaced, the tools of others
//! renamed where that concerns them.
//!
//! A full build is this step applied to an empty catalog, so both ways run the same code. Its work
//! is that of the replaced offers and of those entries that have a tool whose name changes; every
//! other entry stays the same `Arc`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::OrdMap;

use super::name_claim::{NameClaim, NameHash};
use super::prefer::RuleStack;
use super::resolve::NameResolver;
use super::{Catalog, CatalogEntry, NamingStyle, Offer};
use crate::model::{
    PreferenceSet, PreferenceTarget, Profiles, PublishedName, ScenarioName, Scope, Settings, ToolId,
};

/// New offers by scenario; `None` where there is none any more.
type Offers = BTreeMap<ScenarioName, Option<Offer>>;

impl Catalog {
    /// No scenario yet.
    pub(super) fn empty(
        preferences: Arc<PreferenceSet>,
        naming: NamingStyle,
        profiles: Arc<Profiles>,
    ) -> Self {
        let rules = Arc::new(RuleStack::global(&preferences));
        let entries = OrdMap::new();
        let names = NameResolver::new(naming);
        let activities = Arc::default();
        Self {
            content: 0,
            entries,
            names,
            preferences,
            rules,
            profiles,
            activities,
        }
    }

    /// With these offers besides its own.
    pub(super) fn with_offers(&self, offers: BTreeMap<ScenarioName, Offer>) -> Self {
        self.replace(
            offers
                .into_iter()
                .map(|(name, offer)| (name, Some(offer)))
                .collect(),
            &self.rules,
        )
    }

    /// With offers put, replaced or taken away. An offer that equals the active one has no effect.
    pub(super) fn with_changed(&self, mut offers: Offers) -> Self {
        offers.retain(|name, offer| match (offer, self.entries.get(name)) {
            (None, None) => false,
            (Some(new), Some(old)) => {
                new.manifest.digest != old.manifest.digest
                    || new.manifest.held != old.manifest.held
                    || new.visibility != old.visibility
            }
            _ => true,
        });
        if offers.is_empty() {
            self.clone()
        } else {
            self.replace(offers, &self.rules)
        }
    }

    /// With other preferences. Only scenarios that a changed preference of the global scope matches
    /// are built again.
    pub(super) fn with_preferences(&self, preferences: Arc<PreferenceSet>) -> Self {
        let changed: Vec<_> = changed_targets(&self.preferences, &preferences).collect();
        let mut next = self.clone();
        if !changed.is_empty() || !self.preferences.assumes_like(&preferences) {
            next.rules = Arc::new(self.rules.changed_global(&preferences, &changed));
            let concerned = self.concerned(&preferences, &changed);
            if !concerned.is_empty() {
                next = self.replace(concerned, &next.rules);
            }
        }
        next.preferences = preferences;
        next
    }

    /// With every tool named by another style, and so built anew; entries that come out the same
    /// are shared.
    pub(super) fn with_naming(&self, naming: NamingStyle) -> Self {
        let offers = self
            .entries
            .values()
            .map(|entry| (entry.name.clone(), entry.offer()))
            .collect();
        let mut next = Self::empty(
            Arc::clone(&self.preferences),
            naming,
            Arc::clone(&self.profiles),
        )
        .with_offers(offers);
        for (name, old) in &self.entries {
            if next.entries.get(name).is_some_and(|new| new.is_as(old)) {
                next.entries.insert(name.clone(), Arc::clone(old));
            }
        }
        next
    }

    /// The scenarios that the change to these preferences may concern, with their offers.
    fn concerned(&self, preferences: &PreferenceSet, changed: &[&PreferenceTarget]) -> Offers {
        let mut scenarios = BTreeSet::new();
        let mut groups = Vec::new();
        for target in changed {
            match target {
                PreferenceTarget::Scenario(name) => _ = scenarios.insert(name),
                PreferenceTarget::Tool(id) => _ = scenarios.insert(&id.scenario),
                PreferenceTarget::Category(_) | PreferenceTarget::Tag(_) => groups.push(*target),
            }
        }
        if !groups.is_empty() {
            let grouped = self
                .entries
                .values()
                .filter(|entry| groups.iter().any(|target| entry.has(target)));
            scenarios.extend(grouped.map(|entry| &entry.name));
        }
        if !self.preferences.assumes_like(preferences) {
            let unannotated = |entry: &&Arc<CatalogEntry>| {
                entry.tools.iter().any(|tool| tool.tool.facts.unannotated)
            };
            scenarios.extend(
                self.entries
                    .values()
                    .filter(unannotated)
                    .map(|entry| &entry.name),
            );
        }
        let entries = scenarios
            .into_iter()
            .filter_map(|name| self.entries.get(name));
        entries
            .map(|entry| (entry.name.clone(), Some(entry.offer())))
            .collect()
    }

    /// The step itself.
    fn replace(&self, offers: Offers, rules: &Arc<RuleStack>) -> Self {
        let mut next = self.clone();
        next.rules = Arc::clone(rules);
        let touched = next.claim_again(self, &offers);
        // Where no contest changed, every tool that was there has the name it had.
        let names_stay = touched.is_empty() && Arc::ptr_eq(rules, &self.rules);
        for (name, tools) in next.moved(self, &touched, &offers) {
            if let Some(entry) = self
                .entries
                .get(&name)
                .and_then(|entry| entry.renamed(&tools))
            {
                next.put(name, Some(Arc::new(entry)));
            }
        }
        for (name, offer) in offers {
            let old = self.entries.get(&name);
            let known = old.filter(|_| names_stay).map(|old| &**old);
            let entry = offer
                .map(|offer| CatalogEntry::admit(name.clone(), offer, rules, &next.names, known));
            let same = match (&entry, old) {
                (Some(new), Some(old)) => new.is_as(old),
                _ => false,
            };
            if !same {
                next.put(name, entry.map(Arc::new));
            }
        }
        next.bind();
        next
    }

    /// Exchanges the claims of the old offers for those of the new ones; answers the texts whose
    /// claims changed.
    fn claim_again(&mut self, before: &Self, offers: &Offers) -> BTreeSet<NameHash> {
        let mut touched = BTreeSet::new();
        let mut removed = Vec::new();
        let mut added = Vec::new();
        for (name, offer) in offers {
            let old = before.entries.get(name);
            if Arc::ptr_eq(&self.rules, &before.rules)
                && let (Some(old), Some(new)) = (old, offer)
                && old.claims_like(new)
            {
                continue;
            }
            let old = old.map_or_else(Vec::new, |entry| entry.claims(before));
            let new = offer.as_ref().map_or_else(Vec::new, |offer| {
                offer.claims(name, &self.rules, &self.names)
            });
            let kept =
                |claims: &[NameClaim], claim: &NameClaim| claims.binary_search(claim).is_ok();
            let gone = old.iter().filter(|claim| !kept(&new, claim)).cloned();
            let gone_before = removed.len();
            removed.extend(gone);
            touched.extend(
                removed[gone_before..]
                    .iter()
                    .map(|claim: &NameClaim| claim.text),
            );
            for claim in new.into_iter().filter(|claim| !kept(&old, claim)) {
                // A text without earlier claims is claimed by these offers only, and they are named
                // again anyway.
                if before.names.is_claimed(claim.text) {
                    touched.insert(claim.text);
                }
                added.push(claim);
            }
        }
        self.names.change(removed, added);
        touched
    }

    /// The tools outside `offers` whose names may have changed, with the names they have now.
    fn moved(
        &self,
        before: &Self,
        touched: &BTreeSet<NameHash>,
        offers: &Offers,
    ) -> BTreeMap<ScenarioName, Vec<(Arc<str>, PublishedName)>> {
        let mut moved: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for id in concerned_tools(&before.names, &self.names, touched) {
            if !offers.contains_key(&id.scenario) {
                let name = self
                    .names
                    .resolve(&id, self.wanted_alias(&self.rules, &id).as_ref());
                moved.entry(id.scenario).or_default().push((id.tool, name));
            }
        }
        moved
    }

    /// The alias that a tool wants under these rules.
    pub(super) fn wanted_alias(&self, rules: &RuleStack, id: &ToolId) -> Option<PublishedName> {
        let given = rules.alias(id).map(|(alias, _)| alias);
        self.tool(id).map_or_else(
            || given.cloned(),
            |tool| self.names.wanted_alias(given, &tool.tool),
        )
    }

    /// Puts, replaces or removes an entry, and with it the lookups of its unique forms.
    pub(super) fn put(&mut self, name: ScenarioName, entry: Option<Arc<CatalogEntry>>) {
        let unique = |entry: &CatalogEntry| -> Vec<NameClaim> {
            entry
                .tools
                .iter()
                .filter_map(|tool| NameResolver::unique_claim(&tool.id, &tool.name))
                .collect()
        };
        let gone = self
            .entries
            .get(&name)
            .map_or_else(Vec::new, |old| unique(old));
        self.names
            .change(gone, entry.as_deref().map_or_else(Vec::new, unique));
        let added = entry.as_deref().map_or(0, CatalogEntry::share);
        let replaced = match entry {
            Some(entry) => self.entries.insert(name, entry),
            None => self.entries.remove(&name),
        };
        let removed = replaced.as_deref().map_or(0, CatalogEntry::share);
        self.content = self.content.wrapping_sub(removed).wrapping_add(added);
    }
}

impl CatalogEntry {
    /// What it adds to the content of its catalog: the digest, which covers its name, of what is
    /// published. The reasons of withdrawals and everything about health stay out of it.
    fn share(&self) -> u128 {
        if self.is_published() {
            self.digest.0
        } else {
            0
        }
    }

    /// Whether it shows nothing else than `old`, in any list.
    fn is_as(&self, old: &Self) -> bool {
        self == old
            && self.manifest.relayed == old.manifest.relayed
            && self.manifest.held == old.manifest.held
    }

    /// Its claims as the catalog that it stands in has them.
    fn claims(&self, catalog: &Catalog) -> Vec<NameClaim> {
        self.offer()
            .claims(&self.name, &catalog.rules, &catalog.names)
    }

    /// Whether one of its tools is of this category or has this tag.
    pub(super) fn has(&self, group: &PreferenceTarget) -> bool {
        self.tools.iter().any(|tool| match group {
            PreferenceTarget::Category(id) => tool.tool.category.as_deref() == Some(id),
            // Those without hints may count as having the tag.
            PreferenceTarget::Tag(tag) => {
                tool.tool.facts.unannotated || tool.tool.facts.tags.iter().any(|own| **own == **tag)
            }
            PreferenceTarget::Scenario(_) | PreferenceTarget::Tool(_) => false,
        })
    }
}

/// The tools whose names the contests on these texts decided before or decide after, where the
/// outcome differs.
pub(super) fn concerned_tools(
    before: &NameResolver,
    after: &NameResolver,
    touched: &BTreeSet<NameHash>,
) -> BTreeSet<ToolId> {
    let contests = touched
        .iter()
        .map(|text| (before.contest(*text), after.contest(*text)));
    contests
        .filter(|(was, is)| was != is)
        .flat_map(|(was, is)| was.concerned().chain(is.concerned()))
        .collect()
}

/// The targets whose settings in the global scope differ.
fn changed_targets<'a>(
    old: &'a PreferenceSet,
    new: &'a PreferenceSet,
) -> impl Iterator<Item = &'a PreferenceTarget> {
    let differs = |other: &'a PreferenceSet| {
        move |(target, settings): (&'a PreferenceTarget, &'a Settings)| {
            (other.get(&Scope::Global, target) != Some(settings)).then_some(target)
        }
    };
    old.scope(&Scope::Global)
        .filter_map(differs(new))
        .chain(new.scope(&Scope::Global).filter_map(differs(old)))
}
