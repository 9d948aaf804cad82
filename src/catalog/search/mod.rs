//! Search: which tools of a view a text speaks of, best first.
//!
//! Pure. Each entry of the catalog has a small index of its own, made once and shared between catalogs, so a change costs the work of
//! the scenarios that changed. A search looks its words up in the index of each scenario in the view, counts how many tools have each
//! word, and adds up what the words weigh. What is outside the view has no part in that: nobody's ranking depends on tools that he
//! cannot see.
//!
//! Never decides what is in a view, and reads no text of a tool at search time.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Entry, Part, View};
use crate::model::ViewTool;

mod fields;
mod fold;
mod index;
mod leaf;
mod weigh;
mod words;

pub use fields::{Field, Fields};
pub use index::Indexed;

use index::Index;
use leaf::{Posting, TOOLS, Term};
use words::{Splitter, stem};

/// Words of a search that are looked up; further ones do not count.
pub const SEARCH_WORDS: usize = 256;

/// A tool that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The tool, as the view has it.
    pub tool: Arc<ViewTool>,
    /// How well it fits: above 0, comparable within one answer only.
    pub score: f32,
    /// Where words were found.
    pub fields: Fields,
}

impl View {
    /// The tools of this view that have at least one word of `text` in one of the [`Field`]s, best first, at most `limit` of them. Equal
    /// scores are in the order of the view: by scenario, then by tool, bytewise. Equal views give equal answers in any process,
    /// whatever the order in which their scenarios came.
    pub fn rank(&self, text: &str, limit: usize) -> Vec<Hit> {
        let terms = terms(text);
        if terms.is_empty() || limit == 0 {
            return Vec::new();
        }
        let found = self.find(&terms);
        let mut best = Best::new(limit);
        for (at, part) in self.parts.iter().enumerate() {
            found.score(at, part, &terms, &mut best);
        }
        best.finish().into_iter().filter_map(|candidate| self.hit(candidate)).collect()
    }

    /// Looks every term up in every leaf, and weighs the terms by how many tools have them.
    fn find<'a>(&'a self, terms: &[(Term, f32)]) -> Found<'a> {
        let (mut postings, mut begins) = (Vec::new(), Vec::with_capacity(self.parts.len()));
        let (mut having, mut all) = (vec![0; terms.len()], 0);
        for part in &self.parts {
            begins.push(postings.len());
            all += part.entry.tools.len();
            for leaf in &part.entry.index().leaves {
                for ((term, _), having) in terms.iter().zip(&mut having) {
                    let of_term = leaf.find(*term);
                    *having += of_term.len();
                    postings.push(of_term);
                }
            }
        }
        let rarity = having.into_iter().zip(terms).map(|(having, (_, times))| weigh::rarity(having, all) * times);
        Found { postings, begins, rarity: rarity.collect() }
    }

    fn hit(&self, candidate: Candidate) -> Option<Hit> {
        let tool = self.parts.get(candidate.part as usize)?.tools.get(candidate.tool as usize)?;
        Some(Hit { tool: Arc::clone(tool), score: candidate.score, fields: Fields(candidate.fields) })
    }
}

/// The distinct terms of a search in the order of their first occurrence, each with how often it occurs.
fn terms(text: &str) -> Vec<(Term, f32)> {
    let mut terms: Vec<(Term, f32)> = Vec::new();
    Splitter::default().split(text, |word| {
        let term = Term::of(stem(word));
        if let Some((_, times)) = terms.iter_mut().find(|(known, _)| *known == term) {
            *times += 1.0;
        } else if terms.len() < SEARCH_WORDS {
            terms.push((term, 1.0));
        }
    });
    terms
}

/// What the leaves of a view say of the terms.
struct Found<'a> {
    /// Leaf by leaf, one slice for each term.
    postings: Vec<&'a [Posting]>,
    /// Where the slices of each part begin.
    begins: Vec<usize>,
    /// How telling each term is.
    rarity: Vec<f32>,
}

/// A tool while it is decided who is best.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    score: f32,
    part: u32,
    /// Within the part's tools.
    tool: u32,
    fields: u8,
}

