//! `/api/v1/turns` and `/api/v1/results`: runs the tool calls in a vendor's response, and answers
//! with the messages for the next request.
//!
//! A call that is refused or fails is part of the answer, never an error of the request.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::calls::CallMode;
use crate::calls::turns::{
    self, ReadError, TURN_FORMATS, Turn, TurnError, TurnFormat, TurnRequest, Turns,
};
use crate::engine::EngineError;
use crate::formats;
use crate::model::JsonText;
use crate::runtime::tasks::{BRIEF_BODY_BYTES, BodyStep};
use crate::server::api::turn_json::{self, TurnBody, WAIT_MAX};
use crate::server::api::{lookup, shared_json};
use crate::server::auth::Access;
use crate::server::http::body::RawBody;
use crate::server::http::error::{Problem, excerpt};
use crate::server::http::held::{ConnectionBytes, with_reservation};
use crate::server::http::next_step::NextStep;
use crate::server::http::params::{self, Param, ParamType};
use crate::server::http::query::{NoQuery, QueryParams, bad_value, count, once};
use crate::server::http::typed_body::parse_body;
use crate::server::openapi::{RefusalSpec, refusal};
use crate::server::{ServerState, SharedState};

/// The parameters of a turn.
pub(in crate::server) const PARAMS: &[Param] = &[
    once("format")
        .takes(ParamType::Word(ids))
        .about(
            "The vendor whose response the body is: the format of its list.",
            "anthropic",
        )
        .required(),
    params::PROFILE,
    params::PERMISSION,
    params::CHAT,
];
/// The parameters of a turn that was begun.
pub(in crate::server) const WAIT: &[Param] =
    &[once("wait").takes(ParamType::Count(0, WAIT_MAX)).about(
        "How many seconds approvals, input and operations are waited for.",
        "30",
    )];
/// The refusals of a turn.
pub(in crate::server) const REFUSALS: &[RefusalSpec] = &[
    refusal(
        400,
        "The body is no response of this format: the answer names the format that it looks like. Or `mode` is `any` or `race`, and the `tools` in the answer are not declared idempotent.",
    )
    .with_example(|| ReadError::OtherFormat { format: "openai", like: "anthropic" }.into()),
    refusal(403, "Profiles are known, and this one is not.").with_example(unknown_profile),
    refusal(409, "Another turn has this `turn_id`, with another body.")
        .with_example(|| TurnError::Taken("my-turn-1".into()).into()),
    refusal(429, "As many turns are under way as are kept; `Retry-After` says when to try again.")
        .with_example(|| TurnError::Full.into()),
];
/// The refusal of an id that no turn has.
pub(in crate::server) const NO_TURN: RefusalSpec = refusal(
    404,
    "No turn of this caller has this id, or it was forgotten.",
)
.with_example(unknown_turn);
/// The refusal of an id that no result has.
pub(in crate::server) const NO_RESULT: RefusalSpec = refusal(
    404,
    "No call of a turn of this caller has this id, it is not over, or it was forgotten.",
)
.with_example(unknown_result);

fn ids() -> Vec<&'static str> {
    TURN_FORMATS.iter().map(|format| format.id()).collect()
}

/// `POST /api/v1/turns?format=...`: the body is the vendor's response, or `{"response",
/// "revision"?, "parallel"?, "mode"?, "wait"?, "turn_id"?, "approvals"?,
/// "max_result_tokens"?, "own_tools"?, "user_id"?}`.
/// 200 with the messages, or 202 while a call waits for a person.
pub(in crate::server) async fn begin(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    access: Access,
    Extension(bytes): Extension<ConnectionBytes>,
    RawBody(body): RawBody,
) -> Result<Response, Problem> {
    let (request, wait) = {
        let body = std::str::from_utf8(&body)
            .map_err(|_| Problem::bad_request("the body is not UTF-8"))?;
        parse(&shared, raw.as_deref(), access, body)?
    };
    // Frees the buffer of the body for other requests while the calls run.
    drop(body);
    let turn = shared.calls.begin_turn(request).await?;
    shared
        .calls
        .wait_for_turn(&turn, patience(&shared, &bytes, wait))
        .await;
    answer(&shared, &bytes, turn).await
}

/// `GET /api/v1/turns/{id}`: a turn as it is now, with the messages once every call is over.
pub(in crate::server) async fn show(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    RawQuery(raw): RawQuery,
    access: Access,
    Extension(bytes): Extension<ConnectionBytes>,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), WAIT)?;
    let wait = match query.optional("wait") {
        None => 0,
        Some(text) => count(text)
            .and_then(|seconds| u32::try_from(seconds).ok())
            .unwrap_or(u32::MAX),
    };
    let wait = seconds(wait)?;
    let turn = kept(&shared)
        .and_then(|turns| turns.get(&id, access.owner()))
        .ok_or_else(unknown_turn)?;
    shared
        .calls
        .wait_for_turn(&turn, patience(&shared, &bytes, wait))
        .await;
    answer(&shared, &bytes, turn).await
}

