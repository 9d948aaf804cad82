//! The catalog through the library: the merge, views of it, search, who gets the places, and the answers prepared from it.

#[path = "../support/mod.rs"]
mod support;

mod choice;
mod diff;
mod merge;
mod prepare;
mod properties;
mod search;
mod search_corpus;
mod search_properties;
mod view;
mod views;
