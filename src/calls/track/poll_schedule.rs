//! When an operation is polled, and when following it ends. Pure: time is an argument.

use std::time::Duration;

use tokio::time::Instant;

use super::behaviour::Behaviour;
use super::limits::TrackerLimits;
use crate::model::OperationState;

/// How many times in a row the scenario may refuse a status before the operation counts as lost.
const REFUSALS: u32 = 10;
/// How many times in a row it may do so from the first request on, before the operation counts as
/// one that cannot be followed: what it wants then is something that the tool does not declare.
const FIRST_REFUSALS: u32 = 5;
/// How many times in a row the scenario may not find the operation before its note says that the id
/// may mean something else to the status tool.
const MISSES: u32 = 3;
/// How many times in a row a status may be one that the tool does not declare.
const UNDECLARED: u32 = 10;
/// How many times in a row another peer may answer for the scenario before the original peer counts
/// as gone for good. It moved without an identity by which it could be recognised, or another
/// program has its name.
const STRANGERS: u32 = 10;

/// The schedule of one operation.
#[derive(Debug)]
pub(super) struct PollSchedule {
    delay: Duration,
    growth: Option<(f64, Duration)>,
    min: Duration,
    max: Duration,
    next: Instant,
    deadline: Instant,
    failures: u32,
    refusals: u32,
    misses: u32,
    undeclared: u32,
    strangers: u32,
    /// Whether a status was ever answered.
    has_answered: bool,
    cancel_by: Option<Instant>,
}

/// The next step.
#[derive(Debug, PartialEq)]
pub(super) enum PollAction {
    /// Poll now.
    Poll,
    /// Wait until then.
    At(Instant),
    /// End the operation with this state and note.
    Over(OperationState, String),
}

/// Why a poll gave no status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PollFailure {
    /// The scenario answered that it cannot give a status.
    Refused,
    /// The same, because it finds no such operation.
    NotFound,
    /// No answer came, or the tool could not be called. The scenario may have said when to poll
    /// again.
    NoAnswer(Option<Duration>),
    /// Another peer answers for the scenario. It is not polled.
    OwnerChanged,
}

impl PollSchedule {
    /// Starts now; the first poll is after the declared interval. `has_answered` says that an
    /// earlier daemon got a status.
    pub(super) fn new(
        behaviour: &Behaviour,
        limits: &TrackerLimits,
        has_answered: bool,
        now: Instant,
        deadline: Instant,
    ) -> Self {
        let max = limits.poll_max.max(limits.poll_min);
        let delay = behaviour.interval.clamp(limits.poll_min, max);
        Self {
            delay,
            growth: behaviour.growth,
            min: limits.poll_min,
            max,
            next: now + delay,
            deadline,
            failures: 0,
            refusals: 0,
            misses: 0,
            undeclared: 0,
            strangers: 0,
            has_answered,
            cancel_by: None,
        }
    }

    /// The next step at this time.
    pub(super) fn due(&self, now: Instant) -> PollAction {
        if self.cancel_by.is_some_and(|by| now >= by) {
            let note = "the scenario accepted the cancellation, but did not report the end in time"
                .to_owned();
            return PollAction::Over(OperationState::Cancelled, note);
        }
        if now >= self.deadline {
            let note = "it was not over when its time limit ended; it may run on".to_owned();
            return PollAction::Over(OperationState::TimedOut, note);
        }
        if now >= self.next {
            return PollAction::Poll;
        }
        PollAction::At(
            [Some(self.next), Some(self.deadline), self.cancel_by]
                .into_iter()
                .flatten()
                .min()
                .unwrap_or(self.next),
        )
    }

    /// The status says that the operation continues.
    pub(super) fn answered(&mut self, now: Instant) {
        (self.failures, self.refusals, self.misses, self.strangers) = (0, 0, 0, 0);
        self.has_answered = true;
        if let Some((factor, longest)) = self.growth {
            let grown =
                Duration::try_from_secs_f64(self.delay.as_secs_f64() * factor).unwrap_or(self.max);
            self.delay = grown.min(longest).clamp(self.min, self.max);
        }
        self.next = now + self.delay;
    }

