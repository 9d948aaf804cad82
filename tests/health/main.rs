//! Watching scenarios: when they are asked, what their answers and their silence mean, and what is
//! listed meanwhile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod authorization;
mod backoff;
mod clock_jumps;
mod concurrency;
mod forced_refresh;
mod freshness;
mod isolation;
mod lifecycle;
mod lost_sources;
mod operator_forget;
mod restart;
mod sleeping;
mod unsettled_sources;
mod unusable_answers;
mod versions;
