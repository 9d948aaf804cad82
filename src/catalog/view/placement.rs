//! The places of a list, given away one by one in the order of the ranking.

use super::candidate::ViewCandidate;
use super::{Absence, Defer, Estimator, ViewNote, ViewQuery, Why};
use crate::model::ViewTool;

/// Tools in a row that may be too big for what is left of `max_tokens` before no further one is
/// tried: what a tool costs is only known once it is encoded, and a catalog may have many
/// thousands.
const TRIES: usize = 64;

/// The outcome for a candidate.
pub(super) enum Placement {
    Loaded,
    Deferred,
    Out(Absence),
}

/// What is taken so far.
pub(super) struct PlacementBudget<'a> {
    query: &'a ViewQuery,
    target: &'a dyn Estimator,
    /// Whether what a tool costs, or whether the target can say it, may decide about another one.
    scarce: bool,
    loaded: usize,
    tokens: usize,
    deferred: usize,
    /// Tools in a row that were too big.
    misses: usize,
    pinned_over: bool,
    one_loaded: bool,
}

impl<'a> PlacementBudget<'a> {
    pub(super) fn new(
        query: &'a ViewQuery,
        target: &'a dyn Estimator,
        candidates: &[ViewCandidate],
    ) -> Self {
        let limits = [query.max_tools, query.cap];
        // Where tools are deferred, one that the target can say has to be loaded.
        let scarce = query.defer.is_some()
            || query.max_tokens.is_some()
            || limits.iter().flatten().any(|most| *most < candidates.len());
        let loaded = 0;
        let tokens = 0;
        let deferred = 0;
        let misses = 0;
        Self {
            query,
            target,
            scarce,
            loaded,
            tokens,
            deferred,
            misses,
            pinned_over: false,
            one_loaded: false,
        }
    }

    /// What becomes of the next one in the ranking.
    pub(super) fn fate(&mut self, candidate: &ViewCandidate) -> Placement {
        let query = self.query;
        let pinned = candidate.why == Why::Pinned;
        if query.q.is_some() && query.defer != Some(Defer::Relevance) && candidate.why == Why::Order
        {
            return Placement::Out(Absence::Irrelevant);
        }
        if let Some(cap) = query.cap.filter(|cap| self.loaded + self.deferred >= *cap) {
            return Placement::Out(Absence::OverCap(cap));
        }
        if !self.wants(candidate) {
            return self.put_off(Absence::Deferred);
        }
        if let Some(most) = query
            .max_tools
            .filter(|most| !pinned && self.loaded >= *most)
        {
            return self.put_off(Absence::OverTools(most));
        }
        let budget = query.max_tokens.unwrap_or(usize::MAX);
        if !pinned && self.misses >= TRIES {
            return self.put_off(Absence::OverTokens(budget));
        }
        // A tool that the target cannot express stays in the view, where the target reports the
        // reason. It takes no place.
        let Some(cost) = self.cost(&candidate.tool) else {
            return Placement::Loaded;
        };
        if !pinned && self.tokens + cost > budget {
            self.misses += 1;
            return self.put_off(Absence::OverTokens(budget));
        }
        self.load(cost);
        self.pinned_over |= pinned
            && (self.tokens > budget || query.max_tools.is_some_and(|most| self.loaded > most));
        Placement::Loaded
    }

    /// Whether it is to be loaded at once, if there is room.
    fn wants(&self, candidate: &ViewCandidate) -> bool {
        let budget = self.query.max_tools.is_some() || self.query.max_tokens.is_some();
        match self.query.defer {
            None => true,
            Some(Defer::Relevance) => candidate.why != Why::Order,
            Some(Defer::Preference) => {
                budget
                    || matches!(candidate.why, Why::Pinned | Why::Sticky)
                    || candidate.tool.effective.priority > 0
            }
        }
    }

    fn cost(&self, tool: &ViewTool) -> Option<usize> {
        if self.scarce {
            self.target.tokens(tool)
        } else {
            Some(0)
        }
    }

    fn load(&mut self, cost: usize) {
        self.loaded += 1;
        self.tokens += cost;
        self.misses = 0;
    }

    /// Defers a tool, or leaves it out where that cannot be.
    fn put_off(&mut self, why: Absence) -> Placement {
        match (self.query.defer, self.target.max_deferred()) {
            (None, _) => Placement::Out(why),
            (Some(_), None) => Placement::Out(Absence::Deferred),
            (Some(_), Some(most)) if self.deferred >= most => {
                Placement::Out(Absence::OverDeferred(most))
            }
            (Some(_), Some(_)) => {
                self.deferred += 1;
                Placement::Deferred
            }
        }
    }

    /// Not all tools can be deferred: when nothing is loaded, the best one is after all.
    pub(super) fn load_one(&mut self, candidates: &[ViewCandidate], fates: &mut [Placement]) {
        if self.query.defer.is_none() || self.loaded > 0 {
            return;
        }
        let put_off = |fate: &Placement| {
            matches!(
                fate,
                Placement::Deferred | Placement::Out(Absence::Deferred)
            )
        };
        let best = candidates.iter().zip(fates).find(|(candidate, fate)| {
            put_off(fate) && self.target.tokens(&candidate.tool).is_some()
        });
        if let Some((_, fate)) = best {
            *fate = Placement::Loaded;
            self.one_loaded = true;
        }
    }

    /// Notes for the client about the choice.
    pub(super) fn notes(&self) -> impl Iterator<Item = ViewNote> + use<> {
        let pinned = self.pinned_over.then_some(ViewNote::PinnedOverBudget);
        pinned
            .into_iter()
            .chain(self.one_loaded.then_some(ViewNote::OneLoaded))
    }
}
