//! What tests share, as one module of each test program: the servers, daemons and files around what is tried.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]
#![allow(dead_code, reason = "each program uses its share; `tests/tidy.rs` finds what none uses")]

pub(crate) mod binary;
pub(crate) mod cache_replay;
pub(crate) mod callee;
pub(crate) mod catalog_inputs;
pub(crate) mod catalog_server;
pub(crate) mod counting_allocator;
pub(crate) mod counting_format;
pub(crate) mod daemon;
pub(crate) mod embedded;
pub(crate) mod format_cases;
pub(crate) mod handmade_views;
pub(crate) mod hostile_servers;
pub(crate) mod interrupted_requests;
pub(crate) mod lab;
pub(crate) mod machine;
pub(crate) mod mdns;
pub(crate) mod module;
pub(crate) mod openapi_document;
pub(crate) mod reloading_daemon;
pub(crate) mod sample_call;
pub(crate) mod scrape;
pub(crate) mod scripted_network;
pub(crate) mod scripted_server;
pub(crate) mod scripted_session;
pub(crate) mod sources;
pub(crate) mod sse_client;
pub(crate) mod test_callsheet;
pub(crate) mod upstream_server;
pub(crate) mod ws_client;
