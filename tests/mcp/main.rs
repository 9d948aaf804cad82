//! Scenarios that speak the Model Context Protocol: in every era, well-behaved and hostile.

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod eras;
mod hints;
mod hostile;
mod listing;
mod served;
mod stdio;
