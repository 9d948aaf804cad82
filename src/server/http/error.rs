//! The only mapping from errors to answers: problem details (RFC 9457) with an extra `error`, which
//! clients of the original agent-inbox read.
//!
//! Texts of 4xx answers name the thing, the place and the next step. That of an unexpected failure
//! (500) is constant; the details go to the log. A call that its scenario did not answer says why
//! (502 to 504).

use std::fmt;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER, UPGRADE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use http_body_util::Full;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::engine::EngineError;
use crate::events::SubscribeError;
use crate::model::{InvalidName, InvalidPreference, ScenarioState, WithNextStep};
use crate::runtime::{BudgetExceeded, QueueFull};
use crate::server::http::next_step::NextStep;
use crate::state::StateErrorKind;
use crate::views::ViewRefused;

/// The next step where only the log has the cause.
const SEE_LOG: &str = "see the daemon's log";
/// The next step for a scenario whose program does not run.
const START_FIRST: &str = "start it again first";

/// An error answer.
#[derive(Debug)]
pub(in crate::server) struct Problem(Box<ProblemDetails>);

/// Boxed, because results with a problem are returned through many functions.
#[derive(Debug)]
struct ProblemDetails {
    status: StatusCode,
    detail: String,
    /// Where the next step begins in the text, if the text ends with one.
    next_step_at: Option<usize>,
    /// Further members, such as `candidates` or `known`.
    extras: Map<String, Value>,
    next: Vec<NextStep>,
    header: Option<(HeaderName, HeaderValue)>,
}

/// Why the request failed: problem details (RFC 9457). Further members, such as `candidates` or
/// `known`, say what to write instead.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(in crate::server) struct ProblemJson<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    status: u16,
    /// What is wrong, where, and what to do next.
    detail: &'a str,
    /// The same, for clients of the original agent-inbox.
    error: &'a str,
    /// What to do next: the end of `detail`, behind `; ` or `: `. Absent where there is no such
    /// step.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_step: Option<&'a str>,
    #[serde(flatten)]
    extras: &'a Map<String, Value>,
    /// The next steps that `detail` quotes, as data.
    #[serde(skip_serializing_if = "<[NextStep]>::is_empty")]
    next: &'a [NextStep],
}

