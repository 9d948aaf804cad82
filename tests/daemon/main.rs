//! The whole daemon inside the test, with real scenarios around it; and the sources that tell it of
//! them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod agent_inbox;
mod availability;
mod chained_daemons;
mod discovery;
mod embed;
mod former_names;
mod hostile;
mod operator_actions;
mod pending_body_limit;
mod preferences;
mod published_list;
mod restart;
mod sent_pointers;
mod sources;
mod sources_mdns;
mod sources_vrooli;
mod state_loss;
mod toy_source;
mod trust;
