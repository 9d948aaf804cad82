//! Tools over plain JSON-RPC 2.0: `POST /rpc`, and one message a line on a Unix socket.
//!
//! The methods are `tools/list`, `tools/call`, `tools/describe` and `server/identity`. A client
//! keeps the list and lists again only when the identity differs. The query of the address narrows
//! the list as in `GET /api/v1/tools`. Lists come from memory, and calls take the way of every
//! call. `docs/protocols/json-rpc.md` has the messages.
//!
//! Never here: sessions, and requests to the client.

mod calls;
mod capabilities;
mod identity;
mod methods;
#[cfg(unix)]
mod socket;

use std::pin::pin;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use callsheet_provide::json_rpc::{self, AnswerError, IncomingMessage, Received};
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::yield_now;

use crate::catalog::ViewQuery;
use crate::model::JsonText;
use crate::protocols::DeclinedInput;
use crate::runtime::AnswerBudget;
use crate::server::SharedState;
use crate::server::api::lookup;
use crate::server::auth::Access;
use crate::server::auth::ConfigWatch;
use crate::server::auth::Right::Call;
use crate::server::http::batch::{BatchAnswer, BatchFull, ResultEnvelope, single_answer};
use crate::server::http::body::RawBody;
use crate::server::http::error::Problem;
use crate::server::http::held::ConnectionBytes;
use crate::server::http::params;
use crate::server::http::query::{ListQuery, Param, QueryParams, once};
use crate::server::http::shared_body::SharedBody;
use crate::server::route_layer::require_right;

pub(super) use identity::Identities;
#[cfg(unix)]
pub(super) use socket::listen;

/// Messages of one batch that are worked on at a time.
const AT_A_TIME: usize = 8;
/// The path, for the counters.
pub(super) const PATH: &str = "/rpc";
/// The parameters of the address.
const PARAMS: [Param; 8] = [
    params::PROFILE,
    params::PERMISSION,
    params::CHAT,
    params::SCENARIOS,
    params::CATEGORIES,
    params::TAGS,
    once("q"),
    once("max_tools"),
];

/// The tools that the messages of one address see.
pub(super) struct RpcContext {
    shared: SharedState,
    view: ViewQuery,
    /// What its answers are reserved from.
    answers: AnswerBudget,
    /// What its calls belong to.
    access: Access,
}

/// The route.
pub(super) fn router(config: &ConfigWatch) -> Router<SharedState> {
    Router::new().route(PATH, require_right(post(receive), Call, config))
}

