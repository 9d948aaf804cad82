//! The catalog through the library: the merge, views of it, search, who gets the places, and the
//! answers prepared from it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod definitions;
mod diff;
mod former_names;
mod merge;
mod merge_properties;
mod pins;
mod pins_model;
mod prepared_answers;
mod search;
mod search_corpus;
mod search_properties;
mod tool_selection;
mod view_bodies;
mod view_filters;
