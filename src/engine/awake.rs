//! Whether the program of a scenario is used now, and whether it sleeps.
//!
//! A request holds it awake ([`AwakeHolds::hold`]) and looks then whether it sleeps. The loop lets
//! it fall asleep only while it is not held. Both take the same lock, so no request is sent to a
//! program that is being ended.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::runtime::Clock;

/// The use of one scenario's program. Clones of the [`Arc`] are with the loop and with the routes.
#[derive(Debug)]
pub struct AwakeHolds(Mutex<HoldState>);

#[derive(Debug)]
struct HoldState {
    /// Calls, relayed requests, operations and subscriptions under way.
    holds: usize,
    /// Since when there are none.
    idle_since: Instant,
    is_asleep: bool,
}

/// Keeps a program awake until it is dropped. One that is asleep stays so until it is listed.
#[derive(Debug)]
pub struct AwakeHold {
    held: Arc<AwakeHolds>,
    clock: Clock,
}

impl AwakeHolds {
    /// Awake, and not used since `now`.
    pub(super) fn new(now: Instant) -> Arc<Self> {
        Arc::new(Self(Mutex::new(HoldState {
            holds: 0,
            idle_since: now,
            is_asleep: false,
        })))
    }

    /// Keeps the program awake.
    pub fn hold(self: &Arc<Self>, clock: Clock) -> AwakeHold {
        self.0.lock().holds += 1;
        AwakeHold {
            held: Arc::clone(self),
            clock,
        }
    }

    /// Whether it sleeps, so that no request can be sent to it.
    pub fn is_asleep(&self) -> bool {
        self.0.lock().is_asleep
    }

    /// Lets it fall asleep if it was not used for so long. Returns whether it sleeps now.
    pub(super) fn fall_asleep(&self, idle_for: Duration, now: Instant) -> bool {
        let mut state = self.0.lock();
        let idle = now.saturating_duration_since(state.idle_since);
        state.is_asleep = state.is_asleep || state.holds == 0 && idle >= idle_for;
        state.is_asleep
    }

    /// Whether it is used now.
    pub(super) fn is_held(&self) -> bool {
        self.0.lock().holds > 0
    }

    /// When it was not used for so long, if it is not used before; while it is used, that time from
    /// now on.
    pub(super) fn idle_at(&self, idle_for: Duration, now: Instant) -> Instant {
        let state = self.0.lock();
        let since = if state.holds > 0 {
            now
        } else {
            state.idle_since
        };
        since + idle_for
    }

    /// Its program may be used again.
    pub(super) fn wake(&self) {
        self.0.lock().is_asleep = false;
    }

    /// It sleeps from the start of the daemon on.
    pub(super) fn starts_asleep(&self) {
        self.0.lock().is_asleep = true;
    }
}

impl Drop for AwakeHold {
    fn drop(&mut self) {
        let now = self.clock.now();
        let mut state = self.held.0.lock();
        state.holds -= 1;
        state.idle_since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_program_that_is_used_does_not_fall_asleep() {
        let clock = Clock::system();
        let program = AwakeHolds::new(clock.now());
        let call = program.hold(clock);
        tokio::time::advance(2 * MINUTE).await;
        assert!(!program.fall_asleep(MINUTE, clock.now()));
        assert_eq!(program.idle_at(MINUTE, clock.now()), clock.now() + MINUTE);
        drop(call);
        assert!(
            !program.fall_asleep(MINUTE, clock.now()),
            "used a moment ago"
        );
        tokio::time::advance(MINUTE).await;
        assert!(program.fall_asleep(MINUTE, clock.now()));
        let waits = program.hold(clock);
        assert!(program.is_asleep(), "until it was listed");
        program.wake();
        assert!(!program.fall_asleep(Duration::ZERO, clock.now()));
        drop(waits);
    }
}
