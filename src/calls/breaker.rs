//! The circuit breaker of one scenario: after so many failures in a row it is left alone for a while, then one call tries.
//!
//! Only failures of the way there count, not those a tool tells of: a scenario that says no is one that works. What is known of one
//! process says nothing of the next, so a restart or a move closes it. Pure: time is an argument.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::config;

/// How a circuit breaker stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breaker {
    /// Whether calls pass.
    pub state: BreakerState,
    /// Since when.
    pub since: Timestamp,
    /// Failures in a row.
    pub failures: u32,
}

/// Whether calls pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// They do.
    Closed,
    /// None does.
    Open,
    /// One tries.
    HalfOpen,
}

impl BreakerState {
    /// As it is written in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// One instant on both clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) mono: Instant,
    pub(super) wall: Timestamp,
}

/// What a breaker remembers.
#[derive(Debug)]
pub(super) struct Memory {
    shown: Breaker,
    /// Until when no call passes: none while it is open, and no second one while one tries.
    until: Instant,
    /// Of the route whose calls these were.
    generation: u64,
}

impl Memory {
    pub(super) fn new(now: Now) -> Self {
        let shown = Breaker { state: BreakerState::Closed, since: now.wall, failures: 0 };
        Self { shown, until: now.mono, generation: 0 }
    }

    pub(super) fn shown(&self) -> Breaker {
        self.shown.clone()
    }

    /// Whether it stands as it nearly always does: calls by a route of this generation pass, and no time matters.
    pub(super) fn is_closed(&self, generation: u64) -> bool {
        self.generation == generation && self.shown.state == BreakerState::Closed
    }

    /// A call ended well while it was closed.
    pub(super) fn forget_failures(&mut self) {
        self.shown.failures = 0;
    }

    /// Whether a call by a route of this generation would pass; else how long none does. Changes nothing.
    pub(super) fn would_pass(&self, generation: u64, now: Now) -> Result<(), Duration> {
        let closed = self.shown.state == BreakerState::Closed || self.generation != generation;
        if closed || now.mono >= self.until { Ok(()) } else { Err(self.until - now.mono) }
    }

    /// Lets a call by a route of this generation pass, or says how long none does. A call that may try after the breaker was open has
    /// `open` to tell what came of it; then another one may.
    pub(super) fn pass(&mut self, generation: u64, open: Duration, now: Now) -> Result<(), Duration> {
        self.would_pass(generation, now)?;
        if self.generation != generation {
            self.generation = generation;
            self.turn(BreakerState::Closed, 0, now);
        }
        if self.shown.state != BreakerState::Closed {
            self.until = now.mono + open;
            self.turn(BreakerState::HalfOpen, self.shown.failures, now);
        }
        Ok(())
    }

    /// A call by a route of this generation ended. Word of a process that is gone counts for nothing.
    pub(super) fn ended(&mut self, generation: u64, well: bool, rules: &config::Calls, now: Now) {
        if generation != self.generation {
            return;
        }
        if well {
            return self.turn(BreakerState::Closed, 0, now);
        }
        let failures = self.shown.failures.saturating_add(1);
        match self.shown.state {
            BreakerState::Closed if failures < rules.breaker_failures => self.shown.failures = failures,
            // Those that were under way when it opened do not keep it open for longer.
            BreakerState::Open => self.shown.failures = failures,
            BreakerState::Closed | BreakerState::HalfOpen => {
                self.until = now.mono + rules.breaker_open;
                self.turn(BreakerState::Open, failures, now);
            }
        }
    }

    fn turn(&mut self, state: BreakerState, failures: u32, now: Now) {
        if self.shown.state != state {
            self.shown.since = now.wall;
        }
        self.shown = Breaker { state, failures, since: self.shown.since };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Clock;

    fn rules() -> config::Calls {
        config::Calls { breaker_failures: 3, breaker_open: Duration::from_secs(10), ..config::Calls::default() }
    }

    #[test]
    fn opens_after_failures_in_a_row_lets_one_try_and_closes_when_that_works() {
        let (rules, clock) = (rules(), Clock::system());
        let start = Now { mono: clock.now(), wall: clock.wall() };
        let at = |seconds| Now { mono: start.mono + Duration::from_secs(seconds), ..start };
        let open = rules.breaker_open;
        let mut memory = Memory::new(start);
        let state = |memory: &Memory| (memory.shown().state, memory.shown().failures);
        for well in [false, false, true, false, false] {
            memory.pass(0, open, start).unwrap();
            memory.ended(0, well, &rules, start);
        }
        assert_eq!(state(&memory), (BreakerState::Closed, 2), "a success in between starts the count anew");
        memory.ended(0, false, &rules, start);
        assert_eq!(state(&memory), (BreakerState::Open, 3));
        assert_eq!(memory.pass(0, open, at(4)), Err(Duration::from_secs(6)));
        memory.ended(0, false, &rules, at(5));
        assert_eq!(memory.would_pass(0, at(10)), Ok(()));
        memory.pass(0, open, at(10)).unwrap();
        assert_eq!(state(&memory).0, BreakerState::HalfOpen);
        assert!(memory.pass(0, open, at(11)).is_err(), "one at a time");
        memory.ended(0, false, &rules, at(12));
        assert_eq!((state(&memory).0, memory.would_pass(0, at(21)).is_err()), (BreakerState::Open, true));
        memory.pass(0, open, at(22)).unwrap();
        memory.pass(0, open, at(40)).expect("one that never tells does not hold it up for ever");
        memory.ended(0, true, &rules, at(41));
        assert_eq!(state(&memory), (BreakerState::Closed, 0));
    }

    #[test]
    fn another_process_starts_with_a_closed_one_and_the_old_ones_word_counts_no_more() {
        let (rules, clock) = (rules(), Clock::system());
        let now = Now { mono: clock.now(), wall: clock.wall() };
        let mut memory = Memory::new(now);
        for _ in 0..3 {
            memory.ended(0, false, &rules, now);
        }
        assert!(memory.would_pass(0, now).is_err());
        memory.pass(1, rules.breaker_open, now).unwrap();
        for _ in 0..9 {
            memory.ended(0, false, &rules, now);
        }
        assert_eq!(memory.shown().state, BreakerState::Closed);
    }
}
