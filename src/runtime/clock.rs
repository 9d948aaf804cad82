//! The only reader of time.
//!
//! Deadlines are monotonic ([`tokio::time::Instant`], so that paused time in tests moves them);
//! wall time is for display and for comparing with what other machines wrote.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Reads both clocks. Cheap to copy; passed to all code that needs the time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall: Wall,
}

#[derive(Debug, Clone, Copy)]
enum Wall {
    System,
    /// Wall time that moves with the monotonic clock from a fixed origin, for tests under paused
    /// time.
    Following {
        origin: Timestamp,
        since: Instant,
    },
    /// The machine's wall time, moved by this many milliseconds.
    Moved(&'static AtomicI64),
}

/// Moves the wall time of a clock, as if an operator set it or the machine slept.
#[derive(Debug, Clone, Copy)]
pub struct WallClockControl(&'static AtomicI64);

impl WallClockControl {
    /// Moves the wall time by this much; the monotonic time does not change.
    pub fn step(self, by: SignedDuration) {
        let milliseconds = i64::try_from(by.as_millis()).unwrap_or(0);
        self.0.fetch_add(milliseconds, Ordering::Relaxed);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this module is the one that reads time"
)]
impl Clock {
    /// The machine's clocks.
    pub fn system() -> Self {
        Self { wall: Wall::System }
    }

    /// A clock whose wall time starts at `origin` and moves with tokio's monotonic clock, also when
    /// that is paused.
    pub fn following(origin: Timestamp) -> Self {
        Self {
            wall: Wall::Following {
                origin,
                since: Instant::now(),
            },
        }
    }

    /// The machine's clocks with a control that moves the wall time, for tests. The value that both
    /// share stays in memory until the process ends.
    pub fn with_hand() -> (Self, WallClockControl) {
        let moved = Box::leak(Box::new(AtomicI64::new(0)));
        (
            Self {
                wall: Wall::Moved(moved),
            },
            WallClockControl(moved),
        )
    }

    /// The current time, for deadlines.
    pub fn now(self) -> Instant {
        Instant::now()
    }

    /// The current time, for display and for comparing with timestamps of other machines.
    pub fn wall(self) -> Timestamp {
        match self.wall {
            Wall::System => Timestamp::now(),
            Wall::Moved(by) => {
                let by = SignedDuration::from_millis(by.load(Ordering::Relaxed));
                Timestamp::now()
                    .saturating_add(by)
                    .unwrap_or(Timestamp::MAX)
            }
            Wall::Following { origin, since } => origin
                .saturating_add(since.elapsed())
                .unwrap_or(Timestamp::MAX),
        }
    }

    /// The wall time at which a monotonic deadline falls, as seen from now.
    pub fn wall_at(self, deadline: Instant) -> Timestamp {
        let now = self.now();
        let wall = self.wall();
        let moved = if deadline >= now {
            wall.saturating_add(deadline - now)
        } else {
            wall.saturating_sub(now - deadline)
        };
        moved.unwrap_or(wall)
    }

    /// Waits until `deadline`; at once when it has passed.
    pub async fn sleep_until(self, deadline: Instant) {
        tokio::time::sleep_until(deadline).await;
    }

    /// Waits for `span`.
    pub async fn sleep(self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}
