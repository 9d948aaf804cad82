//! How fast the output of a program is read.
//!
//! Each line costs work, whatever it says. A program that writes without end would take a whole
//! processor; so what it writes beyond a stated rate stays in its pipe, and the program waits.

use std::time::Duration;

use tokio::time::Instant;

use crate::runtime::Clock;

/// Bytes of one output that are read in a second, on average.
const BYTES_PER_SECOND: u32 = 64 * 1024 * 1024;

/// Lines of one output that are read in a second, on average.
const LINES_PER_SECOND: u32 = 20_000;

/// The time whose bytes and lines may come at once: 320 MiB, or 100,000 lines. A line
/// without an end is given up before that.
const AT_ONCE: Duration = Duration::from_secs(5);

/// The pace at which one output is read.
pub(super) struct ReadingPace {
    clock: Clock,
    /// When all that was read would have come at exactly the average rate.
    paid_until: Instant,
}

impl ReadingPace {
    /// It begins now.
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            paid_until: clock.now(),
        }
    }

    /// Counts bytes that were read.
    pub(super) fn count_bytes(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.pay(Duration::from_secs(1) / BYTES_PER_SECOND * count);
    }

    /// Counts a line.
    pub(super) fn count_line(&mut self) {
        self.pay(Duration::from_secs(1) / LINES_PER_SECOND);
    }

    fn pay(&mut self, time: Duration) {
        self.paid_until = self.paid_until.max(self.clock.now()) + time;
    }

    /// Waits until more may be read.
    pub(super) async fn wait(&self) {
        let ahead = self.paid_until.saturating_duration_since(self.clock.now());
        if let Some(too_far) = ahead.checked_sub(AT_ONCE).filter(|time| !time.is_zero()) {
            self.clock.sleep(too_far).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn much_may_come_at_once_and_then_an_average_rate_holds() {
        let clock = Clock::system();
        let began = clock.now();
        let mut pace = ReadingPace::new(clock);
        pace.count_bytes(2 * BYTES_PER_SECOND as usize);
        (0..2 * LINES_PER_SECOND).for_each(|_| pace.count_line());
        pace.wait().await;
        assert_eq!(clock.now(), began, "ordinary output is not delayed");
        for _ in 0..20 {
            (0..LINES_PER_SECOND).for_each(|_| pace.count_line());
            pace.wait().await;
        }
        let took = clock.now() - began;
        assert!(
            (Duration::from_secs(18)..Duration::from_secs(20)).contains(&took),
            "{took:?}"
        );
    }
}
