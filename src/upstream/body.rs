//! Reading bodies within limits.
//!
//! The limit counts bytes after content decoding, so that a small answer cannot become a large one.

use bytes::Bytes;
use reqwest::Response;

/// Why a body was not read to its end.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It is, or says it is, larger than allowed.
    TooLarge,
    /// The connection broke, or the content coding is damaged.
    Broken(reqwest::Error),
}

/// Reads the whole body, at most `limit` decoded bytes; what comes after is not read.
pub(crate) async fn read(mut response: Response, limit: usize) -> Result<Bytes, BodyError> {
    // Present only when no content coding applies, so it speaks of the same bytes as the limit (RFC 9110 section 8.6).
    let announced = response.content_length().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if announced.is_some_and(|length| length > limit) {
        return Err(BodyError::TooLarge);
    }
    let mut body = Vec::with_capacity(announced.unwrap_or_default());
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        if chunk.len() > limit - body.len() {
            return Err(BodyError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    // Schemas are kept as slices of the body: growth left over from reading must not stay alive with them.
    Ok(Bytes::from(body.into_boxed_slice()))
}