    /// The status was or was not one that the tool declares. Returns whether it was undeclared too
    /// often in a row.
    pub(super) fn understood(&mut self, declared: bool) -> bool {
        self.undeclared = if declared { 0 } else { self.undeclared + 1 };
        self.undeclared >= UNDECLARED
    }

    /// Whether the scenario did not find the operation several times in a row.
    pub(super) fn is_missed(&self) -> bool {
        self.misses >= MISSES
    }

    /// A poll gave no status. Returns the end of the operation if this means one.
    pub(super) fn failed(
        &mut self,
        failure: PollFailure,
        now: Instant,
    ) -> Option<(OperationState, String)> {
        self.failures = self.failures.saturating_add(1);
        let doubled = self
            .delay
            .saturating_mul(1 << self.failures.min(16))
            .min(self.max);
        let wait = match failure {
            PollFailure::Refused | PollFailure::NotFound => {
                self.refusals += 1;
                doubled
            }
            PollFailure::OwnerChanged => {
                self.strangers += 1;
                doubled
            }
            PollFailure::NoAnswer(after) => doubled.max(after.unwrap_or_default().min(self.max)),
        };
        self.misses = if failure == PollFailure::NotFound {
            self.misses + 1
        } else {
            0
        };
        self.next = now + wait;
        if self.strangers >= STRANGERS {
            let note = "the peer that started it is not there any more; another peer has its name and is not polled";
            return Some((OperationState::Lost, note.to_owned()));
        }
        if !self.has_answered && self.cancel_by.is_none() && self.refusals >= FIRST_REFUSALS {
            let note = format!(
                "the scenario refused every request for its status, {FIRST_REFUSALS} in a row; it may run on"
            );
            return Some((OperationState::Untracked, note));
        }
        (self.refusals >= REFUSALS).then(|| {
            if self.cancel_by.is_some() {
                (OperationState::Cancelled, "the scenario does not know of it any more".to_owned())
            } else {
                let note = format!("the scenario refused its status {REFUSALS} times in a row, so it probably does not know of it any more");
                (OperationState::Lost, note)
            }
        })
    }

