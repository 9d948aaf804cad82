//! The linter: finds errors of providers without running a tool, by rules over a manifest and over
//! how it is served.
//!
//! ```text
//! Manifest -> names, texts (-> hidden, suspicious), schema, examples (-> fit), async_tools, mcp
//!               `-> RuleContext: the JSON pointer -> Finding (code, pointer, message, next step)
//! answers of one scenario -> serving -> Finding
//! ```
//!
//! What is kept true here:
//!
//! - Every rule is a pure function that returns findings with a JSON pointer and a next step.
//! - No rule changes, hides or refuses what is published.
//! - The cost is linear in the size of the manifest; checks that would cost more (an example
//!   against a long list of allowed values) have a budget.
//! - At most 100 findings of a code are listed; one more counts the rest.
//!
//! Severities: `error` means that clients which follow the manifest fail; `warning` means that it
//! works, but should be fixed; `info` is good to know.
//!
//! Read in this order: this file ([`check_manifest`] runs the rules), `rule_context.rs`,
//! `names.rs`, `texts.rs` with `hidden.rs` and `suspicious` (what texts say to a model),
//! `schema.rs`, `examples.rs` with `fit.rs`, `async_tools.rs`, `mcp.rs` (servers of MCP),
//! `serving.rs` (how it is served).

mod async_tools;
mod examples;
mod fit;
mod hidden;
mod mcp;
mod names;
mod rule_context;
mod schema;
pub mod serving;
mod suspicious;
mod texts;

pub use mcp::{McpServing, check_mcp, check_mcp_serving};

use rule_context::RuleContext;
use texts::OwnTexts;

use crate::json::value::Json;
use crate::model::{CappedFindings, Finding, Manifest};

/// Where the Tool Discovery Protocol has what a provider says of itself.
const OWN_TEXTS: OwnTexts = OwnTexts {
    description: "/scenario/description",
    instructions: "/scenario/instructions",
};

/// The rest of a sentence that says why a value does not fit a schema; `None` if it fits, or if
/// that cannot be judged from the keywords of the protocol.
pub(crate) fn value_misfit(schema: &str, value: &str) -> Option<String> {
    let schema = Json::parse(schema)?;
    let value = Json::parse(value)?;
    let misfit = fit::misfit(&schema, &value, &mut fit::StepBudget::new())?;
    Some(if misfit.at.is_empty() {
        misfit.what
    } else {
        format!("is unfit at {}: {}", misfit.at, misfit.what)
    })
}

/// Checks a manifest by the rules of its protocol: what is a mistake in one is not in another.
pub fn check_by_protocol(manifest: &Manifest) -> Vec<Finding> {
    if Manifest::is_revision_of_mcp(&manifest.protocol_version) {
        check_mcp(manifest)
    } else {
        check_manifest(manifest)
    }
}

/// Checks a manifest of the Tool Discovery Protocol or of a module. Findings have no scenario name;
/// their pointers use the protocol's own spelling, and the index of a tool is its index in
/// [`Manifest::tools`]. At most 100 findings of each code are returned, then one that counts the
/// rest.
pub fn check_manifest(manifest: &Manifest) -> Vec<Finding> {
    let mut findings = CappedFindings::default();
    names::document(manifest, &mut findings);
    texts::document(manifest, &OWN_TEXTS, &mut findings);
    let mut offered = async_tools::ManifestTools::new(&manifest.tools);
    for (index, tool) in manifest.tools.iter().enumerate() {
        let mut place = RuleContext::new(&mut findings, tool, index);
        names::tool(&mut place, tool, manifest);
        let parameters = Json::parse(tool.parameters.get());
        texts::tool(
            &mut place,
            tool,
            "parameters",
            parameters.as_ref(),
            manifest,
        );
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
