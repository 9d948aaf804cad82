//! Watching scenarios: when they are asked, what their answers and their silence mean, and what is listed meanwhile.

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
mod unsettled_sources;
mod unusable_answers;
mod versions;
