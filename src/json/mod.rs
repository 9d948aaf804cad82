//! JSON as text: its sender decides how it is written, and callsheet passes it on as it came.
//!
//! A tree of `serde_json` takes seven times the memory of its text and rewrites numbers and
//! escapes, so values stay text ([`JsonText`]) until something must be known of them. Then there
//! are three ways, the cheapest first:
//!
//! | wanted | use |
//! |---|---|
//! | something about the whole text | a pass over its tokens: [`scan`], [`layout`], [`soundness`] |
//! | the members of one object, the items of one list | [`members`] |
//! | values at any depth | a tree: [`tree`] keeps scalars as they were written, [`value`] reads them |
//!
//! What is made of it is written with [`mod@write`]; [`rpc`] is the envelope of JSON-RPC. Two
//! members with the same name are found by [`names`]: of a document the last one counts, and
//! arguments with two are refused (`calls/argument_form.rs`), because a person may have approved
//! the other one.
//!
//! This room knows no protocol and no finding, sends no request, and reads no clock.

pub(crate) mod layout;
pub(crate) mod members;
pub(crate) mod names;
pub(crate) mod rpc;
pub(crate) mod scan;
pub(crate) mod soundness;
mod text;
pub(crate) mod tree;
pub(crate) mod value;
pub(crate) mod write;

pub use text::JsonText;

/// The deepest nesting of what is published, sent or kept: readers stop at 128 levels, and some
/// levels are put around it.
pub(crate) const LEVELS_MAX: usize = 100;
