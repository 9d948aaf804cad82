//! Messages of JSON-RPC as they come in: which are requests, and which session they belong to.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use serde::de::IgnoredAny;
use tokio::task::yield_now;

use crate::json::rpc::{self, RpcMessage, RpcRequest};
use crate::model::JsonText;
use crate::runtime::tasks::BodyStep;
use crate::server::http::batch::BatchAnswer;
use crate::server::mcp::answer::{
    self, APPLICATION_JSON, Answer, error_envelope, refused, result_envelope,
};
use crate::server::mcp::context::McpContext;
use crate::server::mcp::era::{RequestEra, WITH_BATCHES};
use crate::server::mcp::greeting;
use crate::server::mcp::methods;
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::sessions::{LiveSession, SESSION_ID};

/// The most messages of one batch.
const MAX_BATCH: usize = 100;

/// Answers a body. A single message drops the body before it is worked on.
pub(super) async fn receive(mut context: McpContext, body: Bytes) -> Response {
    let messages = match read(&body) {
        Ok(messages) => messages,
        Err(refusal) => return refused(None, &refusal),
    };
    if body.trim_ascii_start().starts_with(b"[") {
        context.is_batch = true;
        return match batch(&context, messages).await {
            Ok(response) => response,
            Err(refusal) => refused(None, &refusal),
        };
    }
    drop(body);
    match messages.into_iter().next() {
        Some(RpcMessage::Request(sent)) => {
            request(&context, &sent.id, &sent.method, sent.params).await
        }
        Some(other) => match without_answer(&context, other) {
            Ok(()) => StatusCode::ACCEPTED.into_response(),
            Err(refusal) => refused(None, &refusal),
        },
        None => refused(None, &Refusal::no_request("the body has no message")),
    }
}

fn read(body: &[u8]) -> Result<Vec<RpcMessage>, Refusal> {
    let text =
        std::str::from_utf8(body).map_err(|_| Refusal::unreadable("the body is not a text"))?;
    rpc::parse(text).map_err(|why| match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Refusal::no_request(why),
        Err(_) => Refusal::unreadable(why),
    })
}

/// The session that the request names.
fn session(context: &McpContext) -> Result<Arc<LiveSession>, Refusal> {
    context
        .shared
        .mcp
        .sessions
        .find(&context.headers, &context.shared.mcp.sealer)
}

/// Answers a request.
async fn request(
    context: &McpContext,
    id: &JsonText,
    method: &str,
    params: Option<JsonText>,
) -> Response {
    if !is_id(id) {
        return refused(None, &Refusal::no_request("an id is a text or a number"));
    }
    let answered = match RequestEra::of(&context.headers, method, params.as_ref()) {
        Ok(RequestEra::Modern(client)) => {
            methods::modern(context, client, id, method, params).await
        }
        Ok(RequestEra::Legacy) if method == "initialize" => {
            let (claims, result) = greeting::initialize(context, params.as_ref());
            let mut response = answer::result(id.get(), result, context.bytes.answers());
            // The characters of an id may all stand in a header.
            if let Ok(signed) = HeaderValue::try_from(claims.sign(&context.shared.mcp.sealer)) {
                response.headers_mut().insert(SESSION_ID, signed);
            }
            return response;
        }
        Ok(RequestEra::Legacy) => match session(context) {
            Ok(session) => methods::legacy(context, &session, id, method, params).await,
            Err(refusal) => Err(refusal),
        },
        Err(refusal) => Err(refusal),
    };
    match answered {
        Ok(Answer::Result(result)) => answer::result(id.get(), result, context.bytes.answers()),
        Ok(Answer::Stream(response)) => response,
        Err(refusal) => {
            let id = id.clone();
            let bytes = refusal.error.bytes();
            let tasks = &context.shared.tasks;
            tasks
                .work_on_body(BodyStep::Further, bytes, move || {
                    refused(Some(id.get()), &refusal)
                })
                .await
        }
    }
}

