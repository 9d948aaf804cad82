//! How answers are written, and their HTTP responses.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};

use crate::protocols::json_rpc::RpcError;
use crate::server::http::shared_body::SharedBody;
use crate::server::mcp::refusal::Refusal;

pub(super) const APPLICATION_JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The answer to a request.
pub(super) enum Answer {
    /// The text of the result.
    Result(Bytes),
    /// A stream of events.
    Stream(Response),
}

/// What stands before and behind the result in the answer to a request.
pub(super) fn around(id: &str) -> (String, &'static str) {
    (format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#), "}")
}

/// The answer to a request.
pub(super) fn envelope(id: &str, result: &[u8]) -> Bytes {
    let (before, behind) = around(id);
    [before.as_bytes(), result, behind.as_bytes()].concat().into()
}

/// The same as a whole response. The result is shared: a list may be large.
pub(super) fn result(id: &str, result: Bytes) -> Response {
    let (before, behind) = around(id);
    let body = SharedBody::new([before.into(), result, behind.into()]);
    (StatusCode::OK, [(CONTENT_TYPE, APPLICATION_JSON)], Body::new(body)).into_response()
}

/// The answer to a request that failed. Without an id if that could not be read.
pub(super) fn error_envelope(id: Option<&str>, error: &RpcError) -> Bytes {
    let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    let data = error.data.as_ref().map(|data| format!(r#","data":{}"#, data.get())).unwrap_or_default();
    let message = serde_json::Value::from(&*error.message);
    format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":{},"message":{message}{data}}}}}"#, error.code).into()
}

/// A message as an event of a stream. Line breaks of JSON stand between values only, so a blank
/// means the same.
pub(super) fn event(message: &[u8]) -> Bytes {
    let mut text = b"event: message\ndata: ".to_vec();
    text.extend(message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    text.extend_from_slice(b"\n\n");
    text.into()
}

/// The response for a request that is not answered.
pub(super) fn refused(id: Option<&str>, refusal: &Refusal) -> Response {
    json(refusal.status, error_envelope(id, &refusal.error))
}

/// One message as a whole response.
pub(super) fn json(status: StatusCode, body: Bytes) -> Response {
    (status, [(CONTENT_TYPE, APPLICATION_JSON)], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_one_line_of_data() {
        assert_eq!(event(b"{\n\"a\":\r1}"), &b"event: message\ndata: { \"a\": 1}\n\n"[..]);
    }
}
