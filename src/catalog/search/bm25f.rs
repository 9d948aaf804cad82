//! How much a word counts: BM25F with reference lengths.
//!
//! Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section
//! 3.6, but for one thing: a field's length is held against a fixed reference length instead of the
//! catalog's mean. So what a word weighs in a tool is known when its scenario is indexed, and no
//! tool's weight changes because another scenario came.

use super::fields::Field;

/// How soon further occurrences of a word stop to count. The usual value; once sentences are ranked
/// by themselves, 4 found 0.8 points fewer.
const K1: f32 = 1.2;

/// What a field counts, how much its length does, and a usual length in words.
struct Weight {
    field: f32,
    b: f32,
    length: f32,
}

/// Words of one field of a tool that are looked at: an hour's reading is no description, and the
/// index has to stay small.
pub(super) const FIELD_WORDS: usize = 2_000;

const fn weight(field: f32, b: f32, length: f32) -> Weight {
    Weight { field, b, length }
}

/// The table. Values were moved one at a time over the even queries of the corpus that the figures
/// come from, with the odd ones beside them; the ranking is rather flat around them: a field's
/// weight halved or doubled moved recall by one point at most. Titles, tags and the names of
/// scenarios do not occur in that corpus; they are weighed as what they are most like.
const fn field_weight(field: Field) -> Weight {
    match field {
        Field::Name => weight(3.0, 0.3, 4.0),
        Field::Title => weight(2.0, 0.3, 4.0),
        Field::Description => weight(1.5, 0.75, 10.0),
        Field::Parameter => weight(0.6, 0.75, 6.0),
        Field::ParameterText => weight(0.5, 0.75, 30.0),
        Field::Tag => weight(1.0, 0.3, 4.0),
        Field::Category => weight(0.5, 0.5, 4.0),
        Field::Scenario => weight(0.5, 0.3, 3.0),
    }
}

/// What one occurrence weighs in a field of so many words.
#[expect(clippy::cast_precision_loss, reason = "at most `FIELD_WORDS`")]
pub(super) fn occurrence(field: Field, words: usize) -> f32 {
    let weight = field_weight(field);
    weight.field / (1.0 - weight.b + weight.b * words as f32 / weight.length)
}

/// The summed weight of a word in a tool, from 0 to 1.
pub(super) fn saturate(weight: f32) -> f32 {
    weight / (weight + K1)
}

/// The weight of a word that so many of all tools have.
#[expect(
    clippy::cast_precision_loss,
    reason = "far fewer tools than where that begins to matter"
)]
pub(super) fn rarity(having: usize, all: usize) -> f32 {
    let having = having as f32;
    let all = all as f32;
    (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
}
