//! When the program of a scenario may sleep, and what that changes. Ends and starts no program: the
//! session goes when a scenario falls asleep, and its next poll makes another one.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::config::{Config, RefreshConfig};
use crate::engine::awake::AwakeHolds;
use crate::engine::now::Now;
use crate::engine::scenario::Scenario;
use crate::engine::scenario::facts::ManifestTerm;
use crate::engine::scenario::lifecycle::Lifecycle;
use crate::model::{Manifest, Target, Tool};
use crate::transports::Transports;

/// How long a program that sleeps waits before its list is looked at, while that of another one is.
const RELISTING_PAUSE: Duration = Duration::from_secs(5);

impl Scenario {
    /// The use of its program.
    pub(in crate::engine) fn awake(&self) -> &Arc<AwakeHolds> {
        &self.awake
    }

    /// Whether its program does not run because no client needs it.
    pub(in crate::engine) fn is_asleep(&self) -> bool {
        self.asleep.is_some()
    }

    /// Since when it sleeps.
    pub(in crate::engine) fn asleep_since(&self) -> Option<Timestamp> {
        self.asleep
    }

    /// After how long without a client it sleeps; `None` for never.
    fn sleep_after(&self, config: &Config) -> Option<Duration> {
        let place = self.place.as_ref();
        config.sleep_after(place.and_then(|place| place.endpoint.sleep_after))
    }

    /// When it falls asleep, if no client uses it before; `None` if it may not.
    pub(in crate::engine) fn sleeps_at(&self, config: &Config, now: Now) -> Option<Instant> {
        // Most scenarios are no programs, and are not looked up.
        let idle_for = self
            .may_sleep()
            .then(|| self.sleep_after(config))
            .flatten()?;
        Some(self.awake.idle_at(idle_for, now.mono))
    }

    /// Whether it may sleep: a program with a list that was just confirmed and may be kept.
    fn may_sleep(&self) -> bool {
        let is_well = matches!(self.current.lifecycle(), Lifecycle::Live | Lifecycle::Stale);
        let held = self.offer.as_ref().and_then(|held| held.fresh.as_ref());
        matches!(self.target, Some(Target::Stdio(_)))
            && self.asleep.is_none()
            && is_well
            && self.is_steady()
            && self.is_listed()
            && self.polls.under_way.is_none()
            && !self.polls.confirms_wake
            && held.is_some_and(|fresh| fresh.may_store)
    }

    /// Falls asleep if it is time to, unless a client uses it. Returns whether it did.
    pub(in crate::engine) fn fall_asleep_if_due(&mut self, config: &Config, now: Now) -> bool {
        let is_due = self.sleeps_at(config, now).is_some_and(|at| at <= now.mono);
        let idle_for = self.sleep_after(config).filter(|_| is_due);
        if !idle_for.is_some_and(|idle_for| self.awake.fall_asleep(idle_for, now.mono)) {
            return false;
        }
        let age = self.list_age(now);
        self.sleep(config.relist_after().saturating_sub(age), now);
        true
    }

    /// Sleeps from the start of the daemon on, if its stored list is young enough and of the very
    /// program that would be started: the same command, arguments, variables and folder.
    pub(super) fn start_asleep(
        &mut self,
        transports: &Transports,
        config: &Config,
        now: Now,
    ) -> bool {
        let (Some(Target::Stdio(program)), Some(held)) = (&self.target, &self.offer) else {
            return false;
        };
        let digest = transports.program_digest(program);
        let age = self.list_age(now);
        let may_sleep = self.sleep_after(config).is_some()
            && self.is_trusted()
            && self.polls.last.is_none()
            && held.term == ManifestTerm::Restored
            && digest.is_some()
            && held.validators.text() == digest.as_ref()
            && age < config.relist_after();
        if may_sleep {
            self.awake.starts_asleep();
            self.sleep(config.relist_after().saturating_sub(age), now);
        }
        may_sleep
    }

    /// Plans a poll, which starts its program, if it sleeps and may not any more.
    pub(in crate::engine) fn start_if_it_may_not_sleep(&mut self, config: &Config, now: Now) {
        if self.is_asleep() && self.sleep_after(config).is_none() {
            self.plan_poll_at(now.mono, now);
        }
    }

    /// Whether it sleeps, and is to be started only to see whether its list changed.
    pub(in crate::engine) fn is_relisted(&self) -> bool {
        self.is_asleep() && !self.awake.is_held() && self.waiters.is_empty()
    }

    /// Whether its program is being started only for that.
    pub(in crate::engine) fn is_being_relisted(&self) -> bool {
        self.is_relisted() && self.polls.under_way.is_some()
    }

    /// Plans that for later, since another program is being started for it.
    pub(in crate::engine) fn postpone_relisting(&mut self, now: Now) {
        self.plan_poll_at(now.mono + RELISTING_PAUSE, now);
    }

    /// Whether a listing lacks tools that are known.
    pub(super) fn lacks_tools(&self, listed: &Manifest) -> bool {
        let is_missing = |known: &Arc<Tool>| {
            let by_name = |tool: &Arc<Tool>| tool.name.cmp(&known.name);
            listed.tools.binary_search_by(by_name).is_err()
        };
        let held = self.offer.as_ref();
        held.is_some_and(|held| held.manifest.tools.iter().any(is_missing))
    }

    /// The first listing after a sleep lacks tools. A process that has just started may not have
    /// all of them yet, so it is listed once more before it sleeps: else each of its listings would
    /// be the first one of a process, and no tool would ever count as removed.
    pub(super) fn list_again_before_sleep(&mut self, refresh: &RefreshConfig, now: Now) {
        self.polls.confirms_wake = true;
        self.plan_poll_by(self.after_last_attempt(refresh.forced_gap, now), now);
    }

    /// The clocks jumped, as they do when the machine was suspended: plans that its list is looked
    /// at if it is too old by now. Returns whether that changed the plan.
    pub(in crate::engine) fn relist_by(&mut self, at: Instant, config: &Config, now: Now) -> bool {
        let is_due = self.is_relisted()
            && self.polls.under_way.is_none()
            && self.list_age(now) >= config.relist_after();
        if is_due {
            self.plan_poll_by(at, now);
        }
        is_due
    }

    /// Begins to sleep. A poll after this time sees whether its list changed.
    fn sleep(&mut self, relist_in: Duration, now: Now) {
        // Its next process may have other tools, so no call is sent to it before it is listed.
        self.void();
        self.asleep = Some(now.wall);
        self.plan_poll_at(now.mono + relist_in, now);
    }

    /// How long ago its list was confirmed.
    fn list_age(&self, now: Now) -> Duration {
        let received = self.offer.as_ref().map(|held| held.freshness.received_at);
        let age = received.map(|at| now.wall.duration_since(at));
        // A clock that was set back gives no negative age.
        age.and_then(|age| Duration::try_from(age).ok())
            .unwrap_or_default()
    }

    /// It answered, failed, or changed, so it does not sleep any more.
    pub(super) fn end_sleep(&mut self) {
        self.asleep = None;
        self.awake.wake();
    }

    /// Its program was to be started and could not be listed: grace begins now.
    pub(super) fn wake_failed(&mut self, now: Now) {
        if self.asleep.is_some() {
            self.grace_from = now.mono;
            self.end_sleep();
        }
    }
}
