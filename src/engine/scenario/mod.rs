//! One scenario: everything the engine knows of it, and what answers, sources and time make of it.
//!
//! Changing it never does IO and never reads a clock: both times are arguments.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::config::Config;
use crate::engine::assignment::Assignment;
use crate::engine::error::EngineError;
use crate::engine::now::Now;
use crate::engine::scenario::facts::{Latest, Obstacle, Presence, Term};
use crate::engine::scenario::lifecycle::{Lifecycle, RemovedBy};
use crate::engine::sessions::link::SessionLink;
use crate::model::{
    Digest, Finding, Freshness, Health, LastError, Manifest, Party, SHOWN_NAME, SHOWN_TEXT, ScenarioName,
    ScenarioState, SourceId, Target, Turn,
};
use crate::protocols::{Protocol, Validity};
use crate::state::Decision;
use crate::transports::TransportError;

pub(in crate::engine) mod answers;
pub(in crate::engine) mod backoff;
pub(in crate::engine) mod facts;
pub(in crate::engine) mod handle;
pub(in crate::engine) mod health;
pub(in crate::engine) mod lifecycle;
pub(in crate::engine) mod log;
mod restart;
pub(in crate::engine) mod schedule;
pub(in crate::engine) mod trust;

/// Someone who waits for the next answer of a scenario.
pub(in crate::engine) type Waiter = oneshot::Sender<Result<Arc<Health>, EngineError>>;

/// One scenario.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; what people see is the one state made of them"
)]
pub(in crate::engine) struct Scenario {
    pub(in crate::engine) name: ScenarioName,
    /// Where a source said it is, the last time one named it; absent when none has yet.
    pub(in crate::engine) place: Option<Assignment>,
    /// Where it is asked, kept for one last ask after the sources stopped naming it.
    pub(in crate::engine) target: Option<Target>,
    /// The session with it, as the keeper of sessions gave it when the scenario changed last.
    pub(in crate::engine) session: Option<SessionLink>,
    /// The source that named it last.
    pub(in crate::engine) source: SourceId,
    /// Whether that source vouches for its address.
    pub(in crate::engine) trusted: bool,
    /// Who is there, or was when a source last named it.
    pub(in crate::engine) party: Option<Party>,
    /// The decision that counts for who is there.
    pub(in crate::engine) decision: Option<Decision>,
    /// Whether its tools could be published when the decisions were last looked at.
    pub(in crate::engine) let_in: bool,
    /// Why it is blocked through another name, or why the yes under its name does not count.
    pub(in crate::engine) note: Option<String>,
    /// What the second of these is to an operator.
    pub(in crate::engine) trust_finding: Option<Box<Finding>>,
    pub(in crate::engine) protocol: Option<Arc<dyn Protocol>>,
    pub(in crate::engine) offer: Option<Held>,
    /// Of the manifest that the store has of it.
    pub(in crate::engine) kept: Option<Digest>,
    /// Whose claim to the name the store has, of a scenario that waits for a yes.
    pub(in crate::engine) claimed: Option<Party>,
    /// What its last answer came to.
    pub(in crate::engine) latest: Latest,
    /// What it asks for before it lists anything again, until the next good answer.
    pub(in crate::engine) obstacle: Option<Obstacle>,
    pub(in crate::engine) failures: u32,
    /// The last back-off wait, which the next one grows from.
    pub(in crate::engine) backoff: Option<Duration>,
    /// Since the last good answer a connection was refused, or the scenario moved or got a new boot id: the next good answer confirms
    /// a restart.
    pub(in crate::engine) suspect: bool,
    pub(in crate::engine) answered: bool,
    /// From when grace counts: the last good answer, else when the scenario came to be known.
    pub(in crate::engine) grace_from: Instant,
    pub(in crate::engine) last_success: Option<Timestamp>,
    pub(in crate::engine) last_attempt: Option<(Instant, Timestamp)>,
    pub(in crate::engine) last_error: Option<LastError>,
    /// What the last failed answer has to say, besides the findings of the manifest in force.
    pub(in crate::engine) failure_finding: Option<Box<Finding>>,
    pub(in crate::engine) latency: Option<Duration>,
    pub(in crate::engine) restarts: u32,
    pub(in crate::engine) last_restart: Option<Timestamp>,
    /// An answer showed a restart, and the next one is to confirm what the scenario offers since.
    pub(in crate::engine) confirming: bool,
    pub(in crate::engine) next_ask: Option<(Instant, Timestamp)>,
    /// The next ask is unconditional: a 304 would only confirm what a restart made doubtful.
    pub(in crate::engine) unconditional: bool,
    /// The ask that is under way. Dropping it ends the ask.
    pub(in crate::engine) asking: Option<AbortOnDropHandle<()>>,
    /// Answers to asks of an older generation are dropped: the scenario moved or restarted meanwhile.
    pub(in crate::engine) generation: u64,
    pub(in crate::engine) waiters: Vec<Waiter>,
    pub(in crate::engine) lifecycle: Lifecycle,
    pub(in crate::engine) reason: String,
    pub(in crate::engine) since: Timestamp,
    /// The state that was last told of; none yet for a scenario that was just heard of.
    pub(in crate::engine) told: Option<ScenarioState>,
    /// Whether a source names it.
    pub(in crate::engine) presence: Presence,
    /// Until when its source's silence counts for nothing, because too many others fell silent with it.
    pub(in crate::engine) silenced: Option<Instant>,
    /// Until when it is not withdrawn for its failures, because the daemon was cut off just now.
    pub(in crate::engine) reprieve: Option<Instant>,
    /// When the loop has to look at it again, as entered in its list of wakes.
    pub(in crate::engine) wake: Option<Instant>,
}

