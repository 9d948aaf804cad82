//! Tools whose calls or results did not go with one of their schemas, for the findings.
//!
//! Bounded. Findings are only made for tools that still have the same schema. Never decides
//! anything.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use crate::catalog::Catalog;
use crate::model::{Digest, Finding, FindingCode, JsonText, Tool, ToolId};

/// Tools remembered at most; a further one takes the place of the first by name.
const MOST_TOOLS: usize = 1_000;

/// What is noted of tools.
#[derive(Debug, Clone, Copy)]
pub(super) enum SchemaNote {
    /// A call was sent with unchecked arguments.
    Unchecked,
    /// The last result that was checked did not fit.
    UnfitResult,
}

/// The findings about the schemas of one manifest, whatever its tools are called with.
#[derive(Debug)]
pub(super) struct JudgedManifest {
    /// The manifest.
    pub(super) digest: Digest,
    /// The findings.
    pub(super) findings: Vec<Finding>,
    /// The digests of its schemas that can be used, which need no second look in the next manifest.
    pub(super) usable: Arc<HashSet<u128>>,
}

/// The latest reason by tool.
#[derive(Debug)]
pub(super) struct NotedTools {
    note: SchemaNote,
    reasons: BTreeMap<ToolId, (u128, Arc<str>)>,
}

impl NotedTools {
    /// Without any tool yet.
    pub(super) fn new(note: SchemaNote) -> Self {
        Self {
            note,
            reasons: BTreeMap::new(),
        }
    }

    /// Notes a tool whose schema has this digest.
    pub(super) fn add(&mut self, tool: &ToolId, schema: u128, reason: Arc<str>) {
        if self.reasons.len() >= MOST_TOOLS && !self.reasons.contains_key(tool) {
            self.reasons.pop_first();
        }
        self.reasons.insert(tool.clone(), (schema, reason));
    }

    /// Forgets a tool.
    pub(super) fn remove(&mut self, tool: &ToolId) {
        self.reasons.remove(tool);
    }

    /// A finding for each tool that still has that schema. Forgets the others.
    pub(super) fn findings(&mut self, catalog: &Catalog) -> Vec<Finding> {
        let note = self.note;
        self.reasons.retain(|id, (schema, _)| {
            let entry = catalog
                .entry(&id.scenario)
                .filter(|entry| entry.is_published());
            let tool = entry.and_then(|entry| entry.tool(&id.tool));
            let now = tool.and_then(|tool| note.schema(&tool.tool));
            now.is_some_and(|now| xxh3_128(now.get().as_bytes()) == *schema)
        });
        self.reasons
            .iter()
            .map(|(id, (_, reason))| note.finding(id, reason))
            .collect()
    }
}

impl SchemaNote {
    /// The schema that is meant.
    fn schema(self, tool: &Tool) -> Option<&JsonText> {
        match self {
            Self::Unchecked => Some(&tool.parameters),
            Self::UnfitResult => tool.output(),
        }
    }

    /// The finding that arguments are not checked. It is the same whether a call or the list of
    /// tools showed it, so that it is reported once.
    pub(super) fn unchecked(reason: &str) -> Finding {
        let message = format!("calls are sent with unchecked arguments: the schema {reason}");
        let hint = "write a schema without what is named here, in which few branches lead to the same definition; \
                    the scenario checks its arguments itself";
        Finding::new(FindingCode::SchemaUnchecked, message).hint(hint)
    }

    fn finding(self, id: &ToolId, reason: &str) -> Finding {
        let finding = match self {
            Self::Unchecked => Self::unchecked(reason),
            Self::UnfitResult => {
                let message = format!(
                    "its last result does not fit the schema of results that it declares: {reason}; it was passed on"
                );
                let hint = "correct the schema or the results; clients that check results refuse such a one";
                Finding::new(FindingCode::OutputMismatch, message).hint(hint)
            }
        };
        finding
            .of_scenario(&id.scenario)
            .of_tool(Arc::clone(&id.tool))
    }
}
