//! What every protocol does: one conditional request for its manifest, and reading what came where that holds nobody up.
//!
//! Never here: what a document means.

use bytes::Bytes;
use http::StatusCode;

use super::{Known, ListError};
use crate::transports::http::{Freshness, Upstream};

/// Bytes of a body (of a manifest, or of a call's answer) that is decoded on the thread that received it: at most two milliseconds even in the
/// slowest spelling, while most manifests take a tenth of one. A larger one goes to the blocking pool.
const AT_ONCE: usize = 256 * 1024;

/// What came of a request for a manifest.
pub(super) enum Fetched {
    /// The known one still stands (a 304).
    Unchanged(Freshness),
    /// A document.
    Document(Bytes, Freshness),
}

/// Asks for the manifest at `path`, conditionally with `known`.
pub(super) async fn fetch(upstream: &Upstream, path: &str, known: Option<&Known>) -> Result<Fetched, ListError> {
    let answer = upstream.get(path, known.map(|known| &known.validators)).await?;
    let freshness = upstream.freshness(&answer);
    match (answer.head.status, known) {
        (StatusCode::NOT_MODIFIED, Some(_)) => Ok(Fetched::Unchanged(freshness)),
        (StatusCode::NOT_MODIFIED, None) => {
            Err(ListError::Malformed(format!("{path} answered 304 to a request without conditions")))
        }
        _ => Ok(Fetched::Document(answer.body, freshness)),
    }
}

/// Reads something of so many bytes where it holds nobody up.
pub(super) async fn read<T: Send + 'static>(
    upstream: &Upstream,
    bytes: usize,
    work: impl Fn() -> T + Clone + Send + 'static,
) -> T {
    if bytes <= AT_ONCE { work() } else { upstream.tasks().off_thread(work).await }
}
