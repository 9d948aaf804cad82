//! One circuit breaker, of a scenario or of a tool: after a number of failures in a row no calls
//! are sent for a while, then one call tries.
//!
//! The state of one process does not apply to the next one, so a restart or a move closes the
//! breaker. Which failures count for which breaker is the business of [`super::circuits`]. Pure:
//! time is an argument.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::FailureCode;
use crate::config;

/// The state of a circuit breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerStatus {
    /// Whether calls pass.
    pub state: BreakerState,
    /// When it took this state.
    pub since: Timestamp,
    /// Failures in a row.
    pub failures: u32,
    /// Until when calls are refused; `None` if they pass.
    pub until: Option<Timestamp>,
    /// How the last of these failures was reported to its caller.
    pub last_failure: Option<FailureCode>,
}

/// The state of the circuit breaker of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolBreakerStatus {
    /// The name that its scenario gives the tool.
    pub tool: Arc<str>,
    /// The state.
    pub status: BreakerStatus,
}

/// Whether calls pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls pass.
    Closed,
    /// No call passes.
    Open,
    /// One call tries.
    HalfOpen,
}

impl BreakerState {
    /// The written name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// One moment on both clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockReading {
    pub(super) mono: Instant,
    pub(super) wall: Timestamp,
}

/// The state of a breaker and what it needs to change.
#[derive(Debug)]
pub(super) struct CircuitBreaker {
    status: BreakerStatus,
    /// Until when no call passes. While the breaker is half-open, until when no second call tries.
    until: Instant,
    /// The generation of the route whose calls were counted.
    generation: u64,
}

impl CircuitBreaker {
    /// A closed one for calls by routes of this generation.
    pub(super) fn new(generation: u64, now: ClockReading) -> Self {
        let state = BreakerState::Closed;
        let status = BreakerStatus {
            state,
            since: now.wall,
            failures: 0,
            until: None,
            last_failure: None,
        };
        Self {
            status,
            until: now.mono,
            generation,
        }
    }

    /// The generation of the route whose calls are counted.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether calls do not simply pass, and when it took the last one or began to refuse: the
    /// greatest is the one that is missed most if it is forgotten.
    pub(super) fn weight(&self) -> (bool, Instant) {
        (self.status.state != BreakerState::Closed, self.until)
    }

    pub(super) fn status(&self) -> BreakerStatus {
        self.status.clone()
    }

    /// Whether it is in its usual state: calls by a route of this generation pass, whatever the
    /// time.
    pub(super) fn is_closed(&self, generation: u64) -> bool {
        self.generation == generation && self.status.state == BreakerState::Closed
    }

    /// A call succeeded while the breaker was closed.
    pub(super) fn forget_failures(&mut self) {
        self.status.failures = 0;
        self.status.last_failure = None;
    }

    /// Whether a call by a route of this generation would pass; if not, the time until one may.
    /// Changes no state.
    pub(super) fn would_pass(&self, generation: u64, now: ClockReading) -> Result<(), Duration> {
        let closed = self.status.state == BreakerState::Closed || self.generation != generation;
        if closed || now.mono >= self.until {
            Ok(())
        } else {
            Err(self.until - now.mono)
        }
    }

    /// Lets a call by a route of this generation pass, or returns the time until one may. The call
    /// that tries while the breaker is half-open has to report its result within `open`; after that
    /// another call may try.
    pub(super) fn pass(
        &mut self,
        generation: u64,
        open: Duration,
        now: ClockReading,
    ) -> Result<(), Duration> {
        self.would_pass(generation, now)?;
        if self.generation != generation {
            self.generation = generation;
            self.turn(BreakerState::Closed, 0, now);
        }
        if self.status.state != BreakerState::Closed {
            self.turn(BreakerState::HalfOpen, self.status.failures, now);
            self.refuse_for(open, now);
        }
        Ok(())
    }