impl Problem {
    /// A problem with the text for the client.
    pub(in crate::server) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self(Box::new(ProblemDetails {
            status,
            detail: detail.into(),
            next_step_at: None,
            extras: Map::new(),
            next: Vec::new(),
            header: None,
        }))
    }

    /// The problem for an error that has a text for the client.
    pub(in crate::server) fn from_error(status: StatusCode, error: &impl WithNextStep) -> Self {
        Self::new(status, error.to_string()).ending_with(error.next_step().as_deref())
    }

    /// 400: the request is invalid.
    pub(in crate::server) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 401: the operation needs a token (RFC 9110 section 11.6.1). `challenge` is a header value.
    pub(in crate::server) fn unauthorized(
        detail: impl Into<String>,
        challenge: &'static str,
    ) -> Self {
        let mut problem =
            Self::new(StatusCode::UNAUTHORIZED, detail).with_member("code", "token_needed");
        problem.0.header = Some((WWW_AUTHENTICATE, HeaderValue::from_static(challenge)));
        problem
    }

    /// 404: the resource does not exist.
    pub(in crate::server) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// 413: the body is larger than `server.max_body`.
    pub(in crate::server) fn too_large(limit: usize) -> Self {
        let detail =
            format!("the body is larger than {limit} bytes, the value of `server.max_body`");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    /// 413: the body is larger than this route takes.
    pub(in crate::server) fn larger_than_taken(limit: usize) -> Self {
        let detail = format!(
            "the body is larger than {} MiB, the most that is taken here",
            limit >> 20
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    /// 415: the body is in this content coding, and none is taken (RFC 9110 section 15.5.16).
    pub(in crate::server) fn content_coding(written: &str) -> Self {
        let detail = format!("the body is in the content coding `{}`", excerpt(written));
        let mut problem = Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
            .and_next("send it without `Content-Encoding`, as it is");
        problem.0.header = Some((ACCEPT_ENCODING, HeaderValue::from_static("identity")));
        problem
    }

    /// 426: this route needs a WebSocket (RFC 9110 section 15.5.22). `why` says what the handshake
    /// lacks.
    pub(in crate::server) fn upgrade_required(why: &str) -> Self {
        let detail = format!("this is a WebSocket (RFC 6455): {why}");
        let mut problem = Self::new(StatusCode::UPGRADE_REQUIRED, detail)
            .and_next("`GET /api/v1/events` sends the same over plain HTTP");
        problem.0.header = Some((UPGRADE, HeaderValue::from_static("websocket")));
        problem
    }

    /// 503: the daemon has too much to do now; the client may try again soon.
    pub(in crate::server) fn busy(detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        problem.0.header = Some((RETRY_AFTER, HeaderValue::from_static("1")));
        problem
    }

    /// 503 for an error that passes by itself; the client may try again soon.
    pub(in crate::server) fn busy_with(error: &impl WithNextStep) -> Self {
        Self::busy(error.to_string()).ending_with(error.next_step().as_deref())
    }

    /// 500: an unexpected failure; `cause` goes to the log only.
    pub(in crate::server) fn internal(cause: &dyn fmt::Display) -> Self {
        tracing::error!(error = %cause, "a request failed");
        Self::internal_logged()
    }

    /// 500, after the cause was logged.
    pub(in crate::server) fn internal_logged() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "this failed unexpectedly",
        )
        .and_next(SEE_LOG)
    }

    /// Adds the time after which the client may try again, in whole seconds and at least one (RFC
    /// 9110 section 10.2.3).
    pub(in crate::server) fn retry_after(mut self, wait: Duration) -> Self {
        let seconds = wait.as_millis().div_ceil(1000).max(1);
        self.0.header = HeaderValue::from_str(&seconds.to_string())
            .ok()
            .map(|seconds| (RETRY_AFTER, seconds));
        self
    }

    /// A change could not be stored; the cause was logged.
    pub(in crate::server) fn storage_failed(kind: StateErrorKind) -> Self {
        let (status, why) = match kind {
            StateErrorKind::Full => (
                StatusCode::INSUFFICIENT_STORAGE,
                " because there is no room on the disk",
            ),
            StateErrorKind::Unwritable => (
                StatusCode::SERVICE_UNAVAILABLE,
                " because the stored state cannot be written",
            ),
            StateErrorKind::Other => (StatusCode::INTERNAL_SERVER_ERROR, ""),
        };
        Self::new(
            status,
            format!("the change could not be stored{why}, so it has no effect"),
        )
        .and_next(SEE_LOG)
    }

    /// Adds a clause to its text. Behind a next step it belongs to that.
    pub(in crate::server) fn and_detail(mut self, text: &str) -> Self {
        self.0.detail.push_str("; ");
        self.0.detail.push_str(text);
        self
    }

    /// Adds what to do next: the end of its text, and a member.
    pub(in crate::server) fn and_next(mut self, next: &str) -> Self {
        let at = self.0.detail.len() + "; ".len();
        self.0.next_step_at.get_or_insert(at);
        self.and_detail(next)
    }

    /// Adds what to do next, where that is known.
    pub(in crate::server) fn and_next_if(self, next: Option<&str>) -> Self {
        match next {
            Some(next) => self.and_next(next),
            None => self,
        }
    }

    /// Has the end of its text, if that is this next step, as a member too.
    pub(in crate::server) fn ending_with(mut self, next: Option<&str>) -> Self {
        let before = next.and_then(|next| self.0.detail.strip_suffix(next));
        self.0.next_step_at = before.map(str::len);
        self
    }

    /// Puts a sentence before the detail.
    pub(in crate::server) fn preceded_by(mut self, text: &str) -> Self {
        let before = format!("{text}; ");
        self.0.next_step_at = self.0.next_step_at.map(|at| at + before.len());
        self.0.detail.insert_str(0, &before);
        self
    }

    /// Adds a member.
    pub(in crate::server) fn with_member(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.0.extras.insert(member.to_owned(), value.into());
        self
    }

    /// Adds a next step as data, if the text quotes it.
    pub(in crate::server) fn with_next(mut self, step: NextStep) -> Self {
        if step.is_quoted_in(&self.0.detail) {
            self.0.next.push(step);
        }
        self
    }

    /// The status and the text for the client.
    pub(in crate::server) fn status_and_detail(&self) -> (StatusCode, &str) {
        (self.0.status, &self.0.detail)
    }

    /// The JSON document for the client.
    pub(in crate::server) fn document(&self) -> ProblemJson<'_> {
        let ProblemDetails {
            status,
            detail,
            next_step_at,
            extras,
            next,
            ..
        } = &*self.0;
        ProblemJson {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or_default(),
            status: status.as_u16(),
            detail,
            error: detail,
            next_step: next_step_at.and_then(|at| detail.get(at..)),
            extras,
            next,
        }
    }

    /// The whole answer.
    pub(in crate::server) fn into_full_response(self) -> http::Response<Full<Bytes>> {
        // Strings, numbers and JSON values can always be written.
        let body = serde_json::to_vec(&self.document()).unwrap_or_default();
        let ProblemDetails { status, header, .. } = *self.0;
        let mut answer = http::Response::new(Full::new(Bytes::from(body)));
        *answer.status_mut() = status;
        answer.headers_mut().insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some((name, value)) = header {
            answer.headers_mut().insert(name, value);
        }
        answer
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.into_full_response().map(axum::body::Body::new)
    }
}

