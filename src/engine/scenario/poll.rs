//! The polls of a scenario: the planned one, the one under way, and the events that make its answer
//! void. Starts no poll itself.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::config::{Config, RefreshConfig};
use crate::discovery::SourceTrust;
use crate::engine::call_report::CallReport;
use crate::engine::error::EngineError;
use crate::engine::now::Now;
use crate::engine::scenario::facts::LastPoll;
use crate::engine::scenario::{AcceptedManifest, Scenario, Waiter};
use crate::model::{Awaited, Finding, FindingCode, LastError, ScenarioName, Target};
use crate::protocols::{Known, ListRequest, Protocol};
use crate::transports::TransportError;

/// A poll that is due.
pub(in crate::engine) struct DuePoll {
    pub(in crate::engine) name: ScenarioName,
    pub(in crate::engine) generation: u64,
    pub(in crate::engine) target: Target,
    /// The protocol of the scenario, if it is known.
    pub(in crate::engine) protocol: Option<Arc<dyn Protocol>>,
    pub(in crate::engine) request: ListRequest,
    /// Whether the scenario waits for approval.
    pub(in crate::engine) is_untrusted: bool,
    /// Whether it sleeps, so that its former process may still be ending.
    pub(in crate::engine) is_asleep: bool,
}

impl Scenario {
    /// Whether it is time for the planned poll.
    pub(in crate::engine) fn is_poll_due(&self, now: Now) -> bool {
        self.polls.next.is_some_and(|(at, _)| at <= now.mono)
    }

    /// The poll that is due now, if there is one. It counts as begun.
    pub(in crate::engine) fn begin_poll(&mut self, config: &Config, now: Now) -> Option<DuePoll> {
        if !self.is_poll_due(now) || self.polls.under_way.is_some() || !self.may_be_polled() {
            return None;
        }
        let target = self.target.clone()?;
        self.polls.last = Some((now.mono, now.wall));
        let is_untrusted = !self.is_trusted();
        let held = self.offer.as_ref();
        let request = ListRequest {
            known: held.filter(|_| !self.polls.unconditional).and_then(known),
            accept: config.protocol.accept.clone(),
            bounds: config.manifest_bounds(),
            // Any program on the network can be found and wait for approval, so only a limited part
            // of such an answer is read.
            max_body: is_untrusted.then_some(config.refresh.max_pending_body),
            judged: held
                .filter(|held| held.manifest.sent_findings.get().is_some())
                .map(|held| held.manifest.digest),
            whole_after: config.refresh.max_interval,
        };
        let name = self.name.clone();
        let protocol = self.protocol.clone();
        Some(DuePoll {
            name,
            generation: self.polls.generation,
            target,
            protocol,
            request,
            is_untrusted,
            is_asleep: self.is_asleep(),
        })
    }

    /// Records that the due poll is under way.
    pub(in crate::engine) fn poll_began(&mut self, poll: AbortOnDropHandle<()>) {
        self.polls.under_way = Some(poll);
    }

