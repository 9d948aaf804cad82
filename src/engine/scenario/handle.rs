//! How each input changes a scenario. Every change from outside goes through [`Scenario::handle`],
//! except the start of polls (`poll.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::config::Config;
use crate::discovery::SourceTrust;
use crate::engine::assignment::{self, Assignment};
use crate::engine::call_report::CallReport;
use crate::engine::effects::{ChangeKind, Dirty, Effects, Notice};
use crate::engine::now::Now;
use crate::engine::persist::manifest_writer::SaveRequest;
use crate::engine::poll_task::PollResult;
use crate::engine::scenario::facts::{LastPoll, ManifestTerm, SourcePresence};
use crate::engine::scenario::lifecycle::RemovedBy;
use crate::engine::scenario::{AcceptedManifest, Scenario, poll_result, schedule, trust};
use crate::model::{Awaited, Digest, PeerIdentity, ScenarioName, SourceId, Target};
use crate::protocols::{Protocol, Protocols};
use crate::state::{StoredManifest, TrustDecision};
use crate::transports::Transports;

/// An input that concerns one scenario.
pub(in crate::engine) enum ScenarioInput<'a> {
    /// A poll ended. `absence_is_believed` says whether a source that stopped naming it is
    /// believed; `random` is in `0.0..1.0`.
    Polled {
        answered: Box<PollResult>,
        absence_is_believed: bool,
        random: f64,
    },
    /// A source names it, at this endpoint.
    Assigned(&'a Assignment, AssignContext<'a>),
    /// No source names it any more; `dismissed` when the configuration decided that.
    Left { dismissed: bool },
    /// Until this time it is ignored that its source does not name it.
    Silenced(Instant),
    /// Until this time it is not withdrawn for its failures.
    Reprieved(Instant),
    /// The operators' decisions may have changed.
    DecisionsChanged(&'a BTreeMap<ScenarioName, TrustDecision>),
    /// The interval of polls changed. `followed` says whether its changes are signalled; `random`
    /// is in `0.0..1.0`.
    Replanned { followed: bool, random: f64 },
    /// Its manifest has to be fetched whole, because another configuration may read it differently.
    Reread,
    /// A call over a route of this generation reports this.
    Called { generation: u64, report: CallReport },
    /// A poll of this generation has waited long for an answer.
    Waits {
        generation: u64,
        awaited: Box<Awaited>,
    },
    /// A session reports that its list may have changed: it is to be listed by this time.
    Hinted(Instant),
    /// The same, and its changes are no longer signalled.
    Unfollowed(Instant),
    /// Its session ended by itself; `why` is the reason, and `followed` says whether its changes
    /// were signalled.
    Ended {
        at: Instant,
        why: String,
        followed: bool,
    },
    /// Its data could not be stored.
    NotStored,
}

/// What a scenario needs besides its own data to accept an endpoint.
#[derive(Clone, Copy)]
pub(in crate::engine) struct AssignContext<'a> {
    pub(in crate::engine) transports: &'a Transports,
    pub(in crate::engine) protocols: &'a Protocols,
    pub(in crate::engine) decisions: &'a BTreeMap<ScenarioName, TrustDecision>,
    /// The generation of a scenario that begins with this endpoint.
    pub(in crate::engine) generation: u64,
}

