//! Search: finds the tools of a view that fit a text, best first.
//!
//! Pure. Each entry of the catalog has a small index of its own, made once and shared between
//! catalogs, so a change costs the work of the scenarios that changed. A search looks its words up
//! in the index of each scenario in the view, counts how many tools have each word, and adds up
//! what the words weigh. Tools outside the view are not counted: a client's ranking never depends
//! on tools that it cannot see.
//!
//! [`View::rank`](super::View::rank) is for questions, [`View::palette`](super::View::palette) for
//! names that are being typed. Never decides what is in a view, and reads no text of a tool at
//! search time.

use std::sync::Arc;

use crate::model::ViewTool;

mod bm25f;
mod distance;
mod fields;
mod index;
mod leaf;
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
