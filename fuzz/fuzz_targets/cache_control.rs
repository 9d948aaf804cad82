//! The reader of `Cache-Control` and its neighbours, through the judgement that is made of them:
//! each line of the input is a header line, `name: value`; one without a colon is a
//! `Cache-Control`.

#![no_main]

use std::time::Duration;

use callsheet::runtime::Clock;
use callsheet::transports::http::cache_policy::{Plan, after_failure, before_request, freshness};
use callsheet::transports::http::{CacheRules, CacheScope, ResponseHead};
use http::header::{CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;

const DEFAULT: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(1 << 31);

fuzz_target!(|data: &[u8]| {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n').take(50) {
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (
                HeaderName::from_bytes(&line[..at]).unwrap_or(CACHE_CONTROL),
                &line[at + 1..],
            ),
            None => (CACHE_CONTROL, line),
        };
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(name, value);
        }
    }
    let clock = Clock::system();
    let now = clock.now();
    let head = ResponseHead {
        status: http::StatusCode::OK,
        headers,
        requested: now,
        received: now,
        received_at: clock.wall(),
    };
    for scope in [CacheScope::Private, CacheScope::Shared] {
        for last_good in [false, true] {
            let rules = CacheRules {
                scope,
                default_lifetime: DEFAULT,
                last_good,
            };
            let fresh = freshness(&head, rules);
            assert!(fresh.lifetime <= LONGEST, "{fresh:?}");
            assert!(fresh.fresh_until() >= now);
            assert_eq!(
                before_request(Some(&fresh), now) == Plan::Reuse,
                fresh.fresh_until() > now,
                "{fresh:?}"
            );
            let _ = after_failure(Some(&fresh), now + LONGEST);
            let renewed = freshness(&head, rules).renewing(&fresh);
            let same = (renewed.lifetime, renewed.no_store) == (fresh.lifetime, fresh.no_store);
            assert!(same, "a 304 that says the same: {fresh:?} {renewed:?}");
        }
    }
});