impl Scenario {
    /// Handles an input, and returns its effects.
    pub(in crate::engine) fn handle(
        &mut self,
        input: ScenarioInput<'_>,
        config: &Config,
        now: Now,
    ) -> Effects {
        match input {
            ScenarioInput::Polled {
                answered,
                absence_is_believed,
                random,
            } => {
                let before = self.fingerprint();
                poll_result::apply(self, *answered, config, absence_is_believed, now, random);
                let is_same = before.is_some() && before == self.fingerprint();
                let settled = if is_same {
                    ChangeKind::Confirmed
                } else {
                    ChangeKind::Changed
                };
                let mut effects = Effects::scenario(&self.name, settled);
                effects.store.extend(self.take_save());
                effects.notify.push(Notice::Polled(self.name.clone()));
                return effects;
            }
            ScenarioInput::Assigned(assignment, world) => {
                return self.assigned(assignment, world, config, now);
            }
            ScenarioInput::Left { dismissed } => return self.left(dismissed, now),
            ScenarioInput::DecisionsChanged(decisions) => {
                return self.ruled(decisions, config, now);
            }
            ScenarioInput::Silenced(until) => self.silenced = Some(until),
            ScenarioInput::Reprieved(until) => self.reprieve = Some(until),
            ScenarioInput::Replanned { followed, random } => {
                self.replanned(followed, config, now, random);
            }
            ScenarioInput::Reread => self.polls.unconditional |= self.may_be_polled(),
            ScenarioInput::Called { generation, report } => {
                if self.called(generation, report, &config.refresh, now) {
                    return Effects::scenario(&self.name, ChangeKind::Changed);
                }
            }
            ScenarioInput::Waits {
                generation,
                awaited,
            } => {
                if self.waits(generation, awaited, now) {
                    let mut effects = Effects::scenario(&self.name, ChangeKind::Changed);
                    effects.notify.push(Notice::Waits(self.name.clone()));
                    return effects;
                }
            }
            ScenarioInput::Hinted(at) => self.hinted(at, now),
            ScenarioInput::Unfollowed(at) => {
                self.limit_to_lifetime();
                self.hinted(at, now);
            }
            ScenarioInput::Ended { at, why, followed } => {
                if followed {
                    self.limit_to_lifetime();
                }
                self.lost(why, at, now);
            }
            ScenarioInput::NotStored => self.not_stored(),
        }
        Effects::default()
    }

    /// Failed writes to the store, and failed removals from it, are tried again.
    fn not_stored(&mut self) {
        if self.kept.take().is_none() && self.claimed.take().is_none() {
            self.kept = self.offer.as_ref().map(AcceptedManifest::to_keep);
        }
    }

    /// The fields that an unchanged answer must not change; `None` for a scenario that is not
    /// healthy.
    fn fingerprint(&self) -> Option<(Digest, usize, u64, u32, bool)> {
        let held = self.offer.as_ref().filter(|_| self.is_steady())?;
        let restarts = self.restarts.count();
        Some((
            held.manifest.digest,
            held.quarantined,
            self.polls.generation,
            restarts,
            self.is_listed(),
        ))
    }

    /// The scenario is new, or its endpoint changed.
    fn assigned(
        &mut self,
        place: &Assignment,
        world: AssignContext<'_>,
        config: &Config,
        now: Now,
    ) -> Effects {
        let source_trusted = place.endpoint.trust == SourceTrust::Trusted;
        let party = trust::party(&place.endpoint);
        let mut effects = Effects::default();
        if self.current.announced_state().is_some() && self.is_another(&party, source_trusted) {
            self.start_over(place.source, source_trusted, world.generation, now);
            effects.close.push(self.name.clone());
            effects.publish.push(Dirty::Cleared(self.name.clone()));
        }
        let known = self.place.replace(place.clone());
        // Its entry may say so now.
        self.start_if_it_may_not_sleep(config, now);
        let was_absent = self.is_absent();
        self.presence = SourcePresence::Named;
        self.silenced = None;
        self.source = place.source;
        self.approval.set_source_trusted(source_trusted);
        // Where it was stays known of a process that has ended and whose file names no address.
        self.party = self
            .party
            .take()
            .filter(|_| party.origin.is_none())
            .or(Some(party));
        let mut effects = effects.and(self.ruled(world.decisions, config, now));
        let protocol_changed = self.apply_protocol(known.as_ref(), place, world.protocols);
        // A scenario without an address gets it here, whatever is known of its former place.
        let known = known.filter(|_| self.target.is_some());
        let elsewhere = known
            .as_ref()
            .is_none_or(|known| known.endpoint.target != place.endpoint.target);
        let restarted = was_absent
            || known
                .as_ref()
                .is_some_and(|known| assignment::restarted(known, place));
        if restarted {
            self.restarts.suspect();
            effects.close.push(self.name.clone());
        }
        let was_ended = known
            .as_ref()
            .is_some_and(|known| known.endpoint.ended.is_some());
        if self.ended().is_some() {
            // Another program may have its port by now, so it is not polled.
            self.void();
            self.polls.next = None;
            self.target = place.endpoint.target.clone().or(self.target.take());
            effects.close.push(self.name.clone());
            effects.notify.push(Notice::Polled(self.name.clone()));
        } else if elsewhere || was_ended {
            effects = effects.and(self.moved(place, world.transports, config, now));
        } else if protocol_changed && self.is_trusted()
            || restarted && (self.is_trusted() || self.offer.is_none())
        {
            self.restart_poll(self.earliest(config, now), now);
        } else if restarted {
            self.plan_poll_at(
                self.after_last_attempt(config.refresh.max_interval, now),
                now,
            );
        }
        effects.store.extend(self.take_save());
        effects
            .publish
            .push(Dirty::Scenario(self.name.clone(), ChangeKind::Changed));
        effects
    }

