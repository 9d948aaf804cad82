//! Calling a tool: `POST /api/v1/tools/execute`.
//!
//! The protocol's text does not describe it, so this follows what its real speakers do:
//! `{tool_name, arguments}` in, `{success, result, error, code, is_async, run_id, status}` out.
//! Their statuses disagree (an unknown tool is 404 here and 500 there, a run that goes on is 202
//! here and 200 there), so the body says what came of it, and the status only adds what the body
//! leaves out.

use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::model::JsonText;
use crate::protocols::{Call, CallError, Outcome, RunningCall};
use crate::transports::http::{CallLimits, HttpResponse, Upstream};

/// Where calls go, below the base address.
const PATH: &str = "/api/v1/tools/execute";

/// How long a call may take when the list does not say: as long as the protocol's first consumer
/// waited.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(300);

/// Sends one call.
pub(super) async fn call(upstream: &Upstream, call: &Call) -> Result<Outcome, CallError> {
    let limits = CallLimits {
        timeout: call.limit(TIMEOUT),
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

/// Arguments go on as they came.
fn body(call: &Call) -> Vec<u8> {
    let arguments = call.arguments.get();
    let mut body = Vec::with_capacity(arguments.len() + call.tool.len() + 48);
    body.extend_from_slice(br#"{"tool_name":"#);
    // A text can be written, and a buffer takes it.
    let _ = serde_json::to_writer(&mut body, &*call.tool);
    for part in [r#","arguments":"#, arguments, "}"] {
        body.extend_from_slice(part.as_bytes());
    }
    body
}

/// What they send. Both spellings of a member are taken; what is unknown is left in the document.
#[derive(Deserialize)]
struct ExecuteResponse<'a> {
    success: Option<bool>,
    /// A result may be anything, `null` included.
    #[serde(borrow, default, deserialize_with = "any")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(alias = "isAsync")]
    is_async: Option<bool>,
    #[serde(borrow, alias = "runId")]
    run_id: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    /// What the scenario of another daemon answered beside the result.
    #[serde(borrow)]
    provider_answer: Option<&'a RawValue>,
}

fn any<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads an answer of any status.
fn decode(answer: &HttpResponse) -> Result<Outcome, CallError> {
    let status = answer.head.status;
    if status.is_redirection() {
        return Err(CallError::not_this_protocol(
            answer,
            "a redirect is not followed by a call",
        ));
    }
    let not_ours = |why: &str| Err(CallError::not_this_protocol(answer, why));
    let Ok(text) = std::str::from_utf8(&answer.body) else {
        return not_ours("the answer is not a text");
    };
    let Ok(sent) = serde_json::from_str::<ExecuteResponse<'_>>(text) else {
        return not_ours("the answer is not the JSON object of a tool's answer");
    };
    let error = error(&sent);
    let Some(says) = sent.success.or(error.is_some().then_some(false)) else {
        return not_ours("the answer has neither `success` nor `error`");
    };
    let success = says && status.is_success();
    let error = match error {
        // Failing without a word, or claiming success with a status that denies it.
        None if !success => Some(without_error(says, status)),
        error => error,
    };
    let running = (success && (sent.is_async == Some(true) || status == StatusCode::ACCEPTED))
        .then(|| RunningCall {
            run_id: sent.run_id.and_then(words),
            status: sent.status.and_then(words),
        });
    Ok(Outcome {
        success,
        // Taken from a text that was read as JSON a moment ago.
        result: sent.result.map(|result| JsonText::known(result.get())),
        error,
        code: sent.code.and_then(words),
        running,
        status: Some(status.as_u16()),
        retry_after: answer.retry_after(),
        document: Some(document(&sent).unwrap_or_else(|| JsonText::known(text.trim()))),
        content: None,
        input_required: None,
    })
}

/// What the scenario of another daemon answered, of which that daemon passes the result on by
/// itself. The daemon's own members are none of the scenario's: its `status` says how the call
/// ended, and not how an operation is.
fn document(sent: &ExecuteResponse<'_>) -> Option<JsonText> {
    let others = sent.provider_answer?.get().strip_prefix('{')?.trim_start();
    let comma = if others.starts_with('}') { "" } else { "," };
    let result = sent.result.map_or("null", RawValue::get);
    Some(JsonText::known(format!(
        r#"{{"result":{result}{comma}{others}"#
    )))
}

fn without_error(says: bool, status: StatusCode) -> String {
    let what = if says {
        "it has `success`"
    } else {
        "it failed without a message"
    };
    format!("{what}, and answered {status}")
}

/// Some say what went wrong in `error`, some put a word there and the sentence into `message`.
fn error(sent: &ExecuteResponse<'_>) -> Option<String> {
    let error = sent.error.and_then(words)?;
    match sent.message.and_then(words) {
        Some(message) if message != error => Some(format!("{error}: {message}")),
        _ => Some(error),
    }
}

/// A text as it reads, anything else as its JSON; nothing for an empty text and for `null`.
fn words(raw: &RawValue) -> Option<String> {
    let text = serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
    (!text.is_empty() && raw.get() != "null").then_some(text)
}
