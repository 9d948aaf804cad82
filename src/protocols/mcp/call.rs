//! Calls a tool: `tools/call`, and what its result means.
//!
//! A result is passed on as it came. A tool that failed (`isError`) is an answer, and so is an error
//! of JSON-RPC. Input that a modern server needs is requested from the caller, and the call goes on
//! with it. The call itself is never repeated here.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::connection::McpServer;
use super::headers;
use super::notes;
use super::request::{McpRequest, Reply, RequestError};
use crate::model::JsonText;
use crate::protocols::json_rpc::RpcError;
use crate::protocols::{Call, CallError, CallIo, Outcome};

/// How long a call may take without a sign of progress, when neither the list nor the configuration
/// says so.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);
/// How often one call may need input.
const MAX_ROUNDS: usize = 16;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    result_type: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: bool,
    #[serde(borrow)]
    input_requests: Option<BTreeMap<String, InputRequest<'a>>>,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct InputRequest<'a> {
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
}

fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// What follows from the answer to `tools/call`.
enum Step {
    Done(Box<Outcome>),
    /// The members of `params` with which the call goes on.
    Again(String),
}

/// Why a call has no outcome.
#[derive(Debug)]
pub(super) enum Failed {
    /// The server does not know the session (any more), so no tool ran.
    SessionLost,
    /// Anything else.
    Other(CallError),
}

impl Failed {
    /// The error for the caller.
    pub(super) fn into_call_error(self, address: &str) -> CallError {
        match self {
            Self::SessionLost => RequestError::SessionLost.into_call_error(address),
            Self::Other(error) => error,
        }
    }
}

/// Sends a call and gives its outcome.
pub(super) async fn call(
    server: &McpServer,
    call: &Call,
    io: &mut dyn CallIo,
    (limit, address): (Duration, &str),
) -> Result<Outcome, Failed> {
    let table = server.headers.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let params = table.get(&call.tool).map_or(&[][..], Vec::as_slice);
    let headers = headers::of_call(params, call.arguments.get());
    let own = format!(r#""name":{},"arguments":{}"#, serde_json::Value::from(&*call.tool), call.arguments.get());
    let mut more = String::new();
    for _ in 0..MAX_ROUNDS {
        let request = McpRequest {
            subject: Some(call.tool.to_string()),
            headers: headers.clone(),
            longest: call.longest,
            progress: true,
            ..McpRequest::new("tools/call", format!("{own}{more}"), limit, call.max_body)
        };
        let reply = server.send(&request, io).await.map_err(|error| match error {
            RequestError::SessionLost => Failed::SessionLost,
            error => Failed::Other(error.into_call_error(address)),
        })?;
        match step(reply, io).await.map_err(Failed::Other)? {
            Step::Done(outcome) => return Ok(*outcome),
            Step::Again(members) => more = members,
        }
    }
    let error = format!("it asked for input {MAX_ROUNDS} times and did not end");
    Ok(Outcome::failed(None, error, Some("input_required".to_owned())))
}

async fn step(reply: Reply, io: &mut dyn CallIo) -> Result<Step, CallError> {
    let result = match reply {
        Ok(result) => result,
        Err(error) => return Ok(Step::Done(Box::new(refused(&error)))),
    };
    let sent: CallResult<'_> = match serde_json::from_str(result.get()) {
        Ok(sent) => sent,
        Err(error) => return Err(not_a_result(&format!("the result cannot be read: {error}"), &result)),
    };
    match sent.result_type.as_deref() {
        None | Some("complete") => Ok(Step::Done(Box::new(outcome(&sent, &result)))),
        Some("input_required") => Ok(Step::Again(inputs(&sent, io).await)),
        Some(other) => Err(not_a_result(&format!("the result is of the unknown type {other:?}"), &result)),
    }
}

fn not_a_result(why: &str, result: &JsonText) -> CallError {
    let start: String = result.get().chars().take(200).collect();
    CallError::NotThisProtocol {
        answered: "a result".to_owned(),
        status: None,
        excerpt: format!("{why} (`{}`)", start.escape_debug()),
        retry_after: None,
    }
}

/// The error that a server answered instead of a result.
fn refused(error: &RpcError) -> Outcome {
    let document = error.data.clone();
    Outcome { document, ..Outcome::failed(None, error.message.clone(), Some(error.code.to_string())) }
}

