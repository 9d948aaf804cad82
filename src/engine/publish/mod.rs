//! Publish: gathers what changed and publishes it as one immutable snapshot.
//!
//! The only writer of snapshots. It decides when a snapshot goes out and which time of origin its
//! revision has; it never judges a scenario and renders no list. The rules and an example are in
//! `docs/design/publish.md`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use imbl::OrdMap;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::catalog::{
    self, CatalogEntry, CatalogReader, CatalogWriter, Change, FormerNames, Inputs, Offer,
    ProgramEnds, Snapshot, StateTransitions, Visibility, catalog_store,
};
use crate::config::{Additions, Config};
use crate::engine::now::Now;
use crate::engine::parts::EngineParts;
use crate::engine::persist::kept_preferences::GaveWay;
use crate::engine::persist::manifest_writer::SaveRequest;
use crate::engine::pins::Pins;
use crate::engine::routes::CallRoutes;
use crate::engine::scenario::{Scenario, ScenarioMap, log};
use crate::model::{
    ConfigState, Finding, Health, Isolated, Manifest, PinMode, PreferenceSet, RecordedEnd,
    ScenarioName, StateTransition, ToolCounts,
};
use crate::runtime::Clock;
use crate::state::StateError;

mod findings;

/// The number of revisions whose time of origin is remembered, so that a catalog that returns to an
/// earlier content gets the same bytes again.
const REVISIONS: usize = 64;

/// After a snapshot the next one waits this many times as long as that one took to make. A burst is
/// then published together, and publishing takes at most a tenth of the time: one snapshot for each
/// of 1,000 answers took a third of the processor time of the sweep. A single change is published
/// at once.
const PAUSE_TIMES: u32 = 9;
/// The longest such wait. Scenarios whose lists change all the time cost no more than their share
/// of the time, and the changes of all others are published this late at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The longest such wait while a client waits for a change.
const LONGEST_AWAITED_PAUSE: Duration = Duration::from_millis(50);
/// The same factor while scenarios are awaited that were not polled yet. Each catalog of a first
/// sweep copies what it shares with the next one, and no client waits for any but the last, which
/// is published at once ([`SnapshotPublisher::hurry`]).
const SWEEP_PAUSE: u32 = 30;
const LONGEST_SWEEP_PAUSE: Duration = Duration::from_millis(500);

/// How long changes that no client waits for may be gathered: the times of polls that brought no
/// change.
const QUIET: Duration = Duration::from_millis(200);

/// A snapshot that takes in so many changed tools takes milliseconds to make.
const LARGE_CHANGE_TOOLS: usize = 500;

/// Runs once the next snapshot is published.
type AfterPublish = Box<dyn FnOnce(&Snapshot) + Send>;

/// No further snapshot is published before these times.
struct NextSnapshot {
    /// While no client waits for a change.
    unawaited: Instant,
    /// While a client does.
    awaited: Instant,
}

impl NextSnapshot {
    /// After a snapshot that took so long to make. `sweeping` is as in
    /// [`SnapshotPublisher::publish_when_due`].
    fn after(took: Duration, sweeping: bool, now: Instant) -> Self {
        if sweeping {
            let at = now + LONGEST_SWEEP_PAUSE.min(took * SWEEP_PAUSE);
            return Self {
                unawaited: at,
                awaited: at,
            };
        }
        let pause = took * PAUSE_TIMES;
        Self {
            unawaited: now + LONGEST_PAUSE.min(pause),
            awaited: now + LONGEST_AWAITED_PAUSE.min(pause),
        }
    }

    /// Without waiting.
    fn at_once(now: Instant) -> Self {
        Self {
            unawaited: now,
            awaited: now,
        }
    }
}

/// What was stored of what is published.
pub(in crate::engine) struct StoredParts {
    /// The preferences.
    pub(in crate::engine) preferences: Arc<PreferenceSet>,
    /// What operators added besides the configuration.
    pub(in crate::engine) additions: Arc<Additions>,
    /// The last published revision, and its time of origin.
    pub(in crate::engine) revision: Option<(String, Timestamp)>,
    /// What was found while it was read.
    pub(in crate::engine) findings: Vec<Finding>,
}

