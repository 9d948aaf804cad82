//! How answers are written, and their HTTP responses.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};

use crate::json::layout::in_one_line;
use crate::json::rpc::{self, RpcError};
use crate::runtime::AnswerBudget;
use crate::server::http::batch::{ResultEnvelope, single_answer};
use crate::server::http::held::with_reservation;
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
pub(super) fn result_envelope(id: &str) -> ResultEnvelope {
    let around = rpc::around_result(id);
    ResultEnvelope {
        before: around.0.into(),
        behind: around.1.into(),
    }
}

/// The answer to a request.
pub(super) fn envelope(id: &str, result: &[u8]) -> Bytes {
    let around = result_envelope(id);
    [around.before.as_bytes(), result, around.behind.as_bytes()]
        .concat()
        .into()
}

/// The same as a whole response, reserved from `budget`. The result is shared: a list may be large.
/// Without room it is an error that says so.
pub(super) fn result(id: &str, result: Bytes, budget: &AnswerBudget) -> Response {
    match single_answer(&result_envelope(id), result, budget) {
        Ok(body) => (
            StatusCode::OK,
            [(CONTENT_TYPE, APPLICATION_JSON)],
            Body::new(body),
        )
            .into_response(),
        Err(left_out) => refused(Some(id), &Refusal::left_out(left_out)),
    }
}

/// The answer to a request that failed. Without an id if that could not be read.
pub(super) fn error_envelope(id: Option<&str>, error: &RpcError) -> Bytes {
    rpc::refusal(id, error).into()
}

/// A message as an event of a stream.
pub(super) fn event(message: &[u8]) -> Bytes {
    let mut text = b"event: message\ndata: ".to_vec();
    text.extend(in_one_line(message));
    text.extend_from_slice(b"\n\n");
    text.into()
}

/// The answer to a request as the last event of a stream, reserved from `budget`. Without room it
/// is an error that says so.
pub(super) fn last_event(id: &str, message: &[u8], budget: &AnswerBudget) -> Bytes {
    let last = event(message);
    match budget.reserve(last.len()) {
        Ok(reserved) => with_reservation(last, reserved),
        Err(exceeded) => event(&error_envelope(
            Some(id),
            &Refusal::left_out(exceeded.into()).error,
        )),
    }
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
        assert_eq!(
            event(b"{\n\"a\":\r1}"),
            &b"event: message\ndata: { \"a\": 1}\n\n"[..]
        );
    }
}
