//! `POST /api/v1/tools/execute`: calls a tool. The members are those of the original agent-inbox,
//! and some more.
//!
//! A failure that the tool itself reports is a normal answer (200 with `success: false`). A call
//! that is refused, or that gets no valid answer, is a problem document that also has `success`,
//! `error` and `code`.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::calls::track::FollowUp;
use crate::calls::{CallResponse, ExecuteError, Request};
use crate::model::{ApprovalRequest, JsonText, Scope, ToolId, ViewTool};
use crate::protocols::CallError;
use crate::server::api::lookup;
use crate::server::http::body::RawBody;
use crate::server::http::error::{Problem, excerpt};
use crate::server::http::query::NoQuery;
use crate::server::openapi::{RefusalSpec, refusal};
use crate::server::{ServerState, SharedState};
use crate::transports::TransportError;

type CallHttpResponse = Response<Full<Bytes>>;

/// The body of a call. Unknown members are ignored, as in the original agent-inbox.
#[derive(Deserialize)]
struct ExecuteBody<'a> {
    tool_name: String,
    /// The JSON text as the client wrote it: numbers may be larger than any Rust number type.
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(default)]
    scenario: Option<String>,
    #[serde(default)]
    chat_id: Option<String>,
    #[serde(default)]
    profile: Option<String>,
    #[serde(default)]
    user_id: Option<String>,
    #[serde(default)]
    revision: Option<String>,
}

/// The body is `{"tool_name", "arguments", "scenario"?, "chat_id"?, "profile"?, "user_id"?,
/// "revision"?}`. The answer is `{"success", "result", "error"?, "code"?, "status",
/// "execution_time_ms", "scenario", "tool_name", "name", "url", "attempts", "is_async"?, "run_id"?,
/// "operation_id"?, "untracked"?}`, or 202 with `approval_id` if the call needs the approval of a
/// human first.
pub(in crate::server) async fn execute(
    State(shared): State<SharedState>,
    _: NoQuery,
    RawBody(body): RawBody,
) -> CallHttpResponse {
    call(&shared, body).await.unwrap_or_else(Problem::into_full_response)
}

async fn call(shared: &ServerState, body: Bytes) -> Result<CallHttpResponse, Problem> {
    let request = parse_request(&body)?;
    // Frees the buffer of the body for other requests while the call waits.
    drop(body);
    let place = CallScope { chat: request.chat.clone(), profile: request.profile.clone() };
    match shared.calls.execute(request).await {
        Ok(answered) => Ok(answer(&answered, takes_part_in_operations(shared, &answered.tool))),
        Err(ExecuteError::ApprovalRequired { id, waiting: Some(waiting), adjusted }) => {
            Ok(waiting_answer(&id, &waiting, &adjusted))
        }
        Err(refused) => Err(problem(shared, &place, &refused)),
    }
}

/// The chat and the profile in which a call was made.
struct CallScope {
    chat: Option<String>,
    profile: Option<String>,
}

/// The statuses of calls that are refused or fail, for the `OpenAPI` document.
pub(in crate::server) const REFUSALS: &[RefusalSpec] = &[
    refusal(400, "The body is no call, or the arguments do not fit the tool's parameters: `violations` says where."),
    refusal(403, "Switched off, not trusted, or not for this profile; or asked for under a name that is not the daemon's, or by a web page of another site.")
        .with_example(|| example(|id| ExecuteError::NotTrusted { id, reason: "its scenario is blocked".into() })),
    refusal(404, "No tool is called so, or it is gone; `candidates` holds near names."),
    refusal(409, "The name could mean several tools (`candidates`), or the list with this `revision` is not remembered."),
    refusal(429, "Called too often, too many calls under way, or too many that wait for approval; `Retry-After` says when to try again.")
        .with_example(|| example(|id| ExecuteError::RateLimited { id, per_minute: 60, wait: Duration::from_secs(3) })),
    refusal(501, "Its scenario says of no way to call it.")
        .with_example(|| example(|id| failed(id, CallError::NotCallable("it offers no way to call its tools".into()), 0))),
    refusal(502, "The scenario answered, but not as a tool does; the tool may have done its work.")
        .with_example(|| example(|id| failed(id, CallError::Unanswered(TransportError::Broken { url: URL.into(), message: "it ended early".into() }), 1))),
    refusal(503, "Nothing was sent: the scenario cannot be reached now or failed too often, or the daemon is stopping.")
        .with_example(|| example(|id| failed(id, CallError::Unsent(TransportError::Refused(URL.into())), 3))),
    refusal(504, "The scenario did not answer in time; the tool may have done its work.")
        .with_example(|| example(|id| failed(id, CallError::Unanswered(TransportError::Timeout { url: URL.into(), limit: Duration::from_secs(30) }), 1))),
];
/// The address of the scenario in the examples.
const URL: &str = "http://127.0.0.1:9001/api/v1/tools/execute";

