//! When a request has to be answered: within its limit after the last sign of progress, and within
//! its total limit.
//!
//! Time in which a person is waited for is not the server's and counts for neither. What limits
//! that time is the caller's affair.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::request::{McpRequest, RequestError};
use crate::transports::TransportError;

/// The time limit of exchanges and streams whose request has a [`Deadline`]: none that matters.
pub(super) const UNTIMED: Duration = Duration::from_secs(30 * 24 * 3600);

/// See the module.
#[derive(Debug)]
pub(super) struct Deadline {
    began: Instant,
    /// The time until the answer, or until the next sign of progress.
    limit: Duration,
    /// The total limit, from the beginning.
    longest: Duration,
    /// How long a person was waited for.
    waited: Duration,
    at: Instant,
}

impl Deadline {
    /// That of a request that begins now.
    pub(super) fn new(began: Instant, request: &McpRequest) -> Self {
        let limit = request.limit;
        let longest = request.longest;
        Self {
            began,
            limit,
            longest,
            waited: Duration::ZERO,
            at: began + limit.min(longest),
        }
    }

    /// The server showed that it works on the request.
    pub(super) fn extend(&mut self, now: Instant) {
        self.at = (now + self.limit).min(self.began + self.longest + self.waited);
    }

    /// A person was waited for from `since` until now.
    pub(super) fn exclude(&mut self, since: Instant, now: Instant) {
        self.waited += now - since;
        self.extend(now);
    }

    /// The request waited for its turn until now: it has its limit once more.
    pub(super) fn begin_again(&mut self, now: Instant) {
        self.waited += self.limit;
        self.extend(now);
    }

    /// Waits until it has passed. Cancel-safe.
    pub(super) async fn passed(&self) {
        sleep_until(self.at).await;
    }

    /// The error for a request to this address that was not answered in time.
    pub(super) fn exceeded(&self, url: String) -> RequestError {
        let limit = (self.at - self.began).saturating_sub(self.waited);
        RequestError::Unanswered(TransportError::Timeout { url, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Clock;

    #[tokio::test(start_paused = true)]
    async fn progress_extends_it_up_to_the_total_and_a_person_costs_nothing() {
        let clock = Clock::system();
        let seconds = Duration::from_secs;
        let request = McpRequest {
            longest: seconds(100),
            ..McpRequest::new("tools/call", "", seconds(60), 1)
        };
        let began = clock.now();
        let limit = |deadline: &Deadline| match deadline.exceeded(String::new()) {
            RequestError::Unanswered(TransportError::Timeout { limit, .. }) => limit,
            other => panic!("{other:?}"),
        };
        let mut deadline = Deadline::new(began, &request);
        assert_eq!(limit(&deadline), seconds(60));
        deadline.extend(began + seconds(30));
        assert_eq!(limit(&deadline), seconds(90));
        deadline.exclude(began + seconds(30), began + seconds(5_030));
        assert_eq!(limit(&deadline), seconds(90));
        deadline.extend(began + seconds(5_080));
        assert_eq!(limit(&deadline), seconds(100));
        deadline.passed().await;
        assert_eq!(clock.now(), began + seconds(5_100));
    }
}
