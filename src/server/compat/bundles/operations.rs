//! What the routes of bundles take and answer, as the table of routes has it for all others. Each
//! line is one property of an operation.

use axum::routing::{delete, get, patch, post, put};

use super as bundles;
use crate::server::auth::Right::{Call, Operate, Read};
use crate::server::openapi::Tag::Bundles;
use crate::server::openapi::Verb::{Delete, Get, Patch, Post, Put};
use crate::server::openapi::{OperationSpec, json, operation};

/// Of the list of bundles.
#[rustfmt::skip]
pub(in crate::server) const BUNDLE_LIST_OPERATIONS: &[OperationSpec] = &[
    operation(Get, Read, Bundles, "listBundles", "the bundles of stored tools", json::<bundles::BundleListJson>("one page of them, in the order in which they were made").with_example(bundles::bundle_list_example), || get(bundles::list_bundles))
        .query(bundles::BUNDLE_FILTERS),
];

/// Of one bundle.
#[rustfmt::skip]
pub(in crate::server) const BUNDLE_OPERATIONS: &[OperationSpec] = &[
    operation(Put, Operate, Bundles, "putBundle", "adds a bundle, or replaces what is said about it", json::<bundles::BundleJson>("the bundle as it is now").with_example(bundles::bundle_example), || put(bundles::put_bundle))
        .body_like::<bundles::BundleBody>(bundles::bundle_put_example)
        .also(&[json::<bundles::BundleJson>("it is new").status(201).with_example(bundles::bundle_example)])
        .refuses(&[bundles::UNKNOWN, bundles::READ_ONLY, bundles::GOING, bundles::LOCKED]).stores(),
    operation(Patch, Operate, Bundles, "switchBundle", "enables or disables a bundle", json::<bundles::BundleJson>("the bundle as it is now").with_example(bundles::bundle_example), || patch(bundles::switch_bundle))
        .about("The tools of a disabled bundle are not offered, and nothing in it can be added or changed.")
        .body_like::<bundles::SwitchBody>(bundles::switch_example)
        .refuses(&[bundles::UNKNOWN, bundles::GOING, bundles::LOCKED]).stores(),
    operation(Delete, Operate, Bundles, "deleteBundle", "deletes a bundle without tools", json::<bundles::BundleJson>("the bundle with `softDeletedAt`").with_example(bundles::bundle_example), || delete(bundles::delete_bundle))
        .about("It is removed for good after two days, if it is still empty then.")
        .refuses(&[bundles::UNKNOWN, bundles::READ_ONLY, bundles::IN_THE_WAY, bundles::LOCKED]).stores(),
];

/// Of one version of a tool.
#[rustfmt::skip]
pub(in crate::server) const STORED_TOOL_OPERATIONS: &[OperationSpec] = &[
    operation(Get, Read, Bundles, "getStoredTool", "one version of a stored tool", json::<bundles::StoredToolJson>("the whole document, with what was counted of its calls").with_example(bundles::tool_example), || get(bundles::get_tool))
        .refuses(&[bundles::UNKNOWN, bundles::GOING]),
    operation(Put, Operate, Bundles, "putStoredTool", "adds a version of a tool", json::<bundles::StoredToolJson>("the tool").status(201).with_example(bundles::tool_example), || put(bundles::put_tool))
        .about("What is there already is never replaced: use another version.")
        .body_like::<bundles::ToolBody>(bundles::tool_put_example)
        .refuses(&[bundles::UNKNOWN, bundles::READ_ONLY, bundles::IN_THE_WAY, bundles::LOCKED]).stores(),
    operation(Patch, Operate, Bundles, "switchStoredTool", "enables or disables a version of a tool", json::<bundles::StoredToolJson>("the tool as it is now").with_example(bundles::tool_example), || patch(bundles::switch_tool))
        .body_like::<bundles::SwitchBody>(bundles::switch_example)
        .refuses(&[bundles::UNKNOWN, bundles::READ_ONLY, bundles::GOING, bundles::LOCKED]).stores(),
    operation(Delete, Operate, Bundles, "deleteStoredTool", "removes a version of a tool for good", bundles::REMOVED, || delete(bundles::delete_tool))
        .refuses(&[bundles::UNKNOWN, bundles::READ_ONLY, bundles::GOING, bundles::LOCKED]).stores(),
];

/// Of the call of a tool.
#[rustfmt::skip]
pub(in crate::server) const INVOKE_OPERATIONS: &[OperationSpec] = &[
    operation(Post, Call, Bundles, "invokeStoredTool", "calls a version of a tool", json::<bundles::InvokedJson>("what it gave back, or why it failed").with_example(bundles::invoked_example), || post(bundles::invoke))
        .about("As every other call. A call that was not made is answered with `ok: false` and a status that says why: 400 for arguments that do not fit, 403, 429 or 503.")
        .body_like::<bundles::InvokeBody>(bundles::invoke_example)
        .also(&[json::<bundles::InvokedJson>("it waits for approval: `error` names the id").status(202).with_example(bundles::invoked_example)])
        .refuses(&[bundles::UNKNOWN, bundles::GOING]),
];

/// Of the list of all stored tools.
#[rustfmt::skip]
pub(in crate::server) const STORED_TOOL_LIST_OPERATIONS: &[OperationSpec] = &[
    operation(Get, Read, Bundles, "listStoredTools", "all stored tools", json::<bundles::ToolListJson>("one page of them, by bundle, slug and version").with_example(bundles::tool_list_example), || get(bundles::list_tools))
        .query(bundles::TOOL_FILTERS),
];

/// Of the search over them.
#[rustfmt::skip]
pub(in crate::server) const STORED_TOOL_SEARCH_OPERATIONS: &[OperationSpec] = &[
    operation(Get, Read, Bundles, "searchStoredTools", "the stored tools that fit a text best", json::<bundles::ToolListJson>("one page of them, the best first").with_example(bundles::tool_list_example), || get(bundles::search_tools))
        .query(bundles::SEARCH_PARAMS),
];