/// All scenarios. Each in a place of its own: the nodes of the map have room for eleven and are half full.
pub(in crate::engine) type Scenarios = BTreeMap<ScenarioName, Box<Scenario>>;

/// The manifest in force.
#[derive(Clone)]
pub(in crate::engine) struct Held {
    pub(in crate::engine) manifest: Arc<Manifest>,
    pub(in crate::engine) quarantined: usize,
    pub(in crate::engine) findings: Vec<Finding>,
    /// How long the last good answer may be used; absent for a restored manifest.
    pub(in crate::engine) fresh: Option<Validity>,
    pub(in crate::engine) term: Term,
    pub(in crate::engine) freshness: Freshness,
}

impl Scenario {
    /// A scenario that was just heard of.
    pub(in crate::engine) fn new(name: ScenarioName, source: SourceId, trusted: bool, now: Now) -> Self {
        Self {
            name,
            place: None,
            target: None,
            session: None,
            source,
            trusted,
            party: None,
            decision: None,
            let_in: trusted,
            note: None,
            trust_finding: None,
            protocol: None,
            offer: None,
            kept: None,
            claimed: None,
            latest: Latest::Unanswered,
            obstacle: None,
            failures: 0,
            backoff: None,
            suspect: false,
            answered: false,
            grace_from: now.mono,
            last_success: None,
            last_attempt: None,
            last_error: None,
            failure_finding: None,
            latency: None,
            restarts: 0,
            last_restart: None,
            confirming: false,
            next_ask: None,
            unconditional: false,
            asking: None,
            generation: 0,
            waiters: Vec::new(),
            lifecycle: Lifecycle::Connecting,
            reason: "not asked yet".into(),
            since: now.wall,
            told: None,
            presence: Presence::Named,
            silenced: None,
            reprieve: None,
            wake: None,
        }
    }

    /// Whether its tools may be published at all.
    pub(in crate::engine) fn is_trusted(&self) -> bool {
        self.trusted || self.decision == Some(Decision::Trusted)
    }

    /// Whether nothing that was known of it may be taken for who is there now: neither did a source vouch for both, nor are they the
    /// same. What one party said must never be published as another's.
    pub(in crate::engine) fn is_another(&self, party: &Party, vouched: bool) -> bool {
        !(self.trusted && vouched) && self.party.as_ref().is_none_or(|before| !trust::same(before, party))
    }

