//! When to poll next, and until when an answer keeps a scenario live. Pure: the random part is an
//! argument.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::config::RefreshConfig;
use crate::protocols::Validity;

/// Share of a lifetime after which the next answer is fetched, so that clients never see a stale
/// answer of a healthy scenario.
const EAGER: f64 = 0.9;
/// Share of a lifetime (or of the floor) by which polls are spread.
const SPREAD: f64 = 0.1;

/// The shortest time between two starts of polls that probably bring no change; polls that are due
/// in between start together.
const ROUND: Duration = Duration::from_millis(100);

/// See [`rest_after`].
const REST_FOR_A_TOOL: Duration = Duration::from_millis(1);

/// One in this many of the polls that may run at once may be of scenarios that wait for approval.
const UNTRUSTED_SHARE: usize = 4;

/// The time over which polls are spread that become due by another configuration.
pub(in crate::engine) const RELOAD_SPREAD: Duration = Duration::from_secs(3);

/// The times that follow from a good answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct PollPlan {
    /// When to poll next.
    pub(in crate::engine) next_poll: Instant,
    /// Until when the scenario counts as live.
    pub(in crate::engine) live_until: Instant,
}

/// The times at which scheduled polls begin. In a large fleet a poll is due every few milliseconds;
/// waking the processor for each one costs as much as the poll itself.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct PollGrid {
    first: Instant,
    apart: Duration,
}

impl PollGrid {
    /// The grid is fine compared with the interval at which one scenario is polled.
    pub(in crate::engine) fn new(first: Instant, rules: &RefreshConfig) -> Self {
        Self {
            first,
            apart: ROUND
                .min(rules.min_interval / 64)
                .max(Duration::from_millis(1)),
        }
    }

    /// The first of these times that is not before `at`.
    pub(in crate::engine) fn after(&self, at: Instant) -> Instant {
        let past = at.saturating_duration_since(self.first).as_nanos() % self.apart.as_nanos();
        let past = u64::try_from(past).map_or(Duration::ZERO, Duration::from_nanos);
        if past.is_zero() {
            at
        } else {
            at + self.apart.saturating_sub(past)
        }
    }
}

/// Plans after a good answer; `random` is in `0.0..1.0`.
///
/// The next poll comes after 0.9 of the lifetime less jitter, but never before the floor
/// (`refresh.min_interval`): the protocol asks consumers to keep a manifest at least 60 seconds.
/// Scenarios of that protocol say `max-age=60`, so floor and lifetime meet there. Such a scenario
/// stays live while its scheduled poll is due or under way; otherwise every healthy scenario would
/// be stale for the milliseconds of each poll. That ends as soon as the poll fails. A scenario
/// whose answer is fresh for less than the floor is shown as stale in between, unless it is
/// `followed`: then it would have signalled a change.
pub(in crate::engine) fn after_success(
    validity: &Validity,
    followed: bool,
    rules: &RefreshConfig,
    random: f64,
) -> PollPlan {
    let Validity {
        received,
        fresh_for: lifetime,
        took,
        ..
    } = *validity;
    let eager = lifetime.mul_f64(EAGER - SPREAD * random);
    let spread_floor = rules.min_interval.mul_f64(1.0 + SPREAD / 2.0 * random);
    let wait = if eager >= rules.min_interval {
        eager
    } else {
        spread_floor
    }
    .min(rules.max_interval);
    let next_ask = received + wait;
    // The time of the request was subtracted from the lifetime; a slow answer is not a short-lived
    // one. An answer that is stale on arrival stays stale.
    let covered = followed || !lifetime.is_zero() && lifetime + took >= rules.min_interval;
    let fresh_until = validity.fresh_until();
    let live_until = if covered {
        fresh_until.max(next_ask + rules.timeout)
    } else {
        fresh_until
    };
    PollPlan {
        next_poll: next_ask,
        live_until,
    }
}

/// How long after a list of so many tools the same scenario is not polled again, whatever hints,
/// restarts or refused calls want that: to read, merge, store and publish a list takes some twenty
/// microseconds for each of its tools, so that a scenario whose list changes all the time costs a
/// few hundredths of one core at most.
pub(in crate::engine) fn rest_after(tools: usize, rules: &RefreshConfig) -> Duration {
    let tools = u32::try_from(tools).unwrap_or(u32::MAX);
    REST_FOR_A_TOOL
        .saturating_mul(tools)
        .min(rules.min_interval)
}

/// When the last good answer of a failing scenario may no longer be used, according to the answer
/// itself: never while `cache.last_good` is on.
pub(in crate::engine) fn lapses_at(validity: Option<&Validity>, failures: u32) -> Option<Instant> {
    validity.filter(|_| failures > 0)?.usable_until()
}

