//! Scenarios on other hosts, found by mDNS: real hosts in network namespaces.
//!
//! All of them are ignored by default, since they need root: `.ci/lab` installs what they need and
//! runs them. What a fault does to the list is in `leaving.rs` (ends and restarts), `cuts.rs` (the
//! network) and `crowds.rs` (many at once); `others.rs` has other implementations of mDNS on the
//! other side.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod discovery;
mod ends_and_restarts;
mod many_announcements;
mod network_cuts;
mod other_mdns;
