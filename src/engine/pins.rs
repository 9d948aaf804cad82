//! The pins of all scenarios: what was accepted of each, and what the catalog gets of its list.
//!
//! The judgement itself is in [`crate::catalog::pins`]. Here is kept what it is made from, so that
//! a list is judged when it changes and not at each poll.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::RwLock;
use tokio::time::Instant;

use super::now::Now;
use super::persist::manifest_writer::SaveRequest;
use super::scenario::Scenario;
use crate::catalog::Offer;
use crate::catalog::pins::{self, Baseline, Observation, PinAcceptance, PinVerdict};
use crate::discovery::embedded::NATIVE;
use crate::model::{Finding, FindingCode, Manifest, PinMode, ScenarioName, Target};
use crate::protocols::{bundle, definitions};
use crate::state::StoredPins;

/// How many times as many baselines as scenarios are kept: those of scenarios that are not known
/// now, too.
const BASELINES_PER_SCENARIO_MAX: usize = 2;

/// The pins of all scenarios.
#[derive(Default)]
pub(super) struct Pins {
    scenarios: BTreeMap<ScenarioName, PinnedScenario>,
    board: PinBoard,
}

struct PinnedScenario {
    baseline: Arc<Baseline>,
    judged: Option<Judged>,
    /// Whether it was listed since it was judged, where that matters.
    was_listed: bool,
    /// Whether the baseline changed since.
    is_outdated: bool,
    /// Whether the store has another baseline.
    is_unsaved: bool,
}

/// The last judgement, and what it was made from.
struct Judged {
    report: Arc<PinReport>,
    is_complete: bool,
    /// What the catalog gets.
    offered: Arc<Manifest>,
    findings: Vec<Finding>,
}

/// How a scenario differs from what was accepted of it.
#[derive(Debug)]
pub struct PinReport {
    /// The scenario.
    pub scenario: ScenarioName,
    /// What happens with what differs.
    pub mode: PinMode,
    /// What was accepted.
    pub baseline: Arc<Baseline>,
    /// All that it lists, also what is held.
    pub manifest: Arc<Manifest>,
    /// What differs.
    pub verdict: PinVerdict,
}

/// The latest reports, for everyone. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct PinBoard(Arc<RwLock<BTreeMap<ScenarioName, Arc<PinReport>>>>);

/// What the catalog gets of a scenario.
pub(super) struct PinnedOffer {
    pub(super) offer: Offer,
    /// Whether the judgement is a new one.
    pub(super) is_news: bool,
    /// When time alone changes it.
    pub(super) until: Option<Instant>,
    /// The baseline, if it is to be stored.
    pub(super) save: Option<SaveRequest>,
}

impl PinBoard {
    /// The reports of all scenarios, in order.
    pub(super) fn all(&self) -> Vec<Arc<PinReport>> {
        self.0.read().values().cloned().collect()
    }

    /// The report of one.
    pub(super) fn of(&self, name: &ScenarioName) -> Option<Arc<PinReport>> {
        self.0.read().get(name).cloned()
    }
}

impl PinnedScenario {
    fn new(baseline: Baseline, is_unsaved: bool) -> Self {
        Self {
            baseline: Arc::new(baseline),
            judged: None,
            was_listed: false,
            is_outdated: false,
            is_unsaved,
        }
    }

    /// Whether the last judgement holds.
    fn is_judged(&self, manifest: &Arc<Manifest>, seen: Look) -> bool {
        let is_outdated = self.was_listed || self.is_outdated;
        let judged = self.judged.as_ref().filter(|_| !is_outdated);
        judged.is_some_and(|judged| {
            let report = &judged.report;
            Arc::ptr_eq(&report.manifest, manifest)
                && report.mode == seen.mode
                && judged.is_complete == seen.is_complete
                && report.verdict.until.is_none_or(|until| seen.now < until)
        })
    }

    /// Forgets the last judgement, and the definitions with it. Returns whether there was one.
    fn rest(&mut self) -> bool {
        let was_judged = self.judged.take().is_some();
        if was_judged {
            Arc::make_mut(&mut self.baseline).rest();
        }
        was_judged
    }