/// `GET /api/v1/results/{id}`: the whole result of a call of a turn.
pub(in crate::server) async fn result(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
    access: Access,
) -> Result<Response, Problem> {
    let turn = kept(&shared)
        .and_then(|turns| turns.with_call(&id, access.owner()))
        .ok_or_else(unknown_result)?;
    let (call, settled) = turn.result(&id).ok_or_else(unknown_result)?;
    shared_json::json(&turn_json::result(&id, &turn, call, &settled))
}

/// Waits so long for a turn, unless the connection has to give way earlier.
async fn patience(shared: &ServerState, bytes: &ConnectionBytes, wait: Duration) {
    if !wait.is_zero() {
        bytes.waits_for_change(shared.clock.sleep(wait)).await;
    }
}

fn kept(shared: &ServerState) -> Option<&Turns> {
    shared.calls.turns()
}

/// The answer with a turn as it is now. A large one is reserved before it is written, and written
/// on another thread, so that this one serves others meanwhile. One that is larger than the share
/// of its connection takes all of it.
async fn answer(
    shared: &ServerState,
    bytes: &ConnectionBytes,
    turn: Arc<Turn>,
) -> Result<Response, Problem> {
    let result_bytes = turn.result_bytes();
    if result_bytes <= BRIEF_BODY_BYTES {
        let body = written(&turn)?;
        return Ok(answer_of(&turn, body.into()));
    }
    let expected = bytes.answers().reserve_expected(result_bytes)?;
    let write = move || {
        let body = written(&turn)?;
        let reserved = expected.made(body.len())?;
        Ok(answer_of(&turn, with_reservation(body.into(), reserved)))
    };
    shared
        .tasks
        .work_on_body(BodyStep::Further, result_bytes, write)
        .await
}

fn written(turn: &Turn) -> Result<Vec<u8>, Problem> {
    shared_json::bytes(&turn_json::turn(turn)?, 0)
}

fn answer_of(turn: &Turn, body: Bytes) -> Response {
    let status = if turn.is_over() {
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    };
    shared_json::written(status, body)
}

fn parse(
    shared: &ServerState,
    raw: Option<&str>,
    access: Access,
    body: &str,
) -> Result<(TurnRequest, Duration), Problem> {
    let query = QueryParams::parse(raw, PARAMS)?;
    let format = format(&query)?;
    let scope = query.scope()?;
    lookup::check_profile(shared, &shared.reader.snapshot().catalog, &scope)?;
    let body = options(body)?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let tells_approvals = match given(body.approvals).as_deref() {
        None | Some("wait") => false,
        Some("tell") => true,
        Some(other) => return Err(bad_value("approvals", other, "`wait` or `tell`")),
    };
    let mode = match given(body.mode) {
        None => CallMode::All,
        Some(mode) => mode
            .parse()
            .map_err(|_| bad_value("mode", &mode, "`all`, `any` or `race`"))?,
    };
    if body.parallel == Some(0) || body.max_result_tokens == Some(0) {
        let problem = Problem::bad_request("`parallel` and `max_result_tokens` are above 0");
        return Err(problem.and_next("leave them out for no limit"));
    }
    let list = given(body.revision);
    let revision = list.clone().map(|tag| {
        shared
            .views
            .revision_of(&tag)
            .map_or(tag, |revision| revision.to_string())
    });
    let token_bytes = formats::by_id(format.id()).map_or(10, |format| format.limits().token_bytes);
    let request = TurnRequest {
        format,
        read: turns::read_response(format, body.response.get())?,
        response: JsonText::known(body.response.get()),
        id: given(body.turn_id),
        owner: access.owner().into(),
        profile: scope.profile,
        permission: scope.permission,
        chat: scope.chat,
        user_id: given(body.user_id).map(Into::into),
        list,
        revision,
        parallel: body.parallel,
        mode,
        own_tools: body.own_tools,
        tells_approvals,
        text_bytes: body
            .max_result_tokens
            .map(|tokens| tokens.saturating_mul(token_bytes) / 10),
    };
    Ok((request, seconds(body.wait.unwrap_or(0))?))
}

/// The options in a body that has a `response`, or none for a body that is one.
fn options(body: &str) -> Result<TurnBody<'_>, Problem> {
    #[derive(Deserialize)]
    struct WrappedResponse<'a> {
        #[serde(borrow)]
        response: Option<&'a RawValue>,
    }
    let text = body.trim_start();
    let is_wrapped = text.starts_with('{')
        && serde_json::from_str::<WrappedResponse<'_>>(text)
            .is_ok_and(|wrapped| wrapped.response.is_some());
    if is_wrapped {
        return Ok(parse_body(text.as_bytes())?);
    }
    let response = serde_json::from_str(text).map_err(|error| {
        let refused = turns::read_response(TURN_FORMATS[0], text);
        match refused {
            Err(ReadError::Stream) => ReadError::Stream.into(),
            _ => Problem::bad_request(format!("the body is not JSON: {error}")),
        }
    })?;
    Ok(TurnBody {
        response,
        revision: None,
        parallel: None,
        mode: None,
        wait: None,
        turn_id: None,
        approvals: None,
        max_result_tokens: None,
        own_tools: None,
        user_id: None,
    })
}

