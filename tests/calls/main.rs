//! Calls of tools: what they mean, who may make them, where they go, and what is kept of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod accesses;
mod additions;
mod approval_room;
mod approvals;
mod audit;
mod away;
mod call_end_cases;
mod call_end_faces;
mod call_end_stage;
mod call_ends;
mod chained_operations;
mod default_profile;
mod definitions;
mod limits;
mod log;
mod mcp_operations;
mod name_resolution;
mod operations;
mod overrides;
mod pins;
mod pins_steps;
mod properties;
mod routes;
mod settled;
mod several;
mod shown;
mod turns_stored;
mod unset;
mod usage;
mod versions;
