//! The configuration, and another one for a running daemon.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod definitions;
mod errors;
mod keys;
mod layers;
mod reload;
mod reload_mdns;
mod reload_metrics;
mod reload_refused;
mod reload_settings;
mod scenarios;
