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
use http::header::USER_AGENT;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::calls::active::{ActiveCall, AttendError};
use crate::calls::{
    CallEnd, CallerRole, ExecuteError, Failure, FailureCode, GIVE_OUTPUT, Request, WaitLimits,
};
use crate::formats::native;
use crate::model::{CallerInfo, ToolId};
use crate::protocols::CallError;
use crate::runtime::tasks::BodyStep;
use crate::server::api::call_answers::{CallHttpResponse, answered, input_answer, waiting_answer};
use crate::server::api::call_body::parse_call;
use crate::server::api::lookup;
use crate::server::auth::Access;
use crate::server::http::body::RawBody;
use crate::server::http::error::Problem;
use crate::server::http::next_step::NextStep;
use crate::server::http::query::NoQuery;
use crate::server::openapi::{RefusalSpec, refusal};
use crate::server::{ServerState, SharedState};
use crate::transports::TransportError;

/// The body is
/// `{"tool_name", "arguments", "scenario"?, "chat_id"?, "profile"?, "user_id"?, "revision"?,
/// "call_id"?, "log_level"?}`. The answer is `{"success", "result", "error"?, "code"?, "status",
/// "execution_time_ms", "scenario", "tool_name", "name", "url", "attempts", "is_async"?, "run_id"?,
/// "operation_id"?, "untracked"?}`, or 202 with `approval_id` if the call needs the approval of a
/// human first, or with `interaction` if its tool needs input.
pub(in crate::server) async fn execute(
    State(shared): State<SharedState>,
    _: NoQuery,
    headers: HeaderMap,
    access: Access,
    RawBody(body): RawBody,
) -> CallHttpResponse {
    let client = headers
        .get(USER_AGENT)
        .and_then(|agent| agent.to_str().ok())
        .map(str::to_owned);
    call(&shared, client, access, body)
        .await
        .unwrap_or_else(Problem::into_full_response)
}

async fn call(
    shared: &SharedState,
    client: Option<String>,
    access: Access,
    body: Bytes,
) -> Result<CallHttpResponse, Problem> {
    let (request, call_id, log_level) = parse_call(&body, access.requester())?;
    let request = Request { client, ..request };
    // Frees the buffer of the body for other requests while the call waits.
    drop(body);
    let call = shared.calls.attend(&request, call_id, log_level)?;
    let end = shared
        .calls
        .settle(
            request,
            CallerRole::ById(Arc::clone(&call)),
            WaitLimits::NONE,
        )
        .await;
    answer_of(shared, call, Arc::new(end)).await
}

/// The answer for a call that ended, or needs an approval or input.
pub(in crate::server) async fn answer_of(
    shared: &SharedState,
    call: Arc<ActiveCall>,
    end: Arc<CallEnd>,
) -> Result<CallHttpResponse, Problem> {
    let bytes = match &*end {
        CallEnd::Answered(answer) => answer.bytes(),
        CallEnd::AwaitsApproval(_) | CallEnd::NeedsInput(_) | CallEnd::Failed(_) => 0,
    };
    let own = Arc::clone(shared);
    let write = move || match &*end {
        CallEnd::Answered(answer) => answered(&own, answer, call.id()),
        CallEnd::AwaitsApproval(awaited) => waiting_answer(awaited),
        CallEnd::NeedsInput(input) => input_answer(&call, input),
        CallEnd::Failed(failure) => Err(problem(&own, call.caller_info(), failure)),
    };
    shared
        .tasks
        .work_on_body(BodyStep::Further, bytes, write)
        .await
}

const BROKEN: RefusalSpec =
    refusal(502, "The scenario answered, but not as a tool does, or with more than there is memory for; the tool may have done its work.").with_example(
        || {
            example(|id| {
                failed(
                    id,
                    CallError::Unanswered(TransportError::Broken { url: URL.into(), message: "it ended early".into() }),
                    1,
                )
            })
        },
    );
const UNREACHABLE: RefusalSpec = refusal(
    503,
    "No request was sent: the scenario cannot be reached now or failed too often, the memory for arguments is in use, or the daemon is stopping.",
)
.with_example(|| example(|id| failed(id, CallError::Unsent(TransportError::Refused(URL.into())), 3)));
const LATE: RefusalSpec = refusal(
    504,
    "The scenario did not answer in time; the tool may have done its work.",
)
.with_example(|| {
    example(|id| {
        failed(
            id,
            CallError::Unanswered(TransportError::Timeout {
                url: URL.into(),
                limit: Duration::from_secs(30),
            }),
            1,
        )
    })
});

