//! `/tools`: bundles and stored tools, as their document describes them.
//!
//! Reads are answered from what the store has read, changes are answered when they are durable, and
//! calls go the way of every other call.

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
