//! Takes another configuration while everything runs: a reload.
//!
//! What did not change is left alone: a scenario whose settings are equal keeps its schedule, its manifest, its counters and the ask that
//! is under way. What changed is applied to what is known already where that can be done, and else holds from the next answer on. The
//! sources follow by themselves (`sources.rs`), and what they then tell comes like every other set.

use std::sync::Arc;
use std::time::Duration;

use super::effects::Settled;
use super::now::Now;
use super::run::Core;
use super::scenario::Scenario;
use super::scenario::facts::{Latest, Term};
use super::scenario::schedule::{self, Rounds, untrusted_permits};
use crate::config::{Config, Refresh};
use crate::model::ConfigState;

/// Over how long asks are spread that another configuration makes due.
const SPREAD: Duration = Duration::from_secs(3);

impl Core {
    /// Puts another configuration in force (nothing when it is the same), and tells how the daemon stands to what is written.
    pub(super) fn configure(&mut self, config: Option<Arc<Config>>, state: Arc<ConfigState>, now: Now) {
        self.press.configuration(state);
        let Some(config) = config else { return };
        let before = std::mem::replace(&mut self.parts.config, Arc::clone(&config));
        if before.refresh.concurrency != config.refresh.concurrency {
            self.strangers = untrusted_permits(&config.refresh);
        }
        self.press.configure(&before, &config);
        let pace = |refresh: &Refresh| (refresh.min_interval, refresh.max_interval);
        let slow = |config: &Config| config.protocol.incompatible_interval;
        if pace(&before.refresh) != pace(&config.refresh) || slow(&before) != slow(&config) {
            self.rounds = Rounds::new(now.mono, &config.refresh);
            for record in self.records.values_mut() {
                let followed = self.sessions.is_followed(&record.name);
                replan(record, followed, &config, now, fastrand::f64());
            }
        }
        if before.protocol.accept != config.protocol.accept || before.bounds() != config.bounds() {
            // What was refused or cut may not be any more, and the other way round: only the whole manifest can say.
            for record in self.records.values_mut().filter(|record| record.may_be_asked()) {
                record.unconditional = true;
            }
            let trusted = self.records.values().filter(|record| record.is_trusted());
            let all: Vec<_> = trusted.map(|record| record.name.clone()).collect();
            self.ask_soon(&all, SPREAD, now);
        }
        self.parts.configured.send_replace(config);
        self.places(now);
        // Every state and deadline is judged by the rules in force.
        for name in self.records.keys().cloned().collect::<Vec<_>>() {
            self.touch(&name, now, Settled::Changed);
        }
    }
}

/// Plans the next ask as if the last answer had come under this configuration. Who fails keeps its back-off, and who is being asked gets a
/// plan with the answer.
fn replan(record: &mut Scenario, followed: bool, config: &Config, now: Now, random: f64) {
    let (Some((planned, _)), Some((last, _))) = (record.next_ask, record.last_attempt) else { return };
    if record.asking.is_some() || record.failures > 0 {
        return;
    }
    let at = if !record.is_trusted() {
        last + config.refresh.max_interval
    } else if record.latest == Latest::OutOfRange {
        last + config.protocol.incompatible_interval
    } else if let Some(held) = record.offer.as_mut().filter(|_| !record.unconditional)
        && let Some(fresh) = &held.fresh
    {
        let plan = schedule::after_success(fresh, followed, &config.refresh, random);
        held.term = Term::Until(plan.live_until);
        plan.next_ask
    } else {
        planned
    };
    // What became due by this is asked soon, but not all at once.
    let at = if at > now.mono { at } else { planned.min(now.mono + SPREAD.mul_f64(random)) };
    record.ask_at(at, now);
}
