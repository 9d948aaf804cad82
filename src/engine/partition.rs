//! Whether it is the daemon that is cut off: a pure decision over who was lost when. It reads no clock and asks nobody.
//!
//! One scenario that stops answering is that scenario's failure. Several that stop within one window, and a good share of all, have a cause
//! in common, and what all of them share is this end of the line. Nothing is withdrawn then: an agent that cannot reach a tool for a
//! minute is told so by the call; an agent whose list was emptied starts over.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::now::Now;
use crate::config::HealthRules;
use crate::model::{Isolated, ScenarioName};

/// Who was lost lately, and what follows from it.
#[derive(Debug, Default)]
pub(super) struct Partition {
    /// Since when each of them does not answer: those of the last window, or all since it began when the daemon is isolated.
    lost: BTreeMap<ScenarioName, Instant>,
    cut: Option<Cut>,
    /// Whether who is lost changed since it was last judged.
    stirred: bool,
    /// Whether somebody was lost since then.
    doubtful: bool,
    /// When others were last asked whether they are still there.
    sampled: Option<Instant>,
    /// When those that are lost were last asked because one of them answered.
    probed: Option<Instant>,
}

/// The daemon takes itself to be cut off.
#[derive(Debug)]
struct Cut {
    shown: Isolated,
    /// When it ends whatever happens.
    until: Instant,
}

/// What a judgement changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turning {
    /// It began.
    Began,
    /// Enough of the lost answer again. Carries who does not yet.
    Healed(Vec<ScenarioName>),
    /// It went on for as long as it may.
    Capped,
}

/// Whether so many lost ones of so many that answered are more than scenarios lose by themselves.
pub(super) fn is_mass(lost: usize, of: usize, rules: &HealthRules) -> bool {
    lost >= rules.isolation_count && exceeds(lost, of, rules.isolation_share)
}

/// Whether so many goodbyes of the local network at once are none: an interface that goes down ends every announcement that came over it.
pub(super) fn is_silence(leaving: usize, of: usize, rules: &HealthRules) -> bool {
    leaving > 2 && exceeds(leaving, of, rules.isolation_share)
}

fn exceeds(part: usize, of: usize, percent: u32) -> bool {
    part.saturating_mul(100) > of.saturating_mul(percent as usize)
}

impl Partition {
    /// A scenario that answered cannot be reached any more.
    pub(super) fn lost(&mut self, name: &ScenarioName, now: Instant) {
        self.lost.entry(name.clone()).or_insert(now);
        (self.stirred, self.doubtful) = (true, true);
    }

    /// A scenario can be reached. Whether it was lost before.
    pub(super) fn found(&mut self, name: &ScenarioName) -> bool {
        let known = self.lost.remove(name).is_some();
        self.stirred |= known;
        known
    }

    /// Whether this one is lost.
    pub(super) fn is_lost(&self, name: &ScenarioName) -> bool {
        self.lost.contains_key(name)
    }

    /// Forgets those that are not there to be lost any more.
    pub(super) fn retain(&mut self, there: impl Fn(&ScenarioName) -> bool) {
        self.lost.retain(|name, _| there(name));
    }

    /// Who is lost.
    pub(super) fn names(&self) -> Vec<ScenarioName> {
        self.lost.keys().cloned().collect()
    }

    /// What operators are told, while the daemon is isolated. Nothing is withdrawn then.
    pub(super) fn shown(&self) -> Option<&Isolated> {
        self.cut.as_ref().map(|cut| &cut.shown)
    }

    /// When time alone changes the judgement.
    pub(super) fn until(&self) -> Option<Instant> {
        self.cut.as_ref().map(|cut| cut.until)
    }

    /// Whether it has to be judged again.
    pub(super) fn stirred(&self, now: Instant) -> bool {
        self.stirred || self.until().is_some_and(|until| until <= now)
    }

    /// Judges. `answering` scenarios answer, besides those that are lost.
    pub(super) fn judge(&mut self, answering: usize, rules: &HealthRules, now: Now) -> Option<Turning> {
        self.stirred = false;
        let Some(cut) = &self.cut else {
            self.lost.retain(|_, since| now.mono.saturating_duration_since(*since) <= rules.isolation_window);
            return self.begin(answering, rules, now);
        };
        if cut.until <= now.mono {
            self.end();
            return Some(Turning::Capped);
        }
        if is_mass(self.lost.len(), answering + self.lost.len(), rules) {
            return None;
        }
        let left = self.names();
        self.end();
        Some(Turning::Healed(left))
    }

    fn begin(&mut self, answering: usize, rules: &HealthRules, now: Now) -> Option<Turning> {
        let (lost, of) = (self.lost.len(), answering + self.lost.len());
        if rules.isolation_max.is_zero() || !is_mass(lost, of, rules) {
            return None;
        }
        let until = now.wall.saturating_add(rules.isolation_max).unwrap_or(now.wall);
        let shown = Isolated { since: now.wall, until, lost, of, window: rules.isolation_window };
        self.cut = Some(Cut { shown, until: now.mono + rules.isolation_max });
        Some(Turning::Began)
    }

    fn end(&mut self) {
        let sampled = self.sampled;
        *self = Self { sampled, ..Self::default() };
    }

