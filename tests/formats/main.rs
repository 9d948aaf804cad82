//! The formats of lists for LLMs.

#[path = "../support/mod.rs"]
mod support;

mod bytes;
mod conformance;
mod exports;
mod served;
mod strict_compiles;
