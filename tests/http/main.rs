//! What is served over HTTP: the routes, their description, events, the dashboard, metrics; and
//! what a provider serves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod configured;
mod connections;
mod dashboard;
mod dashboard_bulk;
mod dashboard_findings;
mod dashboard_live;
mod dashboard_raw;
mod definitions;
mod events;
mod events_hub;
mod events_rings;
mod events_socket;
mod events_streams;
mod execute;
mod guard;
mod health;
mod held;
mod held_calls;
mod json_rpc;
mod json_rpc_bad_input;
#[cfg(unix)]
mod json_rpc_socket;
mod large_lists;
mod metrics;
mod metrics_files;
mod openapi;
mod openapi_examples;
mod provide;
mod provide_json_rpc;
mod rendered;
mod search;
#[cfg(unix)]
mod state_file;
mod tool_selection;
mod tools;
mod turns;
mod turns_operations;
mod turns_results;
mod turns_several;
mod turns_shapes;
mod turns_waiting;
