//! How soon after a listing a hint may lead to the next one. Pure.

use std::time::Duration;

use tokio::time::Instant;

use crate::config::RefreshConfig;

/// The shortest time between a listing and the next one for a hint.
const GAP: Duration = Duration::from_millis(100);
/// The number of listings by hints in a [`WINDOW`] that cause no slowdown while each shows a
/// change.
const LISTINGS_PER_WINDOW_MAX: u32 = 30;
/// The time over which they are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// The shortest time between two listings for the hints of one session. Each listing by a hint that
/// shows no change doubles it, up to `refresh.min_interval`. One that shows a change halves it,
/// unless there were too many lately: a scenario that changes all the time may not control how
/// often it is listed.
#[derive(Debug)]
pub(super) struct Pace {
    gap: Duration,
    window: Instant,
    listings: u32,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            gap: GAP,
            window: now,
            listings: 0,
        }
    }

    /// The shortest time between two listings.
    pub(super) fn gap(&self) -> Duration {
        self.gap
    }

    /// Records whether a listing by a hint showed a change.
    pub(super) fn learn(&mut self, changed: bool, refresh: &RefreshConfig, now: Instant) {
        if now.saturating_duration_since(self.window) >= WINDOW {
            (self.window, self.listings) = (now, 0);
        }
        self.listings += 1;
        self.gap = if changed && self.listings <= LISTINGS_PER_WINDOW_MAX {
            (self.gap / 2).max(GAP)
        } else {
            (self.gap * 2).min(refresh.min_interval.max(GAP))
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::runtime::Clock;

    /// How often a scenario is listed in an hour if it sends hints all the time.
    fn in_an_hour(changed: bool) -> u32 {
        let refresh = Config::for_state("state.db").refresh;
        let begun = Clock::system().now();
        let mut pace = Pace::new(begun);
        let mut past = Duration::ZERO;
        let mut listings = 0;
        while past < Duration::from_secs(3600) {
            past += pace.gap();
            pace.learn(changed, &refresh, begun + past);
            listings += 1;
        }
        listings
    }

    #[test]
    fn hints_without_end_cost_a_few_listings_whether_they_show_changes_or_not() {
        assert!(
            (60..80).contains(&in_an_hour(false)),
            "{}",
            in_an_hour(false)
        );
        assert!(
            (60..=60 * 40).contains(&in_an_hour(true)),
            "{}",
            in_an_hour(true)
        );
    }

    #[test]
    fn changes_make_up_for_hints_without_one() {
        let refresh = Config::for_state("state.db").refresh;
        let now = Clock::system().now();
        let mut pace = Pace::new(now);
        for changed in [false, false, false, true, true] {
            pace.learn(changed, &refresh, now);
        }
        assert_eq!(pace.gap(), GAP * 2);
        for _ in 0..3 {
            pace.learn(true, &refresh, now);
        }
        assert_eq!(pace.gap(), GAP);
    }
}
