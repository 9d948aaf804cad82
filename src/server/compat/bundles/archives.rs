//! `GET /tools/bundles/{bundleID}/archive` and `POST /tools/bundles/archive`: bundles as ZIP
//! archives.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderName, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::form_urlencoded;

use super::bundle_json::{self, ImportedBundleJson};
use super::path_names::bundle_id;
use crate::bundles::store::PutOutcome;
use crate::bundles::{BundleError, ExportedBundle, Slug};
use crate::protocols::bundle::left_out;
use crate::server::SharedState;
use crate::server::api::shared_json;
use crate::server::http::body::ZipBody;
use crate::server::http::error::Problem;
use crate::server::http::next_step::NextStep;
use crate::server::http::params::{Param, ParamType, once};
use crate::server::http::query::{NoQuery, QueryParams};

/// The media type of archives.
pub(super) const ZIP: &str = "application/zip";
/// How many tools are in an archive.
const TOOLS: HeaderName = HeaderName::from_static("callsheet-tools");
/// The headers of an archive.
pub(super) const ARCHIVE_HEADERS: &[(&str, &str)] = &[
    (
        "content-disposition",
        "The name of the file, which is the slug of the bundle.",
    ),
    ("callsheet-tools", "How many tools are in it."),
];
/// The parameters of an import.
pub(super) const IMPORT_PARAMS: &[Param] = &[once("new").takes(ParamType::Flag).about(
    "Store it as a new bundle, with ids and times of its own.",
    "true",
)];

/// Archives that are made or stored at once. Each is in memory, packed and unpacked.
const AT_ONCE: usize = 2;

/// Bounds how many archives are made or stored at once.
#[derive(Debug)]
pub(in crate::server) struct ArchiveLimit(Arc<Semaphore>);

impl Default for ArchiveLimit {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

/// Lets a request make or store an archive. It stands before the body, which is not read without
/// it.
pub(super) struct ArchivePermit(OwnedSemaphorePermit);

impl FromRequestParts<SharedState> for ArchivePermit {
    type Rejection = Problem;

    async fn from_request_parts(_: &mut Parts, shared: &SharedState) -> Result<Self, Problem> {
        Arc::clone(&shared.archives.0)
            .try_acquire_owned()
            .map(Self)
            .map_err(|_| busy())
    }
}

/// 503: other archives are in the way.
pub(super) fn busy() -> Problem {
    Problem::busy("other archives of bundles are being made or stored").and_next("try again soon")
}

/// `GET /tools/bundles/{bundleID}/archive`.
pub(super) async fn export_bundle(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
    permit: ArchivePermit,
) -> Result<Response, Problem> {
    let id = bundle_id(&id)?;
    let bundles = shared.bundles.clone();
    // A client that goes away does not let another one begin while the work goes on.
    let exported = shared.tasks.run_to_completion(async move {
        let _permit = permit.0;
        bundles.export(id).await
    });
    let ExportedBundle {
        slug,
        tools,
        archive,
    } = exported.await?;
    let headers = [
        (CONTENT_TYPE, ZIP.to_owned()),
        (CONTENT_DISPOSITION, disposition(&slug)),
        (TOOLS, tools.to_string()),
        (CACHE_CONTROL, "no-store".to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    Ok((headers, archive).into_response())
}

/// `POST /tools/bundles/archive`: stores what is in the archive, or none of it.
pub(super) async fn import_bundle(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    permit: ArchivePermit,
    ZipBody(archive): ZipBody,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), IMPORT_PARAMS)?;
    let as_new = query.flag("new")?;
    let bundles = shared.bundles.clone();
    let imported = shared.tasks.run_to_completion(async move {
        let _permit = permit.0;
        bundles.import(archive, as_new).await
    });
    let imported = imported.await.map_err(refused)?;
    let set = shared.bundles.set();
    let stored = set
        .get(imported.id)
        .ok_or(BundleError::UnknownBundle(imported.id))?;
    let status = if imported.outcome == PutOutcome::Created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let left_out = stored
        .tools
        .iter()
        .filter(|tool| left_out(tool, &shared.bundles).is_some())
        .count();
    let bundle = bundle_json::bundle(stored)?;
    let answer = shared_json::json(&ImportedBundleJson {
        bundle,
        tools: imported.tools,
        left_out,
    })?;
    Ok((status, answer).into_response())
}

/// A refusal, with the next step of an import.
fn refused(error: BundleError) -> Problem {
    match error {
        BundleError::BeingDeleted(_) => {
            let new = NextStep::parameter("new", "true");
            let next =
                format!("import it as a new bundle ({new}), or wait until it is removed for good");
            Problem::from(error).and_next(&next).with_next(new)
        }
        error => error.into(),
    }
}

/// The name of the file (RFC 6266): a slug of other letters than ASCII is written as RFC 8187 says.
fn disposition(slug: &Slug) -> String {
    let slug = slug.as_str();
    if slug.is_ascii() {
        return format!("attachment; filename=\"{slug}.zip\"");
    }
    let encoded: String = form_urlencoded::byte_serialize(slug.as_bytes()).collect();
    format!("attachment; filename=\"bundle.zip\"; filename*=UTF-8''{encoded}.zip")
}
