//! What the routes of bundles take and answer, as the table of routes has it for all others. Each
//! line is one property of an operation.

use axum::routing::{delete, get, patch, post, put};

use super::archives::{ARCHIVE_HEADERS, IMPORT_PARAMS, ZIP, export_bundle, import_bundle};
use super::bundle_json::{
    BundleBody, BundleJson, BundleListJson, ImportedBundleJson, InvokeBody, InvokedJson,
    StoredToolJson, SwitchBody, ToolBody, ToolListJson, bundle_example, bundle_list_example,
    bundle_put_example, imported_example, invoke_example, invoked_example, switch_example,
    tool_example, tool_list_example, tool_put_example,
};
use super::handlers::{
    MOVED, REMOVED, delete_bundle, delete_tool, get_tool, list_bundles, list_tools, moved_list,
    moved_search, put_bundle, put_tool, restore_bundle, search_tools, switch_bundle, switch_tool,
};
use super::invoke::invoke;
use super::lists::{BUNDLE_FILTERS, TOOL_FILTERS};
use super::refusals::{
    ARCHIVES_BUSY, BAD_ARCHIVE, GOING, IN_THE_WAY, LOCKED, NO_FILES, NOT_ZIP, READ_ONLY, TOO_LARGE,
    UNKNOWN,
};
use super::search::SEARCH_PARAMS;
use crate::bundles::archive::ARCHIVE_MAX;
use crate::server::auth::Right::{Call, Operate, Read};
use crate::server::openapi::Tag::Bundles;
use crate::server::openapi::Verb::{Delete, Get, Patch, Post, Put};
use crate::server::openapi::{OperationSpec, file, json, operation};

/// Of the list of bundles.
#[rustfmt::skip]
pub(in crate::server) const BUNDLE_LIST_OPERATIONS: &[OperationSpec] = &[
    operation(Get, Read, Bundles, "listBundles", "the bundles of stored tools", json::<BundleListJson>("one page of them, in the order in which they were made").with_example(bundle_list_example), || get(list_bundles))
        .query(BUNDLE_FILTERS),
];

/// Of one bundle.
#[rustfmt::skip]
pub(in crate::server) const BUNDLE_OPERATIONS: &[OperationSpec] = &[
    operation(Put, Operate, Bundles, "putBundle", "adds a bundle, or replaces what is said about it", json::<BundleJson>("the bundle as it is now").with_example(bundle_example), || put(put_bundle))
        .body_like::<BundleBody>(bundle_put_example)
        .also(&[json::<BundleJson>("it is new").status(201).with_example(bundle_example)])
        .refuses(&[UNKNOWN, READ_ONLY, GOING, LOCKED]).stores(),
    operation(Patch, Operate, Bundles, "switchBundle", "enables or disables a bundle", json::<BundleJson>("the bundle as it is now").with_example(bundle_example), || patch(switch_bundle))
        .about("The tools of a disabled bundle are not offered, and nothing in it can be added or changed.")
        .body_like::<SwitchBody>(switch_example)
        .refuses(&[UNKNOWN, GOING, LOCKED]).stores(),
    operation(Delete, Operate, Bundles, "deleteBundle", "deletes a bundle without tools", json::<BundleJson>("the bundle with `softDeletedAt`").with_example(bundle_example), || delete(delete_bundle))
        .about("It is removed for good after two days, if it is still empty then.")
        .refuses(&[UNKNOWN, READ_ONLY, IN_THE_WAY, LOCKED]).stores(),
];

/// Of a bundle that is deleted.
#[rustfmt::skip]
pub(in crate::server) const RESTORE_OPERATIONS: &[OperationSpec] = &[
    operation(Post, Operate, Bundles, "restoreBundle", "takes back that a bundle was deleted", json::<BundleJson>("the bundle as it is now").with_example(bundle_example), || post(restore_bundle))
        .about("A deleted bundle is there for two days. One that is not deleted stays as it is.")
        .refuses(&[UNKNOWN, LOCKED]).stores(),
];

/// Of a bundle as an archive.
#[rustfmt::skip]
pub(in crate::server) const EXPORT_OPERATIONS: &[OperationSpec] = &[
    operation(Get, Read, Bundles, "exportBundle", "a bundle with its tools as an archive", file(ZIP, "a ZIP with `bundle.json` and the files of the tools").headers(ARCHIVE_HEADERS), || get(export_bundle))
        .about("A disabled bundle is exported as such. Each member of a file is in it, also one that is not known here.")
        .refuses(&[NO_FILES, UNKNOWN, GOING, ARCHIVES_BUSY]),
];

