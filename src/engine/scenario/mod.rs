//! One scenario: everything the engine knows of it, and how answers, sources and time change it.
//!
//! ```text
//! ScenarioInput --> handle.rs --> fields of Scenario --> health.rs --> lifecycle.rs --> state
//! (answer, endpoint,  (poll_result.rs for an answer,       (facts now, and until   (the only
//!  decision, hint)     trust.rs for a decision)             when they hold)         transitions)
//! ```
//!
//! What is kept true here:
//!
//! - What others report (an answer, an endpoint, a decision, a hint, a call) goes through
//!   [`Scenario::handle`], and what follows is returned as effects. Other methods only record what
//!   the loop itself did or noted: restored data, a poll that began, a session, the end of a
//!   program.
//! - No IO and no clock: both times and the random numbers are arguments.
//! - The state follows from facts. The only function that says which state follows is `next` in
//!   `lifecycle.rs`, and `health.rs` is its only caller.
//! - One poll is under way at a time. Its answer counts only for the generation that it began with.
//! - A failed poll keeps the active manifest; `health.rs` decides until when it is offered.
//!
//! Read in this order:
//!
//! 1. `lifecycle.rs` (the states and their picture), `facts.rs` (what they follow from).
//! 2. `handle.rs` (every input), then `poll_result.rs` (what an answer changes) and `trust.rs` (for
//!    which peer a decision holds).
//! 3. `health.rs` (the evaluation), `health_report.rs` and `log.rs` (as operators see it),
//!    `needs_authorization.rs` (the finding about a missing credential).
//! 4. `poll.rs`, `polls.rs` and `schedule.rs` (when it is polled), `backoff.rs` (waits after
//!    failures), `restart.rs` and `stamps.rs` (what an answer shows about the process behind it).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::config::Config;
use crate::engine::assignment::Assignment;
use crate::engine::awake::AwakeHolds;
use crate::engine::error::EngineError;
use crate::engine::now::Now;
use crate::engine::scenario::facts::CurrentState;
use crate::engine::scenario::facts::{LastPoll, ManifestTerm, Obstacle, SourcePresence};
use crate::engine::scenario::lifecycle::RemovedBy;
use crate::engine::scenario::polls::Polls;
use crate::engine::scenario::restart::Restarts;
use crate::engine::scenario::stamps::AnswerStamps;
use crate::engine::scenario::trust::TrustStatus;
use crate::engine::sessions::link::SessionLink;
use crate::model::{
    Awaited, Digest, Finding, FindingCode, Freshness, Health, LastError, Manifest, PeerIdentity,
    ProgramEnd, ScenarioName, ScenarioState, SourceId, StateTransition, Target,
};
use crate::protocols::{Protocol, Validators, Validity};

pub(in crate::engine) mod backoff;
pub(in crate::engine) mod facts;
pub(in crate::engine) mod handle;
pub(in crate::engine) mod health;
mod health_report;
pub(in crate::engine) mod lifecycle;
pub(in crate::engine) mod log;
mod needs_authorization;
pub(in crate::engine) mod poll;
pub(in crate::engine) mod poll_result;
mod polls;
mod restart;
pub(in crate::engine) mod schedule;
mod sleep;
mod stamps;
pub(in crate::engine) mod trust;

/// A client that waits for the next answer of a scenario.
pub(in crate::engine) type Waiter = oneshot::Sender<Result<Arc<Health>, EngineError>>;

