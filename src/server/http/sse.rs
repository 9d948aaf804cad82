//! Answers that are streams of server-sent events (WHATWG HTML, section 9.2): their headers and
//! their fixed lines. Knows no events.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Version};

/// The beginning of every stream: clients that reconnect by themselves wait one second.
pub(in crate::server) const FIRST: Bytes = Bytes::from_static(b"retry: 1000\n\n");
/// A comment line that keeps a stream alive.
pub(in crate::server) const ALIVE: Bytes = Bytes::from_static(b": alive\n\n");
/// Makes reverse proxies pass events on without buffering.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The answer to a request of this HTTP version whose body is this stream. Over HTTP/1 the
/// connection ends with the stream.
pub(in crate::server) fn response(
    events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
    version: Version,
) -> Response {
    let mut response = Response::new(Body::from_stream(events));
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(BUFFERING, HeaderValue::from_static("no"));
    if version < Version::HTTP_2 {
        fields.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
