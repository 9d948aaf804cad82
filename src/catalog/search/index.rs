//! The index of one scenario: made once for an entry of the catalog, shared by every catalog that has this entry.

use std::sync::{Arc, OnceLock};

use super::fields::{Field, each_text};
use super::leaf::{Leaf, Occurrence, TOOLS, Term};
use super::names::Gathered;
use super::weigh;
use super::words::{Splitter, stem};
use crate::catalog::Entry;
use crate::model::{Manifest, ScenarioName, ViewTool};

/// Made by the first search of an entry, and kept as long as that entry.
#[derive(Debug, Default)]
pub struct Indexed(OnceLock<Arc<Index>>);

/// The leaves of a scenario's tools, in their order.
#[derive(Debug)]
pub(in crate::catalog) struct Index {
    pub(super) leaves: Box<[Leaf]>,
}

impl Entry {
    /// Its index for a search, made when it is not there: a sweep of a whole fleet need not wait for it.
    pub(in crate::catalog) fn index(&self) -> Arc<Index> {
        let index = || Arc::new(Index::of(&self.name, &self.manifest, &self.tools));
        Arc::clone(self.indexed.0.get_or_init(index))
    }

    /// What its index holds in memory, in bytes. The index is made when it is not there.
    pub fn index_bytes(&self) -> usize {
        self.index().leaves.iter().map(Leaf::bytes).sum()
    }
}

impl Index {
    /// Indexes tools of one scenario.
    pub(super) fn of(scenario: &ScenarioName, manifest: &Manifest, tools: &[Arc<ViewTool>]) -> Self {
        let mut maker = Maker::new(scenario);
        Self { leaves: tools.chunks(TOOLS).map(|tools| maker.leaf(manifest, tools)).collect() }
    }
}

/// Makes leaves; keeps its buffers from one to the next.
struct Maker {
    splitter: Splitter,
    scenario: Vec<Term>,
    /// The terms of each field of the tool at hand.
    fields: [Vec<Term>; 8],
    occurrences: Vec<Occurrence>,
    names: Gathered,
}

impl Maker {
    fn new(scenario: &ScenarioName) -> Self {
        let (mut splitter, mut terms) = (Splitter::default(), Vec::new());
        splitter.split(scenario.as_str(), |word| terms.push(Term::of(stem(word))));
        Self {
            splitter,
            scenario: terms,
            fields: Default::default(),
            occurrences: Vec::new(),
            names: Gathered::default(),
        }
    }

    fn leaf(&mut self, manifest: &Manifest, tools: &[Arc<ViewTool>]) -> Leaf {
        self.occurrences.clear();
        for (at, tool) in (0..=u8::MAX).zip(tools) {
            self.tool(at, manifest, tool);
        }
        Leaf::of(&mut self.occurrences, self.names.finish(), weigh::saturate)
    }

    fn tool(&mut self, at: u8, manifest: &Manifest, tool: &ViewTool) {
        let Self { splitter, scenario, fields, occurrences, names } = self;
        fields.iter_mut().for_each(Vec::clear);
        fields[Field::Scenario as usize].extend_from_slice(scenario);
        each_text(manifest, &tool.tool, &tool.name, |field, text| {
            if matches!(field, Field::Name | Field::Title) {
                names.put(at, text, splitter);
            }
            let terms = &mut fields[field as usize];
            splitter.split(text, |word| {
                if terms.len() < weigh::FIELD_WORDS {
                    terms.push(Term::of(stem(word)));
                }
            });
        });
        for field in Field::ALL {
            let terms = &fields[field as usize];
            let weight = weigh::occurrence(field, terms.len());
            let of = |term: &Term| Occurrence { term: *term, tool: at, field: field.bit(), weight };
            occurrences.extend(terms.iter().map(of));
        }
    }
}
