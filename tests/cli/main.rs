//! The command line: the real binary, run as by a newcomer, a script or a service manager.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod add;
mod approvals_and_operations;
mod bundles;
mod call;
mod check;
mod check_json_rpc;
mod check_mcp;
mod child_processes;
mod config;
mod connect;
mod contract;
mod demo;
mod doctor;
mod errors;
mod findings;
mod help;
mod hints;
mod import;
mod init;
mod json_rpc;
mod list_commands;
mod log_lines;
mod logs;
mod man;
mod mcp_files;
mod mcp_front;
mod message_cost;
mod operator_commands;
mod operator_token;
mod pins;
mod proxies;
mod search;
mod serve;
mod service;
mod service_manager;
mod sleeping;
mod state;
mod turn;
mod unix_socket;
mod unreachable;
mod upgrade;
mod watch;
