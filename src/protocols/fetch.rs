//! What every protocol over HTTP does: one conditional request for its manifest.
//!
//! Never here: what a document means.

use bytes::Bytes;
use http::StatusCode;

use super::{ConnectError, ListError, ListRequest, Validity};
use crate::model::Target;
use crate::transports::Transports;
use crate::transports::http::{HttpFreshness, HttpValidators, Upstream};

/// What came of a request for a manifest.
pub(super) enum Fetched {
    /// The known one still stands (a 304).
    Unchanged(Validity),
    /// A document.
    Document(Bytes, Validity),
}

/// The way to a target that speaks HTTP; no other one is of a protocol over HTTP.
pub(super) fn upstream(target: &Target, transports: &Transports) -> Result<Upstream, ConnectError> {
    match target {
        Target::Http(target) => Ok(transports.http(target)?),
        Target::Stdio(_) | Target::InProcess(_) | Target::Bundle(_) => Err(
            ConnectError::NotThisProtocol(format!("{target} does not speak HTTP")),
        ),
    }
}

/// Requests the manifest at `path`, conditionally where something is known.
pub(super) async fn fetch(
    upstream: &Upstream,
    path: &str,
    request: &ListRequest,
) -> Result<Fetched, ListError> {
    let stored = request
        .known
        .as_ref()
        .and_then(|known| known.validators.get::<HttpFreshness>());
    let upstream = upstream.clone().with_max_body(request.max_body);
    let answer = upstream
        .get(
            path,
            stored.map(|stored: &HttpFreshness| -> &HttpValidators { &stored.validators }),
        )
        .await?;
    let freshness = upstream.freshness(&answer);
    match (answer.head.status, stored) {
        // What the 304 left out stays as the stored answer said it.
        (StatusCode::NOT_MODIFIED, Some(stored)) => {
            Ok(Fetched::Unchanged(freshness.renewing(stored).into()))
        }
        (StatusCode::NOT_MODIFIED, None) => Err(ListError::Malformed(format!(
            "{path} answered 304 to a request without conditions"
        ))),
        _ => Ok(Fetched::Document(answer.body, freshness.into())),
    }
}
