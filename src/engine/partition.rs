//! Detects that the daemon itself is cut off from the network, or that the machine slept. Pure
//! decisions about which scenarios were lost and when; this module reads no clock and polls no
//! scenario.
//!
//! If one scenario stops answering, that scenario failed. If several stop within one window, and
//! they are a large share of all, the failures have a common cause, and what all of them share is
//! this daemon's own connection. No scenario is withdrawn then: an agent that cannot reach a tool
//! for a minute gets an error from its call, but an agent whose list was emptied has to start over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;

use super::effects::{ChangeKind, Dirty, Effects, Notice, PollSet};
use super::now::Now;
use crate::config::{HealthConfig, RefreshConfig};
use crate::model::{Isolated, ScenarioName, SourceId};

/// The longest time between two comparisons of the clocks.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// From this difference between the progress of the two clocks on, the wall clock was set or the
/// machine slept.
const JUMP: Duration = Duration::from_secs(30);
/// The time over which polls of all scenarios are spread.
const SPREAD: Duration = Duration::from_secs(3);
/// How many other scenarios are polled when one is lost.
const SAMPLE: usize = 8;
/// After the end of isolation, a scenario that has not answered yet gets this time, plus the time
/// of one whole request, to answer.
const REPRIEVE: Duration = Duration::from_secs(10);

/// News about whether scenarios can be reached.
pub(super) enum PartitionInput<'a> {
    /// This scenario was reached, whatever it answered.
    Reached(&'a ScenarioName),
    /// This scenario answered before and cannot be reached any more.
    Lost(&'a ScenarioName),
    /// Time has passed on both clocks.
    Clocks,
    /// The current state of all scenarios.
    Weighed(Census),
}

/// The current state of all scenarios, as far as it matters here.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// Scenarios whose silence would count as a loss, each with the time of its last poll. A
    /// scenario that was restored and has not answered yet is not included: it may have been gone
    /// for long.
    pub(super) answering: Vec<(Option<Instant>, ScenarioName)>,
    /// Trusted scenarios that may be polled, and that fail.
    pub(super) lost: BTreeSet<ScenarioName>,
    /// All scenarios that fail.
    pub(super) failing: Vec<ScenarioName>,
}

/// The scenarios that were lost recently, and the decision that follows from them.
#[derive(Debug)]
pub(super) struct Partition {
    /// Lost scenarios, with the time since which they do not answer: those of the last window, or
    /// all since its start while the daemon is isolated.
    lost: BTreeMap<ScenarioName, Instant>,
    cut: Option<Isolation>,
    /// Whether `lost` changed since the last evaluation.
    stirred: bool,
    /// Whether a scenario was lost since the other scenarios were last considered for a probe.
    doubtful: bool,
    /// When a sample of the other scenarios was last polled.
    sampled: Option<Instant>,
    /// When the lost scenarios were last polled because one of them answered.
    probed: Option<Instant>,
    /// When the clocks were last compared.
    looked: Now,
}

/// The daemon assumes that it is cut off.
#[derive(Debug)]
struct Isolation {
    shown: Isolated,
    /// When isolation ends in any case.
    until: Instant,
}

/// What an evaluation changed.
#[derive(Debug, PartialEq, Eq)]
enum IsolationChange {
    /// Isolation began.
    Began,
    /// Isolation ended because enough of the lost scenarios answer again. Carries those that do not
    /// yet.
    Healed(Vec<ScenarioName>),
    /// Isolation ended because it lasted as long as it may.
    Capped,
}

/// Whether `lost` scenarios of `of` that answered are more than fail independently of each other.
fn is_mass(lost: usize, of: usize, rules: &HealthConfig) -> bool {
    lost >= rules.isolation_count && exceeds(lost, of, rules.isolation_share)
}

/// Whether so many goodbyes on the local network at once must be ignored: a network interface that
/// goes down ends every announcement that came over it.
pub(super) fn is_silence(leaving: usize, of: usize, rules: &HealthConfig) -> bool {
    leaving > 2 && exceeds(leaving, of, rules.isolation_share)
}

