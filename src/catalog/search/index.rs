//! The index of one scenario: made once for an entry of the catalog, shared by every catalog that
//! has this entry.

use std::sync::{Arc, OnceLock};

use super::bm25f;
use super::fields::{Field, each_text};
use super::leaf::{Leaf, Occurrence, TOOLS, TermHash};
use super::names::LeafNamesBuilder;
use super::tokenizer::{Splitter, stem};
use crate::catalog::CatalogEntry;
use crate::model::{Manifest, ScenarioName, ViewTool};

/// Made by the first search of an entry, and kept as long as that entry.
#[derive(Debug, Default)]
pub struct Indexed(OnceLock<Arc<SearchIndex>>);

/// The leaves of a scenario's tools, in their order.
#[derive(Debug)]
pub(in crate::catalog) struct SearchIndex {
    pub(super) leaves: Box<[Leaf]>,
}

impl CatalogEntry {
    /// Its index for a search, made when it is not there: a sweep of a whole fleet need not wait
    /// for it.
    pub(in crate::catalog) fn index(&self) -> Arc<SearchIndex> {
        let index = || Arc::new(SearchIndex::build(&self.name, &self.manifest, &self.tools));
        Arc::clone(self.indexed.0.get_or_init(index))
    }

    /// What its index holds in memory, in bytes. The index is made when it is not there.
    pub fn index_bytes(&self) -> usize {
        self.index().leaves.iter().map(Leaf::bytes).sum()
    }
}

impl SearchIndex {
    /// Indexes tools of one scenario.
    pub(super) fn build(
        scenario: &ScenarioName,
        manifest: &Manifest,
        tools: &[Arc<ViewTool>],
    ) -> Self {
        let mut maker = Maker::new(scenario);
        Self {
            leaves: tools
                .chunks(TOOLS)
                .map(|tools| maker.leaf(manifest, tools))
                .collect(),
        }
    }
}

/// Makes leaves; keeps its buffers from one to the next.
struct Maker {
    splitter: Splitter,
    scenario: Vec<TermHash>,
    /// The terms of each field of the tool at hand.
    fields: [Vec<TermHash>; 8],
    occurrences: Vec<Occurrence>,
    names: LeafNamesBuilder,
}

impl Maker {
    fn new(scenario: &ScenarioName) -> Self {
        let mut splitter = Splitter::default();
        let mut terms = Vec::new();
        splitter.split(scenario.as_str(), |word| {
            terms.push(TermHash::from_word(&stem(word)));
        });
        Self {
            splitter,
            scenario: terms,
            fields: Default::default(),
            occurrences: Vec::new(),
            names: LeafNamesBuilder::default(),
        }
    }

    fn leaf(&mut self, manifest: &Manifest, tools: &[Arc<ViewTool>]) -> Leaf {
        self.occurrences.clear();
        for (at, tool) in (0..=u8::MAX).zip(tools) {
            self.tool(at, manifest, tool);
        }
        Leaf::build(&mut self.occurrences, self.names.finish(), bm25f::saturate)
    }

    fn tool(&mut self, at: u8, manifest: &Manifest, tool: &ViewTool) {
        let Self {
            splitter,
            scenario,
            fields,
            occurrences,
            names,
        } = self;
        fields.iter_mut().for_each(Vec::clear);
        fields[Field::Scenario as usize].extend_from_slice(scenario);
        each_text(manifest, &tool.tool, &tool.name, |field, text| {
            if matches!(field, Field::Name | Field::Title) {
                names.put(at, text, splitter);
            }
            let terms = &mut fields[field as usize];
            splitter.split(text, |word| {
                if terms.len() < bm25f::FIELD_WORDS {
                    terms.push(TermHash::from_word(&stem(word)));
                }
            });
        });
        for field in Field::ALL {
            let terms = &fields[field as usize];
            let weight = bm25f::occurrence(field, terms.len());
            let of = |term: &TermHash| Occurrence {
                term: *term,
                tool: at,
                field: field.bit(),
                weight,
            };
            occurrences.extend(terms.iter().map(of));
        }
    }
}
