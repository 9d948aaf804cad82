//! The answers to calls, written member by member: results are passed on byte for byte.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::calls::active::{ActiveCall, PendingInput};
use crate::calls::{AwaitedApproval, CallResponse, GoingOn, ToolAnswer};
use crate::model::{JsonText, ViewTool};
use crate::server::ServerState;
use crate::server::api::call_event_json;

/// The answer to a call.
pub(in crate::server) type CallHttpResponse = Response<Full<Bytes>>;

/// Whether operations of a tool are followed, or those of another one are followed or cancelled by
/// it.
pub(super) fn takes_part_in_operations(shared: &ServerState, tool: &ViewTool) -> bool {
    let named = |other: &Arc<ViewTool>| other.companions.iter().any(|known| known.original == tool.id.tool);
    let snapshot = shared.reader.snapshot();
    !tool.companions.is_empty()
        || snapshot.catalog.entry(&tool.id.scenario).is_some_and(|entry| entry.tools.iter().any(named))
}

/// The members of a scenario's answer apart from its result.
fn beside_result(document: Option<&JsonText>) -> Value {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct ProviderAnswer {
        #[serde(rename = "result")]
        _result: IgnoredAny,
        #[serde(flatten)]
        others: Map<String, Value>,
    }
    let answer = document.and_then(|text| serde_json::from_str::<ProviderAnswer>(text.get()).ok());
    answer.map(|answer| answer.others).unwrap_or_default().into()
}

/// The answer of a tool. Its result is passed on byte for byte. Where operations are followed, the
/// rest of what its scenario answered is passed on too: another daemon reads the status there.
pub(super) fn answered(shared: &ServerState, answer: &ToolAnswer, call_id: &str) -> CallHttpResponse {
    let response = answer.response.as_deref();
    let running = response.and_then(|response| response.outcome.running.as_ref());
    let goes_on = running.is_some() || answer.going != GoingOn::No;
    let status = if goes_on { StatusCode::ACCEPTED } else { StatusCode::OK };
    let word = match (running.and_then(|running| running.status.as_deref()), goes_on) {
        (Some(word), _) => word,
        (None, true) => "running",
        (None, false) if answer.success => "completed",
        (None, false) => "failed",
    };
    let mut body = JsonMembers::with_capacity(SMALL + answer.result.as_ref().map_or(0, |result| result.get().len()));
    body.member("success", &answer.success);
    body.raw("result", answer.result.as_ref().map_or("null", JsonText::get));
    if let Some(content) = &answer.content {
        body.raw("content", content.get());
    }
    if let Some(error) = &answer.error {
        body.member("error", &**error);
    }
    if let Some(code) = &answer.code {
        body.member("code", &**code);
    }
    body.member("status", word);
    if let Some(took_ms) = &answer.took_ms {
        body.member("execution_time_ms", took_ms);
    }
    if let Some(response) = response {
        body.add_origin(response);
    }
    body.member("call_id", call_id);
    if !answer.adjusted.is_empty() {
        body.member("adjusted", &answer.adjusted);
    }
    if let Some(response) = response.filter(|response| takes_part_in_operations(shared, &response.tool)) {
        body.member("provider_answer", &beside_result(response.outcome.document.as_ref()));
    }
    if goes_on {
        body.member("is_async", &true);
    }
    if let Some(running) = running {
        body.member("run_id", &running.run_id);
    }
    match &answer.going {
        GoingOn::No => {}
        GoingOn::As(operation) => body.member("operation_id", &**operation),
        GoingOn::Untracked(why) => body.member("untracked", why),
    }
    json_answer(status, body.finish())
}

/// Usual size in bytes of an answer without its result.
const SMALL: usize = 320;

/// A JSON object that is written member by member. A tree of values with the result in it would
/// take longer than all other work here.
struct JsonMembers(Vec<u8>);

impl JsonMembers {
    fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        self.name(name);
        // Strings, numbers and booleans can always be written, and a buffer never fails.
        let _ = serde_json::to_writer(&mut self.0, value);
    }

    /// Writes a member whose value is JSON text already.
    fn raw(&mut self, name: &str, value: &str) {
        self.name(name);
        self.0.extend_from_slice(value.as_bytes());
    }

    /// Writes a name without escaping: all names are constants of this module.
    fn name(&mut self, name: &str) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        for part in ["\"", name, "\":"] {
            self.0.extend_from_slice(part.as_bytes());
        }
    }

    /// Says which tool ran, and where.
    fn add_origin(&mut self, response: &CallResponse) {
        let id = &response.tool.id;
        self.member("scenario", id.scenario.as_str());
        self.member("tool_name", &*id.tool);
        self.member("name", response.called().name.as_str());
        if let Some(definition) = &response.definition {
            self.member("definition", &definition.id.to_string());
        }
        self.member("url", &response.url);
        self.member("attempts", &response.attempts);
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

fn json_answer(status: StatusCode, body: impl Into<Bytes>) -> CallHttpResponse {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// The answer for a call that waits for approval: 202 with the id of the approval.
pub(super) fn waiting_answer(awaited: &AwaitedApproval) -> CallHttpResponse {
    let AwaitedApproval { request: waiting, adjusted, .. } = awaited;
    let id = &waiting.tool;
    let mut body = json!({
        "success": false,
        "result": null,
        "error": format!("a call of `{id}` needs the approval of a human, and waits for it"),
        "code": "approval_required",
        "status": "waiting_for_approval",
        "scenario": id.scenario.as_str(),
        "tool_name": &*id.tool,
        "approval_id": &*waiting.id,
        "expires_at": waiting.expires_at.to_string(),
    });
    if !adjusted.is_empty() {
        body["adjusted"] = adjusted.as_slice().into();
    }
    json_answer(StatusCode::ACCEPTED, body.to_string())
}

/// The answer for a call whose tool waits for input: 202 with the interaction.
pub(super) fn input_answer(call: &ActiveCall, input: &PendingInput) -> CallHttpResponse {
    let body = json!({
        "success": false,
        "result": null,
        "error": format!("the tool needs input to continue: {}", input.wanted.message()),
        "code": "input_required",
        "status": "waiting_for_input",
        "tool_name": call.tool_name(),
        "call_id": &**call.id(),
        "interaction": call_event_json::interaction(input),
    });
    json_answer(StatusCode::ACCEPTED, body.to_string())
}
