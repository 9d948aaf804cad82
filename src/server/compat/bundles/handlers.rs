//! The handlers of bundles and stored tools.

use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::LOCATION;
use uuid::Uuid;

use super::bundle_json::{BundleBody, SwitchBody, ToolBody};
use super::path_names::{ToolPath, bundle_id, tool_key};
use super::{bundle_json, lists, search};
use crate::bundles::store::PutOutcome;
use crate::bundles::{BundleChange, BundleError, Slug, ToolContent, ToolVersion};
use crate::server::api::shared_json;
use crate::server::http::error::Problem;
use crate::server::http::query::NoQuery;
use crate::server::http::typed_body::ApiJson;
use crate::server::openapi::ResponseSpec;
use crate::server::{ServerState, SharedState};

/// Removed, with no body.
pub(super) const REMOVED: ResponseSpec = ResponseSpec {
    status: 204,
    about: "it is removed",
    content: None,
    headers: &[],
};

/// `PUT /tools/bundles/{bundleID}`: adds a bundle, or replaces what is said about it.
pub(super) async fn put_bundle(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
    ApiJson(body): ApiJson<BundleBody>,
) -> Result<Response, Problem> {
    let id = bundle_id(&id)?;
    let content = BundleChange::parse(&body.0).map_err(BundleError::from)?;
    let written = shared.bundles.put_bundle(id, content).await?;
    let status = if written == PutOutcome::Created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    show_bundle(&shared, id, status)
}

/// `PATCH /tools/bundles/{bundleID}` with `{isEnabled}`.
pub(super) async fn switch_bundle(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
    ApiJson(body): ApiJson<SwitchBody>,
) -> Result<Response, Problem> {
    let id = bundle_id(&id)?;
    shared.bundles.switch_bundle(id, body.is_enabled).await?;
    show_bundle(&shared, id, StatusCode::OK)
}

/// `POST /tools/bundles/{bundleID}/restore`: takes back that it was deleted.
pub(super) async fn restore_bundle(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let id = bundle_id(&id)?;
    shared.bundles.restore_bundle(id).await?;
    show_bundle(&shared, id, StatusCode::OK)
}

/// `DELETE /tools/bundles/{bundleID}`: marks an empty bundle as deleted.
pub(super) async fn delete_bundle(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let id = bundle_id(&id)?;
    shared.bundles.delete_bundle(id).await?;
    show_bundle(&shared, id, StatusCode::OK)
}

/// Another address, with the same query.
pub(super) const MOVED: ResponseSpec = ResponseSpec {
    status: 308,
    about: "it is at another address, with the same query",
    content: None,
    headers: &[("Location", "Where it is.")],
};

/// `GET /tools`, as the document of stored tools writes it. What the list refuses is refused here.
pub(super) async fn moved_list(RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    lists::check(raw.as_deref())?;
    Ok(moved("/tools/tools", raw))
}

/// `GET /tools/search`, in the same way.
pub(super) async fn moved_search(RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    search::check(raw.as_deref())?;
    Ok(moved("/tools/tools/search", raw))
}

fn moved(to: &str, raw: Option<String>) -> Response {
    let to = raw.map_or_else(|| to.to_owned(), |query| format!("{to}?{query}"));
    (StatusCode::PERMANENT_REDIRECT, [(LOCATION, to)]).into_response()
}

/// `GET /tools/bundles`.
pub(super) async fn list_bundles(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    lists::bundles(&shared, raw.as_deref())
}

/// `GET /tools/tools`.
pub(super) async fn list_tools(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    lists::tools(&shared, raw.as_deref())
}

/// `GET /tools/tools/search`.
pub(super) async fn search_tools(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    search::answer(&shared, raw.as_deref()).await
}

/// `PUT .../tools/{toolSlug}/version/{v}`: adds a version of a tool; 409 if it is there.
pub(super) async fn put_tool(
    State(shared): State<SharedState>,
    path: ToolPath,
    _: NoQuery,
    ApiJson(body): ApiJson<ToolBody>,
) -> Result<Response, Problem> {
    let key = tool_key(&path)?;
    let content = ToolContent::parse(body.0).map_err(BundleError::from)?;
    shared.bundles.put_tool(key.clone(), content).await?;
    show(&shared, &key, StatusCode::CREATED)
}

/// `PATCH .../tools/{toolSlug}/version/{v}` with `{isEnabled}`.
pub(super) async fn switch_tool(
    State(shared): State<SharedState>,
    path: ToolPath,
    _: NoQuery,
    ApiJson(body): ApiJson<SwitchBody>,
) -> Result<Response, Problem> {
    let key = tool_key(&path)?;
    shared
        .bundles
        .switch_tool(key.clone(), body.is_enabled)
        .await?;
    show(&shared, &key, StatusCode::OK)
}

/// `DELETE .../tools/{toolSlug}/version/{v}`: removes it for good.
pub(super) async fn delete_tool(
    State(shared): State<SharedState>,
    path: ToolPath,
    _: NoQuery,
) -> Result<Response, Problem> {
    shared.bundles.delete_tool(tool_key(&path)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `GET .../tools/{toolSlug}/version/{v}`.
pub(super) async fn get_tool(
    State(shared): State<SharedState>,
    path: ToolPath,
    _: NoQuery,
) -> Result<Response, Problem> {
    show(&shared, &tool_key(&path)?, StatusCode::OK)
}

fn show(
    shared: &ServerState,
    key: &(Uuid, Slug, ToolVersion),
    status: StatusCode,
) -> Result<Response, Problem> {
    let (bundle, tool) = shared.bundles.tool((key.0, &key.1, &key.2))?;
    let snapshot = shared.reader.snapshot();
    Ok(with_status(
        shared_json::json(&bundle_json::tool(
            shared,
            &snapshot.catalog,
            &bundle,
            &tool,
        )?)?,
        status,
    ))
}

fn show_bundle(shared: &ServerState, id: Uuid, status: StatusCode) -> Result<Response, Problem> {
    let set = shared.bundles.set();
    let bundle = set.get(id).ok_or(BundleError::UnknownBundle(id))?;
    Ok(with_status(
        shared_json::json(&bundle_json::bundle(bundle)?)?,
        status,
    ))
}

fn with_status(mut answer: Response, status: StatusCode) -> Response {
    *answer.status_mut() = status;
    answer
}
