//! Scenarios that speak the Model Context Protocol: in every era, well-behaved and hostile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod approvals;
mod attended;
mod calls;
mod eras;
mod face;
mod first_list;
mod hints;
mod hostile;
mod hostile_calls;
mod inputs;
mod judged;
mod listing;
mod long_bodies;
mod matrix;
mod relayed;
mod relayed_limits;
mod relayed_news;
mod search_mode;
mod served;
mod sessions;
mod sleeping;
mod sleeping_requests;
mod stdio;
mod taking_part;
