//! What is done about scenarios that cannot be reached any more, beyond each one's own health: the daemon may be the one that is cut off,
//! or may have slept.

use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;

use super::effects::Settled;
use super::now::Now;
use super::partition::{self, Doubt, Turning};
use super::run::Core;
use super::scenario::Scenario;
use super::scenario::facts::Presence;
use crate::model::{ScenarioName, SourceId};

/// How often the loop looks at the clocks at least.
const LOOK: Duration = Duration::from_secs(2);
/// A difference between the ways of the two clocks from which on the wall clock was set, or the machine slept.
const JUMP: Duration = Duration::from_secs(30);
/// Over how long asks of everybody are spread.
const SPREAD: Duration = Duration::from_secs(3);
/// How many others are asked when one is lost.
const SAMPLE: usize = 8;
/// How long after the end of isolation who did not answer by then has to answer, besides one whole request.
const REPRIEVE: Duration = Duration::from_secs(10);

impl Core {
    /// When the loop has to look again, if nothing else wakes it.
    pub(super) fn next_look(&self) -> Instant {
        let look = self.looked.mono + LOOK;
        self.isolation.until().map_or(look, |until| until.min(look))
    }

    /// Compares the ways that both clocks went since the last look. The monotonic one stops while the machine sleeps, and the wall clock can be
    /// set; in both cases nobody knows who is still there. Deadlines stay as they are: they are monotonic, so nothing turns stale by it.
    pub(super) fn look(&mut self, now: Now) {
        let jump = jump(std::mem::replace(&mut self.looked, now), now);
        let Some(jump) = jump else { return };
        tracing::warn!(
            seconds = jump.as_secs(),
            "the wall clock jumped, or the machine slept: every scenario is asked again"
        );
        let all: Vec<_> = self.records.values().filter(|record| record.is_trusted()).map(|r| r.name.clone()).collect();
        self.ask_soon(&all, SPREAD, now);
        // The times that people are shown are of the wall clock.
        self.press.touch_all(self.records.keys());
    }

    /// Counts what an answer says about whether a scenario can be reached. `answered` is what was so before it.
    pub(super) fn count_loss(&mut self, name: &ScenarioName, answered: bool, reached: bool, now: Now) {
        if reached {
            if self.isolation.found(name) && self.isolation.probes(&self.parts.config.health, now.mono) {
                // What one can do, the others may: they are not left to their back-off.
                let others = self.isolation.names();
                self.ask_soon(&others, SPREAD, now);
            }
            return;
        }
        let Some(record) = self.records.get(name) else { return };
        if answered && record.failures > 0 && !record.is_absent() {
            self.isolation.lost(name, now.mono);
        }
    }

    /// Whether the source's word that a scenario is not there any more is believed, once it does not answer. What the local network
    /// does not announce any more is only a silence when everything else fell silent with it.
    pub(super) fn goodbye_counts(&self, record: &Scenario, now: Now) -> bool {
        if record.source != SourceId::Mdns {
            return true;
        }
        let isolated = self.isolation.shown().is_some();
        let silenced = record.silenced.is_some_and(|until| isolated || now.mono < until);
        !(silenced || isolated && self.isolation.is_lost(&record.name))
    }

    /// Marks those who leave as silent, not gone, when too many of the local network leave at once.
    pub(super) fn silence(&mut self, leaving: &[ScenarioName], now: Now) {
        let rules = &self.parts.config.health;
        let announced = |record: &Scenario| record.source == SourceId::Mdns && record.is_trusted();
        let of = self.records.values().filter(|record| announced(record) && record.presence == Presence::Named).count();
        let leaving: Vec<_> = leaving
            .iter()
            .filter(|name| self.records.get(*name).is_some_and(|record| announced(record)))
            .filter(|name| self.records.get(*name).is_some_and(|record| record.presence == Presence::Named))
            .cloned()
            .collect();
        if !partition::is_silence(leaving.len(), of, rules) {
            return;
        }
        let until = now.mono + rules.grace;
        for name in leaving {
            if let Some(record) = self.records.get_mut(&name) {
                record.silenced = Some(until);
            }
        }
    }

