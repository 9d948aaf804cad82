//! The catalog as one asker may see it: scope, filters, relevance, budgets, what a conversation carries, what is deferred.
//!
//! Never decides whether a tool is enabled or what it is called; only which of the published tools an asker gets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::lens::Lens;
use super::{Catalog, Entry};
use crate::model::{ScenarioName, ToolId, ViewTool};

pub mod absence;
mod budget;
pub mod carried;
mod choose;
mod filter;
mod room;

pub use absence::{Absence, LeftOut};
pub use budget::{Estimator, Generic};
pub use carried::{Carried, Mark};

use filter::Filter;

/// What an asker wants to see. Equal queries on equal catalogs give equal views.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ViewQuery {
    /// Preferences of this profile hold, and its bounds (see [`crate::model::Profile`]).
    pub profile: Option<String>,
    /// Preferences of this conversation hold.
    pub chat: Option<String>,
    /// Only tools of these scenarios; all when empty.
    pub scenarios: BTreeSet<ScenarioName>,
    /// Only tools of these categories; all when empty.
    pub categories: BTreeSet<String>,
    /// Only tools with one of these tags; all when empty.
    pub tags: BTreeSet<String>,
    /// What the tools are for. Only tools that [`View::rank`] finds for it, and pinned ones; with [`Defer::Relevance`] the others are
    /// deferred instead.
    pub q: Option<String>,
    /// Disabled tools too.
    pub include_disabled: bool,
    /// Tools marked as internal too (programs may see them, LLMs never do).
    pub include_internal: bool,
    /// At most so many loaded tools. Only pinned tools may exceed it.
    pub max_tools: Option<usize>,
    /// At most so many tokens of loaded tools, as the [`Estimator`] estimates them. Only pinned tools may exceed it.
    pub max_tokens: Option<usize>,
    /// At most so many tools, loaded or deferred, pinned or not: what the list is for takes no more.
    pub cap: Option<usize>,
    /// Tools that are not needed at once are deferred where the target can say so, and left out elsewhere.
    pub defer: Option<Defer>,
    /// What the conversation carries already: those tools keep their places.
    pub sticky: Option<Carried>,
}

/// Which tools are loaded at once, and which are deferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Defer {
    /// Those relevant to [`ViewQuery::q`] are loaded, within the budget.
    Relevance,
    /// The pinned ones and those of the highest priority are loaded: as many as the budget has places for, and without a budget those
    /// whose priority is above 0.
    Preference,
}

/// The result.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The scenarios that are in the list, in order, each with those of its tools that are in the view. A part without tools is only
    /// kept for a published scenario that offers none at all (which is a valid manifest), when no filter asks for certain tools. Where
    /// a conversation carries tools, these come first, in their old order, then the further loaded ones, then the deferred ones: then
    /// a scenario may have several parts.
    pub parts: Vec<Part>,
    /// Tools that would be in the view without budgets, relevance and deferring, in order, each with its reason.
    pub left_out: Vec<LeftOut>,
    /// How the tools were chosen, when they had to be: one for each tool in the view.
    pub picks: BTreeMap<ToolId, Pick>,
    /// What an asker should know of the choice.
    pub notes: Vec<ViewNote>,
}

/// Why a tool was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Pick {
    /// Its place among all that could be chosen, 1 for the first.
    pub rank: usize,
    /// How relevant it is to `q`, comparable within one answer only.
    pub score: Option<f32>,
    /// What brought it in.
    pub why: Why,
    /// Whether it is deferred.
    pub deferred: bool,
}

/// What brought a tool into a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A preference pins it.
    Pinned,
    /// The conversation carries it.
    Sticky,
    /// It is relevant to `q`.
    Relevant,
    /// Its priority and its place in the order.
    Order,
}

/// What an asker should know of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewNote {
    /// The pinned tools alone are beyond `max_tools` or `max_tokens`.
    PinnedOverBudget,
    /// No tool would be loaded, so the best one is: not all tools can be deferred.
    OneLoaded,
    /// What `sticky` says cannot be read, so the tools were chosen as without it.
    StickyUnknown,
    /// Of the tools that the conversation carries so many are not in the list any more.
    StickyGone(usize),
}

/// One scenario's share of a view.
#[derive(Debug, Clone)]
pub struct Part {
    /// The scenario.
    pub entry: Arc<Entry>,
    /// Its tools in the view, sorted by original name unless a conversation carries some of them. Shared with the entry when `whole`.
    pub tools: Arc<[Arc<ViewTool>]>,
    /// Whether `tools` is exactly [`Entry::listed`]: the entry's tools that are enabled and not internal, with global settings and
    /// names, all of them loaded. Such parts can be rendered once per entry. This is judged by the outcome, not by the query: a filter
    /// that takes all of them, a limit that cuts none of them, a scope that changes none of them or an `include_*` that adds none
    /// leaves a part whole.
    pub whole: bool,
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
    /// A short name for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::PinnedOverBudget => "pinned-over-budget",
            Self::OneLoaded => "one-loaded",
            Self::StickyUnknown => "sticky-unknown",
            Self::StickyGone(_) => "sticky-gone",
        }
    }
}

impl ViewQuery {
    /// Whether the asker wants a choice of the tools that he may see.
    pub fn chooses(&self) -> bool {
        let asked = [self.q.is_some(), self.max_tools.is_some(), self.max_tokens.is_some()];
        asked.contains(&true) || self.defer.is_some() || self.sticky.is_some()
    }

    /// Whether tools compete for places, so that one tool's change may bring another one in or out.
    pub fn competes(&self) -> bool {
        self.chooses() || self.cap.is_some()
    }
}

impl View {
    /// The part of the catalog that `query` asks for. Tokens are those of [`Generic`], and what is deferred is left out.
    pub fn select(catalog: &Catalog, query: &ViewQuery) -> Self {
        Self::select_for(catalog, query, &Generic)
    }

    /// The same, for a list that costs what `target` says.
    pub fn select_for(catalog: &Catalog, query: &ViewQuery, target: &dyn Estimator) -> Self {
        let lens = Lens::of(catalog, query);
        let filter = Filter::of(catalog, query);
        let take = |entry: &Arc<Entry>| entry.is_published().then(|| filter.part(&lens, entry)).flatten();
        let parts = if query.scenarios.is_empty() {
            catalog.entries().filter_map(take).collect()
        } else {
            query.scenarios.iter().filter_map(|name| catalog.entry(name)).filter_map(take).collect()
        };
        let view = Self { parts, ..Self::default() };
        if query.competes() { view.chosen(query, target) } else { view }
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