fn format(query: &QueryParams) -> Result<&'static dyn TurnFormat, Problem> {
    let id = query.required("format")?;
    turns::by_id(id).ok_or_else(|| {
        let known = ids();
        let allowed = known
            .iter()
            .map(|id| format!("`{id}`"))
            .collect::<Vec<_>>()
            .join(" or ");
        bad_value("format", id, &allowed).with_member("known", known)
    })
}

fn seconds(wait: u32) -> Result<Duration, Problem> {
    if wait > WAIT_MAX {
        return Err(Problem::bad_request(format!(
            "`wait` is a whole number of seconds from 0 to {WAIT_MAX}"
        )));
    }
    Ok(Duration::from_secs(wait.into()))
}

/// The problem for an id that no turn has.
fn unknown_profile() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "no profile is called `nurse`")
        .with_member("code", "unknown_profile")
}

fn unknown_turn() -> Problem {
    Problem::not_found(
        "no turn of yours has this id: it was forgotten after `turns.keep`, or never was",
    )
    .with_member("code", "unknown_turn")
}

/// The problem for an id that no result has.
fn unknown_result() -> Problem {
    Problem::not_found(
        "no call of a turn of yours has this id: it is not over, was forgotten after `turns.keep`, or never was",
    )
    .with_member("code", "unknown_result")
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        let code = match &error {
            ReadError::Malformed(_) => "malformed_response",
            ReadError::Stream => "stream",
            ReadError::OtherFormat { .. } => "other_format",
            ReadError::UnknownFormat(_) => "unknown_format",
            ReadError::NoId(_) => "no_call_id",
            ReadError::Several(_) => "several_choices",
        };
        let problem =
            Self::from_error(StatusCode::BAD_REQUEST, &shortened(&error)).with_member("code", code);
        match error {
            ReadError::OtherFormat { like, .. } => problem
                .with_member("looks_like", like)
                .with_next(NextStep::parameter("format", like)),
            _ => problem,
        }
    }
}

/// The same with a name of the model's, which may be long, shortened.
fn shortened(error: &ReadError) -> ReadError {
    match error {
        ReadError::NoId(name) => ReadError::NoId(excerpt(name)),
        other => other.clone(),
    }
}

impl From<TurnError> for Problem {
    fn from(error: TurnError) -> Self {
        let code = |status, code: &str| Self::from_error(status, &error).with_member("code", code);
        match &error {
            TurnError::InvalidId(_) => code(StatusCode::BAD_REQUEST, "invalid_turn_id"),
            TurnError::Taken(_) | TurnError::CallTaken { .. } => {
                code(StatusCode::CONFLICT, "turn_id_taken")
            }
            TurnError::CannotCompete(refused) => {
                let tools: Vec<String> = refused.tools.iter().map(ToString::to_string).collect();
                code(StatusCode::BAD_REQUEST, "cannot_compete").with_member("tools", tools)
            }
            TurnError::Full => {
                code(StatusCode::TOO_MANY_REQUESTS, "busy").retry_after(Duration::from_secs(1))
            }
            TurnError::State(cause) => EngineError::State(cause.clone()).into(),
            TurnError::Stopping => EngineError::Stopping.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_of_turns_is_one_of_lists() {
        for id in ids() {
            assert!(formats::by_id(id).is_some(), "{id}");
        }
        let without = formats::FORMATS
            .iter()
            .map(|format| format.id())
            .filter(|id| turns::by_id(id).is_none());
        assert_eq!(
            without.collect::<Vec<_>>(),
            ["native", "mcp"],
            "what is no LLM's"
        );
    }

    #[test]
    fn a_body_with_a_response_has_options() {
        let bare = options(r#" {"role":"assistant"} "#).unwrap();
        assert_eq!(bare.response.get(), r#"{"role":"assistant"}"#);
        let wrapped = options(r#"{"response":[],"wait":3}"#).unwrap();
        assert_eq!(wrapped.response.get(), "[]");
        assert_eq!(wrapped.wait, Some(3));
        for body in [r#"{"response":[],"wiat":3}"#, "{", "data: {}\n\n"] {
            assert!(options(body).is_err(), "{body}");
        }
    }

    #[test]
    fn owners_differ_by_their_token() {
        assert_ne!(Access::Full.owner(), Access::WithoutToken.owner());
        assert_eq!(Access::WrongToken.owner(), Access::WithoutToken.owner());
    }
}