/// The outcome of a result. Programs get the structured content or else the text; the whole result
/// is beside it.
fn outcome(sent: &CallResult<'_>, whole: &JsonText) -> Outcome {
    let text = sent.content.map(|content| texts(content.get())).unwrap_or_default();
    let result = match sent.structured_content {
        // It is part of a text that was parsed as JSON.
        Some(structured) => JsonText::known(structured.get()),
        None => JsonText::known(serde_json::Value::from(&*text).to_string()),
    };
    let error =
        sent.is_error.then(|| if text.is_empty() { "the tool failed and does not say why".to_owned() } else { text });
    let code = sent.is_error.then(|| "tool_error".to_owned());
    let done = Outcome { content: Some(whole.clone()), document: Some(whole.clone()), ..Outcome::done(result) };
    if sent.is_error { Outcome { success: false, error, code, ..done } } else { done }
}

/// The texts of all blocks, one below the other.
fn texts(content: &str) -> String {
    let blocks: Vec<&RawValue> = serde_json::from_str(content).unwrap_or_default();
    let blocks = blocks.into_iter().filter_map(|raw| serde_json::from_str::<Block>(raw.get()).ok());
    let texts: Vec<_> = blocks.filter(|block| block.kind == "text").map(|block| block.text).collect();
    texts.join("\n")
}

/// Gets the input that the server needs. The keys and the state go back as they came.
async fn inputs(sent: &CallResult<'_>, io: &mut dyn CallIo) -> String {
    let mut members = String::new();
    let mut replies = Vec::new();
    for (key, request) in sent.input_requests.iter().flatten() {
        let params = request.params.map(|params| JsonText::known(params.get()));
        let reply = match request.method.as_str() {
            notes::ELICITATION => notes::elicit(params.as_ref(), io).await,
            // Only what a client declared may be requested, and nothing else was.
            _ => continue,
        };
        replies.push(format!("{}:{reply}", serde_json::Value::from(&**key)));
    }
    if !replies.is_empty() {
        let _ = write!(members, r#","inputResponses":{{{}}}"#, replies.join(","));
    }
    if let Some(state) = sent.request_state {
        let _ = write!(members, r#","requestState":{}"#, state.get());
    }
    members
}

/// Whether the server did not do what was requested, so that the same call may be sent once more
/// after the list was read again: it wants arguments in headers that are not known yet.
pub(super) fn wants_other_headers(outcome: &Outcome) -> bool {
    outcome.code.as_deref() == Some("-32020")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocols::NoCaller;

    async fn done(result: &str) -> Outcome {
        match step(Ok(JsonText::parse(result).unwrap()), &mut NoCaller).await.unwrap() {
            Step::Done(outcome) => *outcome,
            Step::Again(members) => panic!("{members}"),
        }
    }

    #[tokio::test]
    async fn a_result_is_its_structured_content_or_its_text() {
        let outcome =
            done(r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":""},{"type":"text","text":"b"}]}"#)
                .await;
        assert!(outcome.success);
        assert_eq!(outcome.result.unwrap().get(), "\"a\\nb\"");
        let outcome = done(r#"{"resultType":"complete","content":[],"structuredContent":{"t": 21}}"#).await;
        assert_eq!(outcome.result.unwrap().get(), "{\"t\": 21}");
        let outcome = done(r#"{"content":[{"type":"text","text":"no such city"}],"isError":true}"#).await;
        assert!(!outcome.success);
        assert_eq!(outcome.error.as_deref(), Some("no such city"));
        assert!(outcome.content.unwrap().get().ends_with(r#""isError":true}"#));
    }

    #[tokio::test]
    async fn input_that_the_caller_cannot_give_is_declined_and_the_state_goes_back() {
        let result = r#"{"resultType":"input_required","requestState":"s","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Name?"}}}}"#;
        let step = step(Ok(JsonText::parse(result).unwrap()), &mut NoCaller).await.unwrap();
        let Step::Again(members) = step else { panic!("it goes on") };
        assert_eq!(members, r#","inputResponses":{"who":{"action":"decline"}},"requestState":"s""#);
    }

    #[tokio::test]
    async fn an_unknown_type_of_result_is_no_answer() {
        for result in [r#"{"resultType":"task"}"#, "[]", "7"] {
            let step = step(Ok(JsonText::parse(result).unwrap()), &mut NoCaller).await;
            assert!(matches!(step, Err(CallError::NotThisProtocol { .. })), "{result}");
        }
    }
}
