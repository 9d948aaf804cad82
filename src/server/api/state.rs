//! `/api/v1/state`: what became of the stored state. Never reads or writes the store itself.

use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::EngineError;
use crate::server::SharedState;
use crate::server::api::shared_json::{self, Time};
use crate::server::http::error::Problem;
use crate::server::http::query::NoQuery;

/// What an operator accepted.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct AcceptedLoss {
    /// Whether there was a loss to accept.
    accepted: bool,
    /// What was lost, and what could be kept.
    lost: Option<String>,
    /// When the loss was noticed.
    lost_at: Option<Time>,
}

/// `POST /api/v1/state/accept-loss`: accepts that stored decisions of operators were lost, so that
/// tools are called again.
pub(in crate::server) async fn accept_loss(
    State(shared): State<SharedState>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let loss = shared
        .calls
        .accept_loss()
        .await
        .map_err(|error| Problem::from(EngineError::State(error)))?;
    shared_json::json(&AcceptedLoss {
        accepted: loss.is_some(),
        lost: loss.as_ref().map(|loss| loss.what.clone()),
        lost_at: loss.map(|loss| Time(loss.at)),
    })
}
