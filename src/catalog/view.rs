//! The catalog as one client may see it: scope, filters, relevance, budgets, what a conversation
//! carries, what is deferred.
//!
//! ```text
//! ViewQuery -> scoped_catalog -> filter -> (rank, if tools compete) -> placement -> View
//!              (settings, names)  (bounds, flags)     choose            (budgets)    + left_out
//! ```
//!
//! What is kept true here:
//!
//! - The ranking decides which tools are in a view, and not their order. The list keeps the order
//!   of the catalog, so one more tool changes no byte before its own place; with `sticky` the
//!   carried tools come first, in their earlier order.
//! - A tool that is not in a view has exactly one reason ([`Absence`]): the first in the order of
//!   deciding.
//! - Equal catalogs and queries give equal views: the daemon remembers no list and no conversation.
//! - If tools are deferred, at least one is loaded.
//! - A part that shows all of an entry's plain list is marked [`Part::whole`], so that it can be
//!   rendered once for all clients.
//!
//! Read in this order: `query.rs`, this file ([`View::select_for`]), `filter.rs` (which tools a
//! client may get), `choose.rs` with `candidate.rs` and `placement.rs` (which of them fit),
//! `estimator.rs`, `sticky.rs`; then `absence.rs` and `absences.rs` (why a tool is not in it).
//!
//! Never decides whether a tool is enabled or what it is called; only which of the published tools
//! a client gets.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::scoped_catalog::ScopedCatalog;
use super::{Catalog, CatalogEntry};
use crate::model::{ToolId, ViewTool};

pub mod absence;
mod absences;
mod candidate;
mod choose;
mod estimator;
mod filter;
mod placement;
mod query;
pub mod sticky;

pub use absence::{Absence, LeftOut};
pub use estimator::{Estimator, Generic};
pub use filter::Part;
pub use query::{Defer, ViewQuery};
pub use sticky::{StickyTools, ToolMark};

use filter::ViewFilter;

/// The tools that one client gets, and why others are left out.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The scenarios that are in the list, in order, each with those of its tools that are in the
    /// view. A part without tools is only kept for a published scenario that offers none at all
    /// (which is a valid manifest), when no filter asks for certain tools. Where a conversation
    /// carries tools, these come first, in their old order, then the further loaded ones, then the
    /// deferred ones: then a scenario may have several parts.
    pub parts: Vec<Part>,
    /// Tools that would be in the view without budgets, relevance and deferring, in order, each
    /// with its reason.
    pub left_out: Vec<LeftOut>,
    /// How the tools were chosen, when they had to be: one for each tool in the view.
    pub picks: BTreeMap<ToolId, Pick>,
    /// Notes for the client about the choice.
    pub notes: Vec<ViewNote>,
}

/// Why a tool was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Pick {
    /// Its place among all that could be chosen, 1 for the first.
    pub rank: usize,
    /// How relevant it is to `q`, comparable within one answer only.
    pub score: Option<f32>,
    /// The criterion that chose it.
    pub why: Why,
    /// Whether it is deferred.
    pub deferred: bool,
}

/// The criterion that chose a tool for a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A preference has it always listed.
    Pinned,
    /// The conversation carries it.
    Sticky,
    /// It is relevant to `q`.
    Relevant,
    /// Its priority and its place in the order.
    Order,
}

/// A note for the client about a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewNote {
    /// The tools that are always listed alone are beyond `max_tools` or `max_tokens`.
    PinnedOverBudget,
    /// No tool would be loaded, so the best one is: not all tools can be deferred.
    OneLoaded,
    /// The value of `sticky` cannot be parsed, so the tools were chosen without it.
    StickyUnknown,
    /// So many tools that the conversation carries are no longer in the list.
    StickyGone(usize),
}

impl Why {
    /// The reason as it is written in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Sticky => "sticky",
            Self::Relevant => "relevant",
            Self::Order => "order",
        }
    }
}

impl ViewNote {
    /// The note as programs read it.
    pub fn code(self) -> &'static str {
        match self {
            Self::PinnedOverBudget => "pinned-over-budget",
            Self::OneLoaded => "one-loaded",
            Self::StickyUnknown => "sticky-unknown",
            Self::StickyGone(_) => "sticky-gone",
        }
    }
}

impl View {
    /// The part of the catalog that `query` selects. Tokens are those of [`Generic`], and what is
    /// deferred is left out.
    pub fn select(catalog: &Catalog, query: &ViewQuery) -> Self {
        Self::select_for(catalog, query, &Generic)
    }

    /// The same, for a list that costs what `target` says.
    pub fn select_for(catalog: &Catalog, query: &ViewQuery, target: &dyn Estimator) -> Self {
        let lens = ScopedCatalog::for_query(catalog, query);
        let filter = ViewFilter::for_query(catalog, query);
        let take = |entry: &Arc<CatalogEntry>| {
            entry
                .is_published()
                .then(|| filter.part(&lens, entry))
                .flatten()
        };
        let parts = if query.scenarios.is_empty() {
            catalog.entries().filter_map(take).collect()
        } else {
            query
                .scenarios
                .iter()
                .filter_map(|name| catalog.entry(name))
                .filter_map(take)
                .collect()
        };
        let view = Self {
            parts,
            ..Self::default()
        };
        if query.competes() {
            view.chosen(query, target)
        } else {
            view
        }
    }

    /// How many tools it has.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.tools.len()).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its tools, in order.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<ViewTool>> {
        self.parts.iter().flat_map(|part| part.tools.iter())
    }

    /// Whether this tool of the view is deferred.
    pub fn is_deferred(&self, tool: &ViewTool) -> bool {
        self.picks.get(&tool.id).is_some_and(|pick| pick.deferred)
    }
}
