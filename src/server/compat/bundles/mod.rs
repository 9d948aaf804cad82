//! `/tools`: bundles and stored tools, as their document describes them.
//!
//! Reads are answered from what the store has read, changes are answered when they are durable, and
//! calls go the way of every other call.

mod bundle_json;
mod invoke;
mod lists;
mod operations;
mod page_token;
mod search;

use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::Value;
use uuid::Uuid;

use crate::bundles::store::Written;
use crate::bundles::{BundleChange, BundleError, Slug, StoredBundle, ToolContent, ToolVersion};
use crate::server::api::shared_json;
use crate::server::http::body::JsonBody;
use crate::server::http::error::{Problem, excerpt};
use crate::server::http::params::{Param, once};
use crate::server::http::query::NoQuery;
use crate::server::openapi::{RefusalSpec, ResponseSpec, refusal};
use crate::server::{ServerState, SharedState};
use crate::state::StateErrorKind;

use bundle_json::{
    BundleBody, BundleJson, BundleListJson, InvokeBody, InvokedJson, StoredToolJson, SwitchBody, ToolBody,
    ToolListJson, bundle_example, bundle_list_example, bundle_put_example, invoke_example, invoked_example,
    switch_example, tool_example, tool_list_example, tool_put_example,
};
use invoke::invoke;
use lists::{BUNDLE_FILTERS, TOOL_FILTERS};
pub(in crate::server) use operations::{
    BUNDLE_LIST_OPERATIONS, BUNDLE_OPERATIONS, INVOKE_OPERATIONS, STORED_TOOL_LIST_OPERATIONS, STORED_TOOL_OPERATIONS,
    STORED_TOOL_SEARCH_OPERATIONS,
};
use search::SEARCH_PARAMS;

/// A bundle in a path.
pub(in crate::server) const BUNDLE_ID: Param = once("bundleID")
    .about("The id of the bundle, a UUID of version 7.", "018faf50-b7b6-7a01-9a05-a22a6e0af101")
    .required();
/// A tool in a path.
pub(in crate::server) const TOOL_SLUG: Param =
    once("toolSlug").about("The slug of the tool: letters, digits and `-`.", "weather").required();
/// A version in a path.
pub(in crate::server) const TOOL_VERSION: Param =
    once("v").about("The version of the tool: letters, digits, `-` and dots.", "v2").required();

/// Nothing of that name.
const UNKNOWN: RefusalSpec = refusal(404, "No bundle or tool is stored under this name.");
/// Reads of a bundle that is going.
const GOING: RefusalSpec =
    refusal(409, "The bundle is being deleted.").with_example(|| BundleError::BeingDeleted(Uuid::nil()).into());
/// What cannot be changed.
const READ_ONLY: RefusalSpec =
    refusal(403, "The bundle is disabled or built in; or the request has a `Host` that is not the daemon's, or comes from a web page of another site.")
        .with_example(|| BundleError::Disabled(Uuid::nil()).into());
/// A change that what is there forbids.
const IN_THE_WAY: RefusalSpec =
    refusal(409, "The tool is there already and is unchanged, the bundle is not empty or is being deleted, or as many tools are stored as are kept.")
        .with_example(|| BundleError::NotEmpty(Uuid::nil(), 2).into());
/// Another process is at work.
const LOCKED: RefusalSpec = refusal(503, "Another process is changing the bundles, or the folder cannot be written.")
    .with_example(|| BundleError::Busy.into());
/// Removed, with no body.
const REMOVED: ResponseSpec = ResponseSpec { status: 204, about: "it is removed", content: None, headers: &[] };

/// One version of a tool, as a path names it.
type ToolPath = Path<(String, String, String)>;

/// `PUT /tools/bundles/{bundleID}`: adds a bundle, or replaces what is said about it.
async fn put_bundle(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
    body: JsonBody,
) -> Result<Response, Problem> {
    let id = bundle_id(&id)?;
    let content = BundleChange::parse(&body.0).map_err(BundleError::from)?;
    let written = shared.bundles.put_bundle(id, content).await?;
    let status = if written == Written::Created { StatusCode::CREATED } else { StatusCode::OK };
    show_bundle(&shared, id, status)
}

/// `PATCH /tools/bundles/{bundleID}` with `{isEnabled}`.
async fn switch_bundle(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
    body: JsonBody,
) -> Result<Response, Problem> {
    let id = bundle_id(&id)?;
    shared.bundles.switch_bundle(id, switch(&body)?).await?;
    show_bundle(&shared, id, StatusCode::OK)
}

/// `DELETE /tools/bundles/{bundleID}`: marks an empty bundle as deleted.
async fn delete_bundle(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let id = bundle_id(&id)?;
    shared.bundles.delete_bundle(id).await?;
    show_bundle(&shared, id, StatusCode::OK)
}

/// `GET /tools/bundles`.
async fn list_bundles(State(shared): State<SharedState>, RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    lists::bundles(&shared, raw.as_deref())
}

/// `GET /tools/tools`.
async fn list_tools(State(shared): State<SharedState>, RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    lists::tools(&shared, raw.as_deref())
}

/// `GET /tools/tools/search`.
async fn search_tools(State(shared): State<SharedState>, RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    search::answer(&shared, raw.as_deref()).await
}