    /// Whether it is well, and nothing new is expected of its next answer.
    pub(in crate::engine) fn is_steady(&self) -> bool {
        self.answered
            && self.failures == 0
            && !self.suspect
            && !self.unconditional
            && self.presence == Presence::Named
            && self.obstacle.is_none()
            && self.is_trusted()
            && self.waiters.is_empty()
    }

    /// Of the manifest in force.
    pub(in crate::engine) fn digest(&self) -> Option<Digest> {
        self.offer.as_ref().map(|held| held.manifest.digest)
    }

    /// Whether it answered at the last poll, and its silence would be a loss.
    pub(in crate::engine) fn is_well(&self) -> bool {
        self.answered && self.failures == 0 && self.is_trusted()
    }

    /// Whether it may be asked now or later.
    pub(in crate::engine) fn may_be_asked(&self) -> bool {
        self.target.is_some() && self.decision != Some(Decision::Blocked) && !self.is_absent()
    }

    /// Whether no source names it any more and it does not answer.
    pub(in crate::engine) fn is_absent(&self) -> bool {
        matches!(self.presence, Presence::Absent { .. })
    }

    /// Whether the configuration does not want it any more.
    pub(in crate::engine) fn is_dismissed(&self) -> bool {
        matches!(self.presence, Presence::Absent { by: RemovedBy::Configuration, .. })
    }

    /// The state as people and programs see it.
    pub(in crate::engine) fn state(&self) -> ScenarioState {
        self.lifecycle.shown()
    }

    /// Why it may not be asked.
    pub(in crate::engine) fn refusal(&self) -> Option<EngineError> {
        if self.decision == Some(Decision::Blocked) {
            Some(EngineError::Blocked(self.name.clone()))
        } else if self.may_be_asked() {
            None
        } else {
            Some(EngineError::NoAddress(self.name.clone()))
        }
    }

    /// Tells whoever waits for an answer that none will come, if that is so.
    pub(in crate::engine) fn dismiss_waiters(&mut self) {
        if self.asking.is_some() || self.waiters.is_empty() {
            return;
        }
        if let Some(refusal) = self.refusal() {
            for waiter in self.waiters.drain(..) {
                // Whoever has gone meanwhile needs no answer.
                let _ = waiter.send(Err(refusal.clone()));
            }
        }
    }

    /// No source names it, and it does not answer. What it said before says nothing of what may come back.
    pub(in crate::engine) fn goes(&mut self, by: RemovedBy, now: Now) {
        self.presence = Presence::Absent { since: now.mono, by };
        self.latest = Latest::Unanswered;
        if let Some(held) = &mut self.offer {
            held.term = Term::Ended;
        }
        self.next_ask = None;
    }

    /// When it is to be forgotten, if nothing is heard of it until then.
    pub(in crate::engine) fn forgotten_at(&self, config: &Config) -> Option<Instant> {
        match self.presence {
            Presence::Absent { since, .. } if self.is_trusted() => Some(since + config.health.forget),
            // One that was never approved is remembered for its name alone, and names cost an announcer nothing.
            Presence::Absent { since, .. } => Some(since + config.health.forget.min(config.refresh.max_interval)),
            Presence::Named | Presence::Leaving | Presence::Unnamed => None,
        }
    }

    /// Plans the next ask.
    pub(in crate::engine) fn ask_at(&mut self, at: Instant, now: Now) {
        let wall = now.wall.saturating_add(at.saturating_duration_since(now.mono)).unwrap_or(now.wall);
        self.next_ask = Some((at, wall));
    }

    /// Plans the next ask, unless one is planned before that.
    pub(in crate::engine) fn ask_by(&mut self, at: Instant, now: Now) {
        let planned = self.next_ask.map_or(at, |(planned, _)| planned);
        self.ask_at(at.min(planned), now);
    }

    /// What is under way is void: its answer would be of another time or place.
    pub(in crate::engine) fn void(&mut self) {
        self.generation += 1;
        self.asking = None;
    }

