//! One scenario: everything the engine knows of it, and what answers, sources and time make of it.
//!
//! Changing it never does IO and never reads a clock: both times are arguments.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::config::Config;
use crate::engine::assignment::Assignment;
use crate::engine::error::EngineError;
use crate::engine::now::Now;
use crate::engine::scenario::facts::CurrentState;
use crate::engine::scenario::facts::{LastPoll, ManifestTerm, Obstacle, SourcePresence};
use crate::engine::scenario::lifecycle::RemovedBy;
use crate::engine::scenario::polls::Polls;
use crate::engine::scenario::restart::Restarts;
use crate::engine::scenario::trust::TrustStatus;
use crate::engine::sessions::link::SessionLink;
use crate::model::{
    Digest, Finding, Freshness, Health, LastError, Manifest, PeerIdentity, ScenarioName, ScenarioState, SourceId,
    StateTransition, Target,
};
use crate::protocols::{Protocol, Validity};

pub(in crate::engine) mod backoff;
pub(in crate::engine) mod facts;
pub(in crate::engine) mod handle;
pub(in crate::engine) mod health;
mod health_report;
pub(in crate::engine) mod lifecycle;
pub(in crate::engine) mod log;
pub(in crate::engine) mod poll;
pub(in crate::engine) mod poll_result;
mod polls;
mod restart;
pub(in crate::engine) mod schedule;
pub(in crate::engine) mod trust;

/// Someone who waits for the next answer of a scenario.
pub(in crate::engine) type Waiter = oneshot::Sender<Result<Arc<Health>, EngineError>>;

/// One scenario. Everything but its name is its own: it is read through methods and changed through [`Scenario::handle`].
pub(in crate::engine) struct Scenario {
    pub(in crate::engine) name: ScenarioName,
    /// Where a source said it is, the last time one named it; absent when none has yet.
    place: Option<Assignment>,
    /// Where it is asked, kept for one last ask after the sources stopped naming it.
    target: Option<Target>,
    /// The session with it, as the keeper of sessions gave it when the scenario changed last.
    session: Option<SessionLink>,
    /// The source that named it last.
    source: SourceId,
    /// Whether its tools may be published at all.
    approval: TrustStatus,
    /// Who is there, or was when a source last named it.
    party: Option<PeerIdentity>,
    protocol: Option<Arc<dyn Protocol>>,
    offer: Option<AcceptedManifest>,
    /// Of the manifest that the store has of it.
    kept: Option<Digest>,
    /// Whose claim to the name the store has, of a scenario that waits for a yes.
    claimed: Option<PeerIdentity>,
    /// What its last answer came to.
    latest: LastPoll,
    /// What it asks for before it lists anything again, until the next good answer.
    obstacle: Option<Obstacle>,
    failures: u32,
    answered: bool,
    /// From when grace counts: the last good answer, else when the scenario came to be known.
    grace_from: Instant,
    last_success: Option<Timestamp>,
    last_error: Option<LastError>,
    /// What the last failed answer has to say, besides the findings of the manifest in force.
    failure_finding: Option<Box<Finding>>,
    latency: Option<Duration>,
    restarts: Restarts,
    polls: Polls,
    /// Clients that wait for its next answer.
    waiters: Vec<Waiter>,
    /// The state that follows from all of this.
    current: CurrentState,
    /// Whether a source names it.
    presence: SourcePresence,
    /// Until when its source's silence counts for nothing, because too many others fell silent with it.
    silenced: Option<Instant>,
    /// Until when it is not withdrawn for its failures, because the daemon was cut off just now.
    reprieve: Option<Instant>,
    /// When the loop has to look at it again, as entered in its list of wakes.
    wake: Option<Instant>,
}

/// All scenarios. Each in a place of its own: the nodes of the map have room for eleven and are half full.
pub(in crate::engine) type ScenarioMap = BTreeMap<ScenarioName, Box<Scenario>>;