fn exceeds(part: usize, of: usize, percent: u32) -> bool {
    part.saturating_mul(100) > of.saturating_mul(percent as usize)
}

impl Partition {
    /// Starts without lost scenarios and with these times of the clocks.
    pub(super) fn new(now: Now) -> Self {
        Self {
            lost: BTreeMap::new(),
            cut: None,
            stirred: false,
            doubtful: false,
            sampled: None,
            probed: None,
            looked: now,
        }
    }

    /// Handles an input, and returns its effects.
    pub(super) fn handle(
        &mut self,
        input: PartitionInput<'_>,
        rules: &HealthConfig,
        refresh: &RefreshConfig,
        now: Now,
    ) -> Effects {
        match input {
            PartitionInput::Reached(name) => {
                if self.found(name) && self.probes(rules, now.mono) {
                    // If one scenario can be reached again, the others may be too: they are polled
                    // before their back-off ends.
                    return Effects::poll(self.names(), SPREAD);
                }
            }
            PartitionInput::Lost(name) => self.lost(name, now.mono),
            PartitionInput::Clocks => return self.clocks(now),
            PartitionInput::Weighed(census) => return self.weighed(census, rules, refresh, now),
        }
        Effects::default()
    }

    /// When the clocks have to be compared again, unless another event wakes the loop earlier.
    pub(super) fn due(&self) -> Instant {
        let look = self.looked.mono + CLOCK_CHECK_INTERVAL;
        self.until().map_or(look, |until| until.min(look))
    }

    /// Compares the progress of both clocks since the last comparison. The monotonic clock stops
    /// while the machine sleeps, and the wall clock can be set; in both cases it is unknown which
    /// scenarios still run. Deadlines are monotonic and stay as they are, so no scenario becomes
    /// stale because of a jump.
    fn clocks(&mut self, now: Now) -> Effects {
        let jump = jump(std::mem::replace(&mut self.looked, now), now);
        let Some(jump) = jump else {
            return Effects::default();
        };
        tracing::warn!(
            seconds = jump.as_secs(),
            "the wall clock jumped, or the machine slept: every scenario is polled again"
        );
        Effects {
            poll: vec![(PollSet::Trusted, SPREAD)],
            publish: vec![Dirty::Times],
            ..Effects::default()
        }
    }

    /// Whether a source is believed that does not name a scenario any more, once the scenario does
    /// not answer. If the local network stops announcing a scenario, that is not believed when many
    /// others fell silent with it.
    pub(super) fn believes(
        &self,
        source: SourceId,
        name: &ScenarioName,
        silenced: Option<Instant>,
        now: Now,
    ) -> bool {
        if !source.spec().is_announced {
            return true;
        }
        let isolated = self.shown().is_some();
        let silenced = silenced.is_some_and(|until| isolated || now.mono < until);
        !(silenced || isolated && self.is_lost(name))
    }

    /// Evaluates whether the daemon is cut off, and which other scenarios are to be polled because
    /// of the lost ones.
    fn weighed(
        &mut self,
        census: Census,
        rules: &HealthConfig,
        refresh: &RefreshConfig,
        now: Now,
    ) -> Effects {
        self.lost.retain(|name, _| census.lost.contains(name));
        let mut effects = Effects::default();
        if let Some(turning) = self.judge(census.answering.len(), rules, now) {
            effects = self.turned(turning, census.failing, refresh, now);
        }
        let lately =
            |at: &Option<Instant>| at.is_some_and(|at| at + rules.isolation_window > now.mono);
        let (recent, mut others): (Vec<_>, Vec<_>) =
            census.answering.into_iter().partition(|(at, _)| lately(at));
        let spread = match self.others_to_probe(recent.len(), rules, now.mono) {
            None => return effects,
            Some(ProbeScope::All) => rules.isolation_window / 3,
            Some(ProbeScope::Sample) => {
                // Those that were not polled for the longest time come first.
                others.sort_unstable();
                others.truncate(SAMPLE);
                rules.isolation_window / 8
            }
        };
        effects.and(Effects::poll(
            others.into_iter().map(|(_, name)| name).collect(),
            spread,
        ))
    }