/// `PUT .../tools/{toolSlug}/version/{v}`: adds a version of a tool; 409 if it is there.
async fn put_tool(
    State(shared): State<SharedState>,
    path: ToolPath,
    _: NoQuery,
    body: JsonBody,
) -> Result<Response, Problem> {
    let key = tool_key(&path)?;
    let content = ToolContent::parse(body.0).map_err(BundleError::from)?;
    shared.bundles.put_tool(key.clone(), content).await?;
    show(&shared, &key, StatusCode::CREATED)
}

/// `PATCH .../tools/{toolSlug}/version/{v}` with `{isEnabled}`.
async fn switch_tool(
    State(shared): State<SharedState>,
    path: ToolPath,
    _: NoQuery,
    body: JsonBody,
) -> Result<Response, Problem> {
    let key = tool_key(&path)?;
    shared.bundles.switch_tool(key.clone(), switch(&body)?).await?;
    show(&shared, &key, StatusCode::OK)
}

/// `DELETE .../tools/{toolSlug}/version/{v}`: removes it for good.
async fn delete_tool(State(shared): State<SharedState>, path: ToolPath, _: NoQuery) -> Result<Response, Problem> {
    shared.bundles.delete_tool(tool_key(&path)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `GET .../tools/{toolSlug}/version/{v}`.
async fn get_tool(State(shared): State<SharedState>, path: ToolPath, _: NoQuery) -> Result<Response, Problem> {
    show(&shared, &tool_key(&path)?, StatusCode::OK)
}

fn show(shared: &ServerState, key: &(Uuid, Slug, ToolVersion), status: StatusCode) -> Result<Response, Problem> {
    let (bundle, tool) = shared.bundles.tool((key.0, &key.1, &key.2))?;
    Ok(with_status(shared_json::json(&bundle_json::tool(shared, &bundle, &tool))?, status))
}

fn show_bundle(shared: &ServerState, id: Uuid, status: StatusCode) -> Result<Response, Problem> {
    let set = shared.bundles.set();
    let bundle = set.get(id).ok_or(BundleError::UnknownBundle(id))?;
    Ok(with_status(shared_json::json(&bundle_json::bundle(bundle))?, status))
}

fn with_status(mut answer: Response, status: StatusCode) -> Response {
    *answer.status_mut() = status;
    answer
}

/// `{isEnabled}` and nothing else.
fn switch(body: &JsonBody) -> Result<bool, Problem> {
    body.refuse_unknown(&["isEnabled"])?;
    let value = body.0.get("isEnabled").and_then(Value::as_bool);
    value.ok_or_else(|| Problem::bad_request("`isEnabled` is missing from the body: write `true` or `false`"))
}

/// The id of a bundle: a UUID of version 7.
fn bundle_id(text: &str) -> Result<Uuid, Problem> {
    let id = text.parse().ok().filter(|id: &Uuid| id.get_version_num() == 7);
    id.ok_or_else(|| Problem::bad_request(format!("`{}` is not a UUID of version 7", excerpt(text))))
}

fn tool_key(Path((bundle, slug, version)): &ToolPath) -> Result<(Uuid, Slug, ToolVersion), Problem> {
    let (slug, version) = (slug.parse().map_err(BundleError::from)?, version.parse().map_err(BundleError::from)?);
    Ok((bundle_id(bundle)?, slug, version))
}

/// Whether the tools of a bundle are offered at all.
fn is_offered(bundle: &StoredBundle) -> bool {
    bundle.definition.is_enabled
}

impl From<BundleError> for Problem {
    fn from(error: BundleError) -> Self {
        let told = |status: StatusCode, code: &str| Self::new(status, error.to_string()).with_member("code", code);
        match &error {
            BundleError::Off => told(StatusCode::NOT_FOUND, "bundles_off"),
            BundleError::UnknownBundle(_) => told(StatusCode::NOT_FOUND, "unknown_bundle"),
            BundleError::UnknownTool(..) => told(StatusCode::NOT_FOUND, "unknown_tool"),
            BundleError::BeingDeleted(_) => told(StatusCode::CONFLICT, "being_deleted"),
            BundleError::NotEmpty(..) => told(StatusCode::CONFLICT, "not_empty"),
            BundleError::Conflict(..) => told(StatusCode::CONFLICT, "exists"),
            BundleError::TooMany(_) => told(StatusCode::CONFLICT, "too_many"),
            BundleError::Disabled(_) => told(StatusCode::FORBIDDEN, "disabled"),
            BundleError::BuiltIn(_) => told(StatusCode::FORBIDDEN, "built_in"),
            BundleError::Invalid(wrong) => {
                told(StatusCode::BAD_REQUEST, "invalid").with_member("pointer", wrong.pointer.as_str())
            }
            BundleError::Name(_) => told(StatusCode::BAD_REQUEST, "invalid_name"),
            BundleError::Archive(_) => told(StatusCode::BAD_REQUEST, "invalid_archive"),
            BundleError::Busy => Self::busy(error.to_string()),
            BundleError::Storage { kind, .. } => {
                tracing::error!(%error, "a change of the bundles could not be stored");
                Self::storage_failed(match kind {
                    std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => StateErrorKind::Full,
                    std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                        StateErrorKind::Unwritable
                    }
                    _ => StateErrorKind::Other,
                })
            }
        }
    }
}