/// One scenario. Its fields but the name are private: other code reads it through methods. What
/// others report changes it through [`Scenario::handle`].
pub(in crate::engine) struct Scenario {
    pub(in crate::engine) name: ScenarioName,
    /// The endpoint that a source last named; `None` if none has named one yet.
    place: Option<Assignment>,
    /// Where it is polled; kept for one last poll after the sources stopped naming it.
    target: Option<Target>,
    /// Its session, as the session keeper reported it at the last change.
    session: Option<SessionLink>,
    /// The source that named it last.
    source: SourceId,
    /// Whether its tools may be published.
    approval: TrustStatus,
    /// The peer that is there, or was when a source last named it.
    party: Option<PeerIdentity>,
    protocol: Option<Arc<dyn Protocol>>,
    offer: Option<AcceptedManifest>,
    /// Its manifest in the store.
    kept: Option<KeptManifest>,
    /// When that was last confirmed, as far as the store has it.
    kept_answer: Option<Timestamp>,
    /// The peer that holds the name in the store, for a scenario that waits for approval.
    claimed: Option<PeerIdentity>,
    /// The result of its last poll.
    latest: LastPoll,
    /// What it requires before it lists its tools again; cleared by the next good answer.
    obstacle: Option<Obstacle>,
    failures: u32,
    answered: bool,
    /// The start of grace: the last good answer, or else the time when the scenario became known.
    grace_from: Instant,
    last_success: Option<Timestamp>,
    last_error: Option<LastError>,
    /// The finding of the last failed answer, in addition to those of the active manifest.
    failure_finding: Option<Box<Finding>>,
    /// What the poll under way has waited for so long that it is counted as a failure.
    awaited: Option<Box<Awaited>>,
    /// Since when it has not answered in one poll after the other, without another error.
    silent_since: Option<Instant>,
    latency: Option<Duration>,
    /// How its latest program ended, if it is one that was started here.
    program_end: Option<Arc<ProgramEnd>>,
    restarts: Restarts,
    /// The use of its program.
    awake: Arc<AwakeHolds>,
    /// Since when its program does not run because no client needs it.
    asleep: Option<Timestamp>,
    stamps: AnswerStamps,
    polls: Polls,
    /// Clients that wait for its next answer.
    waiters: Vec<Waiter>,
    /// The state that follows from all of this.
    current: CurrentState,
    /// Whether a source names it.
    presence: SourcePresence,
    /// Until then it is ignored that its source does not name it, because too many others fell
    /// silent with it.
    silenced: Option<Instant>,
    /// Until then it is not withdrawn for its failures, because the daemon was cut off recently.
    reprieve: Option<Instant>,
    /// When the loop has to evaluate it again, as entered in its list of wake times.
    wake: Option<Instant>,
}

/// All scenarios. Each is boxed, because the nodes of the map have room for eleven values and are
/// half full.
pub(in crate::engine) type ScenarioMap = BTreeMap<ScenarioName, Box<Scenario>>;

/// The active manifest.
#[derive(Clone)]
pub(in crate::engine) struct AcceptedManifest {
    pub(in crate::engine) manifest: Arc<Manifest>,
    pub(in crate::engine) quarantined: usize,
    pub(in crate::engine) findings: Vec<Finding>,
    /// How long the last good answer may be used; absent for a restored manifest.
    pub(in crate::engine) fresh: Option<Validity>,
    /// What its session wants to have back with the next request; of a restored manifest what was
    /// stored of it.
    pub(in crate::engine) validators: Validators,
    pub(in crate::engine) term: ManifestTerm,
    pub(in crate::engine) freshness: Freshness,
}

/// What the store has of a manifest.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::engine) struct KeptManifest {
    digest: Digest,
    validators: Option<Arc<str>>,
}

impl AcceptedManifest {
    /// What the store should have of it.
    fn to_keep(&self) -> KeptManifest {
        KeptManifest {
            digest: self.manifest.digest,
            validators: self.validators.text().cloned(),
        }
    }
}

