//! The formats of lists for LLMs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod conformance;
mod exports;
mod served_bytes;
mod stable_bytes;
mod strict_compiles;
mod tool_protocol;
mod toy_format;
