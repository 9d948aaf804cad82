//! Search: finds the tools of a view that fit a text, best first.
//!
//! ```text
//! tool --fields, tokenizer--> terms --bm25f--> index of one scenario
//! text --query------------------------------> look up each index, add up --> Hits
//! ```
//!
//! Each entry of the catalog has a small index of its own, made by the first search and shared
//! between catalogs. A search looks its words up in the index of each scenario in the view, counts
//! how many tools have each word, and adds up what the words weigh.
//! [`View::rank`](super::View::rank) is for questions, [`View::palette`](super::View::palette) for
//! names that are being typed.
//!
//! What is kept true here:
//!
//! - Pure. Equal views give equal answers, whatever order the scenarios came in.
//! - Tools outside the view are not counted: a client's ranking never depends on tools that it
//!   cannot see.
//! - A change costs the work of the scenarios that changed.
//! - No text of a tool is read at search time: an index has hashes of words, and names for the
//!   palette.
//!
//! Read in this order: `fields.rs` (what is searched), `tokenizer.rs` and `fold.rs` (texts to
//! words), `bm25f.rs` (what a word weighs), `index.rs` (where that is kept); then
//! `query.rs`, `stop_words.rs` and `rank.rs` for questions, `names.rs`, `distance.rs` and
//! `palette.rs` for names.
//!
//! Never decides what is in a view.

use std::sync::Arc;

use crate::model::ViewTool;

mod bm25f;
mod distance;
mod fields;
mod index;
mod names;
mod palette;
mod query;
mod rank;
mod stop_words;
mod tokenizer;

pub use fields::{Field, Fields};
pub use index::Indexed;
pub use palette::Tier;
pub use query::SEARCH_WORDS;

/// A tool that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The tool, as the view has it.
    pub tool: Arc<ViewTool>,
    /// How well it fits: above 0, comparable within one answer (of a palette: within one tier of
    /// it) only.
    pub score: f32,
    /// Where words were found.
    pub fields: Fields,
    /// How it fits what is being typed; `None` in a ranking.
    pub tier: Option<Tier>,
}
