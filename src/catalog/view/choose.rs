//! Chooses the tools of a view when they compete for places, and sets their order.
//!
//! The ranking: what is pinned, then what the conversation carries (in its order), then by
//! relevance to `q`, then by priority, then in the usual order. Only the choice follows it. The
//! list stays in the usual order, so that one more tool changes no byte before its own place; with
//! `sticky` the carried tools come first, in theirs, for the same reason.

use std::collections::HashMap;
use std::sync::Arc;

use super::candidate::ViewCandidate;
use super::placement::{Placement, PlacementBudget};
use super::{Estimator, LeftOut, Part, Pick, StickyTools, View, ViewNote, ViewQuery, Why};
use crate::model::ToolId;

impl View {
    /// The view with the choice made.
    pub(super) fn chosen(mut self, query: &ViewQuery, target: &dyn Estimator) -> Self {
        let total = self.len();
        let fits = |most: Option<usize>| most.is_none_or(|most| total <= most);
        let selects = query.q.is_some()
            || query.max_tokens.is_some()
            || query.defer.is_some()
            || query.sticky.is_some();
        if !selects && fits(query.max_tools) && fits(query.cap) {
            return self;
        }
        let scores: HashMap<ToolId, f32> = match &query.q {
            Some(text) => self
                .rank(text, usize::MAX)
                .into_iter()
                .map(|hit| (hit.tool.id.clone(), hit.score))
                .collect(),
            None => HashMap::new(),
        };
        let candidates = self.candidates(query, &scores);
        self.note_carried(query.sticky.as_ref(), &candidates);
        let mut room = PlacementBudget::new(query, target, &candidates);
        let mut fates: Vec<Placement> = candidates
            .iter()
            .map(|candidate| room.fate(candidate))
            .collect();
        room.load_one(&candidates, &mut fates);
        self.notes.extend(room.notes());
        let mut carried = HashMap::new();
        let mut placed = Vec::with_capacity(total);
        for (rank, (candidate, fate)) in candidates.into_iter().zip(fates).enumerate() {
            let ViewCandidate {
                tool,
                at,
                score,
                why,
                ..
            } = candidate;
            carried.extend(candidate.carried.map(|place| (tool.id.clone(), place)));
            let deferred = matches!(fate, Placement::Deferred);
            placed.push((
                at,
                (
                    fate,
                    Pick {
                        rank: rank + 1,
                        score,
                        why,
                        deferred,
                    },
                ),
            ));
        }
        placed.sort_unstable_by_key(|(at, _)| *at);
        self.keep(placed.into_iter().map(|(_, placed)| placed).collect());
        if !carried.is_empty() {
            self.arrange(&carried);
        }
        self
    }

    /// Everything that competes, best first.
    fn candidates(&self, query: &ViewQuery, scores: &HashMap<ToolId, f32>) -> Vec<ViewCandidate> {
        let places = query.sticky.as_ref().map(StickyTools::places);
        let mut candidates: Vec<ViewCandidate> = self
            .tools()
            .enumerate()
            .map(|(at, tool)| {
                let score = scores.get(&tool.id).copied();
                let carried = places.as_ref().and_then(|place| place(&tool.id));
                let why = match (tool.effective.pinned, carried, score) {
                    (true, ..) => Why::Pinned,
                    (_, Some(_), _) => Why::Sticky,
                    (_, _, Some(_)) => Why::Relevant,
                    _ => Why::Order,
                };
                ViewCandidate {
                    tool: Arc::clone(tool),
                    at,
                    score,
                    carried,
                    why,
                }
            })
            .collect();
        let group = |candidate: &ViewCandidate| {
            (candidate.why as u8, candidate.carried.unwrap_or(usize::MAX))
        };
        candidates.sort_by(|a, b| {
            let by_score = b
                .score
                .unwrap_or_default()
                .total_cmp(&a.score.unwrap_or_default());
            let by_priority = b.tool.effective.priority.cmp(&a.tool.effective.priority);
            group(a)
                .cmp(&group(b))
                .then(by_score)
                .then(by_priority)
                .then(a.at.cmp(&b.at))
        });
        candidates
    }

    fn note_carried(&mut self, carried: Option<&StickyTools>, candidates: &[ViewCandidate]) {
        let Some(carried) = carried else { return };
        if carried.is_unreadable() {
            self.notes.push(ViewNote::StickyUnknown);
        }
        let here = candidates
            .iter()
            .filter(|candidate| candidate.carried.is_some())
            .count();
        if let Some(gone) = carried
            .marks()
            .len()
            .checked_sub(here)
            .filter(|gone| *gone > 0)
        {
            self.notes.push(ViewNote::StickyGone(gone));
        }
    }

    /// Keeps what was chosen, in the usual order. A part of which nothing was taken stays whole.
    fn keep(&mut self, fates: Vec<(Placement, Pick)>) {
        let mut fates = fates.into_iter();
        let picks = &mut self.picks;
        let left_out = &mut self.left_out;
        self.parts.retain_mut(|part| {
            let mut kept = Vec::with_capacity(part.tools.len());
            let mut changed = false;
            for (tool, (fate, pick)) in part.tools.iter().zip(&mut fates) {
                changed |= !matches!(fate, Placement::Loaded);
                if let Placement::Out(why) = fate {
                    left_out.push(LeftOut {
                        tool: Arc::clone(tool),
                        why,
                    });
                } else {
                    picks.insert(tool.id.clone(), pick);
                    kept.push(Arc::clone(tool));
                }
            }
            if !changed {
                return true;
            }
            part.whole = false;
            part.tools = kept.into();
            !part.tools.is_empty()
        });
    }

    /// Puts the carried tools first, in their order, then the other loaded ones, then those that
    /// are deferred.
    fn arrange(&mut self, carried: &HashMap<ToolId, usize>) {
        let empty = self
            .parts
            .extract_if(.., |part| part.tools.is_empty())
            .collect::<Vec<_>>();
        let mut all: Vec<_> = self
            .parts
            .iter()
            .flat_map(|part| part.tools.iter().map(|tool| (&part.entry, tool)))
            .collect();
        // The sort is stable: within a group the usual order stays.
        all.sort_by_key(|(_, tool)| {
            let deferred = self.is_deferred(tool);
            (
                deferred,
                carried
                    .get(&tool.id)
                    .filter(|_| !deferred)
                    .copied()
                    .unwrap_or(usize::MAX),
            )
        });
        let mut parts: Vec<Part> = Vec::new();
        for run in all.chunk_by(|(a, _), (b, _)| a.name == b.name) {
            let Some((entry, _)) = run.first() else {
                continue;
            };
            let tools = run.iter().map(|(_, tool)| Arc::clone(tool)).collect();
            parts.push(Part {
                entry: Arc::clone(entry),
                tools,
                whole: false,
            });
        }
        parts.extend(empty);
        self.parts = parts;
    }
}