    fn judge(&mut self, scenario: &ScenarioName, manifest: &Arc<Manifest>, seen: Look) -> &Judged {
        let verdict = Arc::make_mut(&mut self.baseline).judge(Observation {
            manifest,
            mode: seen.mode,
            is_complete: seen.is_complete,
            is_listing: std::mem::take(&mut self.was_listed),
            now: seen.now,
        });
        self.is_outdated = false;
        self.is_unsaved |= verdict.is_changed;
        let offered = pins::listed(manifest, seen.mode, &verdict);
        // An equal list stays the same one, so that the catalog is not made again.
        let before = self.judged.take().map(|judged| judged.offered);
        let same = before.filter(|before| {
            before.digest == offered.digest
                && before.held == offered.held
                && !Arc::ptr_eq(&offered, manifest)
        });
        self.judged.insert(Judged {
            findings: pins::findings(scenario, seen.mode, &verdict),
            report: Arc::new(PinReport {
                scenario: scenario.clone(),
                mode: seen.mode,
                baseline: Arc::clone(&self.baseline),
                manifest: Arc::clone(manifest),
                verdict,
            }),
            is_complete: seen.is_complete,
            offered: same.unwrap_or(offered),
        })
    }
}

/// How a list is looked at.
#[derive(Clone, Copy)]
struct Look {
    mode: PinMode,
    is_complete: bool,
    now: Timestamp,
}

impl Pins {
    /// What was stored, and findings about what cannot be read. Of such a scenario no definition
    /// counts as accepted.
    pub(super) fn restored(stored: Vec<StoredPins>, findings: &mut Vec<Finding>) -> Self {
        let mut pins = Self::default();
        for StoredPins { scenario, document } in stored {
            let baseline = Baseline::read(&document).unwrap_or_else(|error| {
                let message = format!(
                    "its stored pins cannot be read, so no definition counts as accepted: {error}"
                );
                let finding = Finding::new(FindingCode::StateRepaired, message);
                let hint = format!("accept what it offers: `callsheet pins accept {scenario}`");
                findings.push(finding.of_scenario(&scenario).hint(hint));
                Baseline::default()
            });
            let pinned = PinnedScenario::new(baseline, false);
            pins.scenarios.insert(scenario, pinned);
        }
        pins
    }

    /// The reports for readers.
    pub(super) fn board(&self) -> PinBoard {
        self.board.clone()
    }

    /// What the catalog gets of what a scenario offers.
    pub(super) fn offer(
        &mut self,
        record: &Scenario,
        offer: Offer,
        mode: PinMode,
        now: Now,
    ) -> PinnedOffer {
        let name = &record.name;
        if mode == PinMode::Off || !record.is_trusted() || !is_foreign(record) {
            return self.unpinned(name, offer);
        }
        let seen = Look {
            mode,
            is_complete: record.lists_all(),
            now: now.wall,
        };
        if !self.scenarios.contains_key(name) {
            let first = Baseline::first(&offer.manifest, now.wall);
            let pinned = PinnedScenario::new(first, true);
            self.scenarios.insert(name.clone(), pinned);
        }
        let Some(pinned) = self.scenarios.get_mut(name) else {
            return self.unpinned(name, offer);
        };
        let is_news = !pinned.is_judged(&offer.manifest, seen);
        if is_news {
            let report = Arc::clone(&pinned.judge(name, &offer.manifest, seen).report);
            self.board.0.write().insert(name.clone(), report);
        }
        let save = std::mem::take(&mut pinned.is_unsaved)
            .then(|| SaveRequest::Pins(name.clone(), Some(Arc::clone(&pinned.baseline))));
        let judged = pinned.judged.as_ref();
        let until = judged.and_then(|judged| judged.report.verdict.until);
        let manifest = judged.map_or(offer.manifest, |judged| Arc::clone(&judged.offered));
        PinnedOffer {
            offer: Offer {
                manifest,
                visibility: offer.visibility,
            },
            is_news,
            until: until.map(|until| at(until, now)),
            save,
        }
    }

