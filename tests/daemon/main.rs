//! The whole daemon inside the test, with real scenarios around it; and the sources that tell it of them.

#[path = "../support/mod.rs"]
mod support;

mod availability;
mod discovery;
mod embed;
mod following;
mod hostile;
mod inbox;
mod lists;
mod operators;
mod pending;
mod preferences;
mod restart;
mod sources;
mod sources_mdns;
mod sources_vrooli;
mod trust;