    /// The scenario moved: it is polled at its new address.
    fn moved(
        &mut self,
        place: &Assignment,
        transports: &Transports,
        config: &Config,
        now: Now,
    ) -> Effects {
        let mut effects = Effects::default();
        let Some(target) = place.endpoint.target.clone() else {
            return effects;
        };
        match transports.check(&target) {
            Ok(()) => {
                if self.is_trusted() && self.target.as_ref() != Some(&target) {
                    // What failed at the former place says nothing of this one.
                    self.last_error = None;
                }
                self.target = Some(target);
                self.silent_since = None;
                if self.start_asleep(transports, config, now) {
                    // There is no first poll to wait for.
                    effects.notify.push(Notice::Polled(self.name.clone()));
                    return effects;
                }
                let at = if self.is_trusted() {
                    now.mono
                } else {
                    self.earliest(config, now)
                };
                self.restart_poll(at, now);
                // Before the first poll only the stored validators are known, and the protocol that
                // stored them judges whether they are of this address.
                self.polls.unconditional = self.polls.last.is_some();
            }
            Err(error) => {
                self.mark_unreachable(&error, now);
                effects.notify.push(Notice::Polled(self.name.clone()));
            }
        }
        effects
    }

    /// The earliest time of its next poll. A program that announces itself must not control how
    /// often it is polled: a scenario that waits for approval is not polled at once when it moves,
    /// and not because it restarts or comes back.
    fn earliest(&self, config: &Config, now: Now) -> Instant {
        let gap = if self.is_trusted() {
            config.refresh.forced_gap
        } else {
            config.refresh.min_interval
        };
        self.after_last_attempt(gap, now)
    }

    /// Its name now belongs to another program: nothing known of the former one may be used for the
    /// new one.
    fn start_over(&mut self, source: SourceId, source_trusted: bool, generation: u64, now: Now) {
        let old = std::mem::replace(
            self,
            Self::new(self.name.clone(), source, source_trusted, generation, now),
        );
        // The store still has the former one's data; the next save replaces it. Clients that wait
        // get the next answer.
        (self.kept, self.claimed, self.waiters) = (old.kept, old.claimed, old.waiters);
        // For readers of events it is the name whose state changes.
        self.current.follows(&old.current);
        (self.polls.last, self.wake) = (old.polls.last, old.wake);
    }

    /// Applies the protocol that a source names; if the source no longer names one, the protocol is
    /// detected again. Returns whether it changed.
    fn apply_protocol(
        &mut self,
        known: Option<&Assignment>,
        place: &Assignment,
        protocols: &Protocols,
    ) -> bool {
        let before = self.protocol.as_ref().map(|protocol| protocol.id());
        let named = place
            .endpoint
            .protocol
            .as_deref()
            .and_then(|id| protocols.by_id(id));
        let was_named = known
            .is_some_and(|known| known.source == place.source && known.endpoint.protocol.is_some());
        if named.is_some() || was_named {
            self.protocol = named;
        }
        known.is_some() && self.protocol.as_ref().map(|protocol| protocol.id()) != before
    }

