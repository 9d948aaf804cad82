//! Modules: scenarios that speak the protocol of modules, which are real programs in Python here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod check;
mod config;
mod execute;
mod manifests;
mod reload;
mod whole_daemon;

use callsheet::config::Config;

use support::daemon::{Home, NEVER};
use support::module::Module;

/// A configuration with these modules, asked only when a test says so.
fn calm(home: &Home, modules: &[&Module]) -> Config {
    let mut config = home.config(&[]);
    config.refresh.min_interval = NEVER;
    config.refresh.max_interval = NEVER;
    for module in modules {
        module.configure(&mut config);
    }
    config
}
