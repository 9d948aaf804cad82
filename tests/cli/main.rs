//! The command line: the real binary, run as by a newcomer, a script or a service manager.

#[path = "../support/mod.rs"]
mod support;

mod call;
mod calls;
mod change;
mod check;
mod checks;
mod config;
mod contract;
mod demo;
mod doctor;
mod help;
mod list;
mod log_lines;
mod man;
mod search;
mod serve;
mod service;
mod unreachable;
mod watch;