    /// No source names it any more: its last address is polled once more before its tools are
    /// withdrawn.
    fn left(&mut self, dismissed: bool, now: Now) -> Effects {
        match self.presence {
            SourcePresence::Named => {}
            SourcePresence::Leaving | SourcePresence::Unnamed if dismissed => {}
            SourcePresence::Leaving | SourcePresence::Unnamed | SourcePresence::Absent { .. } => {
                return Effects::default();
            }
        }
        let has_ended = self.ended().is_some();
        self.presence = SourcePresence::Leaving;
        let polled = self.may_be_polled() && self.is_trusted() && !dismissed && !has_ended;
        self.restart_poll(now.mono, now);
        if !polled {
            // None of its tools is published, so no last poll is needed.
            self.mark_absent(
                if dismissed {
                    RemovedBy::Configuration
                } else {
                    RemovedBy::Source
                },
                now,
            );
        }
        let mut effects = Effects::scenario(&self.name, ChangeKind::Changed);
        if dismissed {
            self.kept = None;
            effects.store.push(SaveRequest::Forget(self.name.clone()));
            effects.notify.push(Notice::Released(self.name.clone()));
        }
        effects
    }

    /// Applies the operators' decisions.
    fn ruled(
        &mut self,
        decisions: &BTreeMap<ScenarioName, TrustDecision>,
        config: &Config,
        now: Now,
    ) -> Effects {
        let announced = self
            .place
            .as_ref()
            .and_then(|place| place.endpoint.name.as_ref());
        let verdict = trust::judge(
            decisions,
            &self.name,
            self.party.as_ref(),
            announced,
            self.approval.is_source_trusted(),
        );
        let ruled = self.approval.rule(&self.name, verdict);
        let mut effects = Effects::default();
        if self.is_blocked() {
            self.void();
            // It will not be polled, so readiness stops waiting for it; a waiting client gets the
            // reason at the next evaluation.
            effects.notify.push(Notice::Released(self.name.clone()));
        } else if ruled.was_refused
            && self.target.is_some()
            && self.presence == SourcePresence::Named
        {
            self.restart_poll(now.mono, now);
        } else if self.target.is_some() && self.is_trusted() && !ruled.was_given {
            self.let_in_now(config, now);
        } else if self.target.is_some()
            && !self.is_trusted()
            && ruled.was_given
            && self.polls.last.is_some()
        {
            self.plan_poll_at(now.mono + config.refresh.max_interval, now);
        }
        if ruled.is_news {
            effects.store.extend(self.take_save());
            effects
                .publish
                .push(Dirty::Scenario(self.name.clone(), ChangeKind::Changed));
        }
        effects
    }

    /// Publishes what it answered while it waited, and polls it again if that was long ago. It is
    /// polled now if its answer could not be read, or is being read only in part.
    fn let_in_now(&mut self, config: &Config, now: Now) {
        let unread =
            self.offer.is_none() || self.last_error.is_some() || self.polls.under_way.is_some();
        let gap = if unread {
            config.refresh.forced_gap
        } else {
            config.refresh.min_interval
        };
        let at = self.after_last_attempt(gap, now);
        if unread {
            self.restart_poll(at, now);
        } else {
            self.plan_poll_by(at, now);
        }
    }

    /// Plans the next poll as if the last answer had come under this configuration. A failing
    /// scenario keeps its back-off, and a scenario that is being polled gets its plan with the
    /// answer.
    fn replanned(&mut self, followed: bool, config: &Config, now: Now, random: f64) {
        if self.is_asleep() {
            return;
        }
        let (Some((planned, _)), Some((last, _))) = (self.polls.next, self.polls.last) else {
            return;
        };
        if self.polls.under_way.is_some() || self.failures > 0 {
            return;
        }
        let at = if !self.is_trusted() {
            last + config.refresh.max_interval
        } else if self.latest == LastPoll::OutOfRange {
            last + config.protocol.incompatible_interval
        } else if let Some(held) = self.offer.as_mut().filter(|_| !self.polls.unconditional)
            && let Some(fresh) = &held.fresh
            && let ManifestTerm::Until(until) = &mut held.term
        {
            let plan = schedule::after_success(fresh, followed, &config.refresh, random);
            *until = plan.live_until;
            plan.next_poll
        } else {
            planned
        };
        // Polls that become due by this change run soon, but not all at once.
        let at = if at > now.mono {
            at
        } else {
            planned.min(now.mono + schedule::RELOAD_SPREAD.mul_f64(random))
        };
        self.plan_poll_at(at, now);
    }

