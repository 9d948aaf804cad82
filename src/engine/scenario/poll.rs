//! When a scenario is polled: what is planned, what is under way, and what voids it. Starts no poll itself.

use std::time::Duration;

use tokio::time::Instant;

use crate::engine::error::EngineError;
use crate::engine::now::Now;
use crate::engine::scenario::Scenario;
use crate::engine::scenario::facts::Latest;
use crate::model::LastError;
use crate::transports::TransportError;

impl Scenario {
    /// Polls it by then at the latest, unless it is being polled or may not be. Whether that changed anything.
    pub(in crate::engine) fn poll_by(&mut self, at: Instant, now: Now) -> bool {
        if !self.may_be_asked() || self.asking.is_some() {
            return false;
        }
        self.ask_by(at, now);
        self.backoff = None;
        true
    }

    /// Whether it may be polled now or later.
    pub(in crate::engine) fn may_be_asked(&self) -> bool {
        self.target.is_some() && !self.is_blocked() && !self.is_absent()
    }

    /// Why it may not be polled.
    pub(in crate::engine) fn refusal(&self) -> Option<EngineError> {
        if self.is_blocked() {
            Some(EngineError::Blocked(self.name.clone()))
        } else if self.may_be_asked() {
            None
        } else {
            Some(EngineError::NoAddress(self.name.clone()))
        }
    }

    /// Tells the clients that wait for an answer that none will come, if that is so.
    pub(in crate::engine) fn dismiss_waiters(&mut self) {
        if self.asking.is_some() || self.waiters.is_empty() {
            return;
        }
        if let Some(refusal) = self.refusal() {
            for waiter in self.waiters.drain(..) {
                // A client that has gone meanwhile needs no answer.
                let _ = waiter.send(Err(refusal.clone()));
            }
        }
    }

    /// Plans the next poll.
    pub(in crate::engine) fn ask_at(&mut self, at: Instant, now: Now) {
        let wall = now.wall.saturating_add(at.saturating_duration_since(now.mono)).unwrap_or(now.wall);
        self.next_ask = Some((at, wall));
    }

    /// Plans the next poll, unless one is planned before that.
    pub(in crate::engine) fn ask_by(&mut self, at: Instant, now: Now) {
        let planned = self.next_ask.map_or(at, |(planned, _)| planned);
        self.ask_at(at.min(planned), now);
    }

    /// When so much time has passed since it was last polled; now if it has.
    pub(in crate::engine) fn after_last_attempt(&self, gap: Duration, now: Now) -> Instant {
        self.last_attempt.map_or(now.mono, |(at, _)| at + gap).max(now.mono)
    }

    /// A hint wants it listed by then. After a poll that failed the back-off stands, and the poll after it is the one that was wanted.
    pub(in crate::engine) fn hinted(&mut self, at: Instant, now: Now) {
        if self.backoff.is_none() {
            self.ask_by(at, now);
        }
    }

    /// What is under way is void: its answer would be of another time or place.
    pub(in crate::engine) fn void(&mut self) {
        self.generation += 1;
        self.asking = None;
    }

    /// What is under way is void, and the next poll is at `at` and unconditional.
    pub(in crate::engine) fn ask_anew(&mut self, at: Instant, now: Now) {
        self.void();
        self.unconditional = true;
        self.backoff = None;
        self.ask_at(at, now);
    }

    /// Its session ended by itself: the process or connection is gone, and the next poll makes another one.
    pub(in crate::engine) fn lost(&mut self, why: String, at: Instant, now: Now) {
        self.restarts.suspect();
        self.last_error = Some(LastError { kind: "ended".into(), message: why, at: now.wall });
        self.ask_anew(at, now);
    }

    /// Its source gave an address that cannot be polled at all.
    pub(in crate::engine) fn unaskable(&mut self, error: &TransportError, now: Now) {
        self.void();
        self.target = None;
        self.next_ask = None;
        self.failures += 1;
        self.latest = Latest::Failed;
        self.last_error = Some(LastError { kind: error.kind().into(), message: error.to_string(), at: now.wall });
    }
}
