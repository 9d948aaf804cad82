//! How scenarios are asked and called, how long their answers may be used, and what their manifests become.

#[path = "../support/mod.rs"]
mod support;

mod asking;
mod asking_limits;
mod cache_cases;
mod caching;
mod caching_parser;
mod caching_rules;
mod call_connections;
mod calling;
mod check;
mod check_corpus;
mod reading;
mod reading_again;
mod reading_bounds;
mod reading_large;
mod sessions;
mod tls;