/// Owns all that is published.
pub(in crate::engine) struct SnapshotPublisher {
    writer: CatalogWriter,
    catalog: catalog::Catalog,
    former_names: FormerNames,
    /// Changed offers for the next snapshot.
    offers: BTreeMap<ScenarioName, Option<Offer>>,
    next: NextSnapshot,
    clock: Clock,
    health: OrdMap<ScenarioName, Arc<Health>>,
    generated_at: Timestamp,
    /// Newest last.
    revisions: VecDeque<(String, Timestamp)>,
    sequence: u64,
    turns: StateTransitions,
    ends: ProgramEnds,
    /// Scenarios whose health and route have to be published again.
    dirty: BTreeSet<ScenarioName>,
    changed: bool,
    /// Until when the other dirty entries may wait.
    quiet_until: Option<Instant>,
    stored: Vec<Finding>,
    /// The preferences of the store; those of the configuration are below them.
    stored_preferences: Arc<PreferenceSet>,
    additions: Arc<Additions>,
    /// Changed preferences for the next snapshot, with those of the configuration.
    preferred: Option<Arc<PreferenceSet>>,
    /// The preferences that gave way to others since the start.
    gave_way: GaveWay,
    sources: Vec<Finding>,
    /// The findings of scenarios that have any.
    scenarios: BTreeMap<ScenarioName, Vec<Finding>>,
    findings_changed: bool,
    save_failed: Option<StateError>,
    unarchived: BTreeSet<ScenarioName>,
    findings: Arc<Vec<Finding>>,
    isolated: Option<Isolated>,
    configuration: Option<Arc<ConfigState>>,
    after: Vec<AfterPublish>,
    /// Whether calls wait for the next snapshot, or may: a scenario can be called with it that
    /// could not before.
    has_callable: bool,
    routes: CallRoutes,
    saves: mpsc::Sender<SaveRequest>,
}

impl SnapshotPublisher {
    /// A publisher whose first snapshot holds what was restored.
    pub(in crate::engine) fn new(
        parts: &EngineParts,
        records: &ScenarioMap,
        pins: &mut Pins,
        stored: StoredParts,
        now: Now,
    ) -> (Self, CatalogReader) {
        let StoredParts {
            preferences: stored_preferences,
            additions,
            revision,
            findings: stored,
        } = stored;
        let preferences = parts.config.effective_preferences(&stored_preferences);
        let mut offers = BTreeMap::new();
        for record in records.values() {
            if let Some(offer) = record.offered(now.mono, &parts.config) {
                let mode = preferences.pins(&record.name).unwrap_or(parts.config.pins);
                let pinned = pins.offer(record, offer, mode, now);
                if pinned.save.is_some() {
                    // It is stored with the first evaluation.
                    pins.not_saved(&record.name);
                }
                offers.insert(record.name.clone(), pinned.offer);
            }
        }
        let profiles = Arc::new(parts.config.profiles_with(&additions));
        let catalog = catalog::build(&Inputs {
            offers,
            preferences,
            naming: parts.config.naming,
            profiles,
        });
        let revisions: VecDeque<_> = revision.into_iter().collect();
        let findings = Arc::new(stored.clone());
        let first = Snapshot {
            catalog: catalog.clone(),
            former_names: FormerNames::keeping(parts.config.health.forget),
            generated_at: origin(&revisions, &catalog).unwrap_or(now.wall),
            health: OrdMap::new(),
            findings: Arc::clone(&findings),
            sequence: 0,
            transitions: StateTransitions::default(),
            program_ends: ProgramEnds::default(),
            isolated: None,
            configuration: None,
        };
        let (writer, reader) = catalog_store(first);
        let publisher = Self {
            writer,
            catalog,
            former_names: FormerNames::keeping(parts.config.health.forget),
            offers: BTreeMap::new(),
            next: NextSnapshot::at_once(now.mono),
            clock: parts.clock,
            health: OrdMap::new(),
            generated_at: reader.snapshot().generated_at,
            revisions,
            sequence: 0,
            turns: StateTransitions::default(),
            ends: ProgramEnds::default(),
            dirty: BTreeSet::new(),
            changed: true,
            quiet_until: None,
            stored,
            stored_preferences,
            additions,
            preferred: None,
            gave_way: GaveWay::default(),
            sources: Vec::new(),
            scenarios: BTreeMap::new(),
            findings_changed: true,
            save_failed: None,
            unarchived: BTreeSet::new(),
            findings,
            isolated: None,
            configuration: None,
            after: Vec::new(),
            has_callable: false,
            routes: parts.routes.clone(),
            saves: parts.saves.clone(),
        };
        (publisher, reader)
    }

