//! The index of one scenario: made once for an entry of the catalog, shared by every catalog that has this entry.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fields::{Field, each_text};
use super::leaf::{Leaf, Occurrence, TOOLS, Term};
use super::names::Gathered;
use super::weigh;
use super::words::{Splitter, stem};
use crate::catalog::Entry;
use crate::model::{Manifest, ScenarioName, ViewTool};

/// Kept by [`Entry::index`] until [`Entry::cool`].
#[derive(Debug, Default)]
pub struct Indexed(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    index: Option<Arc<Index>>,
    /// Whether a search looked into it since that was asked last.
    searched: bool,
}

impl Indexed {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The leaves of a scenario's tools, in their order.
#[derive(Debug)]
pub(in crate::catalog) struct Index {
    pub(super) leaves: Box<[Leaf]>,
}

impl Entry {
    /// Its index for a search, made when it is not there: a sweep of a whole fleet need not wait for it.
    pub(in crate::catalog) fn index(&self) -> Arc<Index> {
        let mut kept = self.indexed.kept();
        kept.searched = true;
        Arc::clone(self.made(&mut kept))
    }

    /// Makes its index unless that was done. What has been warmed answers the next search at once.
    pub fn warm(&self) {
        self.made(&mut self.indexed.kept());
    }

    fn made<'a>(&self, kept: &'a mut Kept) -> &'a Arc<Index> {
        kept.index.get_or_insert_with(|| Arc::new(Index::of(&self.name, &self.manifest, &self.tools)))
    }

    /// Drops its index; the next search makes it again.
    pub fn cool(&self) {
        self.indexed.kept().index = None;
    }

    /// Whether its index is made.
    pub fn is_warm(&self) -> bool {
        self.indexed.kept().index.is_some()
    }

    /// Whether a search looked into it since this was asked last.
    pub fn was_searched(&self) -> bool {
        std::mem::take(&mut self.indexed.kept().searched)
    }

    /// What its index holds in memory, in bytes; 0 while it is not made.
    pub fn index_bytes(&self) -> usize {
        let leaves = self.indexed.kept().index.as_ref().map(|index| index.leaves.iter().map(Leaf::bytes).sum());
        leaves.unwrap_or_default()
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