/// Takes a notification, or an answer to a request of the daemon.
fn without_answer(context: &McpContext, message: RpcMessage) -> Result<(), Refusal> {
    match message {
        RpcMessage::Notification { method, .. } if !method.starts_with("notifications/") => {
            Err(Refusal::no_request(format!(
                "`{}` is a request and needs an id",
                method.escape_debug()
            )))
        }
        RpcMessage::Notification { method, params } => {
            // A modern client says everything by its requests.
            if RequestEra::in_session(&context.headers, params.as_ref())? {
                methods::notified(&*session(context)?, &method, params.as_ref());
            }
            Ok(())
        }
        RpcMessage::Response { id, result } => {
            let session = session(context)?;
            if let Some(id) = id {
                session.answered(id, result);
            }
            Ok(())
        }
        RpcMessage::Request(_) => Ok(()),
    }
}

/// A batch gets the answers of its requests as one list. Streams do not fit into one.
async fn batch(context: &McpContext, messages: Vec<RpcMessage>) -> Result<Response, Refusal> {
    let session = session(context)?;
    if session.claims.revision != WITH_BATCHES {
        let why =
            format!("only the revision {WITH_BATCHES} has batches; send one message at a time");
        return Err(Refusal::no_request(why));
    }
    if messages.is_empty() || messages.len() > MAX_BATCH {
        return Err(Refusal::no_request(format!(
            "a batch has 1 to {MAX_BATCH} messages"
        )));
    }
    let mut answers = BatchAnswer::new(context.bytes.answers());
    for message in messages {
        // Other requests have their turn between two messages.
        yield_now().await;
        let (id, method, params) = match message {
            RpcMessage::Request(RpcRequest { id, method, params }) => (id, method, params),
            other => {
                without_answer(context, other)?;
                continue;
            }
        };
        if let Some(full) = answers.full() {
            let refusal = Refusal::busy(format!("{full}; this request was not run"));
            answers.add_left_out(&error_envelope(Some(id.get()), &refusal.error));
            continue;
        }
        let answer = match RequestEra::of(&context.headers, &method, params.as_ref()) {
            Ok(RequestEra::Legacy) if is_id(&id) => {
                methods::legacy(context, &session, &id, &method, params).await
            }
            Ok(_) => Err(Refusal::no_request(
                "a batch has requests of its session only, each with an id",
            )),
            Err(refusal) => Err(refusal),
        };
        add(&mut answers, &id, answer);
    }
    Ok(match answers.finish() {
        Some(body) => (
            StatusCode::OK,
            [(CONTENT_TYPE, APPLICATION_JSON)],
            Body::new(body),
        )
            .into_response(),
        None => StatusCode::ACCEPTED.into_response(),
    })
}

/// Adds the answer to a request of a batch.
fn add(answers: &mut BatchAnswer, id: &JsonText, answer: Result<Answer, Refusal>) {
    let added = match answer {
        Ok(Answer::Result(result)) => answers.add(&result_envelope(id.get()), &result),
        Ok(Answer::Stream(_)) => return,
        Err(refusal) => answers.add_error(&error_envelope(Some(id.get()), &refusal.error)),
    };
    if let Err(full) = added {
        let refusal = Refusal::busy(format!(
            "{full}; this request was run, its answer is left out"
        ));
        answers.add_left_out(&error_envelope(Some(id.get()), &refusal.error));
    }
}

/// Whether this may be the id of a request.
fn is_id(id: &JsonText) -> bool {
    matches!(id.get().as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_json_and_no_message_is_told_from_one_that_is_no_json() {
        let code = |body: &[u8]| read(body).unwrap_err().error.code;
        for (body, expected) in [
            (&b""[..], -32_700),
            (b"{", -32_700),
            (b"\xff", -32_700),
            (b"\"text\"", -32_600),
            (b"{}", -32_600),
            (b"[7]", -32_600),
            (br#"{"id":1,"method":7}"#, -32_600),
        ] {
            assert_eq!(code(body), expected, "{body:?}");
        }
    }
}