    /// Applies the begin or end of isolation.
    fn turned(
        &self,
        turning: IsolationChange,
        failing: Vec<ScenarioName>,
        refresh: &RefreshConfig,
        now: Now,
    ) -> Effects {
        let shown = self.shown().cloned();
        let mut effects = Effects::default();
        match turning {
            IsolationChange::Began => {
                if let Some(shown) = &shown {
                    tracing::warn!(
                        lost = shown.lost,
                        of = shown.of,
                        "isolated: {}",
                        shown.reason()
                    );
                }
            }
            IsolationChange::Healed(left) => {
                tracing::info!(
                    still_lost = left.len(),
                    "no longer isolated: enough scenarios answer again"
                );
                // Scenarios that have not answered yet may have been polled too early.
                let until = now.mono + SPREAD + refresh.timeout + REPRIEVE;
                effects = Effects::poll(left.clone(), SPREAD);
                effects.notify.push(Notice::Reprieved(left, until));
            }
            IsolationChange::Capped => {
                tracing::warn!(
                    "isolated for as long as `health.isolation_max` allows: what does not answer is withdrawn"
                );
            }
        }
        effects.publish.push(Dirty::Isolated(shown));
        effects.publish.extend(
            failing
                .into_iter()
                .map(|name| Dirty::Scenario(name, ChangeKind::Same)),
        );
        effects
    }

    /// Records that a scenario that answered cannot be reached any more.
    fn lost(&mut self, name: &ScenarioName, now: Instant) {
        self.lost.entry(name.clone()).or_insert(now);
        (self.stirred, self.doubtful) = (true, true);
    }

    /// Records that a scenario can be reached. Returns whether it was lost before.
    fn found(&mut self, name: &ScenarioName) -> bool {
        let known = self.lost.remove(name).is_some();
        self.stirred |= known;
        known
    }

    /// Whether this scenario is lost.
    fn is_lost(&self, name: &ScenarioName) -> bool {
        self.lost.contains_key(name)
    }

    /// The names of the lost scenarios.
    fn names(&self) -> Vec<ScenarioName> {
        self.lost.keys().cloned().collect()
    }

    /// What operators see while the daemon is isolated. No scenario is withdrawn then.
    pub(super) fn shown(&self) -> Option<&Isolated> {
        self.cut.as_ref().map(|cut| &cut.shown)
    }

    /// When time alone changes the decision.
    fn until(&self) -> Option<Instant> {
        self.cut.as_ref().map(|cut| cut.until)
    }

    /// Whether a new evaluation is needed.
    pub(super) fn needs_evaluation(&self, now: Instant) -> bool {
        self.stirred || self.until().is_some_and(|until| until <= now)
    }

    /// Evaluates. `answering` is the number of scenarios that answer; lost ones are not included.
    fn judge(
        &mut self,
        answering: usize,
        rules: &HealthConfig,
        now: Now,
    ) -> Option<IsolationChange> {
        self.stirred = false;
        let Some(cut) = &self.cut else {
            self.lost.retain(|_, since| {
                now.mono.saturating_duration_since(*since) <= rules.isolation_window
            });
            return self.begin(answering, rules, now);
        };
        if cut.until <= now.mono {
            self.end();
            return Some(IsolationChange::Capped);
        }
        if is_mass(self.lost.len(), answering + self.lost.len(), rules) {
            return None;
        }
        let left = self.names();
        self.end();
        Some(IsolationChange::Healed(left))
    }

    fn begin(
        &mut self,
        answering: usize,
        rules: &HealthConfig,
        now: Now,
    ) -> Option<IsolationChange> {
        let lost = self.lost.len();
        let of = answering + self.lost.len();
        if rules.isolation_max.is_zero() || !is_mass(lost, of, rules) {
            return None;
        }
        let until = now
            .wall
            .saturating_add(rules.isolation_max)
            .unwrap_or(now.wall);
        let shown = Isolated {
            since: now.wall,
            until,
            lost,
            of,
            window: rules.isolation_window,
        };
        self.cut = Some(Isolation {
            shown,
            until: now.mono + rules.isolation_max,
        });
        Some(IsolationChange::Began)
    }

