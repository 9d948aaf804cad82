//! One request and its answer.

use std::time::Duration;

use bytes::Bytes;
use http::header::HeaderMap;

use crate::json::rpc::{self, RpcError, RpcMessage};
use crate::model::JsonText;
use crate::protocols::{Call, CallError, ListError, ListRequest, Outcome};
use crate::transports::Transports;
use crate::transports::http::{CallLimits, Upstream};

/// How long a call may take when neither the list nor the configuration says so.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The id of each request: a connection carries one at a time.
const REQUEST: u64 = 1;

/// The statuses with which some servers send errors of the protocol.
const ERROR_STATUSES: [u16; 3] = [400, 404, 500];

/// The address that takes the messages.
pub(super) struct Exchange {
    pub(super) upstream: Upstream,
    /// Below the base address.
    pub(super) path: &'static str,
}

/// Why a request has no result.
pub(super) enum RequestFailure {
    /// The server answered with an error.
    Refused(RpcError),
    Unusable(ListError),
}

impl Exchange {
    /// Sends a request without parameters.
    pub(super) async fn request(
        &self,
        method: &str,
        request: &ListRequest,
        transports: &Transports,
    ) -> Result<JsonText, RequestFailure> {
        let limits = CallLimits {
            timeout: transports.poll_timeout(),
            max_body: request
                .max_body
                .unwrap_or(usize::MAX)
                .min(transports.max_body()),
            headers: HeaderMap::new(),
            repeatable: true,
        };
        let sent = self
            .upstream
            .post(self.path, rpc::request(REQUEST, method, "{}"), &limits)
            .await;
        let answer = sent.map_err(|failed| RequestFailure::Unusable(failed.error.into()))?;
        let status = answer.head.status;
        let answered = self.result(&answer.body).await;
        let is_refused =
            ERROR_STATUSES.contains(&status.as_u16()) && matches!(answered, Ok(Err(_)));
        if !status.is_success() && !is_refused {
            return Err(RequestFailure::Unusable(
                answer.refused(self.upstream.shown()).into(),
            ));
        }
        match answered {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(RequestFailure::Refused(error)),
            Err(why) => Err(RequestFailure::Unusable(ListError::NotThisProtocol(why))),
        }
    }

    /// Calls a tool. An error of the server is the tool's failure: the protocol has no other way to
    /// say it.
    pub(super) async fn call(&self, call: &Call) -> Result<Outcome, CallError> {
        let default = self.upstream.call_timeout().unwrap_or(TIMEOUT);
        let limits = CallLimits {
            timeout: call.limit(default),
            max_body: call.max_body,
            headers: HeaderMap::new(),
            repeatable: false,
        };
        let tool = serde_json::Value::from(&*call.tool);
        let params = format!(r#"{{"name":{tool},"arguments":{}}}"#, call.arguments.get());
        let answer = self
            .upstream
            .post(
                self.path,
                rpc::request(REQUEST, "tools/call", &params),
                &limits,
            )
            .await?;
        let status = Some(answer.head.status.as_u16());
        match self.result(&answer.body).await {
            Ok(Ok(result)) => Ok(Outcome {
                status,
                ..Outcome::done(result)
            }),
            Ok(Err(RpcError { code, message, .. })) => {
                let why = if message.is_empty() {
                    format!("the server gives no reason (error {code})")
                } else {
                    message
                };
                let failed = Outcome::failed(status, why, Some(code.to_string()));
                Ok(Outcome {
                    retry_after: answer.retry_after(),
                    ..failed
                })
            }
            Err(why) => Err(CallError::not_this_protocol(&answer, &why)),
        }
    }

    async fn result(&self, body: &Bytes) -> Result<Result<JsonText, RpcError>, String> {
        let length = body.len();
        let body = body.clone();
        self.upstream
            .tasks()
            .work_on_body(self.upstream.decode_step(), length, move || result(&body))
            .await
    }
}

/// The result or the error in an answer. The outer error is a sentence without a full stop.
pub(super) fn result(body: &[u8]) -> Result<Result<JsonText, RpcError>, String> {
    let text = std::str::from_utf8(body).map_err(|_| "the answer is not a text".to_owned())?;
    let mut messages = rpc::parse(text)?;
    match (messages.pop(), messages.is_empty()) {
        // An error may come without the id, where the server could not read it.
        (Some(RpcMessage::Response { id, result }), true)
            if id == Some(REQUEST) || id.is_none() && result.is_err() =>
        {
            Ok(result)
        }
        (Some(RpcMessage::Response { .. }), true) => {
            Err("it answers another request than the one sent".to_owned())
        }
        _ => Err("it does not answer with one JSON-RPC response".to_owned()),
    }
}