/// `POST /rpc`: a message, or a batch of them. 204 if they want no answer, else 200: an error of
/// the protocol is an answer.
async fn receive(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    access: Access,
    Extension(bytes): Extension<ConnectionBytes>,
    RawBody(body): RawBody,
) -> Response {
    let context = match view(&shared, raw.as_deref()) {
        Ok(view) => RpcContext {
            shared,
            view,
            answers: bytes.answers().clone(),
            access,
        },
        Err(problem) => return problem.into_response(),
    };
    let headers = [
        (CONTENT_TYPE, "application/json"),
        (CACHE_CONTROL, "no-store"),
    ];
    match context.answer(body).await {
        Some(answer) => (headers, Body::new(answer)).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

/// The choice of tools that an address means.
fn view(shared: &SharedState, raw: Option<&str>) -> Result<ViewQuery, Problem> {
    let view = ListQuery::from_params(&QueryParams::parse(raw, &PARAMS)?)?.view;
    lookup::check_profile(shared, &shared.reader.snapshot().catalog, &view)?;
    Ok(view)
}

impl RpcContext {
    /// The answer to a text; `None` if nothing in it wants one. The text of a single message is
    /// dropped as soon as it was read.
    async fn answer(&self, text: Bytes) -> Option<SharedBody> {
        match json_rpc::read(&text) {
            Received::One(message) => {
                drop(text);
                self.run(message)
                    .await
                    .map(|answer| answer.into_body(&self.answers))
            }
            Received::Batch(messages) => self.batch(messages).await,
        }
    }

    /// The answers to a batch, in the order of its requests.
    async fn batch(&self, messages: Vec<IncomingMessage>) -> Option<SharedBody> {
        let mut batch = BatchAnswer::new(&self.answers);
        let full = &Mutex::new(None);
        let answers = stream::iter(messages).map(|message| async move {
            // Other requests have their turn between two messages.
            yield_now().await;
            let is_full: Option<BatchFull> = *full.lock();
            match (message, is_full) {
                (IncomingMessage::Request { id, .. }, Some(full)) => {
                    Some(RpcAnswer::not_run(id, full))
                }
                (message, _) => self.run(message).await,
            }
        });
        let mut answers = pin!(answers.buffered(AT_A_TIME));
        while let Some(answered) = answers.next().await {
            if let Some(answered) = answered {
                answered.add_to(&mut batch);
                *full.lock() = batch.full();
            }
        }
        batch.finish()
    }

    /// Runs one message; `None` if it wants no answer.
    async fn run(&self, message: IncomingMessage) -> Option<RpcAnswer> {
        match message {
            IncomingMessage::Request { id, method, params } => {
                let result = methods::answer(self, &method, params.map(JsonText::known)).await;
                Some(RpcAnswer {
                    id,
                    result,
                    was_run: true,
                })
            }
            IncomingMessage::Notification => None,
            IncomingMessage::Refused { id, error } => {
                let id = id.unwrap_or_else(|| "null".to_owned());
                Some(RpcAnswer {
                    id,
                    result: Err(error),
                    was_run: true,
                })
            }
        }
    }
}

/// The result of a method.
struct MethodResult {
    /// Its JSON text. A list is shared by all answers that have it.
    json: Bytes,
    /// Why a question of the tool was declined without its user, if one was.
    declined: Option<DeclinedInput>,
}

impl From<Bytes> for MethodResult {
    fn from(json: Bytes) -> Self {
        Self {
            json,
            declined: None,
        }
    }
}

/// The answer to one message.
struct RpcAnswer {
    id: String,
    result: Result<MethodResult, AnswerError>,
    /// Whether it is the answer to a message that was read and run, and not one of a batch that is
    /// full.
    was_run: bool,
}

/// What stands before and behind the result in the answer to this message.
fn result_envelope(id: &str, declined: Option<DeclinedInput>) -> ResultEnvelope {
    let (before, behind) = json_rpc::around_result(id);
    ResultEnvelope {
        before: before.into(),
        behind: match declined {
            Some(why) => with_declined(&behind, why).into(),
            None => behind.into(),
        },
    }
}

/// The end of an answer with a further member: the result itself stays as the tool gave it.
fn with_declined(behind: &str, why: DeclinedInput) -> String {
    let members = behind.strip_suffix('}').unwrap_or(behind);
    format!(r#"{members},"declined":{}}}"#, json!(why.to_string()))
}

impl RpcAnswer {
    /// The answer to a message of a batch that takes no further answers.
    fn not_run(id: String, full: BatchFull) -> Self {
        let error = AnswerError::refused(format!("{full}; this request was not run"));
        Self {
            id,
            result: Err(error),
            was_run: false,
        }
    }

    /// The answer to a single message, reserved from `budget`. Without room it is an error that
    /// says so.
    fn into_body(self, budget: &AnswerBudget) -> SharedBody {
        let answer = match self.result {
            Ok(result) => {
                let envelope = result_envelope(&self.id, result.declined);
                single_answer(&envelope, result.json, budget)
            }
            Err(error) => {
                let none = ResultEnvelope {
                    before: "".into(),
                    behind: "".into(),
                };
                single_answer(&none, json_rpc::answer(&self.id, Err(error)).into(), budget)
            }
        };
        answer.unwrap_or_else(|left_out| {
            let error = AnswerError::refused(left_out.to_string());
            SharedBody::new([json_rpc::answer(&self.id, Err(error)).into()])
        })
    }

    fn add_to(self, batch: &mut BatchAnswer) {
        let added = match self.result {
            Ok(result) => {
                let envelope = result_envelope(&self.id, result.declined);
                batch.add(&envelope, &result.json)
            }
            Err(error) if self.was_run => {
                batch.add_error(json_rpc::answer(&self.id, Err(error)).as_bytes())
            }
            Err(error) => {
                batch.add_left_out(json_rpc::answer(&self.id, Err(error)).as_bytes());
                Ok(())
            }
        };
        if let Err(full) = added {
            let error = AnswerError::refused(format!(
                "{full}; this request was run, its answer is left out"
            ));
            batch.add_left_out(json_rpc::answer(&self.id, Err(error)).as_bytes());
        }
    }
}