    /// The write that brings the store in line with the last good answer, if one is needed: the
    /// manifest is stored unless the answer said `no-store`.
    fn take_save(&mut self) -> Option<SaveRequest> {
        if !self.is_trusted() {
            return self.take_claim();
        }
        let held = self.offer.as_ref()?;
        let protocol = self.protocol.as_ref()?;
        let wanted = held.fresh.as_ref()?.may_store.then(|| held.to_keep());
        if self.kept == wanted {
            return None;
        }
        self.kept = wanted;
        self.kept_answer = Some(held.freshness.received_at);
        self.claimed = None;
        if self.kept.is_none() {
            return Some(SaveRequest::Forget(self.name.clone()));
        }
        let stored = StoredManifest {
            scenario: self.name.clone(),
            url: self
                .target
                .as_ref()
                .map(Target::to_string)
                .unwrap_or_default(),
            source: self.source.as_str().into(),
            party: self.party.clone().unwrap_or_default(),
            trusted: self.approval.is_source_trusted(),
            protocol: protocol.id().into(),
            // The document is written at the time of the save.
            document: "".into(),
            received_at: held.freshness.received_at,
            quarantined: held.quarantined,
            validators: held.validators.text().cloned(),
        };
        Some(SaveRequest::Manifest(
            Arc::clone(&held.manifest),
            Box::new(stored),
        ))
    }

    /// When it last confirmed its stored manifest, unless the store has that. It counts as stored
    /// from now on: if that fails, the next answer brings a later time.
    pub(in crate::engine) fn take_answer_time(&mut self) -> Option<(ScenarioName, Timestamp)> {
        let held = self.offer.as_ref().filter(|_| self.kept.is_some())?;
        let answered_at = held.freshness.received_at;
        if self.kept_answer == Some(answered_at) {
            return None;
        }
        self.kept_answer = Some(answered_at);
        Some((self.name.clone(), answered_at))
    }

    /// For a scenario that waits for approval only the peer that has the name is stored: after a
    /// restart, another peer that announces the same name first must not be taken for it.
    fn take_claim(&mut self) -> Option<SaveRequest> {
        let party = self
            .party
            .clone()
            .filter(|party| self.claimed.as_ref() != Some(party))?;
        self.kept = None;
        self.claimed = Some(party.clone());
        Some(SaveRequest::Claim(self.name.clone(), party))
    }

    /// A scenario that is known only by an operator's decision about its name; no manifest is
    /// stored.
    pub(in crate::engine) fn decided(
        name: &ScenarioName,
        source: SourceId,
        ruling: &TrustDecision,
        all: &BTreeMap<ScenarioName, TrustDecision>,
        generation: u64,
        now: Now,
    ) -> Self {
        let mut scenario = Self::new(name.clone(), source, false, generation, now);
        scenario.party = Some(ruling.party.clone());
        let verdict = trust::judge(all, name, scenario.party.as_ref(), None, false);
        scenario.approval.rule(name, verdict);
        scenario
    }

    /// Applies what the store has of it. Only approved scenarios are stored; the current decisions
    /// say whether it is still approved.
    pub(in crate::engine) fn restore(
        &mut self,
        held: AcceptedManifest,
        party: Option<PeerIdentity>,
        protocol: Option<Arc<dyn Protocol>>,
        is_stored: bool,
        decisions: &BTreeMap<ScenarioName, TrustDecision>,
    ) {
        let verdict = trust::judge(
            decisions,
            &self.name,
            party.as_ref(),
            None,
            self.approval.is_source_trusted(),
        );
        self.approval.rule(&self.name, verdict);
        (self.party, self.protocol) = (party, protocol);
        self.last_success = Some(held.freshness.received_at);
        self.kept = is_stored.then(|| held.to_keep());
        self.kept_answer = self.last_success;
        self.offer = Some(held);
    }
}
