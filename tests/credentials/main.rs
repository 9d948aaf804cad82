//! Credentials for scenarios: where they are read, where they go and where not, what a refusal
//! leads to, and that they are never shown.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod behind_proxy;
mod configured;
mod echoed;
mod hidden;
mod kinds;
mod login_command;
mod login_hostile;
mod login_mixup;
mod login_page;
mod login_server;
mod login_times;
mod logins;
mod logout;
mod oauth_clients;
mod old_transport;
mod refused;
mod renewed;
mod sealed;