/// The permits for polls of scenarios that wait for approval; however many are found, they do not
/// delay the others.
pub(in crate::engine) fn untrusted_permits(refresh: &RefreshConfig) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(
        (refresh.concurrency / UNTRUSTED_SHARE).max(1),
    ))
}

/// When to poll again after a failure: after the back-off, or later when the scenario sent
/// `Retry-After`.
pub(in crate::engine) fn retry_at(
    now: Instant,
    wait: Duration,
    retry_after: Option<Duration>,
) -> Instant {
    now + retry_after.map_or(wait, |requested| requested.max(wait))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "whole seconds")]

    use super::*;
    use crate::transports::http::{ResponseHead, cache_policy};

    fn rules() -> RefreshConfig {
        RefreshConfig {
            min_interval: Duration::from_secs(60),
            max_interval: Duration::from_secs(3600),
            default_lifetime: Duration::from_secs(60),
            forced_gap: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(1),
            concurrency: 32,
            max_body: 1,
            max_redirects: 0,
            backoff_base: Duration::from_secs(1),
            backoff_max: Duration::from_secs(60),
            max_scenarios: 10,
            ..RefreshConfig::default()
        }
    }

    /// Seconds from the answer to the next poll, and to the end of being live.
    fn plan(lifetime: u64, took: u64, random: f64) -> (f64, f64) {
        let clock = crate::runtime::Clock::following(jiff::Timestamp::UNIX_EPOCH);
        let received = clock.now();
        let took = Duration::from_secs(took);
        let mut headers = http::HeaderMap::new();
        headers.insert(
            http::header::CACHE_CONTROL,
            format!("max-age={lifetime}").parse().unwrap(),
        );
        let head = ResponseHead {
            status: http::StatusCode::OK,
            headers,
            requested: received.checked_sub(took).unwrap(),
            received,
            received_at: clock.wall(),
        };
        let fresh = cache_policy::freshness(&head, rules().default_lifetime.into());
        let plan = after_success(&fresh.into(), false, &rules(), random);
        (
            (plan.next_poll - received).as_secs_f64(),
            (plan.live_until - received).as_secs_f64(),
        )
    }

    #[test]
    fn a_long_lifetime_is_renewed_before_it_ends() {
        assert_eq!(plan(600, 0, 0.0), (540.0, 600.0));
        let (next, live) = plan(600, 0, 0.999);
        assert!((480.0..482.0).contains(&next) && live >= 600.0);
    }

    #[test]
    fn polls_keep_the_minimum_interval_and_a_list_of_a_minute_stays_live() {
        let (next, live) = plan(60, 0, 0.5);
        assert!((60.0..=63.0).contains(&next), "{next}");
        assert!(live >= next + 10.0, "{live}");
    }

    #[test]
    fn a_slow_poll_keeps_a_list_of_a_minute_live() {
        let (next, live) = plan(60, 3, 0.0);
        assert!(next >= 60.0 && live >= next + 10.0, "{next} {live}");
    }

    #[test]
    fn a_short_lifetime_is_asked_at_the_floor_and_honestly_stale() {
        let (next, live) = plan(5, 0, 0.0);
        assert_eq!(next, 60.0);
        assert_eq!(live, 5.0);
        assert_eq!(plan(0, 0, 0.0), (60.0, 0.0));
        // The same for a slow answer.
        assert_eq!(plan(5, 70, 0.0), (60.0, 0.0));
    }

    #[test]
    fn rounds_are_never_early_and_short_beside_the_interval() {
        let first = crate::runtime::Clock::following(jiff::Timestamp::UNIX_EPOCH).now();
        for (interval, apart) in [(60_000, 100), (640, 10), (20, 1)] {
            let min_interval = Duration::from_millis(interval);
            let rounds = PollGrid::new(
                first,
                &RefreshConfig {
                    min_interval,
                    ..rules()
                },
            );
            let of = |micros| rounds.after(first + Duration::from_micros(micros)) - first;
            let apart = Duration::from_millis(apart);
            assert_eq!([of(0), of(1)], [Duration::ZERO, apart], "{interval}");
            assert_eq!(rounds.after(first + apart * 7), first + apart * 7);
            assert_eq!(
                rounds.after(first + apart * 7 + Duration::from_nanos(1)),
                first + apart * 8
            );
        }
    }

    #[test]
    fn no_lifetime_passes_the_ceiling() {
        assert_eq!(plan(1_000_000, 0, 0.3).0, 3600.0);
    }
}
