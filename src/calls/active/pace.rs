//! How many events of one call are sent: a tool may report faster than clients can read.

use std::time::Duration;

use tokio::time::Instant;

/// The most events of one call in a window.
const EVENTS_PER_WINDOW_MAX: u32 = 50;
/// The window.
const WINDOW: Duration = Duration::from_secs(1);

/// Counts the events of one call.
#[derive(Debug)]
pub(super) struct EventPace {
    since: Instant,
    sent: u32,
}

impl EventPace {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            since: now,
            sent: 0,
        }
    }

    /// Whether one more may be sent now.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= WINDOW {
            *self = Self::new(now);
        }
        self.sent += 1;
        self.sent <= EVENTS_PER_WINDOW_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Clock;

    #[tokio::test(start_paused = true)]
    async fn a_window_has_a_number_of_events() {
        let clock = Clock::system();
        let mut pace = EventPace::new(clock.now());
        assert_eq!((0..200).filter(|_| pace.take(clock.now())).count(), 50);
        clock.sleep(WINDOW).await;
        assert!(pace.take(clock.now()));
    }
}
