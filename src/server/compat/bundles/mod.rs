//! `/tools`: bundles and stored tools, as their document describes them.
//!
//! What is kept true here:
//!
//! - Reads are answered from what the store of bundles has read; they open no file.
//! - A change is answered when it is durable and published.
//! - A call of a stored tool goes the way of every other call (`invoke.rs`): approvals, limits and
//!   records are the same.
//! - A stored tool can be called when both of its switches are on: the one in its file, and the one
//!   of the preferences (`switches.rs`).
//! - What is wrong with a path, a query or a body is refused with the words of one table
//!   (`refusals.rs`, `path_names.rs`).
//!
//! Read in this order: `operations.rs` (what each route takes and answers), `path_names.rs` and
//! `bundle_json.rs` (names and bodies), `handlers.rs` (changes and single reads), `lists.rs` with
//! `page_token.rs` (lists in pages), `search.rs`, `archives.rs` (ZIP), `invoke.rs`, `switches.rs`,
//! `refusals.rs`.
//!
//! Judges no file: the grammar of stored tools and the lock of the folder are in `crate::bundles`.

mod archives;
mod bundle_json;
mod handlers;
mod invoke;
mod lists;
mod operations;
mod page_token;
mod path_names;
mod refusals;
mod search;
mod switches;

pub(in crate::server) use archives::ArchiveLimit;
pub(in crate::server) use operations::{
    BUNDLE_LIST_OPERATIONS, BUNDLE_OPERATIONS, EXPORT_OPERATIONS, IMPORT_OPERATIONS,
    INVOKE_OPERATIONS, MOVED_LIST_OPERATIONS, MOVED_SEARCH_OPERATIONS, RESTORE_OPERATIONS,
    STORED_TOOL_LIST_OPERATIONS, STORED_TOOL_OPERATIONS, STORED_TOOL_SEARCH_OPERATIONS,
};
pub(in crate::server) use path_names::{BUNDLE_ID, TOOL_SLUG, TOOL_VERSION};
pub(in crate::server) use switches::preferred;