/// Of the archives that come in.
#[rustfmt::skip]
pub(in crate::server) const IMPORT_OPERATIONS: &[OperationSpec] = &[
    operation(Post, Operate, Bundles, "importBundle", "stores the bundle of an archive: all of it or none", json::<ImportedBundleJson>("the bundle was there before, and has the tools of the archive now").with_example(imported_example), || post(import_bundle))
        .about("Ids and times are those of the archive, unless it comes in as a new bundle. A disabled bundle comes in disabled. \
                A bundle that is there gets the tools, and what the archive says about it.")
        .query(IMPORT_PARAMS)
        .takes_file(ZIP, ARCHIVE_MAX)
        .also(&[json::<ImportedBundleJson>("the bundle is new").status(201).with_example(imported_example)])
        .refuses(&[BAD_ARCHIVE, READ_ONLY, UNKNOWN, IN_THE_WAY, TOO_LARGE, NOT_ZIP, ARCHIVES_BUSY]).stores(),
];

/// Of one version of a tool.
#[rustfmt::skip]
pub(in crate::server) const STORED_TOOL_OPERATIONS: &[OperationSpec] = &[
    operation(Get, Read, Bundles, "getStoredTool", "one version of a stored tool", json::<StoredToolJson>("the whole document, with what was counted of its calls").with_example(tool_example), || get(get_tool))
        .refuses(&[UNKNOWN, GOING]),
    operation(Put, Operate, Bundles, "putStoredTool", "adds a version of a tool", json::<StoredToolJson>("the tool").status(201).with_example(tool_example), || put(put_tool))
        .about("What is there already is never replaced: use another version.")
        .body_like::<ToolBody>(tool_put_example)
        .refuses(&[UNKNOWN, READ_ONLY, IN_THE_WAY, LOCKED]).stores(),
    operation(Patch, Operate, Bundles, "switchStoredTool", "enables or disables a version of a tool", json::<StoredToolJson>("the tool as it is now").with_example(tool_example), || patch(switch_tool))
        .body_like::<SwitchBody>(switch_example)
        .refuses(&[UNKNOWN, READ_ONLY, GOING, LOCKED]).stores(),
    operation(Delete, Operate, Bundles, "deleteStoredTool", "removes a version of a tool for good", REMOVED, || delete(delete_tool))
        .refuses(&[UNKNOWN, READ_ONLY, GOING, LOCKED]).stores(),
];

/// Of the call of a tool.
#[rustfmt::skip]
pub(in crate::server) const INVOKE_OPERATIONS: &[OperationSpec] = &[
    operation(Post, Call, Bundles, "invokeStoredTool", "calls a version of a tool", json::<InvokedJson<'_>>("what it gave back, or why it failed").with_example(invoked_example), || post(invoke))
        .about("As every other call. A call that was not made is answered with `ok: false` and a status that says why: 400 for arguments that do not fit, 403, 429 or 503.")
        .body_like::<InvokeBody<'_>>(invoke_example)
        .also(&[json::<InvokedJson<'_>>("it waits for approval: `error` names the id").status(202).with_example(invoked_example)])
        .refuses(&[UNKNOWN, GOING]),
];

/// Of the list of all stored tools.
#[rustfmt::skip]
pub(in crate::server) const STORED_TOOL_LIST_OPERATIONS: &[OperationSpec] = &[
    operation(Get, Read, Bundles, "listStoredTools", "all stored tools", json::<ToolListJson>("one page of them, by bundle, slug and version").with_example(tool_list_example), || get(list_tools))
        .query(TOOL_FILTERS),
];

/// Of the search over them.
#[rustfmt::skip]
pub(in crate::server) const STORED_TOOL_SEARCH_OPERATIONS: &[OperationSpec] = &[
    operation(Get, Read, Bundles, "searchStoredTools", "the stored tools that fit a text best", json::<ToolListJson>("one page of them, the best first").with_example(tool_list_example), || get(search_tools))
        .query(SEARCH_PARAMS),
];

/// Of the list where the document of stored tools has it.
#[rustfmt::skip]
pub(in crate::server) const MOVED_LIST_OPERATIONS: &[OperationSpec] = &[
    operation(Get, Read, Bundles, "findStoredTools", "leads to the list of all stored tools", MOVED, || get(moved_list))
        .query(TOOL_FILTERS),
];

/// Of the search where the document of stored tools has it.
#[rustfmt::skip]
pub(in crate::server) const MOVED_SEARCH_OPERATIONS: &[OperationSpec] = &[
    operation(Get, Read, Bundles, "findStoredToolSearch", "leads to the search over all stored tools", MOVED, || get(moved_search))
        .query(SEARCH_PARAMS),
];