/// The statuses of calls that are refused or fail, for the `OpenAPI` document.
pub(in crate::server) const REFUSALS: &[RefusalSpec] = &[
    refusal(400, "The body is not a call, or the arguments do not fit the tool's parameters: `violations` says where."),
    refusal(403, "Disabled, not trusted, or not for this profile; or the request has a `Host` that is not the daemon's, or comes from a web page of another site.")
        .with_example(|| example(|id| ExecuteError::NotTrusted { id, reason: "its scenario is blocked".into() })),
    refusal(404, "No tool has this name, or it is gone; `candidates` holds near names."),
    refusal(409, "The name could mean several tools (`candidates`), the list with this `revision` is not remembered, or another call has this `call_id`."),
    refusal(429, "Called too often, too many calls under way, too many that wait for approval, or too much memory for this caller's arguments; `Retry-After` says when to try again.")
        .with_example(|| example(|id| ExecuteError::RateLimited { id, per_minute: 60, wait: Duration::from_secs(3) })),
    refusal(501, "Its scenario offers no way to call it.")
        .with_example(|| example(|id| failed(id, CallError::NotCallable("it offers no way to call its tools".into()), 0))),
    BROKEN,
    UNREACHABLE,
    LATE,
];
/// The refusals of a call that goes on with input.
pub(in crate::server) const INPUT_REFUSALS: &[RefusalSpec] = &[
    refusal(
        400,
        "The body is not an answer to the tool: `action` is none of the three, or `content` is no object.",
    ),
    refusal(
        404,
        "No call waits for this input: it was given, declined after its time, or the call ended.",
    ),
    BROKEN,
    UNREACHABLE,
    LATE,
];
/// The address of the scenario in the examples.
const URL: &str = "http://127.0.0.1:9001/api/v1/tools/execute";

/// The problem that a client gets when a call of the tool in the examples is refused or fails.
fn example(refused: impl FnOnce(ToolId) -> ExecuteError) -> Problem {
    "files/read_text".parse().map_or_else(
        |_| Problem::internal_logged(),
        |id| problem_without_hints(&refused(id)),
    )
}

fn failed(id: ToolId, error: CallError, attempts: u32) -> ExecuteError {
    ExecuteError::Failed {
        id,
        error,
        attempts,
    }
}

/// The problem of a call that was refused or failed, with hints from the active catalog.
fn problem(shared: &ServerState, place: &CallerInfo, failure: &Failure) -> Problem {
    let problem = match failure.code {
        FailureCode::UnknownTool => {
            let name = failure.reason.as_deref().unwrap_or_default();
            let snapshot = shared.reader.snapshot();
            lookup::with_left_out(
                lookup::unknown_tool(&snapshot.catalog, name),
                &snapshot,
                name,
            )
        }
        FailureCode::Disabled => {
            let enable = enabling(place, failure);
            let problem = Problem::new(StatusCode::FORBIDDEN, &failure.text);
            problem
                .and_next(&format!("{enable} switches it on"))
                .with_next(enable)
        }
        _ => failed_as(failure),
    };
    with_reasons(problem, failure)
}

/// The request that enables a disabled tool.
fn enabling(place: &CallerInfo, failure: &Failure) -> NextStep {
    let scope = match (&place.chat, &place.profile) {
        (Some(chat), _) => format!("chat:{chat}"),
        (None, Some(profile)) => format!("profile:{profile}"),
        (None, None) => "global".to_owned(),
    };
    let tool = failure
        .tool
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    NextStep::enable(&scope, &format!("tool:{tool}"))
}

/// The HTTP status of a failure.
pub(in crate::server) fn status_of(failure: &Failure) -> StatusCode {
    StatusCode::from_u16(failure.status_number()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The problem without hints from the active catalog.
fn problem_without_hints(refused: &ExecuteError) -> Problem {
    let failure = Failure::from(refused);
    with_reasons(failed_as(&failure), &failure)
}

/// A failure with its own words.
fn failed_as(failure: &Failure) -> Problem {
    Problem::new(status_of(failure), failure.to_string()).ending_with(failure.next.as_deref())
}

/// Adds the members that programs read: `success`, `code` and those of the particular failure.
fn with_reasons(problem: Problem, failure: &Failure) -> Problem {
    let mut problem = problem
        .with_member("success", false)
        .with_member("code", failure.code.as_str());
    if !failure.candidates.is_empty() {
        let candidates: Vec<String> = failure.candidates.iter().map(ToString::to_string).collect();
        problem = problem.with_member("candidates", candidates);
    }
    if let Some(tool) = &failure.present {
        problem = problem.with_member("definition", native::written(tool));
    }
    if !failure.violations.is_empty() {
        let shown: Vec<Value> = failure
            .violations
            .iter()
            .map(|violation| json!({"pointer": violation.pointer, "message": violation.message}))
            .collect();
        problem = problem
            .with_member("violations", shown)
            .with_member("more_violations", failure.has_more_violations);
    }
    if let Some(attempts) = failure.attempts {
        problem = problem
            .with_member("attempts", attempts)
            .with_member("sent", failure.was_sent);
    }
    problem = problem.with_next(NextStep::argument("_output", GIVE_OUTPUT));
    match failure.retry_after {
        Some(wait) => problem.retry_after(wait),
        None => problem,
    }
}

impl From<AttendError> for Problem {
    fn from(error: AttendError) -> Self {
        let (status, code) = match error {
            AttendError::InvalidId(_) => (StatusCode::BAD_REQUEST, "invalid_call_id"),
            AttendError::Taken(_) => (StatusCode::CONFLICT, "call_id_taken"),
            AttendError::Full => (StatusCode::TOO_MANY_REQUESTS, "busy"),
        };
        Self::from_error(status, &error)
            .with_member("success", false)
            .with_member("code", code)
    }
}
