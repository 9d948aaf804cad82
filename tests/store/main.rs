//! What is stored: kept over restarts, kills, full disks and damage.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod crash;
mod damage;
mod earlier_versions;
mod list_after_kill;
mod state;
