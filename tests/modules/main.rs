//! Modules: scenarios that speak the protocol of modules, which are real programs in Python here.

#[path = "../support/mod.rs"]
mod support;

mod calling;
mod check;
mod config;
mod execute;
mod reading;
mod reload;
mod whole;
