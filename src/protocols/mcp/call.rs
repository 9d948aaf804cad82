//! Calls a tool: `tools/call`, as often as the tool needs input of the caller.
//!
//! Input that a modern server needs is requested from the caller, and the call goes on with it. A
//! caller that sends its calls again itself gets the requests as the outcome. The call itself is
//! never repeated here.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::call_result::{Step, needs_input, step};
use super::connection::McpServer;
use super::exchange::until_cancelled;
use super::headers;
use super::inputs;
use super::request::{McpRequest, Reply, RequestError};
use crate::model::{Interaction, JsonText};
use crate::protocols::{Call, CallError, CallIo, InputMethod, InputRound, Outcome};
use crate::runtime::tasks::BodyStep;

/// How long a call may take without a sign of progress, when neither the list nor the configuration
/// says so.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);
/// How often one call may need input.
const MAX_ROUNDS: usize = 16;
/// The most requests for input at a time.
const MAX_INPUTS: usize = 32;

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
    io: &dyn CallIo,
    limit: Duration,
    address: &str,
) -> Result<Outcome, Failed> {
    let table = server.headers.lock().clone();
    let params = table.get(&call.tool).map_or(&[][..], Vec::as_slice);
    let headers = headers::of_call(params, call.arguments.get());
    let own = format!(
        r#""name":{},"arguments":{}"#,
        serde_json::Value::from(&*call.tool),
        call.arguments.get()
    );
    let request = McpRequest {
        subject: Some(call.tool.to_string()),
        headers,
        longest: call.longest,
        progress: true,
        ..McpRequest::new("tools/call", own, limit, call.max_body)
    };
    converse(server, request, call.resumed.as_ref(), io, address).await
}

/// Sends a request as often as the server needs input of the caller, and gives the outcome.
pub(super) async fn converse(
    server: &McpServer,
    mut request: McpRequest,
    input: Option<&InputRound>,
    io: &dyn CallIo,
    address: &str,
) -> Result<Outcome, Failed> {
    let interaction = &*server.interaction;
    let offers = io.offers();
    request.capabilities = inputs::capabilities(interaction, offers);
    request.log_level = offers.log_level;
    request.trace = io.trace().cloned();
    if let Some(level) = offers.log_level {
        server.want_logs(level, request.limit).await;
    }
    let own = std::mem::take(&mut request.params);
    let mut more = input.map(resumed).unwrap_or_default();
    for _ in 0..MAX_ROUNDS {
        request.params = format!("{own}{more}");
        let reply = server
            .send(&request, io)
            .await
            .map_err(|error| match error {
                RequestError::SessionLost => Failed::SessionLost,
                error => Failed::Other(error.into_call_error(address)),
            })?;
        let bytes = reply_bytes(&reply);
        let read = server
            .tasks
            .work_on_body(BodyStep::Further, bytes, move || read(reply))
            .await;
        let (required, requests) = match read.map_err(Failed::Other)? {
            ReadReply::Done(outcome) => return Ok(*outcome),
            ReadReply::NeedsInput(required, requests) => (required, requests),
        };
        let requests = match requests {
            Ok(requests) => requests,
            Err(why) => return Ok(needs_input(None, why)),
        };
        if offers.resumes && !are_answered_here(&requests, interaction) {
            return Ok(needs_input(
                Some(required.clone()),
                "it needs input to continue".to_owned(),
            ));
        }
        let given = until_cancelled(responses(&requests, interaction, io), io).await;
        let cancelled = || Failed::Other(RequestError::Cancelled.into_call_error(address));
        more = match given.ok_or_else(cancelled)? {
            Ok(responses) => resumed(&InputRound {
                by_key: responses,
                state: required.state.clone(),
            }),
            Err(why) => return Ok(needs_input(None, why)),
        };
    }
    Ok(needs_input(
        None,
        format!("it requested input {MAX_ROUNDS} times and did not end"),
    ))
}

/// What a reply means, with all that is read of it.
enum ReadReply {
    Done(Box<Outcome>),
    /// The tool needs input: the requests as they came, and each of them. The error says why they
    /// cannot be answered.
    NeedsInput(InputRound, Result<InputRequests, String>),
}

/// Bytes of a reply.
fn reply_bytes(reply: &Reply) -> usize {
    match reply {
        Ok(result) => result.get().len(),
        Err(error) => error.bytes(),
    }
}

/// Reads a reply. A long one takes a while.
fn read(reply: Reply) -> Result<ReadReply, CallError> {
    Ok(match step(reply)? {
        Step::Done(outcome) => ReadReply::Done(outcome),
        Step::NeedsInput(required) => {
            let requests = requests(&required);
            ReadReply::NeedsInput(required, requests)
        }
    })
}

/// One request for input.
struct InputRequest {
    method: String,
    params: Option<JsonText>,
}

type InputRequests = BTreeMap<String, InputRequest>;

/// Reads the requests for input. The error says why they cannot be answered.
fn requests(required: &InputRound) -> Result<InputRequests, String> {
    #[derive(Deserialize)]
    struct SentRequest<'a> {
        method: String,
        #[serde(borrow)]
        params: Option<&'a RawValue>,
    }
    let sent: BTreeMap<String, SentRequest<'_>> = serde_json::from_str(required.by_key.get())
        .map_err(|error| format!("its requests for input cannot be read: {error}"))?;
    if sent.len() > MAX_INPUTS {
        return Err(format!(
            "it requested {} inputs at a time, more than {MAX_INPUTS}",
            sent.len()
        ));
    }
    let kept = |sent: SentRequest<'_>| InputRequest {
        method: sent.method,
        params: sent.params.map(|params| JsonText::known(params.get())),
    };
    Ok(sent
        .into_iter()
        .map(|(key, request)| (key, kept(request)))
        .collect())
}

/// Whether the configuration answers all of these requests. Without a request there is nothing to
/// wait for.
fn are_answered_here(requests: &InputRequests, interaction: &Interaction) -> bool {
    let configured = interaction.roots && !interaction.folders.is_empty();
    requests
        .values()
        .all(|request| configured && request.method == InputMethod::Roots.as_str())
}

/// Gets the input that the tool needs: the text of one object. The error says what is missing.
async fn responses(
    requests: &InputRequests,
    interaction: &Interaction,
    io: &dyn CallIo,
) -> Result<JsonText, String> {
    let mut responses = Vec::new();
    for (key, request) in requests {
        let params = request.params.as_ref();
        let response = inputs::input_response(&request.method, params, interaction, io).await;
        let Some(response) = response else {
            let method = request.method.escape_debug();
            return Err(format!(
                "it needs input that its caller does not give: {method}"
            ));
        };
        responses.push(format!(
            "{}:{}",
            serde_json::Value::from(&**key),
            response.get()
        ));
    }
    Ok(JsonText::known(format!("{{{}}}", responses.join(","))))
}

/// The members of `params` with which a call goes on. The state goes back as it came.
fn resumed(input: &InputRound) -> String {
    let mut members = String::new();
    if input.by_key.get() != "{}" {
        let _ = write!(members, r#","inputResponses":{}"#, input.by_key.get());
    }
    if let Some(state) = &input.state {
        let _ = write!(
            members,
            r#","requestState":{}"#,
            serde_json::Value::from(&**state)
        );
    }
    members
}

/// Whether the server did not do what was requested, so that the same call may be sent once more
/// after the list was read again: it wants arguments in headers that are not known yet.
pub(super) fn wants_other_headers(outcome: &Outcome) -> bool {
    outcome.code.as_deref() == Some("-32020")
}