    /// A client requests the next answer, outside the schedule; it joins a poll that is under way.
    /// Returns whether a poll was planned for it.
    pub(in crate::engine) fn force(
        &mut self,
        waiter: Waiter,
        refresh: &RefreshConfig,
        now: Now,
    ) -> Result<bool, EngineError> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        self.waiters.push(waiter);
        let is_idle = self.polls.under_way.is_none();
        if is_idle {
            self.polls.unconditional = true;
            self.plan_poll_by(self.after_last_attempt(refresh.forced_gap, now), now);
        }
        Ok(is_idle)
    }

    /// Handles the report of a call over a route of this generation. Reports about a former process
    /// are ignored, and so are ended sessions, which are known already: the next session is made
    /// after its wait. Returns whether a poll was planned.
    pub(super) fn called(
        &mut self,
        generation: u64,
        report: CallReport,
        refresh: &RefreshConfig,
        now: Now,
    ) -> bool {
        // Of one that sleeps there is a session only that sends no request.
        let ended = self.session.as_ref().is_some_and(|link| link.ended) && !self.is_asleep();
        let is_news = match report {
            CallReport::Answered => self.failures > 0,
            CallReport::Refused => true,
            CallReport::AwaitsListing => !self.is_listed(),
        };
        if self.polls.generation != generation
            || ended
            || self.polls.under_way.is_some()
            || self.refusal().is_some()
            || !is_news
        {
            return false;
        }
        self.polls.unconditional |= report == CallReport::Refused;
        self.plan_poll_by(self.after_last_attempt(refresh.forced_gap, now), now);
        true
    }

    /// Removes and returns the clients that wait for its next answer.
    pub(in crate::engine) fn take_waiters(&mut self) -> Vec<Waiter> {
        std::mem::take(&mut self.waiters)
    }

    /// When it was last polled.
    pub(in crate::engine) fn last_poll(&self) -> Option<Instant> {
        self.polls.last.map(|(at, _)| at)
    }

    /// The generation of the current process; polls and routes of another generation are void.
    pub(in crate::engine) fn generation(&self) -> u64 {
        self.polls.generation
    }

    /// Whether its tools were listed since its process may be another one, so that the definitions
    /// that are known are those of the process that would run a call.
    pub(in crate::engine) fn is_listed(&self) -> bool {
        self.polls.listed == Some(self.polls.generation) && !self.restarts.are_suspected()
    }

    /// Plans a poll for `at` or earlier, unless one is under way or it may not be polled. Returns
    /// whether that changed the plan.
    pub(in crate::engine) fn poll_by(&mut self, at: Instant, now: Now) -> bool {
        if !self.may_be_polled() || self.polls.under_way.is_some() || self.is_asleep() {
            return false;
        }
        self.plan_poll_by(at, now);
        self.polls.backoff = None;
        true
    }

    /// Whether it may be polled now or later.
    pub(in crate::engine) fn may_be_polled(&self) -> bool {
        self.target
            .as_ref()
            .is_some_and(|target| self.is_trusted() || self.may_be_looked_at(target))
            && !self.is_blocked()
            && !self.is_absent()
            && self.ended().is_none()
    }

    /// Whether a target may be polled once before an operator trusts it. No program is started
    /// before that, no credential is sent, and no protocol is spoken whose requests do more than
    /// look.
    fn may_be_looked_at(&self, target: &Target) -> bool {
        let is_harmless = self
            .protocol
            .as_ref()
            .is_none_or(|protocol| protocol.is_probed_untrusted());
        let is_proposed = self
            .place
            .as_ref()
            .is_some_and(|place| place.endpoint.trust == SourceTrust::Proposed);
        is_harmless
            && !is_proposed
            && target.http().is_none_or(|http| !http.has_credentials())
            && !matches!(target, Target::Stdio(_))
    }

    /// Why it may not be polled.
    pub(in crate::engine) fn refusal(&self) -> Option<EngineError> {
        if self.is_blocked() {
            Some(EngineError::Blocked(self.name.clone()))
        } else if self.may_be_polled() {
            None
        } else if let Some(why) = self.ended() {
            Some(EngineError::ProcessEnded(self.name.clone(), why.to_owned()))
        } else if self.target.is_some() && self.is_named() && !self.is_trusted() {
            Some(EngineError::NotTrusted(self.name.clone()))
        } else {
            Some(EngineError::NoAddress(self.name.clone()))
        }
    }

    /// Sends an error to the waiting clients if no answer will come.
    pub(super) fn dismiss_waiters(&mut self) {
        if self.polls.under_way.is_some() || self.waiters.is_empty() {
            return;
        }
        if let Some(refusal) = self.refusal() {
            for waiter in self.waiters.drain(..) {
                // A client that has gone meanwhile needs no answer.
                let _ = waiter.send(Err(refusal.clone()));
            }
        }
    }

    /// Plans the next poll, for whatever reason: not before the scenario has rested from the one
    /// before.
    pub(super) fn plan_poll_at(&mut self, at: Instant, now: Now) {
        let at = self
            .polls
            .last
            .map_or(at, |(last, _)| at.max(last + self.polls.rest));
        let wall = now
            .wall
            .saturating_add(at.saturating_duration_since(now.mono))
            .unwrap_or(now.wall);
        self.polls.next = Some((at, wall));
    }

    /// Plans the next poll, unless one is planned before that.
    pub(super) fn plan_poll_by(&mut self, at: Instant, now: Now) {
        let planned = self.polls.next.map_or(at, |(planned, _)| planned);
        self.plan_poll_at(at.min(planned), now);
    }

    /// The time when `gap` has passed since the last poll; `now` if it has passed already.
    pub(super) fn after_last_attempt(&self, gap: Duration, now: Now) -> Instant {
        self.polls
            .last
            .map_or(now.mono, |(at, _)| at + gap)
            .max(now.mono)
    }

    /// Plans a listing for a hint. After a failed poll the back-off stays, and the poll after it
    /// serves the hint.
    pub(super) fn hinted(&mut self, at: Instant, now: Now) {
        if self.polls.backoff.is_none() {
            self.plan_poll_by(at, now);
        }
    }

    /// Records that the poll under way has waited long for an answer. It counts as a failure from
    /// then on, once, although it goes on. Returns whether that was the present poll.
    pub(super) fn waits(&mut self, generation: u64, mut awaited: Box<Awaited>, now: Now) -> bool {
        if self.polls.generation != generation || self.polls.under_way.is_none() {
            return false;
        }
        let begun = now.mono.checked_sub(awaited.waited).unwrap_or(now.mono);
        awaited.waited = now
            .mono
            .saturating_duration_since(*self.silent_since.get_or_insert(begun));
        if self.awaited.is_none() {
            self.failures += 1;
        }
        self.latest = LastPoll::Failed;
        self.explain_wait(&awaited, now);
        self.awaited = Some(awaited);
        true
    }

    /// Shows what was waited for as the error and in a finding.
    pub(super) fn explain_wait(&mut self, awaited: &Awaited, now: Now) {
        let message = awaited.message();
        let finding = Finding::new(FindingCode::NoAnswer, message.clone()).of_scenario(&self.name);
        self.failure_finding = Some(Box::new(finding.hint(awaited.hint())));
        self.last_error = Some(LastError {
            kind: "timeout".into(),
            message,
            at: now.wall,
        });
    }

    /// The poll has ended or is void: its result is counted instead of its wait.
    pub(super) fn take_wait(&mut self) -> Option<Box<Awaited>> {
        let awaited = self.awaited.take()?;
        self.failures = self.failures.saturating_sub(1);
        Some(awaited)
    }

    /// Makes the poll under way void: its answer would belong to another time or place.
    pub(super) fn void(&mut self) {
        self.polls.generation += 1;
        self.polls.under_way = None;
        self.take_wait();
    }

    /// Makes the poll under way void, and plans an unconditional poll for `at`.
    pub(super) fn restart_poll(&mut self, at: Instant, now: Now) {
        self.void();
        self.end_sleep();
        self.polls.unconditional = true;
        self.polls.backoff = None;
        self.plan_poll_at(at, now);
    }

    /// Its session ended by itself: the process or connection is gone, and the next poll connects
    /// again.
    pub(super) fn lost(&mut self, why: String, at: Instant, now: Now) {
        self.restarts.suspect();
        self.last_error = Some(LastError {
            kind: "ended".into(),
            message: why,
            at: now.wall,
        });
        self.restart_poll(at, now);
    }

    /// Its source gave an address that cannot be polled at all.
    pub(super) fn mark_unreachable(&mut self, error: &TransportError, now: Now) {
        self.void();
        self.end_sleep();
        self.target = None;
        self.polls.next = None;
        self.failures += 1;
        self.latest = LastPoll::Failed;
        self.last_error = Some(LastError {
            kind: error.kind().into(),
            message: error.to_string(),
            at: now.wall,
        });
    }
}