/// The problem that a client gets when a call of the tool in the examples is refused or fails.
fn example(refused: impl FnOnce(ToolId) -> ExecuteError) -> Problem {
    "files/read_text".parse().map_or_else(|_| Problem::internal_logged(), |id| problem_without_hints(&refused(id)))
}

fn failed(id: ToolId, error: CallError, attempts: u32) -> ExecuteError {
    ExecuteError::Failed { id, error, attempts }
}

/// Parses the body of a call. An empty text counts as left out.
pub(in crate::server) fn parse_request(body: &[u8]) -> Result<Request, Problem> {
    let asked: ExecuteBody<'_> = serde_json::from_slice(body).map_err(|error| {
        Problem::bad_request(format!(
            "the body is no call: {error}; write {{\"tool_name\": ..., \"arguments\": {{...}}}}"
        ))
    })?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let scope = |kind: &str, text: Option<String>| -> Result<Option<String>, Problem> {
        let Some(text) = given(text) else { return Ok(None) };
        // The model has the grammar of scopes.
        format!("{kind}:{text}").parse::<Scope>()?;
        Ok(Some(text))
    };
    if asked.tool_name.is_empty() {
        return Err(Problem::bad_request("`tool_name` is empty"));
    }
    Ok(Request {
        resumed: None,
        arguments: arguments(asked.arguments)?,
        scenario: given(asked.scenario).map(|name| name.parse()).transpose()?,
        chat: scope("chat", asked.chat_id)?,
        profile: scope("profile", asked.profile)?,
        user_id: given(asked.user_id).map(Into::into),
        revision: given(asked.revision),
        remembered: false,
        name: asked.tool_name,
    })
}

/// Parses the arguments: an object, which is empty if they are left out or `null`. Some LLM vendors
/// send them as a text that holds the object.
fn arguments(given: Option<&RawValue>) -> Result<JsonText, Problem> {
    let unreadable = |error: serde_json::Error| Problem::bad_request(format!("`arguments` cannot be read: {error}"));
    let text = given.map_or("{}", RawValue::get);
    if text.starts_with('"') {
        let inner: String = serde_json::from_str(text).map_err(unreadable)?;
        let inner = if inner.trim().is_empty() { "{}" } else { &inner };
        return object(JsonText::parse(inner).map_err(unreadable)?);
    }
    // The text was validated together with the body, and has no blanks around it.
    object(JsonText::known(text))
}

fn object(arguments: JsonText) -> Result<JsonText, Problem> {
    if arguments.get().starts_with('{') {
        return Ok(arguments);
    }
    let got = excerpt(arguments.get());
    Err(Problem::bad_request(format!(
        "`arguments` cannot be `{got}`: allowed is an object, a text that holds one, or null"
    )))
}