    /// The scenario was requested to cancel, and has until `by` to report the end. The next poll is
    /// soon.
    pub(super) fn cancelling(&mut self, now: Instant, by: Instant) {
        if self.cancel_by.is_none() {
            (self.cancel_by, self.next) = (Some(by), self.next.min(now + self.min));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::behaviour::tests::{behaviour, full};
    use super::*;
    use crate::runtime::Clock;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn limits() -> TrackerLimits {
        TrackerLimits {
            poll_min: seconds(1),
            poll_max: seconds(60),
            ..TrackerLimits::for_tests()
        }
    }

    fn begin(declaration: &serde_json::Value) -> (PollSchedule, Instant) {
        let now = Clock::system().now();
        (
            PollSchedule::new(
                &behaviour(declaration),
                &limits(),
                false,
                now,
                now + seconds(600),
            ),
            now,
        )
    }

    /// The times of the next `times` polls, in seconds since the start.
    fn times_polled(watch: &mut PollSchedule, begun: Instant, times: usize) -> Vec<u64> {
        let mut now = begun;
        let mut seconds_polled = Vec::new();
        while seconds_polled.len() < times {
            match watch.due(now) {
                PollAction::Poll => {
                    seconds_polled.push((now - begun).as_secs());
                    watch.answered(now);
                }
                PollAction::At(then) => {
                    assert!(then > now, "time goes on");
                    now = then;
                }
                PollAction::Over(state, _) => panic!("over: {state}"),
            }
        }
        seconds_polled
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_as_declared() {
        let (mut watch, begun) = begin(&full());
        assert_eq!(times_polled(&mut watch, begun, 6), [3, 9, 19, 29, 39, 49]);
        let mut declaration = full();
        declaration["status_polling"]["backoff"] = json!({});
        let (mut watch, begun) = begin(&declaration);
        assert_eq!(times_polled(&mut watch, begun, 3), [2, 4, 6]);
    }

    #[tokio::test(start_paused = true)]
    async fn declared_poll_intervals_are_kept_within_their_limits() {
        let mut declaration = full();
        declaration["status_polling"]["backoff"] = json!({});
        declaration["status_polling"]["poll_interval_seconds"] = json!(0.001);
        let (mut watch, begun) = begin(&declaration);
        assert_eq!(times_polled(&mut watch, begun, 3), [1, 2, 3]);
        declaration["status_polling"]["poll_interval_seconds"] = json!(86_400);
        let (mut watch, begun) = begin(&declaration);
        assert_eq!(times_polled(&mut watch, begun, 2), [60, 120]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_and_an_answer_ends_that() {
        let mut declaration = full();
        declaration["status_polling"]["backoff"] = json!({});
        let (mut watch, begun) = begin(&declaration);
        let mut now = begun + seconds(2);
        for wait in [4, 8, 16, 32, 60, 60] {
            assert_eq!(watch.failed(PollFailure::NoAnswer(None), now), None);
            assert_eq!(watch.due(now), PollAction::At(now + seconds(wait)));
            now += seconds(wait);
        }
        watch.answered(now);
        assert_eq!(watch.due(now), PollAction::At(now + seconds(2)));
        watch.failed(PollFailure::NoAnswer(Some(seconds(30))), now);
        assert_eq!(
            watch.due(now),
            PollAction::At(now + seconds(30)),
            "as it asked for"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_at_its_deadline_whatever_is_due() {
        let (mut watch, begun) = begin(&full());
        for _ in 0..100 {
            assert_eq!(
                watch.failed(PollFailure::NoAnswer(None), begun + seconds(599)),
                None
            );
        }
        assert_eq!(
            watch.due(begun + seconds(599)),
            PollAction::At(begun + seconds(600))
        );
        assert!(matches!(
            watch.due(begun + seconds(600)),
            PollAction::Over(OperationState::TimedOut, _)
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn a_scenario_that_says_no_again_and_again_has_lost_it() {
        let (mut watch, now) = begin(&full());
        for _ in 1..FIRST_REFUSALS {
            assert_eq!(watch.failed(PollFailure::Refused, now), None);
        }
        watch.answered(now);
        for _ in 1..REFUSALS {
            assert_eq!(watch.failed(PollFailure::Refused, now), None);
        }
        assert_eq!(
            watch.failed(PollFailure::Refused, now).map(|end| end.0),
            Some(OperationState::Lost)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_scenario_that_says_no_from_the_first_request_on_cannot_be_followed() {
        let (mut watch, now) = begin(&full());
        for _ in 1..FIRST_REFUSALS {
            assert_eq!(watch.failed(PollFailure::Refused, now), None);
            assert_eq!(
                watch.failed(PollFailure::NoAnswer(None), now),
                None,
                "no refusal"
            );
        }
        assert_eq!(
            watch.failed(PollFailure::NotFound, now).map(|end| end.0),
            Some(OperationState::Untracked)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn somebody_else_in_its_place_again_and_again_ends_it() {
        let (mut watch, now) = begin(&full());
        for round in 0..2 {
            for _ in 1..STRANGERS {
                assert_eq!(
                    watch.failed(PollFailure::OwnerChanged, now),
                    None,
                    "{round}"
                );
                assert_eq!(
                    watch.failed(PollFailure::NoAnswer(None), now),
                    None,
                    "{round}"
                );
            }
            if round == 0 {
                watch.answered(now);
            }
        }
        assert_eq!(
            watch
                .failed(PollFailure::OwnerChanged, now)
                .map(|end| end.0),
            Some(OperationState::Lost)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn calling_off_has_a_time_of_its_own() {
        let (mut watch, now) = begin(&full());
        watch.cancelling(now, now + seconds(7));
        watch.cancelling(now, now + seconds(100));
        assert_eq!(
            watch.due(now),
            PollAction::At(now + seconds(1)),
            "looked after soon"
        );
        assert!(matches!(
            watch.due(now + seconds(7)),
            PollAction::Over(OperationState::Cancelled, _)
        ));
    }
}
