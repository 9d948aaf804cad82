//! The documents for users: every command that they print works as printed, their configurations
//! are valid, their programs run, and their links lead somewhere.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod backup;
mod clients;
mod commands;
mod links;
mod llm;
mod markdown;
mod programs;
mod rows;
mod rpc_client;
