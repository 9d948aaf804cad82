//! What tests share, as one module of each test program: the servers, daemons and files around what
//! is tried.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]
#![allow(
    dead_code,
    reason = "each program uses its share; `tests/tidy.rs` finds what none uses"
)]

/// Fails unless there is nothing in it, and prints what there is.
#[allow(unused_macros, reason = "each program uses its share")]
macro_rules! assert_empty {
    ($what:expr) => {
        match &$what {
            what => assert!(
                what.is_empty(),
                "expected nothing in `{}`, found {what:?}",
                stringify!($what)
            ),
        }
    };
}
#[allow(unused_imports, reason = "each program uses its share")]
pub(crate) use assert_empty;

pub(crate) mod allocated;
pub(crate) mod api;
pub(crate) mod cache_replay;
pub(crate) mod call_of;
pub(crate) mod callee;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod config_file;
pub(crate) mod counting;
pub(crate) mod daemon;
pub(crate) mod format_cases;
pub(crate) mod found;
pub(crate) mod hostile;
pub(crate) mod house;
pub(crate) mod in_process;
pub(crate) mod lab;
pub(crate) mod listener;
pub(crate) mod mcp_client;
pub(crate) mod mcp_server;
pub(crate) mod mdns;
pub(crate) mod module;
pub(crate) mod offers;
pub(crate) mod proxy;
pub(crate) mod rpc_server;
pub(crate) mod scrape;
pub(crate) mod scripted;
pub(crate) mod scripted_session;
pub(crate) mod serving;
pub(crate) mod socket;
pub(crate) mod sources;
pub(crate) mod tls_server;
pub(crate) mod torn;
pub(crate) mod upstream_server;
pub(crate) mod view_tools;
pub(crate) mod watched;