    /// A call by a route of this generation ended, with this failure if it did not end well.
    /// Results of an earlier process are ignored.
    pub(super) fn ended(
        &mut self,
        generation: u64,
        failure: Option<FailureCode>,
        rules: &config::CallsConfig,
        now: ClockReading,
    ) {
        if generation != self.generation {
            return;
        }
        self.status.last_failure = failure;
        if failure.is_none() {
            return self.turn(BreakerState::Closed, 0, now);
        }
        let failures = self.status.failures.saturating_add(1);
        match self.status.state {
            BreakerState::Closed if failures < rules.breaker_failures => {
                self.status.failures = failures;
            }
            // Calls that were under way when it opened do not keep it open longer.
            BreakerState::Open => self.status.failures = failures,
            BreakerState::Closed | BreakerState::HalfOpen => {
                self.turn(BreakerState::Open, failures, now);
                self.refuse_for(rules.breaker_open, now);
            }
        }
    }

    fn turn(&mut self, state: BreakerState, failures: u32, now: ClockReading) {
        if self.status.state != state {
            self.status.since = now.wall;
        }
        self.status.state = state;
        self.status.failures = failures;
        self.status.until = None;
    }

    /// Refuses calls for so long from now on.
    fn refuse_for(&mut self, open: Duration, now: ClockReading) {
        self.until = now.mono + open;
        self.status.until = now.wall.checked_add(open).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Clock;

    fn rules() -> config::CallsConfig {
        config::CallsConfig {
            breaker_failures: 3,
            breaker_open: Duration::from_secs(10),
            ..config::CallsConfig::default()
        }
    }

    #[test]
    fn opens_after_failures_in_a_row_lets_one_try_and_closes_when_that_works() {
        let rules = rules();
        let clock = Clock::system();
        let start = ClockReading {
            mono: clock.now(),
            wall: clock.wall(),
        };
        let at = |seconds| ClockReading {
            mono: start.mono + Duration::from_secs(seconds),
            ..start
        };
        let open = rules.breaker_open;
        let mut memory = CircuitBreaker::new(0, start);
        let state = |memory: &CircuitBreaker| (memory.status().state, memory.status().failures);
        let failed = Some(FailureCode::Timeout);
        for end in [failed, failed, None, failed, failed] {
            memory.pass(0, open, start).unwrap();
            memory.ended(0, end, &rules, start);
        }
        assert_eq!(
            state(&memory),
            (BreakerState::Closed, 2),
            "a success in between starts the count anew"
        );
        memory.ended(0, Some(FailureCode::Timeout), &rules, start);
        assert_eq!(state(&memory), (BreakerState::Open, 3));
        assert_eq!(memory.pass(0, open, at(4)), Err(Duration::from_secs(6)));
        memory.ended(0, Some(FailureCode::Timeout), &rules, at(5));
        assert_eq!(memory.would_pass(0, at(10)), Ok(()));
        memory.pass(0, open, at(10)).unwrap();
        assert_eq!(state(&memory).0, BreakerState::HalfOpen);
        assert!(memory.pass(0, open, at(11)).is_err(), "one at a time");
        memory.ended(0, Some(FailureCode::Timeout), &rules, at(12));
        assert_eq!(state(&memory).0, BreakerState::Open);
        assert!(memory.would_pass(0, at(21)).is_err());
        memory.pass(0, open, at(22)).unwrap();
        memory
            .pass(0, open, at(40))
            .expect("one that never tells does not hold it up for ever");
        memory.ended(0, None, &rules, at(41));
        assert_eq!(state(&memory), (BreakerState::Closed, 0));
    }

    #[test]
    fn another_process_starts_with_a_closed_one_and_the_old_ones_word_counts_no_more() {
        let rules = rules();
        let clock = Clock::system();
        let now = ClockReading {
            mono: clock.now(),
            wall: clock.wall(),
        };
        let mut memory = CircuitBreaker::new(0, now);
        for _ in 0..3 {
            memory.ended(0, Some(FailureCode::Timeout), &rules, now);
        }
        assert!(memory.would_pass(0, now).is_err());
        memory.pass(1, rules.breaker_open, now).unwrap();
        for _ in 0..9 {
            memory.ended(0, Some(FailureCode::Timeout), &rules, now);
        }
        assert_eq!(memory.status().state, BreakerState::Closed);
    }
}
