//! Tools that were called although their arguments could not be checked, for the findings.
//!
//! Bounded. Findings are only made for tools that still have the same schema. Never decides
//! anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use crate::catalog::Catalog;
use crate::model::{Finding, FindingCode, ToolId};

/// Tools remembered at most; a further one takes the place of the first by name.
const MOST_TOOLS: usize = 1_000;

/// The latest reason by tool.
#[derive(Debug, Default)]
pub(super) struct Unchecked(BTreeMap<ToolId, (u128, Arc<str>)>);

impl Unchecked {
    /// The arguments of a call of this tool, whose schema has this digest, were not checked.
    pub(super) fn add(&mut self, tool: &ToolId, schema: u128, reason: Arc<str>) {
        if self.0.len() >= MOST_TOOLS && !self.0.contains_key(tool) {
            self.0.pop_first();
        }
        self.0.insert(tool.clone(), (schema, reason));
    }

    /// A finding for each tool that still has that schema. Forgets the others.
    pub(super) fn findings(&mut self, catalog: &Catalog) -> Vec<Finding> {
        self.0.retain(|id, (schema, _)| {
            let entry = catalog.entry(&id.scenario).filter(|entry| entry.is_published());
            let tool = entry.and_then(|entry| entry.tool(&id.tool));
            tool.is_some_and(|tool| xxh3_128(tool.tool.parameters.get().as_bytes()) == *schema)
        });
        self.0.iter().map(|(id, (_, reason))| finding(id, reason)).collect()
    }
}

fn finding(id: &ToolId, reason: &str) -> Finding {
    let message = format!("a call was sent with unchecked arguments: the schema {reason}");
    Finding::new(FindingCode::SchemaUnchecked, message).of_scenario(&id.scenario).of_tool(Arc::clone(&id.tool)).hint(
        "write a schema without what is named here, in which few branches lead to the same definition; the scenario checks its \
         arguments itself",
    )
}
