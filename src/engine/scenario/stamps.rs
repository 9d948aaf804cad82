//! How old an answer is by its own time stamp. Pure.
//!
//! Most servers stamp each answer anew, some a change of their content, and some never change their
//! stamp. Only where a stamp advanced although the content was equal, it says when an answer was
//! made. An answer that is then older than such answers are comes from something in between, and
//! its age counts as the one that HTTP's `Age` says.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// What is no age: stamps of whole seconds, and the way of an answer.
const TOLERANCE: Duration = Duration::from_secs(2);

/// What the stamps of one scenario's answers have shown.
#[derive(Debug, Default)]
pub(in crate::engine) struct AnswerStamps {
    /// The stamp and the arrival of the latest answer.
    latest: Option<(Timestamp, Instant)>,
    /// From the stamp to the arrival of an answer that was made when it was requested: how far the
    /// scenario's clock is behind. `None` until it is known to stamp its answers.
    lag: Option<SignedDuration>,
}

impl AnswerStamps {
    /// The age of an answer on its arrival. `is_equal` says whether its content is that of the
    /// answer before.
    pub(super) fn age(
        &mut self,
        stamp: Option<Timestamp>,
        is_equal: bool,
        received: Instant,
        received_at: Timestamp,
    ) -> Duration {
        let Some(stamp) = stamp else {
            *self = Self::default();
            return Duration::ZERO;
        };
        let lag = received_at.duration_since(stamp);
        if let Some((before, then)) = self.latest.replace((stamp, received)) {
            let advanced = Duration::try_from(stamp.duration_since(before)).unwrap_or_default();
            let passed = received.saturating_duration_since(then);
            self.lag = match self.lag {
                None => (is_equal && !advanced.is_zero()).then_some(lag),
                // Both clocks went on alike, whatever was done to one of them before.
                Some(_) if !advanced.is_zero() && advanced.abs_diff(passed) <= TOLERANCE => {
                    Some(lag)
                }
                Some(known) => Some(known.min(lag)),
            };
        }
        let age = self
            .lag
            .and_then(|known| Duration::try_from(lag - known).ok())
            .unwrap_or_default();
        if age > TOLERANCE { age } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ages of answers, each with the seconds when it comes, its stamp and whether its content
    /// is that of the one before.
    fn ages(answers: &[(i64, i64, bool)]) -> Vec<u64> {
        let mut stamps = AnswerStamps::default();
        let start = crate::runtime::Clock::system().now();
        let origin: Timestamp = "2026-03-01T09:00:00Z".parse().unwrap();
        let at = |seconds: i64| origin + SignedDuration::from_secs(seconds);
        let age = |(comes, stamp, is_equal): &(i64, i64, bool)| {
            let received = start + Duration::from_secs(comes.unsigned_abs());
            stamps
                .age(Some(at(*stamp)), *is_equal, received, at(*comes))
                .as_secs()
        };
        answers.iter().map(age).collect()
    }

    #[test]
    fn only_stamps_of_answers_give_an_age() {
        // Its clock is 300 s behind. The third answer is one of a cache, the fourth the same one.
        let cached = [
            (0, -300, true),
            (60, -240, true),
            (120, -1_200, true),
            (180, -1_200, true),
            (240, -60, true),
        ];
        assert_eq!(ages(&cached), [0, 0, 1_020, 1_080, 0]);
        // A stamp that never moves, and one that moves with the content.
        assert_eq!(
            ages(&[(0, -9_000, true), (60, -9_000, true), (120, -9_000, true)]),
            [0; 3]
        );
        assert_eq!(
            ages(&[
                (0, -9_000, true),
                (60, 50, false),
                (120, 50, true),
                (9_000, 50, true)
            ]),
            [0; 4]
        );
        // This machine's clock is set an hour forward: that is no age of the answers after the
        // next.
        assert_eq!(
            ages(&[
                (0, 0, true),
                (60, 60, true),
                (3_720, 120, true),
                (3_780, 180, true)
            ])[3],
            0
        );
    }
}