    /// Takes a scenario's offer into the catalog when it differs from what is there.
    pub(in crate::engine) fn set_offer(&mut self, name: &ScenarioName, offer: &Offer) {
        let same = match self.offers.get(name) {
            Some(next) => next
                .as_ref()
                .is_some_and(|next| same(&next.manifest, &next.visibility, offer)),
            None => self
                .catalog
                .entry(name)
                .is_some_and(|entry| same(&entry.manifest, &entry.visibility, offer)),
        };
        if !same {
            self.offers.insert(name.clone(), Some(offer.clone()));
            self.mark_dirty(name);
        }
    }

    /// Activates other preferences with the next snapshot. Every client may change some, and a
    /// change of a tag builds all scenarios with such tools again: many changes that come together
    /// cost as much as one.
    pub(in crate::engine) fn prefer(&mut self, preferences: Arc<PreferenceSet>, config: &Config) {
        self.preferred = Some(config.effective_preferences(&preferences));
        self.stored_preferences = preferences;
        self.changed = true;
    }

    /// Activates these additions beside a configuration.
    pub(in crate::engine) fn add(&mut self, additions: Arc<Additions>, config: &Config) {
        let profiles = config.profiles_with(&additions);
        if *self.catalog.profiles() != profiles {
            self.catalog = self.catalog.with(Change::Profiles(Arc::new(profiles)));
        }
        self.additions = additions;
        self.changed = true;
    }

    /// What happens with definitions of a scenario that were not accepted.
    pub(in crate::engine) fn pin_mode(&self, name: &ScenarioName, config: &Config) -> PinMode {
        let preferred = self.preferred.as_deref();
        let preferences = preferred.unwrap_or_else(|| self.catalog.preferences());
        preferences.pins(name).unwrap_or(config.pins)
    }

    /// Records the preferences that gave way to others since the start.
    pub(in crate::engine) fn preferences_gave_way(&mut self, gave_way: GaveWay) {
        self.findings_changed |= self.gave_way != gave_way;
        self.gave_way = gave_way;
    }

    /// Marks a scenario's health to be published again.
    pub(in crate::engine) fn mark_dirty(&mut self, name: &ScenarioName) {
        self.dirty.insert(name.clone());
        self.changed = true;
    }

    /// The same for a scenario that can be called with the next snapshot and could not before.
    pub(in crate::engine) fn mark_callable(&mut self, name: &ScenarioName) {
        self.has_callable = true;
        self.mark_dirty(name);
    }

    /// The same, but the snapshot may wait for [`QUIET`]: only the times of its polls changed.
    pub(in crate::engine) fn mark_dirty_later(&mut self, name: &ScenarioName, now: Now) {
        self.dirty.insert(name.clone());
        self.quiet_until.get_or_insert(now.mono + QUIET);
    }

    /// Records a change of state; its event is sent with the next snapshot.
    pub(in crate::engine) fn record_transition(&mut self, turn: StateTransition) {
        self.mark_dirty(&turn.name);
        log::turned(&turn);
        self.turns.push(turn);
    }

    /// Records the end of a program for the log.
    pub(in crate::engine) fn record_end(&mut self, end: RecordedEnd) {
        self.mark_dirty(&end.name);
        self.ends.push(end);
    }

