//! Tools over plain JSON-RPC 2.0: `POST /rpc`, and one message a line on a Unix socket.
//!
//! The methods are `tools/list`, `tools/call`, `tools/describe` and `server/identity`. A client
//! keeps the list and lists again only when the identity differs. The query of the address narrows
//! the list as in `GET /api/v1/tools`. Lists come from memory, and calls take the way of every
//! call. `docs/protocols/json-rpc.md` has the messages.
//!
//! Never here: sessions, and requests to the client.

mod calls;
mod identity;
mod methods;
#[cfg(unix)]
mod socket;

use axum::Router;
use axum::extract::{Extension, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use callsheet_provide::json_rpc;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::catalog::ViewQuery;
use crate::model::JsonText;
use crate::runtime::AnswerBudget;
use crate::server::SharedState;
use crate::server::api::lookup;
use crate::server::auth::Access;
use crate::server::auth::Right::Call;
use crate::server::auth::{ConfigWatch, require_right};
use crate::server::http::body::RawBody;
use crate::server::http::error::Problem;
use crate::server::http::held::ConnectionBytes;
use crate::server::http::params;
use crate::server::http::query::{ListQuery, Param, QueryParams, once};

pub(super) use identity::Identities;
#[cfg(unix)]
pub(super) use socket::listen;

/// The path, for the counters.
pub(super) const PATH: &str = "/rpc";
/// The parameters of the address.
const PARAMS: [Param; 7] =
    [params::PROFILE, params::CHAT, params::SCENARIOS, params::CATEGORIES, params::TAGS, once("q"), once("max_tools")];

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
        Ok(view) => RpcContext { shared, view, answers: bytes.answers().clone(), access },
        Err(problem) => return problem.into_response(),
    };
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    match context.answer(body).await {
        Some(answer) => (headers, answer).into_response(),
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
    /// The answer to a text; `None` if nothing in it wants one. The text is dropped as soon as its
    /// messages were read.
    async fn answer(&self, text: Bytes) -> Option<String> {
        let run = |method: String, params: Option<String>| async move {
            methods::answer(self, &method, params.map(JsonText::known)).await
        };
        json_rpc::respond(text, run).await
    }
}