    fn end(&mut self) {
        *self = Self {
            sampled: self.sampled,
            ..Self::new(self.looked)
        };
    }

    /// Whether other scenarios are to be polled because of the lost ones, and how many; `answered`
    /// is the number that answered lately. A sample is polled at most once per window, because the
    /// loss may be one scenario that comes and goes.
    fn others_to_probe(
        &mut self,
        answered: usize,
        rules: &HealthConfig,
        now: Instant,
    ) -> Option<ProbeScope> {
        if !std::mem::take(&mut self.doubtful)
            || self.cut.is_some()
            || rules.isolation_max.is_zero()
        {
            return None;
        }
        if is_mass(self.lost.len(), answered + self.lost.len(), rules) {
            return Some(ProbeScope::All);
        }
        if self
            .sampled
            .is_some_and(|at| now.saturating_duration_since(at) < rules.isolation_window)
        {
            return None;
        }
        self.sampled = Some(now);
        Some(ProbeScope::Sample)
    }

    /// Whether the lost scenarios are to be polled because one of them just answered; at most once
    /// in a fifth of the window.
    fn probes(&mut self, rules: &HealthConfig, now: Instant) -> bool {
        let lately = self
            .probed
            .is_some_and(|at| now.saturating_duration_since(at) < rules.isolation_window / 5);
        let due = self.cut.is_some() && !lately;
        if due {
            self.probed = Some(now);
        }
        due
    }
}

/// The difference between the progress of the wall clock and that of the monotonic clock, if it is
/// larger than usual.
fn jump(before: Now, now: Now) -> Option<SignedDuration> {
    let went = SignedDuration::try_from(now.mono.saturating_duration_since(before.mono)).ok()?;
    let jump = now.wall.duration_since(before.wall).checked_sub(went)?;
    (jump.unsigned_abs() > JUMP).then_some(jump)
}

