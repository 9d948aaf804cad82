//! The configuration, and another one for a running daemon.

#[path = "../support/mod.rs"]
mod support;

mod errors;
mod keys;
mod layers;
mod reload;
mod reload_mdns;
mod reload_metrics;
mod reload_refused;
mod reload_settings;
mod scenarios;
