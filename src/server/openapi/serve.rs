//! `GET /openapi.json`: the description of the API, built once.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use crate::server::http::content_coding;
use crate::server::http::error::Problem;
use crate::server::http::query::NoQuery;
use crate::server::http::response_cache::CachedResponse;
use crate::server::openapi::document::document;
use crate::server::{SharedState, routes};
use crate::views::Coding;

/// The description as a tree and as a body in every coding.
struct EncodedDocument {
    document: Value,
    coded: Vec<(Coding, CachedResponse)>,
}

static DESCRIPTION: LazyLock<EncodedDocument> = LazyLock::new(|| {
    let document = document(routes::ROUTES);
    let plain = document.to_string().into_bytes();
    let coded = |coding| Some((coding, coded(&plain, coding)?));
    EncodedDocument {
        coded: Coding::ALL.into_iter().filter_map(coded).collect(),
        document,
    }
});

/// The description as a tree, for the page that shows it.
pub(in crate::server) fn api_document() -> &'static Value {
    &DESCRIPTION.document
}

/// `GET /openapi.json`.
pub(in crate::server) async fn serve(
    State(shared): State<SharedState>,
    _: NoQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // Building and compressing it takes too long for an async thread.
    let made = shared.tasks.off_thread(|| &DESCRIPTION.coded).await;
    let wanted = content_coding::choose(&headers);
    let ready = made
        .iter()
        .find(|(coding, _)| *coding == wanted)
        .or_else(|| made.last());
    let (_, ready) = ready.ok_or_else(|| Problem::internal(&"the description has no coding"))?;
    Ok(ready.answer(&headers).map(Body::new))
}

/// The body in a coding with its headers; `None` if compressing fails.
fn coded(plain: &[u8], coding: Coding) -> Option<CachedResponse> {
    let body = Bytes::from(coding.encode(plain).ok()?);
    let etag =
        HeaderValue::try_from(format!("\"{:032x}-{}\"", xxh3_128(plain), coding.as_str())).ok()?;
    let mut known = HeaderMap::new();
    known.insert(ETAG, etag.clone());
    known.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    known.insert(VARY, HeaderValue::from_static("accept-encoding"));
    let mut found = known.clone();
    found.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if coding != Coding::Identity {
        found.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.as_str()));
    }
    let reservation = Arc::default();
    Some(CachedResponse {
        body,
        etag,
        ok_headers: found,
        not_modified_headers: known,
        reservation,
    })
}