    /// Marks the health of every scenario to be published again.
    pub(in crate::engine) fn mark_all_dirty<'a>(
        &mut self,
        names: impl Iterator<Item = &'a ScenarioName>,
    ) {
        self.dirty.extend(names.cloned());
        self.changed = true;
    }

    /// Removes a scenario that is no longer known.
    pub(in crate::engine) fn forget(&mut self, name: &ScenarioName) {
        self.offers.insert(name.clone(), None);
        self.findings_changed |=
            self.scenarios.remove(name).is_some() | self.unarchived.remove(name);
        self.mark_dirty(name);
    }

    /// Replaces the findings of the sources.
    pub(in crate::engine) fn source_findings(&mut self, findings: Vec<Finding>) {
        self.findings_changed |= self.sources != findings;
        self.sources = findings;
    }

    /// Sets whether the daemon is isolated.
    pub(in crate::engine) fn set_isolated(&mut self, isolated: Option<Isolated>) {
        self.findings_changed |= self.isolated != isolated;
        self.isolated = isolated;
    }

    /// Sets the state of the configuration.
    pub(in crate::engine) fn configuration(&mut self, state: Arc<ConfigState>) {
        self.findings_changed = true;
        self.configuration = Some(state);
    }

    /// Applies the names, preferences and profiles of another configuration.
    pub(in crate::engine) fn configure(&mut self, before: &Config, now: &Config) {
        if before.naming != now.naming {
            self.catalog = self.catalog.with(Change::Naming(now.naming));
        }
        if !before.prefers_like(now) {
            self.preferred = Some(now.effective_preferences(&self.stored_preferences));
        }
        self.add(Arc::clone(&self.additions), now);
        self.former_names.keep_for(now.health.forget);
        self.changed = true;
    }

    /// Replaces the findings of a scenario.
    pub(in crate::engine) fn scenario_findings(
        &mut self,
        name: &ScenarioName,
        findings: &[Finding],
    ) {
        let before = if findings.is_empty() {
            self.scenarios.remove(name)
        } else {
            self.scenarios.insert(name.clone(), findings.to_vec())
        };
        self.findings_changed |= before.unwrap_or_default() != findings;
    }

    /// Records the result of a save.
    pub(in crate::engine) fn record_save_result(&mut self, error: Option<StateError>) {
        let message = |error: &Option<StateError>| error.as_ref().map(ToString::to_string);
        self.findings_changed |= message(&self.save_failed) != message(&error);
        self.save_failed = error;
    }

    /// Records whether a scenario's manifest was queued to be saved.
    pub(in crate::engine) fn queued(&mut self, name: &ScenarioName, queued: bool) {
        let changed = if queued {
            self.unarchived.remove(name)
        } else {
            self.unarchived.insert(name.clone())
        };
        self.findings_changed |= changed;
    }

    /// Runs `act` once the next snapshot is published.
    pub(in crate::engine) fn after_publish(
        &mut self,
        act: impl FnOnce(&Snapshot) + Send + 'static,
    ) {
        self.after.push(Box::new(act));
        self.changed = true;
    }

    /// When the next snapshot is published; `None` when there are no changes.
    pub(in crate::engine) fn due(&self) -> Option<Instant> {
        let is_awaited = self.has_callable || !self.after.is_empty();
        let earliest = if is_awaited {
            self.next.awaited
        } else {
            self.next.unawaited
        };
        let has_news = self.changed || self.findings_changed;
        if has_news {
            Some(earliest)
        } else {
            self.quiet_until.map(|at| at.max(earliest))
        }
    }

    /// Whether the next snapshot takes long to make.
    pub(in crate::engine) fn is_large(&self) -> bool {
        let changed = self
            .offers
            .values()
            .flatten()
            .map(|offer| offer.manifest.tools.len());
        // Preferences may concern every tool.
        let preferred = self.preferred.iter().flat_map(|_| self.catalog.entries());
        let preferred = preferred.map(|entry| entry.tools.len());
        changed.chain(preferred).sum::<usize>() >= LARGE_CHANGE_TOOLS
    }

    /// Publishes the next snapshot without waiting.
    pub(in crate::engine) fn hurry(&mut self, now: Now) {
        self.next = NextSnapshot::at_once(now.mono);
    }

    /// Publishes the changes, if there are any and the latest snapshot is old enough. `sweeping`
    /// says whether scenarios are awaited that were not polled yet.
    pub(in crate::engine) fn publish_when_due(
        &mut self,
        records: &ScenarioMap,
        sweeping: bool,
        now: Now,
    ) {
        if self.due().is_some_and(|due| due <= now.mono) {
            let begun = self.clock.now();
            self.publish(records, now);
            let end = self.clock.now();
            self.next = NextSnapshot::after(end - begun, sweeping, end);
        }
    }

    /// The sequence of the next snapshot.
    pub(in crate::engine) fn next_sequence(&self) -> u64 {
        self.sequence + 1
    }

    /// Publishes the changes, if there are any.
    pub(in crate::engine) fn publish(&mut self, records: &ScenarioMap, now: Now) {
        if self.due().is_none() {
            return;
        }
        self.changed = false;
        self.has_callable = false;
        self.quiet_until = None;
        if let Some(preferences) = self.preferred.take() {
            self.catalog = self.catalog.with(Change::Preferences(preferences));
        }
        if !self.offers.is_empty() {
            self.catalog = self
                .catalog
                .with(Change::Offers(std::mem::take(&mut self.offers)));
        }
        let dirty = std::mem::take(&mut self.dirty);
        if !dirty.is_empty() {
            // Before the snapshot, so that a client that sees a tool in it finds the route to it.
            self.routes
                .change(records, dirty.iter(), self.next_sequence());
        }
        for name in dirty {
            match records.get(&name) {
                Some(record) => {
                    let counts = counts(self.catalog.entry(&name), record);
                    self.health.insert(name, Arc::new(record.health(counts)));
                }
                None => {
                    self.health.remove(&name);
                }
            }
        }
        if std::mem::take(&mut self.findings_changed) {
            self.gather();
        }
        self.stamp_revision(now);
        self.former_names
            .note(&self.writer.current().catalog, &self.catalog, now.wall);
        self.sequence += 1;
        let snapshot = Snapshot {
            catalog: self.catalog.clone(),
            former_names: self.former_names.clone(),
            generated_at: self.generated_at,
            health: self.health.clone(),
            findings: Arc::clone(&self.findings),
            sequence: self.sequence,
            transitions: self.turns.clone(),
            program_ends: self.ends.clone(),
            isolated: self.isolated.clone(),
            configuration: self.configuration.clone(),
        };
        self.writer.publish(snapshot);
        if !self.after.is_empty() {
            let current = self.writer.current();
            for act in std::mem::take(&mut self.after) {
                act(&current);
            }
        }
    }

    /// Sets the time of origin of the revision.
    fn stamp_revision(&mut self, now: Now) {
        let revision = self.catalog.revision().to_string();
        if self
            .revisions
            .back()
            .is_some_and(|(newest, _)| *newest == revision)
        {
            return;
        }
        let known = self
            .revisions
            .iter()
            .position(|(known, _)| *known == revision);
        let entry = known
            .and_then(|at| self.revisions.remove(at))
            .unwrap_or((revision, now.wall));
        self.generated_at = entry.1;
        // If the queue is full, the next start lacks the time of this revision; nothing else is
        // lost.
        let _ = self
            .saves
            .try_send(SaveRequest::Revision(entry.0.clone(), entry.1));
        self.revisions.push_back(entry);
        if self.revisions.len() > REVISIONS {
            self.revisions.pop_front();
        }
    }
}