impl Scenario {
    /// A scenario that was just found. No other scenario of its name may have had this generation.
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
            kept_answer: None,
            claimed: None,
            latest: LastPoll::Unanswered,
            obstacle: None,
            failures: 0,
            answered: false,
            grace_from: now.mono,
            last_success: None,
            last_error: None,
            failure_finding: None,
            awaited: None,
            silent_since: None,
            latency: None,
            program_end: None,
            restarts: Restarts::default(),
            awake: AwakeHolds::new(now.mono),
            asleep: None,
            stamps: AnswerStamps::default(),
            polls: Polls::new(generation),
            waiters: Vec::new(),
            current: CurrentState::new(now.wall),
            presence: SourcePresence::Named,
            silenced: None,
            reprieve: None,
            wake: None,
        }
    }

    /// Whether its tools may be published.
    pub(in crate::engine) fn is_trusted(&self) -> bool {
        self.approval.is_given()
    }

    /// Whether an operator rejected it.
    pub(in crate::engine) fn is_blocked(&self) -> bool {
        self.approval.is_refused()
    }

    /// Whether everything known of it must be discarded because another peer is there now: no
    /// source vouches for both, and they are not the same peer. What one peer said must never be
    /// published as another's.
    pub(in crate::engine) fn is_another(&self, party: &PeerIdentity, source_trusted: bool) -> bool {
        !(self.approval.is_source_trusted() && source_trusted)
            && self
                .party
                .as_ref()
                .is_none_or(|before| !trust::same(before, party))
    }

    /// Whether it is healthy, and its next answer is expected to bring no change.
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

    /// Whether it answered the last poll, so that its silence would count as a loss.
    pub(in crate::engine) fn is_well(&self) -> bool {
        self.answered && self.failures == u32::from(self.awaited.is_some()) && self.is_trusted()
    }

    /// The source that named it last, and whether a source named it since the start.
    pub(in crate::engine) fn source(&self) -> (SourceId, bool) {
        (self.source, self.place.is_some())
    }

    /// Where it is polled.
    pub(in crate::engine) fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// The peer that is there, or was when a source last named it.
    pub(in crate::engine) fn party(&self) -> Option<&PeerIdentity> {
        self.party.as_ref()
    }

    /// Its protocol, if it is known.
    pub(in crate::engine) fn protocol(&self) -> Option<&Arc<dyn Protocol>> {
        self.protocol.as_ref()
    }

    /// Its session, as the session keeper reported it at the last change.
    pub(in crate::engine) fn session(&self) -> Option<&SessionLink> {
        self.session.as_ref()
    }

    /// Replaces its session by the current one.
    pub(in crate::engine) fn set_session(&mut self, session: Option<SessionLink>) {
        self.session = session;
    }

    /// The number of polls in a row without a good answer.
    pub(in crate::engine) fn failures(&self) -> u32 {
        self.failures
    }

    /// The active manifest.
    pub(in crate::engine) fn held(&self) -> Option<&AcceptedManifest> {
        self.offer.as_ref()
    }

    /// The endpoint that a source last named.
    pub(in crate::engine) fn assignment(&self) -> Option<&Assignment> {
        self.place.as_ref()
    }

    /// Whether its source is trusted for its address.
    pub(in crate::engine) fn is_source_trusted(&self) -> bool {
        self.approval.is_source_trusted()
    }

    /// Why its process does not run, if the source that names it knows that.
    pub(in crate::engine) fn ended(&self) -> Option<&str> {
        let place = self
            .place
            .as_ref()
            .filter(|_| self.presence == SourcePresence::Named);
        place?.endpoint.ended.as_deref()
    }

    /// Whether a source names it, as far as is known.
    pub(in crate::engine) fn is_named(&self) -> bool {
        self.presence == SourcePresence::Named
    }

    /// Since when it is absent; `None` if it is not.
    pub(in crate::engine) fn absent_since(&self) -> Option<Instant> {
        match self.presence {
            SourcePresence::Absent { since, .. } => Some(since),
            SourcePresence::Named | SourcePresence::Leaving | SourcePresence::Unnamed => None,
        }
    }

    /// Until then it is ignored that its source does not name it.
    pub(in crate::engine) fn silenced(&self) -> Option<Instant> {
        self.silenced
    }

    /// When the loop has to evaluate it again, as entered in the loop's list.
    pub(in crate::engine) fn wake(&self) -> Option<Instant> {
        self.wake
    }

    /// Sets that time, and returns the one before.
    pub(in crate::engine) fn set_wake(&mut self, wake: Option<Instant>) -> Option<Instant> {
        std::mem::replace(&mut self.wake, wake)
    }

    /// The digest of the active manifest.
    pub(in crate::engine) fn digest(&self) -> Option<Digest> {
        self.offer.as_ref().map(|held| held.manifest.digest)
    }

    /// Whether its last listing has all tools: its last answer was good, none was left out, and it
    /// was not the first one of its process, which may not have all its tools yet.
    pub(in crate::engine) fn lists_all(&self) -> bool {
        let cuts = |finding: &Finding| finding.code == FindingCode::ToolsBeyondLimit;
        self.latest == LastPoll::Good
            && self.polls.is_listed_again
            && self
                .offer
                .as_ref()
                .is_some_and(|held| held.quarantined == 0 && !held.findings.iter().any(cuts))
    }

    /// Whether the operator's entry for it is another one than before.
    pub(in crate::engine) fn has_other_entry(&self, now: &Assignment) -> bool {
        let known = self
            .place
            .as_ref()
            .filter(|_| now.source.spec().has_entries);
        known.is_some_and(|known| known.endpoint.target != now.endpoint.target)
    }

    /// Whether no source names it any more and it does not answer.
    pub(in crate::engine) fn is_absent(&self) -> bool {
        matches!(self.presence, SourcePresence::Absent { .. })
    }

    /// Whether the configuration dropped it.
    pub(in crate::engine) fn is_dismissed(&self) -> bool {
        matches!(
            self.presence,
            SourcePresence::Absent {
                by: RemovedBy::Configuration,
                ..
            }
        )
    }

    /// The state as operators and programs see it.
    pub(in crate::engine) fn state(&self) -> ScenarioState {
        self.current.lifecycle().shown()
    }

    /// Marks it as absent: no source names it, and it does not answer. Its earlier answers do not
    /// apply to what may come back.
    pub(in crate::engine) fn mark_absent(&mut self, by: RemovedBy, now: Now) {
        self.presence = SourcePresence::Absent {
            since: now.mono,
            by,
        };
        self.latest = LastPoll::Unanswered;
        self.end_sleep();
        if let Some(held) = &mut self.offer {
            held.term = ManifestTerm::Ended;
        }
        self.polls.next = None;
    }

    /// When it is forgotten, if it does not appear again before.
    pub(in crate::engine) fn forgotten_at(&self, config: &Config) -> Option<Instant> {
        match self.presence {
            SourcePresence::Absent { since, .. } if self.is_trusted() => {
                Some(since + config.health.forget)
            }
            // Of a scenario that was never approved only the name is remembered, and announcing
            // many names is easy.
            SourcePresence::Absent { since, .. } => {
                Some(since + config.health.forget.min(config.refresh.max_interval))
            }
            SourcePresence::Named | SourcePresence::Leaving | SourcePresence::Unnamed => None,
        }
    }

    /// Notes how its program ended. Returns whether that is news.
    pub(in crate::engine) fn note_end(&mut self, program: &Arc<ProgramEnd>) -> bool {
        let before = self.program_end.replace(Arc::clone(program));
        before.is_none_or(|before| !Arc::ptr_eq(&before, program))
    }

    /// Records a restart: answers under way belong to the process before.
    pub(in crate::engine) fn restarted(&mut self, now: Now) {
        self.restarts.add(now.wall);
        self.void();
    }

    /// From now on its last answer is fresh only as long as that answer said: its changes are not
    /// signalled any more, or the poll that was to renew the answer has failed.
    fn limit_to_lifetime(&mut self) {
        if let Some(held) = &mut self.offer
            && let Some(fresh) = &held.fresh
            && let ManifestTerm::Until(until) = &mut held.term
        {
            *until = (*until).min(fresh.fresh_until());
        }
    }

    /// The transition that says that it is not known any more, and why.
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
        let name = self.name.clone();
        let at = now.wall;
        let restarts = self.restarts.count();
        StateTransition {
            name,
            from,
            to,
            reason,
            at,
            restarts,
            failures_in_a_row: self.failures,
        }
    }
}
