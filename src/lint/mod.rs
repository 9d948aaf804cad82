//! What a provider got wrong, found without running anything: rules over a manifest and over how it is served.
//!
//! Every rule is pure and gives findings with a JSON pointer and a next step; nothing here changes, hides or refuses what is published.
//! [`check_manifest`] judges what a manifest says, [`serving::check_list`] what several answers of one scenario show. The cost is linear in the size of
//! the manifest: what would be more (an example against a long list of allowed values) is judged within a budget.
//!
//! Where a rule's severity is an error, somebody who follows the manifest fails; a warning works, but someone should look; the rest is
//! good to know.

mod async_tools;
mod examples;
mod fit;
mod json;
mod names;
mod rule_context;
mod schema;
pub mod serving;

use json::Json;
use rule_context::RuleContext;

use crate::model::{CappedFindings, Finding, Manifest};

/// Judges what a manifest says. Scenario names are not filled in; pointers are in the protocol's own spelling, and the index of a tool
/// is its place in [`Manifest::tools`]. At most 100 findings of each code, then one that counts the rest.
pub fn check_manifest(manifest: &Manifest) -> Vec<Finding> {
    let mut findings = CappedFindings::default();
    names::document(manifest, &mut findings);
    let mut offered = async_tools::ManifestTools::new(&manifest.tools);
    for (index, tool) in manifest.tools.iter().enumerate() {
        let mut place = RuleContext::new(&mut findings, tool, index);
        names::tool(&mut place, tool, manifest);
        let parameters = Json::parse(tool.parameters.get());
        if let Some(parameters) = &parameters {
            place.within("parameters", |place| schema::judge(place, parameters));
        }
        if let Some(metadata) = Json::parse(tool.metadata.get()) {
            place.within("metadata", |place| {
                examples::judge(place, &metadata, parameters.as_ref());
                async_tools::judge(place, &metadata, &mut offered);
            });
        }
    }
    findings.finish()
}