impl From<BudgetExceeded> for Problem {
    fn from(error: BudgetExceeded) -> Self {
        let next = "try again when other requests have ended, or raise `server.held_bytes`";
        match error {
            BudgetExceeded::Share { .. } => {
                let problem =
                    Self::new(StatusCode::TOO_MANY_REQUESTS, error.to_string()).and_next(next);
                problem.retry_after(Duration::from_secs(1))
            }
            BudgetExceeded::Whole { .. } => Self::busy(error.to_string()).and_next(next),
        }
    }
}

impl From<QueueFull> for Problem {
    fn from(error: QueueFull) -> Self {
        Self::busy(error.to_string()).ending_with(Some(QueueFull::NEXT_STEP))
    }
}

impl From<SubscribeError> for Problem {
    fn from(error: SubscribeError) -> Self {
        Self::busy_with(&error)
    }
}

impl From<ViewRefused> for Problem {
    fn from(error: ViewRefused) -> Self {
        match error {
            ViewRefused::Memory(exceeded) => exceeded.into(),
            ViewRefused::Busy(full) => full.into(),
        }
    }
}

impl From<InvalidName> for Problem {
    fn from(error: InvalidName) -> Self {
        Self::from_error(StatusCode::BAD_REQUEST, &error)
    }
}

impl From<InvalidPreference> for Problem {
    fn from(error: InvalidPreference) -> Self {
        Self::from_error(StatusCode::BAD_REQUEST, &error)
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let conflict = || Self::new(StatusCode::CONFLICT, error.to_string());
        match error {
            EngineError::UnknownScenario(_) => {
                let list = NextStep::request("GET", "/api/v1/scenarios");
                let problem = Self::not_found(error.to_string());
                problem.and_next(&format!("{list} lists those that are known")).with_next(list)
            }
            EngineError::Blocked(ref name) => {
                let unblock = NextStep::request("DELETE", format!("/api/v1/scenarios/{name}/block"));
                let problem = conflict();
                problem.and_next(&format!("take the block back with {unblock}")).with_next(unblock)
            }
            EngineError::NoAddress(_) => {
                let detail = format!("{error}, so it has no address");
                Self::new(StatusCode::CONFLICT, detail).and_next(START_FIRST)
            }
            EngineError::NotTrusted(ref name) => {
                let trust = NextStep::request("POST", format!("/api/v1/scenarios/{name}/trust"));
                conflict().and_next(&format!("accept it with {trust}")).with_next(trust)
            }
            EngineError::ProcessEnded(..) => conflict().and_next(START_FIRST),
            EngineError::NotForgettable(ref name, state) => {
                let unblock = NextStep::request("DELETE", format!("/api/v1/scenarios/{name}/block"));
                let block = NextStep::request("POST", format!("/api/v1/scenarios/{name}/block"));
                let next = match state {
                    ScenarioState::Blocked => format!("take the block back first with {unblock}"),
                    ScenarioState::Pending => format!("keep it out with {block}"),
                    _ => "take it out of what names it, and it is removed once it does not answer".to_owned(),
                };
                conflict().and_next(&next).with_next(unblock).with_next(block)
            }
            EngineError::NotPinned(ref name) => {
                conflict().and_next(&format!("set its `pins` to `warn` or `hold`: `callsheet prefs set scenario:{name} --pins warn`"))
            }
            EngineError::PinsChanged(ref name, _) => {
                let look = NextStep::request("GET", format!("/api/v1/pins?scenario={name}"));
                let problem = conflict().and_next(&format!("{look} shows what differs now")).with_next(look);
                problem.with_member("code", "pins_changed")
            }
            EngineError::TooManyAdditions => conflict().and_next("take one away that is not needed first"),
            EngineError::TooManyPreferences => conflict().and_next("reset some that are not needed first"),
            EngineError::TooManyClientPreferences => conflict().and_next(
                "make the change with the token, or have an operator reset some (`callsheet prefs reset --scope 'chat:*'`)",
            ),
            EngineError::TooManyClientPreferencesOfScope(_) => {
                conflict().and_next("reset some of them, or make the change with the token")
            }
            EngineError::State(ref cause) => {
                tracing::error!(error = %cause, "a change could not be stored");
                Self::storage_failed(cause.kind)
            }
            EngineError::Stopping => Self::busy("the daemon is stopping").and_next("try again soon"),
        }
    }
}