    /// It restarted: answers that are under way are of the process before.
    pub(in crate::engine) fn restarted(&mut self, now: Now) {
        self.restarts += 1;
        self.last_restart = Some(now.wall);
        self.void();
    }

    /// What is under way is void, and the next ask is at `at` and unconditional.
    pub(in crate::engine) fn ask_anew(&mut self, at: Instant, now: Now) {
        self.void();
        self.unconditional = true;
        self.backoff = None;
        self.ask_at(at, now);
    }

    /// Its session ended by itself: the process or connection is gone, and the next ask makes another one.
    pub(in crate::engine) fn lost(&mut self, why: String, at: Instant, now: Now) {
        self.suspect = true;
        self.last_error = Some(LastError { kind: "ended".into(), message: why, at: now.wall });
        self.ask_anew(at, now);
    }

    /// Its changes are not signalled any more: what it said last is fresh for as long as it said.
    pub(in crate::engine) fn unfollowed(&mut self) {
        if let Some(held) = &mut self.offer
            && let Some(fresh) = &held.fresh
            && let Term::Until(until) = &mut held.term
        {
            *until = (*until).min(fresh.fresh_until());
        }
    }

    /// Its source gave an address that cannot be asked at all.
    pub(in crate::engine) fn unaskable(&mut self, error: &TransportError, now: Now) {
        self.void();
        self.target = None;
        self.next_ask = None;
        self.failures += 1;
        self.latest = Latest::Failed;
        self.last_error = Some(LastError { kind: error.kind().into(), message: error.to_string(), at: now.wall });
    }

    /// The change of state that was not told of yet, which now counts as told.
    pub(in crate::engine) fn turn(&mut self, now: Now) -> Option<Turn> {
        let state = self.state();
        let from = self.told.replace(state);
        (from != Some(state)).then(|| self.turned(from, Some(state), self.reason.clone(), now))
    }

    /// That it is not known any more, and why.
    pub(in crate::engine) fn forgotten(&self, reason: &str, now: Now) -> Turn {
        self.turned(Some(self.state()), None, reason.to_owned(), now)
    }

    fn turned(&self, from: Option<ScenarioState>, to: Option<ScenarioState>, reason: String, now: Now) -> Turn {
        let (name, at, restarts) = (self.name.clone(), now.wall, self.restarts);
        Turn { name, from, to, reason, at, restarts, failures_in_a_row: self.failures }
    }

    /// What an operator sees. `counts` come from the catalog.
    pub(in crate::engine) fn health(&self, counts: crate::model::ToolCounts) -> Health {
        let manifest = self.offer.as_ref().map(|held| &held.manifest);
        let text = |pick: fn(&Manifest) -> &Arc<str>, most| {
            manifest.map(|manifest| cut(pick(manifest), most)).filter(|text| !text.is_empty())
        };
        Health {
            name: self.name.clone(),
            state: self.state(),
            reason: self.reason.clone(),
            since: self.since,
            url: self.target.as_ref().map(Target::to_string),
            source: self.source,
            trusted: self.is_trusted(),
            party: self.party.clone().unwrap_or_default(),
            own_name: text(|m| &m.scenario.name, SHOWN_NAME),
            protocol: self.protocol.as_ref().map(|protocol| protocol.id()),
            protocol_version: text(|m| &m.protocol_version, SHOWN_NAME),
            version: text(|m| &m.scenario.version, SHOWN_NAME),
            description: text(|m| &m.scenario.description, SHOWN_TEXT),
            tools: counts,
            freshness: self.offer.as_ref().map(|held| held.freshness),
            last_success: self.last_success,
            last_attempt: self.last_attempt.map(|(_, wall)| wall),
            last_error: self.last_error.clone(),
            next_attempt: self.next_ask.filter(|_| self.may_be_asked()).map(|(_, wall)| wall),
            failures_in_a_row: self.failures,
            latency_ms: self.latency.map(|latency| u64::try_from(latency.as_millis()).unwrap_or(u64::MAX)),
            restarts: self.restarts,
            last_restart: self.last_restart,
        }
    }
}

/// A text of a scenario's own, cut to so many characters; a cut one ends in an ellipsis.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}
