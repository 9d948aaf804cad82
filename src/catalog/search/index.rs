//! The index of one scenario: for each term, which tools have it, where, and how much it weighs
//! there. Made once for an entry of the catalog, shared by every catalog that has this entry.
//!
//! Terms are kept as 32 bits of their hash, so no description is kept twice. Two terms of a catalog
//! of 100,000 tools share a hash in about one of 40,000 searches.

use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::xxh3_64;

use super::bm25f;
use super::fields::{Field, each_text};
use super::names::{ToolNames, ToolNamesBuilder};
use super::tokenizer::{Splitter, stem};
use crate::catalog::CatalogEntry;
use crate::model::{Manifest, ScenarioName, ViewTool};

/// Made by the first search of an entry, and kept as long as that entry.
#[derive(Debug, Default)]
pub struct Indexed(OnceLock<Arc<SearchIndex>>);

/// What a word is looked up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TermHash(u32);

/// A term in a tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Posting {
    /// Which of the scenario's tools.
    pub(super) tool: u32,
    /// The saturated weight, from 0 to 1.
    pub(super) weight: f32,
    /// In which fields it is, a bit each.
    pub(super) fields: u8,
}

/// See the module's head.
#[derive(Debug, Default)]
pub(in crate::catalog) struct SearchIndex {
    /// Sorted, each with where its postings end; they begin where those before end.
    terms: Box<[(TermHash, u32)]>,
    /// In the order of the terms, those of a term in the order of the tools.
    postings: Box<[Posting]>,
    /// What its tools are called.
    pub(super) names: ToolNames,
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
        self.index().bytes()
    }
}

impl TermHash {
    /// The term of a word.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low half of the hash is taken"
    )]
    pub(super) fn from_word(word: &str) -> Self {
        Self(xxh3_64(word.as_bytes()) as u32)
    }
}

impl SearchIndex {
    /// Indexes tools of one scenario.
    pub(super) fn build(
        scenario: &ScenarioName,
        manifest: &Manifest,
        tools: &[Arc<ViewTool>],
    ) -> Self {
        let mut builder = IndexBuilder::new(scenario);
        for (number, tool) in (0..).zip(tools) {
            builder.add(number, manifest, tool);
        }
        builder.finish()
    }

    /// Where a term is.
    pub(super) fn find(&self, term: TermHash) -> &[Posting] {
        let Ok(at) = self.terms.binary_search_by_key(&term, |(known, _)| *known) else {
            return &[];
        };
        let begin = at.checked_sub(1).map_or(0, |before| self.terms[before].1);
        let end = self.terms[at].1;
        self.postings
            .get(begin as usize..end as usize)
            .unwrap_or_default()
    }

    /// What it holds in memory, in bytes.
    fn bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.terms)
            + size_of_val(&*self.postings)
            + self.names.bytes()
    }
}

/// One occurrence of a term, while an index is made.
#[derive(Debug, Clone, Copy)]
struct Occurrence {
    term: TermHash,
    tool: u32,
    /// One bit.
    field: u8,
    /// Before saturation.
    weight: f32,
}

/// Makes an index, tool by tool.
struct IndexBuilder {
    splitter: Splitter,
    scenario: Vec<TermHash>,
    /// The terms of each field of the tool at hand.
    fields: [Vec<TermHash>; 8],
    occurrences: Vec<Occurrence>,
    names: ToolNamesBuilder,
}

impl IndexBuilder {
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
            names: ToolNamesBuilder::default(),
        }
    }

    fn add(&mut self, number: u32, manifest: &Manifest, tool: &ViewTool) {
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
                names.put(number, text, splitter);
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
                tool: number,
                field: field.bit(),
                weight,
            };
            occurrences.extend(terms.iter().map(of));
        }
    }

    fn finish(mut self) -> SearchIndex {
        // The field is in the key too: the sum of floats depends on their order.
        self.occurrences
            .sort_unstable_by_key(|one| (one.term, one.tool, one.field));
        let mut terms = Vec::new();
        let mut postings = Vec::new();
        for of_term in self.occurrences.chunk_by(|a, b| a.term == b.term) {
            for of_tool in of_term.chunk_by(|a, b| a.tool == b.tool) {
                postings.push(Posting {
                    tool: of_tool[0].tool,
                    weight: bm25f::saturate(of_tool.iter().map(|one| one.weight).sum()),
                    fields: of_tool.iter().fold(0, |fields, one| fields | one.field),
                });
            }
            // Bounded tools have far fewer words than the type has numbers.
            let end = u32::try_from(postings.len()).unwrap_or(u32::MAX);
            terms.push((of_term[0].term, end));
        }
        SearchIndex {
            terms: terms.into(),
            postings: postings.into(),
            names: self.names.finish(),
        }
    }
}