/// The manifest in force.
#[derive(Clone)]
pub(in crate::engine) struct AcceptedManifest {
    pub(in crate::engine) manifest: Arc<Manifest>,
    pub(in crate::engine) quarantined: usize,
    pub(in crate::engine) findings: Vec<Finding>,
    /// How long the last good answer may be used; absent for a restored manifest.
    pub(in crate::engine) fresh: Option<Validity>,
    pub(in crate::engine) term: ManifestTerm,
    pub(in crate::engine) freshness: Freshness,
}

impl Scenario {
    /// A scenario that was just heard of. No other one of its name may have had this generation.
    pub(in crate::engine) fn new(
        name: ScenarioName,
        source: SourceId,
        trusted: bool,
        generation: u64,
        now: Now,
    ) -> Self {
        Self {
            name,
            place: None,
            target: None,
            session: None,
            source,
            approval: TrustStatus::new(trusted),
            party: None,
            protocol: None,
            offer: None,
            kept: None,
            claimed: None,
            latest: LastPoll::Unanswered,
            obstacle: None,
            failures: 0,
            answered: false,
            grace_from: now.mono,
            last_success: None,
            last_error: None,
            failure_finding: None,
            latency: None,
            restarts: Restarts::default(),
            polls: Polls::new(generation),
            waiters: Vec::new(),
            current: CurrentState::new(now.wall),
            presence: SourcePresence::Named,
            silenced: None,
            reprieve: None,
            wake: None,
        }
    }

    /// Whether its tools may be published at all.
    pub(in crate::engine) fn is_trusted(&self) -> bool {
        self.approval.is_given()
    }

    /// Whether an operator rejected it.
    pub(in crate::engine) fn is_blocked(&self) -> bool {
        self.approval.is_refused()
    }

    /// Whether nothing that was known of it may be taken for who is there now: neither did a source vouch for both, nor are they the
    /// same. What one party said must never be published as another's.
    pub(in crate::engine) fn is_another(&self, party: &PeerIdentity, vouched: bool) -> bool {
        !(self.approval.is_vouched() && vouched) && self.party.as_ref().is_none_or(|before| !trust::same(before, party))
    }

    /// Whether it is well, and nothing new is expected of its next answer.
    pub(in crate::engine) fn is_steady(&self) -> bool {
        self.answered
            && self.failures == 0
            && !self.restarts.are_suspected()
            && !self.polls.unconditional
            && self.presence == SourcePresence::Named
            && self.obstacle.is_none()
            && self.is_trusted()
            && self.waiters.is_empty()
    }

    /// Whether it answered at the last poll, and its silence would be a loss.
    pub(in crate::engine) fn is_well(&self) -> bool {
        self.answered && self.failures == 0 && self.is_trusted()
    }

    /// The source that named it last, and whether one named it since the start.
    pub(in crate::engine) fn source(&self) -> (SourceId, bool) {
        (self.source, self.place.is_some())
    }

    /// Where it is polled.
    pub(in crate::engine) fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// The party that is there, or was when a source last named it.
    pub(in crate::engine) fn party(&self) -> Option<&PeerIdentity> {
        self.party.as_ref()
    }

    /// What it speaks, if that is known.
    pub(in crate::engine) fn protocol(&self) -> Option<&Arc<dyn Protocol>> {
        self.protocol.as_ref()
    }

    /// The session with it, as the keeper of sessions gave it when it changed last.
    pub(in crate::engine) fn session(&self) -> Option<&SessionLink> {
        self.session.as_ref()
    }

    /// Takes in the session that there is with it now.
    pub(in crate::engine) fn set_session(&mut self, session: Option<SessionLink>) {
        self.session = session;
    }

    /// How often in a row it gave no good answer.
    pub(in crate::engine) fn failures(&self) -> u32 {
        self.failures
    }

    /// The manifest in force.
    pub(in crate::engine) fn held(&self) -> Option<&AcceptedManifest> {
        self.offer.as_ref()
    }

    /// Where a source said it is, the last time one named it.
    pub(in crate::engine) fn assignment(&self) -> Option<&Assignment> {
        self.place.as_ref()
    }