/// At most 120 characters of a client's text, to quote it in an error.
pub(in crate::server) fn excerpt(text: &str) -> String {
    text.chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StateError;
    use http_body_util::BodyExt;
    use serde_json::json;

    async fn response_of(problem: Problem) -> (StatusCode, Value) {
        let answer = problem.into_full_response();
        assert_eq!(answer.headers()[CONTENT_TYPE], "application/problem+json");
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_problem_repeats_its_text_for_original_clients() {
        let (status, body) = response_of(
            Problem::not_found("no such thing").with_member("candidates", vec!["a", "b"]),
        )
        .await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let expected = json!({"type": "about:blank", "title": "Not Found", "status": 404, "detail": "no such thing",
            "error": "no such thing", "candidates": ["a", "b"]});
        assert_eq!(body, expected);
    }

    #[tokio::test]
    async fn a_failure_of_ours_tells_no_details() {
        let store = |place: &str, kind| {
            let place = place.into();
            let message = "it cannot be".into();
            EngineError::State(StateError {
                what: "cannot save",
                place,
                message,
                next: None,
                kind,
            })
        };
        for (kind, expected) in [
            (StateErrorKind::Full, StatusCode::INSUFFICIENT_STORAGE),
            (StateErrorKind::Unwritable, StatusCode::SERVICE_UNAVAILABLE),
            (StateErrorKind::Other, StatusCode::INTERNAL_SERVER_ERROR),
        ] {
            let (status, first) = response_of(store("/secret/state.db", kind).into()).await;
            let (_, second) = response_of(store("/other", kind).into()).await;
            assert_eq!(status, expected);
            assert_eq!(first, second);
            assert!(!first.to_string().contains("secret"));
        }
        let (_, unexpected) = response_of(Problem::internal(&"index 7 out of range")).await;
        assert!(!unexpected.to_string().contains("index"));
    }

    #[tokio::test]
    async fn engine_errors_keep_whose_fault_it_was() {
        let name: crate::model::ScenarioName = "files".parse().unwrap();
        let (status, body) = response_of(EngineError::UnknownScenario(name.clone()).into()).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(body["detail"].as_str().unwrap().contains("`files`"));
        let (status, body) = response_of(EngineError::Blocked(name).into()).await;
        assert_eq!(status, StatusCode::CONFLICT);
        assert!(
            body["detail"]
                .as_str()
                .unwrap()
                .contains("DELETE /api/v1/scenarios/files/block")
        );
        let (status, _) = response_of(EngineError::Stopping.into()).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    }
}
