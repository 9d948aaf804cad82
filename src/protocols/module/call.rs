//! Calls a tool: `POST /execute` with `{tool_name, arguments, user_id?}`, answered by `{tool_name,
//! success, result, error}`.
//!
//! A module answers 200 whether its tool succeeded or failed. Any other status is a failure of the
//! call as well, reported with the text that the modules' first consumer uses.

use std::time::Duration;

use http::StatusCode;
use http::header::HeaderMap;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::model::JsonText;
use crate::protocols::{Call, CallError, Outcome};
use crate::transports::TransportError;
use crate::transports::http::{CallLimits, HttpResponse, Upstream};

/// Where calls go, below the base address.
const PATH: &str = "/execute";

/// How long a call may take when neither the list nor the configuration says so.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The code of a failure that is known only by its HTTP status.
const STATUS: &str = "module_status";

/// Sends one call. The tool's whole name is sent, whatever is before its first dot.
pub(super) async fn call(upstream: &Upstream, call: &Call) -> Result<Outcome, CallError> {
    let default = upstream.call_timeout().unwrap_or(TIMEOUT);
    let limits = CallLimits {
        timeout: call.limit(default),
        max_body: call.max_body,
        headers: HeaderMap::new(),
        repeatable: false,
    };
    let answer = upstream.post(PATH, body(call), &limits).await?;
    let bytes = answer.body.len();
    upstream
        .tasks()
        .work_on_body(upstream.decode_step(), bytes, move || decode(&answer))
        .await
}

/// The message for a call without an answer, as the modules' first consumer writes it.
pub fn error_message(error: &CallError) -> String {
    match error {
        CallError::Unsent(TransportError::Timeout { limit, .. })
        | CallError::Unanswered(TransportError::Timeout { limit, .. }) => {
            format!("Tool execution timed out ({:.0}s).", limit.as_secs_f64())
        }
        CallError::Unsent(TransportError::Refused(_)) => {
            "Tool execution error: Connection refused".to_owned()
        }
        error => format!("Tool execution error: {error}"),
    }
}

/// The body of a call. Arguments are sent unchanged; the user id is sent only if it is known.
fn body(call: &Call) -> String {
    let tool = serde_json::Value::from(&*call.tool);
    let arguments = call.arguments.get();
    match call.user_id.as_deref().filter(|user| !user.is_empty()) {
        None => format!(r#"{{"tool_name":{tool},"arguments":{arguments}}}"#),
        Some(user) => {
            let user = serde_json::Value::from(user);
            format!(r#"{{"tool_name":{tool},"arguments":{arguments},"user_id":{user}}}"#)
        }
    }
}

/// The answer of a module.
#[derive(Deserialize)]
struct ModuleResponse<'a> {
    success: bool,
    /// A result may be any JSON value, `null` included.
    #[serde(borrow, default, deserialize_with = "any")]
    result: Option<&'a RawValue>,
    error: Option<String>,
}

fn any<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Decodes an answer of any status.
fn decode(answer: &HttpResponse) -> Result<Outcome, CallError> {
    let status = answer.head.status;
    if status != StatusCode::OK {
        let body = String::from_utf8_lossy(&answer.body);
        let error = format!("Module returned status {}: {body}", status.as_u16());
        let retry_after = answer.retry_after();
        return Ok(Outcome {
            retry_after,
            ..Outcome::failed(Some(status.as_u16()), error, Some(STATUS.to_owned()))
        });
    }
    let not_ours = |why: &str| Err(CallError::not_this_protocol(answer, why));
    let Ok(text) = std::str::from_utf8(&answer.body) else {
        return not_ours("the answer is not a text");
    };
    let Ok(sent) = serde_json::from_str::<ModuleResponse<'_>>(text) else {
        return not_ours("the answer is not a result of a module's tool");
    };
    let error = sent.error.filter(|error| !error.is_empty());
    Ok(Outcome {
        success: sent.success,
        // The result is part of a text that was parsed as JSON above.
        result: sent.result.map(|result| JsonText::known(result.get())),
        error: if sent.success {
            error
        } else {
            error.or_else(|| Some("it failed without a message".to_owned()))
        },
        code: None,
        running: None,
        status: Some(status.as_u16()),
        retry_after: None,
        document: Some(JsonText::known(text.trim())),
        content: None,
        input_required: None,
    })
}
