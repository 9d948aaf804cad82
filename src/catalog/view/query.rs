//! The query of a client to the catalog.

use std::collections::BTreeSet;

use super::sticky::StickyTools;
use crate::model::{Permission, ScenarioName};

/// The scope, filters and limits of a view. Equal queries on equal catalogs give equal views.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a condition of its own"
)]
pub struct ViewQuery {
    /// Preferences of this profile apply, and its bounds (see [`crate::model::Profile`]).
    pub profile: Option<String>,
    /// The level that the client says it has. It lowers that of its profile and never raises it.
    pub permission: Option<Permission>,
    /// It is a view for operators: if it names no profile, it has none, also where the
    /// configuration has one for clients that name none.
    pub of_operator: bool,
    /// Preferences of this conversation apply.
    pub chat: Option<String>,
    /// Only tools of these scenarios; all when empty.
    pub scenarios: BTreeSet<ScenarioName>,
    /// Only tools of these categories; all when empty.
    pub categories: BTreeSet<String>,
    /// Only tools with one of these tags; all when empty.
    pub tags: BTreeSet<String>,
    /// What the tools are for. Only tools that [`View::rank`](super::View::rank) finds for it, and
    /// pinned ones; with [`Defer::Relevance`] the others are deferred instead.
    pub q: Option<String>,
    /// Only tools that are always listed: the client finds the others by search.
    pub pinned_only: bool,
    /// Disabled tools too.
    pub include_disabled: bool,
    /// Tools marked as internal too (programs may see them, LLMs never do).
    pub include_internal: bool,
    /// At most so many loaded tools. Only tools that are always listed may exceed it.
    pub max_tools: Option<usize>,
    /// At most so many tokens of loaded tools, as the [`Estimator`](super::Estimator) estimates
    /// them. Only tools that are always listed may exceed it.
    pub max_tokens: Option<usize>,
    /// At most so many tools, loaded or deferred, pinned or not: the target of the list takes no
    /// more.
    pub cap: Option<usize>,
    /// Tools that are not needed at once are deferred where the target can say so, and left out
    /// elsewhere.
    pub defer: Option<Defer>,
    /// What the conversation carries already: those tools keep their places.
    pub sticky: Option<StickyTools>,
}

/// Which tools are loaded at once, and which are deferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Defer {
    /// Those relevant to [`ViewQuery::q`] are loaded, within the budget.
    Relevance,
    /// The pinned ones and those of the highest priority are loaded: as many as the budget has
    /// places for, and without a budget those whose priority is above 0.
    Preference,
}

impl ViewQuery {
    /// Whether the query wants a choice among the visible tools.
    pub fn chooses(&self) -> bool {
        let given = [
            self.q.is_some(),
            self.max_tools.is_some(),
            self.max_tokens.is_some(),
        ];
        given.contains(&true) || self.defer.is_some() || self.sticky.is_some()
    }

    /// Whether the client names what may bound it.
    pub fn names_bounds(&self) -> bool {
        self.profile.is_some() || self.permission.is_some()
    }

    /// Whether tools compete for places, so that one tool's change may bring another one in or out.
    pub fn competes(&self) -> bool {
        self.chooses() || self.cap.is_some()
    }
}