    /// Whether its source vouches for its address.
    pub(in crate::engine) fn is_vouched(&self) -> bool {
        self.approval.is_vouched()
    }

    /// Whether a source names it, as far as is known.
    pub(in crate::engine) fn is_named(&self) -> bool {
        self.presence == SourcePresence::Named
    }

    /// Since when it is absent, if it is.
    pub(in crate::engine) fn absent_since(&self) -> Option<Instant> {
        match self.presence {
            SourcePresence::Absent { since, .. } => Some(since),
            SourcePresence::Named | SourcePresence::Leaving | SourcePresence::Unnamed => None,
        }
    }

    /// Until when its source's silence counts for nothing.
    pub(in crate::engine) fn silenced(&self) -> Option<Instant> {
        self.silenced
    }

    /// When the loop has to look at it again, as entered in its list.
    pub(in crate::engine) fn wake(&self) -> Option<Instant> {
        self.wake
    }

    /// Enters another such time; the one before.
    pub(in crate::engine) fn set_wake(&mut self, wake: Option<Instant>) -> Option<Instant> {
        std::mem::replace(&mut self.wake, wake)
    }

    /// Of the manifest in force.
    pub(in crate::engine) fn digest(&self) -> Option<Digest> {
        self.offer.as_ref().map(|held| held.manifest.digest)
    }

    /// Whether no source names it any more and it does not answer.
    pub(in crate::engine) fn is_absent(&self) -> bool {
        matches!(self.presence, SourcePresence::Absent { .. })
    }

    /// Whether the configuration does not want it any more.
    pub(in crate::engine) fn is_dismissed(&self) -> bool {
        matches!(self.presence, SourcePresence::Absent { by: RemovedBy::Configuration, .. })
    }

    /// The state as people and programs see it.
    pub(in crate::engine) fn state(&self) -> ScenarioState {
        self.current.lifecycle().shown()
    }

    /// No source names it, and it does not answer. What it said before says nothing of what may come back.
    pub(in crate::engine) fn mark_absent(&mut self, by: RemovedBy, now: Now) {
        self.presence = SourcePresence::Absent { since: now.mono, by };
        self.latest = LastPoll::Unanswered;
        if let Some(held) = &mut self.offer {
            held.term = ManifestTerm::Ended;
        }
        self.polls.next = None;
    }

    /// When it is to be forgotten, if nothing is heard of it until then.
    pub(in crate::engine) fn forgotten_at(&self, config: &Config) -> Option<Instant> {
        match self.presence {
            SourcePresence::Absent { since, .. } if self.is_trusted() => Some(since + config.health.forget),
            // One that was never approved is remembered for its name alone, and names cost an announcer nothing.
            SourcePresence::Absent { since, .. } => Some(since + config.health.forget.min(config.refresh.max_interval)),
            SourcePresence::Named | SourcePresence::Leaving | SourcePresence::Unnamed => None,
        }
    }

    /// It restarted: answers that are under way are of the process before.
    pub(in crate::engine) fn restarted(&mut self, now: Now) {
        self.restarts.add(now.wall);
        self.void();
    }

    /// Its changes are not signalled any more: what it said last is fresh for as long as it said.
    fn unfollowed(&mut self) {
        if let Some(held) = &mut self.offer
            && let Some(fresh) = &held.fresh
            && let ManifestTerm::Until(until) = &mut held.term
        {
            *until = (*until).min(fresh.fresh_until());
        }
    }

    /// That it is not known any more, and why.
    pub(in crate::engine) fn forgotten(&self, reason: &str, now: Now) -> StateTransition {
        self.turned(Some(self.state()), None, reason.to_owned(), now)
    }

    pub(super) fn turned(
        &self,
        from: Option<ScenarioState>,
        to: Option<ScenarioState>,
        reason: String,
        now: Now,
    ) -> StateTransition {
        let (name, at, restarts) = (self.name.clone(), now.wall, self.restarts.count());
        StateTransition { name, from, to, reason, at, restarts, failures_in_a_row: self.failures }
    }
}