/// Whether operations of a tool are followed, or those of another one are followed or cancelled by it.
fn takes_part_in_operations(shared: &ServerState, tool: &ViewTool) -> bool {
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

/// The answer of a scenario. Its result is passed on byte for byte. Where operations are followed,
/// the rest of what it answered is passed on too: another daemon reads the status there.
fn answer(answered: &CallResponse, with_others: bool) -> CallHttpResponse {
    let outcome = &answered.outcome;
    let goes_on = !matches!(answered.going, FollowUp::Over);
    let (status, word) = match &outcome.running {
        None if goes_on => (StatusCode::ACCEPTED, "running"),
        Some(running) => (StatusCode::ACCEPTED, running.status.as_deref().unwrap_or("running")),
        None if outcome.success => (StatusCode::OK, "completed"),
        None => (StatusCode::OK, "failed"),
    };
    let id = &answered.tool.id;
    let mut body = JsonMembers::with_capacity(SMALL + outcome.result.as_ref().map_or(0, |result| result.get().len()));
    body.member("success", &outcome.success);
    body.raw("result", outcome.result.as_ref().map_or("null", JsonText::get));
    if let Some(content) = &outcome.content {
        body.raw("content", content.get());
    }
    if let Some(error) = &outcome.error {
        body.member("error", error);
    }
    if let Some(code) = &outcome.code {
        body.member("code", code);
    }
    body.member("status", word);
    body.member("execution_time_ms", &u64::try_from(answered.took.as_millis()).unwrap_or(u64::MAX));
    body.member("scenario", id.scenario.as_str());
    body.member("tool_name", &*id.tool);
    body.member("name", answered.tool.name.as_str());
    body.member("url", &answered.url);
    body.member("attempts", &answered.attempts);
    if !answered.adjusted.is_empty() {
        body.member("adjusted", &answered.adjusted);
    }
    if with_others {
        body.member("provider_answer", &beside_result(outcome.document.as_ref()));
    }
    if let Some(running) = &outcome.running {
        body.member("is_async", &true);
        body.member("run_id", &running.run_id);
    } else if goes_on {
        body.member("is_async", &true);
    }
    match &answered.going {
        FollowUp::Over => {}
        FollowUp::Followed(operation) => body.member("operation_id", &*operation.id),
        FollowUp::Untracked(why) => body.member("untracked", &why.to_string()),
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
fn waiting_answer(id: &ToolId, waiting: &ApprovalRequest, adjusted: &[String]) -> CallHttpResponse {
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
        body["adjusted"] = adjusted.into();
    }
    json_answer(StatusCode::ACCEPTED, body.to_string())
}

/// The problem of a call that was refused or failed, with hints from the active catalog.
fn problem(shared: &ServerState, place: &CallScope, refused: &ExecuteError) -> Problem {
    let told = match refused {
        ExecuteError::Unknown(name) => lookup::unknown_tool(&shared.reader.snapshot().catalog, name),
        ExecuteError::Disabled { id, .. } => {
            let place = match (&place.chat, &place.profile) {
                (Some(chat), _) => format!("chat:{chat}"),
                (None, Some(profile)) => format!("profile:{profile}"),
                (None, None) => "global".to_owned(),
            };
            let next = format!("`PUT /api/v1/preferences` with scope `{place}` and target `tool:{id}` switches it on");
            Problem::new(StatusCode::FORBIDDEN, format!("{refused}; {next}"))
        }
        refused => Problem::new(refused.status(), refused.to_string()),
    };
    with_reasons(told, refused)
}

/// The problem without hints from the active catalog.
fn problem_without_hints(refused: &ExecuteError) -> Problem {
    with_reasons(Problem::new(refused.status(), refused.to_string()), refused)
}

/// Adds the members that programs read: `success`, `code` and those of the particular error.
fn with_reasons(told: Problem, refused: &ExecuteError) -> Problem {
    let mut told = told.with_member("success", false).with_member("code", refused.kind());
    match refused {
        ExecuteError::Ambiguous { candidates, .. } => {
            told = told.with_member("candidates", candidates.iter().map(ToString::to_string).collect::<Vec<_>>());
        }
        ExecuteError::Invalid { violations, more, .. } => {
            let shown: Vec<Value> = violations
                .iter()
                .map(|violation| json!({"pointer": violation.pointer, "message": violation.message}))
                .collect();
            told = told.with_member("violations", shown).with_member("more_violations", *more);
        }
        ExecuteError::Failed { attempts, error, .. } => {
            told = told.with_member("attempts", *attempts).with_member("sent", error.was_sent());
        }
        _ => {}
    }
    match refused.retry_after() {
        Some(wait) => told.retry_after(wait),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read_leniently_where_nothing_can_go_wrong() {
        let asked = parse_request(br#"{"tool_name":"t","chat_id":"","scenario":null,"x":1,"arguments":null}"#).unwrap();
        assert_eq!(asked, Request::new("t", JsonText::parse("{}").unwrap()));
        let asked = parse_request(br#"{"tool_name":"t","arguments":"{\"a\":1}"}"#).unwrap();
        assert_eq!(asked.arguments.get(), r#"{"a":1}"#);
        let asked = parse_request(br#"{"tool_name":"t","arguments":{"n":123456789012345678901234567890}}"#).unwrap();
        assert_eq!(asked.arguments.get(), r#"{"n":123456789012345678901234567890}"#, "as it was written");
        let all = br#"{"tool_name":"t","scenario":"s","chat_id":"7","profile":"p","user_id":"u","revision":"r"}"#;
        let asked = parse_request(all).unwrap();
        assert_eq!(asked.scenario.unwrap().as_str(), "s");
        assert_eq!(asked.chat.as_deref(), Some("7"));
        assert_eq!(asked.profile.as_deref(), Some("p"));
        assert_eq!(asked.user_id.as_deref(), Some("u"));
        assert_eq!(asked.revision.as_deref(), Some("r"));
    }

    #[test]
    fn what_cannot_be_a_call_is_refused() {
        for body in [
            &b"{}"[..],
            b"[]",
            br#"{"tool_name":""}"#,
            br#"{"tool_name":7}"#,
            br#"{"tool_name":"t","scenario":"a/b"}"#,
            br#"{"tool_name":"t","arguments":"{"}"#,
            br#"{"tool_name":"t","chat_id":7}"#,
        ] {
            assert_eq!(
                parse_request(body).unwrap_err().into_full_response().status(),
                400,
                "{}",
                String::from_utf8_lossy(body)
            );
        }
    }
}
