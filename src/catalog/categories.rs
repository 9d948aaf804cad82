//! Which definition of a category is shown where several scenarios define it, and the findings
//! about the others. Pure; it decides nothing about tools.

use std::collections::BTreeMap;

use super::{Catalog, CatalogEntry};
use crate::model::{Category, Finding, FindingCode, ScenarioName};

/// The categories of some scenarios, each id once, and findings about the definitions that are not
/// shown. If scenarios define one id differently, the definition of the first one is shown.
pub(crate) fn unique_categories<'a>(
    entries: impl Iterator<Item = &'a CatalogEntry>,
) -> (Vec<&'a Category>, Vec<Finding>) {
    let mut known: BTreeMap<&str, (&ScenarioName, &Category)> = BTreeMap::new();
    let mut unique = Vec::new();
    let mut findings = Vec::new();
    for entry in entries {
        for category in &*entry.manifest.categories {
            match known.get(category.id.as_ref()) {
                None => {
                    known.insert(&category.id, (&entry.name, category));
                    unique.push(category);
                }
                Some((owner, first)) if *first != category => {
                    findings.push(shadowed(&entry.name, category, owner));
                }
                Some(_) => {}
            }
        }
    }
    (unique, findings)
}

impl Catalog {
    /// The findings about categories that the plain list shows as another scenario defines them.
    pub(super) fn shadowed_categories(&self) -> Vec<Finding> {
        unique_categories(
            self.entries()
                .filter(|entry| entry.is_published() && !entry.listed.is_empty())
                .map(|entry| &**entry),
        )
        .1
    }
}

fn shadowed(scenario: &ScenarioName, category: &Category, owner: &ScenarioName) -> Finding {
    let id = &category.id;
    let message = format!(
        "its category `{id}` is shown as `{owner}` defines it, because lists name each category once"
    );
    Finding::new(FindingCode::CategoryIgnored, message)
        .of_scenario(scenario)
        .hint("give the category an id of its own, or define it alike in both scenarios")
}
