//! The categories of a view: those of the scenarios that have tools in it, each id once.

use std::collections::BTreeMap;

use crate::catalog::View;
use crate::model::{Category, Finding, FindingCode, ScenarioName};

/// The categories of a view, and findings about them.
#[derive(Debug)]
pub struct Categories<'a> {
    /// In the order of their scenarios, then of their ids.
    pub unique: Vec<&'a Category>,
    /// One finding for each category that another scenario defines differently.
    pub findings: Vec<Finding>,
}

/// Collects the categories. If two scenarios define one id differently, the definition of the first
/// scenario is used.
pub fn for_view(view: &View) -> Categories<'_> {
    let mut known: BTreeMap<&str, (&ScenarioName, &Category)> = BTreeMap::new();
    let (mut unique, mut findings) = (Vec::new(), Vec::new());
    for part in view.parts.iter().filter(|part| !part.tools.is_empty()) {
        for category in &*part.entry.manifest.categories {
            match known.get(category.id.as_ref()) {
                None => {
                    known.insert(&category.id, (&part.entry.name, category));
                    unique.push(category);
                }
                Some((owner, first)) if *first != category => {
                    findings.push(shadowed(&part.entry.name, category, owner));
                }
                Some(_) => {}
            }
        }
    }
    Categories { unique, findings }
}

fn shadowed(scenario: &ScenarioName, category: &Category, owner: &ScenarioName) -> Finding {
    let id = &category.id;
    let message =
        format!("its category `{id}` is shown as `{owner}` defines it, because lists name each category once");
    Finding::new(FindingCode::CategoryIgnored, message)
        .of_scenario(scenario)
        .hint("give the category an id of its own, or define it alike in both scenarios")
}
