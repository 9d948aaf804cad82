//! Reading bodies within limits.
//!
//! The limit counts bytes after content decoding, so that a small answer cannot become a large one.

use std::pin::pin;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body;

/// Why a body was not read to its end.
#[derive(Debug)]
pub(crate) enum BodyError<E> {
    /// It is, or says it is, larger than allowed.
    TooLarge,
    /// The connection broke, or the content coding is damaged.
    Broken(E),
}

/// Reads the whole body, at most `limit` decoded bytes; what comes after is not read.
pub(crate) async fn read<B: Body<Data = Bytes>>(
    body: B,
    limit: usize,
) -> Result<Bytes, BodyError<B::Error>> {
    let mut body = pin!(body);
    // Present only when no content coding applies, so it speaks of the same bytes as the limit (RFC
    // 9110 section 8.6).
    let announced = body
        .size_hint()
        .exact()
        .map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if announced.is_some_and(|length| length > limit) {
        return Err(BodyError::TooLarge);
    }
    let mut whole = Vec::with_capacity(announced.unwrap_or_default());
    while let Some(frame) = body.frame().await {
        // Trailers are not ours.
        let Ok(chunk) = frame.map_err(BodyError::Broken)?.into_data() else {
            continue;
        };
        if chunk.len() > limit - whole.len() {
            return Err(BodyError::TooLarge);
        }
        whole.extend_from_slice(&chunk);
        // Megabytes may be packed in one piece that arrived. Without this they would be unpacked in
        // one go, and other tasks of this thread would wait.
        tokio::task::coop::consume_budget().await;
    }
    // Schemas are kept as slices of the body: growth left over from reading must not stay alive
    // with them.
    Ok(Bytes::from(whole.into_boxed_slice()))
}