/// The validators that make a poll conditional, if the last answer had any.
fn known(held: &AcceptedManifest) -> Option<Known> {
    let validators = &held.validators;
    validators.any().then(|| Known {
        digest: held.manifest.digest,
        validators: validators.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::scenario::facts::SourcePresence;
    use crate::model::{ScenarioState, SourceId};
    use crate::runtime::{Clock, Tasks};

    fn poll() -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(Tasks::new().spawn(std::future::pending()))
    }

    fn ten_seconds() -> Awaited {
        Awaited {
            answer_to: "initialize",
            waited: Duration::from_secs(10),
            output: None,
        }
    }

    #[tokio::test]
    async fn a_hang_counts_from_its_first_poll_without_an_answer() {
        let clock = Clock::system();
        let begin = clock.now();
        let wall = clock.wall();
        let at = |second| Now {
            mono: begin + Duration::from_secs(second),
            wall,
        };
        let mut scenario = Scenario::new("hang".parse().unwrap(), SourceId::STATIC, true, 0, at(0));
        scenario.poll_began(poll());
        assert!(scenario.waits(0, Box::new(ten_seconds()), at(10)));
        assert_eq!(
            scenario.last_error.as_ref().unwrap().message,
            "no answer for 10 s"
        );
        scenario.void();
        scenario.poll_began(poll());
        assert!(scenario.waits(1, Box::new(ten_seconds()), at(490)));
        assert_eq!(
            scenario.last_error.as_ref().unwrap().message,
            "no answer for 8 min"
        );
        assert_eq!(
            scenario.awaited.as_ref().unwrap().waited,
            Duration::from_secs(490)
        );
    }

    #[tokio::test]
    async fn a_hang_is_down_once_its_grace_is_over_and_keeps_its_sentence() {
        let clock = Clock::system();
        let begin = clock.now();
        let wall = clock.wall();
        let at = |second| Now {
            mono: begin + Duration::from_secs(second),
            wall,
        };
        let config = crate::config::Config::for_state("state.db");
        let grace = config.health.grace.as_secs();
        let mut scenario = Scenario::new("hang".parse().unwrap(), SourceId::STATIC, true, 0, at(0));
        scenario.presence = SourcePresence::Named;
        scenario.poll_began(poll());
        assert!(scenario.waits(0, Box::new(ten_seconds()), at(10)));
        let early = scenario.evaluate(&config, false, at(10));
        assert_eq!(scenario.state(), ScenarioState::Connecting);
        assert_eq!(
            scenario.current.reason(),
            "not working yet: no answer for 10 s"
        );
        assert_eq!(early.until, Some(at(grace).mono), "it is looked at again");
        scenario.evaluate(&config, false, at(grace));
        assert_eq!(scenario.state(), ScenarioState::Down);
        assert_eq!(scenario.current.reason(), "no answer for 10 s");
    }
}