    /// A scenario whose definitions are not compared.
    fn unpinned(&mut self, name: &ScenarioName, offer: Offer) -> PinnedOffer {
        let pinned = self.scenarios.get_mut(name);
        let is_news = pinned.is_some_and(PinnedScenario::rest);
        if is_news {
            self.board.0.write().remove(name);
        }
        PinnedOffer {
            offer,
            is_news,
            until: None,
            save: None,
        }
    }

    /// Forgets baselines of scenarios that are not known now, if there are more than may be, and
    /// returns what deletes them from the store. `most` is how many scenarios may be known.
    pub(super) fn make_room(
        &mut self,
        most: usize,
        is_known: impl Fn(&ScenarioName) -> bool,
    ) -> Vec<SaveRequest> {
        let most = most.saturating_mul(BASELINES_PER_SCENARIO_MAX);
        let over = self.scenarios.len().saturating_sub(most);
        if over == 0 {
            return Vec::new();
        }
        let unknown = self.scenarios.keys().filter(|name| !is_known(name));
        let gone: Vec<ScenarioName> = unknown.take(over).cloned().collect();
        let deletions = gone.into_iter().filter_map(|name| self.forget(&name));
        deletions.collect()
    }

    /// The findings about a scenario.
    pub(super) fn findings(&self, name: &ScenarioName) -> &[Finding] {
        let judged = self.scenarios.get(name).and_then(|one| one.judged.as_ref());
        judged.map_or(&[], |judged| &judged.findings)
    }

    /// A listing of a scenario came.
    pub(super) fn listed(&mut self, name: &ScenarioName) {
        if let Some(pinned) = self.scenarios.get_mut(name) {
            pinned.was_listed |= pinned.baseline.awaits_listing();
        }
    }

    /// An operator logged in at a scenario, trusted it, or changed its entry: its new tools are
    /// accepted.
    pub(super) fn await_new_tools(&mut self, name: &ScenarioName) {
        if let Some(pinned) = self.scenarios.get_mut(name) {
            Arc::make_mut(&mut pinned.baseline).await_new_tools();
            pinned.is_unsaved = true;
        }
    }

    /// An operator accepted this, and it is durable.
    pub(super) fn accept(&mut self, name: &ScenarioName, accepted: &[PinAcceptance], now: Now) {
        if let Some(pinned) = self.scenarios.get_mut(name) {
            Arc::make_mut(&mut pinned.baseline).accept(accepted, now.wall);
            // It is stored again: a baseline of before may wait to be stored.
            pinned.is_unsaved = true;
            pinned.is_outdated = true;
        }
    }

    /// An operator has a scenario forgotten.
    pub(super) fn forget(&mut self, name: &ScenarioName) -> Option<SaveRequest> {
        self.board.0.write().remove(name);
        let gone = self.scenarios.remove(name);
        gone.map(|_| SaveRequest::Pins(name.clone(), None))
    }

    /// A baseline could not be queued to be stored, or could not be stored: it is offered to the
    /// store again after the next answer.
    pub(super) fn not_saved(&mut self, name: &ScenarioName) {
        if let Some(pinned) = self.scenarios.get_mut(name) {
            pinned.is_unsaved = true;
        }
    }

    /// A scenario is not known any more; what was accepted of it is kept.
    pub(super) fn rest(&mut self, name: &ScenarioName) {
        self.board.0.write().remove(name);
        if let Some(pinned) = self.scenarios.get_mut(name) {
            pinned.rest();
        }
    }
}

/// Whether a scenario is another program: the functions of this one, definitions and bundles are
/// the operator's own.
fn is_foreign(record: &Scenario) -> bool {
    let own = [NATIVE, definitions::ID, bundle::ID];
    let is_own = |id: &str| own.contains(&id);
    let by_protocol = record.protocol().is_some_and(|one| is_own(one.id()));
    !by_protocol
        && !matches!(
            record.target(),
            Some(Target::InProcess(_) | Target::Bundle(_))
        )
}

/// A time of the wall on the clock of deadlines.
fn at(time: Timestamp, now: Now) -> Instant {
    let left = Duration::try_from(time.duration_since(now.wall)).unwrap_or_default();
    now.mono + left
}