    /// Judges whether the daemon is isolated, if anything changed that could matter.
    pub(super) fn weigh(&mut self, now: Now) {
        if !self.isolation.stirred(now.mono) {
            return;
        }
        let Self { records, isolation, parts, .. } = self;
        let rules = &parts.config.health;
        isolation.retain(|name| {
            records.get(name).is_some_and(|record| record.may_be_asked() && record.is_trusted() && record.failures > 0)
        });
        let answering = records.values().filter(|record| answers(record)).count();
        if let Some(turning) = isolation.judge(answering, rules, now) {
            self.turn(turning, now);
        }
        let lately = |record: &Scenario| record.last_attempt.is_some_and(|(at, _)| at + rules_window(self) > now.mono);
        let (asked, others): (Vec<_>, Vec<_>) = self.records.values().filter(|r| answers(r)).partition(|r| lately(r));
        let mut others: Vec<_> =
            others.into_iter().map(|r| (r.last_attempt.map(|(at, _)| at), r.name.clone())).collect();
        let asked = asked.len();
        let health = &self.parts.config.health;
        let spread = match self.isolation.doubts(asked, health, now.mono) {
            None => return,
            Some(Doubt::All) => health.isolation_window / 3,
            Some(Doubt::Some) => {
                // Of those who were not heard for longest.
                others.sort_unstable();
                others.truncate(SAMPLE);
                health.isolation_window / 8
            }
        };
        let others: Vec<_> = others.into_iter().map(|(_, name)| name).collect();
        self.ask_soon(&others, spread, now);
    }

    /// Isolation begins or ends.
    fn turn(&mut self, turning: Turning, now: Now) {
        let shown = self.isolation.shown().cloned();
        match turning {
            Turning::Began => {
                if let Some(shown) = &shown {
                    tracing::warn!(lost = shown.lost, of = shown.of, "isolated: {}", shown.reason());
                }
            }
            Turning::Healed(left) => {
                tracing::info!(still_lost = left.len(), "no longer isolated: enough scenarios answer again");
                // Those that did not answer yet may have been asked too early.
                let until = now.mono + SPREAD + self.parts.config.refresh.timeout + REPRIEVE;
                for name in &left {
                    if let Some(record) = self.records.get_mut(name) {
                        record.reprieve = Some(until);
                    }
                }
                self.ask_soon(&left, SPREAD, now);
            }
            Turning::Capped => {
                tracing::warn!(
                    "isolated for as long as `health.isolation_max` allows: what does not answer is withdrawn"
                );
            }
        }
        self.press.isolated(shown);
        let failing: Vec<_> = self.records.values().filter(|r| r.failures > 0).map(|r| r.name.clone()).collect();
        for name in failing {
            self.touch(&name, now, Settled::Same);
        }
    }

    /// Asks these ahead of their schedule, spread so that it is no storm. Those that are due earlier, or being asked, are left as they are.
    pub(super) fn ask_soon(&mut self, names: &[ScenarioName], spread: Duration, now: Now) {
        for name in names {
            let Some(record) = self.records.get_mut(name) else { continue };
            let at = now.mono + spread.mul_f64(fastrand::f64());
            if !record.may_be_asked() || record.asking.is_some() {
                continue;
            }
            let planned = record.next_ask.map_or(at, |(planned, _)| planned);
            record.ask_at(at.min(planned).max(now.mono), now);
            record.backoff = None;
            self.touch(name, now, Settled::Same);
        }
    }
}

/// By how much the wall clock went another way than the monotonic one, if that is more than clocks do by themselves.
fn jump(before: Now, now: Now) -> Option<SignedDuration> {
    let went = SignedDuration::try_from(now.mono.saturating_duration_since(before.mono)).ok()?;
    let jump = now.wall.duration_since(before.wall).checked_sub(went)?;
    (jump.unsigned_abs() > JUMP).then_some(jump)
}

fn rules_window(core: &Core) -> Duration {
    core.parts.config.health.isolation_window
}

/// Whether it is among those whose silence would be a loss. What was restored and never answered is not: it may have been gone for long.
fn answers(record: &Scenario) -> bool {
    record.answered && record.failures == 0 && record.is_trusted() && record.may_be_asked()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::runtime::Clock;

    #[test]
    fn only_what_no_clock_does_by_itself_is_a_jump() {
        let start = Clock::following(Timestamp::UNIX_EPOCH).now();
        let at = |mono, wall: i64| Now {
            mono: start + Duration::from_secs(mono),
            wall: Timestamp::from_second(1_800_000_000 + wall).unwrap(),
        };
        // Seconds that went by on both clocks, and the jump.
        let cases = [
            (2, 2, None),
            (2, 32, None),
            (2, 33, Some(31)),
            (2, -28, None),
            (2, -29, Some(-31)),
            (7200, 7201, None),
            (1, 28_801, Some(28_800)),
        ];
        for (mono, wall, expected) in cases {
            let found = jump(at(0, 0), at(mono, wall)).map(|jump| jump.as_secs());
            assert_eq!(found, expected, "{mono} {wall}");
        }
    }
}
