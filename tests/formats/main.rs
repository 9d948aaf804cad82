//! The formats of lists for LLMs.

#[path = "../support/mod.rs"]
mod support;

mod conformance;
mod exports;
mod served_bytes;
mod stable_bytes;
mod strict_compiles;