fn origin(
    revisions: &VecDeque<(String, Timestamp)>,
    catalog: &catalog::Catalog,
) -> Option<Timestamp> {
    let revision = catalog.revision().to_string();
    revisions
        .iter()
        .find(|(known, _)| *known == revision)
        .map(|(_, at)| *at)
}

fn same(manifest: &Arc<Manifest>, standing: &Visibility, offer: &Offer) -> bool {
    Arc::ptr_eq(manifest, &offer.manifest) && same_standing(standing, &offer.visibility)
}

/// Reasons change with each failure. The list does not depend on them while the kind is the same,
/// and findings follow with the next real change.
fn same_standing(a: &Visibility, b: &Visibility) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

fn counts(entry: Option<&Arc<CatalogEntry>>, record: &Scenario) -> ToolCounts {
    let quarantined = record.held().map_or(0, |held| held.quarantined);
    let offered = record.held().map_or(0, |held| held.manifest.tools.len());
    let Some(entry) = entry else {
        return ToolCounts {
            offered,
            quarantined,
            ..ToolCounts::default()
        };
    };
    let disabled = entry
        .tools
        .iter()
        .filter(|tool| !tool.effective.enabled)
        .count();
    // Internal tools do not count: they are in no list.
    let published = if entry.is_published() {
        entry.listed.len()
    } else {
        0
    };
    ToolCounts {
        offered,
        published,
        disabled,
        quarantined,
    }
}