impl Found<'_> {
    /// Scores the tools of one part.
    fn score(&self, at: usize, part: &Part, terms: &[(Term, f32)], best: &mut Best) {
        let places = Places::of(part);
        let leaves = self.postings.get(self.begins[at]..).unwrap_or_default().chunks(terms.len());
        let number = u32::try_from(at).unwrap_or(u32::MAX);
        for (leaf, postings) in leaves.take(part.entry.tools.len().div_ceil(TOOLS)).enumerate() {
            let scored = Scored::of(postings, &self.rarity);
            for (tool, (score, fields)) in scored.hits() {
                if let Some(tool) = places.place(leaf * TOOLS + tool) {
                    best.take(Candidate { score, part: number, tool, fields });
                }
            }
        }
        for (tool, index) in &places.renamed {
            let postings: Vec<&[Posting]> = match &*index.leaves {
                [leaf] => terms.iter().map(|(term, _)| leaf.find(*term)).collect(),
                _ => Vec::new(),
            };
            for (_, (score, fields)) in Scored::of(&postings, &self.rarity).hits() {
                best.take(Candidate { score, part: number, tool: *tool, fields });
            }
        }
    }
}

/// The tools of a leaf with what was added up for each.
struct Scored {
    scores: [f32; TOOLS],
    fields: [u8; TOOLS],
}

impl Scored {
    fn of(postings: &[&[Posting]], rarity: &[f32]) -> Self {
        let mut scored = Self { scores: [0.0; TOOLS], fields: [0; TOOLS] };
        for (of_term, rarity) in postings.iter().zip(rarity) {
            for posting in *of_term {
                let tool = usize::from(posting.tool);
                scored.scores[tool] += posting.weight() * rarity;
                scored.fields[tool] |= posting.fields;
            }
        }
        scored
    }

    fn hits(&self) -> impl Iterator<Item = (usize, (f32, u8))> {
        let all = self.scores.iter().copied().zip(self.fields.iter().copied()).enumerate();
        all.filter(|(_, (_, fields))| *fields != 0)
    }
}

/// Where the tools of an entry stand in a part of a view.
struct Places {
    /// By place in the entry; `None` when both are the same.
    by_entry: Option<Vec<Option<u32>>>,
    /// Tools that the view names otherwise than the entry, by place in the part, each with an index of its own.
    renamed: Vec<(u32, Index)>,
}

impl Places {
    fn of(part: &Part) -> Self {
        let entry: &Entry = &part.entry;
        if Arc::ptr_eq(&part.tools, &entry.tools) {
            return Self { by_entry: None, renamed: Vec::new() };
        }
        let (mut by_entry, mut renamed) = (vec![None; entry.tools.len()], Vec::new());
        // Both are sorted by name.
        let mut global = entry.tools.iter().enumerate();
        for (place, tool) in (0..).zip(part.tools.iter()) {
            let Some((at, global)) = global.find(|(_, global)| global.id.tool == tool.id.tool) else { continue };
            if Arc::ptr_eq(global, tool) || global.name == tool.name {
                by_entry[at] = Some(place);
            } else {
                let alone = std::slice::from_ref(tool);
                renamed.push((place, Index::of(&entry.name, &entry.manifest, alone)));
            }
        }
        Self { by_entry: Some(by_entry), renamed }
    }

    fn place(&self, at: usize) -> Option<u32> {
        match &self.by_entry {
            None => u32::try_from(at).ok(),
            Some(by_entry) => *by_entry.get(at)?,
        }
    }
}

/// The best candidates so far, and not many more.
struct Best {
    limit: usize,
    candidates: Vec<Candidate>,
}

impl Best {
    /// How many more than needed are kept before the worst are thrown away.
    const SLACK: usize = 4_096;

    fn new(limit: usize) -> Self {
        Self { limit, candidates: Vec::new() }
    }

    fn take(&mut self, candidate: Candidate) {
        self.candidates.push(candidate);
        if self.candidates.len() >= self.limit.saturating_mul(2).saturating_add(Self::SLACK) {
            self.candidates.select_nth_unstable_by(self.limit, better);
            self.candidates.truncate(self.limit);
        }
    }

    fn finish(mut self) -> Vec<Candidate> {
        if self.candidates.len() > self.limit {
            self.candidates.select_nth_unstable_by(self.limit, better);
            self.candidates.truncate(self.limit);
        }
        self.candidates.sort_unstable_by(better);
        self.candidates
    }
}

/// The better one first; equal ones in the order of the view.
fn better(a: &Candidate, b: &Candidate) -> Ordering {
    b.score.total_cmp(&a.score).then_with(|| (a.part, a.tool).cmp(&(b.part, b.tool)))
}
