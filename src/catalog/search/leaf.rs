//! The index of some tools of one scenario: for each term, which tools have it, where, and how much
//! it weighs there.
//!
//! Terms are kept as 32 bits of their hash, so no description is kept twice. Two terms of a catalog
//! of 100,000 tools share a hash in about one of 40,000 searches.

use xxhash_rust::xxh3::xxh3_64;

use super::names::LeafNames;

/// Tools of a leaf at most.
pub(super) const TOOLS: usize = 256;

/// What a word is looked up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TermHash(u32);

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

/// A term in a tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Posting {
    /// Which of the leaf's tools.
    pub(super) tool: u8,
    /// In which fields it is, a bit each.
    pub(super) fields: u8,
    /// The saturated weight, from 0 to 1, in steps of 1/65535.
    weight: u16,
}

impl Posting {
    /// The saturated weight, from 0 to 1.
    pub(super) fn weight(self) -> f32 {
        f32::from(self.weight) / f32::from(u16::MAX)
    }
}

/// One occurrence of a term, while a leaf is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Occurrence {
    pub(super) term: TermHash,
    pub(super) tool: u8,
    /// One bit.
    pub(super) field: u8,
    /// Before saturation.
    pub(super) weight: f32,
}

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct Leaf {
    /// Sorted; each with where its postings begin. One more at the end says where the last ones
    /// end.
    terms: Box<[(TermHash, u32)]>,
    /// In the order of the terms, those of a term in the order of the tools.
    postings: Box<[Posting]>,
    /// What its tools are called.
    pub(super) names: LeafNames,
}

impl Leaf {
    /// Makes the leaf of these occurrences, in whatever order; `saturate` maps the summed weight of
    /// a term in a tool into 0 to 1.
    pub(super) fn build(
        occurrences: &mut [Occurrence],
        names: LeafNames,
        saturate: impl Fn(f32) -> f32,
    ) -> Self {
        // The field is in the key too: the sum of floats depends on their order.
        occurrences.sort_unstable_by_key(|one| (one.term, one.tool, one.field));
        let mut terms = Vec::new();
        let mut postings = Vec::with_capacity(occurrences.len());
        for same_term in occurrences.chunk_by(|a, b| a.term == b.term) {
            terms.push((same_term[0].term, index(postings.len())));
            postings.extend(
                same_term
                    .chunk_by(|a, b| a.tool == b.tool)
                    .map(|same_tool| {
                        let weight = saturate(same_tool.iter().map(|one| one.weight).sum());
                        Posting {
                            tool: same_tool[0].tool,
                            fields: same_tool.iter().fold(0, |fields, one| fields | one.field),
                            weight: steps(weight),
                        }
                    }),
            );
        }
        terms.push((TermHash(u32::MAX), index(postings.len())));
        Self {
            terms: terms.into(),
            postings: postings.into(),
            names,
        }
    }

    /// Where a term is.
    pub(super) fn find(&self, term: TermHash) -> &[Posting] {
        // Hashes are spread evenly, so the place of one is near where its value says.
        let known = self.terms.len().saturating_sub(1);
        let Some(terms) = self.terms.get(..known) else {
            return &[];
        };
        let guess = (u64::from(term.0) * known as u64) >> 32;
        let mut at = usize::try_from(guess).unwrap_or_default();
        while at > 0 && terms[at - 1].0 >= term {
            at -= 1;
        }
        while at < known && terms[at].0 < term {
            at += 1;
        }
        match terms.get(at) {
            Some((found, begin)) if *found == term => {
                let end = self.terms[at + 1].1;
                self.postings
                    .get(*begin as usize..end as usize)
                    .unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// What it holds in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.terms)
            + size_of_val(&*self.postings)
            + self.names.bytes()
    }
}

/// A place within a leaf; what 256 bounded tools hold is far below the type's limit.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what the type holds"
)]
fn steps(weight: f32) -> u16 {
    (weight.clamp(0.0, 1.0) * f32::from(u16::MAX)).round() as u16
}