/// Which other scenarios are to be polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbeScope {
    /// A sample, to see whether they were lost too.
    Sample,
    /// All of them: most of those that answered lately are lost.
    All,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;
    use crate::runtime::Clock;

    /// Times are seconds from the start of the test.
    struct Case {
        isolation: Partition,
        rules: HealthConfig,
        start: Instant,
    }

    impl Case {
        fn new() -> Self {
            let start = Clock::following(Timestamp::UNIX_EPOCH).now();
            let now = Now {
                mono: start,
                wall: Timestamp::UNIX_EPOCH,
            };
            Self {
                isolation: Partition::new(now),
                rules: HealthConfig::default(),
                start,
            }
        }

        fn at(&self, second: u64) -> Now {
            let wall = Timestamp::from_second(i64::try_from(second).unwrap()).unwrap();
            Now {
                mono: self.start + Duration::from_secs(second),
                wall,
            }
        }

        fn lose(&mut self, names: &[&str], second: u64) {
            for name in names {
                self.isolation
                    .lost(&name.parse().unwrap(), self.at(second).mono);
            }
        }

        fn judge(&mut self, answering: usize, second: u64) -> Option<IsolationChange> {
            let now = self.at(second);
            self.isolation.judge(answering, &self.rules, now)
        }
    }

    #[test]
    fn two_and_over_a_third_within_the_window_are_too_many() {
        // Seconds at which scenarios were lost, how many still answer, and whether that is
        // isolation.
        let cases: [(&[u64], usize, bool); 8] = [
            (&[0], 0, false),
            (&[0], 5, false),
            (&[0, 0], 0, true),
            (&[0, 15], 3, true),
            (&[0, 16], 0, false),
            (&[0, 1], 5, false),
            (&[0, 1, 2], 7, false),
            (&[0, 1, 2, 3], 6, true),
        ];
        for (lost, answering, isolated) in cases {
            let mut case = Case::new();
            for (i, second) in lost.iter().enumerate() {
                case.lose(&[format!("s{i}").as_str()], *second);
            }
            let turned = case.judge(answering, *lost.last().unwrap());
            assert_eq!(
                turned == Some(IsolationChange::Began),
                isolated,
                "{lost:?} of {answering} more"
            );
            assert_eq!(case.isolation.shown().is_some(), isolated);
        }
    }

    #[test]
    fn it_says_since_when_until_when_and_how_many() {
        let mut case = Case::new();
        case.lose(&["a", "b"], 7);
        assert_eq!(case.judge(1, 8), Some(IsolationChange::Began));
        let shown = case.isolation.shown().unwrap();
        assert_eq!(shown.lost, 2);
        assert_eq!(shown.of, 3);
        assert_eq!(shown.since.as_second(), 8);
        assert_eq!(shown.until.as_second(), 3608);
        assert_eq!(case.isolation.until(), Some(case.at(3608).mono));
    }

    #[test]
    fn it_ends_when_enough_answer_again_and_not_before() {
        let mut case = Case::new();
        case.lose(&["a", "b", "c", "d", "e"], 0);
        assert_eq!(case.judge(5, 0), Some(IsolationChange::Began));
        for (name, answering, ends) in [("a", 6, false), ("b", 7, true)] {
            assert!(case.isolation.found(&name.parse().unwrap()));
            // Long after the window: scenarios that were lost stay so until they answer.
            let turned = case.judge(answering, 600);
            assert_eq!(turned.is_some(), ends, "{name}");
            if ends {
                let left = ["c", "d", "e"].map(|name| name.parse().unwrap()).to_vec();
                assert_eq!(turned, Some(IsolationChange::Healed(left)));
            }
        }
        assert!(
            case.isolation.shown().is_none() && !case.isolation.needs_evaluation(case.at(601).mono)
        );
    }

    #[test]
    fn it_ends_at_the_cap_and_does_not_begin_again_for_the_same_loss() {
        let mut case = Case::new();
        case.lose(&["a", "b"], 0);
        assert_eq!(case.judge(0, 0), Some(IsolationChange::Began));
        assert!(
            !case.isolation.needs_evaluation(case.at(3599).mono)
                && case.isolation.needs_evaluation(case.at(3600).mono)
        );
        assert_eq!(case.judge(0, 3600), Some(IsolationChange::Capped));
        assert_eq!(case.judge(0, 3601), None);
    }

    #[test]
    fn a_cap_of_zero_switches_it_off() {
        let mut case = Case::new();
        case.rules.isolation_max = Duration::ZERO;
        case.lose(&["a", "b"], 0);
        assert_eq!(case.judge(0, 0), None);
        assert_eq!(
            case.isolation
                .others_to_probe(0, &case.rules, case.at(0).mono),
            None
        );
    }

    #[test]
    fn a_loss_raises_doubts_about_a_few_and_a_second_about_all() {
        let mut case = Case::new();
        let mut doubts = |lost: &[&str], answered, second| {
            case.lose(lost, second);
            let now = case.at(second).mono;
            case.isolation.others_to_probe(answered, &case.rules, now)
        };
        assert_eq!(doubts(&[], 3, 0), None);
        assert_eq!(doubts(&["a"], 3, 0), Some(ProbeScope::Sample));
        assert_eq!(doubts(&["b"], 9, 1), None, "a sample is out already");
        assert_eq!(doubts(&["c"], 3, 2), Some(ProbeScope::All));
        assert_eq!(doubts(&["d"], 90, 20), Some(ProbeScope::Sample));
    }

    #[test]
    fn many_goodbyes_at_once_are_none() {
        let rules = HealthConfig::default();
        let silences = [(1, 1), (2, 2), (3, 3), (3, 10), (4, 10)]
            .map(|(leaving, of)| is_silence(leaving, of, &rules));
        assert_eq!(silences, [false, false, true, false, true]);
    }

    #[test]
    fn only_what_no_clock_does_by_itself_is_a_jump() {
        let start = Clock::following(Timestamp::UNIX_EPOCH).now();
        let at = |mono, wall: i64| Now {
            mono: start + Duration::from_secs(mono),
            wall: Timestamp::from_second(1_800_000_000 + wall).unwrap(),
        };
        // Seconds that passed on both clocks, and the jump.
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