    /// Whether others are to be asked because of who was lost, and if so, whether all of them: `asked` answered lately. Once a window
    /// at most for a sample, for that may be one scenario that comes and goes.
    pub(super) fn doubts(&mut self, asked: usize, rules: &HealthRules, now: Instant) -> Option<Doubt> {
        if !std::mem::take(&mut self.doubtful) || self.cut.is_some() || rules.isolation_max.is_zero() {
            return None;
        }
        if is_mass(self.lost.len(), asked + self.lost.len(), rules) {
            return Some(Doubt::All);
        }
        if self.sampled.is_some_and(|at| now.saturating_duration_since(at) < rules.isolation_window) {
            return None;
        }
        self.sampled = Some(now);
        Some(Doubt::Some)
    }

    /// Whether those that are lost are to be asked, since one of them just answered. Once in a fifth of the window at most.
    pub(super) fn probes(&mut self, rules: &HealthRules, now: Instant) -> bool {
        let lately = self.probed.is_some_and(|at| now.saturating_duration_since(at) < rules.isolation_window / 5);
        let due = self.cut.is_some() && !lately;
        if due {
            self.probed = Some(now);
        }
        due
    }
}

/// Who else is to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// A few: were they lost too?
    Some,
    /// All: most of those that were asked lately are lost.
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
        rules: HealthRules,
        start: Instant,
    }

    impl Case {
        fn new() -> Self {
            let start = Clock::following(Timestamp::UNIX_EPOCH).now();
            Self { isolation: Partition::default(), rules: HealthRules::default(), start }
        }

        fn at(&self, second: u64) -> Now {
            let wall = Timestamp::from_second(i64::try_from(second).unwrap()).unwrap();
            Now { mono: self.start + Duration::from_secs(second), wall }
        }

        fn lose(&mut self, names: &[&str], second: u64) {
            for name in names {
                self.isolation.lost(&name.parse().unwrap(), self.at(second).mono);
            }
        }

        fn judge(&mut self, answering: usize, second: u64) -> Option<Turning> {
            let now = self.at(second);
            self.isolation.judge(answering, &self.rules, now)
        }
    }

    #[test]
    fn two_and_over_a_third_within_the_window_are_too_many() {
        // Lost at these seconds, how many still answer, and whether that is isolation.
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
            assert_eq!(turned == Some(Turning::Began), isolated, "{lost:?} of {answering} more");
            assert_eq!(case.isolation.shown().is_some(), isolated);
        }
    }

    #[test]
    fn it_says_since_when_until_when_and_how_many() {
        let mut case = Case::new();
        case.lose(&["a", "b"], 7);
        assert_eq!(case.judge(1, 8), Some(Turning::Began));
        let shown = case.isolation.shown().unwrap();
        assert_eq!((shown.lost, shown.of), (2, 3));
        assert_eq!((shown.since.as_second(), shown.until.as_second()), (8, 3608));
        assert_eq!(case.isolation.until(), Some(case.at(3608).mono));
    }

    #[test]
    fn it_ends_when_enough_answer_again_and_not_before() {
        let mut case = Case::new();
        case.lose(&["a", "b", "c", "d", "e"], 0);
        assert_eq!(case.judge(5, 0), Some(Turning::Began));
        for (name, answering, ends) in [("a", 6, false), ("b", 7, true)] {
            assert!(case.isolation.found(&name.parse().unwrap()));
            // Long after the window: who is lost stays so until they answer.
            let turned = case.judge(answering, 600);
            assert_eq!(turned.is_some(), ends, "{name}");
            if ends {
                let left = ["c", "d", "e"].map(|name| name.parse().unwrap()).to_vec();
                assert_eq!(turned, Some(Turning::Healed(left)));
            }
        }
        assert!(case.isolation.shown().is_none() && !case.isolation.stirred(case.at(601).mono));
    }

    #[test]
    fn it_ends_at_the_cap_and_does_not_begin_again_for_the_same_loss() {
        let mut case = Case::new();
        case.lose(&["a", "b"], 0);
        assert_eq!(case.judge(0, 0), Some(Turning::Began));
        assert!(!case.isolation.stirred(case.at(3599).mono) && case.isolation.stirred(case.at(3600).mono));
        assert_eq!(case.judge(0, 3600), Some(Turning::Capped));
        assert_eq!(case.judge(0, 3601), None);
    }

    #[test]
    fn a_cap_of_zero_switches_it_off() {
        let mut case = Case::new();
        case.rules.isolation_max = Duration::ZERO;
        case.lose(&["a", "b"], 0);
        assert_eq!(case.judge(0, 0), None);
        assert_eq!(case.isolation.doubts(0, &case.rules, case.at(0).mono), None);
    }

    #[test]
    fn a_loss_raises_doubts_about_a_few_and_a_second_about_all() {
        let mut case = Case::new();
        let mut doubts = |lost: &[&str], asked, second| {
            case.lose(lost, second);
            let now = case.at(second).mono;
            case.isolation.doubts(asked, &case.rules, now)
        };
        assert_eq!(doubts(&[], 3, 0), None);
        assert_eq!(doubts(&["a"], 3, 0), Some(Doubt::Some));
        assert_eq!(doubts(&["b"], 9, 1), None, "a sample is out already");
        assert_eq!(doubts(&["c"], 3, 2), Some(Doubt::All));
        assert_eq!(doubts(&["d"], 90, 20), Some(Doubt::Some));
    }

    #[test]
    fn many_goodbyes_at_once_are_none() {
        let rules = HealthRules::default();
        let said = [(1, 1), (2, 2), (3, 3), (3, 10), (4, 10)].map(|(leaving, of)| is_silence(leaving, of, &rules));
        assert_eq!(said, [false, false, true, false, true]);
    }
}
