//! How long to wait after a failure. Pure: the random part is an argument.

use std::time::Duration;

/// Share of a doubled wait by which it is made shorter at random.
const SHORTER: f64 = 0.1;

/// A validated back-off: decorrelated jitter between `base` and `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Backoff {
    base: Duration,
    max: Duration,
}

impl Backoff {
    /// The first wait is about `base`; no wait is longer than `max` (or `base`, if that is longer).
    pub(in crate::engine) fn new(base: Duration, max: Duration) -> Self {
        Self {
            base,
            max: max.max(base),
        }
    }

    /// The wait after a failure, given the wait before it and a random number in `0.0..1.0`:
    /// uniform between the base and three times the previous wait, so that many scenarios that
    /// failed together do not come back together.
    pub(in crate::engine) fn next(self, previous: Option<Duration>, random: f64) -> Duration {
        let ceiling = previous
            .map_or(self.base, |wait| wait.saturating_mul(3))
            .clamp(self.base, self.max);
        self.base
            + ceiling
                .saturating_sub(self.base)
                .mul_f64(random.clamp(0.0, 1.0))
    }

    /// Of programs that are started here, whatever the configuration says of requests: a start
    /// costs this machine more than a request, and one that fails is rarely fixed by itself.
    pub(in crate::engine) fn of_programs() -> Self {
        Self::new(Duration::from_millis(500), Duration::from_secs(300))
    }

    /// The double of the wait before, or the base after none; up to a tenth is subtracted.
    pub(in crate::engine) fn doubled(self, previous: Option<Duration>, random: f64) -> Duration {
        let wait = previous.map_or(self.base, |wait| wait.saturating_mul(2).max(self.base));
        wait.min(self.max)
            .mul_f64(1.0 - SHORTER * random.clamp(0.0, 1.0))
    }

    /// The wait after this many refused connections in a row of a scenario that has answered: 1, 2,
    /// 4, ... times the base. It is probably starting again, and a refusal costs very little, so it
    /// is polled at a steady pace; up to a tenth is subtracted.
    pub(in crate::engine) fn doubling(self, failures: u32, random: f64) -> Duration {
        let wait = self.base.saturating_mul(
            1_u32
                .checked_shl(failures.saturating_sub(1))
                .unwrap_or(u32::MAX),
        );
        wait.min(self.max)
            .mul_f64(1.0 - SHORTER * random.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_maximum_and_never_pass_it() {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        let mut wait = None;
        let mut waits = Vec::new();
        for _ in 0..10 {
            let next = backoff.next(wait, 0.999);
            waits.push(next);
            wait = Some(next);
        }
        assert_eq!(waits[0], Duration::from_secs(1));
        assert!(
            waits
                .windows(2)
                .all(|pair| pair[0] <= pair[1] || pair[1] > Duration::from_secs(59))
        );
        assert!(waits[9] > Duration::from_secs(59) && waits[9] <= Duration::from_secs(60));
    }

    #[test]
    fn the_least_wait_is_the_base() {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        assert_eq!(
            backoff.next(Some(Duration::from_secs(40)), 0.0),
            Duration::from_secs(1)
        );
    }

    #[test]
    fn programs_are_started_again_after_half_a_second_to_five_minutes() {
        let backoff = Backoff::of_programs();
        let mut wait = None;
        let mut waits = Vec::new();
        for _ in 0..12 {
            wait = Some(backoff.doubled(wait, 0.0));
            waits.extend(wait.map(|wait| wait.as_millis()));
        }
        assert_eq!(waits[..4], [500, 1_000, 2_000, 4_000]);
        assert_eq!(waits[11], 300_000);
        assert!(backoff.doubled(None, 1.0) >= Duration::from_millis(450));
    }

    #[test]
    fn what_refuses_is_probed_at_one_two_four() {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        let waits: Vec<_> = [1, 2, 3, 6, 7, 40]
            .map(|failures| backoff.doubling(failures, 0.0).as_secs())
            .into();
        assert_eq!(waits, [1, 2, 4, 32, 60, 60]);
        assert_eq!(backoff.doubling(2, 1.0), Duration::from_millis(1800));
    }
}
