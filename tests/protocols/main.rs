//! How scenarios are asked and called, how long their answers may be used, and what their manifests
//! become.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod cache_cases;
mod caching;
mod caching_parser;
mod caching_rules;
mod call_connections;
mod calls;
mod check;
mod check_corpus;
mod credentials;
mod decoding;
mod decoding_bounds;
mod decoding_large;
mod decoding_round_trip;
mod json_rpc_tools;
mod polling;
mod polling_limits;
mod proxies;
mod sessions;
mod suspicious;
mod tls;
